import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createApiServer } from "../../apiserver/server.ts";
import { memoryStore } from "../../apiserver/storage/memory-store.ts";
import { sharedSecretKeys } from "../../apiserver/access/service-account-tokens.ts";
import { type Pod, kubernetes } from "../../api/foreign/kubernetes.ts";
import { createKubeClient } from "../../kube/kube-client.ts";
import { silentLogger } from "../../ports/logger.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../ports/node/index.ts";
import { untilSeen } from "../../../test/support/until-seen.ts";
import { PodWorker, suiteImage } from "./pod-worker.ts";

const namespace = "default";

/** Runs one pod whose program is this script, until its phase is an end. */
async function ended(script: string, container: object = {}, status?: Pod["status"]): Promise<Pod> {
  const folder = mkdtempSync(join(tmpdir(), "mco-pod-"));
  const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
  const server = createApiServer({
    store: memoryStore(),
    ...ports,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  const kube = createKubeClient({
    transport: server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  let pod: Pod = await kube.create<Pod>(kubernetes.Pod, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace },
    spec: {
      nodeName: "n",
      automountServiceAccountToken: false,
      restartPolicy: "Never",
      containers: [
        { name: "c", image: suiteImage("1"), volumeMounts: [{ name: "cache", mountPath: "/run/cache" }], ...container },
      ],
      volumes: [{ name: "cache", hostPath: { path: "/var/lib/cache", type: "DirectoryOrCreate" } }],
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
    kube,
    files: systemFiles,
    processes: systemProcesses,
    hostRoot: join(folder, "host"),
    hostAddress: "127.0.0.1",
    podsFolder: join(folder, "pods"),
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
    () => kube.get<Pod>(kubernetes.Pod, { name: "p", namespace }),
    (now): now is Pod => now?.status?.phase === "Succeeded" || now?.status?.phase === "Failed",
    { everyMs: 10 },
  );
}
const endOf = ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.terminated;

test("what a container leaves to say stands in its pod's status, as much of it as there is room for", async () => {
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

test("a container that failed without a word is quoted from its log, where its pod asks for that", async () => {
  const script = "echo first; echo the last line; exit 1";
  expect(endOf(await ended(script, { terminationMessagePolicy: "FallbackToLogsOnError" }))?.message).toBe(
    "first\nthe last line\n",
  );
  expect(endOf(await ended(script))).not.toHaveProperty("message");
  expect(endOf(await ended("echo well", { terminationMessagePolicy: "FallbackToLogsOnError" }))).not.toHaveProperty(
    "message",
  );
});

test("a folder of the machine that a pod asks for is made, and stays", async () => {
  expect(
    endOf(
      await ended('mkdir "$MCO_POD_ROOT/run/cache/kept" && test -d "$MCO_POD_ROOT/../../../host/var/lib/cache/kept"'),
    ),
  ).toMatchObject({ exitCode: 0 });
});

test("a pod that is to run once does not run again after its machine went down under it", async () => {
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
