import { type ChildProcess, spawn } from "node:child_process";
import { openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sqliteStore } from "../../src/standin/apiserver/node/sqlite-store.ts";
import { MachineConfig, kubernetes, names } from "../../src/api/index.ts";
import { writeKubeconfig } from "../../src/standin/cluster/credentials.ts";
import { addressesOf, layoutOf, ports } from "../../src/standin/cluster/layout.ts";
import { type Authority, certificateAuthority, storedPair } from "../../src/kube/certificates.ts";
import { serviceAccountFolder } from "../../src/kube/kubeconfig.ts";
import { systemClock, systemFiles, systemRandom } from "../../src/ports/node/index.ts";
import { TestCluster, annotation, apiServer, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { type Call, type Fault, FaultProxy } from "./fault-proxy.ts";
import { Witness, differences } from "./witness.ts";
import { endScenario } from "../support/end-scenario.ts";
import { untilSeen } from "../support/until-seen.ts";

const { annotations, namespace } = names;
const machines = ["master-0", "worker-0", "worker-1"];
const workers = machines.slice(1);
/** The rest of a token's life, when its owner must replace it, must suffice for a few requests. */
const tokenLifeMs = 8_000;

let cluster: TestCluster;
let authority: Authority;
let proxy: FaultProxy;
let witness: Witness;
/** A second candidate for the controller's lease: only one may ever lead. */
let rival: { readonly child: ChildProcess; readonly log: string };
let serial = 0;

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Waits until the API server reports ready. */
const untilBack = () =>
  untilSeen(
    "the API server is back",
    () => cluster.kube.request({ method: "GET", target: "/readyz", headers: {} }).catch((error: unknown) => error),
    (answer) => !(answer instanceof Error),
    { seconds: 420 },
  );

/** Existing credentials are used when a cluster starts: those of machines point to the proxy. */
async function prepare(directory: string): Promise<void> {
  const { pki } = layoutOf(directory);
  await systemFiles.makeDirectory(pki, { mode: 0o700 });
  const name = "mco-cluster-ca";
  const root = await storedPair(systemFiles, pki, "cluster-ca", () =>
    certificateAuthority({ name, clock: systemClock, random: systemRandom }),
  );
  authority = await certificateAuthority({ name, clock: systemClock, random: systemRandom, existing: root });
  const upstream = () =>
    `https://${addressesOf(cluster === undefined ? recordIn(directory).network : cluster.record().network).apiServer}:${ports.apiServer}`;
  proxy = await FaultProxy.start({ authority, upstream, tokenLifeMs });
  for (const machine of machines) await machineKubeconfig(directory, machine);
  await writeKubeconfig(
    systemFiles,
    { authority, serverUrl: proxy.url },
    { name: "cluster-controllers", organization: "system:masters", path: `${pki}/cluster-controllers.kubeconfig` },
  );
}

const recordIn = (directory: string) =>
  JSON.parse(readFileSync(layoutOf(directory).record, "utf8")) as ReturnType<TestCluster["record"]>;

/** Writes a machine's kubeconfig with a new client certificate. */
async function machineKubeconfig(directory: string, machine: string, trusted = authority.certificate): Promise<void> {
  const path = `${layoutOf(directory).pki}/host-${machine}.kubeconfig`;
  rmSync(path, { force: true });
  await writeKubeconfig(
    systemFiles,
    { authority: { ...authority, certificate: trusted }, serverUrl: proxy.url },
    { name: `system:node:${machine}`, organization: "system:nodes", path },
  );
}

async function startRival(): Promise<typeof rival> {
  const kubeconfig = await writeKubeconfig(
    systemFiles,
    { authority, serverUrl: proxy.url },
    { name: "rival", organization: "system:masters", path: `${layoutOf(cluster.directory).pki}/rival.kubeconfig` },
  );
  const log = join(cluster.directory, "logs", "rival.log");
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      layoutOf(cluster.directory).bundle,
      "controller",
      "start",
      "--kubeconfig",
      kubeconfig,
    ],
    { stdio: ["ignore", "ignore", openSync(log, "a")] },
  );
  return { child, log };
}

beforeAll(async () => {
  if (!hasApiServer) return;
  cluster = await TestCluster.start({ workers: workers.length, prepare });
  witness = new Witness(cluster);
  await witness.start();
  rival = await startRival();
}, 600_000);

