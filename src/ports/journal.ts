import type { JournalEntry } from "../api/books/report-table.ts";

export type { ReportLevel, JournalEntry } from "../api/books/report-table.ts";

/** Writes story lines. Every process has one from its first line on, beside Clock, Random and Logger. */
export interface Journal {
  /** Never throws and never waits. */
  line(line: JournalEntry): void;
  /** Resolves once every boundary line is as durable as this driver can make it. Called before a reboot. */
  flush(signal?: AbortSignal): Promise<void>;
  /** `dropped`: boundary lines that are in no journal. Absent where nobody collects lines. */
  readonly counts?: { readonly dropped: number };
}

/** Where a scribe keeps lines, as text, before they are anywhere else. */
export interface LineStore {
  /**
   * Puts lines (without line feeds) behind those of a boot. `durable`: they survive a loss of power once this resolves.
   */
  append(
    boot: string,
    lines: readonly string[],
    how: { readonly durable: boolean },
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * Keeps lines in memory: tests, simulation, and processes whose lines nobody collects yet. Bounded: oldest go first.
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
