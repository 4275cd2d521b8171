import fc from "fast-check";
import { expect, test } from "vitest";
import type { JournalEntry } from "../../api/books/report-table.ts";
import { bookText, lineText } from "./book-text.ts";
import { foldBook } from "./fold-book.ts";
import { appendLines, lineOf } from "./journal.ts";
import { readBook } from "./read-book.ts";
import { redactLine } from "../text/redact.ts";
import { drawTimeline, timelineOfBook } from "./timeline.ts";
import { anySecret } from "../../../test/support/any-secret.ts";
import { morning } from "../../../test/support/line-writer.ts";

const writer = { component: "daemon", instance: "worker-0", node: "worker-0", version: "1.0.0" };
const book = "node/worker-0";
const steps = [
  ["Prepared", "begin", "Checking"],
  ["Executed/ImagePulled", "begin", "Pulling"],
  ["Executed/ImagePulled", "fail", "PullFailed"],
  ["Executed/ImagePulled", "end", "Pulled"],
  ["PostAction/Service", "fail", "ServiceFailed"],
  ["Updated", "end", "Succeeded"],
] as const;

test("no secret that a component had in its hands is in the journal, the chapter, the text, the chart or the JSON of a book [redacted-books-1]", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(steps.length - 1), anySecret, fc.boolean()), { minLength: 1, maxLength: 8 }),
      (told) => {
        const lines = told.map(([step, { text }, isNamed], index) => {
          const [path, mark, reason] = steps[step] ?? steps[0];
          const line = {
            book,
            chapter: "Update",
            run: "rendered-worker-b",
            path,
            mark,
            reason,
            level: "boundary",
            message: `the step ended: ${text}`,
            data: { [isNamed ? "registryPassword" : "output"]: text, cause: `changed with ${text}` },
            next: { action: `look at ${text}`, actor: "administrator" },
          } as JournalEntry;
          return lineOf(redactLine(line), {
            writer,
            boot: "boot-1",
            number: { seq: index + 1 },
            at: morning + index * 1000,
            mono: index * 1000,
          });
        });
        const spec = appendLines(undefined, lines)?.spec ?? expect.fail();
        const now = morning + 60_000;
        const chapters = foldBook(book, lines, { now }).map((record, index) => ({
          spec: { ...record, number: index + 1 },
        }));
        const kept = readBook({ books: [], chapters, journals: [] }, book, now);
        const fromJournal = readBook(
          { books: [], chapters: [], journals: [{ metadata: { name: "node-worker-0" }, spec }] },
          book,
          now,
        );
        expect(fromJournal.chapters.length).toBeGreaterThan(0);
        const shown = [kept, fromJournal].flatMap((read) => [
          JSON.stringify(read),
          bookText(read, { now }),
          ...read.chapters.map(({ number }) => bookText(read, { now, chapter: number })),
          drawTimeline(timelineOfBook(book, read.chapters, { now }), { now, width: 100 }).join("\n"),
        ]);
        const everything = [JSON.stringify(spec), JSON.stringify(chapters), ...lines.map(lineText), ...shown].join(
          "\n",
        );
        for (const [, { secret }] of told) expect(everything).not.toContain(secret);
      },
    ),
    { numRuns: 150 },
  );
});
