import { chmod, chown, cp, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { currentClusterFolder } from "../../test/support/current-cluster-folder.ts";
import { git } from "../../test/support/git.ts";
import { temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import { layoutOf } from "../standin/index.ts";
import { startTimeOf } from "../standin/cluster/up.ts";
import { systemFiles } from "../ports/node/index.ts";
import { run as down } from "./commands/down.ts";
import { run as host } from "./commands/host.ts";
import { run as up } from "./commands/up.ts";
import { connect } from "./connect.ts";
import { takeGlobalFlags } from "./global-flags.ts";
import { recordFolder } from "./own-folder.ts";

const isRoot = process.getuid?.() === 0;

/** A kubeconfig that sends what it reads to an address of somebody's choice. */
const kubeconfigWith = (user: string, cluster = '{ server: "https://127.0.0.1:1" }') => `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: ${cluster} }]
users: [{ name: u, user: ${user} }]
`;

/** A current folder with a `.mco` like that of a cluster, as a command without flags finds it, recorded as by `mco up`. */
const inFolder = (user: string, server?: string, isRecorded = true): Promise<string> =>
  currentClusterFolder({ kubeconfig: kubeconfigWith(user, server), record: "{}", isRecorded });

const component = "test";
const plugin = "{ exec: { command: /bin/false, apiVersion: client.authentication.k8s.io/v1 } }";

test("a command takes the cluster of the current folder [cli-implicit-folder-1]", async () => {
  await inFolder("{ token: t }");
  const { connection, close } = await connect({ component });
  close();
  expect(connection).toMatchObject({ server: "https://127.0.0.1:1", token: "t" });
});

test("a command runs no plug-in of a kubeconfig that nobody named [cli-implicit-folder-2]", async () => {
  const cluster = await inFolder(plugin);
  const refused = { code: "MCO_KUBECONFIG_INVALID", facts: { problem: expect.stringContaining("plug-in") as string } };
  await expect(connect({ component })).rejects.toMatchObject(refused);
  await expect(connect({ directory: cluster, component })).rejects.toMatchObject(refused);
  // One that its user names is run, as by kubectl.
  const { connection, close } = await connect({ kubeconfig: join(cluster, "kubeconfig"), component });
  close();
  expect(connection.exec?.command).toBe("/bin/false");
});

test.for<{ title: string; user?: string; cluster?: string; problem: string }>([
  { title: "a file as token", user: "{ tokenFile: /etc/hostname }", problem: "a file" },
  { title: "a file as key", user: "{ client-key: /etc/hostname }", problem: "a file" },
  { title: "a file as certificate", user: "{ client-certificate: /etc/hostname }", problem: "a file" },
  {
    title: "a file as authority",
    cluster: '{ server: "https://127.0.0.1:1", certificate-authority: /etc/hostname }',
    problem: "a file",
  },
  { title: "a server on another machine", cluster: '{ server: "https://192.0.2.1:6443" }', problem: "192.0.2.1" },
  {
    title: "a server by a name",
    cluster: '{ server: "https://127.0.0.1.example.com" }',
    problem: "127.0.0.1.example.com",
  },
  {
    title: "a server behind a user's name",
    cluster: '{ server: "https://127.0.0.1@192.0.2.1" }',
    problem: "192.0.2.1",
  },
  { title: "a server without TLS", cluster: '{ server: "http://127.0.0.1:1" }', problem: "127.0.0.1" },
  { title: "no address", cluster: '{ server: "127.0.0.1:1" }', problem: "127.0.0.1" },
])(
  "a kubeconfig that nobody named is not taken with $title [cli-implicit-folder-6]",
  async ({ user, cluster, problem }) => {
    const folder = await inFolder(user ?? "{ token: t }", cluster);
    const refused = { code: "MCO_KUBECONFIG_INVALID", facts: { problem: expect.stringContaining(problem) as string } };
    await expect(connect({ component })).rejects.toMatchObject(refused);
    await expect(connect({ directory: folder, component })).rejects.toMatchObject(refused);
  },
);

test("of the files that it names none is read [cli-implicit-folder-7]", async () => {
  // Reading a folder fails as such: a file that is read would be another error.
  await inFolder("{ client-key: / }");
  await expect(connect({ component })).rejects.toMatchObject({ code: "MCO_KUBECONFIG_INVALID" });
});

test.for([
  {
    title: "has no record of mco up",
    change: (cluster: string) => rm(join(cluster, "cluster.json")),
    code: "MCO_KUBECONFIG_INVALID",
  },
  { title: "a group may change", change: (cluster: string) => chmod(cluster, 0o770) },
  { title: "everybody may change", change: (cluster: string) => chmod(cluster, 0o777) },
  {
    title: "has a kubeconfig that a group may change",
    change: (cluster: string) => chmod(join(cluster, "kubeconfig"), 0o660),
  },
])("a command takes no cluster of a folder that $title [cli-implicit-folder-3]", async ({ change, code }) => {
  await change(await inFolder("{ token: t }"));
  await expect(connect({ component })).rejects.toMatchObject({ code: code ?? "MCO_CLUSTER_FOLDER_FOREIGN" });
});

test.skipIf(!isRoot).for(["", "kubeconfig", "cluster.json"])(
  "a command takes no cluster of a folder of which another user has a part: %s [cli-implicit-folder-4]",
  async (part) => {
    const cluster = await inFolder("{ token: t }");
    await chown(join(cluster, part), 1234, 1234);
    await expect(connect({ component })).rejects.toMatchObject({ code: "MCO_CLUSTER_FOLDER_FOREIGN" });
  },
);

test("nor of one to which a link leads: its author would choose which cluster of the user a command ends [cli-implicit-folder-5]", async () => {
  const cluster = await inFolder("{ token: t }");
  await rename(cluster, `${cluster}-moved`);
  await symlink(`${cluster}-moved`, cluster);
  await recordFolder(layoutOf(`${cluster}-moved`));
  const refused = { code: "MCO_CLUSTER_FOLDER_LINK", facts: { path: cluster, target: `${cluster}-moved` } };
  await expect(connect({ component })).rejects.toMatchObject(refused);
  for (const run of [up, down, host]) await expect(run([])).rejects.toMatchObject(refused);
});

describe("a folder that came with a repository", () => {
  const unrecorded = (directory: string) => ({
    code: "MCO_CLUSTER_FOLDER_UNRECORDED",
    facts: { directory, part: join(directory, "cluster.json") },
  });

  test("is used by no command of the current folder [cli-implicit-folder-8]", async () => {
    const cluster = await inFolder("{ token: t }", undefined, false);
    await expect(connect({ component })).rejects.toMatchObject(unrecorded(cluster));
    for (const run of [up, down, host]) await expect(run([])).rejects.toMatchObject(unrecorded(cluster));
    await expect(down(["--purge"])).rejects.toMatchObject(unrecorded(cluster));
    // The remedies: its kubeconfig by name, and the record.
    (await connect({ kubeconfig: join(cluster, "kubeconfig"), component })).close();
    await recordFolder(layoutOf(cluster));
    (await connect({ component })).close();
  });

  test("is none of the user's with a copy of all that a recorded one has [cli-implicit-folder-9]", async () => {
    const cluster = await inFolder("{ token: t }");
    const copy = join(cluster, "../clone/.mco");
    await mkdir(join(copy, ".."));
    await cp(cluster, copy, { recursive: true });
    process.chdir(join(copy, ".."));
    await expect(connect({ component })).rejects.toMatchObject(unrecorded(copy));
    // Nor at the path of the recorded one.
    await rm(cluster, { recursive: true });
    await mkdir(`${cluster}-other`);
    await rename(copy, cluster);
    process.chdir(join(cluster, ".."));
    await expect(connect({ component })).rejects.toMatchObject(unrecorded(cluster));
  });

  test("is none of the user's with the number of the removed folder [cli-implicit-folder-10]", async () => {
    const cluster = await inFolder("{ token: t }");
    // As where a file system gives the number again: the folder is another one, without the secret.
    await rm(join(cluster, "folder-id"));
    await expect(connect({ component })).rejects.toMatchObject(unrecorded(cluster));
    await writeFile(join(cluster, "folder-id"), "guessed", { mode: 0o600 });
    await expect(connect({ component })).rejects.toMatchObject(unrecorded(cluster));
  });

  test("is recorded by mco up --adopt, also while its cluster runs [cli-implicit-folder-11]", async () => {
    const cluster = await inFolder("{ token: t }", undefined, false);
    const supervisor = { pid: process.pid, startTime: await startTimeOf(systemFiles, process.pid) };
    const record = { v: 1, version: "0", network: "127.1.1", supervisor, processes: [], hosts: [] };
    await writeFile(join(cluster, "cluster.json"), JSON.stringify(record));
    await expect(up([])).rejects.toMatchObject(unrecorded(cluster));
    expect(await up(["--adopt"])).toBe(0);
    (await connect({ component })).close();
    await expect(up([])).rejects.toMatchObject({ code: "MCO_CLUSTER_RUNNING" });
  });

  test.for([
    "pki",
    "kube-scheduler",
    "audit-policy.json",
    "store.db",
    "store.db-wal",
    "hosts",
    "logs/up.log",
    "hosts/worker-0",
    "hosts/worker-0/state.json",
  ])("is not adopted with a link at %s [cli-implicit-folder-12]", async (part) => {
    const cluster = await inFolder("{ token: t }", undefined, false);
    await mkdir(join(cluster, part, ".."), { recursive: true, mode: 0o700 });
    await symlink("/etc", join(cluster, part));
    const refused = { code: "MCO_CLUSTER_FOLDER_LINK", facts: { path: join(cluster, part), target: "/etc" } };
    await expect(up(["--adopt"])).rejects.toMatchObject(refused);
    await expect(down([])).rejects.toMatchObject(refused);
  });

  test("has in a machine's folder the link to its deployment, and no other [cli-implicit-folder-13]", async () => {
    const cluster = await inFolder("{ token: t }");
    const machine = join(cluster, "hosts/worker-0");
    await mkdir(machine, { recursive: true, mode: 0o700 });
    await symlink("sysroot/deploy/16c0fce353584f1c.0", join(machine, "rootfs"));
    (await connect({ component })).close();
    await rm(join(machine, "rootfs"));
    await symlink("sysroot/deploy/../../../../../..", join(machine, "rootfs"));
    await expect(connect({ component })).rejects.toMatchObject({ code: "MCO_CLUSTER_FOLDER_LINK" });
  });
});

describe("a folder in the work tree of a repository", () => {
  /** The clone of a repository that ignores `.mco`, as the current folder, and what its author commits next. */
  async function clone() {
    const cluster = await inFolder("{ token: t }");
    const author = await temporaryFolder();
    const workTree = join(cluster, "..");
    await git(author, "init", "--quiet");
    await writeFile(join(author, ".gitignore"), ".mco/\n");
    await git(author, "add", ".gitignore");
    await git(author, "commit", "--quiet", "--message", "ignore");
    await git(workTree, "init", "--quiet");
    await git(workTree, "pull", "--quiet", author, "main");
    return {
      cluster,
      workTree,
      commit: async () => {
        await mkdir(join(author, ".mco/bin"), { recursive: true });
        await writeFile(join(author, ".mco/bin/mco.mjs"), "the author's");
        await writeFile(join(author, ".mco/kubeconfig"), kubeconfigWith("{ token: author }"));
        await git(author, "add", "--force", ".mco");
        await git(author, "commit", "--quiet", "--message", "a change");
      },
      pull: () => git(workTree, "pull", "--quiet", author, "main"),
    };
  }
  const refused = (directory: string, workTree: string) => ({
    code: "MCO_CLUSTER_FOLDER_WORK_TREE",
    facts: { directory, workTree },
  });

  test("is used by no command, recorded or not: a pull replaces what is in it [cli-work-trees-1]", async () => {
    const { cluster, workTree, commit, pull } = await clone();
    await commit();
    await pull();
    expect(await readFile(join(cluster, "bin/mco.mjs"), "utf8")).toBe("the author's");
    await expect(connect({ component })).rejects.toMatchObject(refused(cluster, workTree));
    for (const run of [up, down, host]) await expect(run([])).rejects.toMatchObject(refused(cluster, workTree));
  });

  test("gets no cluster, and no folder for one [cli-work-trees-2]", async () => {
    const { cluster, workTree } = await clone();
    const other = join(workTree, "below/clusters/one");
    await expect(up(["--dir", other])).rejects.toMatchObject(refused(other, workTree));
    expect(await systemFiles.stat(join(workTree, "below"))).toBeUndefined();
    await rm(cluster, { recursive: true });
    await expect(up([])).rejects.toMatchObject(refused(cluster, workTree));
    expect(await systemFiles.stat(cluster)).toBeUndefined();
    // No cluster is there for these.
    expect(await down([])).toBe(0);
  });

  test("is used once its user trusts the authors, and they are those of that work tree alone [cli-work-trees-3]", async () => {
    const { cluster, workTree } = await clone();
    const supervisor = { pid: process.pid, startTime: await startTimeOf(systemFiles, process.pid) };
    const record = { v: 1, version: "0", network: "127.1.1", supervisor, processes: [], hosts: [] };
    await writeFile(join(cluster, "cluster.json"), JSON.stringify(record));
    expect(await up(["--adopt"])).toBe(0);
    (await connect({ component })).close();
    await expect(up([])).rejects.toMatchObject({ code: "MCO_CLUSTER_RUNNING" });
    await rename(join(workTree, ".git"), join(cluster, ".git"));
    await expect(connect({ component })).rejects.toMatchObject(refused(cluster, cluster));
  });
});

describe("mco down --purge", () => {
  /** The folder of a cluster that has ended. */
  async function ofEndedCluster(): Promise<string> {
    const cluster = await inFolder("{ token: t }");
    const supervisor = { pid: process.pid, startTime: "1" };
    const record = { v: 1, version: "0", network: "127.1.1", supervisor, processes: [], hosts: [] };
    await writeFile(join(cluster, "cluster.json"), JSON.stringify(record));
    return cluster;
  }
  const exists = (path: string) => systemFiles.stat(path).then((stat) => stat !== undefined);

  test("removes the folder of a cluster, and what is recorded of it [cli-down-purge-1]", async () => {
    const cluster = await ofEndedCluster();
    await mkdir(join(cluster, "hosts/worker-0/rootfs"), { recursive: true });
    expect(await down(["--purge"])).toBe(0);
    expect(await exists(cluster)).toBe(false);
    expect(await down(["--purge"])).toBe(0);
  });

  test("leaves files that are not the cluster's [cli-down-purge-2]", async () => {
    const cluster = await ofEndedCluster();
    await writeFile(join(cluster, "notes.txt"), "mine");
    expect(await down(["--purge"])).toBe(0);
    expect(await systemFiles.list(cluster)).toEqual(["notes.txt"]);
  });

  test("leaves a folder that has no cluster as it is [cli-down-purge-3]", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "documents"));
    expect(await down(["--purge", "--dir", folder])).toBe(0);
    expect(await systemFiles.list(folder)).toEqual(["documents"]);
  });
});

test("a context that a pod without a kubeconfig cannot have is refused, and not left out [cli-pod-context-1]", async () => {
  const root = await temporaryFolder();
  const folder = join(root, "var/run/secrets/kubernetes.io/serviceaccount");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "token"), "t");
  for (const [name, value] of Object.entries({ MCO_POD_ROOT: root, KUBECONFIG: "" })) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  takeGlobalFlags(["--context", "here"], {
    kind: "people",
    flags: [{ flag: "--kubeconfig", value: "FILE", text: "" }],
  });
  onTestFinished(() => void takeGlobalFlags([], { kind: "people" }));
  await expect(connect({ component })).rejects.toThrow("there is no context here: this pod has its service account");
});
