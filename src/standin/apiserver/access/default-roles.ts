import type { KubeObject } from "../schema/contract.ts";

/**
 * Roles that clients and controllers of Kubernetes count on, in the measure of the kinds served here:
 * `k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (master)`.
 */
interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

const read = ["get", "list", "watch"];
const write = ["create", "delete", "deletecollection", "patch", "update"];

const bootstrapped = {
  labels: { "kubernetes.io/bootstrapping": "rbac-defaults" },
  annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
};

function clusterRole(
  name: string,
  rules: readonly Rule[],
  more: { readonly labels?: Readonly<Record<string, string>>; readonly aggregates?: string } = {},
): KubeObject {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: {
      name,
      labels: { ...bootstrapped.labels, ...more.labels },
      annotations: { ...bootstrapped.annotations },
    },
    rules: structuredClone(rules),
    ...(more.aggregates === undefined
      ? {}
      : {
          aggregationRule: {
            clusterRoleSelectors: [
              { matchLabels: { [`rbac.authorization.k8s.io/aggregate-to-${more.aggregates}`]: "true" } },
            ],
          },
        }),
  };
}

function binding(name: string, role: string, groups: readonly string[]): KubeObject {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name, labels: { ...bootstrapped.labels }, annotations: { ...bootstrapped.annotations } },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: groups.map((group) => ({ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: group })),
  };
}

const health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
const documents = [
  "/api",
  "/api/*",
  "/apis",
  "/apis/*",
  "/healthz",
  "/livez",
  "/openapi",
  "/openapi/*",
  "/readyz",
  "/version",
  "/version/",
];

const viewRules: readonly Rule[] = [
  {
    apiGroups: [""],
    resources: [
      "configmaps",
      "endpoints",
      "events",
      "namespaces",
      "namespaces/status",
      "pods",
      "pods/log",
      "pods/status",
      "resourcequotas",
      "serviceaccounts",
      "services",
    ],
    verbs: read,
  },
  {
    apiGroups: ["apps"],
    resources: [
      "controllerrevisions",
      "daemonsets",
      "daemonsets/status",
      "deployments",
      "deployments/scale",
      "deployments/status",
      "replicasets",
      "replicasets/scale",
      "replicasets/status",
      "statefulsets",
      "statefulsets/scale",
      "statefulsets/status",
    ],
    verbs: read,
  },
  { apiGroups: ["batch"], resources: ["cronjobs", "cronjobs/status", "jobs", "jobs/status"], verbs: read },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets", "poddisruptionbudgets/status"], verbs: read },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: read },
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: read },
];

/** Not Endpoints, which could lead a Service's clients elsewhere: CVE-2021-25740. */
const editRules: readonly Rule[] = [
  {
    apiGroups: [""],
    resources: ["configmaps", "events", "pods", "secrets", "serviceaccounts", "services"],
    verbs: write,
  },
  { apiGroups: [""], resources: ["secrets"], verbs: read },
  { apiGroups: [""], resources: ["pods/eviction", "serviceaccounts/token"], verbs: ["create"] },
  { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["impersonate"] },
  {
    apiGroups: ["apps"],
    resources: [
      "daemonsets",
      "deployments",
      "deployments/scale",
      "replicasets",
      "replicasets/scale",
      "statefulsets",
      "statefulsets/scale",
    ],
    verbs: write,
  },
  { apiGroups: ["batch"], resources: ["cronjobs", "jobs"], verbs: write },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: write },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: write },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: [...read, ...write] },
];

const adminRules: readonly Rule[] = [
  { apiGroups: ["authorization.k8s.io"], resources: ["localsubjectaccessreviews"], verbs: ["create"] },
  { apiGroups: ["rbac.authorization.k8s.io"], resources: ["rolebindings", "roles"], verbs: [...read, ...write] },
];

