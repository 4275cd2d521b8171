import {
  ControllerConfig,
  MachineConfigPool,
  MachineConfiguration,
  ProvisioningToken,
  kubernetes,
} from "../../api/index.ts";
import { namespace, objects } from "../../api/names.ts";
import { durationText } from "../../core/books/fold-book.ts";
import { isNodeName } from "../../core/join/judge-csr.ts";
import { configServerAddress, configServerAuthority, pointerConfig, withPort } from "../../core/join/pointer-config.ts";
import { newToken } from "../../core/join/provisioning-token.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { Clock, Random } from "../../ports/index.ts";
import { systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { countOf, durationOf, readAddresses, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { columnText } from "../column-text.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Io, processIo } from "../io.ts";
import { localAddresses } from "../local-cluster.ts";

/** The request, once the command line is parsed. */
export type TokenRequest =
  | {
      readonly verb: "create";
      readonly pool: string;
      readonly ttlMs: number;
      readonly uses: number;
      readonly node: string | undefined;
      readonly addresses: readonly string[];
      readonly pointer: boolean;
      readonly server: string | undefined;
      readonly json: boolean;
    }
  | { readonly verb: "list"; readonly json: boolean }
  | { readonly verb: "revoke"; readonly ids: readonly string[]; readonly json: boolean };

const defaults = { ttl: "24h", uses: "1" } as const;
const maxTtlMs = 366 * 86_400_000;

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.token, { positionals: true });
  const request = requestOf(positionals, values);
  const { kube, connection, close } = await connect({
    kubeconfig: values.kubeconfig,
    directory: values.dir,
    component: "token",
  });
  try {
    // A cluster on this machine has its config server at an address of its own.
    const addresses = await localAddresses(systemFiles, connection.server, {
      directory: values.dir,
      kubeconfig: values.kubeconfig ?? process.env["KUBECONFIG"],
    });
    const fallbackServer = addresses?.configServer;
    return await tokenCommand(
      { kube, io: processIo(), clock: systemClock, random: systemRandom, fallbackServer },
      request,
    );
  } finally {
    close();
  }
}

interface Values {
  readonly json: boolean;
  readonly pool?: string | undefined;
  readonly ttl?: string | undefined;
  readonly uses?: string | undefined;
  readonly node?: string | undefined;
  readonly address?: readonly string[] | undefined;
  readonly pointer: boolean;
  readonly server?: string | undefined;
}

export function requestOf(
  [verb, ...names]: readonly string[],
  { json, pool, ttl, uses, node, address = [], pointer, server }: Values,
): TokenRequest {
  const isForCreate =
    [pool, ttl, uses, node, server].some((value) => value !== undefined) || pointer || address.length > 0;
  if (verb !== "create" && isForCreate)
    throw usageError(
      "--pool, --ttl, --uses, --node, --address, --pointer and --server are flags of mco token create only",
    );
  switch (verb) {
    case "create": {
      if (names.length > 0) throw usageError(`unexpected argument "${names.join(" ")}"; name the pool with --pool`);
      if (pool === undefined || pool === "")
        throw usageError("--pool is required: the pool that the token gives access to");
      if (server !== undefined && !new RegExp(configServerAddress).test(server))
        throw usageError(`--server must be HOST or HOST:PORT, not "${server}"`);
      if (server !== undefined && !pointer) throw usageError("--server needs --pointer");
      const ttlMs = durationOf(ttl ?? defaults.ttl, "--ttl");
      if (ttlMs > maxTtlMs) throw usageError("--ttl must be at most 366d");
      const machine = machineOf(node, address);
      if (node !== undefined && uses !== undefined && uses !== "1")
        throw usageError("--node names one machine: --uses must be 1");
      return {
        verb,
        pool,
        ttlMs,
        uses: countOf(uses ?? defaults.uses, "--uses", 1, 1_000_000),
        ...machine,
        pointer,
        server,
        json,
      };
    }
    case "list":
      if (names.length > 0) throw usageError("mco token list takes no names: it lists all tokens");
      return { verb, json };
    case "revoke":
      if (names.length === 0) throw usageError("name the tokens to revoke: mco token revoke ID …");
      // Accepts the whole token too: its first half is the id.
      return { verb, ids: names.map((name) => name.split(".")[0] ?? name), json };
    default:
      throw usageError(
        verb === undefined
          ? "name a verb: create, list or revoke"
          : `unknown verb "${verb}"; use create, list or revoke`,
      );
  }
}

function machineOf(node: string | undefined, addresses: readonly string[]) {
  if (node !== undefined && !isNodeName(node)) throw usageError(`--node must be the name of a node, not "${node}"`);
  if (addresses.length > 0 && node === undefined) throw usageError("--address needs --node: the machine that has it");
  return { node, addresses: readAddresses(addresses, "--address") };
}

export interface TokenCommandParts {
  readonly kube: KubeClient;
  readonly io: Io;
  readonly clock: Pick<Clock, "now">;
  readonly random: Pick<Random, "bytes">;
  /** Address of the config server if the cluster does not give one. */
  readonly fallbackServer: string | undefined;
}

/** @returns the exit code. */
export async function tokenCommand(parts: TokenCommandParts, request: TokenRequest): Promise<number> {
  switch (request.verb) {
    case "create":
      return create(parts, request);
    case "list":
      return list(parts, request.json);
    case "revoke":
      return revoke(parts, request);
  }
}

function failed(io: Io, what: string): number {
  io.err(`mco token: ${what}\n`);
  return exitCodes.failed;
}

