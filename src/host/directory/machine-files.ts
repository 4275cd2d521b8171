import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Files } from "../../ports/files.ts";
import { isAbsent } from "../../ports/absent-file.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { ensureFolder, statIfThere, unlinkDurably, writeDurably } from "./durable-writes.ts";
import { heldBelow, heldDisk } from "./held-disk.ts";
import { readRegular } from "./read-regular.ts";
import { machineMounts, resolveInRoot } from "./root-folder.ts";

/** Files of a machine by its own paths. */
export interface MachineFiles extends Pick<Files, "readText" | "write" | "remove"> {
  has(path: string): Promise<boolean>;
}

/**
 * The files of a machine in a folder, for what runs on it beside its daemon: a link on the way leads where it leads on the
 * machine, and never out of its folder. Each name is durable when a call resolves. Files and links are replaced and
 * removed, folders are not.
 *
 * All throw McoError `MCO_HOST_UNSAFE_PATH` for a link that a user of the machine could place.
 */
export function machineFiles(directory: string, given: Disk = systemDisk): MachineFiles {
  const mounts = machineMounts(directory);

  /** The machine as it is booted now. */
  async function booted() {
    const root = await realpath(join(directory, "rootfs"));
    const places = [...Object.values(mounts), root];
    return {
      hold: heldBelow(...places),
      disk: heldDisk(places, given),
      locate: (path: string) => resolveInRoot(root, path, mounts),
      follow: (path: string) => resolveInRoot(root, path, mounts, true),
    };
  }

  return {
    async readText(path) {
      const { hold, follow } = await booted();
      try {
        const { contents } = await hold(await follow(path), (at) => readRegular(at, { name: path }));
        return new TextDecoder("utf-8", { ignoreBOM: true }).decode(contents);
      } catch (error) {
        if (isAbsent(error)) return undefined;
        throw error;
      }
    },
    async write(path, contents, { mode = 0o644 } = {}) {
      const { disk, locate } = await booted();
      const real = await locate(path);
      await ensureFolder(disk, dirname(real), 0o755);
      await writeDurably(disk, real, contents, mode);
    },
    async remove(path) {
      const { disk, locate } = await booted();
      await unlinkDurably(disk, await locate(path));
    },
    async has(path) {
      const { locate } = await booted();
      return (await statIfThere(await locate(path))) !== undefined;
    },
  };
}
