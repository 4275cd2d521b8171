import {
  type EventForm,
  type EventSubject,
  type Notice,
  type ReportInput,
  type ReportedLine,
  type ReportedNotice,
  type ReportedShortLine,
  eventForms,
  notices,
} from "../api/books/reports.ts";
import { bookKindOf, inTable } from "../api/books/report-table.ts";
import { completeLine } from "../api/books/short-lines.ts";
import { redactText } from "../core/text/redact.ts";
import type { Logger } from "../ports/logger.ts";
import type { Journal } from "../ports/journal.ts";
import type { EventRecorder } from "./event-recorder.ts";

/** Everything that tells of something that happened: lines of books, with or without an Event, and notices. */
export type Happening = HappeningForm | readonly HappeningForm[];
/** The table of reasons has level and section of a line; only lines that a decision makes are complete. */
type HappeningForm = ReportedShortLine | ReportedNotice;

/** Reports a happening, once. Never throws and never waits. */
export type Report = (happening: Happening | ReportInput) => void;

/** A report that belongs to no chapter. @param message one sentence: what happened. */
export const noticed = (about: EventSubject, notice: Notice, message: string): ReportedNotice => ({
  about,
  notice,
  message,
});

export const reportsOf = (happening: Happening | ReportInput): readonly ReportInput[] =>
  Array.isArray(happening) ? (happening as readonly ReportInput[]) : [happening as ReportInput];

/**
 * The one place that turns a report into visible effects: a journal line (which also feeds the section metrics), an
 * Event if the tables have one, and a log line.
 */
export function createReport({
  journal,
  events,
  log,
}: {
  readonly journal: Journal;
  /** Absent in processes without an object to attach Events to. */
  readonly events?: EventRecorder;
  readonly log: Logger;
}): Report {
  const reportOne = (input: ReportInput): void => {
    const { about } = input;
    // The journal and the log redact by themselves; Events are visible to all readers of the namespace.
    const message = redactText(input.message);
    if ("notice" in input) {
      const type = input.type ?? notices[input.notice];
      events?.event(input.about, { type, reason: input.notice, message });
      log[type === "Warning" ? "warn" : "debug"]({ reason: input.notice, says: message }, "reported");
      return;
    }
    const { about: _, isWritten = false, ...line } = completeLine(input);
    if (!isWritten) journal.line(line);
    const form = eventFormOf(line);
    if (form !== undefined && about !== undefined)
      events?.event(about, { type: form.type, reason: form.reason, message });
    const { book, chapter, path, reason } = line;
    log[line.mark === "fail" || form?.type === "Warning" ? "warn" : "debug"](
      { book, chapter, path, reason, says: message },
      "reported",
    );
  };
  return (happening) => {
    for (const input of reportsOf(happening)) reportOne(input);
  };
}

/** The Event of a line; `undefined` for none. */
function eventFormOf({
  book,
  chapter,
  path,
  reason,
}: Pick<ReportedLine, "book" | "chapter" | "path" | "reason">): EventForm | undefined {
  const form = inTable<EventForm>(eventForms, reason);
  if (form === undefined) return undefined;
  const isInBook = form.in === undefined || form.in === bookKindOf(book);
  return isInBook && (form.chapter ?? chapter) === chapter && (form.path ?? path) === path ? form : undefined;
}
