import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Container, type Pod, type Secret, type Volume, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { buildNamespace } from "../../../api/names.ts";
import { resolveInRoot } from "../../../host/directory/root-folder.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import type { Processes } from "../../../ports/process.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../../ports/node/index.ts";
import { templateOf, workloads } from "../../../../test/support/pod-templates.ts";
import { untilSeen } from "../../../../test/support/until-seen.ts";
import { containerProblem } from "./pod-problem.ts";
import { PodWorker, pauseImage, suiteImage } from "./pod-worker.ts";
import { serverWithAdmin } from "../../../../test/support/server-with-admin.ts";

const namespace = "openshift-machine-config-operator";

/** Runs one pod whose program is this script, until its phase is an end. */
async function ended(
  script: string,
  container: object = {},
  status?: Pod["status"],
  initContainers: readonly object[] = [],
  volumes: readonly object[] = [],
  folder = mkdtempSync(join(tmpdir(), "mco-pod-")),
  {
    inNamespace = namespace,
    processes = systemProcesses,
    orRuns = false,
    seenBy = (kube) => kube,
  }: {
    readonly inNamespace?: string;
    readonly processes?: Processes;
    /** Until it runs is enough. */
    readonly orRuns?: boolean;
    /** The client of the worker. */
    readonly seenBy?: (kube: KubeClient) => KubeClient;
  } = {},
): Promise<Pod> {
  const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
  const { server, kube } = serverWithAdmin();
  if (inNamespace !== "default")
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: inNamespace } });
  await kube.create<Secret>(kubernetes.Secret, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "credential", namespace: inNamespace },
    data: { key: btoa("s3cret") },
  });
  let pod: Pod = await kube.create<Pod>(kubernetes.Pod, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: inNamespace },
    spec: {
      nodeName: "n",
      automountServiceAccountToken: false,
      restartPolicy: "Never",
      containers: [
        {
          name: "c",
          image: suiteImage("1"),
          args: ["daemon", "start"],
          volumeMounts: [{ name: "cache", mountPath: "/run/cache" }],
          ...container,
        },
      ],
      ...(initContainers.length === 0 ? {} : { initContainers: [...initContainers] as Container[] }),
      volumes: [
        { name: "cache", hostPath: { path: "/var/lib/cache", type: "DirectoryOrCreate" } },
        ...(volumes as Volume[]),
      ],
    },
  });
  if (status !== undefined)
    pod = await kube.patch<Pod>(
      kubernetes.Pod,
      pod.metadata,
      { type: "merge", body: { status } },
      { subresource: "status" },
    );
  const worker = new PodWorker(pod, {
    ...ports,
    kube: seenBy(kube),
    files: systemFiles,
    processes,
    hostAddress: "127.0.0.1",
    podsFolder: join(folder, "pods"),
    locate: {
      below: (root, path) => resolveInRoot(root, path, {}, true),
      onMachine: (path) => resolveInRoot(join(folder, "host"), path, { var: join(folder, "sysroot/var") }, true),
    },
    program: ["/bin/sh", "-c", script],
    environment: { PATH: process.env["PATH"] ?? "" },
    version: "1",
    starts: new Map(),
  });
  onTestFinished(async () => {
    await worker.stop(0);
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  worker.start();
  return untilSeen(
    "the pod has ended",
    () => kube.get<Pod>(kubernetes.Pod, { name: "p", namespace: inNamespace }),
    (now): now is Pod =>
      now?.status?.phase === "Succeeded" ||
      now?.status?.phase === "Failed" ||
      (orRuns && now?.status?.phase === "Running") ||
      [...(now?.status?.initContainerStatuses ?? []), ...(now?.status?.containerStatuses ?? [])].some(
        ({ state }) => (state?.waiting?.message ?? "") !== "",
      ),
    { everyMs: 10 },
  );
}
const endOf = ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.terminated;

test("a container's termination message is in its pod's status, up to the size limit", async () => {
  expect(endOf(await ended('printf "it is done" > "$MCO_POD_ROOT/dev/termination-log"'))).toMatchObject({
    exitCode: 0,
    message: "it is done",
  });
  expect(
    endOf(
      await ended('head -c 5000 /dev/zero | tr "\\0" x > "$MCO_POD_ROOT/tmp/words"; exit 3', {
        terminationMessagePath: "/tmp/words",
      }),
    ),
  ).toMatchObject({ exitCode: 3, message: "x".repeat(4096) });
});

test("a container that failed without a message is quoted from its log, if its pod requests that", async () => {
  const script = "echo first; echo the last line; exit 1";
  expect(endOf(await ended(script, { terminationMessagePolicy: "FallbackToLogsOnError" }))?.message).toBe(
    "first\nthe last line\n",
  );
  expect(endOf(await ended(script))).not.toHaveProperty("message");
  expect(endOf(await ended("echo well", { terminationMessagePolicy: "FallbackToLogsOnError" }))).not.toHaveProperty(
    "message",
  );
});

test("a host folder that a pod requests is created, and stays", async () => {
  expect(
    endOf(
      await ended(
        'mkdir "$MCO_POD_ROOT/run/cache/kept" && test -d "$MCO_POD_ROOT/../../../sysroot/var/lib/cache/kept"',
      ),
    ),
  ).toMatchObject({ exitCode: 0 });
});

test("a run-once pod does not run again after its machine went down", async () => {
  const before = {
    phase: "Running",
    containerStatuses: [
      {
        name: "c",
        image: "",
        imageID: "",
        ready: true,
        restartCount: 0,
        state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
      },
    ],
  };
  const pod = await ended('printf "ran again" > "$MCO_POD_ROOT/dev/termination-log"', {}, before);
  expect(pod.status).toMatchObject({
    phase: "Failed",
    reason: "Terminated",
    containerStatuses: [{ state: { terminated: { exitCode: 137 } } }],
  });
});

test("[cluster-pods-16] what happens while a refused status is written again is written too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  /** The container ends once this file is there. */
  const go = join(folder, "go");
  let exited: Promise<unknown> | undefined;
  const processes: Processes = {
    ...systemProcesses,
    spawn: (...args) => {
      const child = systemProcesses.spawn(...args);
      exited = child.exited;
      return child;
    },
  };
  let writes = 0;
  const seenBy = (kube: KubeClient): KubeClient =>
    new Proxy(kube, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (name !== "patch") return typeof member === "function" ? (member.bind(target) as unknown) : member;
        return async (...args: Parameters<KubeClient["patch"]>) => {
          writes += 1;
          if (writes === 1) throw new Error("refused");
          if (writes === 2) {
            // The state is in the request; the container ends before the answer.
            const looksForLastWords = vi.spyOn(systemFiles, "stat");
            onTestFinished(() => looksForLastWords.mockRestore());
            writeFileSync(go, "");
            await exited;
            await vi.waitFor(() => expect(looksForLastWords.mock.settledResults.length).toBeGreaterThan(0), 60_000);
            await setImmediate();
          }
          return target.patch(...args);
        };
      },
    });
  const script = `until [ -e ${go} ]; do sleep 0.02; done`;
  const pod = await ended(script, {}, undefined, [], [], folder, { processes, seenBy });
  expect(pod.status?.phase).toBe("Succeeded");
});

