import { createHash, randomUUID } from "node:crypto";
import { lstat, readlink, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { stateLinks } from "../../core/config/path-conflicts.ts";
import { McoError } from "../../api/errors.ts";
import { hostPaths } from "../../api/names.ts";
import type { Clock } from "../../ports/clock.ts";
import { withPasswordField } from "../accounts.ts";
import { mergeEtc } from "../etc-merge.ts";
import type { ObservedDeployment, Host, HostEntry, HostMachine, OsAbilities, Ownership } from "../host.ts";
import type { NewRoot } from "../ignition/new-root.ts";
import { sameEntry } from "../same-entry.ts";
import { type UnitModelState, emptyUnitModel, unitModel } from "../unit-model.ts";
import { directoryRoot } from "./directory-root.ts";
import { type Disk, systemDisk } from "./disk.ts";
import {
  absentIsDone,
  copyTree,
  eachOf,
  ensureFolder,
  linkDurably,
  readJson,
  readTextIfThere,
  removeTree,
  statIfThere,
  storeJson,
  unlinkBoth,
} from "./durable-writes.ts";
import { type Gift, realOwners, recordedOwners } from "./ownership.ts";
import { podImageFolder } from "./pod-images.ts";
import { pullSettings, type PullSettings } from "./pull-settings.ts";
import { rootAccounts } from "./root-accounts.ts";
import { rootBooks } from "./root-books.ts";
import { heldBelow, heldDisk } from "./held-disk.ts";
import { entryAt, rootFiles } from "./root-files.ts";
import { entriesBelow, filesBelow, machineMounts, resolveInRoot } from "./root-folder.ts";
import { rootLedger } from "./root-ledger.ts";

/** Source of OS images: a folder that holds the image's tree (with /usr/etc in place of /etc). */
export interface ImageTrees {
  /** @throws McoError `MCO_HOST_IMAGE_UNKNOWN`: {@link ImageTrees.fetch} did not bring it. */
  treeOf(image: string, signal: AbortSignal): Promise<string>;
  /**
   * Desired modes and owners that the tree's file system could not store, by path below the tree: without root only.
   */
  ownersIn?(image: string): Promise<Readonly<Record<string, Ownership>>>;
  /** Labels of such an image; those of one that a machine was born with are not known. */
  labelsOf?(image: string): Promise<Readonly<Record<string, string>>>;
  /** Fetches a missing image: pulls, verifies, then unpacks it. An existing image is not fetched again. */
  fetch(image: string, settings: PullSettings, signal: AbortSignal): Promise<void>;
}

export interface DirectoryHostOptions {
  /** Holds `rootfs` (a link to the booted deployment), `sysroot/`, `state.json`, `units.json`. */
  readonly directory: string;
  readonly images: ImageTrees;
  /** Requests a reboot from the runner of the machine. */
  readonly requestReboot: (because: string, signal: AbortSignal) => Promise<void>;
  /** What changes the disk; the machine's own unless a test says otherwise. */
  readonly disk?: Disk;
  /** By which a watch pauses; without it, it does not. */
  readonly clock?: Pick<Clock, "sleep">;
  /** Run when the settling unit is started. */
  readonly applyImageContent?: () => Promise<void>;
}

interface DirectoryState {
  readonly v: 1;
  readonly bootId: string;
  /** Folder of the booted deployment below `sysroot/deploy`. */
  readonly booted: string;
  readonly staged?: ObservedDeployment;
  /** Folder of the deployment that the next boot goes back to. */
  readonly goesBackTo?: string;
  /** Folder of the deployment that a shutdown is making: a boot that finds one starts the old system. */
  readonly finalising?: string;
  readonly fips?: boolean;
  /** Why the last orderly shutdown did not finalise what was staged. */
  readonly finaliseFailure?: string;
  readonly deployments: Readonly<Record<string, ObservedDeployment>>;
}

/** Failures that a test injects. A file of its own, which only the machine's side writes. */
interface Faults {
  readonly finalise?: string;
  readonly brokenUnits?: readonly string[];
}

const rootOnly = { mode: 0o600, uid: 0, gid: 0 } as const;
const plainFolder = { kind: "folder", mode: 0o755, uid: 0, gid: 0 } as const;
const never = new AbortController().signal;
const everything: OsAbilities = {
  images: true,
  kernelArguments: true,
  packages: true,
  kernelTypes: ["default", "realtime", "64k-pages"],
};

/**
 * A machine in a folder, with ostree's own semantics: deployments side by side, one of them booted, the next one
 * staged and finalised at shutdown with a 3-way merge of /etc; one /var for all of them; a /run that a boot empties.
 * Units never execute; {@link unitModel} keeps what each service last read. Packages and kernels are names here.
 */
export function directoryHost(options: DirectoryHostOptions): Host {
  const disk = options.disk ?? systemDisk;
  const parts = directoryParts({ ...options, disk });
  const { files, model, loadState, storeState } = parts;

  const ledger = rootLedger(parts.locate, parts.heldDisk);

  return {
    driver: "directory",
    files,
    units: model,
    os: {
      async status() {
        const state = await loadState();
        const booted = state.deployments[state.booted];
        if (booted === undefined)
          throw new McoError("MCO_HOST_COMMAND_FAILED", {
            directory: options.directory,
            problem: "state.json names no booted deployment",
          });
        return {
          bootId: state.bootId,
          booted,
          staged: state.staged,
          rollback: rollbackOf(state)?.[1],
          fips: state.fips,
          can: everything,
        };
      },
      prefetch: async (image, signal) =>
        options.images.fetch(image, await pullSettings(parts.follow, parts.hold), signal),
      labels: async (image) => (await options.images.labelsOf?.(image)) ?? {},
      async stage(deployment, _packagesFrom, signal) {
        await options.images.treeOf(deployment.image, signal);
        const { goesBackTo, ...state } = await loadState();
        if (goesBackTo !== undefined || JSON.stringify(state.staged) !== JSON.stringify(deployment))
          await storeState({ ...state, staged: deployment });
      },
      async bootPrevious() {
        const { staged: _staged, ...state } = await loadState();
        const [id] = rollbackOf(state) ?? [];
        if (id === undefined)
          throw new McoError("MCO_HOST_COMMAND_FAILED", { problem: "there is no deployment to go back to" });
        await storeState({ ...state, goesBackTo: id });
      },
      async installed(packages) {
        const state = await loadState();
        return packages.filter((name) => state.deployments[state.booted]?.packages.includes(name) === true);
      },
      async finaliseFailure() {
        return (await loadState()).finaliseFailure;
      },
      async discardStaged() {
        const { staged, ...state } = await loadState();
        if (staged !== undefined) await storeState(state);
      },
      reboot: (because, signal) => options.requestReboot(because, signal),
    },
    users: rootAccounts({
      files,
      ledger,
      async store(name, field, shadow, signal) {
        const text = withPasswordField(new TextDecoder().decode(shadow?.contents), name, field);
        await files.write(
          [
            {
              path: "/etc/shadow",
              entry: { kind: "file", ...rootOnly, ...shadow, contents: new TextEncoder().encode(text) },
            },
          ],
          signal,
        );
      },
    }),
    ledger,
    books: rootBooks(parts.locate, parts.heldDisk),
  };
}

/** Folders of a deployment in which its machine has something made. */
const ownFolders = ["usr", "etc", "var", "usr/etc"] as const;

/** @throws McoError `MCO_IMAGE_INVALID`: what would be made in one of these folders, would be made elsewhere. */
async function refuseForeignTree(tree: string, image: string): Promise<void> {
  for (const path of ownFolders) {
    const stat = await statIfThere(join(tree, path));
    if (stat?.isDirectory() === false)
      throw new McoError("MCO_IMAGE_INVALID", { image, problem: `its /${path} is no folder`, retryable: false });
  }
}

const rollbackOf = ({ booted, deployments }: DirectoryState) =>
  Object.entries(deployments).find(([id]) => id !== booted);

/**
 * Images that some machine below a folder boots, is about to boot, or can go back to. `unknown`: one of them cannot be
 * read, so no image counts as unused.
 */
export async function imagesInUse(machines: string): Promise<ReadonlySet<string> | "unknown"> {
  const images = new Set<string>();
  for (const name of (await readdir(machines).catch(absentIsDone)) ?? []) {
    let state: DirectoryState | undefined;
    try {
      state = await readJson<DirectoryState | undefined>(join(machines, name, "state.json"), undefined);
    } catch {
      return "unknown";
    }
    for (const { image } of [
      ...Object.values(state?.deployments ?? {}),
      ...(state?.staged === undefined ? [] : [state.staged]),
    ])
      images.add(image);
  }
  return images;
}

export interface DirectoryMachine extends HostMachine {
  /** Lays the OS image down when the folder holds no machine yet. `fips`: what its kernel says of FIPS mode. */
  provision(deployment: ObservedDeployment, kernel?: { readonly fips?: boolean }): Promise<void>;
  bootId(): Promise<string>;
  /** Forgets the machine that the folder holds, so that it can be provisioned again. */
  wipe(): Promise<void>;
  /** The root that was provisioned, for a first boot to change. */
  newRoot(): NewRoot;
  /**
   * The same as one folder without links to elsewhere, for a program that knows no mounts. What is interrupted leaves a
   * machine that has to be wiped.
   */
  asOneFolder(work: (folder: string) => Promise<void>): Promise<void>;
  /** Makes the enablement of the units that Ignition's presets name what these say, as systemd does at a first boot. */
  presetNew(): Promise<void>;
  failToFinalise(reason: string): Promise<void>;
  breakUnits(names: readonly string[]): Promise<void>;
}

/** The same folder seen from outside: provisioning and the power button. */
export function directoryMachine(
  options: Pick<DirectoryHostOptions, "directory" | "images" | "disk" | "applyImageContent">,
): DirectoryMachine {
  const { directory, images, disk = systemDisk } = options;
  const parts = directoryParts({ ...options, directory, disk });
  const deployFolder = join(directory, "sysroot", "deploy");
  const runFolder = join(directory, "sysroot", "run");

  const newId = (deployment: ObservedDeployment) =>
    `${createHash("sha256").update(deployment.image).digest("hex").slice(0, 16)}.${randomUUID().slice(0, 8)}`;

  async function makeDeployment(id: string, deployment: ObservedDeployment): Promise<void> {
    const target = join(deployFolder, id);
    await ensureFolder(disk, deployFolder, 0o755);
    const tree = await images.treeOf(deployment.image, never);
    await refuseForeignTree(tree, deployment.image);
    await copyTree(disk, tree, target);
    const gifts: Gift[] = [];
    for (const [path, own] of Object.entries((await images.ownersIn?.(deployment.image)) ?? {})) {
      const at = join(target, path);
      const { isFolder } = await parts.hold(at, async (held) => ({ isFolder: (await lstat(held)).isDirectory() }));
      gifts.push({ at, as: at, kind: isFolder ? "folder" : "file", own });
    }
    await parts.owners.give(gifts);
    await eachOf(gifts, ({ at }) => parts.heldDisk.sync(at));
    const links = [
      ["var", "../../var"],
      ["run", "../../run"],
      ...Object.entries(stateLinks).map(
        ([link, to]) => [link, `${"../".repeat(link.split("/").length - 1)}var/${to}`] as const,
      ),
    ] as const;
    for (const [link, to] of links) {
      const at = join(target, link);
      if ((await parts.hold(at, statIfThere)) === undefined) await parts.heldDisk.symlink(to, at);
    }
    await disk.sync(target);
    await disk.sync(deployFolder);
  }

  async function treeEntries(folder: string): Promise<Map<string, HostEntry>> {
    const entries = new Map<string, HostEntry>();
    for (const { path } of await entriesBelow(folder, parts.hold)) {
      const entry = await entryAt(join(folder, path), parts.owners, parts.hold);
      if (entry !== undefined) entries.set(path, entry);
    }
    return entries;
  }

  /** Makes the /etc of a deployment that is not booted yet: its names become durable together, not one by one. */
  async function layDownEtc(folder: string, entries: ReadonlyMap<string, HostEntry>): Promise<void> {
    const tree = new Map<string, HostEntry>();
    for (const [path, entry] of [...entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const above = path
        .split("/")
        .slice(0, -1)
        .map((_, at, parents) => parents.slice(0, at + 1).join("/"));
      // Where one side has a file and the other a folder, the file that was put there last counts and nothing is below
      // it.
      if (above.some((parent) => tree.has(parent) && tree.get(parent)?.kind !== "folder")) continue;
      for (const parent of above) if (!tree.has(parent)) tree.set(parent, plainFolder);
      tree.set(path, entry);
    }
    await disk.mkdir(folder);
    const gifts: Gift[] = [{ at: folder, as: folder, kind: "folder", own: plainFolder }];
    for (const [path, entry] of tree) {
      const at = join(folder, path);
      if (entry.kind === "link") await disk.symlink(entry.target, at);
      else if (entry.kind === "folder") await disk.mkdir(at);
      else await disk.create(at, entry.contents);
      if (entry.kind !== "link") gifts.push({ at, as: at, kind: entry.kind, own: entry });
    }
    await parts.owners.give(gifts);
    await eachOf(gifts, ({ at }) => disk.sync(at));
  }

  async function finalise(state: DirectoryState, id: string, staged: ObservedDeployment): Promise<DirectoryState> {
    await makeDeployment(id, staged);
    const old = join(deployFolder, state.booted);
    const next = join(deployFolder, id);
    const merged = mergeEtc<HostEntry>(
      {
        oldDefaults: await treeEntries(join(old, "usr/etc")),
        current: await treeEntries(join(old, "etc")),
        newDefaults: await treeEntries(join(next, "usr/etc")),
      },
      sameEntry,
    );
    await layDownEtc(join(next, "etc"), merged);
    await disk.sync(next);
    const replaced = state.deployments[state.booted];
    // The new deployment and the one it replaces are kept; older ones go.
    return {
      ...state,
      booted: id,
      deployments: { ...(replaced === undefined ? {} : { [state.booted]: replaced }), [id]: staged },
    };
  }

  async function makeStateFolders(): Promise<void> {
    for (const folder of Object.values(stateLinks))
      await ensureFolder(disk, join(directory, "sysroot", "var", folder), 0o755);
  }

  /** Removes trees that no deployment of the state has: older ones, and those that a killed shutdown left half made. */
  async function removeOtherTrees(state: DirectoryState): Promise<void> {
    for (const name of (await readdir(deployFolder).catch(absentIsDone)) ?? [])
      if (state.deployments[name] === undefined) await removeTree(parts.heldDisk, join(deployFolder, name));
  }

  async function linkRoot(id: string): Promise<void> {
    const link = join(directory, "rootfs");
    const target = join("sysroot", "deploy", id);
    if ((await readlink(link).catch(absentIsDone)) !== target) await linkDurably(disk, link, target);
  }

  return {
    async provision(deployment, kernel = {}) {
      if ((await readTextIfThere(parts.statePath)) !== undefined) return;
      await removeTree(parts.heldDisk, join(directory, "sysroot"));
      const home = join(directory, "sysroot", "var", "home", "core");
      await ensureFolder(disk, home, 0o755);
      await ensureFolder(disk, runFolder, 0o755);
      await parts.owners.give([{ at: home, as: home, kind: "folder", own: { mode: 0o755, uid: 1000, gid: 1000 } }]);
      await disk.sync(home);
      await makeStateFolders();
      const id = newId(deployment);
      await makeDeployment(id, deployment);
      await layDownEtc(join(deployFolder, id, "etc"), await treeEntries(join(deployFolder, id, "usr/etc")));
      await disk.sync(join(deployFolder, id));
      await linkRoot(id);
      await parts.model.presetAll(never);
      await parts.storeState({ v: 1, bootId: randomUUID(), booted: id, deployments: { [id]: deployment }, ...kernel });
    },
    async bootId() {
      return (await parts.loadState()).bootId;
    },
    async wipe() {
      // Without its state it is no machine any more, whatever else is left.
      await unlinkBoth(disk, parts.statePath);
      await disk.sync(directory);
      for (const name of ["rootfs", "units.json", "made.json", "owners.json"])
        await unlinkBoth(disk, join(directory, name));
      await removeTree(disk, podImageFolder(directory));
      await removeTree(parts.heldDisk, join(directory, "sysroot"));
    },
    newRoot: () =>
      directoryRoot({
        root: parts.root,
        mounts: parts.mounts,
        disk: parts.heldDisk,
        files: parts.files,
        units: parts.model,
      }),
    async asOneFolder(work) {
      const folder = join(deployFolder, (await parts.loadState()).booted);
      for (const [name, at] of Object.entries(parts.mounts)) {
        await disk.unlink(join(folder, name));
        await disk.rename(at, join(folder, name));
      }
      await work(folder);
      for (const [name, at] of Object.entries(parts.mounts)) {
        await disk.rename(join(folder, name), at);
        await disk.symlink(relative(folder, at), join(folder, name));
      }
      await disk.sync(folder);
    },
    async presetNew() {
      const preset = await parts.files.read(hostPaths.ignitionPreset, never);
      const lines = preset?.kind === "file" ? new TextDecoder().decode(preset.contents).split("\n") : [];
      const names = lines.flatMap((line) => {
        const [, unit = "", ...instances] = line.split(" ");
        return instances.length === 0 ? [unit] : instances.map((instance) => unit.replace("@.", `@${instance}.`));
      });
      await parts.model.presetEach(
        names.filter((name) => name !== ""),
        never,
      );
    },
    async failToFinalise(reason) {
      await parts.storeFaults({ ...(await parts.loadFaults()), finalise: reason });
    },
    async breakUnits(names) {
      await parts.storeFaults({ ...(await parts.loadFaults()), brokenUnits: names });
    },
    async boot({ orderly }) {
      const {
        staged,
        finalising,
        goesBackTo,
        finaliseFailure: _old,
        ...before
      }: DirectoryState = await parts.loadState();
      const { finalise: fault, ...otherFaults } = await parts.loadFaults();
      let state: DirectoryState = before;
      let failure =
        finalising === undefined ? undefined : "the machine stopped while it finalised the staged deployment";
      if (goesBackTo !== undefined && state.deployments[goesBackTo] !== undefined)
        state = { ...state, booted: goesBackTo };
      else if (staged !== undefined && orderly && failure === undefined) {
        const id = newId(staged);
        try {
          if (fault !== undefined) throw new Error(fault);
          await parts.storeState({ ...before, staged, finalising: id });
          state = await finalise(before, id, staged);
        } catch (error) {
          failure = error instanceof Error ? error.message : String(error);
        }
      }
      // One write decides which system this is; all that follows can be done again.
      state = { ...state, bootId: randomUUID(), ...(failure === undefined ? {} : { finaliseFailure: failure }) };
      await parts.storeState(state);
      if (failure !== undefined && failure === fault) await parts.storeFaults(otherFaults);
      await linkRoot(state.booted);
      await removeOtherTrees(state);
      await removeTree(parts.heldDisk, runFolder);
      await ensureFolder(disk, runFolder, 0o755);
      await makeStateFolders();
      await parts.files.recover();
      await parts.model.boot(never);
      return { bootId: state.bootId };
    },
  };
}

/** What both sides of a directory machine need. */
function directoryParts({
  directory,
  disk,
  clock,
  applyImageContent,
}: Pick<DirectoryHostOptions, "directory" | "clock" | "applyImageContent"> & { readonly disk: Disk }) {
  const root = join(directory, "rootfs");
  const statePath = join(directory, "state.json");
  const faultsPath = join(directory, "faults.json");
  const unitsPath = join(directory, "units.json");
  const madePath = join(directory, "made.json");
  const mounts = machineMounts(directory);
  const locate = (path: string) => resolveInRoot(root, path, mounts);
  const follow = (path: string) => resolveInRoot(root, path, mounts, true);
  // The machine's users may change folders of their own while we write into them.
  const places = [...Object.values(mounts), root, directory];
  const held = heldDisk(places, disk);
  const owners =
    process.geteuid?.() === 0 ? realOwners(held) : recordedOwners(held, directory, join(directory, "owners.json"));

  async function loadState(): Promise<DirectoryState> {
    const state = await readJson<DirectoryState | undefined>(statePath, undefined);
    if (state === undefined)
      throw new McoError("MCO_HOST_COMMAND_FAILED", {
        directory,
        problem: "no machine was provisioned in this folder",
      });
    return state;
  }

  const hold = heldBelow(...places);
  const files = rootFiles({ locate, disk: held, hold, owners, recordPath: async () => madePath, clock });
  const loadFaults = () => readJson<Faults>(faultsPath, {});
  const model = unitModel({
    files,
    async listTree(folder) {
      return (await filesBelow(await follow(folder), hold)).map((path) => `${folder}/${path}`);
    },
    digest: (contents) => createHash("sha256").update(contents).digest("hex"),
    load: () => readJson<UnitModelState>(unitsPath, emptyUnitModel()),
    store: (state) => storeJson(disk, unitsPath, state),
    broken: async () => (await loadFaults()).brokenUnits ?? [],
    applyImageContent,
  });

  return {
    root,
    mounts,
    files,
    model,
    locate,
    hold,
    follow,
    /** For what lies where users of the machine may write. */
    heldDisk: held,
    owners,
    statePath,
    loadState,
    storeState: (state: DirectoryState) => storeJson(disk, statePath, state),
    loadFaults,
    storeFaults: (faults: Faults) => storeJson(disk, faultsPath, faults),
  };
}
