import { greatestOf, leastOf } from "../../api/schema/extremes.ts";
import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { durationText, isMereNote } from "./fold-book.ts";
import { type Paint, paintOf } from "../text/paint.ts";
import { clockText, timeText } from "../text/time-text.ts";

/** The activity of a time span; the letter is its mark in the chart. */
export const barClasses = {
  prepare: { letter: "p", colour: "36", means: "asked for, checked" },
  pull: { letter: "i", colour: "34", means: "image pulled" },
  drain: { letter: "d", colour: "33", means: "cordoned, drained" },
  apply: { letter: "a", colour: "35", means: "files, OS" },
  reboot: { letter: "R", colour: "31", means: "rebooting" },
  service: { letter: "s", colour: "36", means: "services" },
  prove: { letter: "v", colour: "34", means: "settling, proving itself" },
  return: { letter: "u", colour: "32", means: "put back into service" },
  wait: { letter: ".", colour: "2", means: "between two steps" },
  rollout: { letter: "=", colour: "2", means: "the roll-out as a whole" },
  pause: { letter: "z", colour: "33", means: "paused" },
  other: { letter: "o", colour: "36", means: "something else" },
  trouble: { letter: "!", colour: "41", means: "degraded, drifted, lost, gone back" },
} as const;
export type BarClass = keyof typeof barClasses;

/** A stretch of time in milliseconds since the epoch; open at its end when it is not over. */
export interface Bar {
  readonly class: BarClass;
  readonly from: number;
  /** `undefined`: not over. */
  readonly to: number | undefined;
}

export interface TimelineRow {
  readonly name: string;
  readonly bars: readonly Bar[];
  /** How the newest chapter ended, or what it is about. */
  readonly state: string;
}

/** Rows of bars over one stretch of time. */
export interface Timeline {
  readonly subject: string;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly rows: readonly TimelineRow[];
}

const classOfPath: readonly (readonly [RegExp, BarClass])[] = [
  [/^(Requested|Prepared)$/, "prepare"],
  [/^Executed\/ImagePulled$/, "pull"],
  [/^Executed\/(Cordoned|Drained)$/, "drain"],
  [/^(Executed\/(OS|Files)|OSUpdated|Extensions|Kargs)$/, "apply"],
  [/^(PostAction\/Rebooted|Reboot)$/, "reboot"],
  [/^PostAction\/Service$/, "service"],
  [/^(PostAction\/(Settled|Proven)|Validated|Canary)$/, "prove"],
  [/^Paused$/, "pause"],
  [/^(Resumed|Complete\/Uncordoned|Updated)$/, "return"],
];
const troubled = new Set(["Degraded", "Drift", "Lost", "Rollback", "Blocked", "Failed"]);

/** What time spent in a section of a chapter counts as. */
export function barClassOf(chapter: string, path: string, outcome?: string): BarClass {
  if (troubled.has(chapter) || path.startsWith("Blocked/") || outcome === "Failed" || outcome === "RolledBack")
    return "trouble";
  return classOfPath.find(([pattern]) => pattern.test(path))?.[1] ?? "other";
}

/** Bars of one chapter: its sections, the time between them, and the whole where it has none that took time. */
function barsOf(chapter: Chapter): readonly Bar[] {
  const began = Date.parse(chapter.startedAt);
  const ended = chapter.endedAt === undefined ? undefined : Date.parse(chapter.endedAt);
  const whole = (of: BarClass): Bar => ({ class: of, from: began, to: ended });
  if (troubled.has(chapter.chapter)) return [whole("trouble")];
  if (chapter.chapter === "Paused") return [whole("pause")];
  // Its machines have rows of their own.
  const isRollOut = chapter.chapter === "Rollout";
  const sections = chapter.sections
    .filter(
      ({ outcome, path }) =>
        outcome !== "NotRequired" && outcome !== "Skipped" && !(isRollOut && !/^(Canary|Paused|Blocked)/.test(path)),
    )
    .map(({ path, startedAt, endedAt, outcome }): Bar => ({
      class: barClassOf(chapter.chapter, path, outcome),
      from: Date.parse(startedAt),
      to: endedAt === undefined ? ended : Date.parse(endedAt),
    }));
  // Gaps are drawn below the sections, so that they are visible.
  // What took no time and has no class of its own is no news.
  const bars = sections.filter((bar) => bar.class !== "other" || bar.to === undefined || bar.to > bar.from);
  if (bars.length === 0 && !isRollOut && ended === began) return [];
  return [whole(isRollOut ? "rollout" : sections.length === 0 ? "other" : "wait"), ...bars];
}

