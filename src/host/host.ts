import { McoError } from "../api/errors.ts";
import type { InstallLink } from "../core/config/install-links.ts";
import type { ObservedDeployment, OsAbilities } from "../core/machine/observed-node.ts";

export type { ObservedDeployment, OsAbilities } from "../core/machine/observed-node.ts";
export type { KernelType } from "../core/config/node-config.ts";

/**
 * The interface for everything that this suite may do to a machine. Drivers implement it; nothing else touches the
 * machine.
 *
 * Every verb is idempotent: repeating it succeeds and changes nothing. No verb decides anything. A failing verb rejects
 * with McoError; its statements on atomicity hold also when the machine loses power. Paths are absolute paths of the
 * machine.
 */
export interface Host {
  /** Which driver this is, for logs and metrics. */
  readonly driver: "rpm-ostree" | "ostree" | "directory" | "memory";
  readonly files: HostFiles;
  readonly units: HostUnits;
  readonly os: HostOs;
  readonly users: HostUsers;
  readonly ledger: HostLedger;
  readonly books: HostBooks;
}

export interface PlainFile {
  readonly kind: "file";
  readonly contents: Uint8Array;
  /** Permission bits, 0..0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface Link {
  readonly kind: "link";
  readonly target: string;
}

/** The entry at a path; the contents of a folder are requested by name. */
export type HostEntry =
  | PlainFile
  | Link
  | { readonly kind: "folder"; readonly mode: number; readonly uid: number; readonly gid: number };

/** Below /usr only this is not the image's: a link into /var (ostree, "Adapting existing mainstream distributions"). */
export const isImages = (path: string): boolean =>
  (path === "/usr" || path.startsWith("/usr/")) && !path.startsWith("/usr/local/");

/** Permission bits (0..0o7777) and owner, by number. */
export interface Ownership {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface HostWrite {
  readonly path: string;
  readonly entry: PlainFile | Link;
  /** For folders that are missing on the way; without it they are 0755 and root's. */
  readonly folder?: Ownership;
}

/** Whether a path has something that {@link HostFiles.read} does not read: a file that is too large, or a pipe or device. */
export const isUnreadable = (error: unknown): boolean =>
  error instanceof McoError && (error.code === "MCO_HOST_FILE_TOO_LARGE" || error.code === "MCO_HOST_NO_FILE");

export interface HostFiles {
  /**
   * The entry at the path itself (a final link is not followed); `undefined` if there is none. Rejects for what
   * {@link isUnreadable} names, which {@link HostFiles.write} replaces and {@link HostFiles.remove} removes.
   */
  read(path: string, signal: AbortSignal): Promise<HostEntry | undefined>;
  /**
   * Each entry is atomic and durable by itself: after it resolves, a power cut leaves the new ones; before, each path
   * has the old or the new one. Replaces files and links; a path that has the entry already is not touched. However
   * many they are, the disk is flushed in one pass: all contents, then all names.
   */
  write(writes: readonly HostWrite[], signal: AbortSignal): Promise<void>;
  /** Makes a folder, or gives the one that is there this mode and owner. Missing ones above it are 0755 and root's. */
  makeFolder(path: string, own: Ownership, signal: AbortSignal): Promise<void>;
  /**
   * Removes a file or link (a folder is refused), durably, and then folders above it that this made empty and that
   * `write` had made.
   */
  remove(path: string, signal: AbortSignal): Promise<void>;
  /** Where a folder lies once links are followed, as a word that is the same for each of its names. */
  placeOf(folder: string, signal: AbortSignal): Promise<string>;
  /**
   * The names in a folder that `write` made, which goes away with the last of them; `undefined`: there is no folder, or others
   * made it.
   */
  madeFolder(path: string, signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Free bytes where /etc and /var are written, the lesser of the two; `undefined` if unknown. */
  freeBytes(signal: AbortSignal): Promise<number | undefined>;
  /** The file that the operating system ships at a path of /etc; `undefined` for other paths and if it ships none. */
  vendor(path: string, signal: AbortSignal): Promise<HostEntry | undefined>;
  /**
   * Calls `onChange` soon after something happened to one of `paths`, maybe also when nothing did. Returns the way to
   * stop it.
   */
  watch(paths: readonly string[], onChange: (path: string) => void): () => void;
}

export type Enablement = "enabled" | "disabled" | "static" | "masked" | "absent";

export interface UnitState {
  readonly enablement: Enablement;
  /** `failed`: it ended, or could not start or reload, for a reason of its own. */
  readonly activity: "active" | "inactive" | "failed";
}

export interface HostUnits {
  /** Every link below /etc/systemd/system but those that mask a unit: what is enabled, and other names of units. */
  links(signal: AbortSignal): Promise<readonly InstallLink[]>;
  /** Removes links, and makes others. Unlike `enable`, it needs no unit and reads none. */
  relink(
    change: { readonly remove: readonly string[]; readonly make: readonly InstallLink[] },
    signal: AbortSignal,
  ): Promise<void>;
  state(names: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, UnitState>>;
  /** Rejects for a unit that is absent or masked. */
  enable(name: string, signal: AbortSignal): Promise<void>;
  /** An absent unit is disabled already. */
  disable(name: string, signal: AbortSignal): Promise<void>;
  /** Makes the enablement what the vendor's presets say. They say nothing of a unit that is absent or masked. */
  preset(name: string, signal: AbortSignal): Promise<void>;
  /** The service manager reads all unit files again. */
  daemonReload(signal: AbortSignal): Promise<void>;
  /** Reloads the configuration of the service. Rejects when the service reports a failure, or does not run. */
  reload(name: string, signal: AbortSignal): Promise<void>;
  /** The service is started from nothing. Rejects when it does not start: also because it is absent or masked. */
  restart(name: string, signal: AbortSignal): Promise<void>;
  /** Asks for everything that a boot starts and that does not run, without waiting for it. */
  startEnabled(signal: AbortSignal): Promise<void>;
}

export interface OsStatus {
  readonly bootId: string;
  readonly booted: ObservedDeployment;
  readonly staged: ObservedDeployment | undefined;
  /** What {@link HostOs.bootPrevious} boots. */
  readonly rollback: ObservedDeployment | undefined;
  /** Whether the kernel runs in FIPS mode; `undefined` if it does not report it. */
  readonly fips: boolean | undefined;
  readonly can: OsAbilities;
}

export interface HostOs {
  status(signal: AbortSignal): Promise<OsStatus>;
  /**
   * Fetches an image to this machine and verifies it: digest, the signature policy of the machine, and the
   * architecture. Running and staged systems do not change. An interrupted fetch resumes where it stopped.
   *
   * @throws McoError `MCO_IMAGE_…`, with `facts.retryable` for whether a retry can help.
   */
  prefetch(image: string, signal: AbortSignal): Promise<void>;
  /** The labels of an image that {@link HostOs.prefetch} brought. */
  labels(image: string, signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /**
   * Prepares the next boot and leaves the running system as it is. Another staged deployment is replaced.
   *
   * @param packagesFrom image that packages and kernels come from; needed only where there are any.
   */
  stage(deployment: ObservedDeployment, packagesFrom: string | undefined, signal: AbortSignal): Promise<void>;
  /** Throws the staged deployment away; the next boot is like this one. */
  discardStaged(signal: AbortSignal): Promise<void>;
  /**
   * Makes the next boot, also one after a power cut, use the deployment before this one, with the /etc that it had;
   * this one becomes the deployment that it can go back to. The staged deployment is discarded. Rejects if there is no
   * such deployment.
   */
  bootPrevious(signal: AbortSignal): Promise<void>;
  /** Which of `packages` this system really has, whatever was asked for. */
  installed(packages: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Why the shutdown before this boot could not finalise what was staged; `undefined` when nothing is known of a
   * failure.
   */
  finaliseFailure(signal: AbortSignal): Promise<string | undefined>;
  /** Resolves once the machine has accepted the request; the process may end at any time after. */
  reboot(because: string, signal: AbortSignal): Promise<void>;
}

export interface HostUser {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export interface HostUsers {
  lookup(name: string, signal: AbortSignal): Promise<HostUser | undefined>;
  group(name: string, signal: AbortSignal): Promise<number | undefined>;
  /** The hash in the shadow database; `undefined` where the account is locked or has none. */
  passwordHash(name: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * `undefined` locks the password: the field is again what it was before a hash was set, if that allowed no login,
   * else `!`. Rejects a hash for a user that the machine does not have.
   */
  setPasswordHash(name: string, hash: string | undefined, signal: AbortSignal): Promise<void>;
}

/** The largest document that is written, in bytes: a payload holds the originals twice, and a configuration. */
export const mostDocumentBytes = 192 * 1024 * 1024;

/** Small documents that survive everything but the loss of the disk, an OS roll-back included. */
export interface HostLedger {
  /** Documents of earlier releases too, which had no {@link mostDocumentBytes}. */
  read(name: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Atomic and durable. Readable by root only.
   *
   * @throws McoError `MCO_HOST_FILE_TOO_LARGE` beyond {@link mostDocumentBytes}
   */
  write(name: string, text: string, signal: AbortSignal): Promise<void>;
  remove(name: string, signal: AbortSignal): Promise<void>;
}

/** Journal lines of one boot as stored on the machine. */
export interface BookLines {
  readonly boot: string;
  readonly lines: readonly string[];
}

/**
 * Files of journal lines beside the ledger, one for each boot; they survive what the ledger survives. Readable by root
 * only.
 */
export interface HostBooks {
  /**
   * Puts lines (without line feeds) behind those of a boot. `durable`: after it resolves a power cut leaves them and
   * all before them; else it may take them, the last one of those that are left in part. What an earlier one left in
   * part stays a line of its own. The oldest lines go where there are too many.
   */
  append(
    boot: string,
    lines: readonly string[],
    how: { readonly durable: boolean },
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * The newest lines of the newest boots, each boot's in the order in which they came; the last one may be there in
   * part only.
   */
  read(signal: AbortSignal): Promise<readonly BookLines[]>;
}

/** The machine from outside, for the owner of its power button: the one-machine cluster and the tests. */
export interface HostMachine {
  /**
   * Starts the machine. `orderly`: the last shutdown was one, so what is staged is finalised and becomes the booted
   * deployment; after a power cut it is not. Takes a new boot id, empties /run, and every active service reads its
   * files.
   */
  boot(how: { readonly orderly: boolean }): Promise<{ readonly bootId: string }>;
  /** For trying what can go wrong: the next orderly shutdown fails to finalise what is staged, with this reason. */
  failToFinalise?(reason: string): Promise<void>;
  /** For the same: these units, and no others, fail to start and to reload from now on. */
  breakUnits?(names: readonly string[]): Promise<void>;
}

/** Answers what is asked over a control socket: `reboot`, `power-cut`, `fail`, `recover`, `status` of a machine. */
export type ControlHandler = (verb: string, because: string) => Promise<unknown>;
