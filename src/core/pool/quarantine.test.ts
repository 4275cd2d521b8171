import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { quarantineStep, quarantinedTargets, refusedTargetsOf } from "./quarantine.ts";

const pool = (quarantined?: unknown, members = 3) => ({
  members,
  metadata: {
    name: "worker",
    annotations: quarantined === undefined ? {} : { [annotations.quarantined]: JSON.stringify(quarantined) },
  },
});
const machine = (name: string, refused: readonly string[], recorded?: string) => ({
  metadata: {
    name,
    annotations: {
      [annotations.refusedTargets]: JSON.stringify(
        refused.map((config) => ({ config, image: "", reason: "it did not boot", at: `t-${name}` })),
      ),
      ...(recorded === undefined ? {} : { [annotations.quarantineReported]: recorded }),
    },
  },
});
const ours = (config: string, ...nodes: string[]) => ({ config, reason: "it did not boot", at: "t-a", nodes });

interface Row {
  readonly title: string;
  readonly given: readonly [ReturnType<typeof pool>, readonly ReturnType<typeof machine>[]];
  readonly annotation?: unknown;
  readonly excluded?: readonly string[];
  readonly quarantined?: readonly string[];
  readonly remedy?: readonly string[];
}

const judge = ({ given: [of, machines], ...expected }: Omit<Row, "title">) => {
  const step = quarantineStep("new", "", of, machines);
  expect({
    annotation: typeof step.annotation === "string" ? JSON.parse(step.annotation) : step.annotation,
    excluded: [...step.excluded].map(([node, record]) => `${node}: ${record}`),
    quarantined: [...step.quarantined].map(([node, record]) => `${node}: ${record}`),
    remedy: step.remedy,
  }).toEqual({ annotation: undefined, excluded: [], quarantined: [], remedy: [], ...expected });
};
const rows = (list: readonly Row[]) => list.map(({ title, ...row }) => [title, row] as const);

describe("a target that one machine of several went back from [pool-quarantine-1]", () => {
  test.for(
    rows([
      { title: "excludes that machine alone", given: [pool(), [machine("a", ["new"])]], excluded: ["a: excluded t-a"] },
      { title: "is recorded once", given: [pool(), [machine("a", ["new"], "excluded t-a")]] },
      {
        title: "excludes it again where it refuses again",
        given: [pool(), [machine("a", ["new"], "excluded t-earlier")]],
        excluded: ["a: excluded t-a"],
      },
      {
        title: "stays the only witness, however often it says so",
        given: [pool(), [machine("a", ["new", "new"], "excluded t-a")]],
      },
      {
        title: "is no quarantine because the machine says that it was recorded as one",
        given: [pool(), [machine("a", ["new"], "t-a")]],
        remedy: ["a"],
      },
      {
        title: "leaves what people wrote alone",
        given: [pool([{ config: "theirs" }, "another"]), [machine("a", ["new"])]],
        excluded: ["a: excluded t-a"],
      },
      {
        title: "leaves the quarantine of an administrator in place",
        given: [pool([{ config: "new" }]), [machine("a", ["new"])]],
        excluded: ["a: excluded t-a"],
      },
      {
        title: "ends a quarantine that rested on that machine alone, without lifting its refusal",
        given: [pool([ours("new", "a")]), [machine("a", ["new"], "t-a")]],
        annotation: null,
        excluded: ["a: excluded t-a"],
      },
    ]),
  )("%s", ([, row]) => judge(row));
});

describe("a target that two machines, or the only one, went back from [pool-quarantine-2]", () => {
  test.for(
    rows([
      {
        title: "is quarantined for the pool",
        given: [pool(), [machine("a", ["new"], "excluded t-a"), machine("b", ["new"])]],
        annotation: [ours("new", "a", "b")],
        quarantined: ["a: t-a", "b: t-b"],
      },
      {
        title: "is quarantined for a pool of one machine",
        given: [pool(undefined, 1), [machine("a", ["new"])]],
        annotation: [ours("new", "a")],
        quarantined: ["a: t-a"],
      },
      {
        title: "that a third one refuses too gets that machine added",
        given: [
          pool([ours("new", "a", "b")]),
          [machine("a", ["new"], "t-a"), machine("b", ["new"], "t-b"), machine("c", ["new"])],
        ],
        annotation: [ours("new", "a", "b", "c")],
        quarantined: ["c: t-c"],
      },
      {
        title: "stays until it is lifted",
        given: [pool([ours("new", "a", "b")]), [machine("a", ["new"], "t-a"), machine("b", ["new"], "t-b")]],
      },
      {
        title: "stays while one of the witnesses stands by it",
        given: [pool([ours("new", "a", "b")]), [machine("a", ["new"], "t-a")]],
      },
      {
        title: "is tried again when an administrator removes the annotation",
        given: [pool(), [machine("a", ["new"], "t-a"), machine("b", ["new"], "t-b")]],
        remedy: ["a", "b"],
      },
      {
        title: "needs two new witnesses after an administrator removed the annotation",
        given: [pool(), [machine("a", ["new"], "t-a"), machine("b", ["new"])]],
        excluded: ["b: excluded t-b"],
        remedy: ["a"],
      },
      {
        title:
          "that was written to the pool by a controller that died before it could note so is written the same again",
        given: [pool([ours("new", "a", "b")]), [machine("a", ["new"], "excluded t-a"), machine("b", ["new"])]],
        quarantined: ["a: t-a", "b: t-b"],
      },
      {
        title: "ends with the next target",
        given: [pool([ours("old", "a", "b")]), [machine("a", ["old"], "t-a"), machine("b", ["old"], "t-b")]],
        annotation: null,
      },
      {
        title: "ends when the machines have lifted it by themselves",
        given: [pool([ours("new", "a", "b")]), [machine("a", [], "t-a")]],
        annotation: null,
      },
      { title: "leaves a list of people as it is spelled", given: [pool(["another"]), []] },
      {
        title: "leaves what people wrote alone",
        given: [
          pool([{ config: "theirs" }, "another", ours("old", "a", "b")]),
          [machine("a", ["new"]), machine("b", ["new"])],
        ],
        annotation: [{ config: "theirs" }, { config: "another" }, ours("new", "a", "b")],
        quarantined: ["a: t-a", "b: t-b"],
      },
    ]),
  )("%s", ([, row]) => judge(row));
});

test("what cannot be read says nothing", () => {
  const broken = {
    metadata: {
      name: "a",
      annotations: { [annotations.refusedTargets]: "{", [annotations.quarantined]: '["x", 5, {"config": "y"}]' },
    },
  };
  judge({ given: [pool(), [broken as unknown as ReturnType<typeof machine>]] });
  expect(quarantinedTargets(broken)).toEqual(["x", "y"]);
});

test("a machine's refusal message is truncated before it goes to its pool", () => {
  const long = machine("a", ["new"]);
  const reason = "x".repeat(100_000);
  long.metadata.annotations[annotations.refusedTargets] = JSON.stringify([{ config: "new", reason, at: reason }]);
  const { annotation } = quarantineStep("new", "", pool(undefined, 1), [long]);
  expect(annotation?.length).toBeLessThan(2000);
});

test("of the refusals that a machine writes the last sixteen count, with names that objects can have [pool-quarantine-16]", () => {
  const names = Array.from({ length: 40_000 }, (_, i) => i.toString(36));
  expect(refusedTargetsOf(machine("a", names)).map(({ config }) => config)).toEqual(names.slice(-16));
  expect(refusedTargetsOf(machine("a", ["x".repeat(254), "y".repeat(253)])).map(({ config }) => config.length)).toEqual(
    [253],
  );
});
