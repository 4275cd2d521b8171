import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { kubeletConfPath } from "../../../core/kubelet/kubelet-config.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import { KubeError } from "../../../kube/kube-error.ts";
import { resolveInRoot } from "../../../host/directory/root-folder.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemFiles, systemRandom } from "../../../ports/node/index.ts";
import type { Exit, Processes } from "../../../ports/process.ts";
import { whenAborted } from "../../../ports/when-aborted.ts";
import { untilSeen } from "../../../../test/support/until-seen.ts";
import { inAdmissionOrder, rejectionOf } from "./admit-pod.ts";
import { Kubelet } from "./kubelet.ts";
import { podLimits } from "./pod-problem.ts";
import { pauseImage, suiteImage } from "./pod-worker.ts";
import { serverWithAdmin } from "../../../../test/support/server-with-admin.ts";

const suite = "openshift-machine-config-operator";
const nodeName = "worker-0";

/** A machine in a folder that runs at most `maxPods` pods, on a server of its own; its processes are none. */
async function machine(maxPods: number) {
  const folder = mkdtempSync(join(tmpdir(), "mco-kubelet-"));
  const conf = `${folder}/host${kubeletConfPath}`;
  mkdirSync(dirname(conf), { recursive: true });
  writeFileSync(
    conf,
    JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", maxPods }),
  );
  const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
  const { server, kube } = serverWithAdmin();
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: suite } });
  let started = 0;
  const signals: string[] = [];
  let ignored: string | undefined;
  const processes: Processes = {
    spawn() {
      started += 1;
      const { promise: exited, resolve } = Promise.withResolvers<Exit>();
      const kill = (signal: NodeJS.Signals) => {
        signals.push(signal);
        if (signal !== ignored) resolve({ code: undefined, signal });
      };
      return { pid: started, exited, kill };
    },
    run: () => Promise.reject(new Error("nothing else runs")),
  };
  const held = new Map<string, { asked: boolean; readonly gone: Promise<void> }>();
  const refused = new Set<string>();
  /** Deletions by the kubelet wait for the test, and in some namespaces it may write nothing. */
  const ofKubelet = new Proxy(kube, {
    get(target, verb) {
      if (verb === "patch")
        return (...given: Parameters<KubeClient["patch"]>) =>
          refused.has(given[1].namespace ?? "")
            ? Promise.reject(new KubeError(403, { reason: "Forbidden", message: "exceeded quota" }, "PATCH"))
            : kube.patch(...given);
      if (verb !== "delete") {
        const value: unknown = Reflect.get(target, verb);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      }
      return async (...given: Parameters<KubeClient["delete"]>) => {
        const each = held.get(given[1].name);
        const signal = given[2]?.signal ?? new AbortController().signal;
        if (each !== undefined) {
          each.asked = true;
          await Promise.race([each.gone, whenAborted(signal)]);
          signal.throwIfAborted();
        }
        return kube.delete(...given);
      };
    },
  });
  let ending = new AbortController();
  let kubelet: Kubelet | undefined;
  let work: Promise<void> = Promise.resolve();
  const locate = {
    below: (root: string, path: string) => resolveInRoot(root, path, {}, true),
    onMachine: (path: string) => resolveInRoot(join(folder, "host"), path, {}, true),
  };
  async function stop(): Promise<void> {
    await kubelet?.stopPods(0);
    ending.abort(new Error("the process ends"));
    await work;
  }
  onTestFinished(async () => {
    await stop();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const pod = (name: string, namespace: string) => kube.get<Pod>(kubernetes.Pod, { name, namespace });
  return {
    kube,
    pod,
    stop,
    podFolders: () => (existsSync(join(folder, "pods")) ? readdirSync(join(folder, "pods")) : []),
    started: () => started,
    signals,
    /** Its processes do not end when they are asked to. */
    ignoreTerm: () => (ignored = "SIGTERM"),
    /** Ends pods as a reboot does, whose machine has booted then. */
    async reboot(graceMs: number) {
      await kubelet?.stopPods(graceMs);
      await kubelet?.begin();
    },
    /** The API server takes none of the kubelet's changes of pods there any more. */
    refuseIn: (namespace: string) => refused.add(namespace),
    /** The kubelet's deletion of a pod waits. */
    holdDeletions(name: string) {
      const { promise: gone, resolve: go } = Promise.withResolvers<void>();
      const each = { asked: false, gone };
      held.set(name, each);
      onTestFinished(() => go());
      return { asked: () => each.asked, go };
    },
    /** A process of the machine, as after a boot of it. */
    async start() {
      ending = new AbortController();
      const options = {
        ...ports,
        files: systemFiles,
        processes,
        locate,
        version: "1",
        starts: new Map<string, number>(),
      };
      kubelet = new Kubelet(
        {
          ...options,
          nodeName,
          address: "127.0.0.1",
          taints: [],
          architecture: "amd64",
          podsFolder: join(folder, "pods"),
          program: ["mco"],
          environment: {},
          serving: () => Promise.resolve({ certificate: "", key: "" }) as never,
          listen: () => Promise.resolve({ port: 0 }) as never,
        },
        ofKubelet,
        { isOn: () => true, bootId: () => "boot" },
        ending.signal,
      );
      work = kubelet.run();
      await kubelet.begin();
    },
    /** A pod that its author puts on the machine, past the scheduler. */
    create: (name: string, namespace = "default", spec: Partial<NonNullable<Pod["spec"]>> = {}) =>
      kube.create<Pod>(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace },
        spec: {
          nodeName,
          automountServiceAccountToken: false,
          containers: [
            namespace === suite
              ? { name: "c", image: suiteImage("1"), args: ["daemon", "start"] }
              : { name: "c", image: pauseImage("1") },
          ],
          ...spec,
        },
      }),
    /** What becomes of pods. */
    seen: (names: readonly string[], namespace = "default") =>
      untilSeen(
        "the machine has decided",
        async () =>
          (await Promise.all(names.map((name) => pod(name, namespace)))).map(
            (each) => each?.status?.phase ?? "Pending",
          ),
        (phases) => !phases.includes("Pending"),
        { seconds: 60, everyMs: 20 },
      ),
  };
}

