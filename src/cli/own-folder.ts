import { resolve } from "node:path";
import { McoError } from "../api/errors.ts";
import { type Layout, layoutOf, partOfCluster, refuseForeignFolder, refuseLinks } from "../standin/index.ts";
import { systemFiles, systemRandom } from "../ports/node/index.ts";
import { folderRegister } from "./folder-register.ts";
import { stateHome } from "./state-home.ts";
import { workTreesOfOthers } from "./work-trees.ts";

/**
 * Refuses the folder of a cluster that other users own or can change, and one with a symbolic link where the cluster
 * writes: its kubeconfig says where credentials go, and its record which processes end.
 *
 * @throws McoError `MCO_CLUSTER_FOLDER_FOREIGN` or `MCO_CLUSTER_FOLDER_LINK`
 */
export async function checkOwnFolder(layout: Layout): Promise<void> {
  await refuseForeignFolder(systemFiles, layout, process.geteuid?.() ?? 0);
  await refuseLinks(systemFiles, layout);
}

/**
 * Refuses also a folder with parts of a cluster that no `mco up` of this user recorded: whoever wrote the repository or
 * the archive that it came with made its keys, its store and its record. So too one in a work tree whose authors its user
 * does not trust with it: the next pull replaces what is in it.
 *
 * @throws McoError `MCO_CLUSTER_FOLDER_UNRECORDED`, `MCO_CLUSTER_FOLDER_WORK_TREE` or `MCO_CLUSTER_REGISTER` as well
 */
export async function checkRecordedFolder(layout: Layout): Promise<void> {
  await checkOwnFolder(layout);
  const part = await partOfCluster(systemFiles, layout);
  if (part === undefined) return;
  if (!(await registerOfUser().has(layout)))
    throw new McoError("MCO_CLUSTER_FOLDER_UNRECORDED", { directory: layout.directory, part });
  await refuseWorkTrees(layout);
}

/** As {@link checkRecordedFolder}; a folder without a cluster is refused as well where one must not be made. */
export async function checkFolderToStart(layout: Layout): Promise<void> {
  await checkRecordedFolder(layout);
  await refuseWorkTrees(layout);
}

async function refuseWorkTrees(layout: Layout): Promise<void> {
  const foreign = await workTreesOfOthers(layout.directory);
  if (foreign.length === 0) return;
  const trusted = await registerOfUser().trusted(layout);
  const workTree = foreign.find((path) => !trusted.includes(path));
  if (workTree !== undefined)
    throw new McoError("MCO_CLUSTER_FOLDER_WORK_TREE", { directory: layout.directory, workTree });
}

/**
 * Records a folder as one of this user, and makes it if there is none.
 *
 * @param workTrees of which the user trusts the authors with the folder; absent: those that are recorded.
 */
export async function recordFolder(layout: Layout, workTrees?: readonly string[]): Promise<void> {
  const register = registerOfUser();
  if (workTrees === undefined && (await register.has(layout))) return;
  const isThere = (await systemFiles.stat(layout.directory)) !== undefined;
  await systemFiles.makeDirectory(layout.directory, { mode: 0o711 });
  try {
    await register.add(layout, workTrees);
  } catch (error) {
    if (!isThere) await systemFiles.remove(layout.directory);
    throw error;
  }
}

/** Records a folder as one of this user, who trusts whoever writes into the work trees around it. */
export async function adoptFolder(layout: Layout): Promise<void> {
  await recordFolder(layout, await workTreesOfOthers(layout.directory));
}

/** Takes a folder that is about to be removed from the record. */
export async function forgetFolder(layout: Layout): Promise<void> {
  if ((await systemFiles.stat(layout.identity)) !== undefined) await registerOfUser().remove(layout);
}

const registerOfUser = () => folderRegister({ home: stateHome(process.env), files: systemFiles, random: systemRandom });

/**
 * The kubeconfig of the cluster in the current folder, for commands that name none. Whoever else made that folder would
 * choose whom a command talks to, and with which files of its user.
 *
 * @throws McoError as {@link checkRecordedFolder}, or `MCO_KUBECONFIG_INVALID` for a folder without the record of a cluster
 */
export async function kubeconfigHere(): Promise<string> {
  const layout = layoutOf(resolve(".mco"));
  await checkRecordedFolder(layout);
  if (
    (await systemFiles.stat(layout.kubeconfig)) !== undefined &&
    (await systemFiles.stat(layout.record)) === undefined
  )
    throw new McoError("MCO_KUBECONFIG_INVALID", {
      path: layout.kubeconfig,
      problem: `no cluster of mco up is in its folder (there is no ${layout.record}); name the kubeconfig with --kubeconfig to use it`,
    });
  return layout.kubeconfig;
}
