import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { fieldManagers, labels, objects } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { type TaskOutcome, clusterOperatorConditions } from "../core/operator/cluster-operator-status.ts";
import { extensionOf, initialConditions, versionsOf } from "../core/operator/operator-report.ts";
import { type VersionStep, versionStep } from "../core/operator/version-step.ts";
import { type Facts, factsAbout } from "../core/pool/pool-queries.ts";
import { equalValues } from "../ignition/canonical.ts";
import { updateObject } from "../kube/kube-client.ts";
import { relatedObjects } from "./manifests.ts";
import type { TaskContext } from "./operator-task.ts";
import {
  installBegun,
  operatorDegraded,
  operatorVersionChanged,
  taskFailed,
  taskRecovered,
  upgradeBegun,
  versionReached,
} from "./reports.ts";

const owner = fieldManagers.operator;
const { clusterOperator: name } = objects;

/** Reports what a pass has found: lines about its tasks, the way to the version, and the ClusterOperator. */
export async function reportPass(outcomes: readonly TaskOutcome[], context: TaskContext): Promise<void> {
  const facts = factsAbout(context.memory.cluster, context.clock.now());
  reportTasks(outcomes, context);
  const existing = context.caches.of(ClusterOperator).get(name) ?? (await newClusterOperator(context));
  const step = versionStep(context.options.version, existing, outcomes);
  reportVersion(step, existing, facts, context);
  const after = await writeStatus({ existing, reached: step.reached, outcomes, facts }, context);
  const before = conditionOf(existing.status?.conditions, "Degraded");
  const degraded = conditionOf(after?.status?.conditions, "Degraded");
  if (after !== undefined && degraded?.status === "True" && degraded.message !== before?.message)
    context.report(operatorDegraded(after, degraded.reason ?? "", degraded.message ?? ""));
}

/** What is needed of the operator's context to report on its tasks. */
interface ReportingTasks {
  readonly report: TaskContext["report"];
  readonly memory: Pick<TaskContext["memory"], "failing">;
  readonly options: Pick<TaskContext["options"], "identity">;
}

/** One line when a task begins to fail, and one when it works again. */
export function reportTasks(
  outcomes: readonly TaskOutcome[],
  { report, memory: { failing }, options }: ReportingTasks,
): void {
  for (const outcome of outcomes) {
    const { task } = outcome;
    const { identity } = options;
    if (outcome.kind === "failed" && !failing.has(task)) {
      failing.add(task);
      report(taskFailed(identity, task, outcome.message));
    } else if (outcome.kind === "done" && failing.delete(task)) report(taskRecovered(identity, task));
  }
}

async function newClusterOperator({ kube, clock, report, signal, options }: TaskContext): Promise<ClusterOperator> {
  const { version } = options;
  const made = await kube.apply(ClusterOperator, { metadata: { name }, spec: {} }, { owner, signal });
  if (made.status?.conditions !== undefined) return made;
  report(installBegun(version));
  return kube.patch(
    ClusterOperator,
    { name },
    { type: "merge", body: { status: { conditions: initialConditions(clock.now()) } } },
    { subresource: "status", owner, signal },
  );
}

function reportVersion(step: VersionStep, operator: ClusterOperator, facts: Facts, context: TaskContext): void {
  const { report, memory, options } = context;
  const notify = (way: string) => report(operatorVersionChanged(operator, way));
  switch (step.step) {
    case "arrivedBefore":
    case "installing":
      return;
    case "upgrading":
      if (memory.reported.upgradeBegan) return;
      memory.reported.upgradeBegan = true;
      report(upgradeBegun(step.reached, options.version, step.isBegun));
      notify(`on its way from ${step.reached} to ${options.version}`);
      return;
    case "arrived":
      notify(`at ${options.version}`);
      if (memory.reported.arrival) return;
      memory.reported.arrival = true;
      report(versionReached(step.from, options.version, poolsOfUpgrade(facts)));
      return;
  }
}

/** The pools that an upgrade waits for. */
const poolsOfUpgrade = (facts: Facts) =>
  facts.members
    .pools()
    .filter(({ metadata }) => metadata.labels?.[labels.requiredForUpgrade] !== undefined)
    .map(({ metadata, spec }) => ({ name: metadata.name, config: spec.configuration?.name ?? "" }));

interface Found {
  readonly existing: ClusterOperator;
  readonly reached: string | undefined;
  readonly outcomes: readonly TaskOutcome[];
  readonly facts: Facts;
}

/** @returns the ClusterOperator as it is now. */
function writeStatus(
  { existing, reached, outcomes, facts }: Found,
  { kube, clock, signal, options, memory }: TaskContext,
): Promise<ClusterOperator | undefined> {
  const extension = extensionOf(facts, outcomes);
  return updateObject(
    kube,
    ClusterOperator,
    { name },
    (live) => {
      const conditions = clusterOperatorConditions(
        {
          version: options.version,
          reached,
          outcomes,
          cluster: facts,
          otherApprover: memory.otherApprover?.text,
        },
        live.status?.conditions ?? [],
        clock.now(),
      );
      const versions = versionsOf(reached, live.status?.versions, options);
      const related = relatedObjects.map((each) => ({ ...each }));
      const same = equalValues(
        [live.status?.conditions, live.status?.versions, live.status?.relatedObjects, live.status?.extension ?? {}],
        [conditions, versions, related, extension],
      );
      if (same) return undefined;
      // A merge keeps what it does not name: remove the lines of deleted pools, and resolved errors.
      const over = Object.fromEntries(
        Object.keys(live.status?.extension ?? {}).flatMap((key) =>
          Object.hasOwn(extension, key) ? [] : [[key, null]],
        ),
      );
      const status = {
        conditions,
        ...(versions === undefined ? {} : { versions }),
        relatedObjects: related,
        extension: { ...extension, ...over },
      };
      return { status: status as NonNullable<ClusterOperator["status"]> };
    },
    { subresource: "status", owner, signal, cached: existing },
  );
}
