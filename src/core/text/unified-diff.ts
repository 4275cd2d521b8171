import { pushAll } from "../../api/schema/push-all.ts";
import { diffArrays } from "diff";

/**
 * A line of a difference: ` ` both have it, `-` only the old text, `+` only the new one. Indexes are into the lines of
 * the text that has it.
 */
export interface DiffLine {
  readonly sign: " " | "-" | "+";
  /** Index of the line in the old text, or in the new one for `+`. */
  readonly index: number;
}

export interface Hunk {
  /** Counted from 1, as in a unified diff; 0 where the side is empty. */
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly lines: readonly DiffLine[];
}

/**
 * Beyond this many edits the middle of both texts counts as replaced: the search would cost more than its answer is
 * worth.
 */
const maxEdits = 1500;
const contextLines = 3;
/** Lines of one text that are compared; people write no longer ones. */
const mostLinesOfText = 20_000;

/**
 * The work that one description may cost, whoever wrote the texts: lines that are read, and steps of the searches for the
 * shortest script. Without steps, the middle of both texts counts as replaced.
 */
export class DiffBudget {
  #lines: number;
  #steps: number;

  constructor({ lines = 100_000, steps = 4_000_000 }: { readonly lines?: number; readonly steps?: number } = {}) {
    this.#lines = lines;
    this.#steps = steps;
  }

  /** Whether texts of so many lines may be compared; if so, counts them. */
  takeLines(...counts: readonly number[]): boolean {
    const all = counts.reduce((sum, count) => sum + count, 0);
    if (all > this.#lines || counts.some((count) => count > mostLinesOfText)) return false;
    this.#lines -= all;
    return true;
  }

  /** Edits that a search may find. It takes a step for each diagonal of each length: half of their square. */
  get edits(): number {
    return Math.min(maxEdits, Math.floor(Math.sqrt(2 * this.#steps)));
  }

  spend(edits: number): void {
    this.#steps = Math.max(0, this.#steps - (edits * edits) / 2);
  }
}

/** Lines of a text as diff(1) counts them; an end without line break is a property of the last line. */
export function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * Where two texts differ, with three lines of context. Bounded: at most O((n + m) · 1500) steps.
 *
 * @param budget of the description that this comparison is part of.
 */
export function hunksBetween(
  before: readonly string[],
  after: readonly string[],
  budget = new DiffBudget(),
): readonly Hunk[] {
  return hunksOf(editScript(before, after, budget), before.length, after.length);
}

/** The shortest script on what is left after the common beginning and end. */
function editScript(before: readonly string[], after: readonly string[], budget: DiffBudget): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const longest = Math.min(before.length, after.length) - start;
  while (end < longest && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const [oldEnd, newEnd] = [before.length - end, after.length - end];
  const most = budget.edits;
  const found = diffArrays(before.slice(start, oldEnd), after.slice(start, newEnd), {
    maxEditLength: most,
    oneChangePerToken: false,
  });
  budget.spend(found?.reduce((edits, { added, removed, count }) => edits + (added || removed ? count : 0), 0) ?? most);
  const changes = found ?? [
    { removed: true, added: false, count: oldEnd - start },
    { removed: false, added: true, count: newEnd - start },
  ];
  // Arrays are joined, not spread into arguments: a text may have more lines than a call may have arguments.
  const parts = [lines(" ", 0, start)];
  let [oldAt, newAt] = [start, start];
  for (const { removed, added, count } of changes) {
    parts.push(added ? lines("+", newAt, count) : lines(removed ? "-" : " ", oldAt, count));
    if (!added) oldAt += count;
    if (!removed) newAt += count;
  }
  return [...parts, lines(" ", oldEnd, end)].flat();
}

const lines = (sign: DiffLine["sign"], from: number, count: number): DiffLine[] =>
  Array.from({ length: count }, (_, offset) => ({ sign, index: from + offset }));

function hunksOf(script: readonly DiffLine[], oldLength: number, newLength: number): readonly Hunk[] {
  const hunks: Hunk[] = [];
  let [oldAt, newAt] = [0, 0];
  let open: { oldStart: number; newStart: number; lines: DiffLine[] } | undefined;
  let quiet: DiffLine[] = [];
  const close = () => {
    if (open === undefined) return;
    const kept = [...open.lines, ...quiet.slice(0, contextLines)];
    const count = (sign: "-" | "+") => kept.filter((line) => line.sign === " " || line.sign === sign).length;
    const [oldLines, newLines] = [count("-"), count("+")];
    hunks.push({
      oldStart: oldLines === 0 ? open.oldStart : open.oldStart + 1,
      oldLines,
      newStart: newLines === 0 ? open.newStart : open.newStart + 1,
      newLines,
      lines: kept,
    });
    open = undefined;
  };
  for (const line of script) {
    if (line.sign === " ") {
      quiet.push(line);
      if (open !== undefined && quiet.length > 2 * contextLines) {
        close();
        quiet = quiet.slice(-contextLines);
      } else if (open === undefined && quiet.length > contextLines) quiet = quiet.slice(-contextLines);
      oldAt += 1;
      newAt += 1;
      continue;
    }
    open ??= { oldStart: oldAt - quiet.length, newStart: newAt - quiet.length, lines: [] };
    pushAll(open.lines, [...quiet, line]);
    quiet = [];
    if (line.sign === "-") oldAt += 1;
    else newAt += 1;
  }
  close();
  if (oldAt !== oldLength || newAt !== newLength) throw new Error("bug: the script does not cover both texts");
  return hunks;
}

/** `@@ -1,3 +1,4 @@` */
export function hunkHeader({ oldStart, oldLines, newStart, newLines }: Hunk): string {
  const range = (start: number, lines: number) => (lines === 1 ? String(start) : `${start},${lines}`);
  return `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;
}
