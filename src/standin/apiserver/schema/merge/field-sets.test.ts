import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ApplyResult, KubeObject, Schema } from "../contract.ts";
import { countWork } from "../../../../../test/support/count-work.ts";
import { fieldsOf } from "./field-set.ts";
import { applyServerSide, printOwnership, trackUpdate } from "./field-sets.ts";
import { cloneJson } from "../json-values.ts";
import { anything, atomic, integer, list, listMap, object, set, string, stringMap } from "../schema-parts.ts";

const port = object({ port: integer, protocol: { ...string, default: "TCP" }, name: string });
const schema: Schema = object({
  spec: object({
    replicas: integer,
    paused: { type: "boolean" },
    selector: atomic(stringMap),
    labels: stringMap,
    containers: listMap(["name"], object({ name: string, image: string, ports: listMap(["port", "protocol"], port) })),
    members: set(string),
    args: list(string),
    free: anything,
  }),
  status: object({ ready: integer }),
});

function thing(spec: Record<string, unknown>, metadata: Record<string, unknown> = {}): KubeObject {
  return { apiVersion: "x/v1", kind: "Thing", metadata: { name: "a", ...metadata }, spec };
}
function apply(
  live: KubeObject | undefined,
  manager: string,
  applied: KubeObject,
  force = false,
  time = "2026-01-01T00:00:00Z",
): ApplyResult {
  return applyServerSide({ live, applied, name: "/a", schema, manager, force, time });
}
function applied(result: ApplyResult): KubeObject {
  expect(result).toMatchObject({ verdict: "applied" });
  if (result.verdict !== "applied") throw new Error("not applied");
  return result.object;
}
function updated(
  before: KubeObject | undefined,
  manager: string,
  edit: (object: KubeObject) => void,
  subresource?: string,
): KubeObject {
  const after = cloneJson(before ?? thing({}));
  edit(after);
  trackUpdate(before, after, schema, {
    manager,
    time: "2026-01-01T00:00:00Z",
    ...(subresource === undefined ? {} : { subresource }),
  });
  return after;
}
function specOf(object: KubeObject): Record<string, unknown> {
  return object["spec"] as Record<string, unknown>;
}

describe("trackUpdate", () => {
  test("a creator owns what it wrote, in FieldsV1", () => {
    const created = thing(
      { replicas: 1, containers: [{ name: "c", image: "i", ports: [{ port: 80 }] }], selector: { a: "b" } },
      { labels: { l: "1" } },
    );
    trackUpdate(undefined, created, schema, { manager: "kubectl-create", time: "2026-01-01T00:00:00Z" });
    expect(created.metadata.managedFields).toEqual([
      {
        manager: "kubectl-create",
        operation: "Update",
        apiVersion: "x/v1",
        time: "2026-01-01T00:00:00Z",
        fieldsType: "FieldsV1",
        fieldsV1: {
          "f:metadata": { "f:labels": { ".": {}, "f:l": {} } },
          "f:spec": {
            ".": {},
            "f:containers": {
              ".": {},
              'k:{"name":"c"}': {
                ".": {},
                "f:image": {},
                "f:name": {},
                "f:ports": { ".": {}, 'k:{"port":80,"protocol":"TCP"}': { ".": {}, "f:port": {} } },
              },
            },
            "f:replicas": {},
            "f:selector": {},
          },
        },
      },
    ]);
  });

  test("a changed field changes hands, an equal one does not", () => {
    const one = updated(undefined, "one", (o) => Object.assign(specOf(o), { replicas: 1, paused: true }));
    const two = updated(one, "two", (o) => Object.assign(specOf(o), { replicas: 2, paused: true }));
    expect(printOwnership(two)).toEqual({
      "one/Update": '{"f:spec":{".":{},"f:paused":{}}}',
      "two/Update": '{"f:spec":{"f:replicas":{}}}',
    });
  });

  test("a removed field has no owner", () => {
    const one = updated(undefined, "one", (o) => Object.assign(specOf(o), { replicas: 1, paused: true }));
    const two = updated(one, "two", (o) => delete specOf(o)["replicas"]);
    expect(printOwnership(two)).toEqual({ "one/Update": '{"f:spec":{".":{},"f:paused":{}}}' });
  });

  test("a write to a subresource is a manager of its own", () => {
    const one = updated(undefined, "one", (o) => Object.assign(specOf(o), { replicas: 1 }));
    const two = updated(one, "one", (o) => (o["status"] = { ready: 1 }), "status");
    expect(printOwnership(two)).toEqual({
      "one/Update": '{"f:spec":{".":{},"f:replicas":{}}}',
      "one/Update/status": '{"f:status":{".":{},"f:ready":{}}}',
    });
    const entry = two.metadata.managedFields?.find((one) => one.subresource === "status");
    expect(entry?.subresource).toBe("status");
  });

  test("a client that drops the managed fields loses nothing, one that sends [] or [{}] resets them", () => {
    const one = updated(undefined, "one", (o) => Object.assign(specOf(o), { replicas: 1 }));
    expect(printOwnership(updated(one, "two", (o) => delete o.metadata.managedFields))).toEqual(printOwnership(one));
    expect(updated(one, "two", (o) => (o.metadata.managedFields = [])).metadata.managedFields).toBeUndefined();
    expect(updated(one, "two", (o) => (o.metadata.managedFields = [{}])).metadata.managedFields).toBeUndefined();
  });

  test("no more than ten updaters are kept apart", () => {
    let object = updated(undefined, "m0", (o) => Object.assign(specOf(o), { labels: { k0: "" } }));
    for (let index = 1; index < 15; index++)
      object = updated(object, `m${index}`, (o) => Object.assign(specOf(o)["labels"] as object, { [`k${index}`]: "" }));
    expect(object.metadata.managedFields).toHaveLength(10);
    expect(object.metadata.managedFields?.map((entry) => entry.manager)).toContain("ancient-changes");
  });
});

