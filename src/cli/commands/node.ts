import { resolve } from "node:path";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { NodeBinding, maxMachineAddresses } from "../../api/kinds/node-binding.ts";
import { releasedSpec } from "../../core/join/join-changes.ts";
import { isNodeName } from "../../core/join/judge-csr.ts";
import { longestNodeName } from "../../core/join/refused-certificates.ts";
import { poolOfNode } from "../../core/pool/pool-of-node.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { readArguments, readHosts, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { columnText } from "../column-text.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Io, processIo } from "../io.ts";

/** The request, once the command line is parsed. */
export type NodeRequest =
  | { readonly verb: "list"; readonly json: boolean }
  | {
      readonly verb: "release";
      readonly names: readonly string[];
      /** Names count of which there is neither a record nor a Node. */
      readonly isDeleted: boolean;
      readonly json: boolean;
    }
  | { readonly verb: "address"; readonly name: string; readonly addresses: readonly string[]; readonly json: boolean };

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.node, { positionals: true });
  const request = nodeRequestOf(positionals, values);
  const directory = values.dir === undefined ? undefined : resolve(values.dir);
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory, component: "node" });
  try {
    return await nodeCommand({ kube, io: processIo(), now: Date.now }, request);
  } finally {
    close();
  }
}

export function nodeRequestOf(
  [verb, ...names]: readonly string[],
  { json, deleted: isDeleted }: { readonly json: boolean; readonly deleted: boolean },
): NodeRequest {
  if (isDeleted && verb !== "release") throw usageError("--deleted is for mco node release");
  switch (verb) {
    case "list":
      if (names.length > 0) throw usageError("mco node list takes no names: it lists all bound names");
      return { verb, json };
    case "release":
      if (names.length === 0) throw usageError("name the nodes to release: mco node release NAME …");
      return { verb, names: [...new Set(names)], isDeleted, json };
    case "address": {
      const [name, ...addresses] = names;
      if (name === undefined || addresses.length === 0)
        throw usageError("name the node and its addresses: mco node address NAME HOST …");
      return { verb, name, addresses: readHosts(addresses, "an address"), json };
    }
    default:
      throw usageError(
        verb === undefined
          ? "name a verb: list, release or address"
          : `unknown verb "${verb}"; use list, release or address`,
      );
  }
}

interface NodeParts {
  readonly kube: KubeClient;
  readonly io: Io;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** @returns the exit code. */
export async function nodeCommand(parts: NodeParts, request: NodeRequest): Promise<number> {
  switch (request.verb) {
    case "list":
      return list(parts, request.json);
    case "release":
      return release(parts, request);
    case "address":
      return address(parts, request);
  }
}

const print = ({ io }: NodeParts, kind: string, fields: Readonly<Record<string, unknown>>) =>
  io.out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind, ...fields })}\n`);

async function list(parts: NodeParts, json: boolean): Promise<number> {
  const { items } = await parts.kube.list(NodeBinding);
  const bindings = items.map(({ metadata, spec }) => ({
    name: metadata.name,
    pool: spec.pool,
    expiresAt: spec.expiresAt,
    addresses: spec.addresses ?? [],
    registered: spec.nodeUID !== undefined,
    ...(spec.releasedAt === undefined ? {} : { releasedAt: spec.releasedAt }),
    ...(spec.revoked === true ? { revoked: true } : {}),
  }));
  if (json) print(parts, "NodeBindings", { bindings });
  else if (bindings.length === 0)
    parts.io.out("no name is bound: none belongs to a machine that joined by a pool's account\n");
  else {
    const rows = [
      ["NAME", "POOL", "REGISTERED", "EXPIRES", "ADDRESSES"],
      ...bindings.map(({ name, pool, registered, releasedAt, revoked, expiresAt, addresses }) => [
        name,
        pool,
        revoked === true || releasedAt !== undefined ? "released" : registered ? "yes" : "no",
        expiresAt,
        addresses.join(",") || "-",
      ]),
    ];
    parts.io.out(columnText(rows));
  }
  return exitCodes.ok;
}

function failed({ io }: NodeParts, unknown: readonly string[]): number {
  io.err(
    `mco node: no name ${unknown.map((name) => `"${name}"`).join(", ")} is bound; mco node list shows those that are\n`,
  );
  return exitCodes.failed;
}

async function release(
  parts: NodeParts,
  { names, isDeleted, json }: NodeRequest & { readonly verb: "release" },
): Promise<number> {
  const unknown: string[] = [];
  // The list of what the API server refuses has no place for them.
  const long: string[] = [];
  for (const name of names) {
    const isBound = (await parts.kube.get(NodeBinding, { name })) !== undefined;
    // Its record stays, so that the certificate of the former machine is not renewed.
    if (isBound) await parts.kube.patch(NodeBinding, { name }, { type: "merge", body: { spec: { revoked: true } } });
    else if (isNodeName(name) && name.length > longestNodeName) long.push(name);
    else if (!(await releaseUnbound(name, isDeleted, parts))) unknown.push(name);
  }
  const released = names.filter((name) => ![...unknown, ...long].includes(name));
  if (json) print(parts, "ReleasedNodes", { released, unknown: [...unknown, ...long] });
  else for (const name of released) parts.io.out(`the name ${name} is free\n`);
  for (const name of long)
    parts.io.err(
      `mco node: "${name}" has more than ${longestNodeName} characters: the API server cannot be told to refuse certificates for it; delete the binding by which kube-controller-manager renews them (docs/joining.md, Other approvers), or wait until they end\n`,
    );
  if (unknown.length === 0) return long.length === 0 ? exitCodes.ok : exitCodes.failed;
  parts.io.err(
    `mco node: ${unknown.map((name) => `"${name}"`).join(", ")}: neither a name that is bound nor one of a Node; if the Node was deleted already, add --deleted\n`,
  );
  return exitCodes.failed;
}

/**
 * Records the release of a node that the suite did not admit: the machine's certificates are not known, and another approver than
 * the suite's may renew them.
 *
 * @param isDeleted the name counts without a Node, too. @returns `false`: there is no such Node.
 */
async function releaseUnbound(name: string, isDeleted: boolean, { kube, now }: NodeParts): Promise<boolean> {
  if (!isNodeName(name)) return false;
  const node = await kube.get(kubernetes.Node, { name });
  if (node === undefined && !isDeleted) return false;
  const pools = (await kube.list(MachineConfigPool)).items;
  const member = node === undefined ? undefined : poolOfNode(node, pools);
  await kube.create<NodeBinding>(NodeBinding, {
    apiVersion: NodeBinding.apiVersion,
    kind: NodeBinding.kind,
    metadata: { name },
    spec: releasedSpec(member?.verdict === "member" ? member.pool : undefined, now()),
  });
  return true;
}

async function address(
  parts: NodeParts,
  { name, addresses, json }: NodeRequest & { readonly verb: "address" },
): Promise<number> {
  const binding = await parts.kube.get(NodeBinding, { name });
  if (binding === undefined) return failed(parts, [name]);
  const all = [...new Set([...(binding.spec.addresses ?? []), ...addresses])];
  if (all.length > maxMachineAddresses) throw usageError(`a node has at most ${maxMachineAddresses} addresses`);
  const { resourceVersion } = binding.metadata;
  await parts.kube.patch(
    NodeBinding,
    { name },
    { type: "merge", body: { metadata: { resourceVersion }, spec: { addresses: all } } },
  );
  if (json) print(parts, "NodeAddresses", { name, addresses: all });
  else parts.io.out(`${name} may serve under ${all.join(", ")}\n`);
  return exitCodes.ok;
}
