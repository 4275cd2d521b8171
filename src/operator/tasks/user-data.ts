import { type Secret, kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { objects } from "../../api/names.ts";
import { keyOf } from "../../api/schema/object.ts";
import { type UserDataDecision, type UserDataFacts, managedUserData } from "../../core/join/managed-user-data.ts";
import { machineApiRemedy } from "../../core/operator/decide-rights.ts";
import { isForbidden, isInvalid } from "../../kube/kube-error.ts";
import { applyManifest } from "../apply-manifest.ts";
import { hasMachineApi, ownMap } from "../cluster-sources.ts";
import { settingsIn } from "../operator-options.ts";
import {
  type OperatorTask,
  type TaskContext,
  failed,
  managersInConflict,
  progressing,
  taskDone,
} from "../operator-task.ts";
import {
  watchControllerConfigs,
  watchMachineApi,
  watchMachineConfigurations,
  watchPools,
  watchSources,
} from "../operator-watches.ts";

const notAllowed = `the operator may not write user data; ${machineApiRemedy}`;

/** The user data that the machine API gives to machines of each pool, on clusters that have it. */
export const userData: OperatorTask<UserDataFacts, UserDataDecision> = {
  name: "UserData",
  watches: [watchMachineApi, watchPools, watchControllerConfigs, watchMachineConfigurations, watchSources],

  observe: (context) => ({
    hasMachineApi: hasMachineApi(context),
    pools: context.caches.of(MachineConfigPool).list(),
    controllerConfig: context.caches.of(ControllerConfig).get(objects.controllerConfig),
    machineConfiguration: settingsIn(context),
    installedAddress: context.options.configServerAddress,
    authorities: ownMap(objects.configServerCa, context)?.data?.["ca-bundle.crt"],
  }),

  decide: managedUserData,

  async perform(decision, context) {
    switch (decision.verdict) {
      case "nowhere":
        return taskDone;
      case "waiting":
        return progressing(decision.message);
      case "refused":
        return failed(decision.message);
      case "keep": {
        const problems = new Set<string>();
        for (const secret of decision.secrets)
          for (const problem of await writeSecret(secret, context)) problems.add(problem);
        if (problems.has(notAllowed)) return { kind: "failed", reason: "RightsOutdated", message: notAllowed };
        return problems.size === 0 ? taskDone : failed([...problems].join("; "));
      }
    }
  },
};

/**
 * The operator may not read Secrets of the machine API. It applies them again at intervals, and learns from the answer what is
 * in the way.
 *
 * @returns why the Secret is not as it should be; others of the pools do not wait for it.
 */
async function writeSecret(secret: Secret, context: TaskContext): Promise<readonly string[]> {
  try {
    await applyManifest(kubernetes.Secret, secret, context);
    return [];
  } catch (error) {
    if (isForbidden(error)) return [notAllowed];
    const managers = managersInConflict(error);
    if (managers.length === 0 && !isInvalid(error)) throw error;
    const why =
      managers.length > 0
        ? `it was written by ${managers.join(", ")}`
        : `the API server refuses it: ${error instanceof Error ? error.message : String(error)}`;
    return [
      `the Secret ${keyOf(secret)} does not hold the user data of this version, since ${why}; delete the Secret, and the operator makes it`,
    ];
  }
}
