import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, buildNamespace, labels, machineConfigNodeConditions } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { drainSkipped } from "../core/pool/drain-step.ts";
import type { HttpRequest } from "../ports/http.ts";

const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "1", controller: true };
const pod = (name: string, node: string, app: string, more: { metadata?: object; spec?: object } = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", labels: { app }, ownerReferences: [owner], ...more.metadata },
  spec: { nodeName: node, terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: "x" }], ...more.spec },
});
const running = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };

async function run(harness: Harness, ...pods: readonly Pod[]): Promise<void> {
  await harness.act(async () => {
    for (const each of pods) {
      await harness.kube.create(kubernetes.Pod, each);
      await harness.kube.patch(
        kubernetes.Pod,
        { name: each.metadata.name, namespace: each.metadata.namespace ?? "" },
        { type: "merge", body: running },
        { subresource: "status" },
      );
    }
  });
}

/** A budget that allows `allowed` disruptions now; its controller does not run here. */
function keep(
  harness: Harness,
  app: string,
  { spec = { minAvailable: 2 } as object, expectedPods = 3, allowed = 0 } = {},
): Promise<void> {
  return harness.act(async () => {
    await harness.kube.create(kubernetes.PodDisruptionBudget, {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: `keep-${app}`, namespace: "default" },
      spec: { selector: { matchLabels: { app } }, ...spec },
    });
    await harness.kube.patch(
      kubernetes.PodDisruptionBudget,
      { name: `keep-${app}`, namespace: "default" },
      {
        type: "merge",
        body: {
          status: {
            observedGeneration: 1,
            currentHealthy: 2,
            desiredHealthy: 2,
            expectedPods,
            disruptionsAllowed: allowed,
          },
        },
      },
      { subresource: "status" },
    );
  });
}

const ask = (harness: Harness, value: string, node = "w0") =>
  harness.act(() => harness.annotate(node, { [annotations.desiredDrain]: value }));
const has = async (harness: Harness, key: string, node = "w0") =>
  (await harness.node_(node)).metadata.annotations?.[key];
const applied = (harness: Harness, node = "w0") => has(harness, annotations.lastAppliedDrain, node);
const drained = async (harness: Harness, node = "w0") =>
  conditionOf(
    (await harness.act(() => harness.kube.get(MachineConfigNode, { name: node })))?.status?.conditions,
    machineConfigNodeConditions.drained,
  );
const exists = async (harness: Harness, name: string, namespace = "default") =>
  (await harness.act(() => harness.kube.get(kubernetes.Pod, { name, namespace }))) !== undefined;
const policy = (harness: Harness, said: Readonly<Record<string, string>>) =>
  harness.act(() =>
    harness.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { annotations: said } } },
    ),
  );

async function withPod(): Promise<Harness> {
  const { harness } = await updatedPool(["w0"]);
  await run(harness, pod("web-1", "w0", "web"));
  await harness.pass(500);
  return harness;
}

/** Notes every request of the controllers that `wanted` picks. */
function overhear(harness: Harness, wanted: (request: HttpRequest) => string | undefined): string[] {
  const heard: string[] = [];
  const { intercept } = harness;
  harness.intercept = (handler) => (request, signal) => {
    heard.push(...[wanted(request)].flatMap((text) => text ?? []));
    return intercept(handler)(request, signal);
  };
  return heard;
}

