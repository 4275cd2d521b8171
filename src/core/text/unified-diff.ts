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

/** Lines of a text as diff(1) counts them; an end without line break is a property of the last line. */
export function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Where two texts differ, with three lines of context. Bounded: at most O((n + m) · 1500) steps. */
export function hunksBetween(before: readonly string[], after: readonly string[]): readonly Hunk[] {
  return hunksOf(editScript(before, after), before.length, after.length);
}

/** The shortest script by Myers' algorithm on what is left after the common beginning and end. */
function editScript(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end += 1;
  const script: DiffLine[] = [];
  for (let i = 0; i < start; i++) script.push({ sign: " ", index: i });
  script.push(...middle(before, after, start, before.length - end, after.length - end));
  for (let i = before.length - end; i < before.length; i++) script.push({ sign: " ", index: i });
  return script;
}

function middle(
  before: readonly string[],
  after: readonly string[],
  start: number,
  oldEnd: number,
  newEnd: number,
): readonly DiffLine[] {
  const [n, m] = [oldEnd - start, newEnd - start];
  const most = Math.min(n + m, maxEdits);
  const offset = most + 1;
  let furthest = new Int32Array(2 * most + 3);
  const trail: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    trail.push(furthest);
    const next = furthest.slice();
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest[offset + k - 1] ?? 0) < (furthest[offset + k + 1] ?? 0));
      let x = down ? (furthest[offset + k + 1] ?? 0) : (furthest[offset + k - 1] ?? 0) + 1;
      let y = x - k;
      while (x < n && y < m && before[start + x] === after[start + y]) {
        x += 1;
        y += 1;
      }
      next[offset + k] = x;
      if (x >= n && y >= m) return backtrack(trail, offset, n, m, start);
    }
    furthest = next;
    // The trail of a long search would hold many megabytes.
    if (trail.length * furthest.length > 4_000_000) break;
  }
  const replaced: DiffLine[] = [];
  for (let i = start; i < oldEnd; i++) replaced.push({ sign: "-", index: i });
  for (let i = start; i < newEnd; i++) replaced.push({ sign: "+", index: i });
  return replaced;
}

function backtrack(
  trail: readonly Int32Array[],
  offset: number,
  n: number,
  m: number,
  start: number,
): readonly DiffLine[] {
  const reversed: DiffLine[] = [];
  let [x, y] = [n, m];
  for (let d = trail.length - 1; d >= 0; d--) {
    const furthest = trail[d];
    const at = (k: number) => furthest?.[offset + k] ?? 0;
    const k = x - y;
    const previousK = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const previousX = d === 0 ? 0 : at(previousK);
    const previousY = d === 0 ? 0 : previousX - previousK;
    while (x > previousX && y > previousY) {
      x -= 1;
      y -= 1;
      reversed.push({ sign: " ", index: start + x });
    }
    if (d === 0) break;
    if (x > previousX) reversed.push({ sign: "-", index: start + --x });
    else reversed.push({ sign: "+", index: start + --y });
  }
  return reversed.toReversed();
}

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
    open.lines.push(...quiet, line);
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
