import { pushAll } from "../../api/schema/push-all.ts";
import type { JournalLine, JournalMark } from "../../api/books/journal-line.ts";
import type { Chapter, ChapterEntry, ChapterSection } from "../../api/books/machine-state-chapter.ts";
import { timestampOf } from "../../api/schema/object.ts";
import {
  type BookKind,
  type SectionOutcome,
  bookKindOf,
  reasonText,
  sectionKeyOf,
  sectionsOf,
} from "../../api/books/report-table.ts";
import { chapterRule } from "./chapter-rules.ts";
import { isKnown, jsonBytes, marksOf } from "./journal.ts";
import { type PlacedLine, lineKey, orderLines, writerKey } from "./order-lines.ts";
import { defined } from "../../api/schema/defined.ts";

/** A chapter's record without its number in a book. */
export type ChapterRecord = Omit<Chapter, "number">;

/** Lines that belong together: one instance of a chapter, as far as it was reported. */
export interface ChapterDraft {
  readonly chapter: string;
  readonly run: string;
  readonly lines: readonly DraftLine[];
  /** How it ended; `undefined`: it is open. */
  readonly end: { readonly at: number; readonly outcome: SectionOutcome } | undefined;
}

export interface DraftLine extends PlacedLine {
  /** The chapter that the line belongs to, which was closed before the line arrived. */
  readonly late?: string;
  /** An observer's line that a participant has reported, too: it is ignored. */
  readonly isShadow?: true;
}

/** A closed chapter: later lines of it are late. */
export interface ClosedChapter {
  readonly chapter: string;
  readonly run: string;
  readonly endedAtMs: number;
  /** How a late line names it. */
  readonly name: string;
  /** The last lines in it. */
  readonly through: readonly JournalMark[];
  /** Keys of the lines in it that an observer wrote: others of that observer are in other chapters. */
  readonly seen: ReadonlySet<string>;
  /** The configuration with which a machine joined in it. */
  readonly joinedWith?: string;
}

/** A writer that is silent for this long in a self-advancing chapter counts as vanished. */
export const abandonedAfterMs = 3_600_000;
/** UTF-8 bytes of a chapter at most, as JSON; the object around it takes the rest of 64 KiB. */
export const chapterBytes = 60 * 1024;
const mostEntries = 256;
/** So many runs back a machine may still be at work on one that newer targets followed. */
const mostCutShort = 8;

/**
 * Folds all lines of a book into chapters: oldest first, the last ones may be open.
 *
 * @param now milliseconds since the epoch.
 * @param closed chapters that are closed already: their lines are excluded.
 */
export function foldBook(
  book: string,
  lines: readonly JournalLine[],
  options: { readonly now: number; readonly closed?: readonly ClosedChapter[]; readonly pool?: string },
): readonly ChapterRecord[] {
  return draftsOf(book, lines, options.closed ?? []).map((draft) => chapterOf(book, draft, options));
}

