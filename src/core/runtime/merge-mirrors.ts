import { pushAll } from "../../api/schema/push-all.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { isMirrorSource, isRepository } from "./registry-scopes.ts";

/** `NeverContactSource`: an image that no mirror has is not pulled. */
export type SourcePolicy = "AllowContactingSource" | "NeverContactSource";

/** One rule of a mirror set. */
export interface MirrorRule {
  /** For a message: `ImageDigestMirrorSet/name`. */
  readonly object: string;
  /** Path of the rule in its object: `spec.imageDigestMirrors[0]`. */
  readonly path: string;
  /** Whether it is for pulls by digest, or by tag. */
  readonly of: "digest" | "tag";
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly policy: SourcePolicy | undefined;
}

/** The mirrors of a source, in the order in which they are tried. */
export interface MergedMirrors {
  readonly of: MirrorRule["of"];
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly neverContactsSource: boolean;
}

/** A problem of one object that others wrote. */
export interface ObjectProblem {
  /** `ImageTagMirrorSet/name` */
  readonly object: string;
  readonly path: string;
  readonly reason: string;
  /** What to do where the reason does not say it. */
  readonly remedy?: string;
  /** The other object of a contradiction; it has a problem of its own about it. */
  readonly against?: string;
}

export type MirrorReading =
  | { readonly verdict: "merged"; readonly merged: readonly MergedMirrors[] }
  | { readonly verdict: "refused"; readonly problems: readonly ObjectProblem[] };

/** Rules that set nothing: their mirrors are none, or the source alone. */
export const isIdle = ({ source, mirrors }: MirrorRule): boolean => mirrors.every((mirror) => mirror === source);

/** What is wrong with rules, alone and with each other. */
export const mirrorProblems = (rules: readonly MirrorRule[]): readonly ObjectProblem[] => [
  ...rules.flatMap(problemsOf),
  ...conflicts(rules),
];

/** {@link mergedMirrors}, if nothing is wrong with the rules. */
export function mergeMirrors(rules: readonly MirrorRule[]): MirrorReading {
  const problems = mirrorProblems(rules);
  return problems.length > 0 ? { verdict: "refused", problems } : { verdict: "merged", merged: mergedMirrors(rules) };
}

/**
 * One list of mirrors for each source and kind of pull. A mirror that one rule names before another one comes first;
 * where rules contradict each other, the name decides. Digests first, then tags, each by source.
 */
export function mergedMirrors(rules: readonly MirrorRule[]): readonly MergedMirrors[] {
  const used = rules.filter((rule) => !isIdle(rule));
  const never = new Set(used.flatMap(({ source, policy }) => (policy === "NeverContactSource" ? [source] : [])));
  return (["digest", "tag"] as const).flatMap((of) => {
    const bySource = Map.groupBy(
      used.filter((rule) => rule.of === of),
      ({ source }) => source,
    );
    return [...bySource]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([source, own]) => ({
        of,
        source,
        mirrors: orderOf(source, own),
        neverContactsSource: never.has(source),
      }));
  });
}

/** An object may have thousands of rules, nearly all without a problem: what is said of one is made where there is one. */
function problemsOf(rule: MirrorRule): readonly ObjectProblem[] {
  const { source, mirrors, policy } = rule;
  const isTwofold = policy === "NeverContactSource" && mirrors.includes(source);
  return isMirrorSource(source) && mirrors.every(isRepository) && !isTwofold ? [] : describedProblems(rule, isTwofold);
}

function describedProblems({ object, path, source, mirrors }: MirrorRule, isTwofold: boolean): ObjectProblem[] {
  const problem = (at: string, reason: string) => ({ object, path: `${path}.${at}`, reason });
  const sourceAsMirror = problem(
    "mirrorSourcePolicy",
    "must not be NeverContactSource where the source is one of the mirrors",
  );
  return [
    ...(isMirrorSource(source) ? [] : [problem("source", "must be a repository, a host or *.domain")]),
    ...mirrors.flatMap((mirror, i) =>
      isRepository(mirror) ? [] : [problem(`mirrors[${i}]`, "must be a repository or a host")],
    ),
    ...(isTwofold
      ? [{ ...sourceAsMirror, remedy: `take ${source} out of the mirrors, or write AllowContactingSource` }]
      : []),
  ];
}

const isForbidding = ({ policy }: MirrorRule): boolean => policy === "NeverContactSource";

