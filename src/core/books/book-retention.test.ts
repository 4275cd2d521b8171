import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sectionOutcomes } from "../../api/books/report-table.ts";
import { type KeptChapter, type Retention, defaultRetention, pruneBook } from "./book-retention.ts";

const day = 86_400_000;
const now = Date.UTC(2030, 0, 1);
const at = (daysAgo: number) => new Date(now - daysAgo * day).toISOString();
const closed = (number: number, daysAgo: number, outcome: KeptChapter["outcome"] = "Succeeded"): KeptChapter => ({
  number,
  state: "Closed",
  startedAt: at(daysAgo + 1),
  endedAt: at(daysAgo),
  outcome,
});
const open = (number: number, daysAgo: number): KeptChapter => ({ number, state: "Open", startedAt: at(daysAgo) });
const pruned = (chapters: readonly KeptChapter[], retention: Retention, goneAt?: string) => {
  const pruning = pruneBook(chapters, retention, now, goneAt);
  return pruning.prune === "book" ? "book" : pruning.numbers;
};

describe("retention", () => {
  const rule: Retention = { chapters: 3, days: 100, daysAfterEnd: 7 };

  test.for([
    {
      title: "keeps the newest closed chapters",
      chapters: [closed(1, 5), closed(2, 4), closed(3, 3), closed(4, 2), closed(5, 1)],
      gone: [1, 2],
    },
    { title: "keeps none that is too old", chapters: [closed(1, 300), closed(2, 101), closed(3, 99)], gone: [1, 2] },
    {
      title: "does not count open ones, however old they are",
      chapters: [open(1, 400), closed(2, 4), closed(3, 3), closed(4, 2), open(5, 0)],
      gone: [],
    },
    {
      title: "keeps the newest that did not succeed, and no older one",
      chapters: [closed(1, 9, "Failed"), closed(2, 8, "RolledBack"), closed(3, 3), closed(4, 2), closed(5, 1)],
      gone: [1],
    },
    { title: "keeps a failure that is too old", chapters: [closed(1, 300, "Failed"), closed(2, 1)], gone: [] },
    {
      title: "counts who was abandoned as ended when it was last heard of",
      chapters: [
        { number: 1, state: "Abandoned" as const, startedAt: at(300) },
        closed(2, 200, "Failed"),
        closed(3, 1),
      ],
      gone: [1],
    },
  ])("$title [books-book-retention-1]", ({ chapters, gone }) => {
    expect(pruned(chapters, rule)).toEqual(gone);
    expect(pruned(chapters.toReversed(), rule)).toEqual(gone);
  });

  test("a book is deleted some days after its subject, the cluster's never [books-book-retention-2]", () => {
    expect(pruned([open(1, 1)], rule, at(6))).toEqual([]);
    expect(pruned([open(1, 1)], rule, at(7))).toBe("book");
    expect(pruned([closed(1, 1)], defaultRetention.cluster, at(5000))).toEqual([]);
  });

  test("for any history: number and age are limited, open chapters and the newest failure stay, and a second pass removes nothing more [books-book-retention-3]", () => {
    const chapter = fc.record({
      state: fc.constantFrom("Open", "Closed", "Abandoned"),
      outcome: fc.constantFrom(...sectionOutcomes),
      daysAgo: fc.integer({ min: 0, max: 400 }),
    });
    fc.assert(
      fc.property(
        fc.array(chapter, { maxLength: 60 }),
        fc.integer({ min: 0, max: 20 }),
        fc.integer({ min: 0, max: 300 }),
        (made, chapters, days) => {
          const all = made.map(({ state, outcome, daysAgo }, index): KeptChapter =>
            state === "Closed"
              ? closed(index + 1, daysAgo, outcome)
              : { number: index + 1, state, startedAt: at(daysAgo) },
          );
          const numbers = pruned(all, { chapters, days });
          if (numbers === "book") throw new Error("it has a subject");
          const stays = all.filter(({ number }) => !numbers.includes(number));
          const ended = all.filter(({ state }) => state !== "Open").sort((a, b) => b.number - a.number);
          const failure = ended.find(({ outcome }) => outcome !== "Succeeded");
          expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
          for (const one of all) if (one.state === "Open" || one === failure) expect(stays).toContain(one);
          const others = stays.filter((one) => one.state !== "Open" && one !== failure);
          expect(others.length).toBeLessThanOrEqual(chapters);
          for (const one of others)
            expect(now - Date.parse(one.endedAt ?? one.startedAt)).toBeLessThanOrEqual(days * day);
          // Nothing goes that number and age allow.
          for (const [place, one] of ended.entries())
            if (place < chapters && now - Date.parse(one.endedAt ?? one.startedAt) <= days * day)
              expect(stays).toContain(one);
          expect(pruned(stays, { chapters, days })).toEqual([]);
        },
      ),
    );
  });
});
