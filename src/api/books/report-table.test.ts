import { describe, expect, test } from "vitest";
import { healthReasonKey, healthTypes, keepingTypes } from "../../core/operator/health.ts";
import { healthReasons, sectionKeyOf, bookSections, reportReasons } from "./report-table.ts";

const listed = (): ReadonlySet<string> => {
  const bySection = Object.values(bookSections).flatMap((chapters) =>
    Object.values(chapters).flatMap((sections) =>
      Object.values(sections as Readonly<Record<string, readonly string[]>>).flat(),
    ),
  );
  return new Set([...bySection, ...Object.values(healthReasons).flat()]);
};
const entries = Object.entries(
  reportReasons as Readonly<Record<string, { readonly means: string; readonly next: string }>>,
);

describe("the closed list of reasons", () => {
  test("explains exactly the reasons that a section or condition may have [books-stories-1]", () => {
    expect(Object.keys(reportReasons).toSorted()).toEqual([...listed()].toSorted());
  });

  test.for(entries)(
    "%s is explained in a sentence, and what to do about it is one [books-stories-2]",
    ([reason, { means, next }]) => {
      expect(reason).toMatch(/^[A-Z][A-Za-z]*$/);
      expect(means).toMatch(/^[A-Z].{8,}\.$/s);
      if (next !== "") expect(next).toMatch(/^(mco |[A-Z]).{8,}[.)]$/s);
    },
  );

  test("has a remedy for every reason that names a problem [books-stories-3]", () => {
    const troubles = entries.filter(([reason]) =>
      /(Failed|Failing|Refused|Blocked|Exceeded|Stalled|Down|Missing|Degraded|Silent|Drift|Overdue|Quarantined|Reached|Stuck|Irreconcilable|Crash|Crashed|CrashLoop|OldVersion|Skew|Expiring|WentBack|Mismatch)$/.test(
        reason,
      ),
    );
    expect(troubles.length).toBeGreaterThan(30);
    expect(troubles.filter(([, { next }]) => next === "").map(([reason]) => reason)).toEqual([]);
  });

  test("has no remedy for reasons of success [books-stories-4]", () => {
    const good = entries.filter(([reason]) =>
      /(Succeeded|Updated|Drained|Cordoned|Uncordoned|Planned|Pulled|Staged|Written|Rebooted|Resumed|Recovered|AsExpected|NotRequired)$/.test(
        reason,
      ),
    );
    expect(good.filter(([, { next }]) => next !== "").map(([reason]) => reason)).toEqual([]);
  });
});

test("a path with a word of its own belongs to the section of its kind, also when that word has several parts", () => {
  expect(sectionKeyOf("pool", "Rollout", "Node/worker-0")).toBe("Node/*");
  expect(sectionKeyOf("build", "Building", "Attempt/1/user:2")).toBe("Attempt/*");
  expect(sectionKeyOf("node", "Update", "Executed/Drained")).toBe("Executed/Drained");
  expect(sectionKeyOf("node", "Update", "Executed/Elsewhere")).toBeUndefined();
});

test("conditions of health have the reasons that they can give, and every such condition is in the table", () => {
  expect(Object.keys(healthReasons).toSorted()).toEqual([...healthTypes, ...keepingTypes].toSorted());
  // Which part it is stands in the reason; the table has the kind of it.
  for (const reason of [
    "SyncRBACFailing",
    "ChildNodesDown",
    "NodeFailing",
    "DrainStalled",
    "RenderFailing",
    "NoLeader",
    "SyncStalled",
    "Off",
  ])
    expect(new Set<string>(Object.values(healthReasons).flat())).toContain(healthReasonKey(reason));
});
