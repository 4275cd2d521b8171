import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { directoryHost, directoryMachine } from "../../src/host/directory/directory-host.ts";
import { type Disk, systemDisk } from "../../src/host/directory/disk.ts";
import type { Host, HostEntry, Link, HostMachine, PlainFile } from "../../src/host/host.ts";
import { type MemoryHost, memoryHost } from "../support/hosts/memory-host.ts";
import { unitFolder } from "../../src/core/config/install-links.ts";
import { configurationOf } from "../../src/host/unit-model.ts";
import type { Random } from "../../src/ports/random.ts";
import { firstImage, images } from "./contents.ts";
import { DiskModel, layDown } from "./recording-disk.ts";

/** A machine under test, with views that only a test has. */
export interface Subject {
  readonly host: Host;
  readonly machine: HostMachine;
  /**
   * Files, links and passwords of the machine but not of /usr and /run: path → `mode uid:gid text` or `→ target`;
   * folders, where the driver knows them, end in `/`.
   */
  tree(): Promise<ReadonlyMap<string, string>>;
  /** What a service last read, and how often it was started and reloaded. */
  service(
    name: string,
  ): Promise<{ readonly read: Readonly<Record<string, string>>; readonly restarts: number; readonly reloads: number }>;
  /** The machine's folder, if it has one. */
  readonly directory?: string;
  /** Makes copies of this machine's present state, including the named documents of the daemon. */
  copier(documents: readonly string[]): Promise<MakeSubject>;
  close(): Promise<void>;
}

export type MakeSubject = (options: { readonly random: Random; readonly onReboot: () => void }) => Promise<Subject>;

const signal = new AbortController().signal;
const kernelArguments = ["root=x"];

export const inMemory: MakeSubject = async ({ random, onReboot }) => {
  const host = memoryHost({ images, image: firstImage, kernelArguments, random, onReboot });
  await host.units.enable("crio.service", signal);
  await host.boot({ orderly: true });
  return memorySubject(host);
};

function memorySubject(host: MemoryHost): Subject {
  return {
    host,
    machine: host,
    tree: async () => host.snapshot(),
    service: async (name) => ({ read: host.seenBy(name), ...host.counts(name) }),
    async copier(documents) {
      const { booted } = await host.os.status(signal);
      const tree = [...host.snapshot()];
      const writes = await Promise.all(
        tree
          .filter(([path]) => !path.startsWith("shadow:"))
          .map(async ([path, text]) => {
            const folder = await host.files.read(dirname(path), signal);
            return { path, entry: entryOf(text), ...(folder?.kind === "folder" ? { folder } : {}) };
          }),
      );
      const kept = await Promise.all(
        documents.map(async (name) => [name, await host.ledger.read(name, signal)] as const),
      );
      const root = await Promise.all(
        ["core", "root"].map(async (user) => [user, await host.users.passwordHash(user, signal)] as const),
      );
      return async ({ random, onReboot }) => {
        const copy = memoryHost({ images, image: firstImage, kernelArguments, random, onReboot });
        await copy.os.stage(booted, undefined, signal);
        await copy.boot({ orderly: true });
        for (const path of copy.snapshot().keys())
          if (!tree.some(([other]) => other === path)) await copy.files.remove(path, signal);
        await copy.files.write(writes, signal);
        for (const [user, hash] of root) if (hash !== undefined) await copy.users.setPasswordHash(user, hash, signal);
        for (const [name, text] of kept) if (text !== undefined) await copy.ledger.write(name, text, signal);
        await copy.boot({ orderly: true });
        return memorySubject(copy);
      };
    },
    close: async () => undefined,
  };
}

/** An entry from its description in a tree. */
function entryOf(text: string): PlainFile | Link {
  const [, mode = "", uid = "", gid = "", contents = ""] = /^(\d+) (\d+):(\d+) ([\s\S]*)$/.exec(text) ?? [];
  if (text.startsWith("→ ")) return { kind: "link", target: text.slice(2) };
  return {
    kind: "file",
    contents: new TextEncoder().encode(contents),
    mode: Number.parseInt(mode, 8),
    uid: Number(uid),
    gid: Number(gid),
  };
}

/** The system's disk without its flushes, which make a difference only at a power cut. */
export const fastDisk: Disk = {
  ...systemDisk,
  create: async (path, contents, own) => {
    writeFileSync(path, contents, { flag: "wx", mode: 0o600 });
    if (own === undefined) return;
    chownSync(path, own.uid, own.gid);
    chmodSync(path, own.mode);
  },
  sync: async (path) => void lstatSync(path),
};

/** Where the tree of an image lies below a folder of images. */
export const treePath = (folder: string, image: string): string => join(folder, image.replaceAll(/[/:@]/g, "_"));

/** Writes the images as trees below a folder, and finds them again. */
export async function imageTreesIn(folder: string) {
  const treeAt = (image: string) => treePath(folder, image);
  for (const [image, { etc, usr }] of Object.entries(images)) {
    for (const [path, contents] of [
      ...Object.entries(etc).map(([name, text]) => [`/usr${name}`, text] as const),
      ...Object.entries(usr),
    ]) {
      await mkdir(dirname(join(treeAt(image), path)), { recursive: true });
      await writeFile(join(treeAt(image), path), contents);
    }
  }
  return {
    treeOf: async (image: string) => {
      if (!(image in images)) throw new Error(`no image ${image}`);
      return treeAt(image);
    },
    fetch: async () => undefined,
  };
}

