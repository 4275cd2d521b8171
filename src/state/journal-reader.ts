import type { JournalLine, JournalMark } from "../api/books/journal-line.ts";
import type { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { admittedLines, bookOfJournal, isKnown } from "../core/books/journal.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";

/** New lines of a journal. */
export interface JournalNews {
  /** Lines that were not there before, in the journal's order. */
  readonly lines: readonly JournalLine[];
  /** New lines about subjects that the writer may not report on. */
  readonly foreign: number;
  /** Lines that left the journal before they were read. */
  readonly missed: number;
}

/** Reads journals as they change, and detects lines that were lost between two passes. */
export class JournalReader {
  readonly #aliveAt: number;
  readonly #started = new Set<string>();

  /**
   * @param aliveAt milliseconds since the epoch at which the journals were last read: lines that have left them since
   * then are lost.
   */
  constructor(aliveAt: number) {
    this.#aliveAt = aliveAt;
  }

  /** @param known the last lines in books, for the first read of a journal. */
  read({ key, before, after }: ObjectChange<MachineStateJournal>, known: readonly JournalMark[]): JournalNews {
    if (after === undefined) {
      this.#started.delete(key);
      return { lines: [], foreign: 0, missed: 0 };
    }
    const isFirst = !this.#started.has(key) || before === undefined;
    this.#started.add(key);
    const marks = isFirst ? known : before.spec.last;
    // On the first read everything is new: the books know which lines they have already.
    const fresh = isFirst ? after.spec.lines : after.spec.lines.filter((line) => !isKnown(marks, line));
    const { lines, foreign } = admittedLines({ metadata: after.metadata, spec: { ...after.spec, lines: fresh } });
    const all = admittedLines(after).lines;
    return { lines, foreign, missed: this.#missed(all, marks, isFirst && bookOfJournal(key) === undefined) };
  }

  /**
   * Lines between the last known line of a writer and the oldest one in its journal.
   *
   * @param isShared other books also hold its lines, so that the marks do not cover everything that was read.
   */
  #missed(lines: readonly JournalLine[], marks: readonly JournalMark[], isShared: boolean): number {
    const oldest = new Map<string, JournalLine>();
    for (const line of lines) {
      const writer = `${line.writer.component}/${line.writer.instance}/${line.boot}`;
      if (!oldest.has(writer)) oldest.set(writer, line);
    }
    let missed = 0;
    for (const line of oldest.values()) {
      const mark = marks.find(
        ({ component, instance, boot }) =>
          component === line.writer.component && instance === line.writer.instance && boot === line.boot,
      );
      const lost = line.seq - (mark?.seq ?? 0) - 1;
      // Who was there when the oldest line was written has read those before it.
      if (lost > 0 && (!isShared || line.at > this.#aliveAt)) missed += lost;
    }
    return missed;
  }
}
