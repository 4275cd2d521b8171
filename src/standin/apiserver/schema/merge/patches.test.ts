import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cloneJson, equalJson } from "../json-values.ts";
import { jsonPatch, mergePatch, type MergeWork, strategicMerge, strategicMergePatch } from "./patches.ts";
import { anything, integer, listMap, object, set, string, stringMap, strings } from "../schema-parts.ts";

const schema = object({
  spec: object({
    replicas: integer,
    strategy: object(
      { type: string, rollingUpdate: object({ max: integer }) },
      { "x-kubernetes-patch-strategy": "retainKeys" },
    ),
    containers: listMap(
      ["name"],
      object({
        name: string,
        image: string,
        args: strings,
        env: listMap(["name"], object({ name: string, value: string })),
      }),
    ),
    taints: { type: "array", items: object({ key: string }), "x-kubernetes-list-type": "atomic" },
    selector: stringMap,
    free: anything,
    members: set(string),
  }),
});
const live = {
  apiVersion: "v1",
  kind: "X",
  metadata: { name: "a", labels: { a: "1", b: "2" }, finalizers: ["x", "y"] },
  spec: {
    replicas: 1,
    strategy: { type: "RollingUpdate", rollingUpdate: { max: 1 } },
    containers: [
      { name: "one", image: "i1", args: ["a"], env: [{ name: "A", value: "1" }] },
      { name: "side", image: "i2" },
    ],
    taints: [{ key: "t" }],
  },
};

function patched(result: { verdict: string; object?: unknown }): unknown {
  expect(result.verdict).toBe("patched");
  return result.object;
}

describe("jsonPatch", () => {
  test.for<[string, unknown[], (object: typeof live) => void]>([
    ["adds a member", [{ op: "add", path: "/spec/x", value: 1 }], (o) => Object.assign(o.spec, { x: 1 })],
    [
      "appends to a list",
      [{ op: "add", path: "/metadata/finalizers/-", value: "z" }],
      (o) => o.metadata.finalizers.push("z"),
    ],
    [
      "inserts into a list",
      [{ op: "add", path: "/metadata/finalizers/1", value: "z" }],
      (o) => o.metadata.finalizers.splice(1, 0, "z"),
    ],
    ["replaces", [{ op: "replace", path: "/spec/replicas", value: 5 }], (o) => (o.spec.replicas = 5)],
    ["removes", [{ op: "remove", path: "/metadata/finalizers/0" }], (o) => o.metadata.finalizers.shift()],
    [
      "reads escapes",
      [{ op: "add", path: "/metadata/labels/a~1b~0c", value: "v" }],
      (o) => Object.assign(o.metadata.labels, { "a/b~c": "v" }),
    ],
    [
      "moves",
      [{ op: "move", from: "/metadata/labels/a", path: "/metadata/labels/c" }],
      (o) => Object.assign(o.metadata, { labels: { b: "2", c: "1" } }),
    ],
    [
      "copies",
      [{ op: "copy", from: "/metadata/labels/a", path: "/metadata/labels/c" }],
      (o) => Object.assign(o.metadata.labels, { c: "1" }),
    ],
    ["passes a test", [{ op: "test", path: "/spec/replicas", value: 1 }], () => undefined],
  ])("%s", ([, operations, edit]) => {
    const expected = cloneJson(live);
    edit(expected);
    expect(patched(jsonPatch(live, operations))).toEqual(expected);
  });

  test.for<[string, unknown]>([
    ["a failed test", [{ op: "test", path: "/spec/replicas", value: 2 }]],
    ["removal of what is not there", [{ op: "remove", path: "/spec/none" }]],
    ["addition under what is not there", [{ op: "add", path: "/spec/none/a", value: 1 }]],
    ["replacement behind a list's end", [{ op: "replace", path: "/spec/containers/7", value: 1 }]],
  ])("%s is refused with Kubernetes' status", ([, operations]) => {
    expect(jsonPatch(live, operations)).toEqual({
      verdict: "refused",
      status: 422,
      reason: "Invalid",
      message: "the server rejected our request due to an error in our request",
    });
  });

  test("replacement of what is not there sets it", () => {
    expect(patched(jsonPatch(live, [{ op: "replace", path: "/spec/none", value: 1 }]))).toMatchObject({
      spec: { none: 1 },
    });
  });

  test("a patch that is no list is a bad request, one that is too long too large", () => {
    expect(jsonPatch(live, {})).toMatchObject({ status: 400 });
    expect(
      jsonPatch(
        live,
        Array.from({ length: 10_001 }, () => ({ op: "test", path: "", value: 1 })),
      ),
    ).toMatchObject({ status: 413 });
  });
});