export type ImageFolder = Awaited<ReturnType<typeof imageTreesIn>>;

const isRoot = process.geteuid?.() === 0;

/**
 * Reads synchronously, since a thousand machines are read. Only root sees the owners of a machine's files on the files
 * themselves.
 */
function entryAt(path: string): HostEntry {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return { kind: "link", target: readlinkSync(path) };
  const own = { mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid };
  return stat.isDirectory() ? { kind: "folder", ...own } : { kind: "file", contents: readFileSync(path), ...own };
}

/** A machine in a folder that already holds one. */
export function directorySubject(options: {
  readonly directory: string;
  readonly trees: ImageFolder;
  readonly onReboot: () => void;
  readonly disk?: Disk;
}): Pick<Subject, "host" | "machine" | "tree" | "service"> {
  const { directory, trees, onReboot, disk = fastDisk } = options;
  const given = { directory, images: trees, disk, requestReboot: async () => onReboot() };
  const host = directoryHost(given);
  return {
    host,
    machine: directoryMachine(given),
    async tree() {
      const found = new Map<string, string>();
      const walk = async (path: string, real: string): Promise<void> => {
        for (const entry of readdirSync(real)) {
          const name = `${path}/${entry}`;
          const here = isRoot ? entryAt(join(real, entry)) : await host.files.read(name, signal);
          if (here?.kind === "link") found.set(name, `→ ${here.target}`);
          else if (here?.kind === "file")
            found.set(
              name,
              `${here.mode.toString(8)} ${here.uid}:${here.gid} ${new TextDecoder().decode(here.contents)}`,
            );
          else if (here?.kind === "folder") {
            found.set(`${name}/`, `${here.mode.toString(8)} ${here.uid}:${here.gid}`);
            await walk(name, join(real, entry));
          }
        }
      };
      await walk("/etc", join(directory, "rootfs", "etc"));
      // By the usual names, which are links into /var.
      for (const name of readdirSync(join(directory, "sysroot", "var")))
        await walk(
          name === "home" ? "/home" : name === "roothome" ? "/root" : `/var/${name}`,
          join(directory, "sysroot", "var", name),
        );
      return found;
    },
    async service(name) {
      const { services } = JSON.parse(readFileSync(join(directory, "units.json"), "utf8")) as {
        services: Record<string, Awaited<ReturnType<Subject["service"]>>>;
      };
      return services[name] ?? { read: {}, restarts: 0, reloads: 0 };
    },
  };
}

/** Thousands of machines are written and removed: in memory where the system has such a folder. */
const quickest = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export interface DirectorySubjects {
  readonly make: MakeSubject;
  /** The machine that a folder already holds. */
  at(directory: string, onReboot: () => void): Subject;
  readonly folder: string;
  readonly trees: ImageFolder;
  close(): Promise<void>;
}

/** With owners and modes. */
const copyMachine = async (from: string, to: string): Promise<void> =>
  layDown(
    (await DiskModel.of(from)).state(() => 0),
    to,
  );

/** Machines in folders below one temporary folder, each in its own; `close` removes what is left of them. */
export async function directorySubjects(): Promise<DirectorySubjects> {
  const folder = await mkdtemp(join(quickest, "mco-crash-"));
  const trees = await imageTreesIn(join(folder, "images"));
  const template = join(folder, "template");
  await mkdir(template);
  const first = directorySubject({ directory: template, trees, onReboot: () => undefined });
  await directoryMachine({ directory: template, images: trees, disk: fastDisk }).provision({
    image: firstImage,
    kernelArguments,
    packages: [],
    kernelType: "default",
  });
  await first.host.units.enable("crio.service", signal);
  await first.machine.boot({ orderly: true });
  let serial = 0;
  const at = (directory: string, onReboot: () => void): Subject => ({
    ...directorySubject({ directory, trees, onReboot }),
    directory,
    async copier() {
      const kept = join(folder, `kept-${(serial += 1)}`);
      await copyMachine(directory, kept);
      return copyOf(kept);
    },
    close: async () => rmSync(directory, { recursive: true, force: true }),
  });
  const copyOf =
    (from: string): MakeSubject =>
    async ({ onReboot }) => {
      const directory = join(folder, `machine-${(serial += 1)}`);
      await copyMachine(from, directory);
      return at(directory, onReboot);
    };
  return { make: copyOf(template), at, folder, trees, close: () => rm(folder, { recursive: true, force: true }) };
}

/** What a service would read now. */
export function readingsOf(tree: ReadonlyMap<string, string>, service: string): Record<string, string> {
  const wanted = configurationOf[service] ?? [];
  const isRead = (path: string) =>
    path === `${unitFolder}/${service}` ||
    path.startsWith(`${unitFolder}/${service}.d/`) ||
    wanted.some((own) => (own.endsWith("/") ? path.startsWith(own) : path === own));
  const readings: Record<string, string> = {};
  for (const [path, entry] of tree) {
    if (!isRead(path) || path.endsWith("/") || entry.startsWith("→ ")) continue;
    readings[path] = bytesToHex(sha256(new TextEncoder().encode(entry.replace(/^\S+ \S+ /, ""))));
  }
  return readings;
}