const stateOf = (chapter: Chapter | undefined): string =>
  chapter === undefined
    ? ""
    : chapter.state === "Open"
      ? `${chapter.chapter}, under way`
      : chapter.state === "Abandoned"
        ? `${chapter.chapter}, abandoned`
        : `${chapter.chapter} ${chapter.outcome ?? "Unknown"} in ${durationText(chapter.durationMs ?? 0)}`;

export interface TimelineOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * Nothing that ended longer ago than this many milliseconds is shown; the newest roll-out, or everything, when
   * absent.
   */
  readonly sinceMs?: number;
}

/** How far the clock of a machine may be ahead. */
const aheadMs = 60_000;

/** A bar without the time to come: a machine may write any time into its book, and the chart is of all machines. */
function untilNow({ class: of, from, to }: Bar, now: number): Bar {
  const past = (time: number) => (time > now + aheadMs ? now : time);
  return { class: of, from: past(from), to: to === undefined ? undefined : past(to) };
}

/**
 * When the first machine began to go to where the newest update goes; `-Infinity`: nothing was ever updated. What is to
 * begin in the time to come is no update yet.
 */
function newestWave(chapters: readonly Chapter[], now: number): number {
  const updates = chapters.filter(
    ({ chapter, startedAt }) => chapter === "Update" && Date.parse(startedAt) <= now + aheadMs,
  );
  const newest = updates.reduce<Chapter | undefined>(
    (last, each) => (last === undefined || each.startedAt > last.startedAt ? each : last),
    undefined,
  );
  return newest === undefined
    ? Number.NEGATIVE_INFINITY
    : leastOf(updates.filter(({ run }) => run === newest.run).map(({ startedAt }) => Date.parse(startedAt)));
}

/**
 * A row for each book, with what its chapters took.
 *
 * @param books name of the row → its chapters, oldest first
 */
export function timelineOf(
  subject: string,
  books: ReadonlyMap<string, readonly Chapter[]>,
  { now, sinceMs }: TimelineOptions,
): Timeline {
  const earliest = sinceMs === undefined ? newestWave([...books.values()].flat(), now) : now - sinceMs;
  const rows = [...books].map(([name, chapters]): TimelineRow => {
    const shown = chapters.filter(({ endedAt }) => endedAt === undefined || Date.parse(endedAt) >= earliest);
    return { name, bars: shown.flatMap(barsOf).map((bar) => untilNow(bar, now)), state: stateOf(shown.at(-1)) };
  });
  const began = leastOf(rows.flatMap(({ bars }) => bars.map(({ from }) => from)));
  const ended = greatestOf(rows.flatMap(({ bars }) => bars.map(({ to }) => to ?? now)));
  const from = Number.isFinite(began) ? Math.max(began, earliest) : now;
  return { subject, from, to: (Number.isFinite(ended) ? Math.max(from, ended) : now) + 1, rows };
}