async function create(
  { kube, io, clock, random, fallbackServer }: TokenCommandParts,
  { pool, ttlMs, uses, node, addresses, pointer, server, json }: TokenRequest & { readonly verb: "create" },
): Promise<number> {
  const pools = (await kube.list(MachineConfigPool)).items.map(({ metadata }) => metadata.name).sort();
  if (!pools.includes(pool))
    return failed(
      io,
      `there is no pool "${pool}"; there ${pools.length === 0 ? "is none" : `are ${pools.join(", ")}`}`,
    );
  // Checks all prerequisites before it creates a token.
  const place = pointer ? await placeOf(kube, server, fallbackServer) : undefined;
  if (typeof place === "string") return failed(io, place);
  const { text, object } = newToken(random, {
    pool,
    expiresAt: clock.now() + ttlMs,
    maxUses: uses,
    addresses,
    ...(node === undefined ? {} : { node }),
  });
  await kube.create(ProvisioningToken, object, { owner: "mco-cli" });
  const config = place === undefined ? undefined : pointerConfig({ ...place, pool, token: text });
  if (json)
    io.out(
      `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "ProvisioningToken", id: object.metadata.name, token: text, pool, expiresAt: object.spec.expiresAt, maxUses: uses, ...(config === undefined ? {} : { pointer: config }) })}\n`,
    );
  else io.out(`${config === undefined ? text : JSON.stringify(config)}\n`);
  if (!json)
    io.err(
      `token ${object.metadata.name}: ${uses === 1 ? "one configuration" : `${uses} configurations`} of the pool ${pool}, until ${object.spec.expiresAt}; it is shown this once. mco token revoke ${object.metadata.name} takes it back\n`,
    );
  return exitCodes.ok;
}

/** The address of the config server and the authority to trust there, or the missing part. */
async function placeOf(
  kube: KubeClient,
  asked: string | undefined,
  fallback: string | undefined,
): Promise<{ readonly server: string; readonly authorities: string } | string> {
  const [controllerConfig, machineConfiguration, ca] = await Promise.all([
    kube.get(ControllerConfig, { name: objects.controllerConfig }),
    kube.get(MachineConfiguration, { name: objects.machineConfiguration }),
    kube.get(kubernetes.ConfigMap, { name: objects.configServerCa, namespace }),
  ]);
  const server =
    asked === undefined
      ? (configServerAuthority({ controllerConfig, machineConfiguration }) ??
        (fallback === undefined ? undefined : withPort(fallback)))
      : withPort(asked);
  if (server === undefined) return "the address of the config server is not known: give --server HOST[:PORT]";
  const authorities = ca?.data?.["ca-bundle.crt"] ?? "";
  if (authorities === "")
    return `the ConfigMap ${namespace}/${objects.configServerCa} with the config server's authority is not there yet: the operator makes it`;
  return { server, authorities };
}

async function list({ kube, io, clock }: TokenCommandParts, json: boolean): Promise<number> {
  const { items } = await kube.list(ProvisioningToken);
  const now = clock.now();
  const tokens = items
    .map(({ metadata, spec, status }) => ({
      id: metadata.name,
      pool: spec.pool,
      state: stateOf(spec, status?.uses ?? 0, now),
      expiresAt: spec.expiresAt,
      uses: status?.uses ?? 0,
      maxUses: spec.maxUses,
      lastUsedAt: status?.lastUsedAt,
      createdAt: metadata.creationTimestamp,
    }))
    .sort((a, b) => (a.pool === b.pool ? (a.id < b.id ? -1 : 1) : a.pool < b.pool ? -1 : 1));
  if (json) io.out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "ProvisioningTokens", tokens })}\n`);
  else if (tokens.length === 0) io.out("there is no token: mco token create --pool NAME makes one\n");
  else {
    const ago = (at: string | undefined) => (at === undefined ? "-" : durationText(Math.max(0, now - Date.parse(at))));
    const rows = [
      ["ID", "POOL", "STATE", "EXPIRES", "USES", "LAST-USED", "AGE"],
      ...tokens.map(({ id, pool, state, expiresAt, uses, maxUses, lastUsedAt, createdAt }) => [
        id,
        pool,
        state,
        expiresAt ?? "never",
        `${uses}/${maxUses ?? "any"}`,
        ago(lastUsedAt),
        ago(createdAt),
      ]),
    ];
    io.out(columnText(rows));
  }
  return exitCodes.ok;
}

function stateOf(
  { expiresAt, maxUses }: ProvisioningToken["spec"],
  uses: number,
  now: number,
): "Usable" | "Expired" | "UsedUp" {
  if (expiresAt !== undefined && !(Date.parse(expiresAt) > now)) return "Expired";
  return maxUses !== undefined && uses >= maxUses ? "UsedUp" : "Usable";
}

async function revoke(
  { kube, io }: TokenCommandParts,
  { ids, json }: TokenRequest & { readonly verb: "revoke" },
): Promise<number> {
  const unknown: string[] = [];
  for (const id of new Set(ids)) {
    // The client counts the deletion of an absent object as done.
    if ((await kube.get(ProvisioningToken, { name: id })) === undefined) unknown.push(id);
    else await kube.delete(ProvisioningToken, { name: id });
  }
  const revoked = [...new Set(ids)].filter((id) => !unknown.includes(id));
  if (json) io.out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "RevokedTokens", revoked, unknown })}\n`);
  else for (const id of revoked) io.out(`${id} gives nothing any more\n`);
  return unknown.length === 0
    ? exitCodes.ok
    : failed(io, `there is no token ${unknown.map((id) => `"${id}"`).join(", ")}`);
}
