import { createHash, randomUUID } from "node:crypto";
import * as fs from "node:fs/promises";
import { type FSWatcher, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { McoError } from "../../api/errors.ts";
import { mergeEtc } from "../etc-merge.ts";
import type { Deployment, Host, HostEntry, Link, Machine, PlainFile } from "../host.ts";
import { type UnitModelState, emptyUnitModel, unitModel } from "../unit-model.ts";
import { filesBelow, readTextIfThere, resolveInRoot, syncFolder, writeFileDurably, writeLinkDurably } from "./root-folder.ts";

/** Where OS images come from: a folder that holds the image's tree (with /usr/etc in place of /etc). */
export interface ImageTrees {
  /** @throws McoError `MCO_HOST_IMAGE_UNKNOWN` */
  treeOf(image: string, signal: AbortSignal): Promise<string>;
}

export interface DirectoryHostOptions {
  /** Holds `rootfs` (a link to the booted deployment), `sysroot/`, `state.json`, `units.json`. */
  readonly directory: string;
  readonly images: ImageTrees;
  /** Asks whoever runs the machine for a reboot. */
  readonly requestReboot: (because: string, signal: AbortSignal) => Promise<void>;
}

interface DirectoryState {
  readonly v: 1;
  readonly bootId: string;
  /** Folder of the booted deployment below `sysroot/deploy`. */
  readonly booted: string;
  readonly staged?: Deployment;
  readonly deployments: Readonly<Record<string, Deployment>>;
}

const rootOnly = { mode: 0o600, uid: 0, gid: 0 } as const;
const ledgerFolder = "/var/lib/machine-config-daemon";
const never = new AbortController().signal;

/**
 * A machine in a folder, with ostree's own semantics: deployments side by side, one of them booted, the next one
 * staged and finalised at shutdown with a 3-way merge of /etc; one /var for all of them; a /run that a boot empties.
 * Units never execute; {@link unitModel} keeps what each service last read.
 */
export function directoryHost(options: DirectoryHostOptions): Host {
  const parts = directoryParts(options.directory);
  const { files, model, loadState, storeState } = parts;
  return {
    driver: "directory",
    files,
    units: model,
    os: {
      async status() {
        const state = await loadState();
        const booted = state.deployments[state.booted];
        if (booted === undefined) throw new McoError("MCO_HOST_COMMAND_FAILED", { directory: options.directory, problem: "state.json names no booted deployment" });
        return { bootId: state.bootId, booted, staged: state.staged };
      },
      async stage(deployment, signal) {
        await options.images.treeOf(deployment.image, signal);
        const state = await loadState();
        await storeState({ ...state, staged: { image: deployment.image, kernelArguments: [...deployment.kernelArguments] } });
      },
      async discardStaged() {
        const { staged, ...state } = await loadState();
        if (staged !== undefined) await storeState(state);
      },
      reboot: (because, signal) => options.requestReboot(because, signal),
    },
    users: {
      async lookup(name) {
        const line = await parts.databaseLine("/etc/passwd", name);
        if (line === undefined) return undefined;
        return { uid: Number(line[2]), gid: Number(line[3]), home: line[5] ?? "/" };
      },
      async group(name) {
        const line = await parts.databaseLine("/etc/group", name);
        return line === undefined ? undefined : Number(line[2]);
      },
      async passwordHash(name) {
        const hash = (await parts.databaseLine("/etc/shadow", name))?.[1] ?? "";
        return hash === "" || hash.startsWith("!") || hash === "*" ? undefined : hash;
      },
      async setPasswordHash(name, hash) {
        const shadow = await files.read("/etc/shadow", never);
        const lines = shadow?.kind === "file" ? new TextDecoder().decode(shadow.contents).split("\n").filter((line) => line !== "") : [];
        const fields = (lines.find((line) => line.startsWith(`${name}:`)) ?? `${name}:!::0:99999:7:::`).split(":");
        fields[1] = hash ?? "!";
        const next = [...lines.filter((line) => !line.startsWith(`${name}:`)), fields.join(":")];
        await files.write("/etc/shadow", { kind: "file", contents: new TextEncoder().encode(`${next.join("\n")}\n`), ...rootOnly }, {}, never);
      },
    },
    ledger: {
      async read(name) {
        return readTextIfThere(await parts.locate(`${ledgerFolder}/${name}`));
      },
      async write(name, text) {
        const path = await parts.locate(`${ledgerFolder}/${name}`);
        await fs.mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeFileDurably(path, text, rootOnly, false);
      },
      async remove(name) {
        const path = await parts.locate(`${ledgerFolder}/${name}`);
        await fs.rm(path, { force: true });
      },
    },
  };
}

/** The same folder seen from outside: provisioning and the power button. */
export function directoryMachine(options: Pick<DirectoryHostOptions, "directory" | "images">): Machine & {
  /** Lays the OS image down when the folder holds no machine yet. */
  provision(deployment: Deployment): Promise<void>;
  bootId(): Promise<string>;
} {
  const { directory, images } = options;
  const parts = directoryParts(directory);
  const deployFolder = join(directory, "sysroot", "deploy");

  async function makeDeployment(deployment: Deployment): Promise<string> {
    const id = `${createHash("sha256").update(deployment.image).digest("hex").slice(0, 16)}.${randomUUID().slice(0, 8)}`;
    const target = join(deployFolder, id);
    await fs.mkdir(target, { recursive: true });
    await fs.cp(await images.treeOf(deployment.image, never), target, { recursive: true, verbatimSymlinks: true });
    for (const [link, to] of [["var", "../../var"], ["run", "../../run"], ["home", "var/home"], ["root", "var/roothome"]] as const) {
      await fs.symlink(to, join(target, link)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
    }
    return id;
  }

  async function treeEntries(folder: string): Promise<Map<string, PlainFile | Link>> {
    const entries = new Map<string, PlainFile | Link>();
    for (const path of await filesBelow(folder)) {
      const entry = await readEntry(join(folder, path));
      if (entry?.kind === "file" || entry?.kind === "link") entries.set(path, entry);
    }
    return entries;
  }

  async function finalise(state: DirectoryState, staged: Deployment): Promise<DirectoryState> {
    const id = await makeDeployment(staged);
    const old = join(deployFolder, state.booted);
    const next = join(deployFolder, id);
    const merged = mergeEtc(
      { oldDefaults: await treeEntries(join(old, "usr/etc")), current: await treeEntries(join(old, "etc")), newDefaults: await treeEntries(join(next, "usr/etc")) },
      (a, b) => JSON.stringify(a.kind === "file" ? { ...a, contents: Buffer.from(a.contents).toString("base64") } : a) === JSON.stringify(b.kind === "file" ? { ...b, contents: Buffer.from(b.contents).toString("base64") } : b),
    );
    for (const [path, entry] of merged) {
      const target = join(next, "etc", path);
      await fs.mkdir(dirname(target), { recursive: true });
      if (entry.kind === "link") await writeLinkDurably(target, entry.target);
      else await writeFileDurably(target, entry.contents, entry, parts.mayChown);
    }
    const deployments = { [state.booted]: state.deployments[state.booted], [id]: staged };
    // The new deployment and the one it replaces are kept; older ones go.
    for (const other of Object.keys(state.deployments)) if (!(other in deployments)) await fs.rm(join(deployFolder, other), { recursive: true, force: true });
    return { ...state, booted: id, deployments: deployments as Record<string, Deployment> };
  }

  return {
    async provision(deployment) {
      if ((await readTextIfThere(parts.statePath)) !== undefined) return;
      await fs.mkdir(join(directory, "sysroot", "var", "home", "core"), { recursive: true });
      await fs.mkdir(join(directory, "sysroot", "run"), { recursive: true });
      if (parts.mayChown) await fs.chown(join(directory, "sysroot", "var", "home", "core"), 1000, 1000);
      const id = await makeDeployment(deployment);
      const etc = join(deployFolder, id, "etc");
      await fs.cp(join(deployFolder, id, "usr/etc"), etc, { recursive: true, verbatimSymlinks: true });
      await writeLinkDurably(join(directory, "rootfs"), join("sysroot", "deploy", id));
      await parts.storeState({ v: 1, bootId: randomUUID(), booted: id, deployments: { [id]: { image: deployment.image, kernelArguments: [...deployment.kernelArguments] } } });
    },
    async bootId() {
      return (await parts.loadState()).bootId;
    },
    async boot({ orderly }) {
      let { staged, ...state }: DirectoryState = await parts.loadState();
      if (staged !== undefined && orderly) state = await finalise(state, staged);
      state = { ...state, bootId: randomUUID() };
      await writeLinkDurably(join(directory, "rootfs"), join("sysroot", "deploy", state.booted));
      await fs.rm(join(directory, "sysroot", "run"), { recursive: true, force: true });
      await fs.mkdir(join(directory, "sysroot", "run"));
      await parts.storeState(state);
      await parts.model.boot(never);
      return { bootId: state.bootId };
    },
  };
}

async function readEntry(path: string, owners?: ReadonlyMap<string, { uid: number; gid: number }>): Promise<HostEntry | undefined> {
  let stat;
  try {
    stat = await fs.lstat(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  if (stat.isSymbolicLink()) return { kind: "link", target: await fs.readlink(path) };
  const own = { mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid, ...owners?.get(path) };
  if (stat.isDirectory()) return { kind: "folder", ...own };
  return { kind: "file", contents: await fs.readFile(path), ...own };
}

/** What both sides of a directory machine need. */
function directoryParts(directory: string) {
  const root = join(directory, "rootfs");
  const statePath = join(directory, "state.json");
  const unitsPath = join(directory, "units.json");
  const madeFoldersPath = join(directory, "made-folders.json");
  const ownersPath = join(directory, "owners.json");
  // Only root may give files away; without root, owners are kept beside the tree, so that merge and drift mean the same.
  const mayChown = process.getuid?.() === 0;
  const mounts = { var: join(directory, "sysroot", "var"), run: join(directory, "sysroot", "run") };
  const locate = (path: string) => resolveInRoot(root, path, mounts);

  async function loadJson<T>(path: string, fallback: T): Promise<T> {
    const text = await readTextIfThere(path);
    return text === undefined ? fallback : (JSON.parse(text) as T);
  }
  const storeJson = (path: string, value: unknown) => writeFileDurably(path, JSON.stringify(value), rootOnly, false);

  async function loadState(): Promise<DirectoryState> {
    const state = await loadJson<DirectoryState | undefined>(statePath, undefined);
    if (state === undefined) throw new McoError("MCO_HOST_COMMAND_FAILED", { directory, problem: "no machine was provisioned in this folder" });
    return state;
  }

  async function owner(path: string): Promise<{ uid: number; gid: number } | undefined> {
    return mayChown ? undefined : ((await loadJson<Record<string, { uid: number; gid: number }>>(ownersPath, {}))[path] ?? { uid: 0, gid: 0 });
  }

  async function recordOwner(path: string, own: { uid: number; gid: number } | undefined): Promise<void> {
    if (mayChown) return;
    const owners = await loadJson<Record<string, { uid: number; gid: number }>>(ownersPath, {});
    if (own === undefined) delete owners[path];
    else owners[path] = { uid: own.uid, gid: own.gid };
    await storeJson(ownersPath, owners);
  }

  async function makeFolders(path: string, own: { mode: number; uid: number; gid: number } | undefined): Promise<void> {
    const missing: string[] = [];
    let folder = dirname(path);
    while (folder.length > 1) {
      const here = await readEntry(await locate(folder));
      if (here !== undefined) break;
      missing.unshift(folder);
      folder = dirname(folder);
    }
    if (missing.length === 0) return;
    const made = await loadJson<string[]>(madeFoldersPath, []);
    await storeJson(madeFoldersPath, [...made, ...missing]);
    for (const each of missing) {
      const real = await locate(each);
      await fs.mkdir(real, { recursive: true, mode: 0o755 });
      await fs.chmod(real, own?.mode ?? 0o755);
      if (own !== undefined && mayChown) await fs.chown(real, own.uid, own.gid);
      await syncFolder(dirname(real));
    }
  }

  async function removeMadeFolders(path: string): Promise<void> {
    let made = await loadJson<string[]>(madeFoldersPath, []);
    for (let folder = dirname(path); made.includes(folder); folder = dirname(folder)) {
      try {
        await fs.rmdir(await locate(folder));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOTEMPTY") return;
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
      made = made.filter((other) => other !== folder);
      await storeJson(madeFoldersPath, made);
    }
  }

  const files: Host["files"] = {
    async read(path) {
      const entry = await readEntry(await locate(path));
      const own = entry === undefined || entry.kind === "link" ? undefined : await owner(path);
      return entry === undefined || entry.kind === "link" || own === undefined ? entry : { ...entry, ...own };
    },
    async write(path, entry, { folder }, signal) {
      signal.throwIfAborted();
      if (path.startsWith("/usr/")) throw new McoError("MCO_HOST_READ_ONLY", { path });
      await makeFolders(path, folder);
      const real = await locate(path);
      if (entry.kind === "link") await writeLinkDurably(real, entry.target);
      else await writeFileDurably(real, entry.contents, entry, mayChown);
      await recordOwner(path, entry.kind === "link" ? undefined : entry);
    },
    async remove(path, signal) {
      signal.throwIfAborted();
      const real = await locate(path);
      try {
        await fs.unlink(real);
        await syncFolder(dirname(real));
      } catch (error) {
        if (!["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      }
      await recordOwner(path, undefined);
      await removeMadeFolders(path);
    },
    async vendor(path) {
      if (!path.startsWith("/etc/")) return undefined;
      const entry = await readEntry(await locate(`/usr${path}`));
      return entry === undefined || entry.kind === "link" || mayChown ? entry : { ...entry, uid: 0, gid: 0 };
    },
    watch(paths, onChange) {
      const watchers = new Map<string, FSWatcher>();
      let stopped = false;
      const belowOf = (folder: string) => paths.filter((path) => path.startsWith(`${folder}/`));
      async function arm(): Promise<void> {
        const wanted = new Set<string>();
        for (const path of paths) {
          let folder = dirname(path);
          while (folder.length > 1 && (await readEntry(await locate(folder))) === undefined) folder = dirname(folder);
          wanted.add(folder);
        }
        if (stopped) return;
        for (const [folder, watcher] of watchers) {
          if (wanted.has(folder)) continue;
          watcher.close();
          watchers.delete(folder);
        }
        for (const folder of wanted) {
          if (watchers.has(folder)) continue;
          try {
            const watcher = watch(await locate(folder), (_kind, name) => onEvent(folder, name ?? undefined));
            watcher.on("error", () => {
              watchers.delete(folder);
              watcher.close();
            });
            watchers.set(folder, watcher);
          } catch {
            // It vanished in between; the event on its parent arms again.
          }
        }
      }
      function onEvent(folder: string, name: string | undefined): void {
        const touched = name === undefined ? belowOf(folder) : paths.filter((path) => (dirname(path) === folder ? basename(path) === name : path.startsWith(`${folder}/${name}/`)));
        for (const path of touched) onChange(path);
        if (touched.some((path) => dirname(path) !== folder) || name === undefined || name === basename(folder)) {
          // A folder came or went: watches below it are new or dead.
          for (const [other, watcher] of watchers) {
            if (other === folder || !other.startsWith(`${folder}/`)) continue;
            watcher.close();
            watchers.delete(other);
          }
          void arm().catch(() => undefined);
        }
      }
      void arm().catch(() => undefined);
      return () => {
        stopped = true;
        for (const watcher of watchers.values()) watcher.close();
        watchers.clear();
      };
    },
  };

  const model = unitModel({
    files,
    async listTree(folder) {
      return (await filesBelow(await locate(folder))).map((path) => `${folder}/${path}`);
    },
    digest: (contents) => createHash("sha256").update(contents).digest("hex"),
    load: () => loadJson<UnitModelState>(unitsPath, emptyUnitModel()),
    store: (state) => storeJson(unitsPath, state),
  });

  return {
    files,
    model,
    locate,
    mayChown,
    statePath,
    loadState,
    storeState: (state: DirectoryState) => storeJson(statePath, state),
    async databaseLine(path: string, name: string): Promise<readonly string[] | undefined> {
      const entry = await files.read(path, never);
      if (entry?.kind !== "file") return undefined;
      return new TextDecoder()
        .decode(entry.contents)
        .split("\n")
        .find((line) => line.startsWith(`${name}:`))
        ?.split(":");
    },
  };
}
