import { expect, test } from "vitest";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { hostPaths, namespace, objects } from "../api/names.ts";
import { certificateController } from "./certificate-controller.ts";
import { documentStore } from "./machine-documents.ts";
import { readConfig } from "../core/machine/read-config.ts";
import type { Host } from "../host/host.ts";
import { type MemoryHost, memoryHost } from "../../test/support/hosts/memory-host.ts";
import { encodeBase64 } from "../ignition/data-url.ts";
import { runControllers } from "../kube/controller.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import { selfSigned } from "../../test/support/self-signed.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { images, machineConfigOf } from "../../test/support/machine-harness.ts";

const { signal } = new AbortController();
const base64 = (text: string) => encodeBase64(new TextEncoder().encode(text));
const certsD = (registry: string) => `${hostPaths.registryCas}/${registry}/ca.crt`;
const textAt = async (host: Host, path: string) => {
  const entry = await host.files.read(path, signal);
  return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : undefined;
};

/** One machine with its writer of certificates, in virtual time. */
async function start(prepare: (host: MemoryHost) => Promise<void> = () => Promise.resolve()) {
  const kernel = new Kernel(5);
  const host = memoryHost({
    images,
    image: "os@sha256:1",
    kernelArguments: [],
    random: kernel.random,
    onReboot: () => undefined,
  });
  const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
  await kernel.complete(kube.apply(kubernetes.Namespace, { metadata: { name: namespace } }, { owner: "test" }), 60_000);
  await prepare(host);
  const writes: string[] = [];
  const removed: string[] = [];
  const restarts: string[] = [];
  /** Fails the n-th effect on the machine from now. */
  let failAt = 0;
  const effect = () => {
    failAt -= 1;
    if (failAt === 0) throw new Error("the machine is out of order");
  };
  const watched: Host = {
    ...host,
    units: {
      ...host.units,
      state: () => Promise.resolve(new Map([["kubelet.service", { enablement: "enabled", activity: "active" }]])),
      restart: (unit) => {
        restarts.push(unit);
        return Promise.resolve();
      },
    },
    ledger: { ...host.ledger, write: async (...given) => (effect(), host.ledger.write(...given)) },
    files: {
      ...host.files,
      write: async (entries, until) => {
        effect();
        writes.push(...entries.map(({ path }) => path));
        return host.files.write(entries, until);
      },
      remove: async (path, until) => {
        effect();
        removed.push(path);
        return host.files.remove(path, until);
      },
    },
  };
  const journal = memoryJournal();
  const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal };
  const stopping = new AbortController();
  void runControllers(
    [certificateController({ host: watched, nodeName: "worker-0" })],
    { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "test" }) },
    stopping.signal,
  );
  const name = objects.controllerConfig;
  const say = async (spec: Partial<ControllerConfig["spec"]>) => {
    const base = {
      clusterDNSIP: "",
      cloudProviderConfig: "",
      kubeAPIServerServingCAData: "",
      rootCAData: "",
      cloudProviderCAData: null,
      additionalTrustBundle: null,
      images: {},
      baseOSContainerImage: "",
      releaseImage: "",
      proxy: null,
      infra: null,
      dns: null,
      ipFamilies: "IPv4" as const,
    };
    await kernel.complete(
      kube.apply(ControllerConfig, { metadata: { name }, spec: { ...base, ...spec } }, { owner: "test", force: true }),
      60_000,
    );
    await kernel.run({ until: () => false, maxMs: 60_000 });
  };
  return {
    kernel,
    host,
    kube,
    journal,
    writes,
    removed,
    restarts,
    say,
    pass: (ms: number) => kernel.run({ until: () => false, maxMs: ms }),
    failNext: (effects: number) => (failAt = effects),
    stop: () => stopping.abort(new Error("the test is over")),
  };
}

