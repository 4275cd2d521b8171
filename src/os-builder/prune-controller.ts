import { McoError } from "../api/errors.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, labels, machineOSConfigConditions as types } from "../api/names.ts";
import { readRendered } from "../core/build/build-inputs.ts";
import { type PrunePlan, prunePlan, pruneRules } from "../core/build/build-prune.ts";
import { hostOfPullspec } from "../core/images/image-reference.ts";
import { pullspecsIn } from "../core/images/pullspecs-in.ts";
import { emptyNodeConfig } from "../core/config/node-config.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type Context, type Controller, type Watch, machineCoalesceMs, watching } from "../kube/controller.ts";
import { isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";
import type { BuildBackend } from "./backend.ts";
import { authIn, buildSettingsIn, imagesOfNodes, ownNamespace, poolWatches } from "./cluster-facts.ts";
import type { OpenImages } from "./images.ts";
import { WantObserver } from "./observe-want.ts";
import { annotateBuild, writeConfigStatus } from "./write-objects.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { listText } from "../core/text/list-text.ts";
import { defined } from "../api/schema/defined.ts";
import { buildPruned, imageNotPruned } from "./reports.ts";

/** There is one item to reconcile: everything. */
const everything = "builds";
const longestSeconds = 3600;
const soonestSeconds = 5;
/** A digest that cannot be deleted is reported once in this time. */
const reportAgainMs = 86_400_000;
/** Leftovers of failed builds are removed after this. */
const inspectionMs = 86_400_000;
/** Registries that images are removed from at once: a slow one holds up no other. */
const registriesAtOnce = 16;
const followed: ReadonlySet<string> = new Set([MachineOSBuild.kind, MachineOSConfig.kind, kubernetes.Node.kind]);

/** What the controller works with, and remembers between two passes. */
interface PruneContext extends Context {
  readonly backends: readonly BuildBackend[];
  readonly images: OpenImages;
  /** Images that a registry kept, and when that was reported. */
  readonly reported: Map<string, number>;
  /** Failed builds whose objects were removed. */
  readonly inspected: Set<string>;
}

const once = () => [everything];

const pruneWatches: readonly [Watch, ...Watch[]] = [
  watching({ resource: MachineOSBuild, concerns: once }),
  watching({ resource: MachineOSConfig, concerns: once }),
  // Inputs of the access to registries.
  ...poolWatches
    .filter(({ resource }) => !followed.has(resource.kind))
    .map((watch) => ({ ...watch, concerns: () => [] })),
  watching({
    resource: MachineConfigNode,
    coalesceMs: machineCoalesceMs,
    concerns: ({ before, after }) => (imagesIn(before) === imagesIn(after) ? [] : [everything]),
  }),
  watching({
    resource: kubernetes.Node,
    keep: trimNode,
    coalesceMs: machineCoalesceMs,
    concerns: ({ before, after }) => (imagesIn(before) === imagesIn(after) ? [] : [everything]),
  }),
];

/** Removes builds and images that nothing needs any more: an image only after it was seen unused twice. */
export function pruneController(options: {
  readonly backends: readonly BuildBackend[];
  readonly images: OpenImages;
}): Controller {
  const memory = { reported: new Map<string, number>(), inspected: new Set<string>() };
  return {
    name: "prune",
    watches: pruneWatches,
    owns: ["MachineOSBuild.metadata.annotations/prune-after", "MachineOSConfig.status.conditions/Pruned"],
    reconcile: (_key, context) => prune({ ...context, ...options, ...memory }),
  };
}

async function prune(context: PruneContext): Promise<Outcome> {
  const { caches, clock } = context;
  const configs = caches.of(MachineOSConfig).list();
  const now = clock.now();
  const { keptBuilds, pruneDryRun } = buildSettingsIn(caches);
  const builds = caches.of(MachineOSBuild).list();
  const plan = prunePlan({
    builds,
    machineOSConfigs: new Map(
      configs.map(({ metadata, status }) => [
        metadata.name,
        { current: metadata.annotations?.[annotations.currentMachineOSBuild], image: status?.currentImagePullSpec },
      ]),
    ),
    used: [...imagesOfNodes(caches), ...parentsOf(builds)],
    now,
    rules: { ...pruneRules, ...keptBuilds },
  });
  if (pruneDryRun) {
    await reportDryRun(plan, configs, context);
    return done(longestSeconds);
  }
  const freed = await carryOut(plan, context);
  await removeInspected(builds, now, context);
  await removeDigests(context);
  await reportPruned(plan, configs, freed, context);
  if (plan.nextAt === undefined) return done(longestSeconds);
  return done(Math.min(longestSeconds, Math.max(soonestSeconds, (plan.nextAt - now) / 1000)));
}

/** @returns bytes of the images that went. */
async function carryOut(plan: PrunePlan, context: PruneContext): Promise<number> {
  for (const name of plan.unmark) await mark(name, null, context);
  for (const { build, after } of plan.mark) await mark(build, after, context);
  // How a registry is reached is a matter of each MachineOSConfig.
  const byRegistry = Map.groupBy(
    plan.remove,
    ({ build, image }) => `${image === undefined ? "" : hostOfPullspec(image)} ${build.spec.machineOSConfig.name}`,
  );
  const freed = await eachAtOnce([...byRegistry.values()], registriesAtOnce, async (removals) => {
    let bytes = 0;
    for (const { build, image } of removals) {
      const outcome = await remove(build, image, context);
      // One that does not answer would be waited for once for each of its images.
      if (outcome === "again") break;
      if (outcome === "removed" && image !== undefined) bytes += bytesOf(build);
    }
    return bytes;
  });
  return freed.reduce((sum, bytes) => sum + bytes, 0);
}

/** Removes leftovers of failed builds once they have been available for inspection for a while. */
async function removeInspected(builds: readonly MachineOSBuild[], now: number, context: PruneContext): Promise<void> {
  const { backends, inspected, signal } = context;
  for (const build of builds) {
    const { phase } = stateOfBuild(build);
    const ended = Date.parse(build.status?.buildEnd ?? build.metadata.creationTimestamp ?? "");
    if (phase !== "Failed" || now - ended < inspectionMs || inspected.has(build.metadata.uid ?? "")) continue;
    for (const backend of backends)
      await backend.cleanup({ build: build.metadata.name }, { keepForInspection: false }, signal);
    inspected.add(build.metadata.uid ?? "");
  }
}

/** Reports what would be removed, and removes nothing. */
async function reportDryRun(
  plan: PrunePlan,
  configs: readonly MachineOSConfig[],
  context: PruneContext,
): Promise<void> {
  const going = [...plan.remove.map(({ build }) => build.metadata.name), ...plan.mark.map(({ build }) => build)];
  for (const config of configs) {
    const own = going
      .filter((name) => context.caches.of(MachineOSBuild).get(name)?.spec.machineOSConfig.name === config.metadata.name)
      .sort();
    await writeConfigStatus(
      config,
      [
        {
          type: types.pruned,
          status: "False",
          reason: "DryRun",
          message: own.length === 0 ? "nothing would go" : `would go: ${listText(own, 20)}`,
        },
      ],
      context,
    );
  }
}

/** The reference hands digests on in ConfigMaps, and leaves them. */
async function removeDigests({ caches, kube, signal }: Context): Promise<void> {
  for (const { metadata } of caches.of(kubernetes.ConfigMap, ownNamespace).list()) {
    if (metadata.name.startsWith("digest-") && metadata.labels?.[labels.onClusterLayering] !== undefined)
      await kube.delete(kubernetes.ConfigMap, metadata, { signal });
  }
}

async function mark(name: string, after: string | null, context: PruneContext): Promise<void> {
  const build = context.caches.of(MachineOSBuild).get(name);
  if (build !== undefined) await annotateBuild(build, { [annotations.pruneAfter]: after }, context);
}

/**
 * The image first: once a build is gone, nothing records which image is left.
 *
 * @returns `again`: the registry of the image did not answer.
 */
async function remove(
  build: MachineOSBuild,
  image: string | undefined,
  context: PruneContext,
): Promise<"removed" | "kept" | "again"> {
  const { kube, report, signal } = context;
  const { name } = build.metadata;
  if (image !== undefined) {
    const outcome = await deleteImage(build, image, context);
    if (outcome === "again") return "again";
  }
  for (const backend of context.backends) await backend.cleanup({ build: name }, { keepForInspection: false }, signal);
  try {
    // It must not have become needed meanwhile.
    await kube.delete(MachineOSBuild, build.metadata, {
      ...defined({ resourceVersion: build.metadata.resourceVersion }),
      signal,
    });
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return "kept";
    throw error;
  }
  report(buildPruned(build, image));
  return "removed";
}

/** @returns `again`: the registry did not answer. A registry that refuses keeps nothing from going on. */
async function deleteImage(
  build: MachineOSBuild,
  image: string,
  context: PruneContext,
): Promise<"gone" | "kept" | "again"> {
  const { caches, clock, log, signal } = context;
  const observer = new WantObserver(context.images, clock);
  const config = caches.of(MachineOSConfig).get(build.spec.machineOSConfig.name);
  const rendered = caches.of(MachineConfig).get(build.spec.machineConfig.name);
  const read = rendered === undefined ? undefined : readRendered(rendered);
  const content = read?.verdict === "read" ? read.config : emptyNodeConfig;
  const access =
    config === undefined
      ? {
          pool: build.spec.machineOSConfig.name,
          pull: undefined,
          push: authIn(caches, build.metadata.annotations?.[annotations.pushSecret], build.spec.machineOSConfig.name),
          registries: undefined,
          policy: undefined,
          certificates: {},
          trust: [],
          architecture: "amd64",
        }
      : observer.access(config, content, "amd64", caches);
  try {
    const outcome = await context.images(access).delete(image, signal);
    if (outcome === "deleted" || outcome === "absent") return "gone";
    reportKept(image, outcome, build, context);
    return "kept";
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
    log.warn({ image, error }, "image not deleted, trying again");
    reportKept(image, error.message, build, context);
    return "again";
  }
}

function reportKept(
  image: string,
  why: string,
  build: MachineOSBuild,
  { report, clock, reported }: PruneContext,
): void {
  const last = reported.get(image);
  if (last !== undefined && clock.now() - last < reportAgainMs) return;
  reported.set(image, clock.now());
  const oldest = reported.keys().next();
  if (reported.size > 256 && oldest.done !== true) reported.delete(oldest.value);
  report(imageNotPruned(build, image, why));
}

async function reportPruned(
  plan: PrunePlan,
  configs: readonly MachineOSConfig[],
  freed: number,
  context: PruneContext,
): Promise<void> {
  for (const config of configs) {
    const of = (name: string) =>
      context.caches.of(MachineOSBuild).get(name)?.spec.machineOSConfig.name === config.metadata.name;
    const kept = [...plan.kept.keys()].filter(of).length;
    const marked = plan.mark.filter(({ build }) => of(build)).length;
    const removed = plan.remove.filter(({ build }) => build.spec.machineOSConfig.name === config.metadata.name).length;
    if (removed === 0 && config.status?.conditions?.some(({ type }) => type === types.pruned) === true) continue;
    const message = `${removed} builds removed${freed === 0 ? "" : `, ${freed} bytes of images freed`}; ${kept} kept, ${marked} marked`;
    if (removed > 0 || marked > 0)
      await writeConfigStatus(config, [{ type: types.pruned, status: "True", reason: "Pruned", message }], context);
  }
}

const imagesIn = (
  object:
    | {
        readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
        readonly spec?: unknown;
        readonly status?: unknown;
      }
    | undefined,
): string => {
  const found =
    JSON.stringify([object?.metadata.annotations ?? {}, object?.spec ?? {}, object?.status ?? {}]).match(
      /sha256:[0-9a-f]{64}/g,
    ) ?? [];
  return [...new Set(found)].sort().join();
};

/** Images that current runs are based on. */
function parentsOf(builds: readonly MachineOSBuild[]): readonly string[] {
  return builds
    .filter((build) => !hasEnded(stateOfBuild(build)))
    .flatMap(({ metadata }) => pullspecsIn(metadata.annotations?.[annotations.buildBecause] ?? ""));
}

function bytesOf({ metadata }: MachineOSBuild): number {
  const bytes = /"bytes":(\d{1,15})/.exec(metadata.annotations?.[annotations.imageFacts] ?? "")?.[1];
  return bytes === undefined ? 0 : Number(bytes);
}