/** Splits the lines of a book into instances of chapters, in the order in which they began. */
export function draftsOf(
  book: string,
  lines: readonly JournalLine[],
  closedBefore: readonly ClosedChapter[] = [],
): readonly ChapterDraft[] {
  const kind = bookKindOf(book);
  if (kind === undefined) return [];
  interface Making {
    readonly chapter: string;
    readonly run: string;
    readonly lines: DraftLine[];
    end: ChapterDraft["end"];
    /** Nothing ended it but the next one. */
    isCutShort?: boolean;
  }
  const made: Making[] = [];
  const open = new Map<string, Making>();
  const closed = new Map<string, { readonly run: string; at: number; readonly name: string }[]>();
  for (const each of closedBefore)
    closed.set(each.chapter, [
      ...(closed.get(each.chapter) ?? []),
      { run: each.run, at: each.endedAtMs, name: each.name },
    ]);
  const waiting: DraftLine[] = [];

  const begin = (chapter: string, run: string): Making => {
    const draft: Making = { chapter, run, lines: waiting.splice(0), end: undefined };
    made.push(draft);
    open.set(chapter, draft);
    return draft;
  };
  const close = (draft: Making, at: number, outcome: SectionOutcome) => {
    draft.end = { at, outcome };
    open.delete(draft.chapter);
    closed.set(draft.chapter, [...(closed.get(draft.chapter) ?? []), { run: draft.run, at, name: nameOfRun(draft) }]);
  };

  /** The run of a line that another one cut short, if nothing of the newer ones has begun but that they were requested. */
  const runUnderWay = ({ chapter, run, path, mark }: JournalLine): Making | undefined => {
    const requested = chapterRule(kind, chapter).opens?.[0];
    if (run === undefined || requested === undefined || (path === requested && mark === "begin")) return undefined;
    const recent = made.slice(-mostCutShort).filter((each) => each.chapter === chapter);
    const index = recent.findLastIndex((each) => each.run === run);
    const isFree = recent.slice(index + 1).every((newer) => newer.lines.every(({ line }) => line.path === requested));
    return recent[index]?.isCutShort === true && isFree ? recent[index] : undefined;
  };
  const goOn = (draft: Making, placed: PlacedLine, isEnd: boolean) => {
    draft.lines.push(placed);
    draft.isCutShort = !isEnd;
    draft.end = isEnd ? { at: placed.at, outcome: endOutcome(placed.line) } : { at: placed.at, outcome: "Superseded" };
    const record = closed.get(draft.chapter)?.findLast(({ run }) => run === draft.run);
    if (record !== undefined) record.at = placed.at;
  };

  const ordered = orderLines(lines);
  const reported = reportedSections(ordered);
  for (const placed of ordered) {
    const { line, at } = placed;
    if (line.book !== book || closedBefore.some((each) => isIn(each, line))) continue;
    // The machine joined with what it was given meanwhile: no update has to follow.
    const given = open.get("Update");
    if (given !== undefined && joinedWith(kind, line) === given.run && isMerelyRequested(given))
      close(given, at, "NotRequired");
    const rule = chapterRule(kind, line.chapter);
    const key = sectionKeyOf(kind, line.chapter, line.path) ?? line.path;
    let draft = open.get(line.chapter);
    const turns =
      (rule.turns?.includes(key) === true && (line.mark === "begin" || line.mark === "fail")) ||
      (rule.recovers === key && line.mark === "end");
    const run = line.run ?? (turns ? "" : draft?.run) ?? "";
    if (line.via === "seen" && reported.has(`${sectionOfRun(line)}\n${endsSection(line) ? "end" : "any"}`)) {
      if (draft?.run === run) draft.lines.push({ ...placed, isShadow: true });
      continue;
    }
    const mayOpen = turns || (rule.turns === undefined && (rule.opens === undefined || rule.opens.includes(key)));
    const before = closed.get(line.chapter)?.findLast((each) => line.run === undefined || each.run === run);
    const closes =
      rule.closes === "line" || (endsSection(line) && (rule.closes === "every" || rule.closes.includes(key)));
    const underWay = draft?.run === run || isRepetition(line) ? undefined : runUnderWay(line);
    if (underWay !== undefined) {
      goOn(underWay, placed, closes);
      continue;
    }
    if (draft !== undefined && (draft.run !== run || (turns && draft.lines.length > 0))) {
      if (draft.run !== run && (!mayOpen || (before !== undefined && at < before.at))) {
        if (isRepetition(line)) continue;
        // Belongs to a finished run, though another is under way.
        draft.lines.push({ ...placed, late: before?.name ?? nameOfRun({ chapter: line.chapter, run }) });
        continue;
      }
      close(draft, at, turns ? outcomeOfLife(draft.lines) : "Superseded");
      draft.isCutShort = !turns;
      draft = undefined;
    }
    if (draft === undefined) {
      // What turns a chapter ends the one before it at the same moment.
      const belated = before !== undefined && (!mayOpen || (turns ? at < before.at : at <= before.at));
      if (belated && (line.via === "seen" || isRepetition(line))) continue;
      if (belated) {
        const home = [...open.values()].at(-1);
        (home?.lines ?? waiting).push({ ...placed, late: before.name });
        continue;
      }
      draft = begin(line.chapter, run);
    }
    draft.lines.push(placed);
    if (closes) close(draft, at, endOutcome(line));
  }
  // The line of a controller may come when the chapter is closed in which the machine joined.
  const given = open.get("Update");
  const joined = closedBefore.findLast((each) => each.joinedWith !== undefined);
  const isBefore = given !== undefined && joined !== undefined && (given.lines[0]?.at ?? Infinity) <= joined.endedAtMs;
  if (isBefore && given.run === joined.joinedWith && isMerelyRequested(given))
    close(given, joined.endedAtMs, "NotRequired");
  // A late line without a matching chapter stays with the newest one.
  pushAll(made.at(-1)?.lines ?? [], waiting);
  return made;
}

