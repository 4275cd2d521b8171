import { request as httpsRequest } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { ProvisioningToken } from "../../src/api/kinds/provisioning-token.ts";
import { definedResources } from "../../src/api/index.ts";
import { namespace } from "../../src/api/names.ts";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { admissionInThreads } from "../../src/controller/admission-endpoint.ts";
import { admissionPath } from "../../src/controller/admission-handler.ts";
import { runController } from "../../src/controller/run-controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import type { LogFields, Logger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom, workerThreads } from "../../src/ports/node/index.ts";
import { testAuthority } from "../support/test-pki.ts";
import { untilSeen } from "../support/until-seen.ts";

const host = "127.0.0.1";
const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });

interface Answer {
  readonly status: number;
  readonly thread: string;
  readonly text: string;
}

/** A controller of tokens with an admission endpoint whose planner a review can send into a loop. */
async function start() {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: quiet([]),
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  const kube = createKubeClient({
    transport: server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  for (const kind of definedResources)
    await kube.apply(kubernetes.CustomResourceDefinition, kind.crd() as never, { owner: "test" });
  const authority = await testAuthority();
  const port = await freePort();
  const told: LogFields[] = [];
  const journal = memoryJournal();
  const ports = { clock: systemClock, random: systemRandom, log: quiet(told), journal };
  const stopping = new AbortController();
  const threads = workerThreads(join(import.meta.dirname, "../support/planted-planner.ts"));
  const running = runController(
    {
      ...ports,
      kube,
      events: createEventRecorder({ ...ports, kube, component: "test" }),
      identity: "test",
      version: "1",
      controllers: ["token"],
      admission: admissionInThreads(threads, {
        host,
        port,
        network: false,
        tls: await authority.server(host),
        access: { to: "open" },
        kubeconfig: undefined,
      }),
    },
    stopping.signal,
  );
  onTestFinished(async () => {
    stopping.abort(new Error("the test is over"));
    await running;
    server.close();
  });
  const send = (method: string, target: string, body = "") =>
    new Promise<Answer>((resolve, reject) => {
      const request = httpsRequest(
        { host, port, ca: authority.certificate, method, path: target, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              thread: String(response.headers["x-thread"] ?? ""),
              text: Buffer.concat(chunks).toString(),
            }),
          );
        },
      );
      request.on("error", reject);
      request.end(body);
    });
  const review = (name: string, size = 0) =>
    send(
      "POST",
      admissionPath,
      JSON.stringify({
        apiVersion: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        request: {
          uid: "u",
          kind: { group: MachineConfigGroup, kind: "MachineConfig" },
          object: {
            metadata: { name },
            spec: { config: { ignition: { version: "3.4.0" } }, padding: "x".repeat(size) },
          },
        },
      }),
    );
  const isReady = () =>
    untilSeen(
      "the endpoint is ready",
      () =>
        send("GET", "/readyz").then(
          ({ status }) => status,
          () => 0,
        ),
      (status) => status === 200,
    );
  await isReady();
  const endedToken = (name: string) =>
    kube.create(ProvisioningToken, {
      apiVersion: ProvisioningToken.apiVersion,
      kind: ProvisioningToken.kind,
      metadata: { name },
      spec: { pool: "worker", tokenHash: "0".repeat(64), expiresAt: "2020-01-01T00:00:00Z" },
    });
  const isGone = (name: string) =>
    untilSeen(
      `the controller removes ${name}`,
      () => kube.get(ProvisioningToken, { name }),
      (token) => token === undefined,
    );
  return { review, send, isReady, endedToken, isGone, told, lines: () => journal.lines };
}

const MachineConfigGroup = "machineconfiguration.openshift.io";

function quiet(told: LogFields[]): Logger {
  const log: Logger = {
    debug() {},
    info() {},
    warn() {},
    error: (fields) => void told.push(fields),
    child: () => log,
  };
  return log;
}

describe("the controllers and the planning of changes do not delay each other", () => {
  test("a separate thread plans many large reviews, and every answer names it [attack-admission-1]", async () => {
    const { review, endedToken, isGone } = await start();
    const size = 2 * 1024 * 1024;
    const answers = Promise.all(Array.from({ length: 12 }, (_, index) => review(`50-large-${index}`, size)));
    await endedToken("meanwhile0");
    await isGone("meanwhile0");
    const threads = new Set((await answers).map(({ thread }) => thread));
    expect(threads.size).toBe(1);
    expect([...threads][0]).toMatch(/^\d+$/);
    expect([...threads][0]).not.toBe(String(threadId));
  });

  test("an endless plan is terminated at the limit and answered 503, the controller continues, and the next plan works [attack-admission-2]", async () => {
    const { review, send, isReady, endedToken, isGone, lines } = await start();
    const stuck = review("50-never-ends");
    // While it is stuck, the controller works, and the endpoint refuses what it can refuse without a plan.
    await endedToken("meanwhile0");
    await isGone("meanwhile0");
    expect((await send("GET", "/elsewhere")).status).toBe(404);
    expect((await stuck).status).toBe(503);
    const reported = () => lines().flatMap(({ path, reason }) => (path === "Child/admission" ? [reason] : []));
    await untilSeen("the report", reported, (reasons) => reasons.length >= 2);
    expect(reported().slice(0, 2)).toEqual(["ChildFailing", "Recovered"]);
    await isReady();
    expect((await review("50-next")).status).toBe(200);
  });
});
