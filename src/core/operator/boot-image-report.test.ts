import { describe, expect, test } from "vitest";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { MachineSet } from "../../api/foreign/openshift.ts";
import { factsOf } from "../pool/pool-queries.ts";
import { type MachineApi, effectiveManagers, isManaged } from "./boot-image-managers.ts";
import { type BootImageOutcome, type JudgedSet, describeBootImages, releaseAwaited } from "./boot-image-report.ts";
import { explainMachineConfiguration } from "./explain-settings.ts";

const now = Date.UTC(2030, 0, 1);
const condition = (type: string, status: string) => ({
  type,
  status,
  reason: "",
  message: "",
  lastTransitionTime: "2030-01-01T00:00:00Z",
});
const pool = (type: string, { updated = 0, is = "rendered-1" } = {}) =>
  ({
    spec: { configuration: { name: "rendered-1" } },
    status: { conditions: [condition(type, "True")], updatedMachineCount: updated, configuration: { name: is } },
  }) as unknown as Parameters<typeof releaseAwaited>[0];
const version = (...states: readonly string[]) => ({ status: { history: states.map((state) => ({ state })) } });

test.for([
  { what: "no pool", is: false },
  { what: "a pool that has its configuration", pool: pool("Updated"), is: true },
  { what: "a pool that has an earlier configuration", pool: pool("Updated", { is: "rendered-0" }), is: false },
  { what: "a pool of which no machine is updated", pool: pool("Updating"), is: false },
  { what: "a pool of which one machine is updated", pool: pool("Updating", { updated: 1 }), is: true },
  { what: "a cluster that is upgraded", pool: pool("Updated"), version: version("Partial", "Completed"), is: false },
  { what: "a cluster that is new", pool: pool("Updated"), version: version(), is: false },
  { what: "a cluster that was upgraded", pool: pool("Updated"), version: version("Completed"), is: true },
])("boot images of a release with $what: given $is [operator-boot-image-report-1]", ({ pool: of, version: at, is }) => {
  expect(releaseAwaited(of, at) === undefined).toBe(is);
});

describe("the conditions about boot images", () => {
  const set = (name: string, verdict: JudgedSet["decision"]["verdict"]): JudgedSet => ({
    name,
    decision: { verdict, because: `${name} is so`, remedy: "do this", image: "i", from: "a", to: "b" } as never,
  });
  const told = (outcome: Partial<BootImageOutcome>) =>
    describeBootImages({ sets: [], awaited: undefined, problem: undefined, unsupported: [], ...outcome });

  test.for<{ what: string; outcome: Partial<BootImageOutcome>; progressing: object; degraded: object }>([
    {
      what: "no set",
      outcome: {},
      progressing: { status: "False", reason: "NA", message: "" },
      degraded: { status: "False", reason: "NA", message: "" },
    },
    {
      what: "sets that have it, and others that are none of the suite's",
      outcome: { sets: [set("a", "current"), set("b", "ignored")] },
      progressing: { status: "False", reason: "Reconciled", message: "Reconciled 2 of 2 MAPI MachineSets" },
      degraded: { status: "False", reason: "AsExpected", message: "" },
    },
    {
      what: "a set that waits",
      outcome: { sets: [set("a", "update"), set("b", "current")], awaited: "it is early" },
      progressing: {
        status: "True",
        reason: "WaitingForRelease",
        message: "Reconciled 1 of 2 MAPI MachineSets; 1 wait: it is early",
      },
      degraded: { status: "False" },
    },
    {
      what: "a set that keeps its own",
      outcome: { sets: [set("a", "skipped"), set("b", "current")] },
      progressing: {
        status: "False",
        reason: "Skipped",
        message: "Reconciled 1 of 2 MAPI MachineSets (1 skipped); MachineSet a: a is so (do this)",
      },
      degraded: { status: "False", reason: "AsExpected" },
    },
    {
      what: "a set that fails",
      outcome: { sets: [set("a", "refused")], unsupported: ["x"] },
      progressing: { status: "False", message: "Reconciled 0 of 1 MAPI MachineSets" },
      degraded: {
        status: "True",
        reason: "Failing",
        message:
          "MachineSet a: a is so (do this); boot images of x are not managed; set the selection mode of x in spec.managedBootImages to None",
      },
    },
    {
      what: "what is not managed alone",
      outcome: { unsupported: ["x"] },
      progressing: { reason: "NA" },
      degraded: { status: "True", reason: "NotSupported" },
    },
    {
      what: "an unreadable release",
      outcome: { problem: "p" },
      progressing: { reason: "NA" },
      degraded: { status: "True", reason: "Failing", message: "p" },
    },
  ])("with $what [operator-boot-image-report-2]", ({ outcome, progressing, degraded }) => {
    expect(told(outcome)).toMatchObject([progressing, degraded]);
  });

  test("have a bound, however many sets there are [operator-boot-image-report-3]", () => {
    const sets = Array.from({ length: 2000 }, (_, index) =>
      set(`set-${index}`, index % 2 === 0 ? "skipped" : "refused"),
    );
    for (const { message } of told({ sets })) expect(message.length).toBeLessThanOrEqual(8192);
  });
});