/** Whether a closed chapter has a line. */
export const isIn = ({ chapter, through, seen }: ClosedChapter, line: JournalLine): boolean =>
  chapter === line.chapter && (line.via === "seen" ? seen.has(lineKey(line)) : isKnown(through, line));

/** The configuration that a machine has joined with; `undefined`: the line says nothing of that. */
function joinedWith(kind: BookKind | undefined, { chapter, path, mark, via, data }: JournalLine): string | undefined {
  const isJoining = kind === "node" && (chapter === "Join" || chapter === "Firstboot");
  const config = isJoining && via === "told" && path === "Validated" && mark === "end" ? data?.["config"] : undefined;
  return typeof config === "string" ? config : undefined;
}

/** Nothing is known of it but that a controller set its target. */
const isMerelyRequested = ({ lines }: { readonly lines: readonly DraftLine[] }) =>
  lines.every(({ line: { path, mark } }) => path === "Requested" && mark === "begin");

/** Controllers and the machine may both report that a run was superseded: ignore the second report. */
export const isRepetition = ({ reason, mark }: Pick<JournalLine, "reason" | "mark">): boolean =>
  reason === "Superseded" && mark === "end";

const endsSection = ({ mark }: JournalLine) => mark === "end" || mark === "fail" || mark === "skip";
const sectionOfRun = ({ chapter, run, path }: JournalLine) => `${chapter}\n${run ?? ""}\n${path}`;

/** Sections that a participant reported, and those whose end it reported. */
function reportedSections(lines: readonly PlacedLine[]): ReadonlySet<string> {
  const reported = new Set<string>();
  for (const { line } of lines) {
    if (line.via !== "told") continue;
    reported.add(`${sectionOfRun(line)}\nany`);
    if (endsSection(line)) reported.add(`${sectionOfRun(line)}\nend`);
  }
  return reported;
}

/** Characters that a late line may name its chapter with; most other names of a chapter have as many. */
const longestName = 253;

const nameOfRun = ({ chapter, run }: { readonly chapter: string; readonly run: string }) =>
  (run === "" ? chapter : `${chapter} ${run}`).slice(0, longestName);

/** Reasons of an end that say that there was nothing to do. */
const didNothing: ReadonlySet<string> = new Set(["None", "CordonStays", "NotRequired"]);

function endOutcome(line: JournalLine): SectionOutcome {
  if (line.outcome !== undefined) return line.outcome;
  if (line.reason === "WentBack") return "RolledBack";
  return line.mark === "fail" ? "Failed" : line.mark === "skip" ? "NotRequired" : "Succeeded";
}

/** A period of a component's life ends as failed if its last report was a failure. */
const outcomeOfLife = (lines: readonly DraftLine[]): SectionOutcome =>
  lines.findLast(({ line }) => line.mark === "fail" || line.mark === "end" || line.mark === "begin")?.line.mark ===
  "fail"
    ? "Failed"
    : "Succeeded";

interface Step {
  readonly path: string;
  readonly order: number;
  start: PlacedLine;
  end: PlacedLine | undefined;
  isOpen: boolean;
  attempts: number;
  outcome: SectionOutcome | undefined;
  reason: string;
  message: string;
  inferredEnd: number | undefined;
  isInferred: boolean;
  details: Record<string, string>;
}

/** Data about the chapter as a whole. */
const chapterData = new Set([
  "cause",
  "by",
  "parent",
  "from",
  "to",
  "fromImage",
  "toImage",
  "fromVersion",
  "toVersion",
]);

