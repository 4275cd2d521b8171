import { createHash } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import * as fs from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import type { Disk } from "../../src/host/directory/disk.ts";
import type { Random } from "../../src/ports/random.ts";

interface Attributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

interface FileNode {
  readonly kind: "file";
  contents: Uint8Array;
  /** How many bytes of the contents are certainly on the disk, once the file was flushed. */
  flushedBytes: number;
  attributes: Attributes;
  /** Its state on the disk: `undefined` until the first flush. */
  flushed: Attributes | undefined;
}

interface LinkNode {
  readonly kind: "link";
  readonly target: string;
}

interface FolderNode {
  readonly kind: "folder";
  attributes: Attributes;
  flushed: Attributes;
  /** The names as a process sees them. */
  readonly now: Map<string, Entry>;
  /** The names that are certainly on the disk. */
  readonly durable: Map<string, Entry>;
  /** Changes of names since the last flush: each may be on the disk or not, independently of the others. */
  pending: { readonly from?: string; readonly to?: string; readonly entry?: Entry }[];
}

type Entry = FileNode | LinkNode | FolderNode;

/** One call of {@link Disk} with what a replay needs. Paths are relative to the machine's folder. */
export type DiskOperation =
  | {
      readonly do: "create";
      readonly path: string;
      readonly contents: Uint8Array;
      readonly own: Attributes | undefined;
    }
  | { readonly do: "append"; readonly path: string; readonly contents: Uint8Array }
  | { readonly do: "symlink"; readonly path: string; readonly target: string }
  | { readonly do: "chmod"; readonly path: string; readonly mode: number }
  | { readonly do: "chown"; readonly path: string; readonly uid: number; readonly gid: number }
  | { readonly do: "rename"; readonly path: string; readonly to: string }
  | { readonly do: "mkdir"; readonly path: string; readonly own: Attributes | undefined }
  | { readonly do: "sync" | "unlink" | "rmdir"; readonly path: string };

/** Carries out every call except flushes at once, and reports each call when it is done. */
export function recordingDisk(real: Disk, directory: () => string, record: (operation: DiskOperation) => void): Disk {
  // By the path without links, so that each file has one path.
  const at = async (path: string) =>
    relative(await fs.realpath(directory()), join(await fs.realpath(dirname(path)), basename(path)));
  const recordGift = async (path: string, { mode, uid, gid }: Attributes) => {
    record({ do: "chown", path: await at(path), uid, gid });
    record({ do: "chmod", path: await at(path), mode });
  };
  return {
    create: async (path, contents, own) =>
      real
        .create(path, contents, own)
        .then(async () => record({ do: "create", path: await at(path), contents: contents.slice(), own })),
    append: async (path, contents) =>
      real
        .append(path, contents)
        .then(async () => record({ do: "append", path: await at(path), contents: contents.slice() })),
    symlink: async (target, path) =>
      real.symlink(target, path).then(async () => record({ do: "symlink", path: await at(path), target })),
    async mkdir(path, own, inside) {
      if (inside === undefined) {
        await real.mkdir(path, own);
        return record({ do: "mkdir", path: await at(path), own });
      }
      await real.mkdir(path, own, async (held) => {
        record({ do: "mkdir", path: await at(path), own: undefined });
        await inside(held);
      });
      if (own !== undefined) await recordGift(path, own);
    },
    give: (path, own, uid) => real.give(path, own, uid).then(() => recordGift(path, own)),
    chmod: async (path, mode) =>
      real.chmod(path, mode).then(async () => record({ do: "chmod", path: await at(path), mode })),
    chown: async (path, uid, gid) =>
      real.chown(path, uid, gid).then(async () => record({ do: "chown", path: await at(path), uid, gid })),
    async sync(path) {
      await fs.lstat(path);
      record({ do: "sync", path: await at(path) });
    },
    rename: async (from, to) =>
      real.rename(from, to).then(async () => record({ do: "rename", path: await at(from), to: await at(to) })),
    unlink: async (path) => real.unlink(path).then(async () => record({ do: "unlink", path: await at(path) })),
    rmdir: async (path) => real.rmdir(path).then(async () => record({ do: "rmdir", path: await at(path) })),
  };
}

/** A disk as a power cut may leave it: everything below the machine's folder by path. */
export type DiskState = ReadonlyMap<
  string,
  | { readonly kind: "file"; readonly contents: Uint8Array; readonly attributes: Attributes }
  | { readonly kind: "link"; readonly target: string }
  | { readonly kind: "folder"; readonly attributes: Attributes }
>;

/** One uncertain fact, with its possible outcomes. */
type Choose = (ways: number) => number;

