import { link, readdir } from "node:fs/promises";
import { dirname, relative } from "node:path";
import { McoError } from "../../api/errors.ts";
import type { HostFiles, HostUnits } from "../host.ts";
import type { NewRoot } from "../ignition/new-root.ts";
import type { Disk } from "./disk.ts";
import { absentIsDone, removeTree, statIfThere, unlinkBoth } from "./durable-writes.ts";
import { resolveInRoot } from "./root-folder.ts";

/** The root of a machine in a folder, for its first boot. `mounts`: as {@link resolveInRoot} knows them. */
export function directoryRoot(options: {
  readonly root: string;
  readonly mounts: Readonly<Record<string, string>>;
  readonly disk: Disk;
  readonly files: HostFiles;
  readonly units: Pick<HostUnits, "state" | "disable">;
}): NewRoot {
  const { root, mounts, disk, files, units } = options;
  const locate = (path: string) => resolveInRoot(root, path, mounts);

  return {
    files,
    units,
    async resolve(path) {
      const real = await locate(path);
      const [mount, folder] = Object.entries(mounts).find(([, at]) => real === at || real.startsWith(`${at}/`)) ?? [
        "",
        root,
      ];
      return [
        "",
        ...(mount === "" ? [] : [mount]),
        ...relative(folder, real)
          .split("/")
          .filter((part) => part !== ""),
      ].join("/");
    },
    list: async (path) => (await readdir(await resolveInRoot(root, path, mounts, true)).catch(absentIsDone)) ?? [],
    async removeTree(path) {
      const real = await locate(path);
      const stat = await statIfThere(real);
      if (stat?.isDirectory() === true) await removeTree(disk, real);
      else await unlinkBoth(disk, real);
      if ((await statIfThere(dirname(real))) !== undefined) await disk.sync(dirname(real));
    },
    async hardLink(path, target) {
      const [real, other] = [await locate(path), await locate(target)];
      const [there, wanted] = [await statIfThere(real), await statIfThere(other)];
      if (wanted === undefined)
        throw new McoError("MCO_IGNITION_REFUSED", {
          reason: `the hard link ${path} leads to ${target}, which is not there`,
        });
      if (there?.ino === wanted.ino && there.dev === wanted.dev) return;
      if (there !== undefined)
        throw new McoError("MCO_IGNITION_REFUSED", {
          reason: `something is where the hard link ${path} is to be, and overwrite is false`,
        });
      const above = dirname(path);
      if ((await files.read(above, new AbortController().signal)) === undefined)
        await files.makeFolder(above, { mode: 0o755, uid: 0, gid: 0 }, new AbortController().signal);
      // Only here: nothing that keeps a machine current makes hard links.
      await link(other, real);
      await disk.sync(dirname(real));
    },
  };
}