/** What the fields of a chapter's record are decided from. */
interface ChapterView {
  readonly book: string;
  readonly kind: BookKind;
  readonly draft: ChapterDraft;
  /** All lines but those that only repeat a participant's. */
  readonly all: readonly DraftLine[];
  /** Without late lines. */
  readonly own: readonly DraftLine[];
  readonly first: DraftLine;
  readonly steps: readonly Step[];
  /** The section whose failure is current; `undefined` in a closed chapter. */
  readonly failing: Step | undefined;
  /** A value of the chapter's data; empty where no line carries it. */
  readonly valueOf: (key: string) => string;
  readonly pool: string | undefined;
  readonly now: number;
}

/** The record of one chapter: sections with their times, what opened it, how it ended, what to do. */
export function chapterOf(
  book: string,
  draft: ChapterDraft,
  { now, pool }: { readonly now: number; readonly pool?: string },
): ChapterRecord {
  const view = viewOf(book, draft, now, pool);
  const { all, own, first } = view;
  const { end } = draft;
  const missed = own.reduce((sum, { line }) => addCounts(sum, missedIn(line)), 0);
  const entries = entriesOf(view);
  return fitted({
    book,
    chapter: draft.chapter,
    run: draft.run,
    ...originOf(view),
    startedAt: timestampOf(first.at),
    ...(end === undefined ? {} : { endedAt: timestampOf(end.at) }),
    ...timesOf(view),
    state: end !== undefined ? "Closed" : isAbandoned(view) ? "Abandoned" : "Open",
    ...(end === undefined ? {} : { outcome: end.outcome }),
    ...verdictOf(view),
    confidence: own.some(({ line }) => line.via === "told") ? "Told" : "Observed",
    ...(all.some(({ skew }) => skew) ? { skew: true } : {}),
    ...(missed > 0 ? { missed } : {}),
    sections: view.steps.map(sectionOf),
    entries,
    dropped: all.length - entries.length,
    through: marksOf(
      draft.lines.flatMap(({ line, late }) => (late === undefined && line.via === "told" ? [line] : [])),
    ).slice(-32),
  });
}

/** The sum of two counts, as far as numbers go: a writer may claim any. */
export const addCounts = (a: number, b: number): number => Math.min(Number.MAX_SAFE_INTEGER, a + b);

/** How many lines a line says are lost. */
function missedIn({ reason, data }: JournalLine): number {
  const lines = reason === "Gap" ? Number(data?.["lines"] ?? 0) : 0;
  return Number.isSafeInteger(lines) && lines > 0 ? lines : 0;
}

function viewOf(book: string, draft: ChapterDraft, now: number, pool: string | undefined): ChapterView {
  const kind: BookKind = bookKindOf(book) ?? "cluster";
  const all = draft.lines.filter(({ isShadow }) => isShadow === undefined);
  const own = all.filter(({ late }) => late === undefined);
  const first = own[0] ?? all[0];
  if (first === undefined) throw new Error("bug: a chapter without a line");
  const { end } = draft;
  const steps = stepsOf(kind, draft.chapter, own);
  if (end !== undefined) endSteps(steps, end, chapterRule(kind, draft.chapter).goesOn === true);
  const failing =
    end === undefined ? steps.findLast(({ outcome, isOpen }) => outcome === "Failed" && !isOpen) : undefined;
  const data = new Map(own.flatMap(({ line }) => Object.entries(line.data ?? {})));
  const valueOf = (key: string) => data.get(key) ?? "";
  return { book, kind, draft, all, own, first, steps, failing, valueOf, pool, now };
}

/** Where the chapter comes from: its pool, its cause, and the targets between which it leads. */
function originOf({ kind, draft, valueOf, pool }: ChapterView): Pick<ChapterRecord, "pool" | "cause" | "from" | "to"> {
  const targetAt = (suffix: "from" | "to") => {
    const target = {
      ...present("config", valueOf(suffix)),
      ...present("image", valueOf(`${suffix}Image`), 447),
      ...present("version", valueOf(`${suffix}Version`), 63),
    };
    return Object.keys(target).length === 0 ? undefined : target;
  };
  const from = targetAt("from");
  const to =
    targetAt("to") ??
    (kind === "node" && draft.chapter === "Update" && draft.run !== "" ? { config: draft.run } : undefined);
  const cause = valueOf("cause");
  return {
    ...present("pool", pool ?? valueOf("pool")),
    ...(cause === ""
      ? {}
      : { cause: { text: cause, ...present("by", valueOf("by")), ...present("parent", valueOf("parent"), 320) } }),
    ...defined({ from, to }),
  };
}

