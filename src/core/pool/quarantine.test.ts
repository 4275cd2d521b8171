import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { quarantineStep, quarantinedTargets } from "./quarantine.ts";

const pool = (quarantined?: unknown) => ({
  metadata: {
    name: "worker",
    annotations: quarantined === undefined ? {} : { [annotations.quarantined]: JSON.stringify(quarantined) },
  },
});
const machine = (name: string, refused: readonly string[], told?: string) => ({
  metadata: {
    name,
    annotations: {
      [annotations.refusedTargets]: JSON.stringify(
        refused.map((config) => ({ config, image: "", reason: "it did not boot", at: `t-${name}` })),
      ),
      ...(told === undefined ? {} : { [annotations.quarantineTold]: told }),
    },
  },
});
const ours = (config: string, ...nodes: string[]) => ({ config, reason: "it did not boot", at: "t-a", nodes });

describe("a target that a machine went back from", () => {
  test.for<{
    title: string;
    given: [ReturnType<typeof pool>, readonly ReturnType<typeof machine>[]];
    annotation: unknown;
    tell: readonly string[];
    remedy: readonly string[];
  }>([
    {
      title: "is quarantined for the pool",
      given: [pool(), [machine("a", ["new"])]],
      annotation: [ours("new", "a")],
      tell: ["a"],
      remedy: [],
    },
    {
      title: "that another one refuses too gets that machine added",
      given: [pool([ours("new", "a")]), [machine("a", ["new"], "t-a"), machine("b", ["new"])]],
      annotation: [ours("new", "a", "b")],
      tell: ["b"],
      remedy: [],
    },
    {
      title: "stays while nobody lifts it",
      given: [pool([ours("new", "a")]), [machine("a", ["new"], "t-a")]],
      annotation: undefined,
      tell: [],
      remedy: [],
    },
    {
      title: "is tried again when somebody removes the annotation",
      given: [pool(), [machine("a", ["new"], "t-a")]],
      annotation: undefined,
      tell: [],
      remedy: ["a"],
    },
    {
      title: "that was written to the pool by a controller that died before it could note so is written the same again",
      given: [pool([ours("new", "a")]), [machine("a", ["new"])]],
      annotation: undefined,
      tell: ["a"],
      remedy: [],
    },
    {
      title: "ends with the next target",
      given: [pool([ours("old", "a")]), [machine("a", ["old"], "t-a")]],
      annotation: null,
      tell: [],
      remedy: [],
    },
    {
      title: "ends when the machine has lifted it by itself",
      given: [pool([ours("new", "a")]), [machine("a", [], "t-a")]],
      annotation: null,
      tell: [],
      remedy: [],
    },
    {
      title: "leaves a list of people as it is spelled",
      given: [pool(["another"]), []],
      annotation: undefined,
      tell: [],
      remedy: [],
    },
    {
      title: "leaves what people wrote alone",
      given: [pool([{ config: "theirs" }, "another", ours("old", "a")]), [machine("a", ["new"])]],
      annotation: [{ config: "theirs" }, { config: "another" }, ours("new", "a")],
      tell: ["a"],
      remedy: [],
    },
  ])("$title", ({ given: [of, machines], annotation, tell, remedy }) => {
    const step = quarantineStep("new", "", of, machines);
    expect(typeof step.annotation === "string" ? JSON.parse(step.annotation) : step.annotation).toEqual(annotation);
    expect([...step.tell.keys()]).toEqual(tell);
    expect(step.remedy).toEqual(remedy);
  });

  test("what cannot be read says nothing", () => {
    const broken = {
      metadata: {
        name: "a",
        annotations: { [annotations.refusedTargets]: "{", [annotations.quarantined]: '["x", 5, {"config": "y"}]' },
      },
    };
    expect(quarantineStep("new", "", pool(), [broken])).toEqual({ annotation: undefined, tell: new Map(), remedy: [] });
    expect(quarantinedTargets(broken)).toEqual(["x", "y"]);
  });
});
