import { dirname, resolve } from "node:path";
import { McoError } from "../api/errors.ts";
import { type Addresses, addressesOf, layoutOf, readRecord } from "../standin/index.ts";
import type { Files } from "../ports/files.ts";

/**
 * The addresses of the one-machine cluster that a connection leads to: the cluster of `--dir`, of the folder that holds
 * the kubeconfig, or of `.mco`. `undefined`: the connection leads to none of them.
 *
 * @param server URL of the API server that the connection leads to
 * @param kubeconfig value of `--kubeconfig` or of $KUBECONFIG
 */
export async function localAddresses(
  files: Pick<Files, "readFrom" | "stat">,
  server: string,
  { directory, kubeconfig }: { readonly directory?: string | undefined; readonly kubeconfig?: string | undefined },
): Promise<Addresses | undefined> {
  const besideKubeconfig = kubeconfig === undefined || kubeconfig === "" ? [] : [dirname(kubeconfig)];
  for (const folder of directory === undefined ? [...besideKubeconfig, ".mco"] : [directory]) {
    const record = await readRecord(files, layoutOf(resolve(folder))).catch((error: unknown) => {
      // A folder that nobody named may hold any file of this name.
      if (directory === undefined && error instanceof McoError && error.code === "MCO_CLUSTER_FILE_UNREADABLE")
        return undefined;
      throw error;
    });
    const addresses = record === undefined ? undefined : addressesOf(record.network);
    // The folder's cluster may be another one than the kubeconfig's.
    if (addresses?.apiServer === new URL(server).hostname) return addresses;
  }
  return undefined;
}
