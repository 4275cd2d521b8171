import type { KubeObject } from "../api/object.ts";
import { namespace, objects } from "../api/names.ts";

/** What has to be in a cluster before the operator can run: its namespace, account, rights and Deployment. Everything else it makes itself. */
export function installManifests(options: { readonly image: string; readonly osImage: string; readonly version: string; readonly arguments?: readonly string[] }): readonly KubeObject[] {
  const account = { name: objects.operator, namespace };
  const labels = { "k8s-app": objects.operator };
  const manifests = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels: { "openshift.io/cluster-monitoring": "true" } } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: account },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: objects.operator },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", ...account }],
    },
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: objects.osImageConfigMap, namespace }, data: { releaseVersion: options.version, baseOSContainerImage: options.osImage } },
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: objects.imagesConfigMap, namespace }, data: { "images.json": JSON.stringify({ releaseVersion: options.version, machineConfigOperator: options.image }) } },
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
            nodeSelector: { "node-role.kubernetes.io/master": "" },
            tolerations: [
              { key: "node-role.kubernetes.io/master", operator: "Exists", effect: "NoSchedule" },
              { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" },
              { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 120 },
              { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 120 },
            ],
            containers: [
              {
                name: objects.operator,
                image: options.image,
                args: ["operator", "start", "--image", options.image, ...(options.arguments ?? [])],
                env: [
                  { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
                  { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
                ],
                resources: { requests: { cpu: "20m", memory: "50Mi" } },
              },
            ],
          },
        },
      },
    },
  ];
  return manifests as unknown as readonly KubeObject[];
}
