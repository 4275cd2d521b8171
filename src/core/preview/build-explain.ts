import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, machineOSConfigConditions } from "../../api/names.ts";
import { conditionOf, timestampOf } from "../../api/schema/object.ts";
import { type Facts, poolFacts } from "../pool/pool-queries.ts";
import { isFailureClass, nextActionOf, passesByItself } from "../build/build-failures.ts";
import type { KeyDifference } from "../build/build-key.ts";
import type { ReadChapter } from "../books/book-text.ts";
import type { BuildPlan } from "../build/build-plan.ts";
import { readFailure } from "../build/build-retry.ts";
import { type BuildRowObjects, buildOfPool, buildRows } from "../build/build-rows.ts";
import type { Explanation, Remedies } from "./explanation.ts";
import { durationText } from "../books/fold-book.ts";
import { describeBuild, shortImage, standingObstacle } from "../config/image-pair.ts";
import { machineOSConfigOf } from "../config/opt-in.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { type BuildState, hasEnded, stateOfBuild } from "../config/build-phase.ts";
import { countText } from "../text/count-text.ts";

/** A forecast of a pool's build from the cluster's objects: no registry is queried. */
export type Forecast =
  | { readonly verdict: "out"; readonly because: string }
  | { readonly verdict: "refused"; readonly problems: readonly string[] }
  | {
      readonly verdict: "planned";
      /** What opted the pool in. */
      readonly because: string;
      /** Rendered configuration. */
      readonly config: string;
      readonly key: string;
      readonly components: Readonly<Record<string, string | number | null>>;
      /** To the image that is rolled out. */
      readonly differences: readonly KeyDifference[];
      readonly plan: BuildPlan;
      readonly containerfile: string | undefined;
    };

/** A forecast as text. */
export function forecastText(pool: string, forecast: Forecast): string {
  if (forecast.verdict === "out") return `${pool} boots no images that are built on the cluster: ${forecast.because}\n`;
  if (forecast.verdict === "refused")
    return `no image can be built for ${pool}:\n${forecast.problems.map((problem, at) => `  ${at + 1}. ${problem}`).join("\n")}\n`;
  const { plan, differences, components, containerfile } = forecast;
  return [
    `${pool} is opted in: ${forecast.because}`,
    `image of ${forecast.config}, key ${forecast.key}`,
    `strategy ${plan.strategy}: ${plan.because}`,
    ...plan.turnedDown.map(({ strategy, because }) => `  not ${strategy}: ${because}`),
    ...(differences.length === 0
      ? []
      : ["differs from the image that is rolled out in", ...differences.map(({ says }) => `  ${says}`)]),
    "made from",
    ...Object.entries(components).flatMap(([name, value]) =>
      value === null || value === "" ? [] : [`  ${name.padEnd(12)} ${String(value)}`],
    ),
    ...(containerfile === undefined
      ? []
      : ["", "Containerfile", ...containerfile.split("\n").map((line) => `  ${line}`)]),
    "",
  ].join("\n");
}

interface BuildFacts {
  readonly pool: MachineConfigPool;
  readonly objects: BuildRowObjects;
  readonly facts: Facts;
  readonly history: readonly Pick<ReadChapter, "chapter" | "startedAt" | "endedAt" | "outcome">[];
}

/** The inputs of the sections of a build's explanation. */
interface BuildView extends BuildFacts {
  readonly forecast: Forecast;
  readonly build: ReturnType<typeof buildOfPool>;
  readonly row: ReturnType<typeof buildRows>[number] | undefined;
  readonly state: BuildState | undefined;
  readonly failure: ReturnType<typeof readFailure>;
  readonly config: MachineOSConfig | undefined;
  /** Why no image can be made from the inputs: what the forecast finds, or the builder, which reads Secrets and images. */
  readonly mistakes: readonly string[];
}

/** What the builder finds wrong with the inputs of an image, a line for each. */
function mistakesIn(config: Pick<MachineOSConfig, "status"> | undefined): readonly string[] {
  const inputs = conditionOf(config?.status?.conditions, machineOSConfigConditions.inputsValid);
  return inputs?.status === "False" ? inputs.message.split("\n") : [];
}