const step = (name: string, env: string, more: object = {}) => ({
  name,
  image: suiteImage("1"),
  args: ["daemon", "start"],
  env: [{ name: "POD_NAME", value: env }],
  ...more,
});
const statesOf = (statuses: NonNullable<Pod["status"]>["containerStatuses"] = []) =>
  statuses.map(({ name, state }) => [name, state?.terminated?.exitCode ?? state?.waiting?.reason]);

test("init containers run one after the other, and none sees a Secret that it does not mount", async () => {
  const credential = { volumeMounts: [{ name: "credential", mountPath: "/run/credential" }] };
  const pod = await ended(
    'cd "$MCO_POD_ROOT"; mkdir -p out; echo "$POD_NAME $(cat run/credential/key 2>/dev/null)" >> out/order; cat out/order > dev/termination-log',
    { env: [{ name: "POD_NAME", value: "last" }], ...credential },
    undefined,
    [step("first", "first", credential), step("second", "second")],
    [{ name: "credential", secret: { secretName: "credential" } }],
  );
  expect(statesOf(pod.status?.initContainerStatuses)).toEqual([
    ["first", 0],
    ["second", 0],
  ]);
  expect(pod.status?.phase).toBe("Succeeded");
  expect(endOf(pod)?.message).toBe("first s3cret\nsecond \nlast s3cret\n");
});

