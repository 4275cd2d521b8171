import type { JournalLine } from "../../api/books/journal-line.ts";

/** A line in its place. */
export interface PlacedLine {
  readonly line: JournalLine;
  /** Milliseconds since the epoch: its own clock, never before what the same writer said earlier. */
  readonly at: number;
  /** Its clock is inconsistent: the line was placed by its cause. */
  readonly skew: boolean;
}

/** The last second that RFC 3339 can write, in milliseconds since the epoch: writers of lines choose their times. */
export const latestTimeMs = Date.UTC(9999, 11, 31, 23, 59, 59);

/** Clocks that differ by less count as equal, in milliseconds. */
const toleranceMs = 1000;

export const writerKey = ({ writer }: Pick<JournalLine, "writer">): string => `${writer.component}/${writer.instance}`;
/** Identifies a line, to drop duplicates. */
export const lineKey = (line: Pick<JournalLine, "writer" | "boot" | "seq" | "sub">): string =>
  `${writerKey(line)}/${line.boot}/${line.seq}/${line.sub ?? 0}`;

/**
 * Puts the boots of each writer into the order of the journals. Boots that the journals no longer hold come first; a stored
 * line of a boot follows the lines that the journals still hold of an earlier boot.
 */
export function inOrderOfBoots(
  lines: readonly JournalLine[],
  inJournals: readonly JournalLine[],
): readonly JournalLine[] {
  const bootOf = (line: JournalLine) => `${writerKey(line)}/${line.boot}`;
  const ranks = new Map<string, number>();
  for (const line of inJournals) if (!ranks.has(bootOf(line))) ranks.set(bootOf(line), ranks.size);
  const rankOf = (line: JournalLine) => ranks.get(bootOf(line)) ?? -1;
  return lines.toSorted((a, b) => rankOf(a) - rankOf(b));
}

/**
 * Orders the lines of several writers. Lines of one writer are ordered by boot and number; boots have the order of the
 * input, which is the journal's. Lines of different writers are ordered by their clocks, but an end never precedes its
 * start: such an end is moved behind the start and marked. Duplicates count once.
 */
export function orderLines(lines: readonly JournalLine[]): readonly PlacedLine[] {
  const seen = new Set<string>();
  const streams = new Map<string, Map<string, JournalLine[]>>();
  for (const line of lines) {
    const key = lineKey(line);
    if (seen.has(key)) continue;
    seen.add(key);
    const boots = streams.get(writerKey(line)) ?? new Map<string, JournalLine[]>();
    streams.set(writerKey(line), boots);
    const boot = boots.get(line.boot) ?? [];
    boots.set(line.boot, boot);
    boot.push(line);
  }
  const placed: PlacedLine[] = [];
  for (const boots of streams.values()) {
    let latest = Number.NEGATIVE_INFINITY;
    for (const boot of boots.values()) {
      boot.sort((a, b) => a.seq - b.seq || (a.sub ?? 0) - (b.sub ?? 0));
      let previous: JournalLine | undefined;
      for (const line of boot) {
        // The clock jumped back within a boot: the monotonic clock has the duration.
        const least =
          previous === undefined ? latest : latest + Math.max(0, line.at < previous.at ? line.mono - previous.mono : 0);
        const jumped = line.at < latest - toleranceMs;
        latest = Math.min(latestTimeMs, Math.max(0, line.at, least));
        placed.push({ line, at: latest, skew: jumped });
        previous = line;
      }
    }
  }
  placed.sort((a, b) => a.at - b.at);
  return causesFirst(placed);
}

/** Clocks are not further apart than this, in milliseconds: what is, happened at another time. */
const mostSkewMs = 600_000;

/** Beginnings and ends of one section of a chapter, of all its runs, in time order. */
interface SectionLines {
  readonly begins: PlacedLine[];
  readonly ends: PlacedLine[];
}

/** Lists by key. */
type Groups<T> = Map<string, T[]>;

function addTo<T>(groups: Groups<T>, key: string, value: T): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [value]);
  else group.push(value);
}

const runOf = ({ line: { chapter, run } }: PlacedLine) => `${chapter}\n${run ?? ""}`;
const byWriter = ({ line }: PlacedLine, what = "") => `${writerKey(line)}\n${what}`;

