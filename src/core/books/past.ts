import { greatestOf, leastOf } from "../../api/schema/extremes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { changedSources } from "../config/changed-sources.ts";
import { durationText } from "./fold-book.ts";
import type { Join, ServedMachine } from "./judge-joins.ts";
import { clockText } from "../text/time-text.ts";
import type { Phase } from "./phase.ts";

/** Past durations: median, and the bounds that nine of ten reached and stayed below. Milliseconds. */
export interface Spread {
  readonly count: number;
  readonly medianMs: number;
  readonly p10Ms: number;
  readonly p90Ms: number;
}

/** What decides most about how long an update takes. */
interface UpdateKind {
  readonly drains: boolean;
  readonly reboots: boolean;
}

/** One successful update of a machine; times in milliseconds from its start. */
interface PastUpdate {
  /** The configuration that it led to. */
  readonly run: string;
  readonly kind: UpdateKind;
  readonly wholeMs: number;
  readonly sections: ReadonlyMap<string, { readonly beganMs: number; readonly endedMs: number }>;
}

/** What the chapters of a pool record about finished updates. */
export interface Past {
  readonly updates: readonly PastUpdate[];
  /** Configuration → what machines that are on their way to it foresee. */
  readonly foreseen: ReadonlyMap<string, UpdateKind>;
  /** The pool's own chapters, oldest first: roll-outs, builds, obstacles. */
  readonly history: readonly Chapter[];
  /** Machines that were given a configuration of the pool to join with and have not joined in time. */
  readonly overdue?: readonly ServedMachine[];
  /** Machines whose requests of the last week said which Ignition their boot image has. */
  readonly booted?: readonly Join[];
}

/** An empty past: without chapters nothing is estimated. */
export const noPast: Past = { updates: [], foreseen: new Map(), history: [] };

/**
 * The past of a pool.
 *
 * @param updates chapters of its machines' books; those that are no finished Update of this pool count for nothing
 * @param story chapters of the pool's own book, oldest first
 */
export function pastOf(pool: string, updates: Iterable<Chapter>, history: readonly Chapter[] = []): Past {
  const past: PastUpdate[] = [];
  const foreseen = new Map<string, UpdateKind>();
  for (const chapter of updates) {
    if (chapter.chapter !== "Update" || (chapter.pool !== undefined && chapter.pool !== pool)) continue;
    const planned = chapter.entries.findLast(({ path, data }) => path === "Prepared" && data?.["reboot"] !== undefined);
    const isPlanned = (what: string) => String(planned?.data?.[what]) === "true";
    if (planned !== undefined && chapter.state !== "Closed")
      foreseen.set(chapter.run, { drains: isPlanned("drain"), reboots: isPlanned("reboot") });
    if (chapter.state !== "Closed" || chapter.outcome !== "Succeeded" || chapter.endedAt === undefined) continue;
    const began = Date.parse(chapter.startedAt);
    const sections = new Map(
      chapter.sections.flatMap(({ path, startedAt, endedAt, outcome }) =>
        endedAt === undefined || outcome === "NotRequired" || outcome === "Skipped"
          ? []
          : [[path, { beganMs: Date.parse(startedAt) - began, endedMs: Date.parse(endedAt) - began }] as const],
      ),
    );
    const wholeMs = Math.max(0, Date.parse(chapter.endedAt) - began);
    const kind = { drains: sections.has("Executed/Drained"), reboots: sections.has("PostAction/Rebooted") };
    past.push({ run: chapter.run, kind, wholeMs, sections });
  }
  return { updates: past, foreseen, history };
}

/**
 * The past as far as it resembles updates to `target`: those that drain or reboot take minutes, others seconds. What
 * machines on their way to the target foresee, or others did, says which they are; until then all count.
 */
export function pastLike(past: Past, target: string): Past {
  const kind = past.foreseen.get(target) ?? past.updates.findLast(({ run }) => run === target)?.kind;
  if (kind === undefined) return past;
  const updates = past.updates.filter(({ kind: is }) => is.reboots === kind.reboots && is.drains === kind.drains);
  return updates.length === 0 ? past : { ...past, updates };
}

