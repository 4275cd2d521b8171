import type { Freshness } from "../pool/pool-queries.ts";
import { shortList } from "../text/list-text.ts";

/** The state of one object, its cause, what comes next, and what a person should do. */
export interface Explanation {
  /** `pool/worker`, `node/worker-0`, `clusteroperator/machine-config`, `mc/99-worker-ssh`. */
  readonly subject: string;
  readonly asOf: string;
  readonly freshness: Freshness;
  /** The reason of the answer, for programs. */
  readonly reason: string;
  /** One sentence. */
  readonly headline: string;
  readonly sections: Sections;
  /** What happens automatically. */
  readonly next: readonly string[];
  /** The recommended action; empty: none. */
  readonly todo: readonly string[];
  /** The estimated end, based on earlier updates. */
  readonly likelyEnd?: {
    readonly likely: string;
    readonly earliest: string;
    readonly latest: string;
    readonly updates: number;
  };
}

export type Sections = readonly { readonly title: string; readonly lines: readonly string[] }[];

/** What follows by itself, and what a person has to do. Both empty: the object is as it should be. */
export type Remedies = Pick<Explanation, "next" | "todo">;

/** Items that a list names, and lines that a section has, at most. */
export const shown = 10;

/** A section of an explanation; none without lines. */
export const section = (title: string, lines: readonly string[]): Sections =>
  lines.length === 0
    ? []
    : [
        {
          title,
          lines: shortList(lines, shown, (line) => line),
        },
      ];

/** The explanation as text, without colours. */
export function explanationText({ headline, sections, next, todo, freshness, asOf }: Explanation): string {
  const lines = [
    headline,
    ...(freshness === "Fresh"
      ? []
      : [`(${freshness === "Stale" ? `what is known is as of ${asOf}` : "not everything could be read"})`]),
    ...sections.flatMap(({ title, lines: each }) => [`${title}:`, ...each.map((line) => `  ${line}`)]),
    ...(next.length === 0 ? [] : ["What happens next:", ...next.map((line) => `  ${line}`)]),
    todo.length === 0 ? "What to do: nothing" : "What to do:",
    ...todo.map((line) => `  ${line}`),
  ];
  return `${lines.join("\n")}\n`;
}
