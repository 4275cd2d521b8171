import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { hostPaths } from "../api/names.ts";
import type { NodeConfig } from "../core/node-config.ts";
import type { ObservedEntry, ObservedNode, Originals } from "../core/plan-node.ts";
import type { Host } from "../host/host.ts";
import type { MachineDocuments } from "./machine-documents.ts";

export const noOriginals = (kernelArguments: readonly string[]): Originals => ({ paths: {}, enablement: {}, passwords: {}, kernelArguments, ownKernelArguments: [] });

export const digestOf = (contents: Uint8Array): string => bytesToHex(sha256(contents));

export async function observeEntry(host: Host, path: string, signal: AbortSignal): Promise<ObservedEntry | undefined> {
  const entry = await host.files.read(path, signal);
  if (entry === undefined || entry.kind === "link") return entry;
  if (entry.kind === "folder") return { kind: "folder" };
  return { kind: "file", digest: digestOf(entry.contents), mode: entry.mode, uid: entry.uid, gid: entry.gid };
}

/** Reads what the machine is, as far as the previous configuration, the target and what was managed before name it. */
export async function observeHost(
  host: Host,
  documents: MachineDocuments,
  known: { readonly previous: NodeConfig | undefined; readonly target: NodeConfig; readonly onlyControlPlane: boolean },
  signal: AbortSignal,
): Promise<ObservedNode> {
  const { previous, target } = known;
  const status = await host.os.status(signal);
  const originals = documents.originals ?? noOriginals(status.booted.kernelArguments);

  const paths = new Set([...(previous?.entries.keys() ?? []), ...target.entries.keys(), ...Object.keys(originals.paths)]);
  const entries = new Map<string, ObservedEntry>();
  for (const path of paths) {
    const entry = await observeEntry(host, path, signal);
    if (entry !== undefined) entries.set(path, entry);
  }

  const units = new Set([...(previous?.enablement.keys() ?? []), ...target.enablement.keys(), ...Object.keys(originals.enablement)]);
  const states = units.size === 0 ? new Map<string, { enablement: string }>() : await host.units.state([...units], signal);

  const passwords = new Map<string, string>();
  for (const user of new Set([...(previous?.passwords.keys() ?? []), ...target.passwords.keys(), ...Object.keys(originals.passwords)])) {
    const hash = await host.users.passwordHash(user, signal);
    if (hash !== undefined) passwords.set(user, hash);
  }

  const users = new Map<string, number>();
  const groups = new Map<string, number>();
  for (const wanted of [...target.entries.values(), ...(previous?.entries.values() ?? [])]) {
    if (wanted.kind !== "file") continue;
    for (const owner of [wanted.user, wanted.folder?.user]) {
      if (owner?.name === undefined || users.has(owner.name)) continue;
      const user = await host.users.lookup(owner.name, signal);
      if (user !== undefined) users.set(owner.name, user.uid);
    }
    for (const owner of [wanted.group, wanted.folder?.group]) {
      if (owner?.name === undefined || groups.has(owner.name)) continue;
      const gid = await host.users.group(owner.name, signal);
      if (gid !== undefined) groups.set(owner.name, gid);
    }
  }

  return {
    bootId: status.bootId,
    booted: status.booted,
    staged: status.staged,
    entries,
    enablement: new Map([...states].map(([name, { enablement }]) => [name, enablement])),
    passwords,
    users,
    groups,
    originals,
    ledger: documents.ledger,
    previous,
    forced: (await host.files.read(hostPaths.force, signal)) !== undefined,
    onlyControlPlane: known.onlyControlPlane,
  };
}
