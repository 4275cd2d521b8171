import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { silentLogger } from "../ports/logger.ts";
import type { RoomOptions } from "./cache-room.ts";
import type { ObjectChange } from "./watch-cache.ts";
import { WatchesOnDemand } from "./watches-on-demand.ts";

const configMap = (name: string, namespace: string): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
  data: { large: "x" },
});

async function harness({ most = 2, room }: { readonly most?: number; readonly room?: RoomOptions<ConfigMap> } = {}) {
  const kernel = new Kernel(5);
  const cluster = await kernel.complete(inProcessCluster(kernel), 60_000);
  const act = <T>(work: () => Promise<T>) => kernel.complete(work(), 60_000);
  for (const name of ["a", "b", "c"])
    await act(() =>
      cluster.kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } }),
    );
  let requests: string[] = [];
  const kube = cluster.client((request, signal) => {
    requests.push(request.target);
    return cluster.transport(request, signal);
  });
  let changed: string[] = [];
  const changes: ObjectChange<ConfigMap>[] = [];
  const ending = new AbortController();
  const watches = new WatchesOnDemand({
    kube,
    resource: kubernetes.ConfigMap,
    clock: kernel.clock,
    random: kernel.random,
    log: silentLogger,
    most,
    ...(room === undefined ? {} : { room }),
    signal: ending.signal,
    keep: ({ data: _, ...rest }) => rest,
    onChange: (id, change) => {
      changed.push(id);
      if (change !== undefined) changes.push(change);
    },
  });
  const pass = (ms: number) => kernel.run({ until: () => false, maxMs: ms });
  const create = (name: string, namespace: string) =>
    act(() => cluster.kube.create(kubernetes.ConfigMap, configMap(name, namespace)));
  const took = () => {
    const was = { changed: [...new Set(changed)], requests: requests.length };
    [changed, requests] = [[], []];
    return was;
  };
  const names = (id: string) =>
    watches
      .objects(id)
      ?.map(({ metadata }) => metadata.name)
      .filter((name) => name !== "kube-root-ca.crt")
      .sort();
  const remove = (name: string, namespace: string) =>
    act(() => cluster.kube.delete(kubernetes.ConfigMap, { name, namespace }));
  return { watches, ending, pass, create, remove, took, names, changes };
}

test("a part is watched from when it is opened until it is closed, and only what is kept of it is held", async () => {
  const { watches, pass, create, took, names } = await harness();
  await create("one", "a");
  expect(watches.objects("first")).toBeUndefined();
  watches.open("first", { namespace: "a" });
  watches.open("first", { namespace: "a" });
  expect(names("first")).toBeUndefined();
  await pass(1000);
  expect(names("first")).toEqual(["one"]);
  expect(watches.objects("first")?.find(({ metadata }) => metadata.name === "one")).not.toHaveProperty("data");
  // Also that the first list is there is news, whatever is in it.
  expect(took()).toEqual({ changed: ["first"], requests: 2 });
  await create("two", "a");
  await create("elsewhere", "b");
  await pass(1000);
  expect(names("first")).toEqual(["one", "two"]);
  expect(took().changed).toEqual(["first"]);
  watches.close("first");
  await create("three", "a");
  await pass(3_600_000);
  expect(took()).toEqual({ changed: [], requests: 0 });
  expect(watches.objects("first")).toBeUndefined();
});

test("no more run at once than may; a place that is given back is there for the next", async () => {
  const { watches, pass, names } = await harness({ most: 2 });
  for (const id of ["a", "b", "c"]) watches.open(id, { namespace: id });
  await pass(1000);
  expect([watches.size, names("a"), names("b"), names("c")]).toEqual([2, [], [], undefined]);
  watches.close("a");
  watches.open("c", { namespace: "c" });
  await pass(1000);
  expect([names("a"), names("b"), names("c")]).toEqual([undefined, [], []]);
});

test("all of them end with their process", async () => {
  const { watches, ending, pass, create, took } = await harness();
  watches.open("a", { namespace: "a" });
  await pass(1000);
  took();
  ending.abort(new Error("over"));
  watches.open("b", { namespace: "b" });
  await create("one", "a");
  await pass(3_600_000);
  expect(took()).toEqual({ changed: [], requests: 0 });
});

test("of each namespace and in all no more are kept than there is room for; what happens to others is news [watches-on-demand-1]", async () => {
  const shareOf = ({ metadata }: ConfigMap) => metadata.namespace ?? "";
  const { watches, pass, create, remove, changes } = await harness({ room: { shareOf, each: 2, inAll: 5 } });
  const labelSelector = "!kubernetes.io/description";
  for (const name of ["1", "2"]) await create(name, "a");
  await create("1", "b");
  watches.open("all", { labelSelector });
  expect(watches.share("all", "b")).toBeUndefined();
  await pass(1000);
  const names = (namespace: string) => {
    const share = watches.share("all", namespace);
    return typeof share === "string" ? share : share?.map(({ metadata }) => metadata.name).sort();
  };
  const seen = () =>
    changes
      .splice(0)
      .map(({ before, after, isKept }) =>
        [before, after, isKept].map((each) => (each === undefined || each === false ? each : each.metadata.name)),
      );
  expect([names("a"), names("b"), names("c")]).toEqual([["1", "2"], ["1"], []]);
  expect(seen()).toEqual([]);
  await create("3", "a");
  await pass(1000);
  expect([names("a"), names("b"), watches.objects("all")?.length]).toEqual(["incomplete", ["1"], 3]);
  expect(seen()).toEqual([[undefined, "3", false]]);
  await remove("3", "a");
  await remove("1", "a");
  await pass(1000);
  expect(seen()).toEqual([
    ["3", undefined, false],
    ["1", undefined, undefined],
  ]);
  // What the namespace has besides is known again with the next list.
  expect(names("a")).toBe("incomplete");
  watches.close("all");
  watches.open("all", { labelSelector });
  await pass(1000);
  expect(names("a")).toEqual(["2"]);
  for (const name of ["1", "2", "3"]) await create(name, "c");
  await create("1", "default");
  await create("2", "default");
  await pass(1000);
  expect([names("c"), names("default"), watches.objects("all")?.length]).toEqual(["incomplete", "noRoom", 5]);
});
