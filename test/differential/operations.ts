import fc from "fast-check";
import type { Json } from "../contract/api-target.ts";
import { type DifferentialKind, differentialKinds, type JsonPatchStep, sparse } from "./kinds.ts";

/** Which version of an object a write claims to have read. */
export type Version = "fresh" | "stale" | "none" | "future";

/** The query of a write. */
export interface WriteQuery {
  readonly dryRun?: "All" | "Some";
  readonly fieldManager?: string;
  readonly fieldValidation?: "Strict" | "Warn" | "Ignore" | "Other";
  readonly force?: "true" | "false";
}

export interface Selectors {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/**
 * One request (or, for pages, one list) of a kind. `name` is short; objects of the whole cluster get the list's prefix.
 */
export type Operation = { readonly kind: DifferentialKind } & (
  | {
      readonly do: "create";
      readonly name: string;
      readonly generate: boolean;
      readonly duplicateField: boolean;
      readonly metadata: Json;
      readonly contents: Json;
      readonly query: WriteQuery;
    }
  | { readonly do: "get"; readonly name: string; readonly subresource: "" | "status" }
  | { readonly do: "list"; readonly selectors: Selectors; readonly limit: number }
  | {
      readonly do: "update";
      readonly name: string;
      readonly subresource: "" | "status";
      readonly base: "live" | "none";
      readonly version: Version;
      readonly metadata: Json;
      readonly contents: Json;
      readonly query: WriteQuery;
    }
  | {
      readonly do: "patch";
      readonly type: "merge" | "strategic";
      readonly name: string;
      readonly subresource: "" | "status";
      readonly version: Version;
      readonly patch: Json;
      readonly query: WriteQuery;
    }
  | {
      readonly do: "patch";
      readonly type: "json";
      readonly name: string;
      readonly subresource: "" | "status";
      readonly steps: readonly JsonPatchStep[];
      readonly query: WriteQuery;
    }
  | {
      readonly do: "patch";
      readonly type: "apply";
      readonly name: string;
      readonly subresource: "" | "status";
      readonly version: Version;
      readonly metadata: Json;
      readonly contents: Json;
      readonly query: WriteQuery;
    }
  | {
      readonly do: "delete";
      readonly name: string;
      readonly uid: "right" | "wrong" | "none";
      readonly version: Version;
      readonly options: Json;
    }
  | { readonly do: "deletecollection"; readonly selectors: Selectors; readonly options: Json }
);

/** Operations on a few kinds, and the kinds that are watched meanwhile. */
export interface OperationList {
  readonly operations: readonly Operation[];
  readonly watched: "" | "tier=a" | "tier!=a";
}

const names = fc.constantFrom("a", "a", "b", "c");
const metadata = sparse({
  labels: fc.constantFrom<Json>({ tier: "a" }, { tier: "a" }, { tier: "b" }, { tier: "b", more: "1" }),
  annotations: fc.constantFrom<Json>({ note: "1" }, { note: "2", other: "x" }),
});
/** Fields that only few objects have. */
const rareMetadata = sparse({
  finalizers: fc.constantFrom<readonly string[]>(
    ["example.com/hold"],
    ["example.com/hold", "example.com/other"],
    ["foregroundDeletion"],
    ["bare"],
    ["not valid!"],
  ),
  ownerReferences: fc.constantFrom<readonly Json[]>(
    [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "22222222-2222-2222-2222-222222222222" }],
    [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        name: "owner",
        uid: "22222222-2222-2222-2222-222222222222",
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
    [{ apiVersion: "v1", kind: "", name: "owner", uid: "" }],
  ),
});
const anyMetadata = fc.oneof(
  { weight: 5, arbitrary: metadata },
  { weight: 2, arbitrary: fc.tuple(metadata, rareMetadata).map(([one, other]) => ({ ...one, ...other })) },
);

const oftenNone = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const writeQuery = fc
  .record({
    dryRun: oftenNone(fc.constantFrom<"All" | "Some">("All", "All", "All", "Some")),
    fieldManager: fc.constantFrom(undefined, "alice", "bob"),
    fieldValidation: oftenNone(
      fc.constantFrom<"Strict" | "Warn" | "Ignore" | "Other">("Strict", "Strict", "Warn", "Ignore", "Other"),
    ),
  })
  .map(withoutUndefined);
const applyQuery = fc
  .record({
    dryRun: oftenNone(fc.constantFrom<"All" | "Some">("All")),
    fieldManager: fc.constantFrom("alice", "bob", "alice", "bob", "alice", "bob", undefined),
    fieldValidation: oftenNone(fc.constantFrom<"Strict" | "Warn" | "Ignore" | "Other">("Strict", "Ignore")),
    force: fc.constantFrom<"true" | "false" | undefined>(undefined, undefined, "true", "false"),
  })
  .map(withoutUndefined);

function withoutUndefined<T extends object>(record: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

const labelSelectors = fc.constantFrom(
  undefined,
  undefined,
  "tier=a",
  "tier!=a",
  "tier in (a,b)",
  "tier notin (a)",
  "tier",
  "!tier",
  "tier=",
  "tier in a",
  "more>0",
  "tier==b,more",
);
const fieldSelectors = (kind: DifferentialKind) =>
  oftenNone(
    fc.constantFrom(
      "metadata.name=<a>",
      "metadata.name!=<a>",
      "metadata.namespace=nowhere",
      "nonsense=1",
      "metadata.name",
      ...(selectable[kind.kind] ?? []),
    ),
  );
const selectable: Readonly<Record<string, readonly string[]>> = {
  Pod: ["spec.nodeName=ghost", "status.phase=Pending", "status.phase!=Running", "spec.restartPolicy=Never"],
  Node: ["spec.unschedulable=true", "spec.unschedulable!=true"],
  Widget: ["spec.mode=big", "spec.size=1"],
};
const selectors = (kind: DifferentialKind) =>
  fc.record({ labelSelector: labelSelectors, fieldSelector: fieldSelectors(kind) }).map(withoutUndefined);

const deleteOptions = sparse({
  propagationPolicy: fc.constantFrom("Background", "Foreground", "Orphan", "Sideways"),
  gracePeriodSeconds: fc.constantFrom(0, 0, 1, 20, -1),
  dryRun: fc.constantFrom(["All"], ["All"], ["Some"]),
  orphanDependents: fc.constantFrom(true, false),
}).map((options) => (Object.keys(options).length > 2 ? {} : options));

const versions = fc.constantFrom<Version>("none", "none", "none", "fresh", "fresh", "stale", "future");

function operationOn(kind: DifferentialKind): fc.Arbitrary<Operation> {
  const on = fc.constant(kind);
  const subresource = fc.constantFrom<"" | "status">("", "", "status");
  const contentsOf = (place: "" | "status", main: fc.Arbitrary<Json>) => (place === "status" ? kind.statuses : main);
  const metaOf = (place: "" | "status") =>
    place === "status"
      ? fc.oneof({ weight: 3, arbitrary: fc.constant<Json>({}) }, { weight: 1, arbitrary: anyMetadata })
      : anyMetadata;
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: on,
        do: fc.constant("create" as const),
        name: names,
        generate: fc.nat(9).map((n) => n === 0),
        duplicateField: fc.nat(15).map((n) => n === 0),
        metadata: anyMetadata,
        contents: kind.contents,
        query: writeQuery,
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: on, do: fc.constant("get" as const), name: names, subresource }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: on,
        do: fc.constant("list" as const),
        selectors: selectors(kind),
        limit: fc.constantFrom(0, 0, 1, 2, 500),
      }),
    },
    {
      weight: 4,
      arbitrary: subresource.chain((place) =>
        fc.record({
          kind: on,
          do: fc.constant("update" as const),
          name: names,
          subresource: fc.constant(place),
          base: fc.constantFrom<"live" | "none">("live", "live", "none"),
          version: versions,
          metadata: metaOf(place),
          contents: contentsOf(place, kind.contents),
          query: writeQuery,
        }),
      ),
    },
    {
      weight: 4,
      arbitrary: subresource.chain((place) =>
        fc.record({
          kind: on,
          do: fc.constant("patch" as const),
          type: fc.constantFrom<"merge" | "strategic">("merge", "strategic"),
          name: names,
          subresource: fc.constant(place),
          version: fc.constantFrom<Version>("none", "none", "none", "none", "fresh", "stale"),
          patch: fc.oneof(contentsOf(place, kind.fragments), fc.constantFrom(...kind.oddPatches)),
          query: writeQuery,
        }),
      ),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: on,
        do: fc.constant("patch" as const),
        type: fc.constant("json" as const),
        name: names,
        subresource,
        steps: fc.array(fc.constantFrom(...kind.jsonPatches), { minLength: 1, maxLength: 2 }),
        query: writeQuery,
      }),
    },
    {
      weight: 6,
      arbitrary: subresource.chain((place) =>
        fc.record({
          kind: on,
          do: fc.constant("patch" as const),
          type: fc.constant("apply" as const),
          name: names,
          subresource: fc.constant(place),
          version: fc.constantFrom<Version>("none", "none", "none", "none", "none", "none", "fresh", "stale"),
          metadata: metaOf(place),
          contents: contentsOf(
            place,
            fc.oneof({ weight: 2, arbitrary: kind.fragments }, { weight: 1, arbitrary: kind.contents }),
          ),
          query: applyQuery,
        }),
      ),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: on,
        do: fc.constant("delete" as const),
        name: names,
        uid: fc.constantFrom<"right" | "wrong" | "none">("none", "none", "none", "right", "wrong"),
        version: fc.constantFrom<Version>("none", "none", "none", "none", "fresh", "stale"),
        options: deleteOptions,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: on,
        do: fc.constant("deletecollection" as const),
        selectors: selectors(kind),
        options: deleteOptions,
      }),
    },
  );
}

/** Lists on one or two kinds, so that operations meet. */
export const operationLists: fc.Arbitrary<OperationList> = fc
  .subarray([...differentialKinds], { minLength: 1, maxLength: 2 })
  .chain((kinds) =>
    fc.record({
      operations: fc.array(fc.oneof(...kinds.map(operationOn)), { minLength: 1, maxLength: 14 }),
      watched: fc.constantFrom<OperationList["watched"]>("", "", "tier=a", "tier!=a"),
    }),
  );

/** One line for people: the request and its kind. */
export function describeOperation({ kind, ...operation }: Operation): string {
  const { do: verb, ...rest } = operation;
  const said = Object.entries(rest).filter(
    ([, value]) =>
      value !== "" &&
      value !== false &&
      value !== "none" &&
      !(typeof value === "object" && Object.keys(value).length === 0),
  );
  return `${verb} ${kind.plural} ${said.map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ")}`;
}
