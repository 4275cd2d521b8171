import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { reportedUpdate } from "../../../test/support/line-writer.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { foldBook } from "./fold-book.ts";
import {
  estimateMachine,
  estimateRollOut,
  estimateText,
  noPast,
  pastLike,
  pastOf,
  spreadOf,
  spreads,
  whoChanged,
} from "./past.ts";

const now = Date.UTC(2030, 0, 1, 10, 30);
const minute = 60_000;
const at = (offsetMs: number) => new Date(now + offsetMs).toISOString();
/** An update that took so long in its drain, and three minutes beside it. */
const update = (drainMinutes: number, more: Partial<Chapter> = {}): Chapter => {
  const section = (path: string, from: number, to: number) => ({
    path,
    startedAt: at(from * minute),
    endedAt: at(to * minute),
    outcome: "Succeeded" as const,
    attempts: 1,
  });
  return {
    book: "node/x",
    number: 1,
    chapter: "Update",
    run: "r",
    pool: "worker",
    startedAt: at(0),
    endedAt: at((drainMinutes + 3) * minute),
    state: "Closed",
    outcome: "Succeeded",
    confidence: "Told",
    sections: [
      section("Prepared", 0, 1),
      section("Executed/Drained", 1, 1 + drainMinutes),
      section("PostAction/Rebooted", 1 + drainMinutes, 3 + drainMinutes),
    ],
    entries: [],
    dropped: 0,
    through: [],
    ...more,
  };
};
const past = pastOf(
  "worker",
  [1, 2, 3, 4, 5].map((minutes) => update(minutes)),
);

describe("what updates before took", () => {
  test("is the middle and the edges of each section and of the whole [books-past-1]", () => {
    const { whole, sections } = spreads(past);
    expect(whole).toEqual({ count: 5, medianMs: 6 * minute, p10Ms: 4.4 * minute, p90Ms: 7.6 * minute });
    expect(sections.get("Executed/Drained")).toEqual({
      count: 5,
      medianMs: 3 * minute,
      p10Ms: 1.4 * minute,
      p90Ms: 4.6 * minute,
    });
    expect(sections.get("PostAction/Rebooted")?.medianMs).toBe(2 * minute);
  });

  test("leaves out what did not end well, what is not over, what was no update, and other pools [books-past-2]", () => {
    const others = [
      update(9, { outcome: "Failed" }),
      update(9, { state: "Open" }),
      update(9, { chapter: "Drift" }),
      update(9, { pool: "infra" }),
      update(9, { outcome: "Superseded" }),
    ];
    expect(pastOf("worker", others).updates).toEqual([]);
    const { pool: _pool, ...anywhere } = update(1);
    expect(pastOf("worker", [anywhere]).updates).toHaveLength(1);
  });

  test("holds for chapters folded from reports [books-past-3]", () => {
    const [chapter] = foldBook("node/worker-0", reportedUpdate().lines, { now });
    const { whole, sections } = spreads(pastOf("worker", [{ ...(chapter ?? expect.fail()), number: 1 }]));
    expect(whole?.medianMs).toBe(124_000);
    expect(sections.get("Executed/Drained")?.medianMs).toBe(60_000);
  });

  test("has edges on both sides of its middle, whatever the figures are [books-past-4]", () => {
    expect(spreadOf([])).toBeUndefined();
    fc.assert(
      fc.property(fc.array(fc.nat(1e9), { minLength: 1, maxLength: 40 }), (values) => {
        const spread = spreadOf(values) ?? expect.fail();
        expect(spread.p10Ms).toBeGreaterThanOrEqual(Math.min(...values));
        expect(spread.p10Ms).toBeLessThanOrEqual(spread.medianMs);
        expect(spread.medianMs).toBeLessThanOrEqual(spread.p90Ms);
        expect(spread.p90Ms).toBeLessThanOrEqual(Math.max(...values));
      }),
    );
  });
});

