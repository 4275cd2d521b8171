import { dirname } from "node:path";
import { McoError } from "../../api/errors.ts";
import { type HostLedger, mostDocumentBytes } from "../host.ts";
import type { Disk } from "./disk.ts";
import { ensureFolder, readTextIfThere, unlinkDurably, writeDurably } from "./durable-writes.ts";
import { mostTextBytes } from "./read-regular.ts";

/**
 * The daemon's own folder on a machine: not in /etc, which rolls back with the OS (openshift/machine-config-operator
 * keeps its files there).
 */
export const ledgerFolder = "/var/lib/machine-config-daemon";

/** Documents in the daemon's own folder. */
export function rootLedger(locate: (path: string) => Promise<string>, disk: Disk): HostLedger {
  let folderIsDurable = false;
  return {
    read: async (name) => readTextIfThere(await locate(`${ledgerFolder}/${name}`), mostTextBytes),
    async write(name, text) {
      // Each pass reads them, and takes several times their size of memory for that.
      if (new TextEncoder().encode(text).length > mostDocumentBytes)
        throw new McoError("MCO_HOST_FILE_TOO_LARGE", { path: `${ledgerFolder}/${name}`, most: mostDocumentBytes });
      const path = await locate(`${ledgerFolder}/${name}`);
      await ensureFolder(disk, dirname(path), 0o700);
      // Who made the folders may have been killed before they were flushed.
      for (
        let folder = dirname(dirname(path)), level = 0;
        !folderIsDurable && level < 3;
        folder = dirname(folder), level += 1
      )
        await disk.sync(folder);
      folderIsDurable = true;
      await writeDurably(disk, path, text, 0o600);
    },
    async remove(name) {
      await unlinkDurably(disk, await locate(`${ledgerFolder}/${name}`));
    },
  };
}