test("[cluster-admission-1] a machine runs no more pods than it says, and a pod beyond gets nothing of it", async () => {
  const { create, start, seen, pod, podFolders, started, kube } = await machine(2);
  await start();
  await create("a");
  await create("b");
  expect(await seen(["a", "b"])).toEqual(["Running", "Running"]);
  const beyond = Array.from({ length: 20 }, (_, i) => `c${i}`);
  await Promise.all(beyond.map((name) => create(name)));
  expect(new Set(await seen(beyond))).toEqual(new Set(["Failed"]));
  expect((await pod("c0", "default"))?.status).toMatchObject({
    phase: "Failed",
    reason: "OutOfpods",
    message: "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
  });
  expect([podFolders().length, started()]).toEqual([2, 2]);
  // The suite's pods do not wait for tenants.
  await create("daemon", suite);
  expect(await seen(["daemon"], suite)).toEqual(["Running"]);
  // A place that is free again is for the next one.
  for (const name of ["a", "b"])
    await kube.delete(kubernetes.Pod, { name, namespace: "default" }, { gracePeriodSeconds: 0 });
  await untilSeen("they are gone", podFolders, (folders) => folders.length === 1, { seconds: 60 });
  await create("d");
  expect(await seen(["d", ...beyond])).toEqual(["Running", ...beyond.map(() => "Failed")]);
});

test("[cluster-admission-8] rejections that the API server does not take delay none of other namespaces", async () => {
  const { create, start, seen, pod, refuseIn, kube } = await machine(1);
  for (const name of ["full", "other"])
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  await start();
  await create("a");
  expect(await seen(["a"])).toEqual(["Running"]);
  refuseIn("full");
  await Promise.all(Array.from({ length: 50 }, (_, i) => create(`p${i}`, "full")));
  await create("b");
  await create("c", "other");
  expect([await seen(["b"]), await seen(["c"], "other")]).toEqual([["Failed"], ["Failed"]]);
  expect((await pod("p0", "full"))?.status?.phase ?? "Pending").toBe("Pending");
});

test("[cluster-admission-5] pods that never ran take no place while they are deleted, however long that takes", async () => {
  const { create, start, seen, pod, podFolders, kube, holdDeletions } = await machine(1);
  await start();
  await create("a");
  expect(await seen(["a"])).toEqual(["Running"]);
  await create("b");
  expect(await seen(["b"])).toEqual(["Failed"]);
  const release = holdDeletions("b");
  await kube.delete(kubernetes.Pod, { name: "b", namespace: "default" });
  await untilSeen(
    "the deletion of b is on its way",
    () => release.asked(),
    (asked) => asked,
  );
  await kube.delete(kubernetes.Pod, { name: "a", namespace: "default" }, { gracePeriodSeconds: 0 });
  await untilSeen("a is gone", podFolders, (folders) => folders.length === 0, { seconds: 60 });
  // Its place is free a moment later, while the deletion of b is on its way.
  let tried = 0;
  const next = async () => {
    const name = `c${(tried += 1)}`;
    await create(name);
    return seen([name]);
  };
  await untilSeen("another pod takes its place", next, ([phase]) => phase === "Running", { seconds: 60 });
  release.go();
  await untilSeen(
    "b is gone",
    () => pod("b", "default"),
    (now) => now === undefined,
  );
});

