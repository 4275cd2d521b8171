import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../api/names.ts";
import { buildName, repeatName } from "./build-key.ts";
import { type BuildState, hasEnded, stateOfBuild } from "../config/build-phase.ts";

/** How to obtain an image, cheapest first. */
export const strategies = ["none", "reuse", "append", "build"] as const;
export type Strategy = (typeof strategies)[number];

/** Why a cheaper method was not chosen. */
export interface RejectedStrategy {
  readonly strategy: Strategy;
  readonly because: string;
}

export interface PlanFacts {
  readonly machineOSConfig: string;
  readonly rendered: string;
  readonly repository: string;
  readonly key: string;
  readonly parentKey: string;
  /** Pullspec of the base image, by digest. */
  readonly base: string;
  /** Neither packages nor another kernel nor custom steps. */
  readonly isBaseParent: boolean;
  readonly holdsConfiguration: boolean;
  /** Name of the build whose image is rolled out. */
  readonly current: string | undefined;
  /** All of the cluster. */
  readonly builds: readonly MachineOSBuild[];
  /** A requested rebuild is running: images of other builds do not count. */
  readonly forced: boolean;
}

export type BuildPlan = { readonly because: string; readonly turnedDown: readonly RejectedStrategy[] } & (
  | { readonly strategy: "none"; readonly build: MachineOSBuild }
  | { readonly strategy: "reuse"; readonly from: MachineOSBuild; readonly state: "finished" | "running" }
  | { readonly strategy: "append"; readonly parent: { readonly image: string; readonly hasConfigLayer: boolean } }
  | { readonly strategy: "build" }
);

const of = (build: MachineOSBuild, annotation: string) => build.metadata.annotations?.[annotation];

/** The image of a finished build; `undefined` while it has none, or after the registry lost it. */
export function imageOf(build: MachineOSBuild): string | undefined {
  return stateOfBuild(build).phase === "Succeeded" && of(build, annotations.imageLost) === undefined
    ? build.status?.digestedImagePushSpec
    : undefined;
}

/** Whether a build only reuses another build's image. */
export const isAttached = (build: MachineOSBuild): boolean => of(build, annotations.buildStrategy) === "reuse";

/** The image that a build lays its layer on, as planned; `undefined`: none was noted. */
export function plannedParent(
  build: MachineOSBuild,
): { readonly image: string; readonly hasConfigLayer: boolean } | undefined {
  try {
    const read = JSON.parse(of(build, annotations.buildBecause) ?? "{}") as {
      readonly parent?: { readonly image?: unknown; readonly hasConfigLayer?: unknown };
    };
    return typeof read.parent?.image === "string"
      ? { image: read.parent.image, hasConfigLayer: read.parent.hasConfigLayer === true }
      : undefined;
  } catch {
    return undefined;
  }
}

const digestIn = (pullspec: string): string => pullspec.slice(pullspec.indexOf("@") + 1);

/**
 * Whether a build's image was made from the base image on, as the builds that are left show. An image that came with an
 * installation was chosen by the author of one MachineOSConfig, with whatever content, and so was what stands on it.
 */
function isMadeFromBase(
  build: MachineOSBuild,
  { base, builds }: Pick<PlanFacts, "base" | "builds">,
  seen = new Set<string>(),
): boolean {
  const { name, labels: given } = build.metadata;
  if (given?.[labels.preBuiltImage] !== undefined || seen.has(name)) return false;
  seen.add(name);
  const standsOn = (is: (other: MachineOSBuild) => boolean) =>
    builds.some((other) => is(other) && isMadeFromBase(other, { base, builds }, seen));
  switch (of(build, annotations.buildStrategy)) {
    case "build":
      return true;
    case "append": {
      const parent = plannedParent(build)?.image ?? base;
      return digestIn(parent) === digestIn(base) || standsOn((other) => imageOf(other) === parent);
    }
    case "reuse":
      return standsOn((other) => other.metadata.name === of(build, annotations.reusedFrom));
    default:
      return false;
  }
}

/**
 * Whether builds of a MachineOSConfig wait for the run of another build. One of another MachineOSConfig must have nothing
 * against it: credentials, mirrors and signatures are not in the key, and may fail for its owner alone.
 */