describe("a patch that copies", () => {
  const doubling = (times: number) => [
    { op: "add", path: "/spec/x", value: {} },
    ...Array.from({ length: times }, (_, index) => ({ op: "copy", from: "/spec", path: `/spec/x${index}` })),
  ];

  test("the whole of itself into itself is refused before it fills the memory [apiserver-patch-1]", () => {
    const patch = doubling(40);
    expect(JSON.stringify(patch).length).toBeLessThan(3_000);
    const before = process.memoryUsage().heapUsed;
    expect(jsonPatch(live, patch)).toEqual({
      verdict: "refused",
      status: 422,
      reason: "Invalid",
      message: "the server rejected our request due to an error in our request",
    });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 * 1024 * 1024);
  });

  test("less than three MiB applies, and a move costs nothing however often [apiserver-patch-2]", () => {
    expect(jsonPatch(live, doubling(10)).verdict).toBe("patched");
    const large = { a: { list: Array.from({ length: 100_000 }, (_, index) => index) } };
    const moves = Array.from({ length: 9_999 }, (_, index) =>
      index % 2 === 0 ? { op: "move", from: "/a", path: "/b" } : { op: "move", from: "/b", path: "/a" },
    );
    const began = process.threadCpuUsage();
    expect(patched(jsonPatch(large, moves))).toEqual({ b: large.a });
    expect(process.threadCpuUsage(began).user / 1000).toBeLessThan(2_000);
  });
});

