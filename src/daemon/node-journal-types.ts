import type { EventSubject } from "../api/books/reports.ts";
import type { PhaseSpan } from "../core/books/update-conditions.ts";
import type { BookSections, JournalEntryIn } from "../api/books/report-table.ts";

type Update = BookSections["node"]["Update"];
export type UpdateSection = keyof Update;
/** The subject of a line's Event. The Event is made each time it is given; the journal has the line once. */
type About = EventSubject | undefined;
type LineDetails = Partial<Pick<JournalEntryIn<"node">, "data" | "next">> & { readonly about?: About };

/**
 * The daemon's reports about its machine, each made once regardless of the number of passes. It knows what was reported before
 * from the lines on the machine, so a restarted daemon continues the report.
 */
export interface NodeJournal {
  /** The target of the update that is under way, as last reported. */
  readonly run: string | undefined;
  /**
   * Reports a target that the machine does not have yet: the report of its update begins, unless it has begun before.
   *
   * @param from the configuration that the machine comes from; `reached`: the one that it has whole, and that its Node reports.
   */
  seen(target: string, from: { readonly from: string | undefined; readonly reached: string | undefined }): void;
  /**
   * Called before work on the update starts: reports first if an earlier daemon was interrupted. `isOver`: everything
   * is done already.
   */
  goOn(target: string, how?: { readonly isOver: boolean }): void;
  begin<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: LineDetails): void;
  /** Reports once for each update what was found on the way. */
  note<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: LineDetails): void;
  end<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: LineDetails): void;
  skip<P extends UpdateSection>(path: P, reason: Update[P][number], message: string): void;
  fail<P extends UpdateSection>(
    path: P,
    reason: Update[P][number],
    message: string,
    forms?: { readonly about?: About; readonly isWritten?: boolean },
  ): void;
  isOpen(path: UpdateSection): boolean;
  /** Milliseconds since a section began; `undefined` if unknown. */
  since(path: UpdateSection): number | undefined;
  /** When a section of the update that is under way began and ended. */
  spanOf(path: UpdateSection): PhaseSpan;
  /** The update is over. */
  finish(outcome: "Succeeded" | "Superseded" | "WentBack", message: string, about?: EventSubject): void;
  /** The machine was booted: ends the sections that a boot ends. */
  booted(boot: string, message: string, about: About): void;
  degraded(reason: BookSections["node"]["Degraded"]["Failed"][number], message: string, about: About): void;
  recovered(message: string): void;
  drifted(message: string, about: About): void;
  driftEnded(reason: BookSections["node"]["Drift"]["Ended"][number], message: string): void;
  /** The machine goes back from `target`: told once, and its Event made if `about` is given. */
  wentBack(
    target: string,
    how: {
      readonly to: string;
      readonly message: string;
      readonly reason: BookSections["node"]["Rollback"]["Decided"][number];
      readonly about?: EventSubject;
    },
  ): void;
  isBack(message: string): void;
  adopted(config: string, from: string): void;
  /**
   * The machine has its desired configuration: its first boot and its joining are over. `isNew`: its Node had none before.
   */
  validated(config: string, node: { readonly uid: string; readonly isNew: boolean }): void;
}
