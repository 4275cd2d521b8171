import { chmod, chown, mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { sqliteStore } from "../apiserver/node/sqlite-store.ts";
import { systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { temporaryFolder } from "../../../test/support/registry/pull-harness.ts";
import { deriveKey } from "../registry/node/derive-key.ts";
import { clusterRegistry } from "./cluster-registry.ts";
import { clusterCredentials, hostCredentials } from "./credentials.ts";
import { kubernetesProcesses } from "./kubernetes-processes.ts";
import { addressesOf, layoutOf, networkFor } from "./layout.ts";
import { protectFolder, refuseForeignFolder } from "./protect-folder.ts";

const isRoot = process.getuid?.() === 0;

/** Everything that writes keys, tokens or objects into the folder of a cluster. */
async function writeCluster(directory: string): Promise<void> {
  const layout = layoutOf(directory);
  const addresses = addressesOf(networkFor(directory, 0));
  const ports = { files: systemFiles, clock: systemClock, random: systemRandom };
  await protectFolder(systemFiles, layout);
  const credentials = await clusterCredentials({ ...ports, layout, addresses });
  await clusterRegistry({ ...ports, layout, addresses, deriveKey });
  await kubernetesProcesses({ ...ports, layout, addresses, credentials, binaries: "/bin" });
  await hostCredentials(systemFiles, layout, credentials, { name: "worker-0", address: addresses.host(0) });
  await systemFiles.write(layout.record, "{}");
  const store = sqliteStore({ file: layout.store });
  store.create({ resource: "secrets", namespace: "a", name: "b" }, '{"data":{"password":"hunter2"}}');
  onTestFinished(() => store.close());
}

/** Paths below a folder that other users can open: no folder above is closed to them, and the mode lets them. */
async function openToOthers(folder: string, below = ""): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    const { mode } = await stat(join(folder, path));
    if (entry.isDirectory()) {
      if ((mode & 0o011) !== 0) found.push(...(await openToOthers(folder, path)));
    } else if ((mode & 0o077) !== 0) found.push(path);
  }
  return found;
}

describe("the folder of a cluster", () => {
  test("hides keys, tokens and objects from other users [cluster-folder-1]", async () => {
    const oldMask = process.umask(0o000);
    onTestFinished(() => void process.umask(oldMask));
    const directory = join(await temporaryFolder(), "cluster");
    await writeCluster(directory);
    expect((await stat(directory)).mode & 0o777).toBe(isRoot ? 0o711 : 0o700);
    const open = await openToOthers(directory);
    // The cluster's settings and its audit policy are not secret, and hold no token.
    expect(open.filter((path) => !["audit-policy.json", "cluster.json"].includes(path))).toEqual([]);
    for (const path of open) expect(await readFile(join(directory, path), "utf8")).not.toMatch(/PRIVATE KEY|token/);
    for (const path of ["store.db", "store.db-wal", "kubeconfig", "pki/tokens.key", "pki/cluster-ca.key"])
      expect((await stat(join(directory, path))).mode & 0o777, path).toBe(0o600);
    for (const path of ["pki", "logs", "registry"])
      expect((await stat(join(directory, path))).mode & 0o777, path).toBe(0o700);
  });

  test("of an earlier release is closed, with its contents [cluster-folder-2]", async () => {
    const directory = join(await temporaryFolder(), "cluster");
    await writeCluster(directory);
    const names = await readdir(directory, { recursive: true });
    for (const path of ["", ...names]) {
      const at = join(directory, path);
      await chmod(at, (await stat(at)).isDirectory() ? 0o755 : 0o644);
    }
    await protectFolder(systemFiles, layoutOf(directory));
    expect((await openToOthers(directory)).filter((path) => path !== "audit-policy.json")).toEqual([]);
    expect((await stat(directory)).mode & 0o777).toBe(isRoot ? 0o711 : 0o700);
  });

  test("that holds other files keeps its mode [cluster-folder-3]", async () => {
    const directory = await temporaryFolder();
    await chmod(directory, 0o755);
    await mkdir(join(directory, "src"));
    await protectFolder(systemFiles, layoutOf(directory));
    expect((await stat(directory)).mode & 0o777).toBe(0o755);
    expect((await stat(join(directory, "logs"))).mode & 0o777).toBe(0o700);
  });

  test("has a store that its server closes to others on opening, with the files of SQLite beside it [cluster-folder-4]", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "store.db");
    const first = sqliteStore({ file });
    first.create({ resource: "a", namespace: "", name: "b" }, "{}");
    first.close();
    for (const name of ["store.db", "store.db-wal", "store.db-shm"]) {
      await writeFile(join(folder, name), "", { flag: "a" });
      await chmod(join(folder, name), 0o644);
    }
    const store = sqliteStore({ file });
    onTestFinished(() => store.close());
    store.create({ resource: "a", namespace: "", name: "c" }, "{}");
    for (const name of await readdir(folder)) expect((await stat(join(folder, name))).mode & 0o077, name).toBe(0);
  });

  test.for(["", "pki", "cluster.json", "kubeconfig"])(
    "is not taken as it is where a group or everybody may change it: %s [cluster-folder-6]",
    async (part) => {
      const directory = join(await temporaryFolder(), "cluster");
      await mkdir(join(directory, "pki"), { recursive: true });
      for (const name of ["cluster.json", "kubeconfig"]) await writeFile(join(directory, name), "{}");
      const refused = () => refuseForeignFolder(systemFiles, layoutOf(directory), process.geteuid?.() ?? 0);
      await refused();
      for (const mode of [0o770, 0o707]) {
        await chmod(join(directory, part), mode);
        await expect(refused()).rejects.toMatchObject({ code: "MCO_CLUSTER_FOLDER_FOREIGN" });
      }
      await chmod(join(directory, part), 0o700);
      await refused();
    },
  );

  test("that is empty may be open to a group: it is closed before it holds anything [cluster-folder-7]", async () => {
    const directory = join(await temporaryFolder(), "cluster");
    await mkdir(directory);
    await chmod(directory, 0o775);
    await refuseForeignFolder(systemFiles, layoutOf(directory), process.geteuid?.() ?? 0);
    await protectFolder(systemFiles, layoutOf(directory));
    expect((await stat(directory)).mode & 0o022).toBe(0);
  });

  test.skipIf(!isRoot).for(["", "pki", "cluster.json", "hosts"])(
    "is not taken from another user, who put something there before: %s [cluster-folder-5]",
    async (part) => {
      const directory = join(await temporaryFolder(), "cluster");
      await mkdir(directory);
      await mkdir(join(directory, "pki"));
      const refused = () => refuseForeignFolder(systemFiles, layoutOf(directory), 0);
      await refused();
      if (part !== "" && part !== "pki") await writeFile(join(directory, part), "{}");
      await refused();
      await chown(join(directory, part), 1234, 1234);
      await expect(refused()).rejects.toMatchObject({ code: "MCO_CLUSTER_FOLDER_FOREIGN", facts: { owner: 1234 } });
      // Whose it is may go on with it.
      await refuseForeignFolder(systemFiles, layoutOf(directory), 1234);
    },
  );
});
