import { annotations, configGroup, group, labels, namespace, objects, operatorGroup } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";

/**
 * Kinds and objects that some policies need; a policy over a kind that is not there, or with parameters that are not,
 * would only stand in the way.
 */
export interface GuardNeeds {
  readonly infrastructure: boolean;
  readonly osImageStreams: boolean;
  readonly osImageStream: boolean;
  readonly internalReleaseImage: boolean;
}

interface Guard {
  /**
   * Of the reference: openshift/machine-config-operator
   * manifests/machineconfigcontroller/*-validatingadmissionpolicy.yaml (main), where the rules' facts are from.
   */
  readonly name: string;
  readonly needs?: keyof GuardNeeds;
  readonly rule: {
    readonly apiGroup: string;
    readonly resource: string;
    readonly operations: readonly ("CREATE" | "UPDATE" | "DELETE")[];
    readonly inOwnNamespace?: boolean;
  };
  readonly params?: { readonly apiVersion: string; readonly kind: string; readonly name: string };
  readonly conditions?: Readonly<Record<string, string>>;
  readonly variables?: Readonly<Record<string, string>>;
  readonly validations: readonly { readonly expression: string; readonly message: string }[];
}

/**
 * The NetworkPolicies of the suite's namespace: openshift/machine-config-operator pkg/operator/network_policy.go
 * (main), and those of the state process, the config server and the daemon, which are ours.
 */
export const networkPolicyNames = [
  "default-deny",
  "allow-machine-config-operator",
  "allow-machine-config-controller",
  "allow-machine-config-server",
  "allow-machine-config-daemon",
  "allow-machine-os-builder",
  "allow-machine-state-controller",
] as const;

/** The policy of the namespace of builds. */
export const buildNetworkPolicy = "image-builds";

/** The reference's, and this suite's before its components had policies for outgoing traffic of their own. */
export const retiredNetworkPolicy = "allow-all-egress";

const roles = ["master", "worker", "arbiter"];
const quoted = (words: readonly string[]) => `[${words.map((word) => `'${word}'`).join(", ")}]`;
const infrastructure = { apiVersion: `${configGroup}/v1`, kind: "Infrastructure", name: "cluster" } as const;
const platform = "params.status.platformStatus.type";
/** A pool that is older than the policy is still rendered and rolled out. */
const asBefore = (field: string) =>
  `(oldObject != null && has(oldObject.spec.${field}) && has(object.spec.${field}) && oldObject.spec.${field} == object.spec.${field})`;

/** The clients that the config server gives configurations to, as recorded on an object. */
const accessIn = (object: string) =>
  `has(${object}.metadata.annotations) && '${annotations.configServerAccess}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${annotations.configServerAccess}'] : 'required'`;

