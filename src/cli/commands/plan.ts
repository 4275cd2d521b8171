import { type OSImageForecast, forecastStream, onStream, streamLines } from "../../core/preview/judge-stream.ts";
import { pinnedImagesLines } from "../../core/preview/pinned-images-lines.ts";
import { type ClusterForecast, type ClusterObjects, planCluster } from "../../core/preview/plan-cluster.ts";
import { type PinnedImagesPlan, planPinnedImages } from "../../core/preview/plan-pinned-images.ts";
import { type PlannedRegistries, planRegistries } from "../../core/preview/plan-registries.ts";
import type { SizedPool } from "../../core/preview/size-pinned-images.ts";
import {
  type RegistryObjects,
  isRegistryObject,
  objectNameOf,
  withRegistryManifests,
} from "../../core/runtime/registry-objects.ts";
import { outputFormat, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { processIo } from "../io.ts";
import { type MarkdownComment, markdownComment } from "../markdown.ts";
import { describePlan, fatesOf, forecastWithoutSecrets } from "../plan/describe-plan.ts";
import { judgeOSImages, osImageLines } from "../plan/judge-os-images.ts";
import { type PlanSource, type PlannedChange, readChange } from "../plan/read-change.ts";
import { readExtensionsImage, readOSImage } from "../plan/read-os-image.ts";
import { sizedPinnedImages } from "../plan/size-pinned-images.ts";
import { readRegistryObjects } from "../registry-objects.ts";
import { countText } from "../../core/text/count-text.ts";
import { withoutPipelineCommands } from "../../core/text/pipeline-commands.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.plan);
  const format = outputFormat(values, ["text", "json", "markdown"]);
  const plan = await planOf(await readChange(values), values["os-stream"], values.pool);
  processIo().out(withoutPipelineCommands({ text: textOf, json: jsonOf, markdown: commentOf }[format](plan)));
  if (cannotBeApplied(plan)) return exitCodes.failed;
  const changes = plan.forecast.pools.some(({ verdict }) => verdict === "changes") || plan.pinned.pools.length > 0;
  return changes ? exitCodes.change : exitCodes.ok;
}

/** Everything that is known of a change. */
interface Plan {
  readonly forecast: ClusterForecast;
  readonly pinned: { readonly pools: readonly SizedPool[]; readonly atOnce: number };
  /** New needs of the change that OS images must meet. */
  readonly osImages: readonly OSImageForecast[];
  readonly stream:
    | { readonly name: string; readonly image: string; readonly pools: readonly OSImageForecast[] }
    | undefined;
}

/** @param streamName the OS image stream that pools are to follow. @param pools those pools; empty: all of them. */
async function planOf(change: PlannedChange, streamName: string | undefined, pools: readonly string[]): Promise<Plan> {
  const streamed = streamName === undefined ? undefined : onStream(change.after, streamName, pools);
  if (streamed?.verdict === "refused") throw usageError(streamed.reason);
  const { before } = change;
  const wanted = streamed?.objects ?? change.after;
  const registries = await plannedRegistries(change, wanted);
  const after = { ...wanted, machineConfigs: registries.machineConfigs };
  const pinned = change.refusals.length === 0 ? planPinnedImages(before, wanted) : noPinnedImages;
  const planned = planCluster(before, after);
  const factsOf = (image: string) => imageFacts(image, change, readOSImage);
  return {
    forecast: {
      ...planned,
      refusals: [...change.refusals, ...registries.refusals, ...registries.leftOut, ...planned.refusals],
      warnings: [
        ...change.warnings,
        ...registries.warnings,
        ...planned.warnings,
        ...pinned.warnings,
        ...change.ignored.map((kind) => `${kind} objects are not part of this plan`),
      ],
    },
    pinned: { pools: await sizedPinnedImages(pinned.pools, wanted, change.source), atOnce: pinned.atOnce },
    osImages: await judgeOSImages(planned, streamed?.pools ?? [], factsOf),
    stream:
      streamed === undefined
        ? undefined
        : {
            name: streamName ?? "",
            image: streamed.image,
            pools: await forecastStream(before, after, streamed.pools, {
              os: await factsOf(streamed.image),
              extensions: () => imageFacts(streamed.extensionsImage, change, readExtensionsImage),
            }),
          },
  };
}