test("a machine gets changed authorities at once, and writes only files that differ [daemon-certificates-2]", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  const { host, say, writes, stop } = await start();
  await say({
    kubeAPIServerServingCAData: base64(one),
    imageRegistryBundleUserData: [{ file: "r.example.com..5000", data: base64(one) }],
  });
  expect(await textAt(host, hostPaths.kubeletCa)).toBe(one);
  expect(await textAt(host, certsD("r.example.com:5000"))).toBe(one);
  expect(writes.splice(0).sort()).toEqual([certsD("r.example.com:5000"), hostPaths.kubeletCa]);
  await say({
    kubeAPIServerServingCAData: base64(two),
    imageRegistryBundleUserData: [{ file: "r.example.com..5000", data: base64(one) }],
    clusterDNSIP: "10.0.0.10",
  });
  expect(await textAt(host, hostPaths.kubeletCa)).toBe(two);
  expect(writes.splice(0)).toEqual([hostPaths.kubeletCa]);
  await say({
    kubeAPIServerServingCAData: base64(two),
    imageRegistryBundleUserData: [{ file: "r.example.com..5000", data: base64(one) }],
    clusterDNSIP: "10.0.0.11",
  });
  expect(writes).toEqual([]);
  stop();
});

test("the machine's book reports each written file and each failure once", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  const { journal, say, pass, failNext, stop } = await start();
  await say({ kubeAPIServerServingCAData: base64(one) });
  await pass(1_800_000);
  failNext(1);
  await say({ kubeAPIServerServingCAData: base64(two) });
  await pass(1_800_000);
  expect(journal.lines.map(({ book, chapter, mark, reason }) => `${book} ${chapter} ${mark} ${reason}`)).toEqual(
    ["end CertificatesWritten", "fail CertificatesFailed", "end CertificatesWritten"].map(
      (word) => `node/worker-0 Certificates ${word}`,
    ),
  );
  expect(journal.lines[0]?.data).toEqual({ written: hostPaths.kubeletCa });
  stop();
});

test("the next pass repairs an edit on the disk, and keeps mode and owner [daemon-certificates-1]", async () => {
  const one = await selfSigned("CN=one");
  const { host, say, pass, stop } = await start();
  await say({ kubeAPIServerServingCAData: base64(one), internalRegistryPullSecret: base64("{}") });
  const changed = (path: string) =>
    host.files.write(
      [{ path, entry: { kind: "file", contents: new TextEncoder().encode("theirs"), mode: 0o640, uid: 0, gid: 10 } }],
      signal,
    );
  await changed(hostPaths.kubeletCa);
  await changed(hostPaths.internalPullSecret);
  await pass(700_000);
  expect(await textAt(host, hostPaths.kubeletCa)).toBe(one);
  expect(await host.files.read(hostPaths.kubeletCa, signal)).toMatchObject({ mode: 0o640, gid: 10 });
  // Credentials are root's alone, whoever made the file.
  expect(await textAt(host, hostPaths.internalPullSecret)).toBe("{}\n");
  expect(await host.files.read(hostPaths.internalPullSecret, signal)).toMatchObject({ mode: 0o600, gid: 0 });
  stop();
});

test("a registry's certificate goes with the cluster's; foreign ones and a MachineConfig's stay [daemon-certificates-5]", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  const named = certsD("configured");
  const { host, say, removed, writes, stop } = await start(async (on) => {
    await on.files.write(
      [
        {
          path: certsD("by-hand"),
          entry: { kind: "file", contents: new TextEncoder().encode("by hand"), mode: 0o644, uid: 0, gid: 0 },
        },
      ],
      signal,
    );
    const previous = {
      config: machineConfigOf("rendered-1", { files: { [named]: "of the MachineConfig" } }),
      proven: true,
    };
    await documentStore(on.ledger).adopt(
      previous,
      { paths: {}, enablement: {}, passwords: {}, kernelArguments: [], ownKernelArguments: [] },
      signal,
    );
    await on.files.write(
      [
        {
          path: named,
          entry: {
            kind: "file",
            contents: new TextEncoder().encode("of the MachineConfig"),
            mode: 0o644,
            uid: 0,
            gid: 0,
          },
        },
      ],
      signal,
    );
  });
  await say({ imageRegistryBundleData: ["a", "b", "configured"].map((file) => ({ file, data: base64(one) })) });
  expect(writes.splice(0).sort()).toEqual([certsD("a"), certsD("b")]);
  await say({ imageRegistryBundleData: [{ file: "a", data: base64(two) }] });
  expect(removed).toEqual([certsD("b")]);
  expect(await textAt(host, certsD("a"))).toBe(two);
  expect(await textAt(host, named)).toBe("of the MachineConfig");
  expect(await textAt(host, certsD("by-hand"))).toBe("by hand");
  await say({});
  expect(await host.files.read(certsD("a"), signal)).toBeUndefined();
  expect(await textAt(host, certsD("by-hand"))).toBe("by hand");
  stop();
});