/** A field that is absent where its text is empty, and no longer than its kind allows: machine-state-chapter.ts. */
const present = <K extends string>(key: K, text: string, most = longestName): { readonly [key in K]?: string } =>
  text === "" ? {} : ({ [key]: text.slice(0, most) } as { readonly [key in K]: string });

/** How long the chapter took, and how long the machine was out of service. */
function timesOf({
  draft: { end },
  own,
  first,
  steps,
}: ChapterView): Pick<ChapterRecord, "durationMs" | "duration" | "outOfServiceMs"> {
  const outOfServiceMs = outOfService(steps, end);
  const unavailable = outOfServiceMs === undefined ? {} : { outOfServiceMs };
  if (end === undefined) return unavailable;
  // The line that interrupted it belongs to another chapter.
  const ending = own.findLast(({ at }) => at === end.at);
  const elapsedMs = ending === undefined ? end.at - first.at : durationOf(first, ending, end.at);
  const durationMs = Math.max(0, Math.round(elapsedMs));
  return { durationMs, duration: durationText(durationMs), ...unavailable };
}

/** Reason, message and next action: of the current failure, else of the line that ended the chapter, else of the last. */
function verdictOf({
  draft: { end },
  own,
  first,
  failing,
}: ChapterView): Pick<ChapterRecord, "reason" | "message" | "next"> {
  if (end?.outcome === "Superseded") return { reason: "Superseded", message: reasonText("Superseded").means };
  const last =
    (end === undefined ? undefined : own.findLast(({ line }) => line.mark === "end" || line.mark === "fail")?.line) ??
    own.at(-1)?.line ??
    first.line;
  const reason = failing?.reason ?? last.reason;
  const message = failing?.message ?? last.msg;
  if (end?.outcome === "Succeeded") return { reason, message };
  const next = (last.reason === reason ? last.next?.action : undefined) ?? reasonText(reason).next;
  return { reason, message, ...present("next", next, 512) };
}

/** Whether an open chapter that should advance by itself has been without a line for too long. */
function isAbandoned({ kind, draft, own, first, failing, now }: ChapterView): boolean {
  const latest = own.reduce((max, { at }) => Math.max(max, at), first.at);
  return (
    draft.end === undefined &&
    chapterRule(kind, draft.chapter).goesOn === true &&
    now - latest > abandonedAfterMs &&
    failing === undefined
  );
}

/** The lines to store; a chapter that has succeeded no longer needs those about progress. */
const entriesOf = ({ draft, all }: ChapterView): ChapterEntry[] =>
  all
    .filter(({ line }) => line.level !== "debug" && !(draft.end?.outcome === "Succeeded" && line.level === "progress"))
    .map(entryOf);