/** What to do about inputs that no image can be made from; `undefined`: nothing is wrong with them. */
export const inputsTodo = (config: Pick<MachineOSConfig, "metadata" | "status">): string | undefined =>
  mistakesIn(config).length === 0
    ? undefined
    : `correct what the condition ${machineOSConfigConditions.inputsValid} of MachineOSConfig ${config.metadata.name} names; the builder takes it on by itself`;

/**
 * The state of a pool's image: the opt-in, the desired image and why it differs, what runs, what failed, what holds the
 * roll-out.
 */
export function explainBuild(forecast: Forecast, about: BuildFacts): Explanation {
  const { pool, objects, facts } = about;
  const { name } = pool.metadata;
  const build = buildOfPool(objects, pool);
  const config = machineOSConfigOf(name, objects.configs);
  const mistakes =
    forecast.verdict === "refused" ? forecast.problems : forecast.verdict === "out" ? [] : mistakesIn(config);
  const view: BuildView = {
    ...about,
    forecast,
    config,
    mistakes,
    build,
    row: buildRows(objects).find((one) => one.pool === name),
    state: build === undefined ? undefined : stateOfBuild(build),
    failure: readFailure(build?.metadata.annotations?.[annotations.buildFailure]),
  };
  const { state } = view;
  return {
    subject: `build of pool/${name}`,
    asOf: timestampOf(facts.now),
    freshness: "Fresh",
    reason:
      state?.reason === undefined || state.reason === ""
        ? mistakes.length > 0
          ? "InputsInvalid"
          : "NoBuild"
        : state.reason,
    headline: headlineOf(view),
    sections: [...wantedSections(view), ...buildSections(view)],
    next: buildNext(view),
    todo: buildTodo(view),
  };
}

const section = (title: string, lines: readonly string[]) => (lines.length === 0 ? [] : [{ title, lines }]);

/** The desired image, and how it would be built. */
function wantedSections({ forecast, row, mistakes }: BuildView): Explanation["sections"] {
  const asked =
    forecast.verdict === "planned"
      ? [`opted in: ${forecast.because}`]
      : forecast.verdict === "out"
        ? [forecast.because]
        : [];
  return [
    ...section("Asked for", [
      ...asked,
      ...(row?.config === undefined || row.config === "" ? [] : [`an image of ${row.config}`]),
    ]),
    ...section("Inputs that have to be corrected", mistakes),
    ...(forecast.verdict === "planned"
      ? [
          ...section("Key", [
            forecast.key,
            ...(forecast.differences.length === 0
              ? []
              : [
                  `differs from the image that is rolled out in ${forecast.differences.map(({ says }) => says).join(", ")}`,
                ]),
          ]),
          ...section("Strategy", [
            `${forecast.plan.strategy}: ${forecast.plan.because}`,
            ...forecast.plan.turnedDown.map(({ strategy, because }) => `not ${strategy}: ${because}`),
          ]),
        ]
      : []),
  ];
}

/** What was built, what failed, and what holds the roll-out of the image. */
function buildSections({ pool, facts, build, row, state, failure }: BuildView): Explanation["sections"] {
  const retries = pool.metadata.annotations?.[annotations.buildRetries];
  const waits = poolFacts(facts, pool.metadata.name)?.selection.waits ?? [];
  return [
    ...section(
      "Build",
      build === undefined
        ? []
        : [
            `${describeBuild(build)}${row?.attempt === undefined || row.attempt === "" ? "" : `, attempt ${row.attempt}`}`,
            ...(retries === undefined ? [] : [`${retries} retries spent`]),
          ],
    ),
    ...section(
      "Last failure",
      failure === undefined || state?.phase === "Succeeded"
        ? []
        : [`${failure.class} in ${failure.step}: ${failure.cause}`, ...failure.excerpt.split("\n").slice(-10)],
    ),
    ...section("Rolled out", row?.image === undefined || row.image === "" ? [] : [shortImage(row.image)]),
    ...section(
      "What holds the roll-out",
      waits.map(({ reason, message, count }) => `${countText(count, "machine")}: ${reason}, ${message}`),
    ),
  ];
}

function buildNext({ facts, history, build, state }: BuildView): readonly string[] {
  const took = medianOf(
    history.flatMap(({ chapter, startedAt, endedAt, outcome }) =>
      chapter === "Build" && endedAt !== undefined && outcome === "Succeeded"
        ? [Date.parse(endedAt) - Date.parse(startedAt)]
        : [],
    ),
  );
  const began = Date.parse(build?.status?.buildStart ?? build?.metadata.creationTimestamp ?? "");
  return [
    ...(state !== undefined && !hasEnded(state)
      ? [`machines get the image when it is built${likelyEnd(began, took, facts.now)}`]
      : []),
    ...nextAttempt(build, state, facts.now),
  ];
}

