import { McoError } from "../../api/errors.ts";
import type { Files } from "../../ports/files.ts";
import type { Layout } from "./layout.ts";

const widerThan = (mode: number, most: number) => (mode & ~most & 0o777) !== 0;

/**
 * Closes the folder of a cluster to other users, even one of an earlier run: its store, keys, kubeconfigs and logs give
 * control of the cluster.
 *
 * Every user can pass through root's folder, but not list it: Ignition writes keys as the users who own them, and these
 * must reach their machine. A folder that holds other files keeps its mode; the cluster's files in it are closed all
 * the same.
 */
export async function protectFolder(files: Files, layout: Layout): Promise<void> {
  const { directory, pki, logs, registry, bootstrap, kubeconfig, record, store } = layout;
  await files.makeDirectory(directory, { mode: 0o711 });
  await files.makeDirectory(logs, { mode: 0o700 });
  const names = await files.list(directory);
  const folder = await files.stat(directory);
  if (folder !== undefined && (names.includes(nameOf(record)) || names.every((name) => isOurs(layout, name))))
    await restrict(directory, folder.uid === 0 ? 0o711 : 0o700);
  for (const path of [pki, logs, registry, bootstrap, `${directory}/etcd`]) await restrict(path, 0o700);
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

/**
 * Refuses a folder that another user prepared, in `/tmp` for example, or may change: a cluster goes on with the keys, the
 * record and the programs that it finds there. What a group may change counts as changed by others, whoever is in it.
 *
 * @param uid of this process; what belongs to root is trusted as well.
 * @throws McoError `MCO_CLUSTER_FOLDER_FOREIGN`
 */
export async function refuseForeignFolder(
  files: Pick<Files, "stat" | "list">,
  { directory, kubeconfig, record, identity, store, pki, bundle, logs, osImages, registry, bootstrap, host }: Layout,
  uid: number,
): Promise<void> {
  const parts = [
    kubeconfig,
    record,
    identity,
    store,
    pki,
    folderOf(bundle),
    bundle,
    logs,
    osImages,
    registry,
    bootstrap,
  ];
  // An empty folder is closed before anything is put into it.
  const isEmpty = (await files.list(directory)).length === 0;
  for (const path of [directory, ...parts, folderOf(host("x")), `${directory}/etcd`]) {
    const { uid: owner, mode, kind } = (await files.stat(path)) ?? { uid, mode: 0, kind: "other" };
    if (owner !== uid && owner !== 0) throw new McoError("MCO_CLUSTER_FOLDER_FOREIGN", { path, owner });
    // The mode of a link says nothing.
    if (!isEmpty && kind !== "symlink" && (mode & writableByOthers) !== 0)
      throw new McoError("MCO_CLUSTER_FOLDER_FOREIGN", { path, mode: (mode & 0o777).toString(8) });
  }
}

/** The parts of a cluster in its folder. Its identity is none: a cluster goes on with nothing in it. */
const partsOf = ({ directory, ...layout }: Layout): readonly string[] => [
  layout.record,
  layout.kubeconfig,
  ...["", "-wal", "-shm", "-journal"].map((suffix) => `${layout.store}${suffix}`),
  layout.pki,
  folderOf(layout.bundle),
  layout.logs,
  layout.osImages,
  layout.registry,
  layout.bootstrap,
  layout.hosts,
  ...["etcd", "control.sock", "audit-policy.json", "kube-controller-manager", "kube-scheduler"].map(
    (name) => `${directory}/${name}`,
  ),
];

/** A part of a cluster that is in a folder; `undefined`: `mco up` would make a new cluster there. */
export async function partOfCluster(files: Pick<Files, "stat">, layout: Layout): Promise<string | undefined> {
  for (const path of partsOf(layout)) if ((await files.stat(path)) !== undefined) return path;
  return undefined;
}

/**
 * Removes a cluster from its folder, and the folder once nothing else is in it: a user may have named one with files of
 * their own.
 *
 * @returns the paths that stay, none if the folder is gone. The caller has checked that the cluster has ended, and is the user's.
 */
export async function removeCluster(files: Pick<Files, "remove" | "list">, layout: Layout): Promise<readonly string[]> {
  const { directory } = layout;
  for (const path of [...partsOf(layout), layout.identity]) await files.remove(path);
  const left = await files.list(directory);
  if (left.length === 0) await files.remove(directory);
  return left.map((name) => `${directory}/${name}`);
}

/**
 * Refuses a folder with a symbolic link where a cluster writes: its author would choose which file of the user is
 * written, or removed. Links above the folder are the user's own. The file systems of machines, images and pods have
 * links of their own, which their writers check.
 *
 * @throws McoError `MCO_CLUSTER_FOLDER_LINK`
 */
export async function refuseLinks(files: Pick<Files, "stat" | "list" | "readLink">, layout: Layout): Promise<void> {
  const { directory, identity, pki, bundle, logs, registry, bootstrap, hosts, osImages } = layout;
  for (const path of [directory, identity, ...partsOf(layout)]) await refuseLink(path);
  for (const folder of [pki, folderOf(bundle), logs, registry, bootstrap, hosts, osImages, `${directory}/etcd`])
    for (const name of await namesIn(folder)) await refuseLink(`${folder}/${name}`);
  for (const host of await namesIn(hosts))
    for (const name of await namesIn(layout.host(host)))
      await refuseLink(`${layout.host(host)}/${name}`, rootOfMachine);

  async function namesIn(folder: string): Promise<readonly string[]> {
    return (await files.stat(folder))?.kind === "directory" ? files.list(folder) : [];
  }
  async function refuseLink(path: string, allowed?: RegExp): Promise<void> {
    if ((await files.stat(path))?.kind !== "symlink") return;
    const target = (await files.readLink(path)) ?? "";
    if (allowed?.test(`${nameOf(path)} ${target}`) !== true)
      throw new McoError("MCO_CLUSTER_FOLDER_LINK", { path, target });
  }
}

/** The one link that a machine's folder has: to the deployment that it runs. */
const rootOfMachine = /^rootfs sysroot\/deploy\/[\w.]*\w$/;

const writableByOthers = 0o022;
const folderOf = (path: string) => path.slice(0, path.lastIndexOf("/"));
const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Whether `mco up` makes this name itself before it has a record. */
const isOurs = ({ bundle, identity, logs, osImages, pki }: Layout, name: string) =>
  [identity, logs, osImages, pki, folderOf(bundle)].map(nameOf).includes(name);