describe("items of a patch with one merge key", () => {
  const count = 1_000;
  const fields = Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
  const merged = (containers: readonly object[], items: readonly object[]) => {
    const work: MergeWork = { made: new Set(), copied: 0, repeated: 0, repeatedCharacters: 0, written: 0 };
    return { result: strategicMerge({ spec: { containers } }, { spec: { containers: items } }, schema, work), work };
  };
  const repeated = (item: object) => Array.from({ length: count }, () => item);

  test.for([
    { title: "of the object", containers: [{ name: "one", ...fields }], first: [] },
    { title: "of the patch", containers: [{ name: "two" }], first: [{ name: "one", ...fields }] },
    { title: "of a map in it", containers: [{ name: "one", free: fields }], first: [{ name: "one", free: { x: 1 } }] },
  ])("copy each field $title once, however many they are [apiserver-patch-4]", ({ containers, first }) => {
    const { result, work } = merged(containers, [...first, ...repeated({ name: "one", free: { y: 2 } })]);
    expect(result.verdict).toBe("patched");
    expect(work.copied).toBeLessThan(count + 20);
  });

  test("go through a short list in the item again, and not through a long one [apiserver-patch-5]", () => {
    const env = (length: number) => Array.from({ length }, (_, index) => ({ name: `E${index}`, value: "1" }));
    const items = repeated({ name: "one", env: [{ name: "E1", value: "2" }] });
    expect(merged([{ name: "one", env: env(50) }], items)).toMatchObject({
      result: { verdict: "patched" },
      work: { repeated: 50 * (count - 1) },
    });
    const { result, work } = merged([{ name: "one", env: env(5_000) }], items);
    expect(result).toEqual({
      verdict: "refused",
      status: 413,
      reason: "RequestEntityTooLarge",
      message:
        "The items of a list in a patch that have the same merge key lead to more than 100000 items of other lists",
    });
    expect(work.repeated).toBeLessThan(110_000);
  });

  const heavy = "y".repeat(100_000);
  test.for([
    {
      title: "primitive items that go",
      containers: [{ name: "one", args: [heavy] }],
      item: { name: "one", "$deleteFromPrimitiveList/args": ["q"] },
    },
    {
      title: "objects by their keys",
      containers: [{ name: "one", env: [{ name: heavy }] }],
      item: { name: "one", env: [{ name: "E" }] },
    },
    {
      title: "objects that only get an order",
      containers: [{ name: "one", env: [{ name: heavy }] }],
      item: { name: "one", "$setElementOrder/env": [{ name: "E" }] },
    },
  ])(
    "go through heavy items again for a while, and not without end: $title [apiserver-patch-7]",
    ({ containers, item }) => {
      expect(merged(containers, [item, item, item]).result.verdict).toBe("patched");
      expect(merged(containers, repeated(item)).result).toEqual({
        verdict: "refused",
        status: 413,
        reason: "RequestEntityTooLarge",
        message:
          "The items of a list in a patch that have the same merge key lead to more than 4194304 characters of other lists",
      });
    },
  );

  test("write keys in proportion to the object and the patch, whatever an item weighs [apiserver-patch-8]", () => {
    const weights = fc.array(fc.oneof(fc.nat(100), fc.nat(300_000)), { maxLength: 8 });
    fc.assert(
      fc.property(weights, weights, fc.nat(400), (stored, sent, items) => {
        const env = (list: readonly number[]) =>
          list.map((weight, index) => ({ name: `${index}${"y".repeat(weight)}` }));
        const containers = [{ name: "one", args: stored.map((weight) => "y".repeat(weight)), env: env(stored) }];
        const heavyItem = { name: "one", "$deleteFromPrimitiveList/args": ["q"], env: env(sent) };
        const light = { name: "one", "$deleteFromPrimitiveList/args": ["q"], env: [{ name: "E" }] };
        const patch = [heavyItem, ...Array.from({ length: items }, () => light)];
        const { work } = merged(containers, patch);
        const given = JSON.stringify([containers, patch]).length;
        // One more list may be gone through than the limit allows.
        expect(work.written).toBeLessThan(10 * (given + 4 * 1024 * 1024 + 100_000));
      }),
      { numRuns: 15 },
    );
  });

  test("find a long list once where each key is there once [apiserver-patch-6]", () => {
    const finalizers = Array.from({ length: 150_000 }, (_, index) => `f${index}`);
    const patch = {
      metadata: {
        finalizers: ["new"],
        "$deleteFromPrimitiveList/finalizers": ["f1"],
        "$setElementOrder/finalizers": ["f2", "new"],
      },
    };
    const result = patched(strategicMergePatch({ metadata: { finalizers } }, patch, schema)) as typeof live;
    expect(result.metadata.finalizers).toHaveLength(150_000);
  });
});

describe("a strategic merge of long lists", () => {
  const count = 50_000;
  const names = Array.from({ length: count }, (_, index) => `a.example.com/${index}`);
  const owners = names.map((uid) => ({ apiVersion: "v1", kind: "Node", name: "n", uid }));
  test.for<[title: string, metadata: object, patch: object, field: string, left: number]>([
    ["adds primitive items", { finalizers: names }, { finalizers: names.map((name) => `b.${name}`) }, "finalizers", 2],
    [
      "removes primitive items",
      { finalizers: names },
      { "$deleteFromPrimitiveList/finalizers": names },
      "finalizers",
      0,
    ],
    ["merges objects", { ownerReferences: owners }, { ownerReferences: owners.toReversed() }, "ownerReferences", 1],
    [
      "removes objects",
      { ownerReferences: owners },
      { ownerReferences: names.map((uid) => ({ $patch: "delete", uid })) },
      "ownerReferences",
      0,
    ],
  ])("%s in a time that grows as the lists do [apiserver-patch-3]", ([, metadata, patch, field, left]) => {
    const list = { type: "array", "x-kubernetes-patch-strategy": "merge" };
    const listSchema = {
      properties: {
        metadata: {
          properties: {
            finalizers: list,
            ownerReferences: { ...list, "x-kubernetes-patch-merge-key": "uid", items: { type: "object" } },
          },
        },
      },
    };
    const began = process.threadCpuUsage();
    const result = patched(strategicMergePatch({ ...live, metadata }, { metadata: patch }, listSchema as never)) as {
      readonly metadata: Readonly<Record<string, readonly unknown[]>>;
    };
    expect(process.threadCpuUsage(began).user / 1000).toBeLessThan(3_000);
    expect(result.metadata[field]?.length).toBe(left * count);
  });
});

