import { pushAll } from "../../api/schema/push-all.ts";
import { McoError } from "../../api/errors.ts";
import { hostPaths } from "../../api/names.ts";
import { applyAccounts } from "../../core/machine/ignition-accounts.ts";
import { type IgnitionStep, ignitionSteps, ownersNamed } from "../../core/machine/ignition-steps.ts";
import { type IgnitionConfig, type Node, type Resource, decodeContents } from "../../ignition/index.ts";
import type { Clock } from "../../ports/clock.ts";
import { accountLine } from "../accounts.ts";
import type { Ownership, PlainFile } from "../host.ts";
import type { NewRoot } from "./new-root.ts";

export interface ApplyConfigOptions {
  readonly root: NewRoot;
  readonly clock: Clock;
  /** The boot that does it, for the report that it leaves. */
  readonly bootId: string;
}

const resultPath = "/etc/.ignition-result.json";
const skeleton = "/etc/skel";
const rootOwned = { uid: 0, gid: 0 } as const;
const plainFolder: Ownership = { mode: 0o755, ...rootOwned };
const fileMode = 0o644;
const dayMs = 86_400_000;
const maxBytes = 32 * 1024 * 1024;

/**
 * Makes a root file system what a configuration says, as Ignition's stage `files` does (coreos/ignition
 * internal/exec/stages/files, main). `config`: one that refers to nothing any more. Once: what is interrupted is begun
 * again on a root that is as it was before.
 *
 * @throws McoError `MCO_IGNITION_REFUSED` where the machine cannot be made so.
 */
export async function applyIgnition(
  config: IgnitionConfig,
  options: ApplyConfigOptions,
  signal: AbortSignal,
): Promise<void> {
  const { root } = options;
  const resolved = new Map<string, string>();
  for (const path of pathsIn(config)) resolved.set(path, await root.resolve(path));
  const planned = ignitionSteps(config, (path) => resolved.get(path) ?? path);
  if (planned.verdict === "refused") throw refusal(planned.reason);
  const presets: string[] = [];
  for (const step of planned.steps) {
    signal.throwIfAborted();
    pushAll(presets, await perform(step, options, signal));
  }
  if (presets.length > 0)
    await append(hostPaths.ignitionPreset, presets.map((line) => `${line}\n`).join(""), root, signal);
  await leaveReport(options, signal);
}

/** Of what was fetched everything is at hand, and was verified. */
function bytesOf(resource: Resource): Uint8Array {
  const contents = decodeContents(resource, { maxBytes });
  if (contents.verdict === "refused") throw refusal(contents.reason);
  return contents.bytes;
}

const refusal = (reason: string) => new McoError("MCO_IGNITION_REFUSED", { reason });

function pathsIn({ storage = {}, systemd = {} }: IgnitionConfig): readonly string[] {
  const { files = [], directories = [], links = [] } = storage;
  return [
    ...[...files, ...directories, ...links].map(({ path }) => path),
    ...(systemd.units ?? []).flatMap(({ name, dropins = [] }) => [
      `/etc/systemd/system/${name}`,
      ...dropins.map((dropin) => `/etc/systemd/system/${name}.d/${dropin.name}`),
    ]),
  ];
}

