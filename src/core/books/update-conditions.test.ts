import { describe, expect, test } from "vitest";
import { conditionOf } from "../../api/schema/object.ts";
import { type SectionReport, phaseOfCondition, phasesAtEnd, phasesAtStart, withPhases } from "./update-conditions.ts";

const t0 = Date.UTC(2026, 0, 1);
const drained = (status: "True" | "False" | "Unknown", reason: string) => ({
  type: "Drained",
  status,
  reason,
  message: reason,
});

describe("withPhases", () => {
  test("creates every condition at once, and changes nothing when nothing is new [books-update-conditions-1]", () => {
    const first = withPhases([], [], t0);
    expect(first.length).toBe(17);
    expect(withPhases(first, [], t0 + 1000)).toBe(first);
  });

  test("a parent follows from its children [books-update-conditions-2]", () => {
    const working = withPhases([], [drained("Unknown", "UpdateExecutedDrained")], t0);
    expect(conditionOf(working, "UpdateExecuted")).toMatchObject({ status: "Unknown", reason: "Drained" });
    const done = withPhases(
      working,
      [
        drained("True", "UpdateExecutedDrained"),
        { type: "Cordoned", status: "True", reason: "UpdateExecutedCordoned", message: "" },
        { type: "AppliedFiles", status: "True", reason: "AppliedFilesAndOSAppliedFiles", message: "" },
        { type: "AppliedOSImage", status: "False", reason: "NotRequired", message: "" },
      ],
      t0,
    );
    expect(conditionOf(done, "UpdateExecuted")).toMatchObject({ status: "True", reason: "UpdateExecuted" });
  });

  test("a child that is not required does not keep its parent back [books-update-conditions-3]", () => {
    const done = withPhases(
      [],
      [
        drained("False", "NotRequired"),
        { type: "Cordoned", status: "False", reason: "NotRequired", message: "" },
        { type: "AppliedFiles", status: "True", reason: "X", message: "" },
        { type: "AppliedOSImage", status: "False", reason: "NotRequired", message: "" },
      ],
      t0,
    );
    expect(conditionOf(done, "UpdateExecuted")?.status).toBe("True");
  });

  test("the time of a transition moves only with the status [books-update-conditions-6]", () => {
    const first = withPhases([], [drained("Unknown", "A")], t0);
    const second = withPhases(first, [drained("Unknown", "B")], t0 + 60_000);
    const third = withPhases(second, [drained("True", "C")], t0 + 120_000);
    expect([first, second, third].map((list) => conditionOf(list, "Drained")?.lastTransitionTime)).toEqual([
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:02:00Z",
    ]);
  });

  test("conditions of others stay [books-update-conditions-5]", () => {
    const foreign = {
      type: "PinnedImageSetsDegraded",
      status: "False" as const,
      reason: "AsExpected",
      message: "",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    expect(conditionOf(withPhases([foreign], [drained("True", "X")], t0), "PinnedImageSetsDegraded")).toEqual(foreign);
  });

  test("a new run puts every phase ahead again, and the end leaves the last run readable [books-update-conditions-4]", () => {
    const end = withPhases(
      withPhases([], phasesAtStart("rendered-x"), t0),
      phasesAtEnd(
        "rendered-x",
        withPhases(
          withPhases([], phasesAtStart("rendered-x"), t0),
          [
            { type: "Cordoned", status: "True", reason: "UpdateExecutedCordoned", message: "" },
            drained("True", "UpdateExecutedDrained"),
            { type: "AppliedFiles", status: "True", reason: "X", message: "" },
            { type: "AppliedOSImage", status: "False", reason: "NotRequired", message: "" },
          ],
          t0 + 124_000,
        ),
        {
          now: t0 + 200_000,
          spans: new Map([
            ["Drained", { from: t0 + 4000 }],
            ["Cordoned", { from: t0 + 2000 }],
            ["AppliedFiles", { from: t0 + 124_000, until: t0 + 130_000 }],
          ]),
        },
      ),
      t0 + 200_000,
    );
    expect(conditionOf(end, "Updated")?.status).toBe("True");
    expect(end.filter(({ type, status }) => status !== "False" && type !== "Updated")).toEqual([]);
    const said = (type: string) => conditionOf(end, type)?.message;
    expect(said("Drained")).toBe("last: Succeeded, 2m00s, target rendered-x, ended 2026-01-01T00:02:04Z");
    expect(said("AppliedFiles")).toBe("last: Succeeded, 6s, target rendered-x, ended 2026-01-01T00:02:10Z");
    expect(said("AppliedFilesAndOS")).toBe("last: Succeeded, 6s, target rendered-x, ended 2026-01-01T00:02:10Z");
    expect(said("UpdateExecuted")).toBe("last: Succeeded, 2m08s, target rendered-x, ended 2026-01-01T00:02:10Z");
    // The controller reports that the machine is back in service.
    expect(conditionOf(end, "Uncordoned")?.reason).toBe("NotYetOccurred");
    expect(conditionOf(end, "UpdateComplete")?.reason).toBe("NotYetOccurred");
  });

  test("what a run did not enter is not said to have succeeded, and a parent says what its children say [books-update-conditions-10]", () => {
    const run = withPhases(
      withPhases([], phasesAtStart("rendered-x"), t0),
      [
        { type: "UpdatePrepared", status: "True", reason: "UpdatePrepared", message: "" },
        { type: "Cordoned", status: "False", reason: "NotRequired", message: "" },
        drained("False", "NotRequired"),
        { type: "AppliedFiles", status: "False", reason: "NotRequired", message: "" },
        { type: "AppliedOSImage", status: "False", reason: "NotRequired", message: "" },
        { type: "UpdatePostActionComplete", status: "True", reason: "None", message: "core gets other keys" },
      ],
      t0,
    );
    const end = withPhases(run, phasesAtEnd("rendered-x", run, { now: t0, spans: new Map() }), t0);
    const outcomes = new Map(end.map(({ type, message }) => [type, /^last: (\w+)/.exec(message)?.[1]]));
    for (const type of [
      "RebootedNode",
      "Uncordoned",
      "UpdateComplete",
      "ImagePulledFromRegistry",
      "UpdateExecuted",
      "AppliedFilesAndOS",
      "AppliedFiles",
      "Drained",
    ])
      expect(outcomes.get(type), type).toBe("NotRequired");
    expect(outcomes.get("UpdatePrepared")).toBe("Succeeded");
    expect(conditionOf(end, "UpdatePostActionComplete")?.message).toBe(
      "last: NotRequired, target rendered-x, ended 2026-01-01T00:00:00Z: None: core gets other keys",
    );
    // Reporting the end again changes nothing.
    expect(withPhases(end, phasesAtEnd("rendered-x", end, { now: t0 + 5000, spans: new Map() }), t0 + 5000)).toBe(end);
  });

  test("a phase whose end was not reported says so [books-update-conditions-11]", () => {
    const run = withPhases(withPhases([], phasesAtStart("x"), t0), [drained("Unknown", "UpdateExecutedDrained")], t0);
    const end = withPhases(run, phasesAtEnd("x", run, { now: t0, spans: new Map() }), t0);
    expect(conditionOf(end, "Drained")?.message).toBe("last: NotReported, target x, its end was not reported");
    expect(conditionOf(end, "UpdateExecuted")?.message).toContain("last: NotReported");
  });

  test("the end shows the skipped phases and the last action [books-update-conditions-7]", () => {
    const run = withPhases(
      [],
      [
        { type: "Drained", status: "False", reason: "NotRequired", message: "" },
        { type: "UpdatePostActionComplete", status: "True", reason: "ServiceReloaded", message: "reload crio.service" },
      ],
      t0,
    );
    const end = withPhases(run, phasesAtEnd("rendered-x", run, { now: t0, spans: new Map() }), t0);
    expect(
      ["Drained", "UpdatePostActionComplete", "AppliedFiles"].map((type) => conditionOf(end, type)?.message),
    ).toEqual([
      "last: NotRequired, target rendered-x, ended 2026-01-01T00:00:00Z",
      "last: Succeeded, target rendered-x, ended 2026-01-01T00:00:00Z: ServiceReloaded: reload crio.service",
      "last: NotRequired, target rendered-x, ended 2026-01-01T00:00:00Z",
    ]);
  });

  test("a newer target is said where an older one was under way, and leaves nothing True of it [books-update-conditions-8]", () => {
    const under = withPhases(
      withPhases([], phasesAtStart("rendered-x"), t0),
      [
        { type: "Cordoned", status: "True", reason: "UpdateExecutedCordoned", message: "" },
        drained("Unknown", "UpdateExecutedDrained"),
      ],
      t0,
    );
    const next = withPhases(under, phasesAtStart("rendered-y"), t0);
    expect(next.filter(({ status }) => status === "True").map(({ type }) => type)).toEqual(["Reconciling"]);
    expect(conditionOf(next, "UpdateExecuted")).toMatchObject({
      status: "Unknown",
      reason: "Superseded",
      message: expect.stringContaining("rendered-y") as string,
    });
    expect(conditionOf(next, "Drained")).toMatchObject({ status: "Unknown", reason: "Superseded" });
    const entered = withPhases(next, [drained("Unknown", "UpdateExecutedDrained")], t0);
    expect(conditionOf(entered, "UpdateExecuted")).toMatchObject({ status: "Unknown", reason: "Drained" });
  });

  test("long messages are cut [books-update-conditions-9]", () => {
    const long = withPhases([], [{ ...drained("Unknown", "X"), message: "x".repeat(5000) }], t0);
    expect(conditionOf(long, "Drained")?.message.length).toBe(1024);
  });
});

describe("phaseOf", () => {
  const line = <const L extends Omit<SectionReport, "message">>(one: L) => ({ ...one, message: "m" }) as SectionReport;

  test.for([
    [{ path: "Prepared", mark: "end", reason: "Planned" }, "UpdatePrepared True UpdatePrepared"],
    [{ path: "Prepared", mark: "note", reason: "PoliciesNotMerged" }, "UpdatePrepared Unknown PoliciesNotMerged"],
    [{ path: "Prepared", mark: "fail", reason: "Irreconcilable" }, "UpdatePrepared Unknown UpdatePreparedFailed"],
    [{ path: "Executed/ImagePulled", mark: "begin", reason: "Pulling" }, "ImagePulledFromRegistry Unknown Pulling"],
    [{ path: "Executed/ImagePulled", mark: "end", reason: "Pulled" }, "ImagePulledFromRegistry True Pulled"],
    [{ path: "Executed/ImagePulled", mark: "fail", reason: "PullFailed" }, "ImagePulledFromRegistry False PullFailed"],
    [{ path: "Executed/Cordoned", mark: "end", reason: "Cordoned" }, "Cordoned True UpdateExecutedCordoned"],
    [{ path: "Executed/Cordoned", mark: "skip", reason: "NotRequired" }, "Cordoned False NotRequired"],
    [{ path: "Executed/Drained", mark: "end", reason: "Drained" }, "Drained True UpdateExecutedDrained"],
    [{ path: "Executed/Drained", mark: "skip", reason: "NotRequired" }, "Drained False NotRequired"],
    [
      { path: "Executed/OS", mark: "begin", reason: "Staging" },
      "AppliedOSImage Unknown AppliedFilesAndOSAppliedOSImage",
    ],
    [
      { path: "Executed/OS", mark: "fail", reason: "StageFailed" },
      "AppliedOSImage Unknown AppliedFilesAndOSAppliedOSImageFailed",
    ],
    [{ path: "Executed/Files", mark: "end", reason: "Written" }, "AppliedFiles True AppliedFilesAndOSAppliedFiles"],
    [
      { path: "Executed/Files", mark: "fail", reason: "WriteFailed" },
      "AppliedFiles Unknown AppliedFilesAndOSAppliedFilesFailed",
    ],
    [{ path: "PostAction/Rebooted", mark: "begin", reason: "RebootRequested" }, "RebootedNode Unknown Rebooting"],
    [{ path: "PostAction/Rebooted", mark: "end", reason: "Rebooted" }, "RebootedNode True Rebooted"],
    [{ path: "PostAction/Rebooted", mark: "fail", reason: "RebootFailed" }, "RebootedNode Unknown RebootedNodeFailed"],
    [
      { path: "PostAction/Service", mark: "end", reason: "ServiceReloaded" },
      "UpdatePostActionComplete True ServiceReloaded",
    ],
    [
      { path: "PostAction/Service", mark: "fail", reason: "ServiceFailed" },
      "UpdatePostActionComplete Unknown UpdatePostActionCompleteFailed",
    ],
    [{ path: "Resumed", mark: "end", reason: "Resumed" }, "Resumed True Resumed"],
    [{ path: "Updated", mark: "end", reason: "Succeeded" }, "Updated True Updated"],
    [{ path: "PostAction/Settled", mark: "begin", reason: "Settling" }, "none"],
    [{ path: "Requested", mark: "end", reason: "TargetSeen" }, "none"],
  ] as const)("a line %o is the condition %s", ([of, expected]) => {
    const phase = phaseOfCondition(line(of));
    expect(phase === undefined ? "none" : `${phase.type} ${phase.status} ${phase.reason}`).toBe(expected);
    expect(phase?.message ?? "m").toBe("m");
  });
});
