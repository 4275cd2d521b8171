import type { Files } from "../ports/files.ts";
import type { Layout } from "./layout.ts";

const widerThan = (mode: number, most: number) => (mode & ~most & 0o777) !== 0;

/**
 * Closes the folder of a cluster to other users, also one of an earlier run: its store, keys, kubeconfigs and logs are
 * as good as the cluster itself.
 *
 * Root's folder lets everybody pass, not read: Ignition writes keys as the users whose keys they are, and those must
 * get to their machine. A folder that holds things of others keeps its mode; what is in it is closed all the same.
 */
export async function protectFolder(files: Files, layout: Layout): Promise<void> {
  const { directory, pki, logs, registry, kubeconfig, record, store } = layout;
  await files.makeDirectory(directory, { mode: 0o711 });
  await files.makeDirectory(logs, { mode: 0o700 });
  const names = await files.list(directory);
  const folder = await files.stat(directory);
  if (folder !== undefined && (names.includes(nameOf(record)) || names.every((name) => isOurs(layout, name))))
    await restrict(directory, folder.uid === 0 ? 0o711 : 0o700);
  for (const path of [pki, logs, registry, `${directory}/etcd`]) await restrict(path, 0o700);
  for (const path of [kubeconfig, record, store, `${store}-wal`, `${store}-shm`, `${store}-journal`])
    await restrict(path, 0o600);
  for (const path of [pki, registry, logs])
    for (const name of await files.list(path))
      if ((await files.stat(`${path}/${name}`))?.kind === "file") await restrict(`${path}/${name}`, 0o600);

  async function restrict(path: string, most: number): Promise<void> {
    const stat = await files.stat(path);
    // The mode of a link is that of its target, which is not ours to change.
    if (stat !== undefined && stat.kind !== "symlink" && widerThan(stat.mode, most))
      await files.chmod(path, stat.mode & most);
  }
}

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Whether `mco up` makes this name itself before it has a record. */
const isOurs = ({ bundle, logs, osImages, pki }: Layout, name: string) =>
  [logs, osImages, pki, bundle.slice(0, bundle.lastIndexOf("/"))].map(nameOf).includes(name);
