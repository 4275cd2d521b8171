/**
 * Everything this suite may do to a machine. Drivers implement it; nothing else touches the machine.
 *
 * Every verb may be repeated: doing again what is done already succeeds and changes nothing. No verb decides anything.
 * A verb that fails rejects with McoError; what it says of atomicity holds also when the machine loses power in it.
 * Paths are absolute paths of the machine.
 */
export interface Host {
  /** Which driver this is, for logs and metrics. */
  readonly driver: "rpm-ostree" | "ostree" | "directory" | "memory";
  readonly files: HostFiles;
  readonly units: HostUnits;
  readonly os: HostOs;
  readonly users: HostUsers;
  readonly ledger: HostLedger;
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

/** What is at a path; the contents of a folder are asked for by name. */
export type HostEntry = PlainFile | Link | { readonly kind: "folder"; readonly mode: number; readonly uid: number; readonly gid: number };

export interface HostFiles {
  /** What is at the path itself (links are not followed at its end); `undefined` when nothing is. */
  read(path: string, signal: AbortSignal): Promise<HostEntry | undefined>;
  /**
   * Atomic and durable: after it resolves, a power cut leaves the new entry; before, the old one. Replaces a file or a
   * link. Folders that are missing are made, 0755, owned by root, unless `folderOwner` is given.
   */
  write(path: string, entry: PlainFile | Link, options: { readonly folder?: { readonly mode: number; readonly uid: number; readonly gid: number } }, signal: AbortSignal): Promise<void>;
  /** Removes a file or link, durably, and then folders above it that this made empty and that `write` had made. */
  remove(path: string, signal: AbortSignal): Promise<void>;
  /** What the operating system itself ships at a path of /etc; `undefined` for paths elsewhere and where it ships nothing. */
  vendor(path: string, signal: AbortSignal): Promise<HostEntry | undefined>;
  /** Calls `onChange` soon after something happened to one of `paths`, maybe also when nothing did. Returns the way to stop it. */
  watch(paths: readonly string[], onChange: (path: string) => void): () => void;
}

export type Enablement = "enabled" | "disabled" | "static" | "masked" | "absent";

export interface UnitState {
  readonly enablement: Enablement;
  readonly active: boolean;
}

export interface HostUnits {
  state(names: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, UnitState>>;
  enable(name: string, signal: AbortSignal): Promise<void>;
  disable(name: string, signal: AbortSignal): Promise<void>;
  /** Makes the enablement what the vendor's presets say. */
  preset(name: string, signal: AbortSignal): Promise<void>;
  /** The service manager reads all unit files again. */
  daemonReload(signal: AbortSignal): Promise<void>;
  /** The service reads its configuration again and goes on. */
  reload(name: string, signal: AbortSignal): Promise<void>;
  /** The service is started from nothing. */
  restart(name: string, signal: AbortSignal): Promise<void>;
}

export interface Deployment {
  /** Pullspec of the OS image. */
  readonly image: string;
  readonly kernelArguments: readonly string[];
}

export interface HostOs {
  status(signal: AbortSignal): Promise<{ readonly bootId: string; readonly booted: Deployment; readonly staged: Deployment | undefined }>;
  /** Prepares the next boot and leaves the running system as it is. Another staged deployment is replaced. */
  stage(deployment: Deployment, signal: AbortSignal): Promise<void>;
  /** Throws the staged deployment away; the next boot is like this one. */
  discardStaged(signal: AbortSignal): Promise<void>;
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
  /** `undefined` locks the password. */
  setPasswordHash(name: string, hash: string | undefined, signal: AbortSignal): Promise<void>;
}

/** Small documents that survive everything but the loss of the disk, an OS roll-back included. */
export interface HostLedger {
  read(name: string, signal: AbortSignal): Promise<string | undefined>;
  /** Atomic and durable. Readable by root only. */
  write(name: string, text: string, signal: AbortSignal): Promise<void>;
  remove(name: string, signal: AbortSignal): Promise<void>;
}

/** The machine seen from outside, for whoever plays its power button: the one-machine cluster and the tests. */
export interface Machine {
  /**
   * Starts the machine. `orderly`: the last shutdown was one, so what is staged is finalised and becomes the booted
   * deployment; after a power cut it is not. Takes a new boot id, empties /run, and every active service reads its files.
   */
  boot(how: { readonly orderly: boolean }): Promise<{ readonly bootId: string }>;
}

/** Answers what is asked over a control socket: `reboot`, `power-cut`, `fail`, `recover`, `status` of a machine. */
export type ControlHandler = (verb: string, because: string) => Promise<unknown>;
