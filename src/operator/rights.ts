import { definedResources } from "../api/index.ts";
import {
  buildNamespace,
  configGroup,
  group,
  joinNamespace,
  journals,
  machineNamespace,
  namespace,
  objects,
  operatorGroup,
  signers,
} from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { installedUserData } from "../core/join/installed-user-data.ts";
import { mergedRegistryCa } from "../core/render/controller-config-of.ts";
import {
  buildNetworkPolicy,
  guardNames,
  networkPolicyNames,
  retiredNetworkPolicy,
  retiredPolicies,
} from "./admission-policies.ts";

/**
 * The rights of one component at the API server. Scenarios on a real server verify them: they fail for a right that is
 * never used, and for a request that is refused.
 */
interface Rights {
  readonly account: string;
  readonly everywhere: readonly Rule[];
  readonly inOwnNamespace: readonly Rule[];
  /** By the name of another namespace. */
  readonly elsewhere?: Readonly<Record<string, readonly Rule[]>>;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const rule = (
  apiGroup: string,
  resources: readonly string[],
  verbs: readonly string[],
  resourceNames?: readonly string[],
): Rule => ({ apiGroups: [apiGroup], resources, verbs, ...(resourceNames === undefined ? {} : { resourceNames }) });

const read = ["get", "list", "watch"] as const;
/** An apply creates a missing object, and is a patch otherwise. */
const apply = ["create", "patch"] as const;
/** The lease by which a component leads, and those of others that it observes. RBAC knows no name of what is created. */
const leases = (own: string, observed: readonly string[] = []): readonly Rule[] => [
  rule("coordination.k8s.io", ["leases"], ["create"]),
  rule("coordination.k8s.io", ["leases"], ["get", "update"], [own]),
  ...(observed.length === 0 ? [] : [rule("coordination.k8s.io", ["leases"], ["get"], observed)]),
];
const rbac = "rbac.authorization.k8s.io";
const admissionGroup = "admissionregistration.k8s.io";

/** Names of the objects that the operator creates outside of its namespace, other than the kinds. */
export const made = {
  gate: "machine-config-daemon-own-node",
  webhook: "machine-config-admission",
  nodeBootstrapper: "machine-config-node-bootstrapper",
} as const;

const components = [
  objects.controller,
  objects.daemon,
  objects.state,
  objects.osBuilder,
  objects.configServer,
] as const;

const rolesRead = [objects.operator, ...components, made.nodeBootstrapper];

/**
 * The operator holds no more than it uses. It reads the roles of the suite and can write none: an attacker who controls
 * the operator cannot give an account a right that `install/` does not give it.
 */
const operator: Rights = {
  account: objects.operator,
  everywhere: [
    rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["list", "watch"]),
    rule(
      "apiextensions.k8s.io",
      ["customresourcedefinitions"],
      ["get", ...apply],
      definedResources.map((resource) => resource.crd().metadata.name),
    ),
    rule(rbac, ["clusterroles", "clusterrolebindings"], ["get"], rolesRead),
    rule(admissionGroup, ["validatingadmissionpolicies", "validatingadmissionpolicybindings"], apply, [
      made.gate,
      ...guardNames,
    ]),
    // Those of earlier releases go.
    rule(admissionGroup, ["validatingadmissionpolicies"], ["delete"], [...retiredPolicies]),
    rule(
      admissionGroup,
      ["validatingadmissionpolicybindings"],
      ["delete"],
      retiredPolicies.map((name) => `${name}-binding`),
    ),
    rule(admissionGroup, ["validatingwebhookconfigurations"], apply, [made.webhook]),
    rule(group, ["controllerconfigs"], ["list", "watch", ...apply]),
    rule(group, ["machineconfigs"], ["get"]),
    // Whether images are built at all.
    rule(group, ["machineosconfigs", "machineosbuilds"], ["list", "watch"]),
    // For the policy whose parameters they are: see below.
    rule(group, ["machineosbuilds"], ["get"]),
    rule(group, ["machineconfigpools"], [...read, ...apply]),
    rule(group, ["machineconfignodes"], [...read, "create", "delete"]),
    // It makes everybody's journal, and writes into its own.
    rule(group, ["machinestatejournals"], ["list", "create"]),
    rule(group, ["machinestatejournals"], ["get", "patch"], [journals.operator]),
    rule(operatorGroup, ["machineconfigurations"], [...read, ...apply]),
    rule(operatorGroup, ["machineconfigurations/status"], ["patch"]),
    rule(configGroup, ["clusteroperators"], [...read, ...apply]),
    rule(configGroup, ["clusteroperators/status"], ["patch"]),
    rule("", ["nodes"], read),
    // Whether another approver renews certificates of nodes.
    rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    // Whether there is a machine API.
    rule("", ["namespaces"], read, [namespace, machineNamespace]),
    // The inputs of ControllerConfig are in namespaces that not every cluster has; administrators choose two of the
    // names.
    rule(configGroup, ["infrastructures", "networks", "dnses", "proxies", "images"], read),
    // How TLS is spoken.
    rule(configGroup, ["apiservers", "featuregates"], read),
    // The creator of a policy with parameters must be able to read them.
    rule(configGroup, ["clusterversions"], read),
    rule(group, ["osimagestreams", "internalreleaseimages"], read),
    // "get" adds nothing to "list"; the API server requires it of the author of a policy with ConfigMaps as parameters.
    rule("", ["configmaps"], read),
    rule("", ["configmaps"], apply, [mergedRegistryCa.name]),
    rule("", ["services"], ["list", "watch"], ["kube-dns"]),
    rule("", ["secrets"], ["list", "watch"], ["pull-secret"]),
    // Copied for builds.
    rule("", ["secrets"], ["get"], ["etc-pki-entitlement"]),
    rule("", ["events"], apply),
  ],
  inOwnNamespace: [
    ...leases("machine-config"),
    rule("apps", ["deployments", "daemonsets"], ["list", "watch", ...apply]),
    // The operator removes the builder when no pool boots images any more and no remains of its builds are left.
    rule("apps", ["deployments"], ["delete"], [objects.osBuilder]),
    rule("", ["serviceaccounts"], ["list", "watch"], [objects.puller]),
    rule("", ["services"], apply, [objects.controller, objects.state, objects.configServer, objects.osBuilder]),
    rule(rbac, ["roles", "rolebindings"], ["get"], rolesRead),
    rule("", ["configmaps"], apply, [objects.kubeconfigData, objects.configServerCa]),
    rule("networking.k8s.io", ["networkpolicies"], apply, networkPolicyNames),
    rule("networking.k8s.io", ["networkpolicies"], ["delete"], [retiredNetworkPolicy]),
    rule("", ["pods"], read),
    rule("", ["secrets"], [...read, ...apply]),
  ],
  elsewhere: {
    [buildNamespace]: [
      rule("batch", ["jobs"], ["list"]),
      // Copies of what MachineOSConfigs name.
      rule("", ["secrets"], ["list", ...apply, "delete"]),
      rule("networking.k8s.io", ["networkpolicies"], apply, [buildNetworkPolicy]),
      rule(rbac, ["roles", "rolebindings"], ["get"], rolesRead),
    ],
    default: [
      rule(rbac, ["roles", "rolebindings"], ["get"], rolesRead),
      // Addresses of the API server, which no machine may serve under.
      rule("discovery.k8s.io", ["endpointslices"], ["list", "watch"], ["kubernetes"]),
    ],
    [joinNamespace]: [
      // One for each pool; those of pools that are gone go.
      rule("", ["serviceaccounts"], ["list", "watch", ...apply, "delete"]),
      rule(rbac, ["roles", "rolebindings"], ["get"], rolesRead),
    ],
  },
};

