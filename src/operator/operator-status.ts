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
import { runOf } from "./operator-options.ts";
import type { TaskContext } from "./operator-task.ts";

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
    context.report({
      about: after,
      notice: "OperatorDegraded",
      message: `${degraded.reason}: ${degraded.message}`,
    });
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
    const line = {
      book: "cluster",
      chapter: "Operator",
      ...runOf(options),
      path: `Sync/${task}`,
      level: "boundary",
    } as const;
    if (outcome.kind === "failed" && !failing.has(task)) {
      failing.add(task);
      report({ ...line, mark: "fail", reason: "SyncFailed", message: `${task} fails: ${outcome.message}` });
    } else if (outcome.kind === "done" && failing.delete(task))
      report({ ...line, mark: "end", reason: "SyncMended", message: `${task} works again` });
  }
}

async function newClusterOperator({ kube, clock, report, signal, options }: TaskContext): Promise<ClusterOperator> {
  const { version } = options;
  const made = await kube.apply(ClusterOperator, { metadata: { name }, spec: {} }, { owner, signal });
  if (made.status?.conditions !== undefined) return made;
  report({
    book: "cluster",
    chapter: "Install",
    run: version,
    path: "Begun",
    mark: "begin",
    level: "boundary",
    reason: "InstallBegan",
    message: `${version} is being installed`,
    data: { toVersion: version },
  });
  return kube.patch(
    ClusterOperator,
    { name },
    { type: "merge", body: { status: { conditions: initialConditions(clock.now()) } } },
    { subresource: "status", owner, signal },
  );
}

function reportVersion(step: VersionStep, operator: ClusterOperator, facts: Facts, context: TaskContext): void {
  const { report, memory, options } = context;
  const notify = (message: string) => report({ about: operator, notice: "OperatorVersionChanged", message });
  switch (step.step) {
    case "arrivedBefore":
    case "installing":
      return;
    case "upgrading":
      if (memory.reported.upgradeBegan) return;
      memory.reported.upgradeBegan = true;
      reportUpgradeBegan(step, context);
      notify(`the machine config operator is on its way from ${step.reached} to ${options.version}`);
      return;
    case "arrived":
      notify(`the machine config operator is at ${options.version}`);
      if (memory.reported.arrival) return;
      memory.reported.arrival = true;
      reportArrival(step.from, facts, context);
      return;
  }
}

const upgradeChapter = (from: string, to: string) =>
  ({ book: "cluster", chapter: "Upgrade", run: `${from} to ${to}` }) as const;

function reportUpgradeBegan(
  { reached: from, isBegun }: Extract<VersionStep, { readonly step: "upgrading" }>,
  { report, options: { version } }: TaskContext,
): void {
  report({
    ...upgradeChapter(from, version),
    path: "Begun",
    mark: isBegun ? "retry" : "begin",
    level: "boundary",
    reason: "UpgradeBegan",
    message: `from ${from} to ${version}`,
    data: { fromVersion: from, toVersion: version },
  });
}

function reportArrival(from: string | undefined, facts: Facts, { report, options: { version } }: TaskContext): void {
  const chapter =
    from === undefined
      ? ({ book: "cluster", chapter: "Install", run: version } as const)
      : upgradeChapter(from, version);
  for (const { metadata, spec } of facts.members.pools()) {
    if (metadata.labels?.[labels.requiredForUpgrade] === undefined) continue;
    report({
      ...chapter,
      path: `Pool/${metadata.name}`,
      mark: "end",
      level: "boundary",
      reason: "AllUpdated",
      message: `pool ${metadata.name} is at ${spec.configuration?.name ?? ""}`,
    });
  }
  const end = {
    ...chapter,
    path: "Finished",
    mark: "end",
    level: "boundary",
    outcome: "Succeeded",
    message: `everything is at ${version}`,
  } as const;
  if (end.chapter === "Install") report({ ...end, reason: "InstallDone" });
  else report({ ...end, reason: "UpgradeDone" });
}

interface Found {
  readonly existing: ClusterOperator;
  readonly reached: string | undefined;
  readonly outcomes: readonly TaskOutcome[];
  readonly facts: Facts;
}

/** @returns the ClusterOperator as it is now. */
function writeStatus(
  { existing, reached, outcomes, facts }: Found,
  { kube, clock, signal, options }: TaskContext,
): Promise<ClusterOperator | undefined> {
  const extension = extensionOf(facts, outcomes);
  return updateObject(
    kube,
    ClusterOperator,
    { name },
    (live) => {
      const conditions = clusterOperatorConditions(
        { version: options.version, reached, outcomes, cluster: facts },
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
