import { expect, test } from "vitest";
import { type Condition, conditionOf } from "../../api/schema/object.ts";
import { withNodeProgress } from "./node-progress.ts";
import { phasesAtEnd, phasesAtStart, withPhases } from "./update-conditions.ts";

const t0 = Date.UTC(2026, 0, 1);
const shown = (conditions: readonly Condition[]) =>
  ["Reconciling", "Stalled"].map((type) => {
    const found = conditionOf(conditions, type);
    return `${found?.status} ${found?.reason}: ${found?.message}`;
  });
const current = ["False UpToDate: ", "False UpToDate: "];

test("the conditions of tools follow an update from its start to its end [books-node-progress-1]", () => {
  const start = withPhases([], phasesAtStart("rendered-x"), t0);
  expect(shown(start)).toEqual([
    "True UpdateRequested: an update to rendered-x was asked for",
    "False UpdateRequested: ",
  ]);
  const drains = withPhases(
    start,
    [{ type: "Drained", status: "Unknown", reason: "Draining", message: "2 pods are left" }],
    t0 + 1000,
  );
  expect(shown(drains)).toEqual(["True Draining: 2 pods are left", "False Draining: "]);
  expect(conditionOf(drains, "Reconciling")?.lastTransitionTime).toBe("2026-01-01T00:00:00Z");
  const end = withPhases(drains, phasesAtEnd("rendered-x", drains, { now: t0 + 2000, spans: new Map() }), t0 + 2000);
  expect(shown(end)).toEqual(current);
  expect(conditionOf(end, "Reconciling")?.lastTransitionTime).toBe("2026-01-01T00:00:02Z");
  expect(withPhases(end, [], t0 + 9000)).toBe(end);
});

test("a degraded machine is stalled, whatever it is at, and goes on from there [books-node-progress-2]", () => {
  const start = withPhases([], phasesAtStart("rendered-x"), t0);
  const degraded = { type: "NodeDegraded", status: "True", reason: "UpdateFailed", message: "no space" } as const;
  const failed = withPhases(start, [degraded], t0);
  expect(shown(failed)).toEqual(["False UpdateFailed: ", "True UpdateFailed: no space"]);
  const well = withPhases(failed, [{ ...degraded, status: "False", reason: "AsExpected", message: "" }], t0);
  expect(shown(well)[0]).toMatch(/^True UpdateRequested/);
});

test("a writer of pinned images derives them from the phases that another one wrote [books-node-progress-3]", () => {
  const has = withPhases([], phasesAtEnd("rendered-x", [], { now: t0, spans: new Map() }), t0);
  expect(shown(has)).toEqual(current);
  const pinned = (type: string, status: "True" | "False", reason: string, message = "") => ({
    type,
    status,
    reason,
    message,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  });
  const fetches = [...has, pinned("PinnedImageSetsProgressing", "True", "ImagePrefetch", "1 of 3 images")];
  expect(shown(withNodeProgress(fetches, t0))).toEqual(["True ImagePrefetch: 1 of 3 images", "False ImagePrefetch: "]);
  const failed = [...has, pinned("PinnedImageSetsDegraded", "True", "PrefetchFailed", "no space")];
  expect(shown(withNodeProgress(failed, t0))[1]).toBe("True PrefetchFailed: no space");
  expect(withNodeProgress(has, t0)).toBe(has);
});
