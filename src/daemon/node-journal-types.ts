import type { BookSections } from "../api/books/report-table.ts";
import type { EventSubject, ReportedShortLineOf } from "../api/books/reports.ts";
import type { PhaseReport, PhaseSpan } from "../core/books/update-conditions.ts";

export type UpdateSection = keyof BookSections["node"]["Update"];

type Unnamed<L> = L extends unknown ? Omit<L, "book"> : never;
/**
 * Something that happened to the machine: a line of its book, and the other forms of it. Its Event is made each time the subject is
 * given, and its conditions are set each time; the journal has the line once.
 */
export type MachineHappening = Unnamed<ReportedShortLineOf<"node">> & {
  /** The same as conditions of the MachineConfigNode. */
  readonly phases?: readonly PhaseReport[];
};

/**
 * The daemon's reports about its machine, each made once regardless of the number of passes. It knows what was reported before
 * from the lines on the machine, so a restarted daemon continues the report.
 */
export interface NodeJournal {
  /** The target of the update that is under way, as last reported. */
  readonly run: string | undefined;
  /** Reports in all forms. A line about an update is part of the one that is under way; without one, the journal has no place for it. */
  report(happening: MachineHappening): void;
  /** When a section of the update that is under way began and ended. */
  spanOf(path: UpdateSection): PhaseSpan;
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
  /** The machine was booted: ends the sections that a boot ends. */
  booted(boot: string, image: string, about: EventSubject | undefined): void;
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
  adopted(config: string, from: string): void;
  /**
   * The machine has its desired configuration: its first boot and its joining are over. `isNew`: its Node had none before.
   */
  validated(config: string, node: { readonly uid: string; readonly isNew: boolean }): void;
}
