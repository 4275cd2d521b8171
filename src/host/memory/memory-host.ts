import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../../api/errors.ts";
import type { Random } from "../../ports/random.ts";
import { mergeEtc } from "../etc-merge.ts";
import type { Deployment, Host, HostEntry, HostUser, Link, Machine, PlainFile } from "../host.ts";
import { type UnitModelState, emptyUnitModel, unitModel } from "../unit-model.ts";

type Tree = Map<string, PlainFile | Link>;

/** What an OS image ships: /usr/etc (as paths of /etc) and the rest of /usr. */
export interface MemoryImage {
  readonly etc: Readonly<Record<string, string>>;
  readonly usr: Readonly<Record<string, string>>;
}

export interface MemoryHostOptions {
  readonly images: Readonly<Record<string, MemoryImage>>;
  /** The image that the machine is born with. */
  readonly image: string;
  readonly kernelArguments?: readonly string[];
  readonly users?: Readonly<Record<string, HostUser>>;
  readonly random: Random;
  /** Called when the machine is asked to reboot; whoever plays the power button calls `machine.boot` then. */
  readonly onReboot: (because: string) => void;
}

export interface MemoryHost extends Host, Machine {
  /** All files of the machine, for checks: path → text, or `→ target`. */
  snapshot(): ReadonlyMap<string, string>;
  /** What a service last read: path → digest. Empty when it never started. */
  seenBy(service: string): Readonly<Record<string, string>>;
  /** How often services were restarted and reloaded. */
  counts(service: string): { readonly restarts: number; readonly reloads: number };
  readonly reboots: readonly { readonly because: string }[];
}

interface MemoryDeployment extends Deployment {
  readonly etc: Tree;
}

const root = { uid: 0, gid: 0 } as const;
const plain = (contents: string, mode = 0o644): PlainFile => ({ kind: "file", contents: new TextEncoder().encode(contents), mode, ...root });
const digest = (contents: Uint8Array) => bytesToHex(sha256(contents));

export function sameEntry(a: HostEntry, b: HostEntry): boolean {
  if (a.kind === "link" || b.kind === "link") return a.kind === "link" && b.kind === "link" && a.target === b.target;
  if (a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid) return false;
  if (a.kind === "folder" || b.kind === "folder") return a.kind === b.kind;
  return a.contents.length === b.contents.length && a.contents.every((byte, index) => byte === b.contents[index]);
}

/** A machine in memory, with ostree's semantics: staged deployments, a 3-way merge of /etc, /var that stays, /run that does not. */
export function memoryHost(options: MemoryHostOptions): MemoryHost {
  const imageOf = (name: string): MemoryImage => {
    const image = options.images[name];
    if (image === undefined) throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image: name });
    return image;
  };
  const etcOf = (name: string): Tree => new Map(Object.entries(imageOf(name).etc).map(([path, contents]) => [path, plain(contents)]));
  const users = options.users ?? { root: { uid: 0, gid: 0, home: "/root" }, core: { uid: 1000, gid: 1000, home: "/home/core" } };

  let booted: MemoryDeployment = { image: options.image, kernelArguments: options.kernelArguments ?? [], etc: etcOf(options.image) };
  let staged: Deployment | undefined;
  let bootId = options.random.uuid();
  let run: Tree = new Map();
  const state: Tree = new Map();
  const ledger = new Map<string, string>();
  const passwords = new Map<string, string>();
  let units: UnitModelState = emptyUnitModel();
  const watchers = new Set<{ readonly paths: ReadonlySet<string>; readonly onChange: (path: string) => void }>();
  const reboots: { because: string }[] = [];

  function treeOf(path: string): Tree {
    if (path.startsWith("/etc/")) return booted.etc;
    if (path.startsWith("/run/")) return run;
    return state;
  }

  function lookUp(path: string): PlainFile | Link | undefined {
    if (path.startsWith("/usr/")) {
      const contents = imageOf(booted.image).usr[path];
      return contents === undefined ? undefined : plain(contents);
    }
    return treeOf(path).get(path);
  }

  function changed(path: string): void {
    for (const { paths, onChange } of watchers) if (paths.has(path)) onChange(path);
  }

  const paths = () => [...booted.etc.keys(), ...state.keys(), ...run.keys(), ...Object.keys(imageOf(booted.image).usr)];

  const files: Host["files"] = {
    async read(path) {
      const entry = lookUp(path);
      if (entry !== undefined) return entry;
      return paths().some((other) => other.startsWith(`${path}/`)) ? { kind: "folder", mode: 0o755, ...root } : undefined;
    },
    async write(path, entry) {
      if (path.startsWith("/usr/")) throw new McoError("MCO_HOST_READ_ONLY", { path });
      const before = lookUp(path);
      if (before !== undefined && sameEntry(before, entry)) return;
      treeOf(path).set(path, entry.kind === "file" ? { ...entry, contents: entry.contents.slice() } : entry);
      changed(path);
    },
    async remove(path) {
      if (treeOf(path).delete(path)) changed(path);
    },
    async vendor(path) {
      const contents = imageOf(booted.image).etc[path];
      return contents === undefined ? undefined : plain(contents);
    },
    watch(list, onChange) {
      const watcher = { paths: new Set(list), onChange };
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };

  const model = unitModel({
    files,
    listTree: async (folder) => paths().filter((path) => path.startsWith(`${folder}/`)).sort(),
    digest,
    load: async () => structuredClone(units),
    store: async (next) => {
      units = next;
    },
  });

  return {
    driver: "memory",
    files,
    units: model,
    os: {
      async status() {
        return { bootId, booted: { image: booted.image, kernelArguments: booted.kernelArguments }, staged };
      },
      async stage(deployment) {
        imageOf(deployment.image);
        staged = { image: deployment.image, kernelArguments: [...deployment.kernelArguments] };
      },
      async discardStaged() {
        staged = undefined;
      },
      async reboot(because) {
        reboots.push({ because });
        options.onReboot(because);
      },
    },
    users: {
      lookup: async (name) => users[name],
      group: async (name) => users[name]?.gid,
      passwordHash: async (name) => passwords.get(name),
      async setPasswordHash(name, hash) {
        if (hash === undefined) passwords.delete(name);
        else passwords.set(name, hash);
      },
    },
    ledger: {
      read: async (name) => ledger.get(name),
      async write(name, contents) {
        ledger.set(name, contents);
      },
      async remove(name) {
        ledger.delete(name);
      },
    },
    async boot({ orderly }) {
      if (staged !== undefined && orderly) {
        const etc = mergeEtc({ oldDefaults: etcOf(booted.image), current: booted.etc, newDefaults: etcOf(staged.image) }, sameEntry);
        booted = { ...staged, etc: new Map(etc) };
      }
      staged = undefined;
      bootId = options.random.uuid();
      run = new Map();
      await model.boot(new AbortController().signal);
      return { bootId };
    },
    snapshot() {
      const result = new Map<string, string>();
      for (const tree of [booted.etc, state]) for (const [path, entry] of tree) result.set(path, entry.kind === "link" ? `→ ${entry.target}` : `${entry.mode.toString(8)} ${entry.uid}:${entry.gid} ${new TextDecoder().decode(entry.contents)}`);
      for (const [name, hash] of passwords) result.set(`shadow:${name}`, hash);
      return result;
    },
    seenBy: (service) => units.services[service]?.read ?? {},
    counts: (service) => ({ restarts: units.services[service]?.restarts ?? 0, reloads: units.services[service]?.reloads ?? 0 }),
    get reboots() {
      return reboots;
    },
  };
}