describe("drain", () => {
  test("a node is cordoned, emptied, reported, and put back [drain-controller-1]", async () => {
    const harness = await withPod();
    await ask(harness, "drain-x");
    await harness.pass(2000);
    const node = await harness.node_("w0");
    expect(node.spec?.unschedulable).toBe(true);
    expect(node.metadata.annotations?.[annotations.cordonedFor]).toBe("drain-x");
    expect(
      await harness.act(() => harness.kube.get(kubernetes.Pod, { name: "web-1", namespace: "default" })),
    ).toBeUndefined();
    expect(await applied(harness)).toBe("drain-x");
    expect(await drained(harness)).toMatchObject({ status: "True" });
    await ask(harness, "uncordon-x");
    await harness.pass(1000);
    const back = await harness.node_("w0");
    expect(back.spec?.unschedulable).toBeUndefined();
    expect(back.metadata.annotations?.[annotations.cordonedFor]).toBeUndefined();
    expect(await applied(harness)).toBe("uncordon-x");
  });

  test("a budget blocks a drain; the reason is reported, and relaxing the budget continues the drain at once [drain-controller-7]", async () => {
    const harness = await withPod();
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(30_000);
    expect(await applied(harness)).toBeUndefined();
    expect(await drained(harness)).toMatchObject({
      status: "Unknown",
      reason: "PodsBlocked",
      message:
        "0 of 1 pods have left; blocked: pod default/web-1 by PodDisruptionBudget default/keep-web (allowed disruptions 0, 2 healthy of 2 needed)",
    });
    const { status } = (await harness.act(() => harness.kube.get(MachineConfigNode, { name: "w0" }))) ?? {};
    expect(conditionOf(status?.conditions, "Reconciling")).toMatchObject({
      status: "True",
      reason: "PodsBlocked",
      message: expect.stringContaining("keep-web") as string,
    });
    // The daemon says which generation it has seen.
    expect(status?.observedGeneration).toBeUndefined();
    expect((await harness.events("DrainBlocked")).length).toBe(1);
    await harness.act(() =>
      harness.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }),
    );
    await harness.pass(1000);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("a leaving pod continues the drain at once, and progress is counted [drain-controller-6]", async () => {
    const harness = await withPod();
    await keep(harness, "web");
    await run(harness, pod("a", "w0", "other"), pod("b", "w0", "other"));
    await ask(harness, "drain-x");
    await harness.pass(20_000);
    expect((await drained(harness))?.message).toMatch(/^2 of 3 pods have left; blocked: pod default\/web-1 by /);
    await harness.act(() => harness.kube.delete(kubernetes.Pod, { name: "web-1", namespace: "default" }));
    await harness.pass(600);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("before the first cordon, dry-run evictions report what will block the drain [drain-controller-4]", async () => {
    const harness = await withPod();
    await keep(harness, "web", { spec: { maxUnavailable: 0 } });
    await run(
      harness,
      pod("alone", "w0", "other", { metadata: { ownerReferences: [] } }),
      pod("held", "w0", "other", { metadata: { finalizers: ["example.com/wait"] } }),
    );
    const heard = overhear(harness, ({ method, target, body }) =>
      method === "POST" && target.includes("/eviction")
        ? `evict${target.includes("dryRun=All") ? " dry" : ""}`
        : method === "PATCH" && target.includes("/nodes/w0") && String(body).includes("unschedulable")
          ? "cordon"
          : undefined,
    );
    await ask(harness, "drain-x");
    await harness.pass(3000);
    expect(heard.slice(0, 5)).toEqual(["evict dry", "evict dry", "evict dry", "cordon", "evict"]);
    expect(await harness.events("DrainForecast")).toEqual([
      "Before w0 is drained, of 3 pods: cannot be evicted now: pod default/web-1 by PodDisruptionBudget default/keep-web (allowed disruptions 0, 2 healthy of 2 needed; it can never allow one: its maxUnavailable is 0, so that only more replicas or another budget help); " +
        "will not be re-created elsewhere, because no controller owns them: default/alone; may be held by finalizers: default/held (example.com/wait)",
    ]);
    expect(await exists(harness, "alone")).toBe(false);
  });

  test("a drain without obstacles has no forecast [drain-controller-5]", async () => {
    const harness = await withPod();
    await ask(harness, "drain-x");
    await harness.pass(2000);
    expect(await applied(harness)).toBe("drain-x");
    expect(await harness.events("DrainForecast")).toEqual([]);
  });

  test("a pod that its finalizers hold is named with them after its grace period [drain-controller-9]", async () => {
    const harness = await withPod();
    await run(harness, pod("held", "w0", "other", { metadata: { finalizers: ["example.com/wait"] } }));
    await ask(harness, "drain-x");
    await harness.pass(30_000);
    expect((await drained(harness))?.message).toBe("1 of 2 pods have left; leaving: default/held");
    await harness.pass(60_000);
    expect((await drained(harness))?.message).toMatch(
      /leaving: default\/held \(stuck since .*: held by its finalizers example\.com\/wait\)/,
    );
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Pod,
        { name: "held", namespace: "default" },
        { type: "merge", body: { metadata: { finalizers: null } } },
      ),
    );
    await harness.pass(1000);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("a drain past the pool's deadline reports it and forces nothing [drain-controller-10]", async () => {
    const harness = await withPod();
    await policy(harness, { [annotations.drainDeadlineSeconds]: "60" });
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(120_000);
    expect(await drained(harness)).toMatchObject({ status: "Unknown", reason: "DrainDeadlineExceeded" });
    expect((await harness.events("DrainDeadlineExceeded")).length).toBe(1);
    expect(await exists(harness, "web-1")).toBe(true);
  });

  test("the deadline keeps counting when another process takes over a drain [drain-controller-15]", async () => {
    const { harness, process } = await updatedPool(["w0"]);
    await run(harness, pod("web-1", "w0", "web"));
    await policy(harness, { [annotations.drainDeadlineSeconds]: "60" });
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(45_000);
    expect(await drained(harness)).toMatchObject({ reason: "PodsBlocked" });
    process.abort(new Error("this one ends"));
    harness.start("the next one");
    await harness.pass(25_000);
    expect(await drained(harness)).toMatchObject({ reason: "DrainDeadlineExceeded" });
    expect((await harness.events("DrainBlocked")).length).toBe(1);
    // A third process that takes over midway reports nothing twice.
    await harness.act(() =>
      harness.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }),
    );
    await harness.pass(1000);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("a skip policy returns the node to service, annotates it, and leaves the request unanswered [drain-controller-11]", async () => {
    const harness = await withPod();
    await policy(harness, { [annotations.drainDeadlineSeconds]: "60", [annotations.drainAfterDeadline]: "skip" });
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(70_000);
    const node = await harness.node_("w0");
    expect(node.spec?.unschedulable).toBeUndefined();
    expect(node.metadata.annotations).not.toHaveProperty([annotations.cordonedFor]);
    expect(drainSkipped(node)).toMatchObject({
      request: "drain-x",
      why: expect.stringContaining("default/keep-web") as string,
    });
    expect(await applied(harness)).toBeUndefined();
    expect(await drained(harness)).toMatchObject({
      status: "False",
      reason: "DrainSkipped",
      message: expect.stringContaining("the node serves again and is tried again after") as string,
    });
    expect((await harness.events("DrainSkipped")).length).toBe(1);
    // The same request rests, until the node gets its target again; another one is served at once.
    await harness.act(() =>
      harness.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }),
    );
    await harness.pass(60_000);
    expect((await harness.node_("w0")).spec?.unschedulable).toBeUndefined();
    await ask(harness, "drain-y");
    await harness.pass(1500);
    expect(await applied(harness)).toBe("drain-y");
    expect(drainSkipped(await harness.node_("w0"))).toBeUndefined();
  });

  test("a node whose drain was skipped gives its place to the next one, and is retried after a pause [drain-controller-12]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await run(harness, pod("web-1", "w0", "web"));
    await policy(harness, { [annotations.drainDeadlineSeconds]: "60", [annotations.drainAfterDeadline]: "skip" });
    await keep(harness, "web");
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: first });
    // As its daemon does.
    await harness.act(() => harness.annotate("w0", { [annotations.state]: "Working" }));
    await ask(harness, `drain-${target}`);
    await harness.pass(65_000);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: target });
    expect((await harness.node_("w0")).spec?.unschedulable).toBeUndefined();
    const { of } = await harness.poolStatus("worker");
    expect(of("Updating")?.message).toContain("w0 (DrainSkipped: ");
    await harness.act(() => harness.finish("w1"));
    await harness.pass(60_000);
    expect((await harness.node_("w0")).spec?.unschedulable).toBeUndefined();
    // Five minutes after it was skipped, the machine gets its turn again, and nothing blocks it now.
    await harness.act(() =>
      harness.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }),
    );
    await harness.pass(240_000);
    expect(await applied(harness)).toBe(`drain-${target}`);
    expect((await harness.node_("w0")).spec?.unschedulable).toBe(true);
    expect(drainSkipped(await harness.node_("w0"))).toBeUndefined();
  });

  test("a failed cordon is retried, and nothing is evicted before it succeeds [drain-controller-3]", async () => {
    const harness = await withPod();
    let refused = 0;
    const heard = overhear(harness, ({ method, target }) =>
      method === "POST" && target.includes("/eviction") && !target.includes("dryRun") ? "evict" : undefined,
    );
    const { intercept } = harness;
    harness.intercept = (handler) => (request, signal) => {
      if (request.method !== "PATCH" || !String(request.body).includes("unschedulable") || refused >= 3)
        return intercept(handler)(request, signal);
      refused += 1;
      expect(heard).toEqual([]);
      return Promise.resolve({
        status: 500,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          kind: "Status",
          apiVersion: "v1",
          status: "Failure",
          code: 500,
          reason: "InternalError",
          message: "not now",
        }),
      });
    };
    await ask(harness, "drain-x");
    await harness.pass(10_000);
    expect(refused).toBe(3);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("an invalid drain request is ignored [drain-controller-18]", async () => {
    const harness = await withPod();
    await ask(harness, "dance-x");
    await harness.pass(5000);
    expect((await harness.node_("w0")).spec?.unschedulable).toBeUndefined();
    expect(await exists(harness, "web-1")).toBe(true);
    expect(await applied(harness)).toBeUndefined();
  });

  test("a foreign cordon survives a skipped drain [drain-controller-13]", async () => {
    const harness = await withPod();
    await policy(harness, { [annotations.drainDeadlineSeconds]: "60", [annotations.drainAfterDeadline]: "skip" });
    await keep(harness, "web");
    await harness.act(() => harness.annotate("w0", {}, { unschedulable: true }));
    await ask(harness, "drain-x");
    await harness.pass(70_000);
    expect(drainSkipped(await harness.node_("w0"))?.request).toBe("drain-x");
    expect((await harness.node_("w0")).spec?.unschedulable).toBe(true);
  });

  test("a force policy deletes only what it names, and reports each pod [drain-controller-14]", async () => {
    const harness = await withPod();
    await policy(harness, { [annotations.drainDeadlineSeconds]: "60", [annotations.drainAfterDeadline]: "force: pdb" });
    await keep(harness, "web");
    await run(
      harness,
      pod("web-data", "w0", "web", { spec: { volumes: [{ name: "d", emptyDir: {} }] } }),
      pod("web-alone", "w0", "web", { metadata: { ownerReferences: [] } }),
    );
    await ask(harness, "drain-x");
    await harness.pass(50_000);
    expect(await Promise.all(["web-1", "web-data", "web-alone"].map((name) => exists(harness, name)))).toEqual([
      true,
      true,
      true,
    ]);
    expect(await harness.events("DrainForced")).toEqual([]);
    await harness.pass(20_000);
    expect(await Promise.all(["web-1", "web-data", "web-alone"].map((name) => exists(harness, name)))).toEqual([
      false,
      true,
      true,
    ]);
    expect(await harness.events("DrainForced")).toEqual([
      expect.stringMatching(
        /^pod default\/web-1 by PodDisruptionBudget default\/keep-web \(.*\) is deleted: its node has drained for 6\d s, and the policy of pool worker requires it$/,
      ),
    ]);
    expect((await drained(harness))?.message).toContain(
      "2 not forced, because of what the pool's policy does not name: emptyDir, unmanaged",
    );
    expect(await applied(harness)).toBeUndefined();
    await policy(harness, { [annotations.drainAfterDeadline]: "force: pdb, emptyDir, unmanaged" });
    await harness.pass(2000);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("the last of fifty drains ends at once while a slow server holds 30 and budgets hold 19 [drain-controller-8]", async () => {
    const names = Array.from({ length: 50 }, (_, index) => `w${index}`);
    const { harness } = await updatedPool(names);
    const { intercept } = harness;
    harness.intercept = (handler) => async (request, signal) => {
      if (request.target.includes("/pods/slow-") && request.target.includes("/eviction"))
        await harness.kernel.clock.sleep(25_000, signal);
      return intercept(handler)(request, signal);
    };
    await keep(harness, "web");
    for (const [index, name] of names.entries())
      await run(
        harness,
        index < 30 ? pod(`slow-${index}`, name, "slow") : pod(`web-${index}`, name, index < 49 ? "web" : "free"),
      );
    for (const name of names.slice(0, 49)) await ask(harness, "drain-x", name);
    await harness.pass(2000);
    await ask(harness, "drain-x", "w49");
    await harness.pass(1500);
    expect(await applied(harness, "w49")).toBe("drain-x");
    expect(await applied(harness, "w0")).toBeUndefined();
    expect(await applied(harness, "w48")).toBeUndefined();
  }, 30_000);

  test("the controller watches pods by node, and budgets only while one blocks; it never reads all pods [drain-controller-17]", async () => {
    const { harness } = await updatedPool(["w0", "w1"]);
    await run(harness, pod("web-1", "w0", "web"), pod("other", "w1", "web"));
    // By label the node controller knows the few pods of etcd and of our own.
    const heard = overhear(harness, ({ method, target }) =>
      method === "GET" && /\/(pods|poddisruptionbudgets)\?/.test(target) && !target.includes("labelSelector=")
        ? `${target.includes("watch=true") ? "watch" : "list"} ${target.includes("/pods?") ? "pods" : "budgets"}${target.includes("fieldSelector=spec.nodeName%3Dw0") ? " of w0" : target.includes("/namespaces/default/") ? " of default" : ""}`
        : undefined,
    );
    await harness.pass(60_000);
    expect(heard).toEqual([]);
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(20_000);
    expect([...new Set(heard)].sort()).toEqual([
      "list budgets",
      "list budgets of default",
      "list pods of w0",
      "watch budgets",
      "watch pods of w0",
    ]);
    heard.length = 0;
    await harness.act(() =>
      harness.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }),
    );
    await harness.pass(2000);
    expect(await applied(harness)).toBe("drain-x");
    heard.length = 0;
    // No machine drains: no watch is opened again when the last one would have ended.
    await harness.pass(3_600_000);
    expect(heard).toEqual([]);
  });

  test("an administrator's cordon stays when the suite's is lifted [drain-controller-2]", async () => {
    const harness = await withPod();
    await harness.act(() =>
      harness.kube.patch(kubernetes.Node, { name: "w0" }, { type: "merge", body: { spec: { unschedulable: true } } }),
    );
    await ask(harness, "drain-x");
    await harness.pass(2000);
    expect(await applied(harness)).toBe("drain-x");
    await ask(harness, "uncordon-x");
    await harness.pass(1000);
    expect((await harness.node_("w0")).spec?.unschedulable).toBe(true);
    expect(await applied(harness)).toBe("uncordon-x");
  });

  test("a drained node that is uncordoned is drained again before its daemon continues [drain-controller-16]", async () => {
    const harness = await withPod();
    await ask(harness, "drain-x");
    await harness.pass(2000);
    await harness.act(async () => {
      await harness.kube.patch(
        kubernetes.Node,
        { name: "w0" },
        { type: "merge", body: { spec: { unschedulable: null } } },
      );
      await harness.kube.create(kubernetes.Pod, pod("web-2", "w0", "web"));
    });
    await harness.pass(3000);
    expect((await harness.node_("w0")).spec?.unschedulable).toBe(true);
    expect(
      await harness.act(() => harness.kube.get(kubernetes.Pod, { name: "web-2", namespace: "default" })),
    ).toBeUndefined();
    expect(await applied(harness)).toBe("drain-x");
  });
});