test("[cluster-admission-7] of pods that never ran a few are deleted at a time, and all of them in the end", async () => {
  const { create, start, seen, kube, holdDeletions } = await machine(1);
  await start();
  await create("a");
  expect(await seen(["a"])).toEqual(["Running"]);
  const names = Array.from({ length: 60 }, (_, i) => `p${i}`);
  await Promise.all(names.map((name) => create(name)));
  expect(new Set(await seen(names))).toEqual(new Set(["Failed"]));
  const held = names.map(holdDeletions);
  const begun = () => held.filter((each) => each.asked()).length;
  for (const name of names) await kube.delete(kubernetes.Pod, { name, namespace: "default" });
  await untilSeen("some deletions are on their way", begun, (count) => count >= 16, { everyMs: 20 });
  // Whatever else there is for the kubelet to do comes after all of these.
  await create("last");
  expect(await seen(["last"])).toEqual(["Failed"]);
  expect(begun()).toBe(16);
  for (const each of held) each.go();
  await untilSeen(
    "all are gone",
    async () => (await kube.list(kubernetes.Pod, { namespace: "default" })).items.map(({ metadata }) => metadata.name),
    (left) => left.length === 2,
    { seconds: 60 },
  );
});

const longest = (i: number) => `${i}-`.padEnd(253, "x");

test("[cluster-pods-19] pods with the longest names end, take no place then, and their machine reboots", async () => {
  const { create, start, seen, kube, podFolders, reboot } = await machine(5);
  await start();
  const names = Array.from({ length: 5 }, (_, i) => longest(i));
  for (const name of names) await create(name);
  expect(new Set(await seen(names))).toEqual(new Set(["Running"]));
  for (const name of names) await kube.delete(kubernetes.Pod, { name, namespace: "default" });
  await untilSeen("their folders are gone", podFolders, (folders) => folders.length === 0, { seconds: 60 });
  const others = names.map((_, i) => `p${i}`);
  for (const name of others) await create(name);
  expect(new Set(await seen(others))).toEqual(new Set(["Running"]));
  await reboot(60_000);
});

test("[cluster-pods-20] a pod that was deleted by force and made again by the same name keeps no machine from a reboot", async () => {
  const { create, start, seen, kube, podFolders, reboot, holdDeletions, ignoreTerm, signals } = await machine(1);
  ignoreTerm();
  await start();
  await create("p", "default", { terminationGracePeriodSeconds: 3600 });
  expect(await seen(["p"])).toEqual(["Running"]);
  const [first] = podFolders();
  const held = holdDeletions("p");
  await kube.delete(kubernetes.Pod, { name: "p", namespace: "default" });
  await untilSeen(
    "it is asked to end",
    () => signals,
    ({ length }) => length === 1,
    { seconds: 60 },
  );
  await kube.delete(kubernetes.Pod, { name: "p", namespace: "default" }, { gracePeriodSeconds: 0 });
  await untilSeen("it has ended", held.asked, (asked) => asked, { seconds: 60 });
  expect([signals.lastIndexOf("SIGTERM"), signals.indexOf("SIGKILL")]).toEqual([0, 1]);
  await create("p");
  expect(await seen(["p"])).toEqual(["Running"]);
  // The API server answers now that another pod has this name.
  held.go();
  await untilSeen("the first is forgotten", podFolders, (folders) => !folders.includes(first ?? ""), { seconds: 60 });
  expect(podFolders()).toHaveLength(1);
  await reboot(10);
});

test("[cluster-pods-21] a reboot ends a deleted pod in its own time, whatever time the pod gives itself", async () => {
  const { create, start, seen, pod, kube, reboot, ignoreTerm, signals } = await machine(1);
  ignoreTerm();
  await start();
  await create("p", "default", { terminationGracePeriodSeconds: 3600 });
  expect(await seen(["p"])).toEqual(["Running"]);
  await kube.delete(kubernetes.Pod, { name: "p", namespace: "default" });
  await untilSeen(
    "it is asked to end",
    () => signals,
    ({ length }) => length === 1,
    { seconds: 60 },
  );
  await reboot(10);
  expect([signals.lastIndexOf("SIGTERM"), signals.indexOf("SIGKILL")]).toEqual([0, 1]);
  await untilSeen(
    "its object is gone",
    () => pod("p", "default"),
    (now) => now === undefined,
    { seconds: 60 },
  );
});

test("[cluster-pods-22] an API server that takes no deletion keeps no machine up, and hears of it after the boot", async () => {
  const { create, start, seen, pod, kube, podFolders, reboot, holdDeletions } = await machine(1);
  await start();
  await create("p");
  expect(await seen(["p"])).toEqual(["Running"]);
  const held = holdDeletions("p");
  await kube.delete(kubernetes.Pod, { name: "p", namespace: "default" });
  await untilSeen("its deletion is on its way", held.asked, (asked) => asked, { seconds: 60 });
  // Without a process it takes no place.
  await create("q");
  expect(await seen(["q"])).toEqual(["Running"]);
  await reboot(10);
  held.go();
  await untilSeen(
    "its object is gone",
    () => pod("p", "default"),
    (now) => now === undefined,
    { seconds: 60 },
  );
  await untilSeen("its folder is gone", podFolders, (folders) => folders.length === 1, { seconds: 60 });
});

