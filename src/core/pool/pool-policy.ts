import { annotations } from "../../api/names.ts";
import type { Problem } from "../../ignition/problem.ts";

/**
 * What protects a pod from being deleted. A pod may have several: `pdb`, a disruption budget refuses its eviction;
 * `refused`, something else does, such as a webhook; `unmanaged`, no controller would make it again; `emptyDir`, it
 * keeps data on the machine that would be lost.
 */
export const protections = ["pdb", "refused", "unmanaged", "emptyDir"] as const;
export type Protection = (typeof protections)[number];

/** What happens when a drain has taken longer than its pool's deadline. */
export type AfterDeadline =
  /** Reports it, and continues without force. */
  | { readonly do: "wait" }
  /** The machine goes back into service and gives its place to another one; it is tried again later. */
  | { readonly do: "skip" }
  /** A pod whose eviction is refused is deleted, if everything that protects it is named. */
  | { readonly do: "force"; readonly despite: readonly Protection[] };

/** How a pool wants to be treated beyond its spec: our annotations on it, with their defaults. */
export interface PoolPolicy {
  readonly drain: {
    /** `undefined`: as long as it takes. */
    readonly deadlineSeconds: number | undefined;
    readonly afterDeadline: AfterDeadline;
  };
  /** Machines of two zones are never out of service for us at the same time. */
  readonly oneZoneAtATime: boolean;
  /** How many rendered configurations that the pool has had are kept, beside those that something uses. */
  readonly retainedConfigs: number;
  /** How long one is left alone after its last use. */
  readonly retentionQuietSeconds: number;
  readonly canary: {
    /**
     * How many machines go first with a new image; `undefined`: one with the first image and with a new base, else
     * none.
     */
    readonly count: number | undefined;
    /** How long they must keep well. */
    readonly seconds: number;
  };
}

export const defaultPoolPolicy: PoolPolicy = {
  drain: { deadlineSeconds: undefined, afterDeadline: { do: "wait" } },
  oneZoneAtATime: false,
  retainedConfigs: 5,
  retentionQuietSeconds: 3600,
  canary: { count: undefined, seconds: 300 },
};

/**
 * Everything that can be said of a pool by annotation, for people: docs/reference/pool-annotations.md is written from
 * it.
 */
export const poolAnnotations: readonly {
  readonly key: string;
  readonly values: string;
  readonly byDefault: string;
  readonly does: string;
}[] = [
  {
    key: annotations.drainDeadlineSeconds,
    values: "seconds, 1 to 604800",
    byDefault: "as long as it takes",
    does: "How long the drain of a machine may take before `drain-after-deadline` says what happens. It counts from the first cordon, also across restarts of the controller.",
  },
  {
    key: annotations.drainAfterDeadline,
    values: `\`wait\`, \`skip\`, or \`force: \` and a list of ${protections.map((protection) => `\`${protection}\``).join(", ")}`,
    byDefault: "`wait`",
    does: "`wait` reports it and continues without force. `skip` puts the machine back into service, gives its place to another one, and tries again later. `force` deletes pods whose eviction is refused, each with an event, if all that protects them is named: a disruption budget (`pdb`), something else such as a webhook (`refused`), that no controller makes them again (`unmanaged`), that they keep data on the machine (`emptyDir`).",
  },
  {
    key: annotations.oneZoneAtATime,
    values: "`true`, `false`",
    byDefault: "`false`",
    does: "Machines of two zones are never out of service for an update at the same time.",
  },
  {
    key: annotations.retainedConfigs,
    values: "number, 0 to 1000",
    byDefault: `\`${defaultPoolPolicy.retainedConfigs}\``,
    does: "How many rendered configurations that nothing uses any more are kept for going back. One that anything uses is always kept.",
  },
  {
    key: annotations.retentionQuietSeconds,
    values: "seconds, 0 to 604800",
    byDefault: `\`${defaultPoolPolicy.retentionQuietSeconds}\``,
    does: "How long a rendered configuration is left alone after its last use before it may be removed.",
  },
  {
    key: annotations.rolloutCanary,
    values: "number, 0 to 100",
    byDefault: "`1` for the first image of a pool and for a new base image, else `0`",
    does: "How many machines get a new image before all others, which wait until those have stayed healthy. One that cannot go on stops the roll-out.",
  },
  {
    key: annotations.canarySeconds,
    values: "seconds, 0 to 604800",
    byDefault: `\`${defaultPoolPolicy.canary.seconds}\``,
    does: "How long such a machine must be updated and ready before the others follow.",
  },
];

/** A week: a larger value is probably in another unit. */
const longestSeconds = 7 * 24 * 3600;
const mostRetained = 1000;
const mostCanaries = 100;

type Annotated = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };

/** Where an annotation stands, in the words of the API server's own refusals. */
const pathTo = (key: string) => `metadata.annotations[${key}]`;

/** Reads one annotation; a text that cannot be read is a problem and counts as absent. */
type ReadAnnotation = <T>(key: string, fallback: T, parse: (text: string) => T | undefined, remedy: string) => T;