/** @returns lines for the preset file, which is written last and once. */
async function perform(
  step: IgnitionStep,
  options: ApplyConfigOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { root } = options;
  switch (step.do) {
    case "accounts":
      await makeAccounts(step.passwd, options, signal);
      return [];
    case "folder": {
      if (step.node.overwrite === true) await root.removeTree(step.path);
      const there = await root.files.read(step.path, signal);
      if (there !== undefined && there.kind !== "folder")
        throw refusal(`a ${there.kind} is where the folder ${step.path} is to be, and overwrite is false`);
      await root.files.makeFolder(
        step.path,
        { mode: step.node.mode ?? there?.mode ?? plainFolder.mode, ...(await ownerOf(step.node, there, root, signal)) },
        signal,
      );
      return [];
    }
    case "file":
      await makeFile(step, options, signal);
      return [];
    case "link":
      await makeLink(step, root, signal);
      return [];
    case "unitFile":
      await root.files.write(
        [
          {
            path: step.path,
            entry: { kind: "file", contents: new TextEncoder().encode(step.contents), mode: fileMode, ...rootOwned },
          },
        ],
        signal,
      );
      return [];
    case "mask":
      await root.removeTree(step.path);
      await root.files.write([{ path: step.path, entry: { kind: "link", target: "/dev/null" } }], signal);
      return [];
    case "unmask": {
      const there = await root.files.read(step.path, signal);
      if (there?.kind === "link" && there.target === "/dev/null") await root.removeTree(step.path);
      return [];
    }
    case "preset": {
      if (step.disables === undefined) return [step.line];
      const name = step.disables;
      // A unit that nothing starts needs no word against it.
      if (name.includes(" ") || (await root.units.state([name], signal)).get(name)?.enablement !== "enabled") return [];
      await root.units.disable(name, signal);
      return [step.line];
    }
  }
}

async function makeFile(
  { path, node }: IgnitionStep & { readonly do: "file" },
  { root }: ApplyConfigOptions,
  signal: AbortSignal,
): Promise<void> {
  if (node.overwrite === true) await root.removeTree(path);
  const there = await root.files.read(path, signal);
  const hasContents = node.contents?.source !== undefined;
  if (there !== undefined && there.kind !== "file")
    throw refusal(`a ${there.kind} is where the file ${path} is to be, and overwrite is false`);
  if (there !== undefined && hasContents) throw refusal(`the file ${path} is there already, and overwrite is false`);
  const parts = [
    there?.contents ?? new Uint8Array(),
    ...(hasContents && node.contents !== undefined ? [bytesOf(node.contents)] : []),
    ...(node.append ?? []).map(bytesOf),
  ];
  const entry: PlainFile = {
    kind: "file",
    contents: joined(parts),
    mode: node.mode ?? there?.mode ?? fileMode,
    ...(await ownerOf(node, there, root, signal)),
  };
  await root.files.write([{ path, entry }], signal);
}

