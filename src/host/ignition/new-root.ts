import type { HostEntry, HostFiles, HostUnits } from "../host.ts";

/** A root file system before its first boot, as far as that changes it. Paths are those of the machine. */
export interface NewRoot {
  readonly files: Pick<HostFiles, "read" | "write" | "makeFolder">;
  readonly units: Pick<HostUnits, "state" | "disable">;
  /** Where a path leads to when the links above it are followed; the last component is not. */
  resolve(path: string): Promise<string>;
  /** Names in a folder; none where there is no such folder. */
  list(path: string): Promise<readonly string[]>;
  /** Removes whatever is at a path, a whole tree too. Removing what is not there is not an error. */
  removeTree(path: string): Promise<void>;
  /** Gives what is at `target` a second name. */
  hardLink(path: string, target: string): Promise<void>;
}

export type { HostEntry };