test("a failed init container fails a run-once pod, and the other containers never start", async () => {
  const pod = await ended('test "$POD_NAME" != bad', {}, undefined, [
    step("first", "good"),
    step("second", "bad"),
    step("third", "good"),
  ]);
  expect(pod.status?.phase).toBe("Failed");
  expect(statesOf(pod.status?.initContainerStatuses)).toEqual([
    ["first", 0],
    ["second", 1],
    ["third", "PodInitializing"],
  ]);
  expect(statesOf(pod.status?.containerStatuses)).toEqual([["c", "PodInitializing"]]);
});

const waitsFor = ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.waiting;

test("[cluster-pods-1] no variable of a pod makes the suite's program run other code", async () => {
  const code = "import('node:fs').then((fs)=>fs.writeFileSync(process.env.MCO_POD_ROOT+'/dev/termination-log','ran'))";
  const run = (name: string, value: string) =>
    ended(`"${process.execPath}" -e 0`, { env: [{ name, value }] }).then(waitsFor);
  expect(await run("NODE_OPTIONS", `--import=data:text/javascript,${code}`)).toEqual({
    reason: "CreateContainerConfigError",
    message:
      "the suite's program gets no variable NODE_OPTIONS here; remove it from env, which may have POD_NAME, NODE_NAME, POD_IP, HOST_IP, MCO_LOG_LEVEL",
  });
  const foreign = ["LD_PRELOAD", "PATH", "MCO_POD_ROOT", "MCO_KUBERNETES_BINARIES", "OPENSSL_CONF"];
  // No list of what is dangerous has all of these: a new program of the suite reads others.
  const others = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "SSL_CERT_FILE", "HTTPS_PROXY", "GCONV_PATH", "HOME", "X"];
  for (const name of [...foreign, ...others])
    expect([name, await run(name, "/x")]).toMatchObject([name, { reason: "CreateContainerConfigError" }]);
  expect(await run("NODE_NAME", "n")).toBeUndefined();
});

test("[cluster-pods-5] the suite's program runs in the suite's namespaces alone, and there what its pods run", async () => {
  const run = (args: readonly string[], inNamespace = namespace) =>
    ended("exit 0", { args }, undefined, [], [], undefined, { inNamespace }).then(waitsFor);
  const at = "openshift-machine-config-builds";
  for (const of of ["default", "openshift-machine-config-join", "constructor"])
    expect(await run(["daemon", "start"], of)).toEqual({
      reason: "CreateContainerConfigError",
      message: `the suite's program runs only in the namespaces ${namespace} and ${at}, not in ${of}; use the image mco.local/pause:1 here, and mco itself for other commands`,
    });
  expect(await run(["up", "--dir", "/tmp/x"])).toEqual({
    reason: "CreateContainerConfigError",
    message: `pods of ${namespace} run only operator start, controller start, server start, daemon start, state start, os-builder start, not "up --dir"; use mco itself for other commands`,
  });
  for (const [args, of] of [
    [[], namespace],
    [["$(VERB)", "start"], namespace],
    [["build-image", "--context"], namespace],
    [["operator", "start"], at],
  ] as const)
    expect([args, of, await run(args, of)]).toMatchObject([args, of, { reason: "CreateContainerConfigError" }]);
  // A container that runs before the others is judged as they are.
  const { status } = await ended("exit 0", {}, undefined, [{ name: "i", image: suiteImage("1"), args: ["up"] }]);
  expect(statesOf(status?.initContainerStatuses)).toEqual([["i", "CreateContainerConfigError"]]);
  expect(await run(["build-image", "--context", "/x"], at)).toBeUndefined();
});

