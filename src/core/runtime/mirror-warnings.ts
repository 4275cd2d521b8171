import type { RegistrySources } from "../../api/foreign/openshift.ts";
import { type MergedMirrors, type MirrorRule, type ObjectProblem, isIdle } from "./merge-mirrors.ts";
import { type Registry, scopeOf } from "./registries-conf-text.ts";
import { isNested, outerScopes } from "./registry-scopes.ts";

/** What the files for a machine were made of. */
export interface MadeRegistries {
  /** The entries of registries.conf; of several for one scope the first counts. */
  readonly registries: readonly Registry[];
  readonly mirrors: readonly MergedMirrors[];
  /** Blocked registries that reached registries.conf. */
  readonly blocked: readonly string[];
  /** Blocked registries whose images policy.json rejects. */
  readonly rejected: readonly string[];
  /** What policy.json accepts, and nothing else; empty: it accepts what it does not reject. */
  readonly accepted: readonly string[];
  /** The repository of the cluster's release. */
  readonly payload: string | undefined;
}

const imageObject = "Image/cluster";
const blockedPath = "spec.registrySources.blockedRegistries";
const allowedPath = "spec.registrySources.allowedRegistries";

/**
 * Settings that are written, as the reference writes them, and that do not do what they say, because another one has the
 * last word.
 */
export function mirrorWarnings(
  rules: readonly MirrorRule[],
  sources: RegistrySources,
  made: MadeRegistries,
): readonly ObjectProblem[] {
  const used = rules.filter((rule) => !isIdle(rule));
  const blockOf = blockNames(sources);
  return [
    ...onlyRelease(sources, made),
    ...refusedSources(used, sources, made, blockOf),
    ...blockedMirrors(used, made, blockOf),
    ...unusedPolicies(rules, used),
    ...lostOrders(used, made),
  ];
}

/** Names the field of a blocked registry. */
function blockNames({ blockedRegistries = [] }: RegistrySources): (scope: string) => string {
  const first = new Map<string, number>();
  for (const [i, scope] of blockedRegistries.entries()) if (!first.has(scope)) first.set(scope, i);
  return (scope) => `${imageObject} ${blockedPath}[${first.get(scope) ?? 0}] blocks ${scope}`;
}

/** A block of the release's own repository that makes policy.json accept its images alone. */
function onlyRelease(
  { blockedRegistries = [], allowedRegistries = [] }: RegistrySources,
  { payload, rejected, accepted }: MadeRegistries,
): readonly ObjectProblem[] {
  if (payload === undefined || allowedRegistries.length > 0) return [];
  if (rejected.length > 0 || !accepted.includes(payload)) return [];
  return [
    {
      object: imageObject,
      path: `${blockedPath}[${blockedRegistries.indexOf(payload)}]`,
      reason: `leaves machines no images but those of ${payload}: where the repository of the release is all that is blocked, policy.json accepts its images from mirrors, and no others`,
      remedy: "take the block out, and write NeverContactSource in the mirror set that names its mirrors",
    },
  ];
}

/** Policies are for the name that an image has, wherever it is pulled from (containers-policy.json(5)). */
function refusedSources(
  used: readonly MirrorRule[],
  { allowedRegistries: allowed = [] }: RegistrySources,
  { rejected, payload }: MadeRegistries,
  blockOf: (scope: string) => string,
): readonly ObjectProblem[] {
  const [rejecting, accepting] = [outerScopes(rejected), outerScopes(allowed)];
  const around = outerScopes(used.map(({ source }) => source));
  const partlyAllowed = new Set(allowed.flatMap((scope) => around(scope)));
  // Blocks of the release's images have rules of their own.
  const isOfRelease = (source: string) =>
    payload !== undefined && (isNested(source, payload) || isNested(payload, source));
  return used.flatMap(({ object, path, source }): readonly ObjectProblem[] => {
    if (isOfRelease(source)) return [];
    const at = { object, path: `${path}.source` };
    const refused = `has no effect: machines refuse images of ${source}, from mirrors as well`;
    const [block] = rejecting(source);
    if (block !== undefined)
      return [
        {
          ...at,
          reason: `${refused}, because ${blockOf(block)}`,
          remedy: "take the block out; NeverContactSource of a mirror set forbids the source and no mirror",
        },
      ];
    const isAllowed = allowed.length === 0 || partlyAllowed.has(source) || accepting(source).length > 0;
    return isAllowed
      ? []
      : [
          {
            ...at,
            reason: `${refused}, because ${imageObject} ${allowedPath} leaves it out`,
            remedy: `add ${source} there`,
          },
        ];
  });
}