test("unreadable content leaves the machine unchanged [daemon-certificates-6]", async () => {
  const one = await selfSigned("CN=one");
  const { host, say, stop } = await start();
  await say({ kubeAPIServerServingCAData: base64(one), imageRegistryBundleData: [{ file: "a", data: base64(one) }] });
  await say({
    kubeAPIServerServingCAData: base64("no certificate"),
    imageRegistryBundleData: [{ file: "a", data: base64("no certificate") }],
  });
  expect([await textAt(host, hostPaths.kubeletCa), await textAt(host, certsD("a"))]).toEqual([one, one]);
  stop();
});

test("a writer that fails at any effect still converges, and records every file that it wrote [daemon-certificates-4]", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  for (let effects = 1; effects <= 5; effects += 1) {
    const { host, say, failNext, pass, stop } = await start();
    await say({ imageRegistryBundleData: ["a", "b"].map((file) => ({ file, data: base64(one) })) });
    failNext(effects);
    await say({ imageRegistryBundleData: ["b", "c"].map((file) => ({ file, data: base64(two) })) });
    await pass(60_000);
    expect(await Promise.all(["a", "b", "c"].map((registry) => textAt(host, certsD(registry))))).toEqual([
      undefined,
      two,
      two,
    ]);
    await say({});
    expect(await Promise.all(["a", "b", "c"].map((registry) => textAt(host, certsD(registry))))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    stop();
  }
});

test("a kubelet is restarted once for new authorities of the API server, also if the daemon dies in between [daemon-certificates-7]", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  const kubeconfig = (bundle: string) =>
    `clusters:\n- cluster:\n    certificate-authority-data: ${base64(bundle)}\n    server: https://api\n`;
  for (const failing of [0, 1, 2]) {
    const { host, kube, kernel, pass, restarts, failNext, say, stop } = await start(async (on) => {
      await on.files.write(
        [hostPaths.kubeconfig, hostPaths.kubeletKubeconfig].map(
          (path) =>
            ({
              path,
              entry: { kind: "file", contents: new TextEncoder().encode(kubeconfig(one)), mode: 0o600, uid: 0, gid: 0 },
            }) as const,
        ),
        signal,
      );
    });
    await say({});
    const publish = (bundle: string) =>
      kernel.complete(
        kube.apply(
          kubernetes.ConfigMap,
          { metadata: { name: objects.kubeconfigData, namespace }, data: { "ca-bundle.crt": bundle } },
          { owner: "test" },
        ),
        60_000,
      );
    await publish(one);
    await pass(60_000);
    expect(restarts).toEqual([]);
    failNext(failing);
    await publish(`${one}${two}`);
    await pass(60_000);
    for (const path of [hostPaths.kubeconfig, hostPaths.kubeletKubeconfig])
      expect(await textAt(host, path)).toBe(kubeconfig(`${one}${two}`));
    expect(await host.files.read(hostPaths.kubeconfig, signal)).toMatchObject({ mode: 0o600 });
    expect(restarts).toEqual(["kubelet.service"]);
    await pass(1_300_000);
    expect(restarts).toEqual(["kubelet.service"]);
    stop();
  }
});

test("no plan writes, compares or removes the writer's files [daemon-certificates-3]", () => {
  const config: MachineConfig = machineConfigOf("rendered-1", {
    files: { [hostPaths.kubeletCa]: "old", "/etc/other": "x", [certsD("a")]: "y" },
  });
  const read = readConfig(config);
  expect(read.verdict === "read" ? [...read.wanted.config.entries.keys()].sort() : []).toEqual(
    [certsD("a"), "/etc/other"].sort(),
  );
});
