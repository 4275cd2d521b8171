import { describe, expect, test } from "vitest";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { silentLogger } from "../ports/logger.ts";
import type { HttpHandler, HttpResponse } from "../ports/http.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { type ObjectChange, WatchCache } from "./watch-cache.ts";

const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default" },
  data,
});

/** Runs `work` while the kernel turns, so that awaiting inside it makes progress. */
async function turning<T>(kernel: Kernel, work: Promise<T>): Promise<T> {
  let result: { value: T } | undefined;
  void work.then((value) => {
    result = { value };
  });
  await kernel.run({ until: () => result !== undefined, maxMs: 600_000 });
  if (result === undefined) throw new Error("the work did not end");
  return result.value;
}

async function start(break_: (handler: HttpHandler) => HttpHandler = (handler) => handler) {
  const kernel = new Kernel(7);
  const cluster = await turning(kernel, inProcessCluster(kernel));
  const kube = cluster.client(break_(cluster.transport));
  const cache = new WatchCache({
    kube,
    resource: kubernetes.ConfigMap,
    clock: kernel.clock,
    random: kernel.random,
    log: silentLogger,
    selection: { namespace: "default" },
    indexes: { colour: (object: ConfigMap) => (object.data?.["colour"] === undefined ? [] : [object.data["colour"]]) },
  });
  const changes: ObjectChange<ConfigMap>[] = [];
  cache.onChange((change) => changes.push(change));
  const stopping = new AbortController();
  const names = () =>
    cache
      .list()
      .map(({ metadata }) => metadata.name)
      .filter((name) => name !== "kube-root-ca.crt")
      .sort();
  return {
    kernel,
    cluster,
    cache,
    changes,
    names,
    run: () => void cache.run(stopping.signal),
    stop: () => stopping.abort(new Error("stop")),
    pass: (ms: number) => kernel.run({ until: () => false, maxMs: ms }),
  };
}