const guards: readonly Guard[] = [
  {
    name: "custom-machine-config-pool-selector",
    rule: { apiGroup: group, resource: "machineconfigpools", operations: ["CREATE", "UPDATE"] },
    variables: {
      labels:
        "has(object.spec.machineConfigSelector) && has(object.spec.machineConfigSelector.matchLabels) ? object.spec.machineConfigSelector.matchLabels : {}",
      expressions:
        "has(object.spec.machineConfigSelector) && has(object.spec.machineConfigSelector.matchExpressions) ? object.spec.machineConfigSelector.matchExpressions : []",
    },
    validations: [
      {
        expression: [
          asBefore("machineConfigSelector"),
          `('${labels.role}' in variables.labels && variables.labels['${labels.role}'] in ${quoted(roles)})`,
          `variables.expressions.exists(e, e.key == '${labels.role}' && ((e.operator == 'In' && has(e.values) && 'worker' in e.values) || (e.operator == 'NotIn' && (!has(e.values) || !('worker' in e.values)))))`,
        ].join(" || "),
        message: `a pool of your own builds on the worker pool: its machineConfigSelector must select ${labels.role} worker, for example by matchExpressions {key: ${labels.role}, operator: In, values: [worker, <pool>]}`,
      },
    ],
  },
  {
    name: "machineconfigpool-osimagestream-reference-validation",
    needs: "osImageStream",
    rule: { apiGroup: group, resource: "machineconfigpools", operations: ["CREATE", "UPDATE"] },
    params: { apiVersion: `${group}/v1`, kind: "OSImageStream", name: "cluster" },
    validations: [
      {
        expression:
          "!has(object.spec.osImageStream) || (has(params.status) && has(params.status.availableStreams) && params.status.availableStreams.exists(s, s.name == object.spec.osImageStream.name))",
        message:
          "spec.osImageStream.name must be one of the streams in status.availableStreams of OSImageStream/cluster",
      },
    ],
  },
  {
    name: "machine-configuration-guards",
    rule: { apiGroup: operatorGroup, resource: "machineconfigurations", operations: ["CREATE", "UPDATE"] },
    variables: {
      access: accessIn("object"),
      accessBefore: `oldObject == null ? 'required' : ${accessIn("oldObject")}`,
    },
    validations: [
      {
        expression: `object.metadata.name == '${objects.machineConfiguration}'`,
        message: `there is one MachineConfiguration, and it is called ${objects.machineConfiguration}`,
      },
      // An invalid value that was stored while admission was off does not block changes of other fields.
      {
        expression: "variables.access in ['required', 'insecure'] || variables.access == variables.accessBefore",
        message: `the annotation ${annotations.configServerAccess} is required or insecure`,
      },
    ],
  },
  {
    name: "managed-bootimages-platform-check",
    needs: "infrastructure",
    rule: { apiGroup: operatorGroup, resource: "machineconfigurations", operations: ["CREATE", "UPDATE"] },
    params: infrastructure,
    validations: [
      {
        expression: `!has(object.spec.managedBootImages) || ${platform} in ['GCP', 'AWS', 'VSphere', 'Azure']`,
        message: "spec.managedBootImages can be set on GCP, AWS, VSphere and Azure only",
      },
    ],
  },
  {
    name: "managed-bootimages-cpms-platform-check",
    needs: "infrastructure",
    rule: { apiGroup: operatorGroup, resource: "machineconfigurations", operations: ["CREATE", "UPDATE"] },
    params: infrastructure,
    validations: [
      {
        expression: `!has(object.spec.managedBootImages) || !has(object.spec.managedBootImages.machineManagers) || !object.spec.managedBootImages.machineManagers.exists(m, m.resource == 'controlplanemachinesets') || ${platform} in ['GCP', 'AWS', 'Azure']`,
        message: "boot images of controlplanemachinesets can be managed on GCP, AWS and Azure only",
      },
    ],
  },
  {
    name: "osimagestream-prevent-deletion",
    needs: "osImageStreams",
    rule: { apiGroup: group, resource: "osimagestreams", operations: ["DELETE"] },
    validations: [
      { expression: "false", message: "an OSImageStream cannot be deleted: pools take their OS image from it" },
    ],
  },
  {
    name: "internalreleaseimage-deletion-guard",
    needs: "internalReleaseImage",
    rule: { apiGroup: group, resource: "internalreleaseimages", operations: ["DELETE"] },
    params: { apiVersion: `${configGroup}/v1`, kind: "ClusterVersion", name: "version" },
    validations: [
      {
        expression:
          "!has(oldObject.status) || !has(oldObject.status.releases) || !oldObject.status.releases.exists(r, has(r.image) && r.image.contains('@') && r.image.split('@')[1] == params.status.desired.image.split('@')[1])",
        message: "the cluster runs a release of this InternalReleaseImage: go to another release before it is deleted",
      },
    ],
  },
  {
    name: "networkpolicy-prevent-deletion",
    rule: { apiGroup: "networking.k8s.io", resource: "networkpolicies", operations: ["DELETE"], inOwnNamespace: true },
    // They go with their namespace, which else could never go.
    validations: [
      {
        expression: `has(namespaceObject.metadata.deletionTimestamp) || !(oldObject.metadata.name in ${quoted(networkPolicyNames)})`,
        message: `the NetworkPolicies of ${namespace} are the machine config operator's and cannot be deleted`,
      },
    ],
  },
  {
    name: "networkpolicy-prevent-update",
    rule: { apiGroup: "networking.k8s.io", resource: "networkpolicies", operations: ["UPDATE"], inOwnNamespace: true },
    conditions: {
      "by-somebody-else": `request.userInfo.username != 'system:serviceaccount:${namespace}:${objects.operator}'`,
    },
    validations: [
      {
        expression: `!(object.metadata.name in ${quoted(networkPolicyNames)})`,
        message: `the NetworkPolicies of ${namespace} are the machine config operator's and cannot be changed`,
      },
    ],
  },
];

/** Names of all policies and of their bindings. */
export const guardNames: readonly string[] = guards.flatMap(({ name }) => [name, `${name}-binding`]);

/**
 * Policies that keep people from what would break a cluster, and their bindings: those of which everything is there.
 */
export function admissionPolicies(has: GuardNeeds): readonly KubeObject[] {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const named = (given: Readonly<Record<string, string>> | undefined) =>
    Object.entries(given ?? {}).map(([name, expression]) => ({ name, expression }));
  const manifests = guards
    .filter(({ needs }) => needs === undefined || has[needs])
    .flatMap(({ name, rule, params, conditions, variables, validations }) => [
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name },
        spec: {
          failurePolicy: "Fail",
          ...(params === undefined ? {} : { paramKind: { apiVersion: params.apiVersion, kind: params.kind } }),
          matchConstraints: {
            ...(rule.inOwnNamespace === true
              ? { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } } }
              : {}),
            resourceRules: [
              {
                apiGroups: [rule.apiGroup],
                apiVersions: ["v1"],
                operations: rule.operations,
                resources: [rule.resource],
              },
            ],
          },
          ...(conditions === undefined ? {} : { matchConditions: named(conditions) }),
          ...(variables === undefined ? {} : { variables: named(variables) }),
          validations,
        },
      },
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: `${name}-binding` },
        spec: {
          policyName: name,
          validationActions: ["Deny"],
          ...(params === undefined ? {} : { paramRef: { name: params.name, parameterNotFoundAction: "Deny" } }),
        },
      },
    ]);
  return manifests as unknown as readonly KubeObject[];
}
