import { posix } from "node:path";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../../../src/api/errors.ts";
import type { Random } from "../../../src/ports/random.ts";
import { mergeEtc } from "../../../src/host/etc-merge.ts";
import { isField, usableHash } from "../../../src/host/accounts.ts";
import {
  type ObservedDeployment,
  type Host,
  type HostEntry,
  type HostUser,
  type Link,
  type HostMachine,
  type OsAbilities,
  type Ownership,
  type PlainFile,
  isImages,
} from "../../../src/host/host.ts";
import { sameEntry } from "../../../src/host/same-entry.ts";
import { type UnitModelState, emptyUnitModel, unitModel } from "../../../src/host/unit-model.ts";

/** Files, links, and folders made on purpose; folders that only hold something are not listed. */
type Tree = Map<string, HostEntry>;

/**
 * What an OS image ships: /usr/etc (as paths of /etc) and the rest of /usr. A text stands for a file of root's that
 * everybody may read.
 */
export interface MemoryImage {
  readonly etc: Readonly<Record<string, string | PlainFile | Link>>;
  readonly usr: Readonly<Record<string, string | PlainFile | Link>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Something that really happened to the machine: a call that changes nothing is none. */
export interface HostEffect {
  readonly kind: "file" | "unit" | "fetched" | "staged" | "goesBack" | "asksForBoot" | "booted";
  /** The path, unit, image or boot id. */
  readonly what: string;
}

export interface MemoryHostOptions {
  readonly images: Readonly<Record<string, MemoryImage>>;
  /** The image of the machine's first deployment. */
  readonly image: string;
  readonly kernelArguments?: readonly string[];
  readonly users?: Readonly<Record<string, HostUser>>;
  readonly fips?: boolean;
  readonly can?: OsAbilities;
  readonly freeBytes?: number;
  readonly random: Random;
  /** Called when the machine is asked to reboot; the harness that plays the power button then calls `machine.boot`. */
  readonly onReboot: (because: string) => void;
  readonly onEffect?: (effect: HostEffect) => void;
  /** Links to folders, as every ostree machine has them: path of the link → where it leads. */
  readonly folderLinks?: Readonly<Record<string, string>>;
  /** What the unit that applies the image's content does when it is started. */
  readonly applyImageContent?: (host: Host) => Promise<void>;
}

export interface MemoryHost extends Host, HostMachine {
  /** Plays a person who chooses another system in the boot menu: one with its own /etc, as its image ships it. */
  bootOther(deployment: ObservedDeployment): Promise<{ readonly bootId: string }>;
  /** All files of the machine, for checks: path → text, or `→ target`. */
  snapshot(): ReadonlyMap<string, string>;
  /** What a service last read: path → digest. Empty when it never started. */
  seenBy(service: string): Readonly<Record<string, string>>;
  /** How often services were restarted and reloaded. */
  counts(service: string): { readonly restarts: number; readonly reloads: number };
  readonly reboots: readonly { readonly because: string }[];
}

interface MemoryDeployment extends ObservedDeployment {
  readonly etc: Tree;
}

const everything: OsAbilities = {
  images: true,
  kernelArguments: true,
  packages: true,
  kernelTypes: ["default", "realtime", "64k-pages"],
};
const root = { uid: 0, gid: 0 } as const;
const plainFolder: Ownership = { mode: 0o755, ...root };
/** Limits of the journal: lines of one boot, and boots. */
const mostBookLines = 10_000;
const mostBooks = 32;
/** Those that every machine has. */
const topFolders = new Set(["/etc", "/var", "/run", "/usr", "/usr/local", "/home", "/root", "/opt", "/srv", "/mnt"]);
const above = (path: string) => path.slice(0, path.lastIndexOf("/"));
const plain = (contents: string, mode = 0o644): PlainFile => ({
  kind: "file",
  contents: new TextEncoder().encode(contents),
  mode,
  ...root,
});
/** The same files, also by names that lead through links. */
const withLinks = (files: Host["files"], located: (path: string) => string): Host["files"] => ({
  ...files,
  read: (path, signal) => files.read(located(path), signal),
  write: (writes, signal) =>
    files.write(
      writes.map((write) => ({ ...write, path: located(write.path) })),
      signal,
    ),
  makeFolder: (path, own, signal) => files.makeFolder(located(path), own, signal),
  remove: (path, signal) => files.remove(located(path), signal),
  madeFolder: (path, signal) => files.madeFolder(located(path), signal),
  watch: (list, onChange) => files.watch(list.map(located), onChange),
});

const shipped = (file: string | PlainFile | Link): PlainFile | Link => (typeof file === "string" ? plain(file) : file);
const digest = (contents: Uint8Array) => bytesToHex(sha256(contents));

/**
 * A machine in memory, with ostree's semantics: staged deployments, a 3-way merge of /etc, /var that stays, /run that
 * does not.
 */
export function memoryHost(options: MemoryHostOptions): MemoryHost {
  const imageOf = (name: string): MemoryImage => {
    const image = options.images[name];
    if (image === undefined) throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image: name });
    return image;
  };
  const etcOf = (name: string): Tree =>
    new Map(Object.entries(imageOf(name).etc).map(([path, file]) => [path, shipped(file)]));
  const users = options.users ?? {
    root: { uid: 0, gid: 0, home: "/root" },
    core: { uid: 1000, gid: 1000, home: "/home/core" },
  };

  let booted: MemoryDeployment = {
    image: options.image,
    kernelArguments: options.kernelArguments ?? [],
    packages: [],
    kernelType: "default",
    etc: etcOf(options.image),
  };
  /** What the machine booted before this, with its own /etc. */
  let rollback: MemoryDeployment | undefined;
  let goesBack = false;
  let failure: string | undefined;
  let nextFailure: string | undefined;
  let staged: ObservedDeployment | undefined;
  let bootId = options.random.uuid();
  let run: Tree = new Map();
  const state: Tree = new Map();
  /** Folders that writes made: they are removed when they are empty again. */
  const made = new Set<string>();
  let broken: readonly string[] = [];
  const ledger = new Map<string, string>();
  /** Journal lines by boot, and how many of a boot are certainly on the disk. */
  const books = new Map<string, { lines: string[]; durable: number }>();
  const passwords = new Map<string, string>();
  let units: UnitModelState = emptyUnitModel();
  const watchers = new Set<{ readonly paths: ReadonlySet<string>; readonly onChange: (path: string) => void }>();
  const reboots: { because: string }[] = [];

  function treeOf(path: string): Tree {
    if (path.startsWith("/etc/")) return booted.etc;
    if (path.startsWith("/run/")) return run;
    return state;
  }

  function lookUp(path: string): HostEntry | undefined {
    if (isImages(path)) {
      const file = imageOf(booted.image).usr[path];
      return file === undefined ? undefined : shipped(file);
    }
    return treeOf(path).get(path);
  }

  const happened = (kind: HostEffect["kind"], what: string) => options.onEffect?.({ kind, what });

  function changed(path: string): void {
    happened("file", path);
    for (const { paths, onChange } of watchers) if (paths.has(path)) onChange(path);
  }

  const paths = () => [...booted.etc.keys(), ...state.keys(), ...run.keys(), ...Object.keys(imageOf(booted.image).usr)];

  const isAbove = (folder: string) => paths().some((path) => path.startsWith(`${folder}/`));

  function entryAt(path: string): HostEntry | undefined {
    return lookUp(path) ?? (isAbove(path) ? { kind: "folder", mode: 0o755, ...root } : undefined);
  }

  function beWritable(path: string): void {
    if (isImages(path)) throw new McoError("MCO_HOST_READ_ONLY", { path });
  }

  function makeFoldersAbove(path: string, own: Ownership): void {
    for (let folder = above(path); folder.length > 1; folder = above(folder)) {
      const is = entryAt(folder);
      if (is !== undefined && is.kind !== "folder")
        throw new McoError("MCO_HOST_COMMAND_FAILED", { path, problem: "ENOTDIR" });
    }
    const missing: string[] = [];
    for (
      let folder = above(path);
      folder.length > 1 && !topFolders.has(folder) && entryAt(folder) === undefined;
      folder = above(folder)
    )
      missing.unshift(folder);
    for (const folder of missing) {
      treeOf(folder).set(folder, { kind: "folder", mode: own.mode, uid: own.uid, gid: own.gid });
      made.add(folder);
    }
  }

  /** A path without links to folders. */
  function located(path: string): string {
    for (let end = path.indexOf("/", 1); end > 0; end = path.indexOf("/", end + 1)) {
      const folder = path.slice(0, end);
      const entry = lookUp(folder);
      const leads = options.folderLinks?.[folder] ?? (entry?.kind === "link" ? entry.target : undefined);
      if (leads !== undefined) return located(posix.resolve(above(folder), leads) + path.slice(end));
    }
    return path;
  }
  const files = withLinks(
    {
      read: async (path) => entryAt(path),
      async write(writes) {
        for (const { path } of writes) beWritable(path);
        for (const { path, entry, folder } of writes) {
          const before = entryAt(path);
          if (sameEntry(before, entry)) continue;
          if (before?.kind === "folder") throw new McoError("MCO_HOST_COMMAND_FAILED", { path, problem: "EISDIR" });
          makeFoldersAbove(path, folder ?? plainFolder);
          treeOf(path).set(path, entry.kind === "file" ? { ...entry, contents: entry.contents.slice() } : entry);
          changed(path);
        }
      },
      async makeFolder(path, own) {
        beWritable(path);
        const before = entryAt(path);
        if (before !== undefined && before.kind !== "folder")
          throw new McoError("MCO_HOST_COMMAND_FAILED", {
            path,
            problem: `a ${before.kind} is where the folder is to be`,
          });
        makeFoldersAbove(path, plainFolder);
        treeOf(path).set(path, { kind: "folder", mode: own.mode, uid: own.uid, gid: own.gid });
        changed(path);
      },
      async remove(path) {
        beWritable(path);
        const before = entryAt(path);
        if (before?.kind === "folder") throw new McoError("MCO_HOST_COMMAND_FAILED", { path, problem: "EISDIR" });
        treeOf(path).delete(path);
        for (let folder = above(path); made.has(folder) && !isAbove(folder); folder = above(folder)) {
          treeOf(folder).delete(folder);
          made.delete(folder);
        }
        if (before !== undefined) changed(path);
      },
      placeOf: async (folder) => above(located(`${folder}/x`)),
      async madeFolder(path) {
        if (!made.has(path)) return undefined;
        const below = paths().filter((one) => one.startsWith(`${path}/`));
        return [...new Set(below.map((one) => one.slice(path.length + 1).split("/")[0] ?? ""))];
      },
      freeBytes: async () => options.freeBytes,
      async vendor(path) {
        const file = imageOf(booted.image).etc[path];
        return file === undefined ? undefined : shipped(file);
      },
      watch(list, onChange) {
        const watcher = { paths: new Set(list), onChange };
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
    } satisfies Host["files"],
    located,
  );

  const applyImageContent = options.applyImageContent;
  const withoutEtc = ({ etc: _etc, ...deployment }: MemoryDeployment): ObservedDeployment => deployment;
  const model = unitModel({
    files,
    listTree: async (folder) =>
      paths()
        .filter((path) => path.startsWith(`${folder}/`))
        .sort(),
    digest,
    load: async () => structuredClone(units),
    store: async (next) => {
      for (const [name, { restarts, reloads }] of Object.entries(next.services)) {
        const before = units.services[name];
        if (restarts > (before?.restarts ?? 0) || reloads > (before?.reloads ?? 0)) happened("unit", name);
      }
      units = next;
    },
    broken: async () => broken,
    applyImageContent: applyImageContent === undefined ? undefined : () => applyImageContent(host),
  });

  const host: MemoryHost = {
    driver: "memory",
    files,
    units: model,
    os: {
      async status() {
        return {
          bootId,
          booted: withoutEtc(booted),
          staged,
          rollback: rollback === undefined ? undefined : withoutEtc(rollback),
          fips: options.fips,
          can: options.can ?? everything,
        };
      },
      async prefetch(image) {
        imageOf(image);
        happened("fetched", image);
      },
      labels: async (image) => imageOf(image).labels ?? {},
      async stage(deployment) {
        imageOf(deployment.image);
        staged = structuredClone(deployment);
        goesBack = false;
        happened("staged", deployment.image);
      },
      async bootPrevious() {
        if (rollback === undefined)
          throw new McoError("MCO_HOST_COMMAND_FAILED", { problem: "there is no deployment to go back to" });
        staged = undefined;
        goesBack = true;
        happened("goesBack", rollback.image);
      },
      installed: async (packages) => packages.filter((name) => booted.packages.includes(name)),
      finaliseFailure: async () => failure,
      async discardStaged() {
        staged = undefined;
      },
      async reboot(because) {
        reboots.push({ because });
        happened("asksForBoot", because);
        options.onReboot(because);
      },
    },
    users: {
      lookup: async (name) => users[name],
      group: async (name) => users[name]?.gid,
      passwordHash: async (name) => passwords.get(name),
      async setPasswordHash(name, hash) {
        if (hash === undefined) passwords.delete(name);
        else if (users[name] === undefined)
          throw new McoError("MCO_HOST_COMMAND_FAILED", { user: name, problem: "the machine has no such user" });
        else if (usableHash(hash) === undefined || !isField(hash))
          throw new McoError("MCO_HOST_COMMAND_FAILED", { user: name, problem: "this is no password hash" });
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
    books: {
      async append(boot, lines, { durable }) {
        const book = books.get(boot) ?? { lines: [], durable: 0 };
        books.set(boot, book);
        book.lines.push(...lines);
        if (durable) book.durable = book.lines.length;
        while (book.lines.length > mostBookLines) {
          book.lines.shift();
          book.durable = Math.max(0, book.durable - 1);
        }
        for (const oldest of [...books.keys()].slice(0, -mostBooks)) books.delete(oldest);
      },
      read: async () => [...books].map(([boot, { lines }]) => ({ boot, lines: [...lines] })),
    },
    async failToFinalise(reason) {
      nextFailure = reason;
    },
    async breakUnits(names) {
      broken = names;
    },
    async bootOther(deployment) {
      booted = { ...structuredClone(deployment), etc: etcOf(deployment.image) };
      return this.boot({ orderly: false });
    },
    async boot({ orderly }) {
      failure = orderly && staged !== undefined ? nextFailure : undefined;
      if (failure !== undefined) nextFailure = undefined;
      if (staged !== undefined && orderly && failure === undefined) {
        rollback = booted;
        const etc = mergeEtc(
          { oldDefaults: etcOf(booted.image), current: booted.etc, newDefaults: etcOf(staged.image) },
          sameEntry,
        );
        booted = { ...staged, etc: new Map(etc) };
      }
      if (goesBack && rollback !== undefined) [booted, rollback] = [rollback, booted];
      goesBack = false;
      staged = undefined;
      // After a power cut, the beginning of the unflushed lines remains.
      for (const book of orderly ? [] : books.values())
        book.lines = [
          ...book.lines.slice(0, book.durable),
          ...book.lines.slice(book.durable, book.durable + 1).map((line) => line.slice(0, line.length >> 1)),
        ];
      bootId = options.random.uuid();
      happened("booted", bootId);
      run = new Map();
      for (const folder of made) if (folder.startsWith("/run/")) made.delete(folder);
      await model.boot(new AbortController().signal);
      return { bootId };
    },
    snapshot() {
      const result = new Map<string, string>();
      for (const tree of [booted.etc, state])
        for (const [path, entry] of tree)
          if (entry.kind !== "folder")
            result.set(
              path,
              entry.kind === "link"
                ? `→ ${entry.target}`
                : `${entry.mode.toString(8)} ${entry.uid}:${entry.gid} ${new TextDecoder().decode(entry.contents)}`,
            );
      for (const [name, hash] of passwords) result.set(`shadow:${name}`, hash);
      return result;
    },
    seenBy: (service) => units.services[service]?.read ?? {},
    counts: (service) => ({
      restarts: units.services[service]?.restarts ?? 0,
      reloads: units.services[service]?.reloads ?? 0,
    }),
    get reboots() {
      return reboots;
    },
  };
  return host;
}