test("a pod that builds an OS image gets ten minutes to finish; all other pods leave meanwhile, also those that are labelled so elsewhere [drain-controller-19]", async () => {
  const { harness } = await updatedPool(["w0"]);
  const label = { labels: { [labels.ephemeralBuildObject]: "" } };
  const build = { metadata: { namespace: buildNamespace, ...label } };
  const builds = (name: string) => exists(harness, name, buildNamespace);
  await harness.act(() =>
    harness.kube.create(kubernetes.Namespace, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: buildNamespace },
    }),
  );
  await run(harness, pod("web-1", "w0", "web"), pod("build-1", "w0", "build", build));
  await run(harness, pod("lookalike", "w0", "build", { metadata: label }));
  await harness.pass(500);
  await ask(harness, "drain-x");
  await harness.pass(60_000);
  expect(await Promise.all([exists(harness, "web-1"), exists(harness, "lookalike"), builds("build-1")])).toEqual([
    false,
    false,
    true,
  ]);
  expect((await drained(harness))?.message).toContain(
    `pod ${buildNamespace}/build-1 (it builds an OS image, which is waited for, ten minutes at most)`,
  );
  expect(await applied(harness)).toBeUndefined();
  await harness.act(() =>
    harness.kube.patch(
      kubernetes.Pod,
      { name: "build-1", namespace: buildNamespace },
      { type: "merge", body: { status: { phase: "Succeeded" } } },
      { subresource: "status" },
    ),
  );
  await harness.pass(90_000);
  expect(await applied(harness)).toBe("drain-x");

  await ask(harness, "uncordon-x");
  await harness.pass(2000);
  await run(harness, pod("build-2", "w0", "build", build));
  await ask(harness, "drain-y");
  await harness.pass(540_000);
  expect(await builds("build-2")).toBe(true);
  await harness.pass(150_000);
  expect(await builds("build-2")).toBe(false);
  expect(await applied(harness)).toBe("drain-y");
});