describe("applyServerSide", () => {
  test("creates, and makes the applier owner of what it named", () => {
    const object = applied(
      apply(undefined, "a", thing({ replicas: 1, containers: [{ name: "c", image: "i" }], members: ["x"] })),
    );
    expect(printOwnership(object)).toEqual({
      "a/Apply":
        '{"f:spec":{"f:containers":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:image":{},"f:name":{}}},"f:members":{"v:\\"x\\"":{}},"f:replicas":{}}}',
    });
  });

  test("removes what the applier no longer names, and keeps what others own", () => {
    const one = applied(apply(undefined, "a", thing({ replicas: 1, paused: true, labels: { a: "1", b: "2" } })));
    const two = applied(apply(one, "b", thing({ paused: true, labels: { c: "3" } })));
    const three = applied(apply(two, "a", thing({ labels: { a: "1" } })));
    expect(specOf(three)).toEqual({ paused: true, labels: { a: "1", c: "3" } });
  });

  test("removes an item of a list map with what defaulting put there", () => {
    const one = applied(apply(undefined, "a", thing({ containers: [{ name: "c" }, { name: "d" }] })));
    (specOf(one)["containers"] as Record<string, unknown>[]).forEach((item) => (item["image"] = "defaulted"));
    const two = applied(apply(one, "a", thing({ containers: [{ name: "d" }] })));
    expect(specOf(two)["containers"]).toEqual([{ name: "d", image: "defaulted" }]);
  });

  test("an item in which another owns a field stays with its key and that field", () => {
    const one = applied(apply(undefined, "a", thing({ containers: [{ name: "c", ports: [] }] })));
    const two = updated(
      one,
      "b",
      (o) => ((specOf(o)["containers"] as Record<string, unknown>[])[0] = { name: "c", ports: [], image: "b" }),
    );
    const three = applied(apply(two, "a", thing({})));
    expect(specOf(three)["containers"]).toEqual([{ name: "c", image: "b" }]);
  });

  test("one conflict is reported on one line", () => {
    const one = updated(undefined, "kubectl-edit", (o) =>
      Object.assign(specOf(o), { replicas: 3, containers: [{ name: "c", image: "x" }] }),
    );
    expect(apply(one, "a", thing({ replicas: 4 }))).toEqual({
      verdict: "conflict",
      message: 'Apply failed with 1 conflict: conflict with "kubectl-edit" using x/v1: .spec.replicas',
      causes: [
        { reason: "FieldManagerConflict", field: ".spec.replicas", message: 'conflict with "kubectl-edit" using x/v1' },
      ],
    });
  });

  test("several conflicts are listed by manager", () => {
    const one = applied(apply(undefined, "b", thing({ replicas: 3 })));
    const two = updated(
      one,
      "edit",
      (o) => Object.assign(specOf(o), { containers: [{ name: "c", image: "x" }] }),
      "scale",
    );
    const result = apply(two, "a", thing({ replicas: 4, containers: [{ name: "c", image: "y" }] }));
    expect(result).toMatchObject({
      message:
        'Apply failed with 2 conflicts: conflicts with "b":\n- .spec.replicas\nconflicts with "edit" with subresource "scale" using x/v1:\n- .spec.containers[name="c"].image',
    });
  });

  test("force takes the field over", () => {
    const one = applied(apply(undefined, "b", thing({ replicas: 3 })));
    const two = applied(apply(one, "a", thing({ replicas: 4 }), true));
    expect(specOf(two)["replicas"]).toBe(4);
    expect(printOwnership(two)).toEqual({ "a/Apply": '{"f:spec":{"f:replicas":{}}}' });
  });

  test("equal values are owned together", () => {
    const one = applied(apply(undefined, "b", thing({ replicas: 3 })));
    const two = applied(apply(one, "a", thing({ replicas: 3 })));
    expect(Object.keys(printOwnership(two))).toEqual(["a/Apply", "b/Apply"]);
    const three = applied(apply(two, "a", thing({})));
    expect(specOf(three)["replicas"]).toBe(3);
  });

  test("an object without owners belongs to before-first-apply", () => {
    const result = apply(thing({ replicas: 1 }), "a", thing({ replicas: 2 }));
    expect(result).toMatchObject({
      message: 'Apply failed with 1 conflict: conflict with "before-first-apply" using x/v1: .spec.replicas',
    });
  });

  test("a repeated apply keeps the times", () => {
    const one = applied(apply(undefined, "a", thing({ replicas: 1 })));
    expect(applied(apply(one, "a", thing({ replicas: 1 }), false, "2027-01-01T00:00:00Z"))).toEqual(one);
  });

  test("managed fields cannot be applied", () => {
    expect(apply(undefined, "a", thing({}, { managedFields: [{ manager: "x" }] }))).toEqual({
      verdict: "refused",
      status: 400,
      message: "metadata.managedFields must be nil",
    });
  });

  test("an item without its key is refused", () => {
    expect(apply(undefined, "a", thing({ containers: [{ image: "x" }] }))).toMatchObject({
      verdict: "refused",
      message:
        'failed to create typed patch object (/a; x/v1, Kind=Thing): .spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)',
    });
  });

  test("kubectl takes over what it applied on the client's side, and its annotation follows", () => {
    const last = "kubectl.kubernetes.io/last-applied-configuration";
    const config = thing({ replicas: 1 });
    const live = updated(undefined, "kubectl-client-side-apply", (o) => {
      Object.assign(specOf(o), { replicas: 1 });
      o.metadata.annotations = { [last]: JSON.stringify(config) };
    });
    const result = applied(apply(live, "kubectl", thing({ replicas: 2 })));
    expect(specOf(result)["replicas"]).toBe(2);
    expect(result.metadata.annotations?.[last]).toBe(`${JSON.stringify(thing({ replicas: 2 }))}\n`);
    expect(apply(live, "other", thing({ replicas: 2 })).verdict).toBe("conflict");
  });

  test("what kubectl's annotation says says nothing where it is deeper than objects are [apiserver-field-sets-1]", () => {
    const last = "kubectl.kubernetes.io/last-applied-configuration";
    const deep = `{"a":`.repeat(40_000);
    const live = updated(undefined, "other", (o) => {
      Object.assign(specOf(o), { replicas: 1 });
      o.metadata.annotations = { [last]: `{"spec":{"replicas":1,"free":${deep}1${"}".repeat(40_000)}}}` };
    });
    expect(apply(live, "kubectl", thing({ replicas: 2 })).verdict).toBe("conflict");
  });

  test("fields of unknown objects are owned one by one", () => {
    const one = applied(apply(undefined, "a", thing({ free: { x: { y: 1 }, l: [1] } })));
    expect(printOwnership(one)).toEqual({ "a/Apply": '{"f:spec":{"f:free":{"f:l":{},"f:x":{".":{},"f:y":{}}}}}' });
    const two = applied(apply(one, "b", thing({ free: { x: { z: 1 } } })));
    expect(specOf(two)["free"]).toEqual({ x: { y: 1, z: 1 }, l: [1] });
  });
});