describe("when a machine is likely to be done", () => {
  test("is what is left of the step that it is in and of those behind it [books-past-5]", () => {
    expect(estimateMachine(past, "Draining", now, now)).toMatchObject({ likely: now + 5 * minute, of: 5, late: false });
    expect(estimateMachine(past, "Rebooting", now - minute, now)).toMatchObject({
      likely: now + minute,
      earliest: now + 0.6 * minute,
      latest: now + 1.4 * minute,
    });
  });

  test("has the wider bounds the fewer updates it rests on [books-past-16]", () => {
    const widthOf = (count: number) => {
      const { latest, earliest } =
        estimateMachine(
          pastOf(
            "worker",
            Array.from({ length: count }, () => update(3)),
          ),
          "Draining",
          now,
          now,
        ) ?? expect.fail();
      return (latest - earliest) / minute;
    };
    expect([1, 2, 5, 10].map(widthOf)).toEqual([10, 5, 2, 1]);
  });

  test("rests on updates of its kind: of those that drain and reboot, or of the others [books-past-17]", () => {
    const quick = update(0, {
      run: "q",
      endedAt: at(minute / 6),
      sections: [
        { path: "Executed/Files", startedAt: at(0), endedAt: at(minute / 6), outcome: "Succeeded", attempts: 1 },
      ],
    });
    const open = update(9, {
      run: "next",
      state: "Open",
      entries: [{ path: "Prepared", data: { drain: "false", reboot: "false" } }] as unknown as Chapter["entries"],
    });
    const mixed = pastOf("worker", [update(3), quick, update(5), open]);
    const countOf = (target: string) => pastLike(mixed, target).updates.length;
    expect({ slow: countOf("r"), quick: countOf("q"), foreseen: countOf("next"), unknown: countOf("other") }).toEqual({
      slow: 2,
      quick: 1,
      foreseen: 1,
      unknown: 3,
    });
  });

  test("leaves out those that were through with the step by then [books-past-6]", () => {
    expect(estimateMachine(past, "Draining", now - 2.5 * minute, now)).toMatchObject({
      likely: now + 3.5 * minute,
      of: 3,
    });
  });

  test("keeps wide bounds when few updates were in the step for as long [books-past-18]", () => {
    const estimate = estimateMachine(past, "Draining", now - 4.9 * minute, now) ?? expect.fail();
    expect(estimate).toMatchObject({ of: 1, late: false });
    // One update of seven minutes: the next may take as much longer.
    expect((estimate.latest - estimate.likely) / minute).toBeCloseTo(7);
  });

  test("that takes longer than any before is late, may take as long again, and still has the remaining steps ahead [books-past-7]", () => {
    const estimate = estimateMachine(past, "Draining", now - 60 * minute, now) ?? expect.fail();
    expect(estimate).toMatchObject({ likely: now + 17 * minute, late: true });
    expect(estimate.earliest).toBeLessThanOrEqual(now + 2 * minute);
    expect(estimate.latest).toBeGreaterThanOrEqual(now + 62 * minute);
  });

  test("is unknown without chapters, in a step that none of them had, or while the update is blocked [books-past-8]", () => {
    expect(estimateMachine(noPast, "Draining", now, now)).toBeUndefined();
    expect(estimateMachine(past, "PostAction", now, now)).toBeUndefined();
    expect(estimateMachine(past, "Degraded", now, now)).toBeUndefined();
  });
});

