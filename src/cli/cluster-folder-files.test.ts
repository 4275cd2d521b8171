import { rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { currentClusterFolder } from "../../test/support/current-cluster-folder.ts";
import { systemFiles } from "../ports/node/index.ts";
import { commands } from "./commands.ts";
import { connect } from "./connect.ts";
import { localAddresses } from "./local-cluster.ts";

const record = { v: 1, network: "127.9.9", supervisor: { pid: 1, startTime: "0" }, processes: [], hosts: [] };
const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: "https://127.9.9.1:6443" } }]
users: [{ name: u, user: { token: t } }]
`;

/** A current folder with a `.mco` like that of a cluster, recorded as by `mco up`, in which one file is another one. */
async function withFile(name: string, change: (path: string) => Promise<unknown>): Promise<string> {
  const cluster = await currentClusterFolder({ kubeconfig, record: JSON.stringify(record), isRecorded: true });
  const other = join(cluster, "../other");
  await writeFile(other, name === "kubeconfig" ? kubeconfig : JSON.stringify(record), { mode: 0o600 });
  const path = join(cluster, name);
  await rm(path);
  await change(path);
  return cluster;
}

const refused = { code: "MCO_CLUSTER_FILE_UNREADABLE" };
/** Links are refused as such where the folder is the user's own by its record. */
const refusedByRecord = { code: expect.stringMatching(/^MCO_CLUSTER_(?:FILE_UNREADABLE|FOLDER_LINK)$/) as string };
const strange: readonly { readonly is: string; readonly change: (path: string) => Promise<unknown> }[] = [
  { is: "a link to another file", change: (path) => symlink("../other", path) },
  { is: "a link to a device without end", change: (path) => symlink("/dev/zero", path) },
  {
    is: "too large",
    change: async (path) => {
      await writeFile(path, "", { mode: 0o600 });
      await truncate(path, 64 * 1024 * 1024);
    },
  },
];

test.for(strange)("no command reads a kubeconfig of a folder that is $is [cli-folder-files-1]", async ({ change }) => {
  const cluster = await withFile("kubeconfig", change);
  await expect(connect({ component: "test" })).rejects.toMatchObject(refusedByRecord);
  await expect(connect({ directory: cluster, component: "test" })).rejects.toMatchObject(refused);
});

test.for([
  ...strange,
  // Its text is somebody's secret.
  { is: "no JSON", change: (path: string) => writeFile(path, "secret", { mode: 0o600 }) },
  ...[
    {},
    { ...record, supervisor: { pid: -1 } },
    { ...record, supervisor: { pid: -1, startTime: "1" } },
    { ...record, supervisor: { pid: 0, startTime: "1" } },
    { ...record, supervisor: { pid: 1.5, startTime: "1" } },
    { ...record, supervisor: { pid: 4_000_000 } },
    { ...record, processes: [{ name: "etcd", pid: -2, startTime: "1" }] },
    { ...record, processes: [null] },
    { ...record, network: "10.0.0" },
    { ...record, hosts: [{ name: "../../x", pool: "worker", index: 0 }] },
  ].map((other) => ({
    is: JSON.stringify(other).slice(-70),
    change: (path: string) => writeFile(path, JSON.stringify(other), { mode: 0o600 }),
  })),
])("no command takes a record of a cluster that is $is [cli-folder-files-2]", async ({ change }) => {
  const cluster = await withFile("cluster.json", change);
  for (const args of [[], ["--dir", cluster]]) {
    const { run } = (await commands["down"]?.load()) ?? {};
    const error: unknown = await run?.(args).catch((one: unknown) => one);
    expect(error).toMatchObject(refusedByRecord);
    expect(String(error)).not.toContain("secret");
  }
  // Where nobody named the folder, and the connection is another one, it is no cluster's.
  expect(await localAddresses(systemFiles, "https://127.9.9.1:6443", {})).toBeUndefined();
});