test("[cluster-pods-6] a sleeper runs in every namespace, and no variable or argument makes it run other code", async () => {
  const started: Parameters<Processes["spawn"]>[] = [];
  const processes: Processes = {
    ...systemProcesses,
    spawn(...how) {
      started.push(how);
      return systemProcesses.spawn(...how);
    },
  };
  const names = ["ENV", "BASH_ENV", "PATH", "BASH_FUNC_sleep%%", "LD_PRELOAD", "FREE"];
  const container = {
    image: pauseImage("1"),
    args: ["--stop-after=0; $(FREE)", "$(FREE)"],
    env: names.map((name) => ({ name, value: "stolen" })),
  };
  const pod = await ended("exit 1", container, undefined, [], [], undefined, {
    inNamespace: "default",
    processes,
    orRuns: true,
  });
  expect(pod.status?.containerStatuses?.[0]?.state?.running).toBeDefined();
  expect(started.map(([program]) => program)).toEqual(["/bin/sh"]);
  expect(JSON.stringify(started)).not.toContain("stolen");
});

test("[cluster-pods-7] every pod that the suite makes runs as it is", () => {
  const problems = Object.values(workloads()).flatMap((workload) => {
    const { spec } = templateOf(workload);
    const at = workload.kind === "Job" ? buildNamespace : (workload.metadata.namespace ?? "");
    return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map((container) => [
      container.name,
      containerProblem(container, { metadata: { name: "p", namespace: at } }, "pause"),
    ]);
  });
  expect(problems.length).toBeGreaterThan(6);
  expect(problems.filter(([, problem]) => problem !== undefined)).toEqual([]);
});

test("[cluster-pods-2] no path of a pod writes or removes anything outside of its folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  const victim = join(folder, "victim");
  mkdirSync(victim);
  const secret = (more: object = {}) => [{ name: "credential", secret: { secretName: "credential", ...more } }];
  const mounted = (mountPath: string) => ({ volumeMounts: [{ name: "credential", mountPath }] });
  const cache = { name: "cache", mountPath: "/run/cache" };
  const attacks: readonly (readonly [container: object, volumes: readonly object[]])[] = [
    [mounted("/../../../stolen"), secret()],
    [mounted("/here"), secret({ items: [{ key: "key", path: "../../../../stolen" }] })],
    [{ terminationMessagePath: "/../../../victim" }, []],
    [{ volumeMounts: [cache, { name: "credential", mountPath: "/run//cache/./stolen" }] }, secret()],
    [{ terminationMessagePath: "/run/cache/stolen", volumeMounts: [cache] }, []],
    [{ volumeMounts: [{ name: "up", mountPath: "/up" }] }, [{ name: "up", hostPath: { path: "/../stolen" } }]],
    // A folder of the machine within another volume's.
    [
      {
        volumeMounts: [
          { name: "cache", mountPath: "/run/x/link" },
          { name: "credential", mountPath: "/run/x" },
        ],
      },
      secret({ items: [{ key: "key", path: "link/stolen" }] }),
    ],
    [mounted("/run/a\0b"), secret()],
  ];
  for (const [container, volumes] of attacks)
    expect(waitsFor(await ended("exit 0", container, undefined, [], volumes, folder))).toMatchObject({
      reason: "ContainerCreating",
      message: expect.stringMatching(
        /leads out of the pod's folder|lies in a folder of the machine|lies behind a link/,
      ) as string,
    });
  expect([existsSync(victim), existsSync(join(folder, "stolen"))]).toEqual([true, false]);
  expect(existsSync(join(folder, "sysroot/var/lib/cache/stolen"))).toBe(false);
});

test("[cluster-pods-8] a link of the machine leads a pod to where it leads on the machine, not on the host", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  const victim = join(folder, "victim");
  mkdirSync(victim);
  mkdirSync(join(folder, "host/etc"), { recursive: true });
  symlinkSync(victim, join(folder, "host/etc/link"));
  const stolen = { name: "up", hostPath: { path: "/etc/link/made", type: "DirectoryOrCreate" } };
  const mounted = { volumeMounts: [{ name: "up", mountPath: "/up" }] };
  const pod = await ended('echo x > "$MCO_POD_ROOT/up/file"', mounted, undefined, [], [stolen], folder);
  expect(endOf(pod)).toMatchObject({ exitCode: 0 });
  expect(readdirSync(victim)).toEqual([]);
  expect(existsSync(join(folder, `host${victim}/made/file`))).toBe(true);
});