/** Index of the first of some lines in time order that is later than `at`. */
function indexAfter(lines: readonly PlacedLine[], at: number): number {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.at ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many of some lines in time order are later than one line and earlier than another. */
function countBetween(lines: readonly PlacedLine[] = [], end: PlacedLine, begin: PlacedLine): number {
  const from = indexAfter(lines, end.at);
  let to = indexAfter(lines, begin.at);
  while (to > from && lines[to - 1]?.at === begin.at) to -= 1;
  return to - from;
}

/**
 * Pairs ends that stand before their beginning, reported by another writer, with that beginning: the next one of their
 * run. A run may occur more than once, several writers may report its ends, and lines may be lost with the process that
 * wrote them. So an end that follows a beginning of its run answers that one, if no other run began meanwhile. And it is
 * not paired with a beginning whose writer had spoken of the run before that, or if its own writer went on to another run
 * before that: then its own beginning is lost.
 */
function causesOf(placed: readonly PlacedLine[]): ReadonlyMap<PlacedLine, PlacedLine> {
  const sections = new Map<string, SectionLines>();
  const spoken: Groups<PlacedLine> = new Map();
  for (const each of placed) {
    addTo(spoken, byWriter(each, runOf(each)), each);
    const { chapter, path, mark } = each.line;
    if (mark !== "begin" && mark !== "end" && mark !== "fail") continue;
    const key = `${chapter}\n${path}`;
    const section = sections.get(key) ?? { begins: [], ends: [] };
    sections.set(key, section);
    (mark === "begin" ? section.begins : section.ends).push(each);
  }
  const causes = new Map<PlacedLine, PlacedLine>();
  for (const section of sections.values())
    for (const [end, begin] of belatedBegins(section))
      if (countBetween(spoken.get(byWriter(begin, runOf(end))), end, begin) === 0) causes.set(end, begin);
  return causes;
}

/**
 * Ends of a section that no beginning explains, with the next beginning of their run, by another writer. What an observer
 * sees begin, it sees later than whoever takes part: such a beginning is no cause.
 */
function belatedBegins({ begins, ends }: SectionLines): readonly (readonly [PlacedLine, PlacedLine])[] {
  const ofRun: Groups<PlacedLine> = new Map();
  for (const begin of begins) if (begin.line.via === "told") addTo(ofRun, runOf(begin), begin);
  const answered = new Set<PlacedLine>();
  /** Ends that answer a beginning, by writer, and by writer and run. */
  const answers: Groups<PlacedLine> = new Map();
  const left: PlacedLine[] = [];
  for (const end of ends) {
    const newest = begins[indexAfter(begins, end.at) - 1];
    if (newest === undefined || runOf(newest) !== runOf(end)) {
      left.push(end);
      continue;
    }
    answered.add(newest);
    addTo(answers, byWriter(end), end);
    addTo(answers, byWriter(end, runOf(end)), end);
  }
  return left.flatMap((end) => {
    const begin = nextElsewhere(ofRun.get(runOf(end)), end);
    if (begin === undefined || answered.has(begin)) return [];
    const all = countBetween(answers.get(byWriter(end)), end, begin);
    const own = countBetween(answers.get(byWriter(end, runOf(end))), end, begin);
    return all > own ? [] : [[end, begin] as const];
  });
}

/** The first of some beginnings in time order that another writer reported after an end. */
function nextElsewhere(begins: readonly PlacedLine[] = [], end: PlacedLine): PlacedLine | undefined {
  for (let index = indexAfter(begins, end.at); index < begins.length; index += 1) {
    const begin = begins[index];
    if (begin === undefined || begin.at - end.at > mostSkewMs) return undefined;
    if (writerKey(begin.line) !== writerKey(end.line)) return begin;
  }
  return undefined;
}

/** Moves ends that precede their start, reported by another writer, behind it. */
function causesFirst(placed: readonly PlacedLine[]): readonly PlacedLine[] {
  const causes = causesOf(placed);
  let moved = false;
  // Moving a line moves all later lines of its writer.
  const least = new Map<string, number>();
  const fixed = placed.map((each): PlacedLine => {
    const writer = writerKey(each.line);
    const at = Math.max(each.at, causes.get(each)?.at ?? each.at, least.get(writer) ?? each.at);
    if (at === each.at) return each;
    moved = true;
    least.set(writer, at);
    return { line: each.line, at, skew: at - each.at > toleranceMs || each.skew };
  });
  if (!moved) return placed;
  // Sorting is stable, and a moved line has the time of its cause: it must come after the cause.
  return fixed
    .map((each, index) => ({ each, rank: each.at === placed[index]?.at ? 0 : 1, index }))
    .sort((a, b) => a.each.at - b.each.at || a.rank - b.rank || a.index - b.index)
    .map(({ each }) => each);
}
