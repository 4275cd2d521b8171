import { kubernetes } from "../../api/foreign/kubernetes.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { type Right, type RightsDecision, decideRights } from "../../core/operator/decide-rights.ts";
import { isForbidden } from "../../kube/kube-error.ts";
import { applyAll, reapplyMs } from "../apply-manifest.ts";
import { hasMachineApi } from "../cluster-sources.ts";
import { gate } from "../manifests.ts";
import {
  type OperatorTask,
  type TaskContext,
  type TaskResult,
  taskDone,
  passingMs,
  progressing,
} from "../operator-task.ts";
import { watchMachineApi, watchSources } from "../operator-watches.ts";
import { machineApiRights, suiteRights } from "../rights.ts";

const compared: readonly Resource[] = [
  kubernetes.ClusterRole,
  kubernetes.ClusterRoleBinding,
  kubernetes.Role,
  kubernetes.RoleBinding,
];
const applied: readonly Resource[] = [
  kubernetes.ValidatingAdmissionPolicy,
  kubernetes.ValidatingAdmissionPolicyBinding,
];

/**
 * The rights of the components. `install/` contains their accounts, roles and bindings; the operator compares them with
 * what it needs, and cannot write them. It does not watch them, but reads them again at intervals, and once the cluster has
 * got a machine API, where the suite needs rights, too.
 */
export const componentRightsTask: OperatorTask<readonly Right[] | "read before", RightsDecision> = {
  name: "RBAC",
  watches: [watchMachineApi, watchSources],
  observe: async (context) =>
    isRecent(context) ? "read before" : Promise.all(neededRights(context).map(foundIn(context))),
  decide: (rights) => (rights === "read before" ? { verdict: "current" } : decideRights(rights)),

  async perform(decision, context) {
    await applyAll(applied, gate(), context);
    return resultOf(decision, context);
  },
};

/** Not where the cluster has got a machine API since. */
const isRecent = (context: TaskContext): boolean => {
  const { rightsCurrentSince, hadMachineApi } = context.memory;
  return (
    rightsCurrentSince !== undefined &&
    context.clock.monotonic() - rightsCurrentSince < reapplyMs &&
    hadMachineApi === hasMachineApi(context)
  );
};

const neededRights = (context: TaskContext): readonly KubeObject[] =>
  [...suiteRights(), ...(hasMachineApi(context) ? machineApiRights() : [])].filter(({ kind }) =>
    compared.some((resource) => resource.kind === kind),
  );

const foundIn =
  ({ kube, signal }: TaskContext) =>
  async (needed: KubeObject): Promise<Right> => {
    const resource = compared.find(({ kind }) => kind === needed.kind);
    if (resource === undefined) throw new Error(`bug: ${needed.kind} is not compared`);
    try {
      return { needed, found: (await kube.get(resource, needed.metadata, { signal })) ?? "absent" };
    } catch (error) {
      if (isForbidden(error)) return { needed, found: "refused" };
      throw error;
    }
  };

function resultOf(decision: RightsDecision, context: TaskContext): TaskResult {
  const { clock, memory } = context;
  memory.hadMachineApi = hasMachineApi(context);
  if (decision.verdict !== "unreadable") memory.rightsRefusedSince = undefined;
  switch (decision.verdict) {
    case "current":
      memory.rightsCurrentSince ??= clock.monotonic();
      if (clock.monotonic() - memory.rightsCurrentSince >= reapplyMs) memory.rightsCurrentSince = clock.monotonic();
      return taskDone;
    case "unreadable":
      memory.rightsRefusedSince ??= clock.monotonic();
      if (clock.monotonic() - memory.rightsRefusedSince < passingMs)
        return progressing("RBAC waits for the API server");
      return { kind: "failed", reason: "RightsOutdated", message: decision.message };
    case "outdated":
      memory.rightsCurrentSince = undefined;
      return { kind: "failed", reason: "RightsOutdated", message: decision.message };
  }
}
