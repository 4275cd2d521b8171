import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type Facts, poolFacts } from "../pool/pool-queries.ts";
import { nextActionOf } from "../build/build-failures.ts";
import type { KeyDifference } from "../build/build-key.ts";
import type { ReadChapter } from "../books/book-text.ts";
import type { BuildPlan } from "../build/build-plan.ts";
import { readFailure } from "../build/build-retry.ts";
import { type BuildObjects, buildOfPool, buildRows } from "../build/build-rows.ts";
import type { Explanation } from "./explain.ts";
import { durationText } from "../books/fold-book.ts";
import { describeBuild, shortImage } from "../config/image-pair.ts";
import { type BuildState, hasEnded, stateOfBuild } from "../config/build-phase.ts";

/** What a build of a pool would be, as far as the cluster's objects tell: no registry is asked. */
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

/** A forecast as people read it. */
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
  readonly objects: BuildObjects;
  readonly facts: Facts;
  readonly history: readonly Pick<ReadChapter, "chapter" | "startedAt" | "endedAt" | "outcome">[];
}

/** What the sections of a build's explanation are written from. */
interface BuildView extends BuildFacts {
  readonly forecast: Forecast;
  readonly build: ReturnType<typeof buildOfPool>;
  readonly row: ReturnType<typeof buildRows>[number] | undefined;
  readonly state: BuildState | undefined;
  readonly failure: ReturnType<typeof readFailure>;
}

/**
 * Where the image of a pool stands: how it was asked for, what is wanted and why that is another image, what runs, what
 * failed, what holds the roll-out.
 */
export function explainBuild(forecast: Forecast, about: BuildFacts): Explanation {
  const { pool, objects, facts } = about;
  const { name } = pool.metadata;
  const build = buildOfPool(objects, pool);
  const view: BuildView = {
    ...about,
    forecast,
    build,
    row: buildRows(objects).find((one) => one.pool === name),
    state: build === undefined ? undefined : stateOfBuild(build),
    failure: readFailure(build?.metadata.annotations?.[annotations.buildFailure]),
  };
  const { row, state } = view;
  return {
    subject: `build of pool/${name}`,
    asOf: timestampOf(facts.now),
    freshness: "Fresh",
    reason:
      state?.reason === undefined || state.reason === ""
        ? forecast.verdict === "refused"
          ? "InputsInvalid"
          : "NoBuild"
        : state.reason,
    headline: headlineOf(name, forecast, row?.state),
    sections: [...wantedSections(view), ...buildSections(view)],
    next: buildNext(view),
    todo: buildTodo(view),
  };
}

const section = (title: string, lines: readonly string[]) => (lines.length === 0 ? [] : [{ title, lines }]);

/** The image that is wanted, and how it would be made. */
function wantedSections({ forecast, row }: BuildView): Explanation["sections"] {
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
    ...section("Inputs that have to be mended", forecast.verdict === "refused" ? forecast.problems : []),
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
      waits.map(({ reason, message, count }) => `${count} machines: ${reason}, ${message}`),
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
  const again = build?.metadata.annotations?.[annotations.nextAttemptAt];
  return [
    ...(state !== undefined && !hasEnded(state)
      ? [
          `machines get the image when it is built${took === undefined || Number.isNaN(began) ? "" : `, which is likely around ${timestampOf(Math.max(facts.now, began + took))} (builds of this pool take ${durationText(took)})`}`,
        ]
      : []),
    ...(again === undefined ? [] : [`it is tried again at ${again}`]),
  ];
}

const buildTodo = ({ pool, forecast, state, failure }: BuildView): readonly string[] => [
  ...(forecast.verdict === "refused" ? ["mend the inputs that are named"] : []),
  ...(state?.phase === "Failed" && failure !== undefined
    ? [nextActionOf(failure), `then: mco build start ${pool.metadata.name}`]
    : []),
];

function headlineOf(pool: string, forecast: Forecast, state: string | undefined): string {
  if (forecast.verdict === "out") return `Pool ${pool} boots no images that are built on the cluster.`;
  if (forecast.verdict === "refused") return `No image can be built for pool ${pool} from what was given.`;
  return `The image of pool ${pool}: ${state ?? "nothing was begun yet"}.`;
}

function medianOf(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
