import { kubernetes } from "../api/foreign/kubernetes.ts";
import { namespace } from "../api/names.ts";
import type { TaskOutcome } from "../core/operator/cluster-operator-status.ts";
import type { Context, Controller, Watch } from "../kube/controller.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { ownNamespaceObject } from "./cluster-sources.ts";
import { type OperatorMemory, operatorMemory } from "./operator-memory.ts";
import { type OperatorOptions, authoritiesWaitMsOf } from "./operator-options.ts";
import { reportPass } from "./operator-status.ts";
import { type TaskContext, runTask } from "./operator-task.ts";
import { watchClusterOperators, watchNamespace } from "./operator-watches.ts";
import { operatorTasks } from "./tasks/index.ts";

/** The next pass starts after this time at the latest, for changes that no watch reports. */
const sweepSeconds = 300;
/** A task that fails is tried again after this time. */
const failedRetrySeconds = 5;
/** How often the operator checks whether the builder has cleaned up after the last pool. */
const builderLookSeconds = 5;

/**
 * Keeps the suite installed and its settings in force. A pass runs all tasks in order; a task that fails is reported
 * and does not keep the others from their work.
 */
export function operatorController(options: OperatorOptions): Controller {
  const memory = operatorMemory();
  return {
    name: "operator",
    watches: watchesFor(memory),
    owns: [
      "ClusterOperator.status",
      "ControllerConfig.spec",
      "MachineConfiguration.status.nodeDisruptionPolicyStatus",
      "MachineConfigNode.spec.node",
    ],

    start(_add, { clock }) {
      memory.now = () => clock.now();
    },

    reconcile: (_key, context) => pass({ ...context, options, memory }),
  };
}

/** What the tasks watch, each once; the first one is the kind whose key `reconcile` gets. */
function watchesFor(memory: OperatorMemory): readonly [Watch, ...Watch[]] {
  const watches = [...new Set([watchClusterOperators, ...operatorTasks.flatMap((task) => task.watches)])];
  const [namespaces, ...others] = [watchNamespace, ...watches.filter((each) => each !== watchNamespace)].flatMap(
    (make) => make(memory),
  );
  if (namespaces === undefined) throw new Error("bug: the operator watches no namespace");
  return [namespaces, ...others];
}

async function pass(context: TaskContext): Promise<Outcome> {
  // An administrator who removes the suite removes its namespace: do not recreate deleted objects now.
  if (isBeingRemoved(context)) return done();
  const { log, memory } = context;
  memory.isHandingOver = false;
  const outcomes: TaskOutcome[] = [];
  for (const task of operatorTasks) outcomes.push(await runTask(task, context));
  await reportPass(outcomes, context);
  for (const outcome of outcomes)
    if (outcome.kind === "failed") log.warn({ task: outcome.task, message: outcome.message }, "sync task failed");
  return done(nextPassSeconds(outcomes, context));
}

const isBeingRemoved = ({ caches }: Context): boolean =>
  caches.of(kubernetes.Namespace, ownNamespaceObject).get(namespace)?.metadata.deletionTimestamp !== undefined;

function nextPassSeconds(outcomes: readonly TaskOutcome[], { memory, options }: TaskContext): number {
  if (memory.heldUp.size > 0 || outcomes.some(({ kind }) => kind === "failed")) return failedRetrySeconds;
  if (memory.changingAuthorities !== undefined) return authoritiesWaitMsOf(options) / 1000;
  return memory.builderUnwantedSince === undefined ? sweepSeconds : builderLookSeconds;
}