/** A block is of the place that is asked, which a mirror is as well (containers-registries.conf(5)). */
function blockedMirrors(
  used: readonly MirrorRule[],
  { registries, blocked }: MadeRegistries,
  blockOf: (scope: string) => string,
): readonly ObjectProblem[] {
  const entries = new Map(registries.toReversed().map((entry) => [scopeOf(entry), entry]));
  const [around, blocking] = [outerScopes(entries.keys()), outerScopes(blocked)];
  const forbidding = new Map(used.map((rule) => [rule.source, rule]));
  /** Who blocks an entry, and what to change. */
  const causeOf = (scope: string): readonly [cause: string, remedy: string] => {
    const [block] = blocking(scope);
    if (block !== undefined) return [blockOf(block), "take the mirror out, or the block"];
    const rule = forbidding.get(scope);
    return rule?.policy === "NeverContactSource"
      ? [
          `${rule.object} ${rule.path}.mirrorSourcePolicy forbids to contact ${scope}`,
          "take the mirror out, or write AllowContactingSource there",
        ]
      : [`the base registries.conf blocks ${scope}`, "take the mirror out"];
  };
  return used.flatMap(({ object, path, source, mirrors }) =>
    mirrors.flatMap((mirror, i): readonly ObjectProblem[] => {
      const [scope] = mirror === source ? [] : around(mirror);
      if (scope === undefined || entries.get(scope)?.blocked !== true) return [];
      const [cause, remedy] = causeOf(scope);
      return [{ object, path: `${path}.mirrors[${i}]`, reason: `is never asked: ${cause}`, remedy }];
    }),
  );
}

/** A rule without mirrors is left out, with its policy. */
function unusedPolicies(rules: readonly MirrorRule[], used: readonly MirrorRule[]): readonly ObjectProblem[] {
  const known = new Set(used.map(({ source }) => source));
  return rules.flatMap((rule) =>
    rule.policy === "NeverContactSource" && !known.has(rule.source)
      ? [
          {
            object: rule.object,
            path: `${rule.path}.mirrorSourcePolicy`,
            reason: `has no effect: a rule that names no mirror is left out, and does not keep machines from ${rule.source}`,
            remedy: `name a mirror, or add ${rule.source} to ${blockedPath} of the Image config cluster`,
          },
        ]
      : [],
  );
}

/** Rules whose mirrors come in another order than they say, because rules contradict each other. */
function lostOrders(used: readonly MirrorRule[], { mirrors: merged }: MadeRegistries): readonly ObjectProblem[] {
  const groupOf = ({ of, source }: Pick<MirrorRule, "of" | "source">) => `${of} ${source}`;
  const orders = new Map(merged.map((one) => [groupOf(one), one.mirrors]));
  return [...Map.groupBy(used, groupOf)].flatMap(([group, rules]) => {
    const placeOf = new Map((orders.get(group) ?? []).map((mirror, i) => [mirror, i]));
    const isLost = ([before, after]: Pair) => (placeOf.get(before) ?? Infinity) > (placeOf.get(after) ?? Infinity);
    const lost = rules.flatMap((rule) => {
      const pair = pairsOf(rule).find(isLost);
      return pair === undefined ? [] : [{ rule, pair }];
    });
    if (lost.length === 0) return [];
    const saying = new Map(rules.flatMap((rule) => pairsOf(rule).map((pair) => [pairText(pair), rule] as const)));
    return lost.map(({ rule, pair: [before, after] }) => {
      const other = saying.get(pairText([after, before]));
      const cause =
        other === undefined
          ? `rules for ${rule.source} contradict each other`
          : `${other.object} ${other.path} says so`;
      return {
        object: rule.object,
        path: `${rule.path}.mirrors`,
        reason: `are asked in another order: ${after} before ${before}, because ${cause}`,
        remedy: `name them in one order, and each once, in every rule for ${rule.source}`,
      };
    });
  });
}

type Pair = readonly [before: string, after: string];
const pairText = ([before, after]: Pair): string => `${before} ${after}`;

/** Which mirror of a rule comes before which; the source comes last where the rule does not name it. */
function pairsOf({ source, mirrors }: MirrorRule): readonly Pair[] {
  const all = mirrors.includes(source) ? mirrors : [...mirrors, source];
  return all.slice(1).flatMap((after, i): readonly Pair[] => {
    const before = all[i];
    return before === undefined || before === after ? [] : [[before, after]];
  });
}
