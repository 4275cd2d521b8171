import { mkdir, mkdtemp, readFile, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hostPaths } from "../../../api/names.ts";
import { directoryMachine } from "../../../host/directory/directory-host.ts";
import { machineFiles } from "../../../host/directory/machine-files.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import { memoryJournal } from "../../../ports/journal.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import { enterCluster } from "./enter-cluster.ts";

const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const kubeconfig = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  "current-context": "c",
  clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1", "certificate-authority-data": btoa(pem) } }],
  users: [{ name: "u", user: { token: "a-token" } }],
  contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
});

test("a link of the configuration does not lead a machine's key out of its folder [cluster-enter-1]", async () => {
  const top = await mkdtemp(join(tmpdir(), "mco-enter-"));
  onTestFinished(() => rm(top, { recursive: true, force: true }));
  const [tree, alice, directory] = [join(top, "tree"), join(top, "alice"), join(top, "hosts/w1")];
  for (const folder of [join(tree, "usr/etc"), alice, directory]) await mkdir(folder, { recursive: true });
  const machine = directoryMachine({ directory, images: { treeOf: async () => tree, fetch: async () => undefined } });
  await machine.provision({ image: "x", kernelArguments: [], packages: [], kernelType: "default" });
  const pki = join(directory, "sysroot/var/lib/kubelet/pki");
  await mkdir(dirname(pki), { recursive: true });
  await symlink(alice, pki);
  const files = machineFiles(directory);
  await files.write(hostPaths.kubeconfig, kubeconfig, { mode: 0o600 });
  const kube = {
    get: async () => ({ status: { certificate: btoa(pem) } }),
  } as unknown as KubeClient;
  const entered = await enterCluster(
    {
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      journal: memoryJournal(),
      nodeName: "w1",
      address: "127.0.0.2",
      files,
      connect: () => kube,
      clientCa: pem,
    },
    () => undefined,
    new AbortController().signal,
  );
  expect(entered).toBe(kube);
  expect(await readdir(alice)).toEqual([]);
  // Where the link leads on the machine.
  const kept = join(directory, "rootfs", alice, "kubelet-client-current.pem");
  expect(await readFile(kept, "utf8")).toContain("PRIVATE KEY");
});
