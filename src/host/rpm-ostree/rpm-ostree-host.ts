import { dirname } from "node:path";
import type { Clock } from "../../ports/clock.ts";
import type { Processes } from "../../ports/process.ts";
import type { Random } from "../../ports/random.ts";
import { type Disk, systemDisk } from "../directory/disk.ts";
import { ensureFolder, statIfThere } from "../directory/durable-writes.ts";
import { heldBelow, heldDisk } from "../directory/held-disk.ts";
import { realOwners } from "../directory/ownership.ts";
import { rootAccounts } from "../directory/root-accounts.ts";
import { rootBooks } from "../directory/root-books.ts";
import { rootFiles } from "../directory/root-files.ts";
import { filesBelow, resolveInRoot } from "../directory/root-folder.ts";
import { ledgerFolder, rootLedger } from "../directory/root-ledger.ts";
import type { Host } from "../host.ts";
import { foreignOs, machineFacts, rpmOstreeOs } from "./rpm-ostree-os.ts";
import { hostCommands } from "./run-command.ts";
import { systemdUnits } from "./systemd-units.ts";

export interface RpmOstreeHostOptions {
  /** Path of the machine's root file system: `/rootfs` in a pod, `/` on the machine itself. */
  readonly root: string;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly random: Random;
  /** As Node.js says it. */
  readonly architecture: string;
  readonly disk?: Disk;
}

/**
 * A real machine: files below a path prefix, everything else by the command lines of rpm-ostree, systemctl and their
 * like. A machine that ostree did not boot has files, units and accounts only, and its capabilities show that.
 */
export async function rpmOstreeHost({
  root,
  processes,
  clock,
  random,
  architecture,
  disk: given = systemDisk,
}: RpmOstreeHostOptions): Promise<Host> {
  const locate = (path: string) => resolveInRoot(root, path);
  // People of the machine may change folders of their own while we write into them.
  const disk = heldDisk(root, given);
  const commands = hostCommands({ processes, clock, root });
  const recordPath = async () => {
    const path = await locate(`${ledgerFolder}/host-writes.json`);
    await ensureFolder(disk, dirname(path), 0o700);
    return path;
  };
  const hold = heldBelow(root);
  const files = rootFiles({ locate, disk, hold, owners: realOwners(disk), recordPath, clock });
  const ledger = rootLedger(locate, disk);
  const facts = machineFacts(locate);
  // ostree(1), ostree-prepare-root: the file is there on every machine that it booted.
  const isOstree = (await statIfThere(await locate("/run/ostree-booted"))) !== undefined;
  return {
    driver: "rpm-ostree",
    files,
    units: systemdUnits({
      commands,
      files,
      listTree: async (folder) =>
        (await filesBelow(await resolveInRoot(root, folder, {}, true), hold)).map((path) => `${folder}/${path}`),
    }),
    os: isOstree
      ? rpmOstreeOs({ commands, files, facts, locate, random, disk, architecture })
      : foreignOs({ commands, facts, random }),
    users: rootAccounts({
      files,
      ledger,
      // Through the machine's own program, which knows who else has the database open; hashes go by its standard input
      // (chpasswd(8)).
      store: async (name, field, _shadow, signal) =>
        void (await commands.must(["chpasswd", "--encrypted"], { kind: "query", input: `${name}:${field}\n`, signal })),
    }),
    ledger,
    books: rootBooks(locate, disk),
  };
}
