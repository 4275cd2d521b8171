import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { activeRebuild, rebuildSerial, rebuildStep } from "./build-rebuild.ts";
import type { BuildPhase } from "../config/build-phase.ts";

interface Case {
  readonly title: string;
  readonly pool?: Readonly<Record<string, string>>;
  readonly poolLabels?: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, string>>;
  readonly image?: false;
  readonly build?: BuildPhase;
  readonly goesOn?: boolean;
  readonly step: object;
}

const request = (token: string) => ({ [annotations.rebuildImage]: token });
const image = `r/os@sha256:${"a".repeat(64)}`;
const stepOf = ({
  pool = {},
  poolLabels = {},
  config = {},
  image: has,
  build,
  goesOn = false,
}: Omit<Case, "title" | "step">) =>
  rebuildStep({
    pool: { metadata: { name: "worker", annotations: { ...pool }, labels: { ...poolLabels } } },
    config: {
      metadata: { name: "worker", annotations: { ...config } },
      status: has === false ? {} : { currentImagePullSpec: image },
    },
    build,
    goesOn,
  });
const begun = (token: string, config: Readonly<Record<string, string>> = {}) => {
  const step = stepOf({ pool: request(token), config });
  return step.do === "begin"
    ? { [annotations.rebuildSerial]: String(step.serial), [annotations.rebuildActive]: step.active }
    : {};
};

describe("a request to build again", () => {
  test.for<Case>([
    { title: "nothing is asked", build: "Succeeded", step: { do: "nothing" } },
    {
      title: "the pool's annotation asks",
      pool: request("now"),
      build: "Succeeded",
      step: { do: "begin", serial: 1, request: "now" },
    },
    {
      title: "an empty text asks as well",
      pool: request(""),
      build: "Succeeded",
      step: { do: "begin", serial: 1, request: "" },
    },
    { title: "the pool's label asks", poolLabels: request(""), build: "Succeeded", step: { do: "begin", serial: 1 } },
    {
      title: "the MachineOSConfig's annotation asks",
      config: { [annotations.rebuild]: "" },
      build: "Succeeded",
      step: { do: "begin", serial: 1 },
    },
    {
      title: "a later request raises the serial further",
      pool: request("b"),
      config: { [annotations.rebuildSerial]: "4" },
      build: "Failed",
      step: { do: "begin", serial: 5 },
    },
    {
      title: "set again with the same value while it runs",
      pool: request("a"),
      config: begun("a"),
      build: "Building",
      step: { do: "nothing" },
    },
    {
      title: "set again with another value while it runs",
      pool: request("b"),
      config: begun("a"),
      build: "Building",
      step: { do: "begin", serial: 2 },
    },
    { title: "removed by hand while it runs", config: begun("a"), build: "Building", step: { do: "nothing" } },
    {
      title: "removed by hand, at its end",
      config: begun("a"),
      build: "Succeeded",
      step: { do: "finish", succeeded: true },
    },
    { title: "it runs", pool: request("a"), config: begun("a"), build: "Prepared", step: { do: "nothing" } },
    { title: "its build is not made yet", pool: request("a"), config: begun("a"), step: { do: "nothing" } },
    {
      title: "it succeeded",
      pool: request("a"),
      config: begun("a"),
      build: "Succeeded",
      step: { do: "finish", succeeded: true },
    },
    {
      title: "it failed for good",
      pool: request("a"),
      config: begun("a"),
      build: "Failed",
      step: { do: "finish", succeeded: false },
    },
    {
      title: "it was ended by somebody",
      pool: request("a"),
      config: begun("a"),
      build: "Interrupted",
      step: { do: "finish", succeeded: false },
    },
    {
      title: "it was interrupted and restarts automatically",
      pool: request("a"),
      config: begun("a"),
      build: "Interrupted",
      goesOn: true,
      step: { do: "nothing" },
    },
    {
      title: "nothing was built yet and the first build runs: it counts as the rebuild",
      pool: request("a"),
      image: false,
      build: "Building",
      step: { do: "begin", serial: 0, keepsRun: true },
    },
    {
      title: "nothing was built yet and nothing runs",
      pool: request("a"),
      image: false,
      step: { do: "begin", serial: 1, keepsRun: false },
    },
    {
      title: "nothing was built yet and the first build failed",
      pool: request("a"),
      image: false,
      build: "Failed",
      step: { do: "begin", serial: 1, keepsRun: false },
    },
    {
      title: "pool and MachineOSConfig both ask, and the pool's is under way",
      pool: request("a"),
      config: { ...begun("a"), [annotations.rebuild]: "b" },
      build: "Building",
      step: { do: "nothing" },
    },
    {
      title: "both asked, and one build has served both",
      pool: request("a"),
      config: { ...begun("a"), [annotations.rebuild]: "b" },
      build: "Succeeded",
      step: { do: "finish", succeeded: true },
    },
  ])("$title [build-rebuild-1]", ({ step, ...facts }) => {
    expect(stepOf(facts)).toMatchObject(step);
  });

  test("what is kept says nothing of the request itself [build-rebuild-2]", () => {
    const config = begun("for INC-4711 of alice");
    expect(JSON.stringify(config)).not.toContain("alice");
    expect(activeRebuild({ metadata: { name: "w", annotations: config } })).toMatchObject({ serial: 1 });
    expect(rebuildSerial({ metadata: { name: "w", annotations: config } })).toBe(1);
  });

  test("a serial or an active rebuild that cannot be read is none [build-rebuild-3]", () => {
    expect(rebuildSerial({ metadata: { name: "w", annotations: { [annotations.rebuildSerial]: "x" } } })).toBe(0);
    expect(
      activeRebuild({ metadata: { name: "w", annotations: { [annotations.rebuildActive]: "x:y" } } }),
    ).toBeUndefined();
  });
});
