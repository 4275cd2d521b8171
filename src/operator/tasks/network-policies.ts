import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { namespace, objects } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { buildSettings } from "../../core/build/build-settings.ts";
import { isForbidden, isInvalid, unlessNotFound } from "../../kube/kube-error.ts";
import { retiredNetworkPolicy } from "../admission-policies.ts";
import { applyManifest } from "../apply-manifest.ts";
import { ownMap } from "../cluster-sources.ts";
import { type NetworkInputs, buildNetworkPolicies, networkPolicies as policiesFor } from "../network-policies.ts";
import { type OperatorTask, type TaskContext, type TaskResult, taskDone, progressing } from "../operator-task.ts";
import { watchBuildSettings, watchControllerConfigs } from "../operator-watches.ts";

/** The connections of the components, in both directions. The policies themselves are applied again at intervals. */
export const networkPoliciesTask: OperatorTask<NetworkInputs, readonly KubeObject[]> = {
  name: "NetworkPolicies",
  watches: [watchBuildSettings, watchControllerConfigs],

  observe: (context) => ({
    registryPorts: buildSettings(ownMap(objects.buildConfig, context)?.data).registryPorts,
    proxyPorts: proxyPortsIn(context),
  }),

  decide: (inputs) => [...policiesFor(inputs), ...buildNetworkPolicies(inputs)],

  async perform(manifests, context) {
    for (const manifest of manifests) await applyManifest(kubernetes.NetworkPolicy, manifest, context);
    return removeRetired(context);
  },
};

function proxyPortsIn({ caches }: TaskContext): readonly number[] {
  const proxy = caches.of(ControllerConfig).get(objects.controllerConfig)?.spec.proxy;
  return Object.entries(proxy ?? {}).flatMap(([key, url]) => {
    if (!["httpProxy", "httpsProxy"].includes(key) || typeof url !== "string" || !URL.canParse(url)) return [];
    const { port, protocol } = new URL(url);
    return [port === "" ? (protocol === "https:" ? 443 : 80) : Number(port)];
  });
}

/** A policy of an earlier version would still allow everything that the present ones do not name. */
async function removeRetired({ kube, memory, signal }: TaskContext): Promise<TaskResult> {
  if (memory.isRetiredNetworkPolicyGone) return taskDone;
  try {
    await unlessNotFound(kube.delete(kubernetes.NetworkPolicy, { name: retiredNetworkPolicy, namespace }, { signal }));
  } catch (error) {
    // The API server takes a moment to apply the present admission policy, which does not protect it any more.
    if (isForbidden(error) || isInvalid(error)) return progressing(`${retiredNetworkPolicy} cannot be removed yet`);
    throw error;
  }
  memory.isRetiredNetworkPolicyGone = true;
  return taskDone;
}