afterAll(async () => {
  if (rival !== undefined) {
    const gone = new Promise((resolve) => rival.child.once("exit", resolve));
    rival.child.kill("SIGTERM");
    await gone;
  }
  await witness?.stop();
  await endScenario(cluster);
  await proxy?.close();
});

/**
 * Begins a roll-out that reboots every worker, runs `fault` in the middle of it, and expects the same end as without:
 * one boot of each worker, no violation on the way, and the same processes as before.
 */
async function rollOutDuring(
  fault: () => Promise<void>,
  options: { readonly killed?: readonly string[] } = {},
): Promise<void> {
  const before = await witness.picture();
  const target = await cluster.target("worker");
  const text = `generation ${(serial += 1)}\n`;
  await cluster.kube.apply(MachineConfig, machineConfig("99-worker-faults", { "/etc/faults.conf": text }) as never, {
    owner: "test",
  });
  await Promise.any(
    workers.map((worker) =>
      cluster.untilNode(
        worker,
        (node) => annotation(node, annotations.desiredConfig) !== target,
        `${worker} has a new target`,
      ),
    ),
  );
  await fault();
  await cluster.untilRolledOut("worker", target);
  for (const worker of workers) expect(cluster.hostFile(worker, "/etc/faults.conf")).toBe(text);
  // The kubelet reports restarts and readiness of pods a moment after the machine is back: until then, the API server
  // has what it reported before.
  await untilSeen(
    "processes and machines restarted as often as they must",
    async () => differences(before, await witness.picture(), { pool: "worker", ...options }),
    (wrongs) => wrongs.length === 0,
    { seconds: 420 },
  );
  await untilSeen(
    "all pods are ready",
    async () =>
      (await cluster.kube.list(kubernetes.Pod, { namespace })).items
        .filter(
          ({ status }) =>
            (status?.containerStatuses ?? []).length === 0 ||
            (status?.containerStatuses ?? []).some(({ ready }) => !ready),
        )
        .map(({ metadata, status }) => ({ name: metadata.name, containers: status?.containerStatuses })),
    (notReady) => notReady.length === 0,
    { seconds: 420 },
  );
  expect(differences(before, await witness.picture(), { pool: "worker", ...options })).toEqual([]);
  witness.compareTerms(witness.terms({ rival: rival.log }));
  expect(witness.wrongs.splice(0)).toEqual([]);
}

/** `true` for one request in `n`, in turn. */
function everyNth(n: number): () => boolean {
  let count = 0;
  return () => (count += 1) % n === 0;
}

async function killApiServer(): Promise<void> {
  expect(await cluster.killApiServer("SIGKILL")).toBe(1);
  await untilBack();
}

