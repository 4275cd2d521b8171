import type { JournalEntry } from "../api/books/report-table.ts";

export type { ReportLevel, JournalEntry } from "../api/books/report-table.ts";

/** Writes journal lines. Every process has one from its start, beside Clock, Random and Logger. */
export interface Journal {
  /** Never throws and never waits. */
  line(line: JournalEntry): void;
  /** Resolves once every boundary line is as durable as this driver can make it. Called before a reboot. */
  flush(signal?: AbortSignal): Promise<void>;
  /**
   * Resolves once the lines so far are stored on this machine, or could not be: before an effect that nothing shows
   * afterwards. It waits for no server and never rejects. Absent where lines are stored nowhere before they are sent.
   */
  kept?(): Promise<void>;
  /** `dropped`: boundary lines that no journal has. Absent if nothing collects lines. */
  readonly counts?: { readonly dropped: number };
}

/** Stores lines as text before they are sent anywhere else. */
export interface LineStore {
  /** Appends lines (without line feeds) to those of a boot. `durable`: they survive a power loss once this resolves. */
  append(
    boot: string,
    lines: readonly string[],
    how: { readonly durable: boolean },
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * Keeps lines in memory: for tests, the simulation, and processes whose lines are not collected yet. Bounded: drops the
 * oldest lines first.
 */
export function memoryJournal(limit = 10_000): Journal & { readonly lines: readonly JournalEntry[] } {
  const lines: JournalEntry[] = [];
  return {
    lines,
    line(line) {
      lines.push(line);
      if (lines.length > limit) lines.shift();
    },
    flush() {
      return Promise.resolve();
    },
  };
}