/** Median and bounds of numbers, interpolated linearly. `undefined`: there are none. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const [low = 0, high = low] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
    return low + (high - low) * (place - Math.floor(place));
  };
  return { count: sorted.length, medianMs: at(0.5), p10Ms: at(0.1), p90Ms: at(0.9) };
}

/** What each section took, and the whole. */
export function spreads({ updates }: Past): {
  readonly whole: Spread | undefined;
  readonly sections: ReadonlyMap<string, Spread>;
} {
  const paths = [...new Set(updates.flatMap(({ sections }) => [...sections.keys()]))];
  const of = (path: string) =>
    spreadOf(
      updates.flatMap(({ sections }) => {
        const section = sections.get(path);
        return section === undefined ? [] : [Math.max(0, section.endedMs - section.beganMs)];
      }),
    );
  return {
    whole: spreadOf(updates.map(({ wholeMs }) => wholeMs)),
    sections: new Map(
      paths.flatMap((path) => {
        const spread = of(path);
        return spread === undefined ? [] : [[path, spread] as const];
      }),
    ),
  };
}

/** An estimated end. Milliseconds since the epoch. */
export interface Estimate {
  readonly likely: number;
  readonly earliest: number;
  readonly latest: number;
  /** The number of updates that the estimate is based on. */
  readonly of: number;
  /** It has already taken longer than any of them. */
  readonly late: boolean;
}

/** The section that a machine is in while it shows a phase; those that end by themselves only. */
const sectionOfPhase: Partial<Record<Phase, readonly string[]>> = {
  NeedsUpdate: ["Requested"],
  Preparing: ["Prepared"],
  Cordoning: ["Executed/Cordoned", "Executed/Drained"],
  Draining: ["Executed/Drained"],
  PullingImage: ["Executed/ImagePulled"],
  ApplyingOS: ["Executed/OS"],
  ApplyingFiles: ["Executed/Files"],
  Rebooting: ["PostAction/Rebooted"],
  PostAction: ["PostAction/Service"],
  Resuming: ["Resumed"],
  Uncordoning: ["Complete/Uncordoned"],
};

/** Few updates do not show how far away the next one may be: the fewer there are, the wider are the bounds. */
function boundsOf({ count, medianMs, p10Ms, p90Ms }: Spread): { readonly lowMs: number; readonly highMs: number } {
  const margin = medianMs / count;
  return { lowMs: Math.max(0, p10Ms - margin), highMs: p90Ms + margin };
}

/**
 * What is left of a step that takes longer than any before, as a share of the time that it has taken: the longer it
 * takes, the longer it will take. About half of such steps in simulated roll-outs ended within the first share, and nine of
 * ten within the second (`make bench`).
 */
const lateShare = { likely: 0.25, latest: 1 };

/**
 * When a machine that is in a phase since some moment is likely to have its target: what updates before it took from
 * the same step on, those left out that were through with the step by then.
 *
 * @param since milliseconds since the epoch of when the phase began; `undefined`: not known
 */
export function estimateMachine(
  { updates }: Past,
  phase: Phase,
  since: number | undefined,
  now: number,
): Estimate | undefined {
  const paths = sectionOfPhase[phase] ?? [];
  const elapsed = since === undefined ? 0 : Math.max(0, now - since);
  const known = updates.flatMap(({ wholeMs, sections }) => {
    const section = paths.map((path) => sections.get(path)).find((each) => each !== undefined);
    return section === undefined
      ? []
      : [{ step: section.endedMs - section.beganMs, after: Math.max(0, wholeMs - section.endedMs) }];
  });
  const still = known.filter(({ step }) => step > elapsed);
  return still.length > 0
    ? inTime(spreadOf(still.map(({ step, after }) => step + after)), elapsed, now)
    : late(spreadOf(known.map(({ after }) => after)), elapsed, now);
}

