import { expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { silentLogger } from "../ports/logger.ts";
import type { HttpHandler } from "../ports/http.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { whileLeader } from "./leader.ts";

async function start() {
  const kernel = new Kernel(3);
  let cluster: Awaited<ReturnType<typeof inProcessCluster>> | undefined;
  void inProcessCluster(kernel).then((made) => {
    cluster = made;
  });
  await kernel.run({ until: () => cluster !== undefined, maxMs: 60_000 });
  const made = cluster;
  if (made === undefined) throw new Error("no cluster");
  const history: string[] = [];
  const candidate = (identity: string, wrap: (handler: HttpHandler) => HttpHandler = (handler) => handler) => {
    const stopping = new AbortController();
    const done = whileLeader(
      {
        kube: made.client(wrap(made.transport)),
        clock: kernel.clock,
        random: kernel.random,
        log: silentLogger,
        name: "l",
        namespace: "default",
        identity,
      },
      stopping.signal,
      async (signal) => {
        history.push(`${identity} leads`);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        history.push(`${identity} ends`);
      },
    );
    return { stop: () => stopping.abort(new Error("stop")), done };
  };
  return {
    kernel,
    kube: made.kube,
    history,
    candidate,
    pass: (ms: number) => kernel.run({ until: () => false, maxMs: ms }),
  };
}

test("one leads at a time; an orderly end hands over within a retry [kube-leader-1]", async () => {
  const { history, candidate, pass } = await start();
  const a = candidate("a");
  await pass(1000);
  candidate("b");
  await pass(60_000);
  expect(history).toEqual(["a leads"]);
  a.stop();
  await pass(3000);
  expect(history).toEqual(["a leads", "a ends", "b leads"]);
});

test("a leader that cannot renew stops before anyone else starts [kube-leader-2]", async () => {
  const { history, candidate, pass } = await start();
  let cutOff = false;
  candidate("a", (handler) => async (request, signal) => {
    if (cutOff) throw new Error("unreachable");
    return handler(request, signal);
  });
  await pass(1000);
  candidate("b");
  await pass(5000);
  cutOff = true;
  await pass(40_000);
  expect(history).toEqual(["a leads", "a ends", "b leads"]);
});

test("a leader whose requests hang stops before anyone else starts [kube-leader-3]", async () => {
  const { history, candidate, pass } = await start();
  let hangs = false;
  candidate("a", (handler) => async (request, signal) => {
    if (hangs)
      await new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
      );
    return handler(request, signal);
  });
  await pass(1000);
  candidate("b");
  await pass(5000);
  hangs = true;
  await pass(60_000);
  expect(history).toEqual(["a leads", "a ends", "b leads"]);
});

test("an answer that comes late does not prolong a term: what counts is when the lease was renewed at the latest [kube-leader-4]", async () => {
  const { kernel, history, candidate, pass } = await start();
  let lateMs = 0;
  candidate("a", (handler) => async (request, signal) => {
    const response = await handler(request, signal);
    if (request.method === "PUT") await kernel.clock.sleep(lateMs, signal);
    return response;
  });
  await pass(1000);
  candidate("b");
  await pass(5000);
  lateMs = 9000;
  const from = kernel.now;
  await kernel.run({ until: () => history.includes("a ends"), maxMs: 60_000 });
  // The last timely renewal was sent before this time; the answer to the next one arrives too late.
  expect(kernel.now - from).toBeLessThanOrEqual(10_000);
  expect(history).toEqual(["a leads", "a ends"]);
});

test("a leader that sees the lease in other hands stops at once [kube-leader-5]", async () => {
  const { kernel, kube, history, candidate, pass } = await start();
  candidate("a");
  await pass(3000);
  void kube.patch(
    kubernetes.Lease,
    { name: "l", namespace: "default" },
    { type: "merge", body: { spec: { holderIdentity: "usurper" } } },
  );
  await kernel.run({ until: () => history.includes("a ends"), maxMs: 5000 });
  expect(history).toEqual(["a leads", "a ends"]);
});

test("a process that lost the lease waits for it again, and leads again [kube-leader-6]", async () => {
  const { history, candidate, pass } = await start();
  let cutOff = false;
  candidate("a", (handler) => async (request, signal) => {
    if (cutOff) throw new Error("unreachable");
    return handler(request, signal);
  });
  await pass(1000);
  cutOff = true;
  await pass(30_000);
  expect(history).toEqual(["a leads", "a ends"]);
  cutOff = false;
  await pass(20_000);
  expect(history).toEqual(["a leads", "a ends", "a leads"]);
});

test("the lease says who holds it, and counts transitions [kube-leader-7]", async () => {
  const { kernel, kube, candidate, pass } = await start();
  const a = candidate("a");
  await pass(5000);
  a.stop();
  await pass(1000);
  candidate("b");
  await pass(5000);
  let lease: unknown;
  void kube.get(kubernetes.Lease, { name: "l", namespace: "default" }).then((found) => {
    lease = found?.spec;
  });
  await kernel.run({ until: () => lease !== undefined, maxMs: 1000 });
  expect(lease).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
});