/** No time in the past: a build that takes longer than others has no likely end. */
export function likelyEnd(began: number, took: number | undefined, now: number): string {
  if (took === undefined || Number.isNaN(began)) return "";
  const usual = `builds of this pool take ${durationText(took)}`;
  return began + took <= now
    ? `; it takes longer than usual (${usual})`
    : `, which is likely around ${timestampOf(began + took)} (${usual})`;
}

/** A build at the limit of its retries keeps the time of its last one. */
export function nextAttempt(
  build: Pick<MachineOSBuild, "metadata"> | undefined,
  state: Pick<BuildState, "phase"> | undefined,
  now: number,
): readonly string[] {
  const again = build?.metadata.annotations?.[annotations.nextAttemptAt];
  if (again === undefined || state === undefined || state.phase === "Failed" || state.phase === "Succeeded") return [];
  return [Date.parse(again) > now ? `it is tried again at ${again}` : "it is tried again when the builder gets to it"];
}

/** Reasons of a build that has not ended and that waits for what its last failure names. */
const afterFailure: ReadonlySet<string> = new Set(["RetryScheduled", "InputChanged"]);

/**
 * What follows a build by itself, and what a person has to do about it: the one answer of every command that explains a
 * build, its MachineOSConfig or its pool's image.
 *
 * @param pool that the image is for. @param now milliseconds since the epoch.
 */
export function buildRemedies(build: MachineOSBuild, pool: string, now: number): Remedies {
  const state = stateOfBuild(build);
  const failure = readFailure(build.metadata.annotations?.[annotations.buildFailure]);
  const next = nextAttempt(build, state, now);
  const start = `mco build start ${pool}`;
  switch (state.phase) {
    case "Succeeded":
      return { next: [], todo: [] };
    case "Failed":
      return {
        next: [],
        todo: [failure === undefined ? state.message : nextActionOf(failure, "end"), `then: ${start}`],
      };
    case "Interrupted":
      return next.length > 0 || state.reason === "Superseded" || state.reason === "OptedOut"
        ? { next, todo: [] }
        : { next: [], todo: [`to have the image built after all: ${start}`] };
    case "Initial":
    case "Prepared":
    case "Building": {
      const of = state.reason === "InputChanged" ? ({ class: "InputChanged" } as const) : failure;
      const isAsked = of !== undefined && afterFailure.has(state.reason) && !passesByItself(of, "again");
      return {
        next: next.length > 0 ? next : ["it continues on its own"],
        todo: isAsked ? [nextActionOf(of, "again")] : [],
      };
    }
  }
}

/** Why no build of a pool's image was begun, and what to do; `undefined`: it begins, or began, by itself. */
export function obstacleOf(config: Pick<MachineOSConfig, "status"> | undefined): string | undefined {
  const standing = standingObstacle(config);
  if (standing === undefined) return undefined;
  return isFailureClass(standing.reason)
    ? `${nextActionOf({ class: standing.reason }, "end")}: ${standing.message}`
    : `fix what it waits for: ${standing.message}`;
}

function buildTodo({ pool, facts, mistakes, build, state, config }: BuildView): readonly string[] {
  const { name } = pool.metadata;
  const hasRun = state !== undefined && build?.spec.machineConfig.name === pool.spec.configuration?.name;
  const obstacle = hasRun ? undefined : obstacleOf(config);
  const correct = config === undefined ? undefined : inputsTodo(config);
  return [
    ...(mistakes.length > 0 ? [correct ?? `correct what is named above of the inputs of pool ${name}`] : []),
    ...(obstacle === undefined ? [] : [obstacle]),
    ...(build === undefined ? [] : buildRemedies(build, name, facts.now).todo),
  ];
}

function headlineOf({ pool: { metadata }, forecast, mistakes, row }: BuildView): string {
  const { name } = metadata;
  if (forecast.verdict === "out") return `Pool ${name} boots no images that are built on the cluster.`;
  if (mistakes.length > 0) return `No image can be built for pool ${name} from the inputs.`;
  return `The image of pool ${name}: ${row?.state ?? "nothing was begun yet"}.`;
}

function medianOf(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
