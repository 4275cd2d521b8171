import { describe, expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { beginChange, confirmChange, cordonChange, skipChange, uncordonChange } from "./drain-changes.ts";

const at = "2030-01-01T00:00:00Z";
const now = Date.parse("2030-01-01T00:10:00Z");
const note = (request: string, since: string, pods: number) => JSON.stringify({ request, at: since, pods });

const node = (notes: Readonly<Record<string, string>>, cordoned = true): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "w", annotations: notes },
  spec: cordoned ? { unschedulable: true } : {},
});
const { desiredDrain, lastAppliedDrain, cordonedFor, drainBegan, drainSkipped } = annotations;
const asked = { [desiredDrain]: "drain-x" };
const cordoned = { ...asked, [cordonedFor]: "drain-x", [drainBegan]: note("drain-x", at, 3) };

describe("changes of a node for its drain", () => {
  test("a cordon notes its request and its beginning, and removes what an earlier drain left [pool-drain-changes-1]", () => {
    expect(cordonChange(node(asked, false), { now, pods: 2 })).toEqual({
      decision: { again: false },
      write: {
        metadata: {
          name: "w",
          annotations: {
            [cordonedFor]: "drain-x",
            [lastAppliedDrain]: null,
            [drainBegan]: note("drain-x", "2030-01-01T00:10:00Z", 2),
            [drainSkipped]: null,
          },
        },
        spec: { unschedulable: true },
      },
    });
  });

  test("a drain that was put back half-way keeps its beginning; a completed one begins again [pool-drain-changes-2]", () => {
    const begun = (notes: Readonly<Record<string, string>>) =>
      cordonChange(node(notes, false), { now, pods: undefined }).write?.metadata?.annotations?.[drainBegan];
    expect(begun(cordoned)).toBe(note("drain-x", at, 0));
    const completed = { ...cordoned, [lastAppliedDrain]: "drain-x" };
    expect(begun(completed)).toBe(note("drain-x", "2030-01-01T00:10:00Z", 0));
    expect(cordonChange(node(completed, false), { now, pods: 2 }).decision).toEqual({ again: true });
  });

  test("the beginning of a drain that another client cordoned is noted once [pool-drain-changes-3]", () => {
    expect(beginChange(node(asked), { now, pods: 2 })).toEqual({
      decision: "begins",
      write: {
        metadata: {
          name: "w",
          annotations: { [drainBegan]: note("drain-x", "2030-01-01T00:10:00Z", 2), [drainSkipped]: null },
        },
      },
    });
    expect(beginChange(node(cordoned), { now, pods: 2 })).toEqual({ decision: "goesOn" });
  });

  test("a drain that is given up lifts the suite's own cordon, and no other; its note is cut [pool-drain-changes-4]", () => {
    const skipped = (notes: Readonly<Record<string, string>>) =>
      skipChange(node(notes), { now, request: "drain-x", again: "2030-01-01T00:20:00Z", why: "y".repeat(600) });
    const { decision, write } = skipped(cordoned);
    expect(decision).toBe("skipped");
    expect(write?.spec).toEqual({ unschedulable: null });
    const noted = JSON.parse(write?.metadata?.annotations?.[drainSkipped] ?? "") as { readonly why: string };
    expect(noted).toEqual({
      request: "drain-x",
      at: "2030-01-01T00:10:00Z",
      again: "2030-01-01T00:20:00Z",
      why: `${"y".repeat(511)}…`,
    });
    expect(skipped(asked).write).not.toHaveProperty("spec");
  });

  test("a request is confirmed by its own text [pool-drain-changes-5]", () => {
    expect(confirmChange(node(cordoned), "drain-x")).toEqual({
      decision: "confirmed",
      write: { metadata: { name: "w", annotations: { [lastAppliedDrain]: "drain-x" } } },
    });
  });

  test("an uncordon lifts the suite's own cordon, and answers beside one of another client [pool-drain-changes-6]", () => {
    const back = { ...cordoned, [desiredDrain]: "uncordon-x" };
    const noted = { [cordonedFor]: null, [drainBegan]: null, [lastAppliedDrain]: "uncordon-x" };
    expect(uncordonChange(node(back))).toEqual({
      decision: { request: "uncordon-x", remedy: true, wasCordoned: true },
      write: { metadata: { name: "w", annotations: noted }, spec: { unschedulable: null } },
    });
    expect(uncordonChange(node({ [desiredDrain]: "uncordon-x" }))).toEqual({
      decision: { request: "uncordon-x", remedy: false, wasCordoned: true },
      write: { metadata: { name: "w", annotations: noted } },
    });
  });

  test("a node that requests something else by now is not changed [pool-drain-changes-7]", () => {
    const other = node({ [desiredDrain]: "drain-y", [cordonedFor]: "drain-x" });
    const skip = { now, request: "drain-x", again: at, why: "" };
    expect([
      cordonChange(other, { now, pods: 0 }),
      beginChange(node({}), { now, pods: 0 }),
      skipChange(other, skip),
      confirmChange(other, "drain-x"),
      confirmChange(node(cordoned, false), "drain-x"),
      uncordonChange(other),
    ]).toEqual([
      { decision: { again: false } },
      { decision: "goesOn" },
      { decision: "overtaken" },
      { decision: "overtaken" },
      { decision: "overtaken" },
      { decision: undefined },
    ]);
  });
});
