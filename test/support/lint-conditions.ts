import {
  ClusterOperator,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  MachineOSBuild,
  MachineOSConfig,
} from "../../src/api/index.ts";
import type { Condition, KubeObject, Resource } from "../../src/api/schema/object.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { KubeError } from "../../src/kube/kube-error.ts";

interface WithConditions extends KubeObject {
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] };
}

/** Kinds with conditions for people, of which every cluster has objects. */
const kinds = [MachineConfigPool, MachineConfigNode, ClusterOperator] as readonly Resource<WithConditions>[];

/** All kinds with conditions for people. */
const allKinds = [
  ...kinds,
  MachineConfiguration,
  MachineOSConfig,
  MachineOSBuild,
] as readonly Resource<WithConditions>[];

/** The counts of a pool at rest add up. */
function countProblems(object: WithConditions): readonly string[] {
  const { machineCount, updatedMachineCount, readyMachineCount } = (object as MachineConfigPool).status ?? {};
  return machineCount === updatedMachineCount && machineCount === readyMachineCount
    ? []
    : [
        `${object.kind}/${object.metadata.name} has ${machineCount} machines, ${updatedMachineCount} updated and ${readyMachineCount} ready`,
      ];
}

/** Tools take a machine at rest for one that is there, or that has failed. */
function toolProblems({ kind, metadata, status }: WithConditions): readonly string[] {
  const reconciling = status?.conditions?.find(({ type }) => type === "Reconciling");
  return reconciling?.status === "False"
    ? []
    : [`${kind}/${metadata.name} is reconciling at rest: ${JSON.stringify(reconciling)}`];
}

/** What no object's conditions may ever state, whatever happens in the cluster. */
export function conditionProblems(object: WithConditions): readonly string[] {
  const who = `${object.kind}/${object.metadata.name}`;
  const problems: string[] = [];
  const conditions = object.status?.conditions ?? [];
  const { observedGeneration } = object.status ?? {};
  const { generation } = object.metadata;
  if (observedGeneration !== undefined && generation !== undefined && observedGeneration > generation)
    problems.push(`${who} has observed generation ${observedGeneration} of ${generation}`);
  const seen = new Set<string>();
  for (const { type, status, reason, message, lastTransitionTime, observedGeneration: observed } of conditions) {
    if (type === "") problems.push(`${who} has a condition without a type`);
    if (seen.has(type)) problems.push(`${who} has the condition ${type} twice`);
    seen.add(type);
    if (!["True", "False", "Unknown"].includes(status)) problems.push(`${who}: ${type} is "${status}"`);
    if (Number.isNaN(Date.parse(lastTransitionTime)))
      problems.push(`${who}: ${type} has no time of its last transition`);
    if (observed !== undefined && generation !== undefined && observed > generation)
      problems.push(`${who}: ${type} has observed generation ${observed} of ${generation}`);
    if (reason !== "" && !/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason))
      problems.push(`${who}: ${type} has the reason "${reason}", which is no word`);
    if (status === "True" && type.endsWith("Degraded") && message === "")
      problems.push(`${who}: ${type} does not say why`);
  }
  const is = (type: string) => conditions.find((condition) => condition.type === type)?.status === "True";
  if (is("Updated") && (is("Degraded") || is("NodeDegraded"))) problems.push(`${who} is Updated and Degraded`);
  if (is("Updated") && is("Updating")) problems.push(`${who} is Updated and Updating`);
  if (is("Reconciling") && is("Stalled")) problems.push(`${who} is Reconciling and Stalled`);
  return problems;
}

/**
 * What is wrong with the conditions of a cluster now, whatever a scenario did to it: the rules here do not require a
 * cluster at rest. A kind that is not installed has no objects.
 */
export async function unsoundConditions(kube: KubeClient): Promise<readonly string[]> {
  const found = await Promise.all(
    allKinds.map(async (kind) => {
      try {
        return (await kube.list(kind)).items.flatMap(conditionProblems);
      } catch (error) {
        if (error instanceof KubeError && error.httpStatus === 404) return [];
        throw error;
      }
    }),
  );
  return found.flat();
}

const saying = (object: WithConditions) =>
  JSON.stringify(
    (object.status?.conditions ?? []).map(({ type, status, reason, message, lastTransitionTime }) => ({
      type,
      status,
      reason,
      message,
      lastTransitionTime,
    })),
  );

/**
 * Checks every condition of a cluster at rest, and watches for `quietSeconds` that none of them is rewritten while
 * nothing changes. Returns what is wrong.
 */
export async function lintConditions(kube: KubeClient, quietSeconds: number): Promise<readonly string[]> {
  const problems = await Promise.all(
    kinds.map(async (kind) => {
      const list = await kube.list(kind);
      const first = new Map(list.items.map((object) => [object.metadata.name, saying(object)]));
      const found = list.items.flatMap(conditionProblems);
      if (kind.kind === MachineConfigPool.kind) found.push(...list.items.flatMap(countProblems));
      if (kind.kind === MachineConfigNode.kind) found.push(...list.items.flatMap(toolProblems));
      if (list.items.length === 0) found.push(`there is no ${kind.kind}`);
      for (const object of list.items)
        if ((object.status?.conditions ?? []).length === 0)
          found.push(`${kind.kind}/${object.metadata.name} has no conditions`);
      for await (const event of kube.watch(
        kind,
        {},
        { resourceVersion: list.resourceVersion, timeoutSeconds: quietSeconds },
        AbortSignal.timeout((quietSeconds + 10) * 1000),
      )) {
        if (event.type === "BOOKMARK") continue;
        found.push(...conditionProblems(event.object));
        const now = saying(event.object);
        const before = first.get(event.object.metadata.name);
        if (now !== before)
          found.push(
            `${kind.kind}/${event.object.metadata.name} changed while nothing happened: ${before} became ${now}`,
          );
      }
      return found;
    }),
  );
  return [...new Set(problems.flat())];
}