describe("a watch cache", () => {
  test("lists, then follows: what is created, changed and deleted shows up with before and after", async () => {
    const { kernel, cluster, cache, changes, names, run, stop, pass } = await start();
    await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("a")));
    run();
    await pass(100);
    expect(names()).toEqual(["a"]);
    changes.length = 0;
    await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("b", { colour: "red" })));
    await turning(
      kernel,
      cluster.kube.patch(
        kubernetes.ConfigMap,
        { name: "b", namespace: "default" },
        { type: "merge", body: { data: { colour: "blue" } } },
      ),
    );
    await turning(kernel, cluster.kube.delete(kubernetes.ConfigMap, { name: "a", namespace: "default" }));
    await pass(100);
    expect(
      changes.map(({ key, before, after }) => [
        key,
        before?.data?.["colour"] ?? before?.metadata.name,
        after?.data?.["colour"],
      ]),
    ).toEqual([
      ["default/b", undefined, "red"],
      ["default/b", "red", "blue"],
      ["default/a", "a", undefined],
    ]);
    expect(cache.byIndex("colour", "red")).toEqual([]);
    expect(cache.byIndex("colour", "blue").map(({ metadata }) => metadata.name)).toEqual(["b"]);
    expect(cache.get("default/b")?.metadata.managedFields).toBeUndefined();
    stop();
  });

  test("catches up after its connection was cut, without listing again", async () => {
    let lists = 0;
    let cut: (() => void) | undefined;
    const { kernel, cluster, names, run, stop, pass } = await start((handler) => async (request, signal) => {
      if (request.target.includes("configmaps?limit")) lists += 1;
      if (!request.target.includes("watch=true")) return handler(request, signal);
      const own = new AbortController();
      cut = () => own.abort(new Error("cut"));
      return handler(request, AbortSignal.any([signal, own.signal]));
    });
    run();
    await pass(100);
    cut?.();
    await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("missed")));
    await pass(30_000);
    expect(names()).toEqual(["missed"]);
    expect(lists).toBe(1);
    stop();
  });

  test("lists again after a 410, and drops what went away in between", async () => {
    let refuse = false;
    let cut: (() => void) | undefined;
    const gone = {
      status: 410,
      headers: {},
      body: JSON.stringify({
        kind: "Status",
        status: "Failure",
        reason: "Expired",
        code: 410,
        message: "too old resource version",
      }),
    };
    const { kernel, cluster, names, run, stop, pass } = await start((handler) => async (request, signal) => {
      if (!request.target.includes("watch=true")) return handler(request, signal);
      if (refuse) {
        refuse = false;
        return gone;
      }
      const own = new AbortController();
      cut = () => own.abort(new Error("cut"));
      return handler(request, AbortSignal.any([signal, own.signal]));
    });
    await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("old")));
    run();
    await pass(100);
    refuse = true;
    await turning(kernel, cluster.kube.delete(kubernetes.ConfigMap, { name: "old", namespace: "default" }));
    await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("new")));
    cut?.();
    await pass(30_000);
    expect(names()).toEqual(["new"]);
    stop();
  });

  test("of an optional kind is empty while the server does not have it, asks seldom, and has what there is once it does [kube-watch-cache-1]", async () => {
    let has = false;
    let lists = 0;
    const kernel = new Kernel(8);
    const cluster = await turning(kernel, inProcessCluster(kernel));
    const kube = cluster.client(async (request, signal) => {
      if (!request.target.includes("configmaps")) return cluster.transport(request, signal);
      lists += 1;
      return has ? cluster.transport(request, signal) : { status: 404, headers: {}, body: "404 page not found" };
    });
    const cache = new WatchCache({
      kube,
      resource: kubernetes.ConfigMap,
      selection: { namespace: "default" },
      optional: true,
      clock: kernel.clock,
      random: kernel.random,
      log: silentLogger,
    });
    const stopping = new AbortController();
    void cache.run(stopping.signal);
    await turning(kernel, cache.synced);
    expect(cache.size).toBe(0);
    await kernel.run({ until: () => false, maxMs: 120_000 });
    expect(lists).toBeLessThanOrEqual(3);
    await kernel.run({ until: () => false, maxMs: 3_600_000 });
    expect(lists).toBeLessThanOrEqual(35);
    has = true;
    await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("there")));
    await kernel.run({ until: () => cache.get("default/there") !== undefined, maxMs: 240_000 });
    expect(cache.get("default/there")).toBeDefined();
    stopping.abort(new Error("stop"));
  });

  test.for([{ mayBeForbidden: true }, { mayBeForbidden: false }])(
    "of a kind that the process may not read counts as read after a while, where that is expected: $mayBeForbidden [kube-watch-cache-2]",
    async ({ mayBeForbidden }) => {
      let isAllowed = false;
      const kernel = new Kernel(8);
      const cluster = await turning(kernel, inProcessCluster(kernel));
      const refused = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Forbidden", code: 403 };
      const kube = cluster.client(async (request, signal) =>
        isAllowed || !request.target.includes("configmaps")
          ? cluster.transport(request, signal)
          : { status: 403, headers: { "content-type": "application/json" }, body: JSON.stringify(refused) },
      );
      const cache = new WatchCache({
        kube,
        resource: kubernetes.ConfigMap,
        selection: { namespace: "default" },
        mayBeForbidden,
        clock: kernel.clock,
        random: kernel.random,
        log: silentLogger,
      });
      let isRead = false;
      void cache.synced.then(() => (isRead = true));
      const stopping = new AbortController();
      void cache.run(stopping.signal);
      await kernel.run({ until: () => false, maxMs: 2000 });
      expect(isRead).toBe(false);
      await kernel.run({ until: () => false, maxMs: 60_000 });
      expect({ isRead, size: cache.size }).toEqual({ isRead: mayBeForbidden, size: 0 });
      isAllowed = true;
      await turning(kernel, cluster.kube.create(kubernetes.ConfigMap, configMap("there")));
      await kernel.run({ until: () => cache.get("default/there") !== undefined, maxMs: 60_000 });
      expect(cache.get("default/there")).toBeDefined();
      stopping.abort(new Error("stop"));
    },
  );

  test("takes a watch that says nothing for dead, and asks again", async () => {
    let watches = 0;
    const { run, stop, pass } = await start((handler) => async (request, signal) => {
      if (!request.target.includes("watch=true")) return handler(request, signal);
      watches += 1;
      if (watches > 1) return handler(request, signal);
      return {
        status: 200,
        headers: {},
        body: (async function* silent() {
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
          yield "";
        })(),
      };
    });
    run();
    await pass(200_000);
    expect(watches).toBeGreaterThan(1);
    stop();
  });

  /** The times of the watch requests, on a server that answers them as `treat` says. */
  async function askedWhile(
    treat: (signal: AbortSignal) => HttpResponse | Promise<HttpResponse>,
    ms: number,
  ): Promise<{ asked: number[]; lists: number }> {
    const asked: number[] = [];
    let lists = 0;
    let now = () => 0;
    const { kernel, run, stop, pass } = await start((handler) => async (request, signal) => {
      if (request.target.includes("configmaps?limit")) lists += 1;
      if (!request.target.includes("watch=true")) return handler(request, signal);
      asked.push(now());
      return treat(signal);
    });
    now = () => kernel.now;
    run();
    await pass(ms);
    stop();
    return { asked, lists };
  }

  const gaps = (moments: readonly number[]) => moments.slice(1).map((at, index) => at - (moments[index] ?? 0));

  test.for([
    {
      title: "the server does not answer",
      treat: (): Promise<HttpResponse> => Promise.reject(new Error("connection refused")),
      relists: false,
    },
    {
      title: "every watch is ended at once, in order",
      treat: () => ({ status: 200, headers: {}, body: "" }),
      relists: false,
    },
    {
      title: "every resourceVersion is too old",
      treat: () => ({ status: 410, headers: {}, body: JSON.stringify({ reason: "Expired", code: 410 }) }),
      relists: true,
    },
  ])("asks ever less often while $title", async ({ treat, relists }) => {
    const { asked, lists } = await askedWhile(treat, 120_000);
    const waits = gaps(asked);
    for (const [index, wait] of waits.entries()) {
      const base = Math.min(10_000, 200 * 2 ** index);
      expect(wait).toBeGreaterThanOrEqual(base * 0.5);
      expect(wait).toBeLessThanOrEqual(base * 1.5 + 1);
    }
    expect(asked.length).toBeLessThan(25);
    expect(lists).toBe(relists ? asked.length : 1);
  });

  test("comes back no earlier than a busy server asks", async () => {
    const { asked } = await askedWhile(() => ({ status: 429, headers: { "retry-after": "7" }, body: "{}" }), 60_000);
    for (const wait of gaps(asked)) expect(wait).toBeGreaterThanOrEqual(7000);
    expect(asked.length).toBeGreaterThan(4);
  });

  test("of many processes do not come back at the same moment when a server ends all watches", async () => {
    const kernel = new Kernel(11);
    const cluster = await turning(kernel, inProcessCluster(kernel));
    const reopened = new Set<number>();
    let endsAt = Infinity;
    const kube = cluster.client(async (request, signal) => {
      if (!request.target.includes("watch=true")) return cluster.transport(request, signal);
      if (kernel.now >= endsAt) reopened.add(kernel.now);
      const ended = kernel.clock.sleep(Math.max(0, 60_000 - kernel.now)).catch(() => undefined);
      return {
        status: 200,
        headers: {},
        body: (async function* () {
          if (kernel.now < 60_000) await ended;
          else
            await new Promise<never>((_, reject) =>
              signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
            );
          yield "";
        })(),
      };
    });
    endsAt = 60_000;
    const stopping = new AbortController();
    for (let process = 0; process < 50; process += 1)
      void new WatchCache({
        kube,
        resource: kubernetes.ConfigMap,
        clock: kernel.clock,
        random: kernel.random,
        log: silentLogger,
      }).run(stopping.signal);
    await kernel.run({ until: () => false, maxMs: 61_000 });
    expect(reopened.size).toBeGreaterThan(25);
    stopping.abort(new Error("stop"));
  });
});