/** @param spread what updates took that were in the step for longer. */
function inTime(spread: Spread | undefined, elapsed: number, now: number): Estimate | undefined {
  if (spread === undefined) return undefined;
  const { lowMs, highMs } = boundsOf(spread);
  const at = (ms: number) => now + Math.max(0, ms - elapsed);
  return { likely: at(spread.medianMs), earliest: at(lowMs), latest: at(highMs), of: spread.count, late: false };
}

/** @param spread what updates took after the step, of which no duration says any more when it ends. */
function late(spread: Spread | undefined, elapsed: number, now: number): Estimate | undefined {
  if (spread === undefined) return undefined;
  const { lowMs, highMs } = boundsOf(spread);
  return {
    likely: now + elapsed * lateShare.likely + spread.medianMs,
    earliest: now + lowMs,
    latest: now + elapsed * lateShare.latest + highMs,
    of: spread.count,
    late: true,
  };
}

/**
 * When a roll-out is likely to end: machines take turns on as many places as the budget has, those under way first.
 *
 * @param rollOut machines under way with their estimates, how many come after them, and places that are not held by
 *   something that needs help
 */
export function estimateRollOut(
  past: Past,
  rollOut: { readonly working: readonly (Estimate | undefined)[]; readonly waiting: number; readonly places: number },
  now: number,
): Estimate | undefined {
  const { whole } = spreads(past);
  const { working, waiting, places } = rollOut;
  if (whole === undefined || (working.length === 0 && waiting === 0) || (places <= 0 && waiting > 0)) return undefined;
  const slots = Math.max(1, places, working.length);
  // Of several updates one after the other the slow and the quick ones make up for each other.
  const turns = Math.max(1, Math.ceil(waiting / Math.max(1, places)));
  const towards = (edge: number) => whole.medianMs + (edge - whole.medianMs) / Math.sqrt(turns);
  const endWith = (of: keyof Pick<Estimate, "likely" | "earliest" | "latest">, each: number): number => {
    const ends = Array.from(
      { length: slots },
      (_, slot) => working[slot]?.[of] ?? (slot < working.length ? now + each : now),
    );
    for (let machine = 0; machine < waiting; machine++) {
      const soonest = ends.indexOf(leastOf(ends));
      ends[soonest] = (ends[soonest] ?? now) + each;
    }
    return greatestOf(ends);
  };
  const [likely, earliest, latest] = [
    endWith("likely", whole.medianMs),
    endWith("earliest", towards(boundsOf(whole).lowMs)),
    endWith("latest", towards(boundsOf(whole).highMs)),
  ];
  return {
    likely,
    earliest: Math.min(earliest, likely),
    latest: Math.max(latest, likely),
    of: whole.count,
    late: working.some((estimate) => estimate?.late === true),
  };
}

/** `between 10:40 and 10:55, most likely 10:47 (of 12 updates of this pool)`, in UTC. */
export function estimateText({ likely, earliest, latest, of, late }: Estimate, now: number): string {
  const at = (time: number) => `${clockText(time, now).slice(0, -3)}`;
  const basis = `${of === 1 ? "one update" : `median of ${of} updates`} of this pool`;
  const span =
    at(earliest) === at(latest)
      ? `about ${at(likely)}Z`
      : `between ${at(earliest)} and ${at(latest)}Z, most likely ${at(likely)}`;
  return `${span} (in ${durationText(likely - now)}; ${basis}${late ? "; it has taken longer than any of them so far" : ""})`;
}

/**
 * Which MachineConfigs make the difference between what a pool had last and what it should have, and who wrote them
 * when.
 */
export function whoChanged(
  pool: MachineConfigPool,
  machineConfig: (name: string) => MachineConfig | undefined,
): readonly string[] {
  return changedSources(pool, machineConfig).map(
    ({ name, what, by, at }) =>
      `${name}: ${what}${by === undefined ? "" : ` by ${by}`}${at === undefined ? "" : ` at ${at}`}`,
  );
}

/** The newest chapter of a kind in a pool's own book; `undefined`: none is known. */
export const newestOf = (past: Past, chapter: string): Chapter | undefined =>
  past.history.findLast((each) => each.chapter === chapter);