const linesOf = (harness: Harness) => harness.journal.lines.filter(({ book }) => book === "node/w0");

test("of a machine that its pool gives one target after the other each drain is in its book, from its begin to its end [drain-controller-22]", async () => {
  const { harness } = await updatedPool(["w0"]);
  for (let turn = 0; turn < 20; turn += 1) {
    await harness.act(() => harness.config("50-worker", "worker", { "/etc/a": `${turn + 2}` }));
    await harness.pass(5000);
    const { target } = await harness.poolStatus("worker");
    for (const asks of ["drain", "uncordon"]) {
      await ask(harness, `${asks}-${target}`);
      await harness.pass(5000);
    }
    const done = { [annotations.currentConfig]: target, [annotations.desiredConfig]: target };
    await harness.act(() => harness.annotate("w0", done));
    await harness.pass(2000);
  }
  const count = (of: string) => linesOf(harness).filter(({ reason }) => reason === of).length;
  expect(["TargetSet", "Cordoned", "Drained", "Uncordoned"].map(count)).toEqual([20, 20, 20, 20]);
});

describe("a machine that asks for drains without end", () => {
  test("and takes them back fills its book no more than machines that update [drain-controller-20]", async () => {
    const { harness } = await updatedPool(["w0"]);
    for (let turn = 0; turn < 100; turn += 1) {
      await ask(harness, turn % 2 === 0 ? "drain-x" : "uncordon-x");
      await harness.pass(500);
    }
    expect(linesOf(harness).length).toBeGreaterThan(5);
    expect(linesOf(harness).length).toBeLessThanOrEqual(65);
    await ask(harness, "drain-y");
    await harness.pass(5000);
    expect(await applied(harness)).toBe("drain-y");
  });

  test("and says of itself that none is blocked has that reported once [drain-controller-21]", async () => {
    const harness = await withPod();
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(10_000);
    for (let turn = 0; turn < 10; turn += 1) {
      await harness.act(() =>
        harness.kube.patch(
          MachineConfigNode,
          { name: "w0" },
          { type: "merge", body: { status: { conditions: [] } } },
          { subresource: "status" },
        ),
      );
      await harness.pass(10_000);
    }
    expect(linesOf(harness).filter(({ reason }) => reason === "PodsBlocked")).toHaveLength(1);
  });
});