test("[cluster-admission-6] a pod that ran is kept, also if a machine takes no such pod any more", () => {
  const containers = Array.from({ length: podLimits.containers + 1 }, (_, i) => ({ name: `c${i}`, image: "x" }));
  const large = (status: Pod["status"]): Pod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "default" },
    spec: { containers },
    ...(status === undefined ? {} : { status }),
  });
  expect(rejectionOf(large(undefined), 0, 9)?.reason).toBe("PodTooLarge");
  expect(rejectionOf(large({ startTime: "2030-01-01T00:00:06Z" }), 0, 9)).toBeUndefined();
});

test("[cluster-admission-2] a process that starts again keeps what ran, and admits the suite's pods before others", async () => {
  const { create, start, stop, seen } = await machine(2);
  await create("z");
  await start();
  expect(await seen(["z"])).toEqual(["Running"]);
  await stop();
  // Its name comes first in every list.
  await create("a");
  await create("daemon", suite);
  await start();
  expect(await seen(["z", "a"])).toEqual(["Running", "Failed"]);
  expect(await seen(["daemon"], suite)).toEqual(["Running"]);
});

test("[cluster-admission-4] what ran comes first, then the suite's pods, then the older ones; no pod says of itself that it ran", async () => {
  const made = (name: string, second: number, more: Partial<Pod> = {}, namespace = "default"): Pod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, creationTimestamp: `2030-01-01T00:00:0${second}Z` },
    ...more,
  });
  const pods = [
    made("late", 3),
    made("early", 1),
    made("daemon", 4, {}, suite),
    made("ran", 5, { status: { startTime: "2030-01-01T00:00:06Z" } }),
    made("builds", 6, {}, "openshift-machine-config-builds"),
  ];
  expect(inAdmissionOrder(pods).map(({ metadata }) => metadata.name)).toEqual([
    "ran",
    "daemon",
    "builds",
    "early",
    "late",
  ]);
  const { kube, pod } = await machine(1);
  const claiming = made("claiming", 1, {
    spec: { nodeName, containers: [{ name: "c", image: pauseImage("1") }] },
    status: { startTime: "2020-01-01T00:00:00Z", phase: "Running" },
  });
  await kube.create(kubernetes.Pod, claiming);
  expect((await pod("claiming", "default"))?.status?.startTime).toBeUndefined();
});

test("[cluster-admission-3] a pod of more containers, mounts or items than a machine takes is rejected with the number and the remedy", async () => {
  const { create, start, seen, pod, podFolders, started } = await machine(10);
  await start();
  const many = <T>(count: number, each: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => each(i));
  const container = (i: number) => ({ name: `c${i}`, image: pauseImage("1") });
  const { containers, sources, mounts, items } = podLimits;
  const emptyDir = { name: "v", emptyDir: {} };
  const mounted = { ...container(0), volumeMounts: many(mounts + 1, (i) => ({ name: "v", mountPath: `/m${i}` })) };
  const picked = many(items + 1, (i) => ({ key: "k", path: `p${i}` }));
  await create("containers", "default", { containers: many(containers + 1, container) });
  await create("mounts", "default", { containers: [mounted], volumes: [emptyDir] });
  await create("volumes", "default", { volumes: many(sources + 1, (i) => ({ ...emptyDir, name: `v${i}` })) });
  await create("items", "default", { volumes: [{ name: "v", configMap: { name: "x", items: picked } }] });
  await create("largest", "default", { containers: many(containers, container) });
  expect(await seen(["containers", "mounts", "volumes", "items", "largest"])).toEqual([
    ...many(4, () => "Failed"),
    "Running",
  ]);
  expect((await pod("containers", "default"))?.status).toMatchObject({
    reason: "PodTooLarge",
    message: `Pod was rejected: the pod has ${containers + 1} containers, and a machine of this cluster takes at most ${containers} of one pod: make several pods of it`,
  });
  const messages = await Promise.all(["mounts", "volumes", "items"].map((name) => pod(name, "default")));
  expect(messages.map((each) => /the pod has (.*), and/.exec(each?.status?.message ?? "")?.[1])).toEqual([
    `${mounts + 1} volumeMounts`,
    `${sources + 1} volumes and sources of volumes`,
    `${items + 1} items of volumes`,
  ]);
  await untilSeen("all of its containers run", started, (count) => count === containers, { seconds: 60 });
  expect(podFolders()).toHaveLength(1);
});
