import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import { annotations, fieldManagers, objects } from "../api/names.ts";
import { pinGrantText } from "../core/images/pin-grant.ts";
import { decideSlots, pinsAtOnce } from "../core/pool/pin-slots.ts";
import { poolsOfSet } from "../core/pool/pinned-sets.ts";
import { relevantOfNode, trimNode, trimPinnedImageSet } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Context, type Controller, machineCoalesceMs, watching } from "../kube/controller.ts";
import { type KubeError, isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";
import { SourceBuckets } from "../ports/source-buckets.ts";
import { writesAtOnce } from "./node-writes.ts";
import { PinMachines } from "./pin-machines.ts";
import { type MachineWrites, WriteFaults, reportNotWritten, writesOfMachine } from "./refused-writes.ts";
import { claims } from "./report-pool.ts";
import { pinnedImagesUnmatched } from "./reports.ts";

/** The only key: it decides about all machines at once. */
const everyMachine = "machines";
/** How many machines are given something in one pass. */
const grantsAtOnce = 200;
/** Turns of one machine in a row that another writer of its Node was faster than, from which that is reported. */
const overtakenInARow = 3;

/**
 * Gives machines the sets of their pool, with the permission to fetch them: to a few of the whole cluster at the same
 * time. The grants lie on the Nodes, so that a controller that starts goes on where the last one ended; it remembers those
 * that it gave, because root on a machine writes them, too.
 */
export function pinnedImageSlotsController(): Controller {
  const machines = new PinMachines();
  const faults = new WriteFaults();
  const reports = { claims: new SourceBuckets(claims) };
  /** Set that no pool has → its uid and labels when that was reported. */
  const unmatched = new Map<string, string>();
  return {
    name: "pinned-image-slots",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ before, after }) => (equalValues(before?.spec, after?.spec) ? [] : [everyMachine]),
      }),
      watching({ resource: PinnedImageSet, keep: trimPinnedImageSet, optional: true, concerns: () => [everyMachine] }),
      watching({
        resource: kubernetes.Node,
        keep: trimNode,
        coalesceMs: machineCoalesceMs,
        concerns: ({ before, after }) =>
          before !== undefined && after !== undefined && equalValues(relevantOfNode(before), relevantOfNode(after))
            ? []
            : [everyMachine],
      }),
      watching({
        resource: MachineConfiguration,
        concerns: ({ before, after }) => (pinsAtOnce(before).most === pinsAtOnce(after).most ? [] : [everyMachine]),
      }),
    ],
    owns: ["Node.metadata.annotations/pinned-images"],

    async reconcile(_key, context): Promise<Outcome> {
      const { caches, clock } = context;
      reportUnmatched(unmatched, context);
      const settings = pinsAtOnce(caches.of(MachineConfiguration).get(objects.machineConfiguration));
      const { pools, turns } = machines.observe(caches, clock.now());
      const decision = decideSlots(pools, settings.most, clock.now(), turns);
      const now = decision.grants.slice(0, grantsAtOnce);
      const memory: MachineWrites = {
        cluster: {
          node: (name) => {
            const node = caches.of(kubernetes.Node).get(name);
            return node === undefined ? undefined : { node };
          },
        },
        reports,
        faults,
        now: () => clock.now(),
      };
      let given = 0;
      faults.begin();
      await eachAtOnce(now, writesAtOnce, async ({ node, grant }) => {
        // Also where the answer is lost, or the machine's Node has no room for it: then others are next.
        const turn = machines.give(node, grant);
        const object = { kind: "Node", name: node } as const;
        const written = await writesOfMachine(object, memory, context, async () => {
          const result = await give(node, pinGrantText(grant), context);
          if (result === "written") {
            faults.wrote(object);
            turn.written();
          } else if (turn.overtaken() >= overtakenInARow) reportNotWritten(node, result, memory, context);
          return result;
        });
        if (written === "written") given += 1;
      });
      faults.end();
      // Others remain, or another writer was first, of something that wakes nobody here.
      if (given < decision.grants.length) return done(1);
      return decision.again === undefined
        ? done()
        : done(Math.max(1, Math.ceil((decision.again - clock.now()) / 1000)));
    },
  };
}

/**
 * Writes a grant; the watch shows it, and the next pass counts it.
 *
 * @returns an answer of the API server: the machine has changed since, and another pass decides.
 */
async function give(
  name: string,
  text: string,
  { kube, caches, log, signal }: Context,
): Promise<"written" | KubeError> {
  const node = caches.of(kubernetes.Node).get(name);
  if (node === undefined) return "written";
  const { uid, resourceVersion } = node.metadata;
  try {
    await kube.patch(
      kubernetes.Node,
      { name },
      {
        type: "merge",
        body: { metadata: { uid, resourceVersion, annotations: { [annotations.pinnedImageSets]: text } } },
      },
      { owner: fieldManagers.pinnedImages, signal },
    );
    return "written";
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    log.debug({ node: name, error }, "pinned images not given now");
    return error;
  }
}

/** A set without a pool has no condition that could say so: its Event does. */
function reportUnmatched(unmatched: Map<string, string>, { caches, report }: Context): void {
  const pools = caches.of(MachineConfigPool).list();
  const sets = caches.of(PinnedImageSet).list();
  for (const set of sets) {
    const { name, uid = "", labels: has = {}, deletionTimestamp } = set.metadata;
    const known = JSON.stringify([uid, has]);
    if (deletionTimestamp !== undefined || poolsOfSet(set, pools).length > 0) unmatched.delete(name);
    else if (unmatched.get(name) !== known) {
      unmatched.set(name, known);
      report(pinnedImagesUnmatched(set));
    }
  }
  const present = new Set(sets.map(({ metadata }) => metadata.name));
  for (const name of unmatched.keys()) if (!present.has(name)) unmatched.delete(name);
}