describe("disruption budgets of a tenant that change without end", () => {
  const change = (harness: Harness, app: string, turn: number) =>
    harness.act(() =>
      harness.kube.patch(
        kubernetes.PodDisruptionBudget,
        { name: `keep-${app}`, namespace: "default" },
        { type: "merge", body: { spec: { minAvailable: 2 + (turn % 2) } } },
      ),
    );
  const remove = (harness: Harness, app: string) =>
    harness.act(() =>
      harness.kube.delete(kubernetes.PodDisruptionBudget, { name: `keep-${app}`, namespace: "default" }),
    );

  test("have the pods that they cover evicted every five seconds, and others no more often [drain-controller-23]", async () => {
    const { harness } = await updatedPool(["w0", "w1"]);
    await run(harness, pod("web-1", "w0", "web"), pod("db-1", "w1", "db"));
    for (const app of ["web", "db"]) await keep(harness, app);
    const heard = overhear(harness, ({ method, target }) =>
      method === "POST" ? /\/pods\/(\w+)-1\/eviction/.exec(target)?.[1] : undefined,
    );
    for (const node of ["w0", "w1"]) await ask(harness, "drain-x", node);
    await harness.pass(7000);
    heard.length = 0;
    for (let turn = 0; turn < 80; turn += 1) {
      await change(harness, "web", turn);
      await harness.act(() => harness.kernel.clock.sleep(250));
    }
    const count = (app: string) => heard.filter((each) => each === app).length;
    for (const app of ["web", "db"]) {
      expect(count(app)).toBeGreaterThanOrEqual(3);
      expect(count(app)).toBeLessThanOrEqual(6);
    }
    await remove(harness, "web");
    await harness.pass(5500);
    expect([await applied(harness, "w0"), await applied(harness, "w1")]).toEqual(["drain-x", undefined]);
  });

  test("hold a late drain no longer than that once one gives way [drain-controller-24]", async () => {
    const harness = await withPod();
    await policy(harness, { [annotations.drainDeadlineSeconds]: "10" });
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(47_000);
    expect(await drained(harness)).toMatchObject({ reason: "DrainDeadlineExceeded" });
    await change(harness, "web", 1);
    await harness.pass(1000);
    await remove(harness, "web");
    await harness.pass(2000);
    expect(await applied(harness)).toBeUndefined();
    await harness.pass(6000);
    expect(await applied(harness)).toBe("drain-x");
  });

  test("are described as the API server does where a namespace has too many of them [drain-controller-25]", async () => {
    const harness = await withPod();
    for (let index = 0; index < 101; index += 1) await keep(harness, `x${index}`);
    await keep(harness, "web");
    await ask(harness, "drain-x");
    await harness.pass(20_000);
    expect((await drained(harness))?.message).toMatch(/blocked: pod default\/web-1 \(.*keep-web needs 2 healthy pods/);
    await remove(harness, "web");
    await harness.pass(6000);
    expect(await applied(harness)).toBe("drain-x");
  });
});