const controller: Rights = {
  account: objects.controller,
  everywhere: [
    rule(group, ["machineconfigs"], [...read, ...apply, "delete"]),
    // Which image goes with a configuration; and builds refer to rendered configs.
    rule(group, ["machineosconfigs", "machineosbuilds"], ["list", "watch"]),
    rule(group, ["machineconfigpools", "controllerconfigs"], read),
    rule(group, ["machineconfigpools"], ["patch"]),
    rule(group, ["machineconfigpools/status", "controllerconfigs/status"], ["patch"]),
    rule(group, ["machineconfignodes"], [...read, "patch"]),
    rule(group, ["machineconfignodes/status"], ["patch"]),
    // Those that have ended go.
    rule(group, ["provisioningtokens", "joinplaces"], ["list", "watch", "delete"]),
    // Which machine a served configuration let in.
    rule(group, ["joinplaces/status"], ["patch"]),
    // Their finalizers hold what is made of them.
    rule(group, ["kubeletconfigs", "containerruntimeconfigs"], ["list", "watch", "patch"]),
    rule(group, ["kubeletconfigs/status", "containerruntimeconfigs/status"], ["patch"]),
    rule(group, ["kubeletconfigs/finalizers", "containerruntimeconfigs/finalizers"], ["update"]),
    rule(configGroup, ["featuregates/finalizers", "nodes/finalizers", "apiservers/finalizers"], ["update"]),
    // Where machines pull images from, on clusters that have these kinds.
    rule(configGroup, ["images", "imagedigestmirrorsets", "imagetagmirrorsets"], ["list", "watch"]),
    // Their status is written again after a conflict.
    rule(configGroup, ["clusterimagepolicies", "imagepolicies"], read),
    rule(operatorGroup, ["imagecontentsourcepolicies"], ["list", "watch"]),
    rule(configGroup, ["clusterimagepolicies/status", "imagepolicies/status"], ["patch"]),
    rule(configGroup, ["images/finalizers"], ["update"]),
    // For which images kubelets ask CRI-O for credentials.
    rule(configGroup, ["criocredentialproviderconfigs"], read),
    rule(configGroup, ["criocredentialproviderconfigs/status"], ["patch"]),
    rule(configGroup, ["criocredentialproviderconfigs/finalizers"], ["update"]),
    // Images that machines fetch in advance.
    rule(group, ["pinnedimagesets"], ["list", "watch"]),
    // Which operating systems pools can follow.
    rule(group, ["osimagestreams"], [...read, "create", "patch"]),
    rule(group, ["osimagestreams/status"], ["patch"]),
    // Which key a node's name belongs to.
    rule(group, ["nodebindings"], ["list", "watch", "create", "patch", "delete"]),
    // No node gets a certificate for an address of a Service, or for a name that pods resolve as one.
    rule("", ["services", "namespaces"], ["list", "watch"]),
    rule(group, ["machinestatejournals"], ["get", "patch"], [journals.controller]),
    // Owner references that block deletion need the right to update the owner's finalizers.
    rule(group, ["machineconfigpools/finalizers", "controllerconfigs/finalizers"], ["update"]),
    rule(operatorGroup, ["machineconfigurations"], read),
    rule(operatorGroup, ["machineconfigurations/status"], ["patch"]),
    // Settings that not every cluster has.
    rule(configGroup, ["schedulers", "featuregates", "nodes", "apiservers", "clusterversions"], ["list", "watch"]),
    rule("", ["nodes"], [...read, "patch"]),
    // Deletion is for pools whose policy forces a drain that takes too long.
    rule("", ["pods"], ["list", "watch", "delete"]),
    rule("", ["pods/eviction"], ["create"]),
    rule("policy", ["poddisruptionbudgets"], ["list", "watch"]),
    // Machines that join ask for certificates; which of them get one is a right of its own.
    rule("certificates.k8s.io", ["certificatesigningrequests"], ["list", "watch"]),
    rule("certificates.k8s.io", ["certificatesigningrequests/approval"], ["patch"]),
    rule("certificates.k8s.io", ["signers"], ["approve"], [signers.kubeletClient, signers.kubeletServing]),
    // Whose address a node asks to serve under, where a cluster has the machine API.
    rule("machine.openshift.io", ["machines"], ["list"]),
    // From which boot images machines start there.
    rule("machine.openshift.io", ["machinesets"], ["list", "watch"]),
    // The API server decides who may read the metrics.
    rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    // Lies in another namespace, which not every cluster has.
    rule("", ["secrets"], read, ["pull-secret"]),
    // The kubelet's settings on clusters of kubeadm.
    rule("", ["configmaps"], ["get"], ["kubelet-config"]),
    rule("", ["events"], apply),
  ],
  inOwnNamespace: [
    ...leases(objects.controller),
    rule("", ["configmaps"], ["list", "watch"], [objects.buildConfig]),
    // The OS images of the release.
    rule("", ["configmaps"], ["list", "watch"], [objects.osImageConfigMap]),
    // The boot images of the release.
    rule("", ["configmaps"], ["list", "watch"], [objects.bootImages]),
    // By which the API server refuses requests of former machines.
    rule("", ["configmaps"], ["list", "watch", "create", "patch"], [objects.refusedCertificates]),
  ],
};