export function isWaitedFor(build: MachineOSBuild, machineOSConfig: string): boolean {
  const state = stateOfBuild(build);
  if (isAttached(build) || hasEnded(state)) return false;
  return (
    build.spec.machineOSConfig.name === machineOSConfig ||
    (of(build, annotations.buildFailure) === undefined &&
      of(build, annotations.nextAttemptAt) === undefined &&
      state.reason !== "InputChanged")
  );
}

/** Builds in a deterministic order: oldest first. */
const inOrder = (builds: readonly MachineOSBuild[]): readonly MachineOSBuild[] =>
  [...builds].sort(
    (a, b) =>
      (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? "") ||
      (a.metadata.name < b.metadata.name ? -1 : 1),
  );

/** How to obtain the image of a key, and why not more cheaply. */
export function planBuild(facts: PlanFacts): BuildPlan {
  const turnedDown: RejectedStrategy[] = [];
  return planNone(facts, turnedDown) ?? planReuse(facts, turnedDown) ?? planMaking(facts, turnedDown);
}

/** The image that is rolled out; otherwise records in `turnedDown` why it does not qualify. */
function planNone(facts: PlanFacts, turnedDown: RejectedStrategy[]): BuildPlan | undefined {
  const { key, builds } = facts;
  const current = builds.find(({ metadata }) => metadata.name === facts.current);
  if (
    current !== undefined &&
    of(current, annotations.contentKey) === key &&
    current.spec.machineConfig.name === facts.rendered &&
    imageOf(current) !== undefined
  ) {
    return {
      strategy: "none",
      build: current,
      because: `${current.metadata.name} is rolled out, and is of this key and this configuration`,
      turnedDown,
    };
  }
  turnedDown.push({
    strategy: "none",
    because:
      current === undefined
        ? "no image is rolled out yet"
        : of(current, annotations.contentKey) !== key
          ? "the image that is rolled out is of another key"
          : current.spec.machineConfig.name === facts.rendered
            ? "the registry lost the image that is rolled out"
            : "the image that is rolled out was published for another configuration",
  });
  return undefined;
}

/** The image of another build; otherwise records in `turnedDown` why there is none. */
function planReuse(facts: PlanFacts, turnedDown: RejectedStrategy[]): BuildPlan | undefined {
  const { key, builds, machineOSConfig } = facts;
  const same = inOrder(
    builds.filter(
      (build) => of(build, annotations.contentKey) === key && build.metadata.deletionTimestamp === undefined,
    ),
  );
  const own = same.filter((build) => build.spec.machineOSConfig.name === machineOSConfig);
  const others = same.filter((build) => !own.includes(build) && isMadeFromBase(build, facts));
  const candidates = facts.forced ? own : [...own, ...others];
  const finished = candidates.find((build) => imageOf(build) !== undefined);
  if (finished !== undefined)
    return {
      strategy: "reuse",
      from: finished,
      state: "finished",
      because: `${finished.metadata.name} has made an image of this key`,
      turnedDown,
    };
  // Whoever makes a MachineOSConfig again and again has builds again and again of which nothing is known yet.
  const inVain = new Set(own.filter(isAttached).map((build) => of(build, annotations.reusedFrom)));
  const running = candidates.find(
    (build) => isWaitedFor(build, machineOSConfig) && (own.includes(build) || !inVain.has(build.metadata.name)),
  );
  if (running !== undefined)
    return {
      strategy: "reuse",
      from: running,
      state: "running",
      because: `${running.metadata.name} is making an image of this key`,
      turnedDown,
    };
  const lost = same.find((build) => of(build, annotations.imageLost) !== undefined);
  const foreign = same.find((build) => !own.includes(build) && !others.includes(build));
  turnedDown.push({
    strategy: "reuse",
    because:
      lost !== undefined
        ? `the registry does not have the image of ${lost.metadata.name} any more`
        : foreign !== undefined
          ? `the image of ${foreign.metadata.name} came with an installation, or stands on one that did, and counts for ${foreign.spec.machineOSConfig.name} alone`
          : facts.forced && same.length > 0
            ? "a rebuild was asked for"
            : "no build of this key has an image, or runs",
  });
  return undefined;
}

