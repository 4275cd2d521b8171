import { annotations, buildNamespace, labels, objects } from "../api/names.ts";
import { buildCacheFolder, buildCapabilities } from "../core/build/build-pod.ts";
import type { BuildIsolation } from "../core/build/build-settings.ts";
import type { Guard } from "./admission-guard.ts";

/** What the builder makes the pods of builds of. */
export interface BuildPods {
  readonly image: string;
  readonly isolation: BuildIsolation;
}

const quoted = (words: readonly string[]) => `[${words.map((word) => `'${word}'`).join(", ")}]`;
const text = (value: string) => `'${value.replaceAll(/[\\']/g, "\\$&")}'`;
/** Of an object that may lack it: `false` then. */
const isSet = (field: string) => `(has(${field}) && ${field})`;
/** What a container may ask its node for: others are devices of plug-ins. */
const resources = ["cpu", "memory", "ephemeral-storage"];
const everyContainer = (condition: string) => `variables.containers.all(c, ${condition})`;
const own = "c.securityContext";
/** Another type of SELinux process is not confined. The level alone is what OpenShift gives each namespace. */
const isConfined = (context: string) =>
  `(!has(${context}.seLinuxOptions) || (!has(${context}.seLinuxOptions.type) && !has(${context}.seLinuxOptions.user) && !has(${context}.seLinuxOptions.role))) && !has(${context}.windowsOptions) && (!has(${context}.appArmorProfile) || ${context}.appArmorProfile.type == 'RuntimeDefault')`;
/** Containers of a pod with users of its own, in which no process gains privileges. */
const within = everyContainer(
  `has(${own}.allowPrivilegeEscalation) && !${own}.allowPrivilegeEscalation && has(${own}.seccompProfile) && ${own}.seccompProfile.type == 'RuntimeDefault' && (!has(${own}.capabilities.add) || ${own}.capabilities.add.all(one, one in ${quoted(buildCapabilities.userNamespace)}))`,
);
/** Containers with the users of the machine: none of them is root. */
const withUsersOfMachine = everyContainer(
  `${isSet(`${own}.runAsNonRoot`)} && (!has(${own}.runAsUser) || ${own}.runAsUser > 0) && (!has(${own}.capabilities.add) || ${own}.capabilities.add.all(one, one in ${quoted(buildCapabilities.hostUsers)}))`,
);

/**
 * Annotations that such a pod may have when it is created: the builder's own, and those of admission plug-ins of clusters, which
 * say what they did. Others may mean something to a network, a runtime or a scheduler that nobody here knows. What a network
 * writes into a pod later is not judged. Of OpenShift: openshift/api security/v1/consts.go (master).
 */
const knownAnnotations = [
  labels.machineOSBuild,
  annotations.buildAttempt,
  "openshift.io/scc",
  "security.openshift.io/validated-scc-subject-type",
  "policies.kyverno.io/last-applied-patches",
  "vpaObservedContainers",
  "vpaUpdates",
];
/** Of these domains, all: `kubernetes.io/limit-ranger`, `batch.kubernetes.io/job-completion-index`, … A network's may end like them. */
const knownDomains = [
  "kubernetes.io",
  "batch.kubernetes.io",
  "kubectl.kubernetes.io",
  "controller.kubernetes.io",
  "cluster-autoscaler.kubernetes.io",
];
/** Earlier API servers write the profiles of containers there as well: k8s.io/kubernetes pkg/registry/core/pod (v1.30). */
const profileAnnotations = [
  "container.apparmor.security.beta.kubernetes.io/",
  "container.seccomp.security.alpha.kubernetes.io/",
  "seccomp.security.alpha.kubernetes.io/pod",
];
const isKnownAnnotation = [
  `a in ${quoted(knownAnnotations)}`,
  `a.split('/')[0] in ${quoted(knownDomains)}`,
  `(${profileAnnotations.map((start) => `a.startsWith('${start}')`).join(" || ")}) && variables.annotations[a] == 'runtime/default'`,
].join(" || ");

