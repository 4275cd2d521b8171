export interface FileStat {
  readonly kind: "file" | "directory" | "symlink" | "other";
  /** Permission bits, 0..0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** The file system of the machine that the process runs on. `Host` covers the machines that this suite manages. */
export interface Files {
  /** `undefined` if the file does not exist; any other failure throws. */
  read(path: string): Promise<Uint8Array | undefined>;
  readText(path: string): Promise<string | undefined>;
  /**
   * At most `mostBytes` bytes of a regular file from a position, in bytes; fewer at its end. Follows no link and waits for
   * no pipe: `undefined` for these, as for an absent file.
   */
  readFrom(path: string, position: number, mostBytes: number): Promise<Uint8Array | undefined>;
  /** Atomic and durable: temporary file, fsync, rename, fsync of the folder. Creates missing parents (0755). */
  write(path: string, contents: string | Uint8Array, options?: { readonly mode?: number }): Promise<void>;
  append(path: string, contents: string, options?: { readonly mode?: number }): Promise<void>;
  /** The path itself; does not follow links. `undefined` if absent. */
  stat(path: string): Promise<FileStat | undefined>;
  /** Names in the folder, sorted; empty when the folder is absent. */
  list(path: string): Promise<readonly string[]>;
  makeDirectory(path: string, options?: { readonly mode?: number }): Promise<void>;
  /** Removes whole trees, too. Removing an absent path is not an error. */
  remove(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Replaces an existing link atomically. */
  symlink(target: string, path: string): Promise<void>;
  readLink(path: string): Promise<string | undefined>;
  chmod(path: string, mode: number): Promise<void>;
}
