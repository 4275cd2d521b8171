import type { MachineStateBook } from "../../api/books/machine-state-book.ts";
import type { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import type { MachineStateJournal } from "../../api/books/machine-state-journal.ts";
import { reasonText } from "../../api/books/report-table.ts";
import { objects } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type Explanation, type Remedies, section } from "./explanation.ts";
import { shellWord } from "../text/shell-word.ts";

const record = (
  subject: string,
  now: number,
  state: Pick<Explanation, "reason" | "headline"> & Partial<Remedies>,
  sections: Explanation["sections"] = [],
): Explanation => ({
  subject,
  asOf: timestampOf(now),
  freshness: "Fresh",
  sections,
  next: [],
  todo: [],
  ...state,
});

/** The command that explains what a book is about. */
function commandFor(book: string): string {
  const [kind = "", name = ""] = book.split("/");
  switch (kind) {
    case "node":
    case "pool":
      return `mco explain ${shellWord(book)}`;
    case "build":
      return `mco explain ${shellWord(`machineosbuild/${name}`)}`;
    default:
      return `mco explain machineconfiguration/${objects.machineConfiguration}`;
  }
}

/** How the subject of a book is, and which of its chapters is open. @param now milliseconds since the epoch. */
export function explainBook({ metadata, spec }: MachineStateBook, now: number): Explanation {
  const newest = spec.chapters.at(-1);
  const isOpen = newest !== undefined && newest.endedAt === undefined;
  const isFailed = newest?.outcome === "Failed";
  const gone = spec.subjectGoneAt;
  return record(
    `machinestatebook/${metadata.name}`,
    now,
    {
      reason: gone === undefined ? spec.health : "SubjectGone",
      headline:
        gone === undefined
          ? `The book ${spec.book}: ${spec.health}.`
          : `The subject of the book ${spec.book} was deleted at ${gone}.`,
      next:
        gone !== undefined
          ? ["nothing: the book is kept for a while"]
          : isOpen
            ? [`chapter ${newest.chapter} goes on: mco book ${shellWord(spec.book)}`]
            : [],
      todo: gone === undefined && isFailed ? [commandFor(spec.book)] : [],
    },
    section(
      "Chapters",
      spec.chapters.slice(-3).map(({ number, chapter, outcome }) => `${number} ${chapter}: ${outcome ?? "open"}`),
    ),
  );
}

/** What a chapter records, and what a person does about it. @param now milliseconds since the epoch. */
export function explainChapter({ metadata, spec }: MachineStateChapter, now: number): Explanation {
  const { book, chapter, state, outcome, reason = "", message = "" } = spec;
  const asks = spec.next ?? reasonText(reason).next;
  const isTrouble = state === "Closed" && (outcome === "Failed" || outcome === "RolledBack");
  return record(
    `machinestatechapter/${metadata.name}`,
    now,
    {
      reason: reason === "" ? (outcome ?? state) : reason,
      headline: `Chapter ${chapter} of the book ${book}: ${outcome ?? state}${message === "" ? "" : `, ${message}`}.`,
      next: state === "Open" ? [`it goes on: ${commandFor(book)}`] : [],
      todo:
        state === "Abandoned"
          ? [`its writer has not reported for more than an hour: ${commandFor(book)}`]
          : isTrouble && asks !== ""
            ? [asks, `what is so now: ${commandFor(book)}`]
            : [],
    },
    section(
      "Steps",
      spec.sections.map(
        ({ path, outcome: how, reason: why = "" }) => `${path}: ${how ?? "open"}${why === "" ? "" : ` (${why})`}`,
      ),
    ),
  );
}

/** What a writer has reported, and whether lines are missing. @param now milliseconds since the epoch. */
export function explainJournal({ metadata: { name }, spec }: MachineStateJournal, now: number): Explanation {
  const dropped = spec.dropped ?? 0;
  return record(`machinestatejournal/${name}`, now, {
    reason: dropped > 0 ? "Gap" : "AsExpected",
    headline: `The journal ${name} has the newest ${spec.lines.length} lines of its writer${dropped === 0 ? "" : `; ${dropped} never came here`}.`,
    next: dropped > 0 ? [reasonText("Gap").next] : [],
  });
}
