import type { JournalLine } from "../../api/books/journal-line.ts";

/** A line in its place. */
export interface PlacedLine {
  readonly line: JournalLine;
  /** Milliseconds since the epoch: its own clock, never before what the same writer said earlier. */
  readonly at: number;
  /** Its clock is inconsistent: the line was placed by its cause. */
  readonly skew: boolean;
}

/** Clocks that differ by less count as equal, in milliseconds. */
const toleranceMs = 1000;

export const writerKey = ({ writer }: Pick<JournalLine, "writer">): string => `${writer.component}/${writer.instance}`;
/** Identifies a line, to drop duplicates. */
export const lineKey = (line: Pick<JournalLine, "writer" | "boot" | "seq" | "sub">): string =>
  `${writerKey(line)}/${line.boot}/${line.seq}/${line.sub ?? 0}`;

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
        // A clock that jumped back within a boot: the other one tells how long it was.
        const least =
          previous === undefined ? latest : latest + Math.max(0, line.at < previous.at ? line.mono - previous.mono : 0);
        const jumped = line.at < latest - toleranceMs;
        latest = Math.max(line.at, least);
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

/**
 * Ends that one writer told and that stand before their beginning, which another one told, with that beginning: the
 * next one after them, where nothing else began before and nothing else ends it. One run may be gone through more than
 * once, its ends may be told by several writers, and what is oldest may be missing.
 */
function causesOf(placed: readonly PlacedLine[]): ReadonlyMap<PlacedLine, PlacedLine> {
  const sections = new Map<string, { readonly begins: PlacedLine[]; readonly ends: PlacedLine[] }>();
  for (const each of placed) {
    const { chapter, run, path, mark } = each.line;
    if (mark !== "begin" && mark !== "end" && mark !== "fail") continue;
    const key = `${chapter}\n${run ?? ""}\n${path}`;
    const section = sections.get(key) ?? { begins: [], ends: [] };
    sections.set(key, section);
    (mark === "begin" ? section.begins : section.ends).push(each);
  }
  const causes = new Map<PlacedLine, PlacedLine>();
  for (const { begins, ends } of sections.values()) {
    for (const [index, end] of ends.entries()) {
      const begin = begins.find(({ at, line }) => at > end.at && writerKey(line) !== writerKey(end.line));
      if (begin === undefined || begin.at - end.at > mostSkewMs) continue;
      const isOfAnother = begins.filter(({ at }) => at <= end.at).length > index;
      const isEnded = ends.some(({ at }) => at >= begin.at);
      if (!isOfAnother && !isEnded) causes.set(end, begin);
    }
  }
  return causes;
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
  // Sorting keeps the order of equals, and what was moved has the time of its cause: it must come behind it.
  return fixed
    .map((each, index) => ({ each, rank: each.at === placed[index]?.at ? 0 : 1, index }))
    .sort((a, b) => a.each.at - b.each.at || a.rank - b.rank || a.index - b.index)
    .map(({ each }) => each);
}