/** The fence limits a daemon to its own machine's objects: RBAC knows no "own". */
const daemon: Rights = {
  account: objects.daemon,
  everywhere: [
    // No MachineConfigs: the config server gives it those of its own machine.
    rule(group, ["controllerconfigs"], ["list", "watch"], [objects.controllerConfig]),
    rule(operatorGroup, ["machineconfigurations"], read),
    // Settings that not every cluster has.
    rule("", ["nodes"], [...read, "patch"]),
    rule(group, ["machineconfignodes"], ["get", "patch"]),
    rule(group, ["machineconfignodes/status"], ["patch"]),
    // Read once for each grant: names of images are no secret.
    rule(group, ["pinnedimagesets"], ["get"]),
    rule(group, ["machinestatejournals"], ["get", "patch"]),
  ],
  inOwnNamespace: [
    rule("", ["configmaps"], ["list", "watch"], [objects.kubeconfigData]),
    // Where the config server is, and whom to believe that.
    rule("", ["configmaps"], ["get"], [objects.configServerCa]),
  ],
  // The own-node policy leaves it those about its own Node and MachineConfigNode.
  elsewhere: { default: [rule("", ["events"], apply)] },
};

/**
 * The state process reads the subjects of the books, and writes books and health: an admission policy leaves it its
 * conditions of MachineConfigurations, beside which daemons read disruption policies.
 */