/** The same for one book: a row for each of its last chapters' sections. */
export function timelineOfBook(
  subject: string,
  chapters: readonly Chapter[],
  { now, sinceMs, last = 3 }: TimelineOptions & { readonly last?: number },
): Timeline {
  const earliest = sinceMs === undefined ? Number.NEGATIVE_INFINITY : now - sinceMs;
  const shown = chapters.filter(({ endedAt }) => endedAt === undefined || Date.parse(endedAt) >= earliest).slice(-last);
  const written = shown.flatMap((chapter): readonly TimelineRow[] => [
    { name: `#${chapter.number} ${chapter.chapter}`, bars: barsOf(chapter), state: stateOf(chapter) },
    ...chapter.sections.flatMap((section): readonly TimelineRow[] => {
      const { path, startedAt, endedAt, durationMs, outcome } = section;
      if (outcome === "NotRequired" || outcome === "Skipped") return [];
      if (isMereNote(section)) {
        const at = Date.parse(startedAt);
        return [
          {
            name: `  ${path}`,
            bars: [{ class: barClassOf(chapter.chapter, path, outcome), from: at, to: at }],
            state: "",
          },
        ];
      }
      const to =
        endedAt === undefined
          ? chapter.endedAt === undefined
            ? undefined
            : Date.parse(chapter.endedAt)
          : Date.parse(endedAt);
      return [
        {
          name: `  ${path}`,
          bars: [{ class: barClassOf(chapter.chapter, path, outcome), from: Date.parse(startedAt), to }],
          state:
            outcome === undefined
              ? "under way"
              : `${outcome === "Succeeded" ? "" : `${outcome}, `}${durationText(durationMs ?? (to ?? now) - Date.parse(startedAt))}`,
        },
      ];
    }),
  ]);
  const rows = written.map((row) => ({ ...row, bars: row.bars.map((bar) => untilNow(bar, now)) }));
  const times = rows.flatMap(({ bars }) => bars.flatMap(({ from, to }) => [from, to ?? now]));
  const from = times.length === 0 ? now : Math.max(leastOf(times), earliest);
  return { subject, from, to: (times.length === 0 ? now : greatestOf(times, from)) + 1, rows };
}

export interface TimelineDrawOptions {
  readonly now: number;
  /** Columns of the terminal, at least 40. */
  readonly width: number;
  readonly colours?: boolean | Paint;
  /** Rows that fit; more are folded together, those that are alike in time first. */
  readonly rows?: number;
}

/** What a column shows of several bars: trouble always, then what began last. */
const order: readonly BarClass[] = [
  "rollout",
  "wait",
  "pause",
  "other",
  "prepare",
  "return",
  "service",
  "prove",
  "pull",
  "apply",
  "drain",
  "reboot",
  "trouble",
];

/** The Gantt chart of a timeline, as lines. */
export function drawTimeline(
  timeline: Timeline,
  { now, width, colours = false, rows: most = 40 }: TimelineDrawOptions,
): readonly string[] {
  const { from, to, subject } = timeline;
  if (timeline.rows.every(({ bars }) => bars.length === 0)) return [`${subject}: nothing is known of this time`];
  const rows =
    timeline.rows.length <= most
      ? timeline.rows.map((row) => ({ name: row.name, state: row.state, members: [row] }))
      : foldedRows(timeline.rows, most);
  const nameWidth = Math.min(32, greatestOf(rows.map(({ name }) => name.length)));
  const stateWidth = Math.min(28, greatestOf(rows.map(({ state }) => state.length)));
  const columns = Math.max(10, Math.max(40, width) - nameWidth - stateWidth - 6);
  const perColumn = (to - from) / columns;
  const fit = (text: string, size: number) => (text.length <= size ? text.padEnd(size) : `${text.slice(0, size - 1)}…`);
  const used = new Set<BarClass>();

  const drawn = rows.map(({ name, state, members }) => {
    const cells = Array.from({ length: columns }, (_, column) =>
      classAt(members, from + column * perColumn, from + (column + 1) * perColumn, now),
    );
    for (const cell of cells) if (cell !== undefined) used.add(cell);
    return `${fit(name, nameWidth)}  ${paintCells(cells, colours)}  ${fit(state, stateWidth)}`.trimEnd();
  });
  const legend = order
    .filter((each) => used.has(each))
    .map((each) => `${barClasses[each].letter} ${barClasses[each].means}`);
  const start = clockText(from);
  const end = clockText(to, from);
  const axis =
    columns >= start.length + end.length + 2
      ? `${start}${" ".repeat(columns - start.length - end.length)}${end}`
      : start;
  return [
    `${subject}: ${timeText(from)} to ${clockText(to, from)}Z, ${durationText(to - from)}; one column is ${durationText(perColumn)}`,
    "",
    ...drawn,
    `${" ".repeat(nameWidth)}  ${axis}`,
    "",
    ...wrapped(legend, Math.max(40, width)),
  ];
}