function validationsOf({ image, isolation }: BuildPods): Guard["validations"] {
  const rules: Readonly<Record<string, string>> = {
    [`its containers run the image of the os-builder, ${image}`]: everyContainer(`c.image == ${text(image)}`),
    [`its account is ${objects.buildAccount}, without a token (automountServiceAccountToken: false)`]: `has(variables.pod.serviceAccountName) && variables.pod.serviceAccountName == '${objects.buildAccount}' && has(variables.pod.automountServiceAccountToken) && !variables.pod.automountServiceAccountToken`,
    "it uses no network, processes or ports of its machine": `!${isSet("variables.pod.hostNetwork")} && !${isSet("variables.pod.hostPID")} && !${isSet("variables.pod.hostIPC")} && ${everyContainer("!has(c.ports)")}`,
    "it names no node (nodeName), and has the priority of builds": `(oldObject != null || !has(variables.pod.nodeName)) && has(variables.pod.priorityClassName) && variables.pod.priorityClassName == '${objects.buildPriority}'`,
    [`its volumes are Secrets, ConfigMaps, empty folders and the folder of a pool below ${buildCacheFolder}`]: `!has(variables.pod.volumes) || variables.pod.volumes.all(v, has(v.secret) || has(v.configMap) || has(v.emptyDir) || (has(v.hostPath) && has(v.hostPath.type) && v.hostPath.type == 'DirectoryOrCreate' && v.hostPath.path.matches('^${buildCacheFolder}/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')))`,
    "it has no devices (resourceClaims, volumeDevices, resources other than cpu, memory and ephemeral-storage), and no container is added to it": `!has(variables.pod.resourceClaims) && !has(variables.pod.ephemeralContainers) && ${everyContainer(`!has(c.volumeDevices) && (!has(c.resources) || (!has(c.resources.claims) && ${["requests", "limits"].map((of) => `(!has(c.resources.${of}) || c.resources.${of}.all(r, r in ${quoted(resources)}))`).join(" && ")}))`)}`,
    "its node makes no request for it (probes, lifecycle)": everyContainer(
      ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"].map((of) => `!has(c.${of})`).join(" && "),
    ),
    "the cluster's own runtime and scheduler handle it (runtimeClassName, schedulerName)":
      "!has(variables.pod.runtimeClassName) && (!has(variables.pod.schedulerName) || variables.pod.schedulerName == 'default-scheduler')",
    "no container is privileged or less confined than the runtime confines all": `(!has(variables.pod.securityContext) || (${isConfined("variables.pod.securityContext")} && !has(variables.pod.securityContext.sysctls))) && ${everyContainer(`has(${own}) && !${isSet(`${own}.privileged`)} && (!has(${own}.procMount) || ${own}.procMount == 'Default') && ${isConfined(own)} && has(${own}.capabilities) && has(${own}.capabilities.drop) && 'ALL' in ${own}.capabilities.drop`)}`,
    ...(isolation === "userNamespace"
      ? {
          "it has users of its own (hostUsers: false), and no more capabilities than buildah needs": `variables.ownUsers && ${within}`,
        }
      : {
          "with users of its own, it has no more capabilities than buildah needs; with those of the machine, it is not root and has SETUID and SETGID at most": `variables.ownUsers ? ${within} : ${withUsersOfMachine}`,
        }),
  };
  const messageOf = (rule: string) => `pods of ${buildNamespace} are those of image builds: ${rule}`;
  const annotated = messageOf(
    "none chooses a network, a runtime or a device by an annotation, so that it has those of the os-builder and of the admission of clusters alone; have what adds others leave this namespace out",
  );
  return [
    ...Object.entries(rules).map(([rule, expression]) => ({
      expression,
      message: messageOf(rule),
      reason: "Forbidden" as const,
    })),
    {
      expression: "variables.otherAnnotations.size() == 0",
      message: annotated,
      messageExpression: `'${annotated} (' + variables.otherAnnotations[0] + ')'`,
      reason: "Forbidden",
    },
  ];
}

/** What differs between the policies of the two kinds. */
const kinds = [
  {
    name: "image-build-jobs",
    apiGroup: "batch",
    resources: ["jobs"],
    pod: "object.spec.template.spec",
    metadata: "object.spec.template.metadata",
    judged: "spec.template",
  },
  {
    name: "image-build-pods",
    apiGroup: "",
    resources: ["pods", "pods/ephemeralcontainers"],
    pod: "object.spec",
    metadata: "object.metadata",
    judged: "spec",
  },
] as const;

/** Names of the policies. */
export const buildPodGuardNames: readonly string[] = kinds.map(({ name }) => name);

/**
 * The builder's account may create Jobs, and whoever may create a Job is root on a machine unless something bounds what
 * its pods have. They bound everybody in the namespace of builds, which holds nothing else: a pod that another account, or
 * a kubelet, makes there has no more.
 */
export const buildPodGuards = (pods: BuildPods): readonly Guard[] =>
  kinds.map(({ name, apiGroup, resources, pod, metadata, judged }) => ({
    name,
    rule: { apiGroup, resources, operations: ["CREATE", "UPDATE"], inNamespace: buildNamespace },
    // What is there stays, and its status and finalizers are written, also after the image has changed.
    conditions: { "is-new": `oldObject == null || object.${judged} != oldObject.${judged}` },
    variables: {
      pod,
      containers: "variables.pod.containers + (has(variables.pod.initContainers) ? variables.pod.initContainers : [])",
      annotations: `has(${metadata}) && has(${metadata}.annotations) ? ${metadata}.annotations : {}`,
      otherAnnotations: `variables.annotations.filter(a, !(${isKnownAnnotation}))`,
      ownUsers: "has(variables.pod.hostUsers) && !variables.pod.hostUsers",
    },
    validations: validationsOf(pods),
  }));