/**
 * What a disk may hold after a power cut, by the rules of POSIX, not by the favours of one file system: contents and
 * attributes of a file are certain once it was flushed, names once their folder was; anything else is there, or not, or
 * in part.
 */
export class DiskModel {
  readonly #root: FolderNode;

  private constructor(root: FolderNode) {
    this.#root = root;
  }

  /** Everything that lies below a folder now counts as flushed. */
  static async of(directory: string): Promise<DiskModel> {
    const read = async (path: string): Promise<Entry> => {
      const stat = await fs.lstat(path);
      const attributes = { mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid };
      if (stat.isSymbolicLink()) return { kind: "link", target: await fs.readlink(path) };
      if (stat.isFile())
        return {
          kind: "file",
          contents: await fs.readFile(path),
          flushedBytes: stat.size,
          attributes,
          flushed: attributes,
        };
      const entries = await Promise.all(
        (await fs.readdir(path)).map(async (name) => [name, await read(join(path, name))] as const),
      );
      return {
        kind: "folder",
        attributes,
        flushed: attributes,
        now: new Map(entries),
        durable: new Map(entries),
        pending: [],
      };
    };
    const root = await read(directory);
    if (root.kind !== "folder") throw new Error(`${directory} is no folder`);
    return new DiskModel(root);
  }

  #folder(path: string): FolderNode {
    const entry = this.#entry(path);
    if (entry.kind !== "folder") throw new Error(`bug: ${path} is no folder`);
    return entry;
  }

  #entry(path: string): Entry {
    let here: Entry = this.#root;
    for (const part of path.split("/").filter((word) => word !== "" && word !== ".")) {
      const next: Entry | undefined = here.kind === "folder" ? here.now.get(part) : undefined;
      if (next === undefined) throw new Error(`bug: the record knows no ${path}`);
      here = next;
    }
    return here;
  }

  #change(path: string, entry: Entry | undefined): void {
    const folder = this.#folder(dirname(path));
    const name = nameOf(path);
    if (entry === undefined) {
      folder.now.delete(name);
      folder.pending.push({ from: name });
    } else {
      folder.now.set(name, entry);
      folder.pending.push({ to: name, entry });
    }
  }

  apply(operation: DiskOperation): void {
    const ours = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
    const given = (own: Attributes | undefined, mode: number): Attributes => {
      if (own === undefined) return { mode, ...ours };
      return { mode: own.mode, uid: own.uid, gid: own.gid };
    };
    const { path } = operation;
    switch (operation.do) {
      case "create":
        return this.#change(path, {
          kind: "file",
          contents: operation.contents,
          flushedBytes: 0,
          attributes: given(operation.own, 0o600),
          flushed: undefined,
        });
      case "append": {
        const entry = this.#entry(path);
        if (entry.kind !== "file") throw new Error(`bug: ${path} is no file`);
        entry.contents = Buffer.concat([entry.contents, operation.contents]);
        return;
      }
      case "symlink":
        return this.#change(path, { kind: "link", target: operation.target });
      case "mkdir": {
        const attributes = given(operation.own, 0o700);
        return this.#change(path, {
          kind: "folder",
          attributes,
          flushed: attributes,
          now: new Map(),
          durable: new Map(),
          pending: [],
        });
      }
      case "chmod":
      case "chown": {
        const entry = this.#entry(path);
        if (entry.kind !== "link")
          entry.attributes =
            operation.do === "chmod"
              ? { ...entry.attributes, mode: operation.mode }
              : { ...entry.attributes, uid: operation.uid, gid: operation.gid };
        return;
      }
      case "sync": {
        const entry = this.#entry(path);
        if (entry.kind === "link") return;
        entry.flushed = entry.attributes;
        if (entry.kind === "file") entry.flushedBytes = entry.contents.length;
        else {
          entry.durable.clear();
          for (const [name, there] of entry.now) entry.durable.set(name, there);
          entry.pending = [];
        }
        return;
      }
      case "rename": {
        const [folder, other] = [this.#folder(dirname(path)), this.#folder(dirname(operation.to))];
        const entry = this.#entry(path);
        folder.now.delete(nameOf(path));
        other.now.set(nameOf(operation.to), entry);
        // Within one folder it is one change of it; across two, each has its own.
        if (folder === other) folder.pending.push({ from: nameOf(path), to: nameOf(operation.to), entry });
        else {
          folder.pending.push({ from: nameOf(path) });
          other.pending.push({ to: nameOf(operation.to), entry });
        }
        return;
      }
      case "unlink":
      case "rmdir":
        return this.#change(path, undefined);
    }
  }

  /** One state; `choose` decides everything uncertain, always in the same order for the same answers. */
  state(choose: Choose): DiskState {
    const found = new Map<string, DiskState extends ReadonlyMap<string, infer Value> ? Value : never>();
    const attributesOf = ({ attributes, flushed }: { attributes: Attributes; flushed: Attributes }) =>
      sameAttributes(attributes, flushed) || choose(2) === 0 ? flushed : attributes;
    const visit = (path: string, entry: Entry): void => {
      if (entry.kind === "link") found.set(path, entry);
      else if (entry.kind === "file") {
        const { contents, flushedBytes: certain } = entry;
        const ways = certain === contents.length ? ["whole"] : ["nothing", "whole", "half"];
        const way = ways.length === 1 ? "whole" : ways[choose(ways.length)];
        found.set(path, {
          kind: "file",
          contents:
            way === "whole" ? contents : contents.slice(0, way === "half" ? (certain + contents.length) >> 1 : certain),
          attributes: attributesOf({
            attributes: entry.attributes,
            flushed: entry.flushed ?? { ...entry.attributes, mode: 0o600 },
          }),
        });
      } else {
        if (path !== "") found.set(path, { kind: "folder", attributes: attributesOf(entry) });
        const names = new Map(entry.durable);
        for (const { from, to, entry: moved } of entry.pending) {
          if (choose(2) === 0) continue;
          if (from !== undefined) names.delete(from);
          if (to !== undefined && moved !== undefined) names.set(to, moved);
        }
        for (const [name, below] of names) visit(path === "" ? name : `${path}/${name}`, below);
      }
    };
    visit("", this.#root);
    return found;
  }

  /**
   * Every possible state if there are no more than `limit`; otherwise the two extremes, states in which one uncertain
   * fact alone differs from all others (one forgotten flush shows best there), and some at random.
   */
  states(limit: number, random: Random): { readonly states: readonly DiskState[]; readonly all: boolean } {
    const states: DiskState[] = [];
    // Answers as digits of a number that counts up: the number of outcomes of each question shows while it is asked.
    let answers: number[] = [];
    for (;;) {
      const ways: number[] = [];
      const state = this.state((count) => {
        ways.push(count);
        return answers[ways.length - 1] ?? 0;
      });
      states.push(state);
      if (states.length > limit) break;
      answers = ways.map((_, index) => answers[index] ?? 0);
      while (answers.length > 0 && (answers.at(-1) ?? 0) + 1 >= (ways[answers.length - 1] ?? 1)) answers.pop();
      if (answers.length === 0) return { states, all: true };
      answers[answers.length - 1] = (answers.at(-1) ?? 0) + 1;
    }
    let questions = 0;
    const kept = this.state((count) => {
      questions += 1;
      return Math.min(1, count - 1);
    });
    const allBut = (one: number, lost: boolean) => {
      let index = 0;
      return this.state((count) => ((index++ === one) === lost ? 0 : Math.min(1, count - 1)));
    };
    const some = Array.from({ length: Math.max(0, limit - 2) }, (_, index) =>
      index % 3 === 2
        ? this.state((count) => Math.floor(random.next() * count))
        : allBut(Math.floor(random.next() * questions), index % 3 === 0),
    );
    const [lost] = states;
    return { states: [...(lost === undefined ? [] : [lost]), kept, ...some].slice(0, Math.max(2, limit)), all: false };
  }
}

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
const sameAttributes = (a: Attributes, b: Attributes) => a.mode === b.mode && a.uid === b.uid && a.gid === b.gid;