test("[cluster-pods-9] a link that a container made in its folder ends its pod, and not its host", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  const victim = join(folder, "victim");
  mkdirSync(victim);
  const script = `rm -rf "$MCO_POD_ROOT/dev"; ln -s ${victim} "$MCO_POD_ROOT/dev"; echo x > "$MCO_POD_ROOT/dev/file"`;
  const pod = await ended(script, { restartPolicy: "Always" }, undefined, [], [], folder);
  expect(waitsFor(pod)).toMatchObject({
    reason: "CreateContainerError",
    message: expect.stringContaining("lies behind a link") as string,
  });
  expect(readdirSync(victim)).toEqual(["file"]);
});

test("[cluster-pods-15] a container that is not run gets no volume, and one with too much says how much may be", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  const secret = [{ name: "credential", secret: { secretName: "credential" } }];
  const mounts = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: "credential", mountPath: `/run/credential${i}` }));
  const foreign = { image: "registry.example/any:1", volumeMounts: mounts(1) };
  const other = await ended("exit 0", foreign, undefined, [], secret, folder, { inNamespace: "default" });
  expect(waitsFor(other)?.reason).toBe("ErrImagePull");
  expect(existsSync(join(folder, "pods"))).toBe(false);
  const init = { ...step("i", "x"), image: "registry.example/any:1", volumeMounts: mounts(1) };
  const { status } = await ended("exit 0", {}, undefined, [init], secret, folder);
  expect(statesOf(status?.initContainerStatuses)).toEqual([["i", "ErrImagePull"]]);
  expect(existsSync(join(folder, "pods"))).toBe(false);
  const many = await ended("", { image: pauseImage("1"), volumeMounts: mounts(800) }, undefined, [], secret, folder, {
    inNamespace: "default",
  });
  expect(waitsFor(many)).toEqual({
    reason: "CreateContainerConfigError",
    message: expect.stringMatching(/mostBytes: 8388608; .*\. Mount fewer or smaller ConfigMaps and Secrets/) as string,
  });
});

test("[cluster-pods-3] what a program leaves as its last words, and a log without end, do not stop the host", async () => {
  const fallback = { terminationMessagePolicy: "FallbackToLogsOnError" };
  for (const script of [
    'truncate -s 3G "$MCO_POD_ROOT/../c.log"; exit 1',
    'truncate -s 3G "$MCO_POD_ROOT/dev/termination-log"; exit 1',
    'mkdir "$MCO_POD_ROOT/dev/termination-log"; exit 1',
    'ln -s /etc/hostname "$MCO_POD_ROOT/dev/termination-log"; exit 1',
  ]) {
    const end = endOf(await ended(script, fallback));
    expect([end?.exitCode, end?.message ?? ""]).toEqual([1, ""]);
  }
  expect(endOf(await ended("exit 1", { terminationMessagePath: "/" }))).toMatchObject({ exitCode: 1 });
});

test("[cluster-pods-4] other users of the host reach nothing in a pod's folder: Secrets, logs, what a build is made from", async () => {
  const oldMask = process.umask(0o022);
  onTestFinished(() => void process.umask(oldMask));
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  chmodSync(folder, 0o711);
  const pod = await ended(
    'echo printed; mkdir "$MCO_POD_ROOT/work"; echo layer > "$MCO_POD_ROOT/work/config-layer.tar.gz"',
    {},
    undefined,
    [],
    [],
    folder,
  );
  const own = join(folder, "pods", pod.metadata.uid ?? "");
  expect(statSync(join(own, "root/work/config-layer.tar.gz")).mode & 0o777).toBe(0o644);
  expect(statSync(own).mode & 0o077).toBe(0);
  expect(statSync(join(own, "c.log")).mode & 0o777).toBe(0o600);
});