const state: Rights = {
  account: objects.state,
  everywhere: [
    rule(
      group,
      ["machineconfigpools", "machineconfignodes", "machineosconfigs", "machineosbuilds", "machinestatejournals"],
      ["list", "watch"],
    ),
    rule(group, ["machinestatebooks", "machinestatechapters"], ["list", ...apply, "delete"]),
    rule(operatorGroup, ["machineconfigurations"], ["list", "watch"]),
    rule(operatorGroup, ["machineconfigurations/status"], ["patch"]),
    rule(configGroup, ["clusteroperators"], ["list", "watch"], [objects.clusterOperator]),
    rule("", ["nodes"], ["list", "watch"]),
    // A machine that was served but does not join is reported once, since nothing else shows it.
    rule("", ["events"], ["create"]),
    // The API server decides who may read the metrics.
    rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
  ],
  inOwnNamespace: [
    ...leases(objects.state, ["machine-config", objects.controller]),
    rule("apps", ["deployments", "daemonsets"], ["list", "watch"]),
    // Only while some daemon is not ready.
    rule("", ["pods"], ["list"]),
    rule("", ["configmaps"], ["list", "watch"], [objects.stateConfig, objects.buildConfig]),
  ],
};

/** The builder makes images and reports on them; it does not decide which machine boots one. */
const osBuilder: Rights = {
  account: objects.osBuilder,
  everywhere: [
    rule(group, ["machineconfigs", "machineconfigpools", "machineconfignodes", "controllerconfigs"], ["list", "watch"]),
    // What another wrote in between is read again.
    rule(group, ["machineconfigpools"], ["get", "patch"]),
    rule(group, ["machineconfigpools/status"], ["patch"]),
    rule(group, ["machineosconfigs", "machineosbuilds"], [...read, ...apply, "delete"]),
    rule(group, ["machineosconfigs/status", "machineosbuilds/status"], ["patch"]),
    // Owner references that block deletion need the right to update the owner's finalizers.
    rule(
      group,
      ["machineconfigpools/finalizers", "machineosconfigs/finalizers", "machineosbuilds/finalizers"],
      ["update"],
    ),
    rule(group, ["machinestatejournals"], ["get", "patch"], [journals.osBuilder]),
    rule("", ["nodes"], ["list", "watch"]),
    rule("", ["events"], apply),
    // The API server decides who may read the metrics.
    rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
  ],
  inOwnNamespace: [
    ...leases(objects.osBuilder),
    // Of Secrets it reads those that the operator copies beside the builds.
    rule("", ["configmaps"], read),
    // Of the reference's builder, which left one for each build.
    rule("", ["configmaps"], ["delete"]),
  ],
  // A pod may mount every Secret of its namespace: in the suite's own, the builder makes none.
  elsewhere: {
    [buildNamespace]: [
      rule("batch", ["jobs"], [...read, "create", "delete"]),
      rule("", ["pods"], ["list", "watch"]),
      rule("", ["pods/log"], ["get"]),
      rule("", ["configmaps"], ["list", ...apply, "delete"]),
      rule("", ["secrets"], [...read, ...apply, "delete"]),
    ],
  },
};

