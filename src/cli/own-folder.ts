import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { McoError } from "../api/errors.ts";
import { type Layout, layoutOf, refuseForeignFolder } from "../standin/index.ts";
import { systemFiles } from "../ports/node/index.ts";

/**
 * Refuses the folder of a cluster that other users own or can change, also where a link leads to it: its kubeconfig says
 * where credentials go, and its record which processes end.
 *
 * @throws McoError `MCO_CLUSTER_FOLDER_FOREIGN`
 */
export async function checkOwnFolder(layout: Layout): Promise<void> {
  const uid = process.geteuid?.() ?? 0;
  const there = realpath(layout.directory);
  await refuseForeignFolder(systemFiles, layout, uid);
  if (there !== layout.directory) await refuseForeignFolder(systemFiles, layoutOf(there), uid);
}

/** A path that does not exist is its own. */
function realpath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * The kubeconfig of the cluster in the current folder, for commands that name none. Whoever else made that folder would
 * choose whom a command talks to, and with which files of its user.
 *
 * @throws McoError `MCO_CLUSTER_FOLDER_FOREIGN`, or `MCO_KUBECONFIG_INVALID` for a folder that `mco up` did not make
 */
export async function kubeconfigHere(): Promise<string> {
  const layout = layoutOf(resolve(".mco"));
  await checkOwnFolder(layout);
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
