import { leastOf } from "../../api/schema/extremes.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { hasEnded, stateOfBuild } from "../config/build-phase.ts";
import { imagePlace } from "../images/image-reference.ts";

export interface PruneRules {
  /** Finished builds of each MachineOSConfig that are kept, last ones first. */
  readonly succeeded: number;
  readonly failed: number;
  /** Younger ones are kept. */
  readonly youngMs: number;
  /** How long an unused image is kept before it is checked again and deleted. */
  readonly quietMs: number;
}

export const pruneRules: PruneRules = { succeeded: 3, failed: 3, youngMs: 24 * 3_600_000, quietMs: 15 * 60_000 };

export interface PruneFacts {
  /** All of the cluster. */
  readonly builds: readonly MachineOSBuild[];
  /** Names of the existing MachineOSConfigs, with the build that each has rolled out. */
  readonly machineOSConfigs: ReadonlyMap<
    string,
    { readonly current: string | undefined; readonly image: string | undefined }
  >;
  /**
   * Pullspecs by digest that any object refers to: nodes, MachineConfigNodes, roll-back targets, served configs,
   * parents of running builds.
   */
  readonly used: Iterable<string>;
  readonly now: number;
  readonly rules?: PruneRules;
}

export type Kept = "current" | "inUse" | "running" | "pinned" | "recent" | "young";

export interface PrunePlan {
  /** Builds whose image may be deleted, and the earliest time. */
  readonly mark: readonly { readonly build: string; readonly after: string }[];
  /** Marked builds that are needed again. */
  readonly unmark: readonly string[];
  /**
   * An image is deleted with the last build that names its digest; builds without a digest, and of an image that came with
   * an installation, are deleted alone.
   */
  readonly remove: readonly { readonly build: MachineOSBuild; readonly image: string | undefined }[];
  readonly kept: ReadonlyMap<string, Kept>;
  /** When the next pass is due if nothing changes. */
  readonly nextAt: number | undefined;
}

/** Digest of a pullspec: a repository's name is one of many for the same image. */
const digestOf = (pullspec: string | undefined): string | undefined =>
  /@(sha256:[0-9a-f]{64})$/.exec(pullspec ?? "")?.[1];

/** Builds that stay, and why. `ages`: when builds that are kept only for their age may be deleted. */
function keptBuilds(
  facts: PruneFacts,
  rules: PruneRules,
  used: ReadonlySet<string>,
  newestFirst: readonly MachineOSBuild[],
): { readonly kept: Map<string, Kept>; readonly ages: number[] } {
  const kept = new Map<string, Kept>();
  const ages: number[] = [];
  const counted = new Map<string, { Succeeded: number; Failed: number }>();
  const running = facts.builds.filter((build) => !hasEnded(stateOfBuild(build)));
  const needed = new Set(running.flatMap(({ metadata }) => metadata.annotations?.[annotations.reusedFrom] ?? []));
  for (const build of newestFirst) {
    const { name, annotations: has = {}, creationTimestamp = "" } = build.metadata;
    const config = facts.machineOSConfigs.get(build.spec.machineOSConfig.name);
    const { phase } = stateOfBuild(build);
    const digest = digestOf(build.status?.digestedImagePushSpec);
    const isOfGone = config === undefined;
    const counts = counted.get(build.spec.machineOSConfig.name) ?? { Succeeded: 0, Failed: 0 };
    counted.set(build.spec.machineOSConfig.name, counts);
    const place = phase === "Succeeded" || phase === "Failed" ? (counts[phase] += 1) : Infinity;
    const dies = Date.parse(creationTimestamp) + rules.youngMs;
    if (has[annotations.keepBuild] === "true") kept.set(name, "pinned");
    else if (!hasEnded({ phase }) || needed.has(name)) kept.set(name, "running");
    else if (config?.current === name) kept.set(name, "current");
    else if (digest !== undefined && used.has(digest)) kept.set(name, "inUse");
    // A pool without images keeps no history.
    else if (isOfGone) continue;
    else if (place <= (phase === "Failed" ? rules.failed : rules.succeeded)) kept.set(name, "recent");
    else if (facts.now < dies) {
      kept.set(name, "young");
      ages.push(dies);
    }
  }
  return { kept, ages };
}

/**
 * Which builds and images to delete. An image in use stays, and so does every build that names its digest. An image that
 * came with an installation was named by the author of a MachineOSConfig, and no build pushed it: its build goes alone.
 */
export function prunePlan(facts: PruneFacts): PrunePlan {
  const rules = facts.rules ?? pruneRules;
  const used = new Set(
    [...facts.used, ...[...facts.machineOSConfigs.values()].map(({ image }) => image ?? "")].flatMap(
      (pullspec) => digestOf(pullspec) ?? [],
    ),
  );
  const newestFirst = [...facts.builds].sort(
    (a, b) =>
      (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? "") ||
      (a.metadata.name < b.metadata.name ? 1 : -1),
  );
  const { kept, ages } = keptBuilds(facts, rules, used, newestFirst);
  const mark: { build: string; after: string }[] = [];
  const ripe: MachineOSBuild[] = [];
  for (const build of newestFirst) {
    const { name } = build.metadata;
    if (kept.has(name) || build.metadata.deletionTimestamp !== undefined) continue;
    const after = Date.parse(build.metadata.annotations?.[annotations.pruneAfter] ?? "");
    if (build.status?.digestedImagePushSpec === undefined) ripe.push(build);
    else if (Number.isNaN(after)) {
      mark.push({ build: name, after: timestampOf(facts.now + rules.quietMs) });
      ages.push(facts.now + rules.quietMs);
    } else if (after <= facts.now) ripe.push(build);
    else ages.push(after);
  }
  const going = new Set(ripe.map(({ metadata }) => metadata.name));
  const staying = new Set(
    facts.builds
      .filter(({ metadata }) => !going.has(metadata.name))
      .flatMap(({ status }) => status?.digestedImagePushSpec ?? [])
      .map(imagePlace),
  );
  const deleted = new Set<string>();
  const remove = ripe.map((build) => {
    const pullspec = build.status?.digestedImagePushSpec;
    if (pullspec === undefined) return { build, image: undefined };
    const place = imagePlace(pullspec);
    if (build.metadata.labels?.[labels.preBuiltImage] !== undefined) return { build, image: undefined };
    if (staying.has(place) || used.has(digestOf(pullspec) ?? "") || deleted.has(place))
      return { build, image: undefined };
    deleted.add(place);
    return { build, image: pullspec };
  });
  const unmark = newestFirst.flatMap(({ metadata }) =>
    kept.has(metadata.name) && metadata.annotations?.[annotations.pruneAfter] !== undefined ? [metadata.name] : [],
  );
  return { mark, unmark, remove, kept, nextAt: ages.length === 0 ? undefined : leastOf(ages) };
}