/** A new image: a layer on an existing one, or else a full build. */
function planMaking(facts: PlanFacts, turnedDown: RejectedStrategy[]): BuildPlan {
  const { builds } = facts;
  if (facts.isBaseParent)
    return {
      strategy: "append",
      parent: { image: facts.base, hasConfigLayer: false },
      because:
        "the base image itself is what the configuration is laid on: no packages, no other kernel, no custom steps",
      turnedDown,
    };
  const parent = inOrder(builds).findLast(
    (build) =>
      imageOf(build) !== undefined &&
      of(build, annotations.parentKey) === facts.parentKey &&
      imageOf(build)?.startsWith(`${facts.repository}@`) === true &&
      (build.spec.machineOSConfig.name === facts.machineOSConfig || isMadeFromBase(build, facts)),
  );
  const image = parent === undefined ? undefined : imageOf(parent);
  if (parent !== undefined && image !== undefined)
    return {
      strategy: "append",
      parent: { image, hasConfigLayer: of(parent, annotations.imageContent) === "full" },
      because: `${parent.metadata.name} has the same packages and custom steps`,
      turnedDown,
    };
  turnedDown.push({ strategy: "append", because: "no image has the same packages and custom steps" });
  return {
    strategy: "build",
    because:
      facts.current === undefined
        ? "packages or custom steps have to run"
        : "packages or custom steps have to run again",
    turnedDown,
  };
}

/** A build's name and the number of its generation, for one key and configuration. */
interface Named {
  readonly name: string;
  readonly build: MachineOSBuild | undefined;
}

/** Generations that are searched; each is a restart after a build that ended without an image. */
const mostGenerations = 256;

function namesOf(facts: Pick<PlanFacts, "machineOSConfig" | "key" | "rendered" | "builds">): readonly Named[] {
  const byName = new Map(facts.builds.map((build) => [build.metadata.name, build]));
  const first = buildName(facts.machineOSConfig, facts.key);
  const names: Named[] = [{ name: first, build: byName.get(first) }];
  let empty = 0;
  // Pruning leaves gaps.
  for (let generation = 0; generation < mostGenerations && empty < 8; generation += 1) {
    const name = repeatName(facts.machineOSConfig, facts.key, facts.rendered, generation);
    const build = byName.get(name);
    names.push({ name, build });
    empty = build === undefined ? empty + 1 : 0;
  }
  return names;
}

/** The build of a key for a configuration: the last one that was begun. */
export function currentBuildOf(
  facts: Pick<PlanFacts, "machineOSConfig" | "key" | "rendered" | "builds">,
): MachineOSBuild | undefined {
  return namesOf(facts).findLast(({ build }) => build !== undefined && build.spec.machineConfig.name === facts.rendered)
    ?.build;
}

/**
 * The name of the next build of a key for a configuration. It follows the last existing one, so that no known name is
 * reused.
 */
export function nextBuildName(facts: Pick<PlanFacts, "machineOSConfig" | "key" | "rendered" | "builds">): string {
  const names = namesOf(facts);
  const last = names.findLastIndex(({ build }) => build !== undefined);
  return names[last + 1]?.name ?? names.at(-1)?.name ?? "";
}

/** Builds that wait for another build's image. */
export const attachedTo = (name: string, builds: readonly MachineOSBuild[]): readonly MachineOSBuild[] =>
  builds.filter(
    (build) =>
      of(build, annotations.reusedFrom) === name &&
      !hasEnded(stateOfBuild(build)) &&
      build.metadata.deletionTimestamp === undefined,
  );

/** Running builds of a MachineOSConfig that are obsolete, whatever the state of their runs. */
export function superseded(
  machineOSConfig: string,
  wanted: string | undefined,
  builds: readonly MachineOSBuild[],
): readonly { readonly build: MachineOSBuild; readonly state: BuildState }[] {
  return builds.flatMap((build) => {
    const state = stateOfBuild(build);
    return build.spec.machineOSConfig.name !== machineOSConfig || build.metadata.name === wanted || hasEnded(state)
      ? []
      : [{ build, state }];
  });
}
