import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { PinnedImageSet } from "../../api/kinds/pinned-image-set.ts";
import { labels } from "../../api/names.ts";
import { poolsOfSet, setsOfPool } from "./pinned-sets.ts";

const pool = (name: string, machineConfigSelector?: object): MachineConfigPool =>
  ({
    metadata: { name },
    spec: machineConfigSelector === undefined ? {} : { machineConfigSelector },
  }) as never;
const set = (name: string, role?: string): PinnedImageSet => ({
  apiVersion: PinnedImageSet.apiVersion,
  kind: PinnedImageSet.kind,
  metadata: { name, ...(role === undefined ? {} : { labels: { [labels.role]: role } }) },
  spec: { pinnedImages: [{ name: `registry.example.com/a@sha256:${"0".repeat(64)}` }] },
});
const byRole = (...roles: readonly string[]) => ({
  matchExpressions: [{ key: labels.role, operator: "In", values: roles }],
});

describe("which sets a pool has", () => {
  test.for([
    { title: "none without a selector", selector: undefined, names: [] },
    { title: "none by an empty selector, which pools refuse", selector: {}, names: [] },
    { title: "those with its role, sorted", selector: { matchLabels: { [labels.role]: "worker" } }, names: ["a", "c"] },
    {
      title: "those of several roles, as a custom pool selects",
      selector: byRole("worker", "infra"),
      names: ["a", "b", "c"],
    },
  ])("$title [pinned-sets-1]", ({ selector, names }) => {
    const sets = [set("c", "worker"), set("b", "infra"), set("a", "worker"), set("d")];
    expect(setsOfPool(pool("p", selector), sets)).toEqual({ verdict: "sets", names });
  });

  test("a set that is being deleted belongs to no pool [pinned-sets-2]", () => {
    const going = set("a", "worker");
    const gone = { ...going, metadata: { ...going.metadata, deletionTimestamp: "2030-01-01T00:00:00Z" } };
    expect(setsOfPool(pool("p", byRole("worker")), [gone])).toEqual({ verdict: "sets", names: [] });
    expect(poolsOfSet(gone, [pool("p", byRole("worker"))])).toEqual([]);
  });

  test("more sets than a pool's spec can hold are refused, with the number and what to do [pinned-sets-3]", () => {
    const many = Array.from({ length: 101 }, (_, at) => set(`s${at}`, "worker"));
    const found = setsOfPool(pool("p", byRole("worker")), many);
    expect(found).toMatchObject({ verdict: "refused", reason: "TooManySets" });
    expect(found.verdict === "refused" ? found.message : "").toMatch(/selects 101 PinnedImageSets.*fewer sets/);
    expect(setsOfPool(pool("p", byRole("worker")), many.slice(1)).verdict).toBe("sets");
  });

  test("a set names the pools that select it, in order [pinned-sets-4]", () => {
    const pools = [
      pool("worker", byRole("worker")),
      pool("infra", byRole("worker", "infra")),
      pool("master", byRole("master")),
    ];
    expect(poolsOfSet(set("a", "worker"), pools)).toEqual(["infra", "worker"]);
    expect(poolsOfSet(set("a"), pools)).toEqual([]);
  });
});

test("a set is one to five hundred images [pinned-sets-5]", () => {
  const image = `registry.example.com/a@sha256:${"0".repeat(64)}`;
  const of = (count: number) => ({
    ...set("a"),
    spec: { pinnedImages: Array.from({ length: count }, () => ({ name: image })) },
  });
  expect([0, 1, 500, 501].map((count) => PinnedImageSet.is(of(count)))).toEqual([false, true, true, false]);
});