describe("mergePatch", () => {
  test("merges objects, removes by null and replaces lists", () => {
    const result = patched(
      mergePatch(live, { metadata: { labels: { a: null, c: "3" }, finalizers: [] }, spec: { replicas: 2 } }),
    );
    expect(result).toEqual({
      ...live,
      metadata: { name: "a", labels: { b: "2", c: "3" }, finalizers: [] },
      spec: { ...live.spec, replicas: 2 },
    });
  });
  test("applied twice it is the same as once, and its input is left alone", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (target, patch) => {
          const before = cloneJson(target);
          const once = patched(mergePatch(target, patch));
          expect(equalJson(patched(mergePatch(once, patch)), once)).toBe(true);
          expect(equalJson(cloneJson(target), before)).toBe(true);
        },
      ),
    );
  });
});

describe("strategicMergePatch", () => {
  test.for<[string, unknown, Record<string, unknown>]>([
    [
      "merges a list by its key",
      { spec: { containers: [{ name: "one", image: "i9" }] } },
      { containers: [{ ...live.spec.containers[0], image: "i9" }, live.spec.containers[1]] },
    ],
    [
      "puts a new item first",
      { spec: { containers: [{ name: "new", image: "n" }] } },
      { containers: [{ name: "new", image: "n" }, ...live.spec.containers] },
    ],
    [
      "deletes an item",
      { spec: { containers: [{ name: "side", $patch: "delete" }] } },
      { containers: [live.spec.containers[0]] },
    ],
    [
      "replaces a whole list on demand",
      { spec: { containers: [{ $patch: "replace" }, { name: "z" }] } },
      { containers: [{ name: "z" }] },
    ],
    ["replaces an atomic list", { spec: { taints: [{ key: "u" }] } }, { taints: [{ key: "u" }] }],
    ["removes by null", { spec: { taints: null } }, { taints: undefined }],
    [
      "merges nested lists",
      { spec: { containers: [{ name: "one", env: [{ name: "B", value: "2" }] }] } },
      {
        containers: [
          {
            ...live.spec.containers[0],
            env: [
              { name: "B", value: "2" },
              { name: "A", value: "1" },
            ],
          },
          live.spec.containers[1],
        ],
      },
    ],
    [
      "sorts by setElementOrder",
      {
        spec: {
          "$setElementOrder/containers": [{ name: "side" }, { name: "one" }],
          containers: [{ name: "one", image: "i3" }],
        },
      },
      {
        containers: [live.spec.containers[1], { ...live.spec.containers[0], image: "i3" }],
      },
    ],
    [
      "keeps only retained keys",
      { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } },
      { strategy: { type: "Recreate" } },
    ],
    [
      "replaces an object on demand",
      { spec: { strategy: { $patch: "replace", type: "Recreate" } } },
      { strategy: { type: "Recreate" } },
    ],
  ])("%s", ([, patch, spec]) => {
    const expected = cloneJson({ ...live, spec: { ...live.spec, ...spec } });
    expect(cloneJson(patched(strategicMergePatch(live, patch, schema)))).toEqual(expected);
  });

  test("adds to and deletes from lists of primitives", () => {
    const result = patched(
      strategicMergePatch(
        live,
        { metadata: { finalizers: ["z", "x"], "$deleteFromPrimitiveList/finalizers": ["y"] } },
        schema,
      ),
    );
    expect((result as typeof live).metadata.finalizers).toEqual(["z", "x"]);
  });

  test("an item without its key is refused", () => {
    expect(strategicMergePatch(live, { spec: { containers: [{ image: "x" }] } }, schema)).toEqual({
      verdict: "refused",
      status: 500,
      reason: "",
      message: "map: map[image:x] does not contain declared merge key: name",
    });
  });

  test("leaves its input alone", () => {
    const before = cloneJson(live);
    strategicMergePatch(
      live,
      { spec: { containers: [{ name: "one", env: [{ name: "A", value: "9" }] }], strategy: { type: "Q" } } },
      schema,
    );
    expect(live).toEqual(before);
  });
});