async function makeLink(
  { path, node }: IgnitionStep & { readonly do: "link" },
  root: NewRoot,
  signal: AbortSignal,
): Promise<void> {
  const target = node.target ?? "";
  if (node.overwrite === true) await root.removeTree(path);
  if (node.hard === true) return root.hardLink(path, target);
  const there = await root.files.read(path, signal);
  if (there === undefined) return root.files.write([{ path, entry: { kind: "link", target } }], signal);
  if (there.kind !== "link")
    throw refusal(`a ${there.kind} is where the link ${path} is to be, and overwrite is false`);
  if (there.target !== target)
    throw refusal(`the link ${path} leads to ${there.target} already, and overwrite is false`);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The owner of a node: the one it names, else the owner of the existing entry, else root. */
async function ownerOf(
  node: Node,
  there: Partial<Ownership> | undefined,
  root: NewRoot,
  signal: AbortSignal,
): Promise<{ readonly uid: number; readonly gid: number }> {
  const named = ownersNamed(node);
  const byName = async (database: "passwd" | "group", name: string): Promise<number> => {
    const fields =
      accountLine(await textAt(`/etc/${database}`, root, signal), name) ??
      accountLine(await textAt(`/usr/lib/${database}`, root, signal), name);
    if (fields?.[2] === undefined)
      throw refusal(
        `${node.path} belongs to the ${database === "passwd" ? "user" : "group"} ${name}, which the machine does not have`,
      );
    return Number(fields[2]);
  };
  return {
    uid: node.user?.id ?? (named.user === undefined ? (there?.uid ?? 0) : await byName("passwd", named.user)),
    gid: node.group?.id ?? (named.group === undefined ? (there?.gid ?? 0) : await byName("group", named.group)),
  };
}

async function textAt(path: string, root: NewRoot, signal: AbortSignal): Promise<string> {
  const entry = await root.files.read(path, signal);
  return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : "";
}

async function append(path: string, text: string, root: NewRoot, signal: AbortSignal): Promise<void> {
  const there = await root.files.read(path, signal);
  const before = there?.kind === "file" ? there : undefined;
  await root.files.write(
    [
      {
        path,
        entry: {
          kind: "file",
          mode: fileMode,
          ...rootOwned,
          ...before,
          contents: new TextEncoder().encode(new TextDecoder().decode(before?.contents) + text),
        },
      },
    ],
    signal,
  );
}

async function makeAccounts(
  passwd: NonNullable<IgnitionConfig["passwd"]>,
  { root, clock }: ApplyConfigOptions,
  signal: AbortSignal,
): Promise<void> {
  const names = ["passwd", "shadow", "group", "gshadow"] as const;
  const texts = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await textAt(`/etc/${name}`, root, signal)])),
  ) as Record<(typeof names)[number], string>;
  const applied = applyAccounts(
    { ...texts, loginDefs: await textAt("/etc/login.defs", root, signal) },
    passwd,
    Math.floor(clock.now() / dayMs),
  );
  if (applied.verdict === "refused") throw refusal(applied.reason);
  for (const name of names) {
    const path = `/etc/${name}`;
    const there = await root.files.read(path, signal);
    const secret = name === "shadow" || name === "gshadow";
    // A system without a group shadow file needs none.
    if (applied.files[name] === texts[name] || (name === "gshadow" && there === undefined)) continue;
    await root.files.write(
      [
        {
          path,
          entry: {
            kind: "file",
            mode: secret ? 0o600 : fileMode,
            ...rootOwned,
            ...(there?.kind === "file" ? there : {}),
            contents: new TextEncoder().encode(applied.files[name]),
          },
        },
      ],
      signal,
    );
  }
  for (const { home, uid, gid, makeMode, keys } of applied.homes) {
    if (makeMode !== undefined && (await root.files.read(home, signal)) === undefined) {
      await root.files.makeFolder(home, { mode: makeMode, uid, gid }, signal);
      await copySkeleton(skeleton, home, { uid, gid }, root, signal);
    }
    if (keys.length === 0) continue;
    const own = { uid, gid };
    await ensureKeyFolders(home, own, root, signal);
    await root.files.write(
      [
        {
          path: `${home}/.ssh/authorized_keys.d/ignition`,
          entry: {
            kind: "file",
            contents: new TextEncoder().encode(keys.join("\n").replace(/\n?$/, "\n")),
            mode: 0o600,
            ...own,
          },
        },
      ],
      signal,
    );
  }
}

async function ensureKeyFolders(
  home: string,
  own: { readonly uid: number; readonly gid: number },
  root: NewRoot,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of [`${home}/.ssh`, `${home}/.ssh/authorized_keys.d`])
    if ((await root.files.read(folder, signal)) === undefined)
      await root.files.makeFolder(folder, { mode: 0o700, ...own }, signal);
}

/** What a new home begins with: useradd(8), SKEL. */
async function copySkeleton(
  from: string,
  to: string,
  own: { readonly uid: number; readonly gid: number },
  root: NewRoot,
  signal: AbortSignal,
): Promise<void> {
  for (const name of await root.list(from)) {
    const entry = await root.files.read(`${from}/${name}`, signal);
    if (entry === undefined) continue;
    if (entry.kind === "folder") {
      await root.files.makeFolder(`${to}/${name}`, { mode: entry.mode, ...own }, signal);
      await copySkeleton(`${from}/${name}`, `${to}/${name}`, own, root, signal);
    } else
      await root.files.write(
        [{ path: `${to}/${name}`, entry: entry.kind === "file" ? { ...entry, ...own } : entry }],
        signal,
      );
  }
}

async function leaveReport({ root, clock, bootId }: ApplyConfigOptions, signal: AbortSignal): Promise<void> {
  const report = {
    provisioningBootID: bootId,
    provisioningDate: `${new Date(clock.now()).toISOString().slice(0, 19)}Z`,
    userConfigProvided: true,
  };
  await root.files.write(
    [
      {
        path: resultPath,
        entry: {
          kind: "file",
          contents: new TextEncoder().encode(`${JSON.stringify(report, undefined, 2)}\n`),
          mode: 0o600,
          ...rootOwned,
        },
      },
    ],
    signal,
  );
}