export const defaultRoles: readonly KubeObject[] = [
  clusterRole("cluster-admin", [
    { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
    { nonResourceURLs: ["*"], verbs: ["*"] },
  ]),
  // The rules of aggregating roles are in their parts; `rules` of the whole is computed on demand.
  clusterRole("admin", [...adminRules, ...editRules, ...viewRules], { aggregates: "admin", labels: {} }),
  clusterRole("edit", [...editRules, ...viewRules], {
    aggregates: "edit",
    labels: { "rbac.authorization.k8s.io/aggregate-to-admin": "true" },
  }),
  clusterRole("view", viewRules, {
    aggregates: "view",
    labels: { "rbac.authorization.k8s.io/aggregate-to-edit": "true" },
  }),
  clusterRole("system:aggregate-to-admin", adminRules, {
    labels: { "rbac.authorization.k8s.io/aggregate-to-admin": "true" },
  }),
  clusterRole("system:aggregate-to-edit", editRules, {
    labels: { "rbac.authorization.k8s.io/aggregate-to-edit": "true" },
  }),
  clusterRole("system:aggregate-to-view", viewRules, {
    labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" },
  }),
  clusterRole("system:discovery", [{ nonResourceURLs: documents, verbs: ["get"] }]),
  clusterRole("system:public-info-viewer", [{ nonResourceURLs: health, verbs: ["get"] }]),
  clusterRole("system:basic-user", [
    {
      apiGroups: ["authorization.k8s.io"],
      resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
      verbs: ["create"],
    },
    { apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"], verbs: ["create"] },
  ]),
  clusterRole("system:auth-delegator", [
    { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
    { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
  ]),
  clusterRole("system:node", [
    { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
    {
      apiGroups: ["authorization.k8s.io"],
      resources: ["localsubjectaccessreviews", "subjectaccessreviews"],
      verbs: ["create"],
    },
    { apiGroups: [""], resources: ["services"], verbs: read },
    { apiGroups: [""], resources: ["nodes"], verbs: ["create", ...read, "patch", "update"] },
    { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch", "update"] },
    { apiGroups: [""], resources: ["events"], verbs: ["create", "patch", "update"] },
    { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
    { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete", ...read] },
    { apiGroups: [""], resources: ["pods/status"], verbs: ["patch", "update"] },
    { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
    { apiGroups: [""], resources: ["configmaps", "secrets"], verbs: read },
    { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["get"] },
    { apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"] },
    { apiGroups: ["certificates.k8s.io"], resources: ["certificatesigningrequests"], verbs: ["create", ...read] },
    {
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      verbs: ["create", "delete", "get", "patch", "update"],
    },
  ]),
  clusterRole("system:node-bootstrapper", [
    { apiGroups: ["certificates.k8s.io"], resources: ["certificatesigningrequests"], verbs: ["create", ...read] },
  ]),
  ...["kubelet-serving", "kube-apiserver-client", "kube-apiserver-client-kubelet"].map((signer) =>
    clusterRole(`system:certificates.k8s.io:${signer}-approver`, [
      {
        apiGroups: ["certificates.k8s.io"],
        resources: ["signers"],
        resourceNames: [`kubernetes.io/${signer}`],
        verbs: ["approve"],
      },
    ]),
  ),
  clusterRole("system:kubelet-api-admin", [
    { apiGroups: [""], resources: ["nodes"], verbs: [...read, "proxy"] },
    { apiGroups: [""], resources: ["nodes/log", "nodes/metrics", "nodes/proxy", "nodes/stats"], verbs: ["*"] },
  ]),
  binding("cluster-admin", "cluster-admin", ["system:masters"]),
  binding("system:discovery", "system:discovery", ["system:authenticated"]),
  binding("system:public-info-viewer", "system:public-info-viewer", ["system:authenticated", "system:unauthenticated"]),
  binding("system:basic-user", "system:basic-user", ["system:authenticated"]),
  // Nodes are authorized by what they run, not by a role.
  { ...binding("system:node", "system:node", []), subjects: [] },
];