test("mco explain says what each asks for [operator-explain-boot-images-1]", () => {
  const facts = factsOf({ pools: [], nodes: [], machineConfigNodes: [] } as never, now);
  const explained = (type: string, reason: string) =>
    explainMachineConfiguration(
      {
        apiVersion: "operator.openshift.io/v1",
        kind: "MachineConfiguration",
        metadata: { name: "cluster", generation: 1 },
        spec: { managementState: "Managed" },
        status: { observedGeneration: 1, conditions: [{ ...condition(type, "True"), reason, message: "the sets" }] },
      } as MachineConfiguration,
      facts,
    );
  const failing = explained("BootImageUpdateDegraded", "Failing");
  expect(failing.sections).toContainEqual(
    expect.objectContaining({ lines: ["BootImageUpdateDegraded: True (Failing), the sets"] }),
  );
  expect(failing.todo).toEqual([expect.stringContaining("do for each of the named MachineSets") as string]);
  expect(explained("BootImageUpdateDegraded", "NotSupported").todo).toEqual([
    expect.stringContaining("to None") as string,
  ]);
  const waits = explained("BootImageUpdateProgressing", "WaitingForRelease");
  expect([waits.todo, waits.next]).toEqual([[], ["BootImageUpdateProgressing: it continues on its own"]]);
});

describe("the machine sets that are managed", () => {
  const machineSets = (mode: "All" | "Partial" | "None", labels?: Readonly<Record<string, string>>) => ({
    resource: "machinesets" as const,
    apiGroup: "machine.openshift.io" as const,
    selection: {
      mode,
      ...(labels === undefined ? {} : { partial: { machineResourceSelector: { matchLabels: labels } } }),
    },
  });
  const controlPlane = { ...machineSets("All"), resource: "controlplanemachinesets" as const };
  const [aws, bare]: readonly MachineApi[] = [
    { platform: "AWS", hasMachineSets: true },
    { platform: "BareMetal", hasMachineSets: true },
  ] as const;

  test.for([
    { what: "nothing on AWS", asked: undefined, api: aws, managers: [machineSets("All")], unsupported: [] },
    { what: "an empty list", asked: [], api: aws, managers: [machineSets("None")], unsupported: [] },
    { what: "None", asked: [machineSets("None")], api: aws, managers: [machineSets("None")], unsupported: [] },
    {
      what: "those of the control plane",
      asked: [controlPlane],
      api: aws,
      managers: [machineSets("All")],
      unsupported: [controlPlane],
    },
    { what: "nothing elsewhere", asked: undefined, api: bare, managers: [machineSets("None")], unsupported: [] },
    {
      what: "all elsewhere",
      asked: [machineSets("All")],
      api: bare,
      managers: [machineSets("None")],
      unsupported: [machineSets("All")],
    },
    {
      what: "all on a cluster without MachineSets",
      asked: [machineSets("All")],
      api: { platform: "GCP", hasMachineSets: false },
      managers: [machineSets("None")],
      unsupported: [machineSets("All")],
    },
  ])("if the settings ask for $what [operator-boot-image-managers-1]", ({ asked, api, managers, unsupported }) => {
    if (api === undefined) throw new Error("a case without a cluster");
    expect(effectiveManagers(asked, api)).toEqual({ managers, unsupported });
  });

  test("a set is selected by its mode, and by its labels [operator-boot-image-managers-2]", () => {
    const one = { metadata: { name: "a", labels: { update: "yes" } } } as unknown as MachineSet;
    expect(isManaged(one, [machineSets("All")])).toBe(true);
    expect(isManaged(one, [machineSets("None")])).toBe(false);
    expect(isManaged(one, undefined)).toBe(false);
    expect(isManaged(one, [machineSets("Partial", { update: "yes" })])).toBe(true);
    expect(isManaged(one, [machineSets("Partial", { update: "no" })])).toBe(false);
    expect(isManaged(one, [machineSets("Partial")])).toBe(false);
  });
});
