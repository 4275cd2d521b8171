import type { EventSubject } from "../api/books/reports.ts";
import type { BookSections, JournalEntryIn } from "../api/books/report-table.ts";

type Update = BookSections["node"]["Update"];
export type UpdateSection = keyof Update;
/** What the Event of a line is about. It is made each time it is given; the journal has the line once. */
type About = EventSubject | undefined;
type Told = Partial<Pick<JournalEntryIn<"node">, "data" | "next">> & { readonly about?: About };

/**
 * What the daemon tells of its machine, each thing once however often it looks. It knows what was told before from the
 * lines that lie on the machine, so that a daemon that comes back goes on with the story and does not begin it again.
 */
export interface NodeJournal {
  /** The target of the update that is under way, as far as was told. */
  readonly run: string | undefined;
  /**
   * A target was seen that the machine does not have yet: the story of its update begins, where it has not begun
   * before.
   */
  seen(target: string, from: string | undefined): void;
  /**
   * Called before something is done for it: if a daemon before this one was in the middle of it, that is told first.
   * `isOver`: everything is done already.
   */
  goOn(target: string, how?: { readonly isOver: boolean }): void;
  begin<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: Told): void;
  note<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: Told): void;
  end<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: Told): void;
  skip<P extends UpdateSection>(path: P, reason: Update[P][number], message: string): void;
  fail<P extends UpdateSection>(
    path: P,
    reason: Update[P][number],
    message: string,
    forms?: { readonly about?: About; readonly isWritten?: boolean },
  ): void;
  isOpen(path: UpdateSection): boolean;
  /** Milliseconds since a section was begun; `undefined` where that is not known. */
  since(path: UpdateSection): number | undefined;
  /** The update is over. */
  finish(outcome: "Succeeded" | "Superseded" | "WentBack", message: string, about?: EventSubject): void;
  /** The machine was booted: what ends by that, ends. */
  booted(boot: string, message: string, about: About): void;
  degraded(reason: BookSections["node"]["Degraded"]["Failed"][number], message: string, about: About): void;
  recovered(message: string): void;
  drifted(message: string, about: About): void;
  driftEnded(reason: BookSections["node"]["Drift"]["Ended"][number], message: string): void;
  wentBack(
    target: string,
    how: {
      readonly to: string;
      readonly message: string;
      readonly reason: BookSections["node"]["Rollback"]["Decided"][number];
      readonly about: EventSubject;
    },
  ): void;
  isBack(message: string): void;
  adopted(config: string, from: string): void;
  /** The machine has what it should have: its first boot and its joining are over. `isNew`: it had nothing before. */
  validated(message: string, isNew: boolean): void;
}
