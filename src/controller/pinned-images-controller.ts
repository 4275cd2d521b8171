import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import { annotations, fieldManagers } from "../api/names.ts";
import { type PinProgress, pinProgress } from "../core/pool/pin-slots.ts";
import { pinnedPoolStatus } from "../core/pool/pinned-pool-status.ts";
import { type SetsOfPool, poolsOfSet, setsOfPool } from "../core/pool/pinned-sets.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimNode, trimPinnedImageSet } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { PinMachines } from "./pin-machines.ts";

/** A pool's progress is written at most so often: each machine of 5,000 changes it. */
const progressSeconds = 10;
/** Delay before a write is tried again that another one came before. */
const overtakenSeconds = 1;

/** A change of a set concerns the pools that had it and those that have it now. */
const watchOfSets = watching({
  resource: PinnedImageSet,
  keep: trimPinnedImageSet,
  // A cluster whose definitions are another's may lack the kind.
  optional: true,
  concerns: ({ before, after }, caches) => {
    const pools = caches.of(MachineConfigPool).list();
    return [...new Set([before, after].flatMap((set) => (set === undefined ? [] : poolsOfSet(set, pools))))];
  },
});

/** What a node says of its pinned images, and what decides whether it may go on. */
const saidOf = (node: Node | undefined): string =>
  node === undefined
    ? ""
    : JSON.stringify([
        node.metadata.annotations?.[annotations.pinnedImageSets],
        node.metadata.annotations?.[annotations.pinnedImageSetsAnswer],
      ]);

/**
 * Keeps `spec.pinnedImageSets` of each pool equal to the names of the sets that it selects, and reports in the pool how
 * far its machines are.
 */
export function pinnedImagesController(): Controller {
  const machines = new PinMachines();
  /** Pool → when its progress was last written, in milliseconds of the monotonic clock. */
  const written = new Map<string, number>();
  return {
    name: "pinned-images",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }) =>
          before !== undefined &&
          after !== undefined &&
          before.metadata.generation === after.metadata.generation &&
          equalValues(before.status?.poolSynchronizersStatus, after.status?.poolSynchronizersStatus)
            ? []
            : [key],
      }),
      watchOfSets,
      watching({
        resource: kubernetes.Node,
        keep: trimNode,
        concerns: ({ before, after }, caches) => {
          const isNews =
            before === undefined ||
            after === undefined ||
            saidOf(before) !== saidOf(after) ||
            !equalValues(before.metadata.labels, after.metadata.labels);
          const pools = isNews ? caches.of(MachineConfigPool).list() : [];
          return [before, after].flatMap((node) => {
            const membership = node === undefined || pools.length === 0 ? undefined : poolOfNode(node, pools);
            return membership?.verdict === "member" ? [membership.pool] : [];
          });
        },
      }),
    ],
    owns: [
      "MachineConfigPool.spec.pinnedImageSets",
      "MachineConfigPool.status.poolSynchronizersStatus",
      "MachineConfigPool.status.conditions/PinnedImageSetsDegraded",
    ],

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      const pool = caches.of(MachineConfigPool).get(name);
      if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) {
        written.delete(name);
        return done();
      }
      const sets = setsOfPool(pool, caches.of(PinnedImageSet).list());
      // Another writer was first, of something that wakes nobody here.
      if (sets.verdict === "sets" && !(await writeNames(pool, sets.names, context))) return done(overtakenSeconds);
      const pins = machines.pools(caches).find((one) => one.pool === name);
      if (pins === undefined) return done();
      const progress = pinProgress(pins, context.clock.now());
      return done(await writeStatus(pool, sets, progress, written, context));
    },
  };
}

/** @returns whether the pool names them now; otherwise another writer was first. */
async function writeNames(
  pool: MachineConfigPool,
  names: readonly string[],
  { kube, log, signal }: Context,
): Promise<boolean> {
  const has = (pool.spec.pinnedImageSets ?? []).map(({ name }) => name);
  if (equalValues(has, names)) return true;
  const { name, resourceVersion } = pool.metadata;
  try {
    await kube.patch(
      MachineConfigPool,
      { name },
      {
        type: "merge",
        body: {
          metadata: { resourceVersion },
          spec: { pinnedImageSets: names.length === 0 ? null : names.map((each) => ({ name: each })) },
        },
      },
      { owner: fieldManagers.pinnedImages, signal },
    );
    log.info({ pool: name, sets: names }, "pinned image sets of the pool written");
    return true;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return false;
  }
}

/**
 * Writes how far the pool's machines are.
 *
 * @returns seconds after which it is to be written, where it was written only just now.
 */
async function writeStatus(
  pool: MachineConfigPool,
  sets: SetsOfPool,
  progress: PinProgress,
  written: Map<string, number>,
  { kube, clock, signal }: Context,
): Promise<number | undefined> {
  const { name } = pool.metadata;
  const change = (object: MachineConfigPool) => {
    const status = pinnedPoolStatus(object, sets, progress, clock.now());
    return status === undefined ? undefined : { status };
  };
  if (change(pool) === undefined) return undefined;
  const now = clock.monotonic();
  const since = (now - (written.get(name) ?? -Infinity)) / 1000;
  if (since < progressSeconds) return progressSeconds - since;
  written.set(name, now);
  await updateObject(kube, MachineConfigPool, pool.metadata, change, {
    subresource: "status",
    owner: fieldManagers.pinnedImages,
    cached: pool,
    signal,
  });
  return undefined;
}
