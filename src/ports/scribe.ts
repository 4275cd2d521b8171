import type { StoryLine } from "../api/books/stories.ts";

export type { StoryLevel, StoryLine } from "../api/books/stories.ts";

/** Writes story lines. Every process has one from its first line on, beside Clock, Random and Logger. */
export interface Scribe {
  /** Never throws and never waits. */
  line(line: StoryLine): void;
  /** Resolves once every boundary line is as durable as this driver can make it. Called before a reboot. */
  settle(signal?: AbortSignal): Promise<void>;
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
export function memoryScribe(limit = 10_000): Scribe & { readonly lines: readonly StoryLine[] } {
  const lines: StoryLine[] = [];
  return {
    lines,
    line(line) {
      lines.push(line);
      if (lines.length > limit) lines.shift();
    },
    settle() {
      return Promise.resolve();
    },
  };
}