/**
 * The class that a stretch of time shows: of one row what was going on last in it, of several what most were at;
 * trouble always.
 */
function classAt(rows: readonly TimelineRow[], from: number, to: number, now: number): BarClass | undefined {
  const counts = new Map<BarClass, number>();
  for (const { bars } of rows) {
    // A bar that took no time still shows in the column that it is in.
    const here = bars.filter((bar) => bar.from < to && Math.max(bar.to ?? now, bar.from + 1) > from);
    const steps = here.filter((bar) => bar.class !== "wait" && bar.class !== "rollout");
    const shown = here.some((bar) => bar.class === "trouble")
      ? "trouble"
      : (longest(steps, from, to, now) ?? here[0]?.class);
    if (shown !== undefined) counts.set(shown, (counts.get(shown) ?? 0) + 1);
  }
  if (counts.has("trouble")) return "trouble";
  return [...counts].sort(([a, of], [b, ofB]) => ofB - of || order.indexOf(b) - order.indexOf(a))[0]?.[0];
}

function longest(bars: readonly Bar[], from: number, to: number, now: number): BarClass | undefined {
  const inside = (bar: Bar) => Math.min(bar.to ?? now, to) - Math.max(bar.from, from);
  let best: Bar | undefined;
  for (const bar of bars) if (best === undefined || inside(bar) >= inside(best)) best = bar;
  return best?.class;
}

/** Many rows as few: neighbours in time go together, so that a wave of machines is one row. */
function foldedRows(
  rows: readonly TimelineRow[],
  most: number,
): readonly { readonly name: string; readonly state: string; readonly members: readonly TimelineRow[] }[] {
  const firstOf = ({ bars }: TimelineRow) => bars[0]?.from ?? Number.POSITIVE_INFINITY;
  const inOrder = [...rows].sort((a, b) =>
    firstOf(a) === firstOf(b) ? a.name.localeCompare(b.name, "en", { numeric: true }) : firstOf(a) - firstOf(b),
  );
  const size = Math.ceil(inOrder.length / most);
  return Array.from({ length: Math.ceil(inOrder.length / size) }, (_, group) => {
    const members = inOrder.slice(group * size, (group + 1) * size);
    const [first, last] = [members[0]?.name ?? "", members.at(-1)?.name ?? ""];
    const states = new Map<string, number>();
    for (const { state } of members) {
      const word = state.replace(/ in [0-9].*$/, "");
      if (word !== "") states.set(word, (states.get(word) ?? 0) + 1);
    }
    return {
      name: members.length === 1 ? first : `${first} … ${last} (${members.length})`,
      state: [...states]
        .sort(([, a], [, b]) => b - a)
        .map(([word, count]) => `${count} ${word}`)
        .join("; "),
      members,
    };
  });
}

function paintCells(cells: readonly (BarClass | undefined)[], colours: boolean | Paint): string {
  if (colours === false) return cells.map((cell) => (cell === undefined ? " " : barClasses[cell].letter)).join("");
  const paint = paintOf(colours);
  let text = "";
  for (let at = 0; at < cells.length;) {
    let end = at;
    while (end < cells.length && cells[end] === cells[at]) end += 1;
    const cell = cells[at];
    text +=
      cell === undefined
        ? " ".repeat(end - at)
        : paint(barClasses[cell].letter.repeat(end - at), barClasses[cell].colour);
    at = end;
  }
  return text;
}

function wrapped(words: readonly string[], width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 3 > width) lines.push(word);
    else lines[lines.length - 1] = `${last}   ${word}`;
  }
  return lines;
}