/** The same for the same state. */
export function digestOfState(state: DiskState): string {
  const hash = createHash("sha256");
  for (const [path, entry] of [...state].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path}\0${entry.kind}\0`);
    if (entry.kind === "link") hash.update(entry.target);
    else hash.update(`${entry.attributes.mode} ${entry.attributes.uid} ${entry.attributes.gid}`);
    if (entry.kind === "file") hash.update("\0").update(entry.contents);
    hash.update("\0\0");
  }
  return hash.digest("hex");
}

/** Writes a state into a new folder. */
export function layDown(state: DiskState, directory: string): void {
  mkdirSync(directory);
  const mayChown = process.geteuid?.() === 0;
  for (const [path, entry] of state) {
    const at = join(directory, path);
    if (entry.kind === "link") symlinkSync(entry.target, at);
    else {
      if (entry.kind === "folder") mkdirSync(at);
      else writeFileSync(at, entry.contents);
      if (mayChown && (entry.attributes.uid !== 0 || entry.attributes.gid !== 0))
        chownSync(at, entry.attributes.uid, entry.attributes.gid);
    }
  }
  // Modes last: a read-only folder must still get its contents.
  for (const [path, entry] of [...state].reverse())
    if (entry.kind !== "link") chmodSync(join(directory, path), entry.attributes.mode);
}