function stepsOf(kind: BookKind, chapter: string, lines: readonly PlacedLine[]): Step[] {
  const order = sectionsOf(kind, chapter);
  const steps = new Map<string, Step>();
  const inTurn: Step[] = [];
  for (const placed of lines) {
    const { line } = placed;
    // A later boot: the awaited reboot has happened.
    for (const step of inTurn) {
      const from = step.start.line;
      if (
        step.isOpen &&
        step.path === "PostAction/Rebooted" &&
        writerKey(from) === writerKey(line) &&
        from.boot !== line.boot &&
        line.path !== step.path
      ) {
        step.isOpen = false;
        step.inferredEnd = placed.at;
        step.isInferred = true;
        step.outcome = "Succeeded";
      }
      if (line.mark === "retry" && step.isOpen && writerKey(from) === writerKey(line)) {
        step.isOpen = false;
        step.end = placed;
        step.outcome = "Interrupted";
      }
    }
    let step = steps.get(line.path);
    if (step === undefined) {
      const index = order.indexOf(sectionKeyOf(kind, chapter, line.path) ?? "");
      step = {
        path: line.path,
        order: index < 0 ? order.length : index,
        start: placed,
        end: undefined,
        isOpen: false,
        attempts: 0,
        outcome: undefined,
        reason: line.reason,
        message: line.msg,
        inferredEnd: undefined,
        isInferred: false,
        details: {},
      };
      steps.set(line.path, step);
      inTurn.push(step);
    }
    for (const [key, value] of Object.entries(line.data ?? {})) if (!chapterData.has(key)) step.details[key] = value;
    step.reason = line.reason;
    step.message = line.msg;
    switch (line.mark) {
      case "begin":
        // Two writers may report one start; after an end it is a retry.
        if (!step.isOpen) {
          step.attempts += 1;
          step.isOpen = true;
          step.outcome = undefined;
          step.end = undefined;
          step.isInferred = false;
          step.inferredEnd = undefined;
        }
        break;
      case "retry":
      case "note":
        break;
      case "end":
      case "fail":
      case "skip":
        if (step.attempts === 0) step.attempts = 1;
        step.isOpen = false;
        step.end = placed;
        step.isInferred = false;
        step.inferredEnd = undefined;
        step.outcome =
          line.outcome ??
          (line.mark === "fail"
            ? "Failed"
            : line.mark === "end" && !didNothing.has(line.reason)
              ? "Succeeded"
              : "NotRequired");
        break;
    }
  }
  return inTurn.toSorted((a, b) => a.order - b.order || a.start.at - b.start.at);
}

/** Sections that an update's end says nothing of: somebody may have cordoned the machine, and its cordon stays. */
const afterEnd: ReadonlySet<string> = new Set(["Complete/Uncordoned"]);

/**
 * The chapter is over. In sequential chapters, a section without a reported end has ended when the next one started; a
 * section about the whole chapter, such as a drift, ends with it.
 */
function endSteps(steps: readonly Step[], end: NonNullable<ChapterDraft["end"]>, inTurn: boolean): void {
  for (const [index, step] of steps.entries()) {
    if (!step.isOpen) continue;
    const following = steps.slice(index + 1).find((each) => each.start.at >= step.start.at);
    step.isOpen = false;
    step.inferredEnd = inTurn ? Math.min(end.at, following?.start.at ?? end.at) : end.at;
    step.isInferred = inTurn;
    step.outcome = end.outcome === "Failed" || afterEnd.has(step.path) ? "Unknown" : end.outcome;
  }
}

/** Whether a section has notes alone: it happened at its start, and neither goes on nor ends. */
export const isMereNote = ({ attempts, outcome }: Pick<ChapterSection, "attempts" | "outcome">): boolean =>
  attempts === 0 && outcome === undefined;

function sectionOf(step: Step): ChapterSection {
  const endAt = step.inferredEnd ?? step.end?.at;
  const durationMs =
    endAt === undefined || step.isOpen
      ? undefined
      : Math.max(
          0,
          Math.round(
            step.inferredEnd === undefined && step.end !== undefined
              ? durationOf(step.start, step.end, endAt)
              : endAt - step.start.at,
          ),
        );
  return {
    path: step.path,
    startedAt: timestampOf(step.start.at),
    ...(endAt === undefined || step.isOpen ? {} : { endedAt: timestampOf(Math.max(endAt, step.start.at)) }),
    ...defined({ durationMs, outcome: step.outcome }),
    reason: step.reason,
    message: step.message,
    attempts: step.attempts,
    ...(step.isInferred || (step.end?.line.via === "seen" && step.start.line.via === "told") ? { inferred: true } : {}),
    ...(Object.keys(step.details).length === 0 ? {} : { details: step.details }),
  };
}

/** By the monotonic clock within one boot of one writer, otherwise by wall clocks. */
function durationOf(start: PlacedLine, end: PlacedLine, endAt: number): number {
  const sameClock = writerKey(start.line) === writerKey(end.line) && start.line.boot === end.line.boot;
  return sameClock ? end.line.mono - start.line.mono : endAt - start.at;
}