describe("laws of apply", () => {
  const word = fc.constantFrom("p", "q", "r", "s");
  const anySpec = fc.record(
    {
      replicas: fc.nat(3),
      paused: fc.boolean(),
      selector: fc.dictionary(word, word),
      labels: fc.dictionary(word, word),
      containers: fc.uniqueArray(fc.record({ name: word, image: word }, { requiredKeys: ["name"] }), {
        selector: (one) => one.name,
      }),
      members: fc.uniqueArray(word),
      args: fc.array(word, { maxLength: 2 }),
    },
    { requiredKeys: [] },
  );

  /** The order of associative lists is free. */
  function unordered(object: KubeObject): unknown {
    const spec = cloneJson(specOf(object));
    for (const key of ["containers", "members"]) {
      const items = spec[key];
      if (Array.isArray(items)) spec[key] = items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    }
    return spec;
  }

  test("applied twice it is the same as once", () => {
    fc.assert(
      fc.property(anySpec, anySpec, anySpec, (first, other, spec) => {
        const start = applied(apply(applied(apply(undefined, "a", thing(first))), "b", thing(other), true));
        const once = applied(apply(start, "a", thing(spec), true));
        expect(applied(apply(once, "a", thing(spec), true))).toEqual(once);
      }),
    );
  });

  test("nothing that another owns is removed or changed without force", () => {
    fc.assert(
      fc.property(anySpec, anySpec, anySpec, (first, other, spec) => {
        const start = applied(apply(applied(apply(undefined, "a", thing(first))), "b", thing(other), true));
        const result = apply(start, "a", thing(spec));
        if (result.verdict !== "applied") return;
        // Whoever owns a field finds it as it was: applying the same again changes nothing.
        const again = applied(apply(result.object, "b", thing(other)));
        expect(unordered(again)).toEqual(unordered(result.object));
      }),
    );
  });

  test("appliers of different fields commute", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("a1", "a2"), word),
        fc.dictionary(fc.constantFrom("b1", "b2"), word),
        (mine, yours) => {
          const left = thing({
            labels: mine,
            containers: Object.entries(mine).map(([name, image]) => ({ name, image })),
          });
          const right = thing({
            labels: yours,
            containers: Object.entries(yours).map(([name, image]) => ({ name, image })),
          });
          const one = applied(apply(applied(apply(undefined, "l", left)), "r", right));
          const two = applied(apply(applied(apply(undefined, "r", right)), "l", left));
          expect(printOwnership(one)).toEqual(printOwnership(two));
          const sorted = (o: KubeObject): unknown => ({
            ...specOf(o),
            containers: (specOf(o)["containers"] as { name: string }[]).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
          });
          expect(sorted(one)).toEqual(sorted(two));
        },
      ),
    );
  });

  test("an applier that names nothing leaves no trace", () => {
    fc.assert(
      fc.property(anySpec, anySpec, (other, spec) => {
        const start = applied(apply(undefined, "b", thing(other)));
        const result = apply(start, "a", thing(spec));
        if (result.verdict !== "applied") return;
        const gone = applied(apply(result.object, "a", thing({})));
        expect(printOwnership(gone)["a/Apply"]).toBe('{"f:spec":{}}');
        expect(unordered(gone)).toEqual(unordered(start));
      }),
    );
  });
});

