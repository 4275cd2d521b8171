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
}

export type MirrorReading =
  | { readonly verdict: "merged"; readonly merged: readonly MergedMirrors[] }
  | { readonly verdict: "refused"; readonly problems: readonly ObjectProblem[] };

/** Rules that set nothing: their mirrors are none, or the source alone. */
const isIdle = ({ source, mirrors }: MirrorRule): boolean => mirrors.every((mirror) => mirror === source);

/**
 * One list of mirrors for each source and kind of pull. A mirror that one rule names before another one comes first;
 * where rules contradict each other, the name decides. Digests first, then tags, each by source.
 */
export function mergeMirrors(rules: readonly MirrorRule[]): MirrorReading {
  const problems = rules.flatMap(problemsOf);
  const used = rules.filter((rule) => !isIdle(rule));
  problems.push(...conflicts(used));
  if (problems.length > 0) return { verdict: "refused", problems };
  const never = new Set(used.flatMap(({ source, policy }) => (policy === "NeverContactSource" ? [source] : [])));
  const merged = (["digest", "tag"] as const).flatMap((of) => {
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
  return { verdict: "merged", merged };
}

function problemsOf(rule: MirrorRule): ObjectProblem[] {
  const { object, path, source, mirrors, policy } = rule;
  const problem = (at: string, reason: string) => ({ object, path: `${path}.${at}`, reason });
  return [
    ...(isMirrorSource(source) ? [] : [problem("source", "must be a repository, a host or *.domain")]),
    ...mirrors.flatMap((mirror, i) =>
      isRepository(mirror) ? [] : [problem(`mirrors[${i}]`, "must be a repository or a host")],
    ),
    ...(policy === "NeverContactSource" && mirrors.includes(source)
      ? [problem("mirrorSourcePolicy", "must not be NeverContactSource where the source is one of the mirrors")]
      : []),
  ];
}

/** Sources for which rules say both that they are contacted and that they are not. */
function conflicts(rules: readonly MirrorRule[]): ObjectProblem[] {
  return [...Map.groupBy(rules, ({ source }) => source).values()].flatMap((same) => {
    const never = same.find(({ policy }) => policy === "NeverContactSource");
    const other = same.find(({ policy }) => policy !== "NeverContactSource");
    if (never === undefined || other === undefined) return [];
    const reason = `must be the same in every rule for ${never.source}; ${other.object} ${other.path} says otherwise`;
    return [{ object: never.object, path: `${never.path}.mirrorSourcePolicy`, reason }];
  });
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
    result.push(...freed.toSorted());
  }
  return result;
}