/** From the cordon to the uncordon. */
function outOfService(steps: readonly Step[], end: ChapterDraft["end"]): number | undefined {
  const cordoned = steps.find(({ path }) => path === "Executed/Cordoned");
  if (cordoned === undefined || cordoned.outcome !== "Succeeded") return undefined;
  const back = steps.find(({ path }) => path === "Complete/Uncordoned");
  const until = back?.end?.at ?? end?.at;
  return until === undefined ? undefined : Math.max(0, Math.round(until - (cordoned.end?.at ?? cordoned.start.at)));
}

function entryOf({ line, late, skew }: DraftLine): ChapterEntry {
  const { v: _v, book: _book, chapter: _chapter, run: _run, ...rest } = line;
  return { ...rest, ...defined({ late }), ...(skew ? { skew } : {}) };
}

/** The lines of a stored chapter, to continue it. */
export function linesOfChapter(chapter: Pick<Chapter, "book" | "chapter" | "run" | "entries">): readonly JournalLine[] {
  return chapter.entries.flatMap(({ late, skew: _skew, ...entry }) =>
    late === undefined
      ? [
          {
            v: 1,
            book: chapter.book,
            chapter: chapter.chapter,
            ...(chapter.run === "" ? {} : { run: chapter.run }),
            ...entry,
          },
        ]
      : [],
  );
}

/**
 * What later lines of a book have to know of the chapters that are stored and closed. Of a kind whose chapters follow each
 * other without a gap, one has ended when the next began, in whichever second.
 */
export function closedChapters(chapters: readonly Chapter[]): readonly ClosedChapter[] {
  const nextBegan = new Map<string, number>();
  const closed: ClosedChapter[] = [];
  for (const chapter of chapters.toSorted((a, b) => b.number - a.number)) {
    const known = closedChapter(chapter);
    const next = nextBegan.get(chapter.chapter) ?? Infinity;
    if (chapter.state === "Closed") closed.push({ ...known, endedAtMs: Math.min(known.endedAtMs, next) });
    const first = chapter.entries.find(({ late }) => late === undefined);
    const turns = chapterRule(bookKindOf(chapter.book) ?? "cluster", chapter.chapter).turns !== undefined;
    if (turns && first !== undefined) nextBegan.set(chapter.chapter, first.at);
  }
  return closed.reverse();
}

/** What later lines of a book have to know of a chapter that is stored and closed. */
export function closedChapter(chapter: Chapter, draft?: ChapterDraft): ClosedChapter {
  const lines = draft?.lines.map(({ line }) => line) ?? linesOfChapter(chapter);
  const joined = lines.flatMap((line) => joinedWith(bookKindOf(chapter.book), line) ?? []).at(-1);
  return {
    chapter: chapter.chapter,
    run: chapter.run,
    // Times of objects are whole seconds: a line within the last one is of the chapter that closed, not of the next.
    endedAtMs: draft?.end?.at ?? Date.parse(chapter.endedAt ?? chapter.startedAt) + 999,
    name: `${chapter.chapter} ${chapter.number}`,
    through: chapter.through,
    seen: new Set(lines.filter(({ via }) => via === "seen").map(lineKey)),
    ...defined({ joinedWith: joined }),
  };
}

/**
 * Makes a chapter short enough to be one object: the middle lines of the section that has the most fold to a count.
 * Sections, first and last boundary lines and failures stay.
 */
