import type { EventSubject } from "../api/books/reports.ts";
import { type SectionReport, phaseOfCondition } from "../core/books/update-conditions.ts";
import type { PassContext } from "./pass-context.ts";

/** What a pass reports of a section of its update; the journal itself reports interruptions of a daemon. */
type Said = SectionReport & { readonly mark: Exclude<SectionReport["mark"], "retry"> };

/**
 * Reports a section of an update once for all its forms: the journal line, the Event of its reason if `about` is given,
 * and the matching condition of the MachineConfigNode.
 */
export function reportSection(
  said: Said,
  { journal, reporter }: Pick<PassContext, "journal" | "reporter">,
  about?: EventSubject,
): void {
  const phase = phaseOfCondition(said);
  if (phase !== undefined) reporter.phases([phase]);
  const { path, mark, reason, message } = said;
  switch (mark) {
    case "begin":
      return journal.begin(path, reason, message, { about });
    case "note":
      return journal.note(path, reason, message, { about });
    case "end":
      return journal.end(path, reason, message, { about });
    case "skip":
      return journal.skip(path, reason, message);
    case "fail":
      return journal.fail(path, reason, message, { about });
  }
}
