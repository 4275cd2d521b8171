import type { KubeObject } from "../api/schema/object.ts";
import { buildNamespace, joinNamespace, namespace, objects } from "../api/names.ts";
import { podSecurityLabels, resourcesOf, restrictedContainer } from "../core/operator/pod-security.ts";
import { memoryLimits, nodeName, onControlPlane, podName } from "./manifests.ts";
import { suiteRights } from "./rights.ts";

/**
 * What an administrator applies to a cluster: the suite's namespaces, the accounts and rights of all components, which
 * the operator cannot write, and the operator's Deployment. The operator creates everything else.
 */
export function installManifests(options: {
  readonly image: string;
  readonly osImage: string;
  readonly version: string;
  readonly arguments?: readonly string[];
}): readonly KubeObject[] {
  const account = { name: objects.operator, namespace };
  const labels = { "k8s-app": objects.operator };
  const manifests = [
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name: namespace,
        // Privileged pods are the daemons' and the config server's (docs/pod-security.md).
        labels: { "openshift.io/cluster-monitoring": "true", ...podSecurityLabels("privileged") },
      },
    },
    // Builds are not restricted (docs/pod-security.md).
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: buildNamespace, labels: podSecurityLabels("privileged") },
    },
    // No pod runs there.
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: joinNamespace, labels: podSecurityLabels("restricted") },
    },
    {
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: objects.buildPriority },
      // Not below -10: the cluster autoscaler makes no room for pods under that.
      value: -1,
      preemptionPolicy: "Never",
      description: "Builds of OS images: they wait for room, and go first when a machine runs out of it.",
    },
    ...suiteRights(),
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: objects.buildAccount, namespace: buildNamespace },
      automountServiceAccountToken: false,
    },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: objects.osImageConfigMap, namespace },
      data: { releaseVersion: options.version, baseOSContainerImage: options.osImage },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { ...account, labels },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: account.name,
            priorityClassName: "system-cluster-critical",
            ...onControlPlane,
            containers: [
              {
                name: objects.operator,
                image: options.image,
                args: ["operator", "start", ...(options.arguments ?? [])],
                env: [podName, nodeName],
                securityContext: restrictedContainer,
                resources: resourcesOf("20m", "50Mi", memoryLimits.ofWholeCluster),
              },
            ],
          },
        },
      },
    },
  ];
  return manifests as unknown as readonly KubeObject[];
}
