/** How much a story line matters: boundary lines open and close chapters and are never dropped. */
export type StoryLevel = "boundary" | "progress" | "debug";

/**
 * One line of the story that the books tell. The scribe adds who wrote it, its sequence number and both clocks.
 * No secrets and no file contents: a line may be read by anyone who may read the object it speaks of.
 */
export interface StoryLine {
  /** `node/worker-0`, `pool/worker`, `cluster`, `build/…`. */
  readonly book: string;
  /** Life-cycle stage, for example `Update`. */
  readonly chapter: string;
  /** Which run of that stage: a target hash or a uid. */
  readonly run?: string;
  /** Section within the chapter, for example `Executed/Drained`. */
  readonly path: string;
  readonly mark: "begin" | "note" | "end" | "fail" | "skip" | "retry";
  readonly level: StoryLevel;
  readonly reason: string;
  readonly message: string;
  readonly data?: Readonly<Record<string, string | number | boolean>>;
}

/** Writes story lines. Every process has one from its first line on, beside Clock, Random and Logger. */
export interface Scribe {
  /** Never throws and never waits. */
  line(line: StoryLine): void;
  /** Resolves once every boundary line is as durable as this driver can make it. Called before a reboot. */
  settle(signal?: AbortSignal): Promise<void>;
}

/** Keeps lines in memory: tests, simulation, and processes whose lines nobody collects yet. Bounded: oldest go first. */
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