function fitted(record: ChapterRecord): ChapterRecord {
  const isShort = record.entries.length <= mostEntries && record.sections.length <= mostSections;
  if (isShort && jsonBytes(record) <= chapterBytes) return record;
  let entries = [...record.entries];
  const folded = new Map<string, { count: number; first: number; last: number; lastMessage: string }>();
  let bytes = jsonBytes(record);
  const tooMuch = () => entries.length > mostEntries || bytes > chapterBytes;
  const firstBoundary = entries.find(({ level }) => level === "boundary");
  const lastBoundary = entries.findLast(({ level }) => level === "boundary");
  const foldable = (entry: ChapterEntry) => entry.mark !== "fail" && entry !== firstBoundary && entry !== lastBoundary;
  const byPath = new Map<string, ChapterEntry[]>();
  for (const entry of entries) byPath.set(groupOf(entry.path), [...(byPath.get(groupOf(entry.path)) ?? []), entry]);
  const gone = new Set<ChapterEntry>();
  for (const keepEnds of [1, 0]) {
    const groups = [...byPath]
      .map(([path, all]) => ({
        path,
        middle: all.slice(keepEnds, all.length - keepEnds).filter((entry) => foldable(entry) && !gone.has(entry)),
      }))
      .sort((a, b) => b.middle.length - a.middle.length);
    for (const { path, middle } of groups) {
      if (!tooMuch()) break;
      for (const entry of middle) {
        gone.add(entry);
        bytes -= jsonBytes(entry) + 1;
        const fold = folded.get(path) ?? { count: 0, first: entry.at, last: entry.at, lastMessage: "" };
        if (fold.count === 0) bytes += 200 + path.length;
        folded.set(path, {
          count: fold.count + 1,
          first: Math.min(fold.first, entry.at),
          last: Math.max(fold.last, entry.at),
          lastMessage: entry.msg.slice(0, 160),
        });
      }
      entries = record.entries.filter((entry) => !gone.has(entry));
    }
  }
  // Failures without number, of which each is much like the other.
  if (tooMuch()) {
    const failures = entries.filter((entry) => entry !== firstBoundary && entry !== lastBoundary);
    for (const entry of failures.slice(Math.min(20, failures.length), Math.max(20, failures.length - 20))) {
      gone.add(entry);
      bytes -= jsonBytes(entry) + 1;
      const fold = folded.get(entry.path) ?? { count: 0, first: entry.at, last: entry.at, lastMessage: "" };
      folded.set(entry.path, {
        count: fold.count + 1,
        first: Math.min(fold.first, entry.at),
        last: Math.max(fold.last, entry.at),
        lastMessage: entry.msg.slice(0, 160),
      });
    }
    entries = record.entries.filter((entry) => !gone.has(entry));
  }
  const short: ChapterRecord = {
    ...record,
    entries,
    folded: [...folded].slice(0, 64).map(([path, { count, first, last, lastMessage }]) => ({
      path,
      count,
      first: timestampOf(first),
      last: timestampOf(last),
      lastMessage,
    })),
    dropped: record.dropped + gone.size,
  };
  return jsonBytes(short) <= chapterBytes && short.sections.length <= mostSections
    ? short
    : { ...short, sections: lean(short.sections, jsonBytes(short) - chapterBytes) };
}

/** `Node/worker-0` and `Node/worker-1` are of one kind. */
const groupOf = (path: string) =>
  /^(Node|Pool|Sync|Child|Served|Attempt|Blocked|Gone)\//.test(path) ? path.slice(0, path.indexOf("/")) : path;

/** Sections that a chapter has at most, by its kind. */
const mostSections = 1000;

/**
 * Sections of which there are very many keep their names, times and outcomes; their texts go first. Those that failed
 * are the last to go.
 *
 * @param tooMany UTF-8 bytes that the sections have to lose.
 */
function lean(sections: readonly ChapterSection[], tooMany: number): ChapterSection[] {
  let over = tooMany;
  let left = [...sections];
  for (const isFailed of [false, true]) {
    left = left.map((section) => {
      if (over <= 0 || (section.outcome === "Failed") !== isFailed) return section;
      const { message: _message, details: _details, ...rest } = section;
      over -= jsonBytes(section) - jsonBytes(rest);
      return rest;
    });
    let count = left.length;
    left = left.filter((section, index) => {
      const goes =
        (over > 0 || count > mostSections) &&
        count > 2 &&
        index > 0 &&
        index < left.length - 1 &&
        (section.outcome === "Failed") === isFailed;
      if (!goes) return true;
      over -= jsonBytes(section) + 1;
      count -= 1;
      return false;
    });
  }
  return left;
}

/** `850ms`, `12s`, `2m31s`, `1h05m`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m${String(seconds % 60).padStart(2, "0")}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h${String(minutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(hours / 24)}d${String(hours % 24).padStart(2, "0")}h`;
}