test("fields that are called like a property of all objects are merged, kept and removed like others [apiserver-field-sets-names-1]", () => {
  const odd = { constructor: "a", toString: "b", hasOwnProperty: "c" };
  const first = applied(apply(thing({ labels: { x: "1" } }), "m", thing({ labels: odd })));
  expect(first["spec"]).toEqual({ labels: { x: "1", ...odd } });
  const second = applied(apply(first, "n", thing({ labels: { y: "2" } })));
  expect(second["spec"]).toEqual({ labels: { x: "1", ...odd, y: "2" } });
  const third = applied(apply(second, "m", thing({ labels: { toString: "b" } })));
  expect(third["spec"]).toEqual({ labels: { x: "1", y: "2", toString: "b" } });
  expect(apply(third, "n", thing({ constructor: { a: 1 } }))).toMatchObject({ verdict: "refused" });
});

test("an object in a field is applied with the metadata of every object [apiserver-field-sets-embedded-1]", () => {
  const embedded: Schema = {
    ...object({ apiVersion: string, kind: string, metadata: { type: "object" }, spec: object({ size: integer }) }),
    "x-kubernetes-embedded-resource": true,
  };
  const holder = object({ spec: object({ held: embedded }) });
  const one = thing({ held: { apiVersion: "v1", kind: "Held", metadata: { name: "b" }, spec: { size: 1 } } });
  const result = applyServerSide({
    live: undefined,
    applied: one,
    name: "/a",
    schema: holder,
    manager: "one",
    force: false,
    time: "2026-01-01T00:00:00Z",
  });
  expect(applied(result)).toMatchObject({ spec: one["spec" as never] });
});

test("items of a list that have the same key, as all without one, are added up in one pass [apiserver-merge-work-1]", async () => {
  const containers = listMap(["name"], anything);
  const items = (count: number) => Array.from({ length: count }, (_, i) => ({ [`field${i}`]: 1 }));
  const [few, many] = [
    await countWork(() => fieldsOf(items(200), containers)),
    await countWork(() => fieldsOf(items(2000), containers)),
  ];
  expect(many / few).toBeLessThan(20);
  const [set] = [...fieldsOf(items(3), containers).children.values()];
  expect([...(set?.children.keys() ?? [])]).toEqual(["f:field0", "f:field1", "f:field2"]);
});
