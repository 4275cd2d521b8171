import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { type KubeObject, keyOf, timestampOf } from "../../api/schema/object.ts";
import { isCurrent } from "../render/generated-config.ts";
import { type RegistriesDecision, problemOf, problemText } from "../runtime/decide-registries.ts";
import type { ObjectProblem } from "../runtime/merge-mirrors.ts";
import { registriesCauses } from "../runtime/registries-causes.ts";
import { policyConflicts, registriesConfigName } from "../runtime/registries-config.ts";
import { type RegistryObjects, objectNameOf, settingsOf } from "../runtime/registry-objects.ts";
import { type Explanation, type Remedies, section } from "./explanation.ts";
import { overriddenFiles, overriddenRemedy, overriddenText } from "../render/overridden-files.ts";
import { type AroundRegistries, registriesByPool, uniqueProblems } from "./plan-registries.ts";

type State = Pick<Explanation, "reason" | "headline"> & Partial<Remedies>;

/**
 * What an object about registries, mirrors or signatures does on machines, and if nothing, why.
 *
 * @param now milliseconds since the epoch.
 */
export function explainRegistryObject(
  object: KubeObject,
  objects: RegistryObjects,
  around: AroundRegistries,
  now: number,
): Explanation {
  const name = objectNameOf(object);
  const decisions = registriesByPool(objects, around);
  const writes = registriesCauses(objects).filter((cause) => cause.object === name);
  const warnings = [...new Set([...decisions.values()].flatMap((decision) => warningsAbout(name, decision)))];
  return {
    subject: `${object.kind.toLowerCase()}/${keyOf(object)}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    next: [],
    todo: [],
    ...stateOf(object, objects, decisions, around, writes),
    sections: [
      ...section(
        "Writes",
        writes.map(({ file, what, path }) => `${file}: ${what} (${path})`),
      ),
      ...section("Warnings", warnings),
    ],
  };
}

const warningsAbout = (name: string, decision: RegistriesDecision): readonly string[] =>
  decision.do === "write" ? decision.warnings.filter(({ object }) => object === name).map(problemText) : [];

function stateOf(
  object: KubeObject,
  objects: RegistryObjects,
  decisions: ReadonlyMap<string, RegistriesDecision>,
  around: AroundRegistries,
  writes: readonly { readonly file: string }[],
): State {
  const name = objectNameOf(object);
  const pools = [...decisions.keys()].toSorted();
  if (pools.length === 0)
    return {
      reason: "NoPool",
      headline: `${name} changes no machine: the cluster has no built-in pool.`,
      todo: ["see whether the operator runs: mco explain clusteroperator"],
    };
  const problems = problemsOf(decisions);
  const leftOut = [...decisions.values()].flatMap((decision) => (decision.do === "write" ? decision.leftOut : []));
  const own = uniqueProblems([...problems, ...leftOut]).filter((problem) => problem.object === name);
  if (own.length > 0)
    return {
      reason: "Invalid",
      headline: `${name} is refused, and machines keep what they have: ${own.map(problemText).join("; ")}.`,
      todo: own.map(({ path, remedy }) => remedy ?? `correct ${path}`),
    };
  const [first] = problems;
  if (first !== undefined)
    return {
      reason: "RegistriesRefused",
      headline: `${name} waits: no settings of registries are written until another object is corrected.`,
      todo: [`correct ${problemOf(first)}`],
    };
  const covered = policyConflicts(settingsOf(objects).policies).get(keyOf(object)) ?? [];
  if (object.kind === "ImagePolicy" && covered.length > 0)
    return {
      reason: "ConflictScopes",
      headline: `${name} does not decide about ${covered.join(", ")}: a ClusterImagePolicy does.`,
      todo: ["take these scopes out of this policy, or out of the ClusterImagePolicy"],
    };
  if (writes.length === 0)
    return { reason: "NothingToWrite", headline: `${name} says nothing that machines would follow.` };
  const behind = pools.filter((pool) => isBehind(pool, decisions.get(pool), around.machineConfigs));
  if (behind.length > 0)
    return {
      reason: "NotWritten",
      headline: `${name} is not yet in the MachineConfigs of pool ${behind.join(", ")}.`,
      next: [
        "the controller writes them within a minute, or ten where image policies of namespaces change often; mco explain clusteroperator says whether it works",
      ],
    };
  const files = new Set(writes.map(({ file }) => file));
  const overridden = around.machineConfigs
    .filter(({ metadata }) => pools.some((pool) => registriesConfigName(pool) === metadata.name))
    .flatMap((config) => overriddenFiles(config, around))
    .filter(({ path }) => files.has(path));
  if (overridden.length > 0)
    return {
      reason: "Replaced",
      headline: `${name} is in ${pools.map(registriesConfigName).join(", ")}, but ${overridden.map(overriddenText).join("; ")}.`,
      todo: [...new Set(overridden.map(overriddenRemedy))],
    };
  return {
    reason: "AsWritten",
    headline: `${name} is in ${pools.map(registriesConfigName).join(", ")}, and so on the machines of pool ${pools.join(", ")} once these have rolled out.`,
  };
}

/** What keeps every object of registries from machines. */
const problemsOf = (decisions: ReadonlyMap<string, RegistriesDecision>): readonly ObjectProblem[] =>
  uniqueProblems([...decisions.values()].flatMap((decision) => (decision.do === "refuse" ? decision.problems : [])));

const isBehind = (pool: string, decision: RegistriesDecision | undefined, configs: readonly MachineConfig[]): boolean =>
  decision?.do === "write" &&
  !isCurrent(
    configs.find(({ metadata }) => metadata.name === registriesConfigName(pool)),
    decision.config,
  );
