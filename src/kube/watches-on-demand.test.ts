import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { silentLogger } from "../ports/logger.ts";
import { WatchesOnDemand } from "./watches-on-demand.ts";

const configMap = (name: string, namespace: string): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
  data: { large: "x" },
});

async function harness({ most = 2 } = {}) {
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
  const ending = new AbortController();
  const watches = new WatchesOnDemand({
    kube,
    resource: kubernetes.ConfigMap,
    clock: kernel.clock,
    random: kernel.random,
    log: silentLogger,
    most,
    signal: ending.signal,
    keep: ({ data: _, ...rest }) => rest,
    onChange: (id) => void changed.push(id),
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
  return { watches, ending, pass, create, took, names };
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