/** The config server reads the inputs of configurations and records who fetched one; it can read no Secrets. */
const configServer: Rights = {
  account: objects.configServer,
  everywhere: [
    // Of MachineConfigs it reads, by name, those that some pool gives to machines that join.
    rule(
      group,
      [
        "machineconfigpools",
        "machineconfigs",
        "controllerconfigs",
        "machineosconfigs",
        "machineosbuilds",
        "provisioningtokens",
      ],
      ["list", "watch"],
    ),
    rule(group, ["provisioningtokens"], ["get"]),
    // What daemons ask for, and whether it is their machine's.
    rule(group, ["machineconfigs", "machineconfignodes"], ["get"]),
    rule(group, ["provisioningtokens/status"], ["patch"]),
    // Room for one node for each configuration that is served.
    rule(group, ["joinplaces"], ["create"]),
    rule(group, ["machinestatejournals"], ["get", "patch"], [journals.server]),
    // The API server decides who may read the metrics.
    rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
  ],
  inOwnNamespace: [rule("", ["configmaps"], ["list", "watch"], [objects.kubeconfigData, objects.buildConfig])],
  // Each account of that namespace is one that machines join with.
  elsewhere: { [joinNamespace]: [rule("", ["serviceaccounts/token"], ["create"])] },
};

const apiVersion = `${rbac}/v1`;
const subjectsOf = (account: string) => [{ kind: "ServiceAccount", name: account, namespace }];

/** A component's rights in one namespace. */
function within(where: string, name: string, rules: readonly Rule[]): readonly KubeObject[] {
  if (rules.length === 0) return [];
  const manifests = [
    { apiVersion, kind: "Role", metadata: { name, namespace: where }, rules },
    {
      apiVersion,
      kind: "RoleBinding",
      metadata: { name, namespace: where },
      roleRef: { apiGroup: rbac, kind: "Role", name },
      subjects: subjectsOf(name),
    },
  ];
  return manifests as unknown as readonly KubeObject[];
}

function manifestsOf({ account: name, everywhere, inOwnNamespace, elsewhere = {} }: Rights): readonly KubeObject[] {
  const manifests = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    { apiVersion, kind: "ClusterRole", metadata: { name }, rules: everywhere },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
      subjects: subjectsOf(name),
    },
    ...Object.entries({ [namespace]: inOwnNamespace, ...elsewhere }).flatMap(([where, rules]) =>
      within(where, name, rules),
    ),
  ];
  return manifests as unknown as readonly KubeObject[];
}

/** Account, roles and bindings of the operator itself. */
export const operatorRights = (): readonly KubeObject[] => manifestsOf(operator);

/** What the operator does in the namespace of the machine API. */
const operatorAtMachineApi: readonly Rule[] = [
  // User data of each pool: administrators choose the names of pools. Of Secrets it reads the installer's user data, whose
  // authority it renews.
  rule("", ["secrets"], apply),
  rule("", ["secrets"], ["get"], installedUserData),
  rule(rbac, ["roles", "rolebindings"], ["get"], [objects.operator, objects.controller]),
];

/** What the controller does there. */
const controllerAtMachineApi: readonly Rule[] = [
  // Their boot images.
  rule("machine.openshift.io", ["machinesets"], ["patch"]),
  // User data of the installer, which the boot images of the release must be able to read.
  rule("", ["secrets"], ["get", "patch"], installedUserData),
];

/**
 * The rights in the namespace of the machine API, which only some clusters have: an administrator applies them there, beside
 * those of {@link suiteRights}.
 */
export const machineApiRights = (): readonly KubeObject[] => [
  ...within(machineNamespace, objects.operator, operatorAtMachineApi),
  ...within(machineNamespace, objects.controller, controllerAtMachineApi),
];

/** Accounts, roles and bindings of the components. */
export const componentRights = (): readonly KubeObject[] =>
  [controller, daemon, state, osBuilder, configServer].flatMap(manifestsOf);

/**
 * The rights of a joining machine before it has a certificate of its own: request one, and read the result. The operator
 * makes one account for each pool, since the account identifies the pool; their group is that of their namespace.
 */
export function bootstrapRights(): readonly KubeObject[] {
  const name = made.nodeBootstrapper;
  const manifests = [
    {
      apiVersion,
      kind: "ClusterRole",
      metadata: { name },
      rules: [rule("certificates.k8s.io", ["certificatesigningrequests"], ["create", ...read])],
    },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
      subjects: [{ apiGroup: rbac, kind: "Group", name: `system:serviceaccounts:${joinNamespace}` }],
    },
  ];
  return manifests as unknown as readonly KubeObject[];
}

/** All rights of the suite on every cluster. The installation creates them; the operator only compares them. */
export const suiteRights = (): readonly KubeObject[] => [
  ...operatorRights(),
  ...componentRights(),
  ...bootstrapRights(),
];