/** Makes the server drop its history, and returns once it has. Embedded: while `kill` has stopped it. */
async function compact(): Promise<void> {
  const layout = layoutOf(cluster.directory);
  if (apiServer === "kubernetes") {
    const read = (name: string) => readFileSync(join(layout.pki, name), "utf8");
    const etcd = (path: string, body: object) =>
      new Promise<{ header?: { revision?: string } }>((resolve, reject) => {
        const call = httpsRequest(
          `https://${addressesOf(cluster.record().network).apiServer}:2379${path}`,
          {
            method: "POST",
            agent: false,
            ca: read("etcd-ca.crt"),
            cert: read("etcd-client.crt"),
            key: read("etcd-client.key"),
          },
          (answer) => {
            let text = "";
            answer.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
            answer.once("end", () =>
              answer.statusCode === 200
                ? resolve(JSON.parse(text) as { header?: { revision?: string } })
                : reject(new Error(text)),
            );
          },
        );
        call.once("error", reject);
        call.end(JSON.stringify(body));
      });
    const { header } = await etcd("/v3/maintenance/status", {});
    await etcd("/v3/kv/compaction", { revision: header?.revision, physical: true });
    await killApiServer();
    return;
  }
  // The server's supervisor is stopped, so that the file is free for a short time.
  const { pid } = cluster.record().supervisor;
  process.kill(pid, "SIGSTOP");
  try {
    const [server = 0] = await cluster.processes("apiserver");
    process.kill(server, "SIGKILL");
    const file = layout.store;
    await untilSeen(
      "the store is free",
      () => {
        try {
          const store = sqliteStore({ file });
          store.compact(store.revision());
          store.close();
          return undefined;
        } catch (error) {
          return String(error);
        }
      },
      (error) => error === undefined,
    );
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await untilBack();
}

const watches = (call: Call): boolean => call.isWatch;
const always = (fault: Fault) => () => fault;

describe.skipIf(!hasApiServer)("in the middle of a roll-out", { timeout: 240_000 }, () => {
  test("the API server is killed and comes back", () => rollOutDuring(killApiServer));

  test("all watches are cut repeatedly, some broken, some ended in order", () =>
    rollOutDuring(async () => {
      let cut = 0;
      for (let turn = 0; turn < 12; turn += 1) {
        cut += proxy.cutWatches(turn % 2 === 0 ? "break" : "end");
        await pause(250);
      }
      expect(cut).toBeGreaterThan(50);
    }));

  test("the history is compacted while no watch is open, and clients list again", () =>
    rollOutDuring(async () => {
      const before = proxy.expiredWatches;
      const { promise: over, resolve } = Promise.withResolvers<void>();
      await proxy.during(
        (call) => (watches(call) ? { do: "hold", over } : undefined),
        async () => {
          proxy.cutWatches("break");
          await compact();
          // Every stored object is now newer than any client has seen.
          await cluster.kube.patch(
            MachineConfig,
            { name: "99-worker-faults" },
            { type: "merge", body: { metadata: { annotations: { "faults.test/compacted": String(serial) } } } },
          );
          resolve();
          await untilSeen(
            "watches are told that they are too old",
            () => proxy.expiredWatches,
            (now) => now > before,
          );
        },
      );
    }));

  test("watches get a 410 in the middle of their stream", () =>
    rollOutDuring(() =>
      proxy.during(
        (call) => (watches(call) ? { do: "expire" } : undefined),
        async () => {
          const before = proxy.expiredWatches;
          proxy.cutWatches("break");
          await untilSeen(
            "the clients have watched again",
            () => proxy.expiredWatches - before,
            (count) => count > 10,
          );
          // They list again, and none in a loop.
          const expired = proxy.expiredWatches;
          await pause(2000);
          expect(proxy.expiredWatches - expired).toBeLessThan(600);
        },
      ),
    ));

  test("answers arrive late", () =>
    rollOutDuring(() =>
      proxy.during(
        (call) => (watches(call) ? undefined : { do: "delay", milliseconds: 1200 }),
        () => pause(4000),
      ),
    ));

  test("the server does not answer for longer than a lease", () =>
    rollOutDuring(async () => {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      await proxy.during(always({ do: "hold", over }), async () => {
        proxy.cutConnections();
        await untilSeen(
          "the lease is lost",
          () => witness.terms({ rival: rival.log }),
          (terms) => terms.every(({ to }) => to < Infinity),
        );
        resolve();
      });
    }));

  test("the server is busy: 429 with Retry-After, 500, 503 and 504", () => {
    const third = everyNth(3);
    const answers: readonly Fault[] = [
      { do: "answer", status: 429, reason: "TooManyRequests", retryAfterSeconds: 1 },
      { do: "answer", status: 500, reason: "InternalError" },
      { do: "answer", status: 503, reason: "ServiceUnavailable" },
      { do: "answer", status: 429, reason: "TooManyRequests", retryAfterSeconds: 2 },
      { do: "answer", status: 504, reason: "Timeout" },
    ];
    let turn = 0;
    return rollOutDuring(() =>
      proxy.during(
        () => (third() ? undefined : answers[(turn += 1) % answers.length]),
        async () => {
          proxy.cutWatches("break");
          await untilSeen(
            "many requests were refused",
            () => Promise.resolve(turn),
            (refused) => refused > 20,
            {
              seconds: 420,
            },
          );
          expect(turn).toBeGreaterThan(20);
        },
      ),
    );
  });

  test("answers are lost, whole or in part, after the server has carried out the request", () => {
    const second = everyNth(2);
    let turn = 0;
    return rollOutDuring(() =>
      proxy.during(
        () => (second() ? { do: "lose", part: (turn += 1) % 2 === 0 ? "all" : "half" } : undefined),
        async () => {
          proxy.cutWatches("break");
          await pause(3500);
          await untilSeen(
            "answers are lost",
            () => turn,
            (now) => now > 10,
          );
        },
      ),
    );
  });

  test("tokens expire before new ones are available", () =>
    rollOutDuring(async () => {
      const before = proxy.expiredTokens;
      await proxy.during(
        (call) =>
          /\/serviceaccounts\/[^/]+\/token$/.test(call.target)
            ? { do: "answer", status: 503, reason: "ServiceUnavailable" }
            : undefined,
        async () => {
          proxy.cutWatches("break");
          await untilSeen(
            "tokens have expired",
            () => proxy.expiredTokens,
            (now) => now > before + 10,
          );
        },
      );
    }));

  test("the API server comes back with another certificate of its authority", () =>
    rollOutDuring(async () => {
      const address = addressesOf(cluster.record().network).apiServer;
      const fresh = await authority.issue({
        commonName: "kube-apiserver",
        usage: "server",
        hosts: [address, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
      });
      const { pki } = layoutOf(cluster.directory);
      await systemFiles.write(`${pki}/apiserver.key`, fresh.key, { mode: 0o600 });
      await systemFiles.write(`${pki}/apiserver.crt`, fresh.certificate);
      proxy.replaceCertificate(await FaultProxy.servingPair(authority));
      await killApiServer();
    }));

  test("a machine's client certificate is replaced, and the old one refused", () =>
    rollOutDuring(async () => {
      const user = "system:node:worker-0";
      let old = "";
      await proxy.during(
        (call) => {
          if (call.user === user) old = call.serialNumber;
          return undefined;
        },
        async () => {
          await untilSeen(
            "the machine has asked for something",
            () => old,
            (serialNumber) => serialNumber !== "",
          );
        },
      );
      let accepted = 0;
      await proxy.during(
        (call) => {
          if (call.user !== user) return undefined;
          if (call.serialNumber === old) return { do: "answer", status: 401, reason: "Unauthorized" };
          accepted += 1;
          return undefined;
        },
        async () => {
          proxy.cutConnections();
          await pause(500);
          await machineKubeconfig(cluster.directory, "worker-0");
          await untilSeen(
            "the machine has come with its new certificate",
            () => accepted,
            (requests) => requests > 3,
          );
        },
      );
    }));

  test("the authority is replaced: every client trusts both before the server changes", () => {
    const controllers = apiServer === "kubernetes" ? "kube-controller-manager" : "cluster-controllers";
    return rollOutDuring(
      async () => {
        const layout = layoutOf(cluster.directory);
        const next = await certificateAuthority({ name: "mco-cluster-ca-2", clock: systemClock, random: systemRandom });
        const both = `${authority.certificate}${next.certificate}`;
        await systemFiles.write(layout.trustedAuthorities, both);
        for (const machine of machines) await machineKubeconfig(cluster.directory, machine, both);
        for (const name of ["cluster-controllers", "rival"]) {
          const path = `${layout.pki}/${name}.kubeconfig`;
          const config = readFileSync(path, "utf8").replace(
            /"certificate-authority-data": "[^"]*"/,
            `"certificate-authority-data": ${JSON.stringify(btoa(both))}`,
          );
          writeFileSync(path, config);
        }
        // The publisher of the authorities reads them when it starts.
        expect(
          await cluster.kill(
            "SIGKILL",
            apiServer === "kubernetes" ? "--use-service-account-credentials" : "cluster-controllers",
          ),
        ).toBe(1);
        await cluster.until(
          kubernetes.ConfigMap,
          "kube-root-ca.crt",
          ({ data }) => data?.["ca.crt"] === both,
          "both authorities are published",
          { namespace },
        );
        // A machine updates a pod's volumes every minute, and at once when the pod has changed.
        const { items } = await cluster.kube.list(kubernetes.Pod, { namespace });
        for (const pod of items)
          await cluster.kube.patch(
            kubernetes.Pod,
            { name: pod.metadata.name, namespace },
            { type: "merge", body: { metadata: { annotations: { "faults.test/look-again": "1" } } } },
          );
        const uids = new Set(items.map(({ metadata }) => metadata.uid));
        const mounted = () =>
          machines.flatMap((machine) => {
            const folder = join(layout.host(machine), "pods");
            return readdirSync(folder)
              .filter((pod) => uids.has(pod))
              .map((pod) => readFileSync(join(folder, pod, "root", serviceAccountFolder, "ca.crt"), "utf8"));
          });
        await untilSeen(
          "every pod has both authorities",
          mounted,
          (texts) => texts.length >= items.length && texts.every((text) => text === both),
        );
        proxy.replaceCertificate(await FaultProxy.servingPair(next));
      },
      { killed: [controllers] },
    );
  });
});