describe("when a roll-out is likely to be done", () => {
  test("machines take turns on the places that there are [books-past-9]", () => {
    expect(estimateRollOut(past, { working: [], waiting: 6, places: 2 }, now)?.likely).toBe(now + 18 * minute);
    expect(estimateRollOut(past, { working: [], waiting: 6, places: 6 }, now)?.likely).toBe(now + 6 * minute);
  });

  test("behind those that are under way [books-past-10]", () => {
    const working = estimateMachine(past, "Rebooting", now, now);
    expect(estimateRollOut(past, { working: [working], waiting: 1, places: 1 }, now)?.likely).toBe(now + 8 * minute);
    expect(estimateRollOut(past, { working: [working], waiting: 0, places: 1 }, now)).toMatchObject({
      likely: now + 2 * minute,
    });
  });

  test("is not known without chapters, without anything to do, or without a place [books-past-11]", () => {
    expect(estimateRollOut(noPast, { working: [], waiting: 6, places: 2 }, now)).toBeUndefined();
    expect(estimateRollOut(past, { working: [], waiting: 0, places: 2 }, now)).toBeUndefined();
    expect(estimateRollOut(past, { working: [], waiting: 1, places: 0 }, now)).toBeUndefined();
  });

  test("lies between its edges, and more machines never end it sooner [books-past-12]", () => {
    fc.assert(
      fc.property(fc.nat(60), fc.integer({ min: 1, max: 8 }), (waiting, places) => {
        const estimate = estimateRollOut(past, { working: [], waiting: waiting + 1, places }, now) ?? expect.fail();
        expect(estimate.earliest).toBeLessThanOrEqual(estimate.likely);
        expect(estimate.likely).toBeLessThanOrEqual(estimate.latest);
        expect(
          estimateRollOut(past, { working: [], waiting: waiting + 2, places }, now)?.likely,
        ).toBeGreaterThanOrEqual(estimate.likely);
      }),
    );
  });

  test("is shown with its spread and its basis [books-past-13]", () => {
    const estimate = estimateRollOut(past, { working: [], waiting: 2, places: 1 }, now) ?? expect.fail();
    expect(estimateText(estimate, now)).toBe(
      "between 10:38 and 10:45Z, most likely 10:42 (in 12m00s; median of 5 updates of this pool)",
    );
    expect(estimateText({ likely: now, earliest: now, latest: now, of: 1, late: true }, now)).toBe(
      "about 10:30Z (in 0ms; one update of this pool; it has taken longer than any of them so far)",
    );
  });
});

describe("who changed what", () => {
  const config = (name: string, manager: string, time: string): MachineConfig =>
    ({
      apiVersion: "machineconfiguration.openshift.io/v1",
      kind: "MachineConfig",
      metadata: {
        name,
        creationTimestamp: "2030-01-01T09:00:00Z",
        managedFields: [
          { manager: "first", time: "2029-01-01T00:00:00Z" },
          { manager, time },
        ],
      },
      spec: {},
    }) as never;
  const sources = (...names: readonly string[]) => names.map((name) => ({ kind: "MachineConfig", name }));
  const pool = (
    is: readonly string[],
    was: readonly string[],
    names: readonly [string, string] = ["rendered-2", "rendered-1"],
  ): MachineConfigPool =>
    ({
      metadata: { name: "worker" },
      spec: { configuration: { name: names[0], source: sources(...is) } },
      status: { configuration: { name: names[1], source: sources(...was) } },
    }) as never;
  const configs = new Map(
    [
      config("rendered-1", "mcc-render", "2030-01-01T09:00:00Z"),
      config("00-base", "mcc-template", "2029-06-01T00:00:00Z"),
      config("99-ssh", "kubectl-edit", "2030-01-01T10:00:00Z"),
      config("99-new", "helm", "2030-01-01T10:01:00Z"),
    ].map((each) => [each.metadata.name, each]),
  );

  test("lists what was added, changed and removed since the last configuration, with author and time [books-past-14]", () => {
    expect(
      whoChanged(pool(["00-base", "99-new", "99-ssh"], ["00-base", "99-old", "99-ssh"]), (name) => configs.get(name)),
    ).toEqual([
      "99-new: added by helm at 2030-01-01T10:01:00Z",
      "99-ssh: changed by kubectl-edit at 2030-01-01T10:00:00Z",
      "99-old: taken away",
    ]);
  });

  test("says nothing when nothing changed, or nothing was there before [books-past-15]", () => {
    expect(whoChanged(pool(["99-ssh"], ["99-ssh"], ["rendered-1", "rendered-1"]), (name) => configs.get(name))).toEqual(
      [],
    );
    expect(
      whoChanged({ metadata: { name: "worker" }, spec: { configuration: { name: "a" } } } as never, () => undefined),
    ).toEqual([]);
  });
});