/**
 * Reads everything that a pool's annotations say about how to treat it. What cannot be read counts as absent and is a
 * problem with its place and remedy; a pool that is gone (`undefined`) has the defaults.
 */
export function poolPolicy(pool: Annotated | undefined): {
  readonly policy: PoolPolicy;
  readonly problems: readonly Problem[];
} {
  const has = pool?.metadata.annotations ?? {};
  const problems: Problem[] = [];
  const read: ReadAnnotation = (key, fallback, parse, remedy) => {
    const text = has[key]?.trim();
    if (text === undefined) return fallback;
    const value = parse(text);
    if (value === undefined)
      problems.push({
        severity: "error",
        path: pathTo(key),
        reason: `"${text.length <= 80 ? text : `${text.slice(0, 79)}…`}" is not understood`,
        remedy,
      });
    return value ?? fallback;
  };
  const drain = drainPolicy(read);
  if (drain.afterDeadline.do !== "wait" && has[annotations.drainDeadlineSeconds] === undefined) {
    problems.push({
      severity: "warning",
      path: pathTo(annotations.drainAfterDeadline),
      reason: "has no effect: drains of this pool have no deadline",
      remedy: `set ${annotations.drainDeadlineSeconds} too`,
    });
  }
  const oneZoneAtATime = read(
    annotations.oneZoneAtATime,
    defaultPoolPolicy.oneZoneAtATime,
    (text) => (text === "true" ? true : text === "false" ? false : undefined),
    'write "true" or "false"',
  );
  return { policy: { drain, oneZoneAtATime, ...retentionPolicy(read), canary: canaryPolicy(read) }, problems };
}

function drainPolicy(read: ReadAnnotation): PoolPolicy["drain"] {
  const { deadlineSeconds, afterDeadline } = defaultPoolPolicy.drain;
  return {
    deadlineSeconds: read(
      annotations.drainDeadlineSeconds,
      deadlineSeconds,
      (text) => within(text, 1, longestSeconds),
      `write a whole number of seconds from 1 to ${longestSeconds}, or remove the annotation: drains then take as long as they take`,
    ),
    afterDeadline: read(
      annotations.drainAfterDeadline,
      afterDeadline,
      parseAfterDeadline,
      `write "wait", "skip", or "force: " and what may be overridden, of ${protections.join(", ")}`,
    ),
  };
}

function retentionPolicy(read: ReadAnnotation): Pick<PoolPolicy, "retainedConfigs" | "retentionQuietSeconds"> {
  const { retainedConfigs, retentionQuietSeconds } = defaultPoolPolicy;
  return {
    retainedConfigs: read(
      annotations.retainedConfigs,
      retainedConfigs,
      (text) => within(text, 0, mostRetained),
      `write a whole number from 0 to ${mostRetained}; ${retainedConfigs} are kept when the annotation is absent`,
    ),
    retentionQuietSeconds: read(
      annotations.retentionQuietSeconds,
      retentionQuietSeconds,
      (text) => within(text, 0, longestSeconds),
      `write a whole number of seconds from 0 to ${longestSeconds}; ${retentionQuietSeconds} when the annotation is absent`,
    ),
  };
}

function canaryPolicy(read: ReadAnnotation): PoolPolicy["canary"] {
  const { count, seconds } = defaultPoolPolicy.canary;
  return {
    count: read(
      annotations.rolloutCanary,
      count,
      (text) => within(text, 0, mostCanaries),
      `write a whole number from 0 to ${mostCanaries}, or remove the annotation: then one goes first where the operating system is new`,
    ),
    seconds: read(
      annotations.canarySeconds,
      seconds,
      (text) => within(text, 0, longestSeconds),
      `write a whole number of seconds from 0 to ${longestSeconds}; ${seconds} when the annotation is absent`,
    ),
  };
}

function within(text: string, least: number, most: number): number | undefined {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  return value !== undefined && value >= least && value <= most ? value : undefined;
}

function parseAfterDeadline(text: string): AfterDeadline | undefined {
  if (text === "wait" || text === "skip") return { do: text };
  const named = /^force:(.*)$/
    .exec(text)?.[1]
    ?.split(",")
    .map((name) => name.trim());
  if (named === undefined) return undefined;
  const despite = protections.filter((protection) => named.includes(protection));
  // One that is not understood would be overridden never or always: neither was asked for.
  return named.every((name) => (protections as readonly string[]).includes(name))
    ? { do: "force", despite }
    : undefined;
}

/** Problems of annotations that a change introduces; existing ones block no change. */
export function newPolicyProblems(pool: Annotated, before: Annotated | undefined): readonly Problem[] {
  const { problems } = poolPolicy(pool);
  if (before === undefined) return problems;
  const isNew = (key: string) => pool.metadata.annotations?.[key] !== before.metadata.annotations?.[key];
  const changed = poolAnnotations
    .map(({ key }) => key)
    .filter(isNew)
    .map(pathTo);
  return problems.filter(({ path }) => changed.includes(path));
}