/**
 * Rules that say both that a source is contacted and that it is not, each with the first one that it contradicts. Rules
 * that set nothing count as well. Source: openshift/machine-config-operator
 * pkg/controller/container-runtime-config/helpers.go (main).
 */
function conflicts(rules: readonly MirrorRule[]): readonly ObjectProblem[] {
  const [one] = rules;
  // Rules that all say the same do not contradict each other, whatever their sources.
  if (one === undefined || rules.every((rule) => isForbidding(rule) === isForbidding(one))) return [];
  return [...Map.groupBy(rules, ({ source }) => source).values()].flatMap((same) => {
    // One that names mirrors says more about how to agree.
    const first = (test: (rule: MirrorRule) => boolean) =>
      same.find((rule) => test(rule) && !isIdle(rule)) ?? same.find(test);
    const [forbidding, allowing] = [first(isForbidding), first((rule) => !isForbidding(rule))];
    if (forbidding === undefined || allowing === undefined) return [];
    return [
      ...same.filter(isForbidding).map((rule) => contradiction(rule, allowing)),
      ...same.filter((rule) => !isForbidding(rule)).map((rule) => contradiction(rule, forbidding)),
    ];
  });
}

/** The older kind has no field for a policy: its rules let machines contact the source. */
const hasNoPolicy = ({ object }: MirrorRule): boolean =>
  object.startsWith(`${openshift.ImageContentSourcePolicy.kind}/`);

function contradiction(rule: MirrorRule, other: MirrorRule): ObjectProblem {
  const { object, path, source } = rule;
  const place = `${other.object} ${other.path}`;
  const at = { object, remedy: agreement(rule, other), against: other.object };
  return hasNoPolicy(rule)
    ? {
        ...at,
        path,
        reason: `lets machines contact ${source}, as every rule of an ImageContentSourcePolicy does; ${place} forbids it`,
      }
    : {
        ...at,
        path: `${path}.mirrorSourcePolicy`,
        reason: `must be the same in every rule for ${source}; ${place} says otherwise`,
      };
}

/** What makes two rules agree. */
function agreement(rule: MirrorRule, other: MirrorRule): string {
  if (isIdle(rule)) return "take this rule out: it names no mirror";
  if (isIdle(other)) return "take the rule there out: it names no mirror";
  const replaced = "one of an ImageDigestMirrorSet with NeverContactSource";
  if (hasNoPolicy(rule)) return `write AllowContactingSource there, or make this rule ${replaced}`;
  if (hasNoPolicy(other)) return `write AllowContactingSource here, or make the rule there ${replaced}`;
  return isForbidding(rule)
    ? "write AllowContactingSource here, or NeverContactSource there"
    : "write NeverContactSource here, or AllowContactingSource there";
}

function orderOf(source: string, rules: readonly MirrorRule[]): readonly string[] {
  const after = new Map<string, Set<string>>();
  const edge = (from: string, to: string) => {
    after.set(from, (after.get(from) ?? new Set()).add(to));
    if (!after.has(to)) after.set(to, new Set());
  };
  for (const { mirrors } of rules) {
    mirrors.slice(1).forEach((mirror, i) => edge(mirrors[i] ?? "", mirror));
    const last = mirrors.at(-1);
    if (last !== undefined && !mirrors.includes(source)) edge(last, source);
  }
  const sorted = topological(after);
  return sorted.at(-1) === source ? sorted.slice(0, -1) : sorted;
}

/** Nodes before those that come after them: ready ones in turn, each batch by name; in a circle, the first by name. */
function topological(after: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const before = new Map([...after.keys()].map((node) => [node, 0]));
  for (const targets of after.values()) for (const to of targets) before.set(to, (before.get(to) ?? 0) + 1);
  const byName = [...before.keys()].toSorted();
  const result = byName.filter((node) => before.get(node) === 0);
  for (const node of result) before.delete(node);
  let unused = 0;
  // What is in the result and was not looked at is ready.
  for (let at = 0; at < result.length || before.size > 0; at += 1) {
    if (at === result.length) {
      while (!before.has(byName[unused] ?? "")) unused += 1;
      result.push(byName[unused] ?? "");
      before.delete(byName[unused] ?? "");
    }
    const freed: string[] = [];
    for (const to of after.get(result[at] ?? "") ?? []) {
      const count = before.get(to);
      if (count === undefined) continue;
      before.set(to, count - 1);
      if (count === 1) freed.push(to);
    }
    for (const one of freed) before.delete(one);
    pushAll(result, freed.toSorted());
  }
  return result;
}
