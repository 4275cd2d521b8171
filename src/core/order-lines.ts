import type { JournalLine } from "../api/journal-line.ts";

/** A line in its place. */
export interface PlacedLine {
  readonly line: JournalLine;
  /** Milliseconds since the epoch: its own clock, never before what the same writer said earlier. */
  readonly at: number;
  /** Its clock does not fit: it was placed by what it follows from. */
  readonly skew: boolean;
}

/** Clocks that differ by less are taken to agree, in milliseconds. */
const toleranceMs = 1000;

export const writerKey = ({ writer }: Pick<JournalLine, "writer">): string => `${writer.component}/${writer.instance}`;
/** A line's own name: a line that is there twice is one. */
export const lineKey = (line: Pick<JournalLine, "writer" | "boot" | "seq" | "sub">): string => `${writerKey(line)}/${line.boot}/${line.seq}/${line.sub ?? 0}`;

/**
 * The order of what several writers told. Of one writer by boot and number; boots in the order in which they are given,
 * which is the journal's. Between writers by their clocks, but no end before its beginning: such a one is placed behind it
 * and marked. Lines that are there twice count once.
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
        const least = previous === undefined ? latest : latest + Math.max(0, line.at < previous.at ? line.mono - previous.mono : 0);
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

/**
 * For each end that one writer told, the beginning that another one told: the last end of a section follows from the last
 * beginning of it, the one before from the one before. One run may be gone through more than once, and what is oldest may be
 * missing.
 */
function causesOf(placed: readonly PlacedLine[]): ReadonlyMap<PlacedLine, PlacedLine> {
  const begins = new Map<string, PlacedLine[]>();
  const ends = new Map<string, Map<string, PlacedLine[]>>();
  for (const each of placed) {
    const { chapter, run, path, mark } = each.line;
    const key = `${chapter}\n${run ?? ""}\n${path}`;
    if (mark === "begin") begins.set(key, [...(begins.get(key) ?? []), each]);
    else if (mark === "end" || mark === "fail") {
      const writers = ends.get(key) ?? new Map<string, PlacedLine[]>();
      ends.set(key, writers);
      writers.set(writerKey(each.line), [...(writers.get(writerKey(each.line)) ?? []), each]);
    }
  }
  const causes = new Map<PlacedLine, PlacedLine>();
  for (const [key, writers] of ends) {
    for (const [writer, own] of writers) {
      const others = (begins.get(key) ?? []).filter(({ line }) => writerKey(line) !== writer);
      for (let back = 1; back <= Math.min(own.length, others.length); back += 1) {
        const [end, begin] = [own.at(-back), others.at(-back)];
        if (end !== undefined && begin !== undefined) causes.set(end, begin);
      }
    }
  }
  return causes;
}

/** Puts ends that stand before their beginning, which another writer told, behind it. */
function causesFirst(placed: readonly PlacedLine[]): readonly PlacedLine[] {
  const causes = causesOf(placed);
  let moved = false;
  // Whoever has one line moved has said all later ones after it.
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
