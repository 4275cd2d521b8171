import { McoError } from "../api/errors.ts";
import { own } from "../api/schema/own.ts";
import { type ContentStep, appendedTo } from "../core/machine/content-gap.ts";
import type { ObservedContent, Originals } from "../core/machine/observed-content.ts";
import type { NodeConfig, WantedEntry } from "../core/config/node-config.ts";
import { decodeBase64 } from "../ignition/data-url.ts";
import type { Owner } from "../ignition/types.ts";
import type { Host, HostWrite, Ownership } from "../host/host.ts";

/** What content is made with. */
export interface ContentSite {
  readonly host: Host;
  readonly observed: Pick<ObservedContent, "users" | "groups">;
  readonly originals: Originals;
  readonly config: NodeConfig;
}

/** Brings one part of a machine's files, units and accounts to the desired state. */
export async function performContent(step: ContentStep, site: ContentSite, signal: AbortSignal): Promise<void> {
  const { host } = site;
  switch (step.do) {
    case "makeFolder":
      return makeFolder(step.path, site, signal);
    case "writeEntries":
      return writeEntries(step.paths, site, signal);
    case "restoreEntries":
      return restoreEntries(step.paths, site, signal);
    case "relinkUnits":
      return host.units.relink(step, signal);
    case "enableUnit":
      return host.units.enable(step.unit, signal);
    case "disableUnit":
      return host.units.disable(step.unit, signal);
    case "presetUnit":
      return host.units.preset(step.unit, signal);
    case "setPassword":
      return host.users.setPasswordHash(
        step.user,
        site.config.passwords.get(step.user) ?? own(site.originals.passwords, step.user) ?? undefined,
        signal,
      );
  }
}

async function makeFolder(path: string, { host, observed, config }: ContentSite, signal: AbortSignal): Promise<void> {
  const wanted = config.provisioningOnly.folders.get(path);
  if (wanted === undefined) throw new Error(`bug: the plan makes ${path}, which the target does not name`);
  await host.files.makeFolder(path, ownership(wanted, observed, path), signal);
}

async function writeEntries(paths: readonly string[], site: ContentSite, signal: AbortSignal): Promise<void> {
  const { host } = site;
  const writes: HostWrite[] = [];
  for (const path of paths) {
    const write = await entryFor(path, site, signal);
    if (write === "absent") await host.files.remove(path, signal);
    else writes.push(write);
  }
  if (writes.length > 0) await host.files.write(writes, signal);
}

/** The desired content of a path; `absent` if nothing may be there. */
async function entryFor(
  path: string,
  { host, observed, originals, config }: ContentSite,
  signal: AbortSignal,
): Promise<HostWrite | "absent"> {
  const wanted: WantedEntry | undefined = config.entries.get(path);
  switch (wanted?.kind) {
    case "absent":
      return "absent";
    case "link":
      return { path, entry: { kind: "link", target: wanted.target } };
    case "file":
      return {
        path,
        entry: { kind: "file", contents: wanted.contents, ...ownership(wanted, observed, path) },
        ...(wanted.folder === undefined ? {} : { folder: ownership(wanted.folder, observed, path) }),
      };
    case undefined: {
      const link = config.provisioningOnly.links.get(path);
      if (link !== undefined) return { path, entry: { kind: "link", target: link } };
      const more = config.provisioningOnly.appends.get(path);
      const whole = more === undefined ? undefined : appendedTo(originals, more.contents, path);
      if (more === undefined || whole === undefined)
        throw new Error(`bug: the plan writes ${path}, which the target does not name`);
      const is = await host.files.read(path, signal);
      return {
        path,
        entry: {
          kind: "file",
          contents: whole,
          ...ownership({ ...more, mode: more.mode ?? (is?.kind === "file" ? is.mode : 0o644) }, observed, path),
        },
      };
    }
  }
}

function ownership(
  { mode, user, group }: { readonly mode: number; readonly user: Owner; readonly group: Owner },
  { users, groups }: ContentSite["observed"],
  path: string,
): Ownership {
  return { mode, uid: idOf(user, users, path), gid: idOf(group, groups, path) };
}

function idOf(owner: Owner, ids: ReadonlyMap<string, number>, path: string): number {
  if (owner.id !== undefined || owner.name === undefined) return owner.id ?? 0;
  const id = ids.get(owner.name);
  if (id === undefined) throw new McoError("MCO_OWNER_UNKNOWN", { path, owner: owner.name });
  return id;
}

async function restoreEntries(
  paths: readonly string[],
  { host, originals }: ContentSite,
  signal: AbortSignal,
): Promise<void> {
  const writes: HostWrite[] = [];
  for (const path of paths) {
    const original = originals.paths[path];
    if (original === null || original === undefined) await host.files.remove(path, signal);
    else
      writes.push({
        path,
        entry:
          original.kind === "link"
            ? original
            : {
                kind: "file",
                contents: decodeBase64(original.contents),
                mode: original.mode,
                uid: original.uid,
                gid: original.gid,
              },
      });
  }
  if (writes.length > 0) await host.files.write(writes, signal);
}
