import { expect, test } from "vitest";
import { bookSections, progressReasons, reportReasons } from "./report-table.ts";
import type { ReportedShortLine } from "./reports.ts";
import { completeLine, placeOfReason } from "./short-lines.ts";

const text = { mark: "end", message: "x" } as const;

test("a line gets chapter, section and level from its reason", () => {
  expect(completeLine({ book: "node/a", reason: "Written", ...text })).toEqual({
    book: "node/a",
    chapter: "Update",
    path: "Executed/Files",
    level: "boundary",
    reason: "Written",
    ...text,
  });
  expect(completeLine({ book: "cluster", reason: "BuildQueued", ...text })).toMatchObject({
    chapter: "OsBuilder",
    path: "Queue",
    level: "progress",
  });
});

test("a line of an open section has the last word of its path itself", () => {
  const line = completeLine({ book: "pool/worker", path: "Node/a", reason: "NodeUpdated", ...text });
  expect(line).toMatchObject({ chapter: "Rollout", path: "Node/a" });
});

test("a reason in several sections of a book, or in none, has no section of its own", () => {
  expect(placeOfReason("node", "UpdateFailed")).toBeUndefined();
  expect(placeOfReason("node", "PoolDeleted")).toBeUndefined();
  // Each kind of book has its own.
  expect(placeOfReason("pool", "BuildStarted")).toEqual({ chapter: "Build", path: "Built" });
  expect(placeOfReason("build", "BuildStarted")).toEqual({ chapter: "Building" });
});

test("a complete line stays as it is", () => {
  const line = { book: "node/a", chapter: "Other", path: "There", level: "debug", reason: "Written", ...text };
  expect(completeLine(line)).toEqual(line);
});

test("neither level nor the section of a reason that has one alone compile, and other reasons name their section", () => {
  const drained = { book: "node/a", reason: "Drained", ...text } as const;
  const lines: readonly ReportedShortLine[] = [
    drained,
    // @ts-expect-error -- the table has the level
    { ...drained, level: "boundary" },
    // @ts-expect-error -- the table has the section
    { ...drained, chapter: "Update", path: "Executed/Drained" },
    // @ts-expect-error -- the reason is in several sections
    { book: "node/a", reason: "NotRequired", ...text },
    // @ts-expect-error -- the reason has an Event, and `about` is missing
    { book: "node/a", reason: "Cordoned", ...text },
  ];
  expect(lines).toHaveLength(5);
});

test("most reasons are in one section of their book, and only known ones are progress", () => {
  const kinds = Object.keys(bookSections) as (keyof typeof bookSections)[];
  const placed = Object.keys(reportReasons).filter((reason) =>
    kinds.some((kind) => placeOfReason(kind, reason) !== undefined),
  );
  expect(placed.length).toBeGreaterThan(110);
  expect([...progressReasons].filter((reason) => !(reason in reportReasons))).toEqual([]);
});