/** Whether an object is refused, a pool would not render, or machines refuse it or would break. */
const cannotBeApplied = ({ forecast, osImages, stream }: Plan): boolean =>
  forecast.refusals.length > 0 ||
  [...osImages, ...(stream?.pools ?? [])].some(({ findings }) =>
    findings.some(({ verdict }) => verdict === "breaks"),
  ) ||
  forecast.pools.some(
    (pool) => pool.verdict === "refused" || (pool.verdict === "changes" && pool.irreconcilable.length > 0),
  );

const jsonOf = ({ forecast, pinned, osImages, stream }: Plan): string =>
  `${JSON.stringify({
    apiVersion: "cli.mco/v1",
    kind: "Plan",
    ...forecast,
    pools: forecast.pools.map(forecastWithoutSecrets),
    pinnedImages: pinned.pools,
    osImages,
    ...(stream === undefined ? {} : { osStream: stream.pools }),
  })}\n`;

function textOf(plan: Plan): string {
  const { objects, pools } = describePlan(plan.forecast);
  const sections = [objects, ...pools.map(({ lines }) => lines), imageLines(plan)];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

/** The lines about images: those that machines boot, and pinned ones. */
const imageLines = ({ pinned, osImages, stream }: Plan): readonly string[] => [
  ...osImageLines(osImages),
  ...pinnedImagesLines(pinned.pools, pinned.atOnce),
  ...(stream === undefined ? [] : streamLines(stream.name, stream.image, stream.pools)),
];

/** The plan as a comment: what happens to machines in a table, and why below it. */
function commentOf(plan: Plan): string {
  const { objects, pools } = describePlan(plan.forecast);
  const changed = pools.filter(({ pool }) => pool.verdict !== "unchanged");
  const count = pools.length === 0 ? "no pool" : `${changed.length} of ${countText(pools.length, "pool")}`;
  return markdownComment({
    title: cannotBeApplied(plan) ? "This change cannot be applied" : `This change concerns ${count}`,
    columns: ["pool", "configuration", "machines", "what happens"],
    rows: pools.flatMap(({ pool }) => rowsOf(pool)),
    language: "text",
    parts: [
      { title: "objects", lines: objects },
      ...changed.map(({ pool, lines }) => ({ title: `pool ${pool.pool}`, lines })),
      { title: "images", lines: imageLines(plan) },
    ].filter(({ lines }) => lines.length > 0),
  });
}

function rowsOf(pool: ClusterForecast["pools"][number]): MarkdownComment["rows"] {
  const name = { code: pool.pool };
  switch (pool.verdict) {
    case "unchanged":
      return [[name, { code: pool.rendered }, "", "nothing"]];
    case "refused":
      return [[name, "would not render", "", ""]];
    case "changes": {
      const fates = fatesOf(pool);
      if (fates.length === 0) return [[name, { code: pool.to }, "0", ""]];
      return fates.map(({ fate, nodes }) => [name, { code: pool.to }, String(nodes.length), { code: fate }]);
    }
  }
}

/** The facts that the credentials of the cluster give of an image. */
async function imageFacts<T>(
  image: string,
  { source, before }: PlannedChange,
  read: (image: string, around: Parameters<typeof readOSImage>[1]) => Promise<T>,
): Promise<T | { readonly verdict: "unread"; readonly problem: string }> {
  if (source === undefined) return { verdict: "unread", problem: "no cluster is asked for its credentials" };
  const { kube, close } = await connect({ kubeconfig: source.kubeconfig, directory: source.dir, component: "plan" });
  try {
    return await read(image, { kube, objects: before, signal: new AbortController().signal });
  } finally {
    close();
  }
}

/** The MachineConfigs that the controller would write once the manifests were applied. */
async function plannedRegistries(
  { manifests, from, source }: PlannedChange,
  around: ClusterObjects,
): Promise<PlannedRegistries> {
  const changed = manifests.filter(isRegistryObject);
  if (changed.length === 0) return { machineConfigs: around.machineConfigs, refusals: [], leftOut: [], warnings: [] };
  const before = source === undefined ? withRegistryManifests(from) : await storedRegistries(source);
  const written = new Set(changed.map(objectNameOf));
  return planRegistries({ before, after: withRegistryManifests(manifests, before), written }, around);
}

async function storedRegistries({ kubeconfig, dir }: NonNullable<PlanSource>): Promise<RegistryObjects> {
  const { kube, close } = await connect({ kubeconfig, directory: dir, component: "plan" });
  try {
    return await readRegistryObjects(kube);
  } finally {
    close();
  }
}

const noPinnedImages: PinnedImagesPlan = { pools: [], warnings: [], atOnce: 0 };
