import { type RunnableTask, runnable } from "../operator-task.ts";
import { admissionPoliciesTask } from "./admission-policies.ts";
import { admissionTask } from "./admission.ts";
import { componentRightsTask } from "./component-rights.ts";
import { configServer } from "./config-server.ts";
import { controllerConfig } from "./controller-config.ts";
import { customResourceDefinitions } from "./custom-resource-definitions.ts";
import { installedUserDataTask } from "./installed-user-data.ts";
import { journalsTask } from "./journals.ts";
import { kubeconfigAuthorities } from "./kubeconfig-authorities.ts";
import { machineConfigController } from "./machine-config-controller.ts";
import { machineConfigDaemon } from "./machine-config-daemon.ts";
import { machineConfigNodes } from "./machine-config-nodes.ts";
import { machineConfigPools } from "./machine-config-pools.ts";
import { machineConfiguration } from "./machine-configuration.ts";
import { networkPoliciesTask } from "./network-policies.ts";
import { osBuilder } from "./os-builder.ts";
import { otherApprovers } from "./other-approvers.ts";
import { requiredPoolsTask } from "./required-pools.ts";
import { stateController } from "./state-controller.ts";
import { userData } from "./user-data.ts";

/** All tasks of the operator, in the order of a pass: later tasks depend on earlier ones. */
export const operatorTasks: readonly RunnableTask[] = [
  runnable(customResourceDefinitions),
  runnable(componentRightsTask),
  runnable(machineConfiguration),
  runnable(machineConfigPools),
  runnable(machineConfigNodes),
  runnable(journalsTask),
  runnable(machineConfigController),
  runnable(kubeconfigAuthorities),
  runnable(configServer),
  runnable(controllerConfig),
  runnable(userData),
  runnable(installedUserDataTask),
  runnable(machineConfigDaemon),
  runnable(stateController),
  runnable(admissionPoliciesTask),
  runnable(osBuilder),
  runnable(admissionTask),
  runnable(networkPoliciesTask),
  runnable(otherApprovers),
  runnable(requiredPoolsTask),
];
