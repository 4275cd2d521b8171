import {
  annotations,
  configGroup,
  group,
  labels,
  namespace,
  nodeIdentity,
  objects,
  operatorGroup,
  signers,
} from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import type { Guard, GuardNeeds } from "./admission-guard.ts";
import { type BuildPods, buildPodGuardNames, buildPodGuards } from "./build-pod-guards.ts";
import { type OptInBounds, builderGuardNames, builderGuards } from "./builder-guards.ts";
import { stateConditions } from "./condition-guards.ts";
import { pathSegment } from "../core/images/image-reference.ts";
import { renderedNameForm } from "../core/config/is-rendered.ts";
import { generatedNameForm } from "../core/kubelet/generated-names.ts";
import { credentialKey } from "../core/join/certificate-holder.ts";
import { certificateDigits, holderOnlyPrefix, refusedNodePrefix } from "../core/join/refused-certificates.ts";
import { baseConfigNames } from "../core/render/base-config-of.ts";
import { configServerAddress } from "../core/join/pointer-config.ts";
import { type PolicyOfUsers, policiesOfUsers } from "../core/pool/config-users.ts";
import { mostPinsAtOnce } from "../core/pool/pin-slots.ts";
import { whyRetained } from "../core/pool/retained-configs.ts";

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

/** What registries demand of a path: distribution/reference regexp.go (main). */
const nameRules =
  "the words of its path are lower-case letters and digits, joined by single dots, underscores or hyphens";

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

/** Policies of an earlier release, which said that a kind has no effect. */
export const retiredPolicies = ["kubeletconfigs-without-effect", "containerruntimeconfigs-without-effect"] as const;

/** How many machines fetch pinned images at the same time, as recorded on an object. */
const pinsIn = (object: string) =>
  `has(${object}.metadata.annotations) && '${annotations.pinnedImagesAtOnce}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${annotations.pinnedImagesAtOnce}'] : '1'`;

/** Where machines reach the config server, as recorded on an object; empty: the cluster knows. */
const addressIn = (object: string) =>
  `has(${object}.metadata.annotations) && '${annotations.configServerAddress}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${annotations.configServerAddress}'] : ''`;

/**
 * The API server refuses the deletion of a rendered config that an object of this kind names, whether a controller runs
 * or not. The removal of the kind itself (`kubectl delete -k install`) asks no policy.
 */
const keptWhileUsed = ({ name, apiVersion, kind, label, uses }: PolicyOfUsers): Guard => {
  const ways = Object.keys(uses);
  const how = ways
    .slice(0, -1)
    .reduceRight((otherwise, way) => `variables.${way} ? '${way}' : ${otherwise}`, `'${ways.at(-1) ?? ""}'`);
  return {
    name,
    rule: { apiGroup: group, resources: ["machineconfigs"], operations: ["DELETE"] },
    params: { apiVersion, kind },
    conditions: { "is-rendered": `oldObject.metadata.name.matches('${renderedNameForm.source}')` },
    variables: uses,
    validations: [
      {
        expression: `!(${ways.map((way) => `variables.${way}`).join(" || ")})`,
        message: `the config is in use: ${whyRetained}`,
        messageExpression: `oldObject.metadata.name + ' is in use by ${label} ' + params.metadata.name + ' (' + (${how}) + '): ${whyRetained}; mco explain names its other users'`,
        reason: "Forbidden",
      },
    ],
  };
};

const guards: readonly Guard[] = [
  {
    name: "custom-machine-config-pool-selector",
    rule: { apiGroup: group, resources: ["machineconfigpools"], operations: ["CREATE", "UPDATE"] },
    variables: {
      labels:
        "has(object.spec.machineConfigSelector) && has(object.spec.machineConfigSelector.matchLabels) ? object.spec.machineConfigSelector.matchLabels : {}",
      expressions:
        "has(object.spec.machineConfigSelector) && has(object.spec.machineConfigSelector.matchExpressions) ? object.spec.machineConfigSelector.matchExpressions : []",
    },
    validations: [
      {
        field: "spec.machineConfigSelector",
        expression: [
          asBefore("machineConfigSelector"),
          `('${labels.role}' in variables.labels && variables.labels['${labels.role}'] in ${quoted(roles)})`,
          `variables.expressions.exists(e, e.key == '${labels.role}' && ((e.operator == 'In' && has(e.values) && 'worker' in e.values) || (e.operator == 'NotIn' && (!has(e.values) || !('worker' in e.values)))))`,
        ].join(" || "),
        message: `a pool of your own builds on the worker pool, and must select the MachineConfigs of ${labels.role} worker, for example by matchExpressions {key: ${labels.role}, operator: In, values: [worker, <pool>]}`,
      },
    ],
  },
  {
    name: "machineconfigpool-osimagestream-reference-validation",
    needs: "osImageStreams",
    rule: { apiGroup: group, resources: ["machineconfigpools"], operations: ["CREATE", "UPDATE"] },
    params: { apiVersion: `${group}/v1`, kind: "OSImageStream", name: "cluster", mayBeAbsent: true },
    validations: [
      {
        field: "spec.osImageStream.name",
        // A pool whose stream is gone can still be written: its other fields have nothing to do with it.
        expression:
          "!has(object.spec.osImageStream) || (oldObject != null && has(oldObject.spec.osImageStream) && oldObject.spec.osImageStream.name == object.spec.osImageStream.name) || (has(params.status) && has(params.status.availableStreams) && params.status.availableStreams.exists(s, s.name == object.spec.osImageStream.name))",
        message: "must be one of the streams in status.availableStreams of OSImageStream/cluster",
        messageExpression:
          "'OSImageStream/cluster has no stream ' + object.spec.osImageStream.name + (has(params.status) && has(params.status.availableStreams) ? '; it has ' + params.status.availableStreams.map(s, s.name).join(', ') : '; it has none yet')",
      },
    ],
  },
  {
    name: "machine-configuration-guards",
    rule: { apiGroup: operatorGroup, resources: ["machineconfigurations"], operations: ["CREATE", "UPDATE"] },
    variables: {
      access: accessIn("object"),
      accessBefore: `oldObject == null ? 'required' : ${accessIn("oldObject")}`,
      pins: pinsIn("object"),
      pinsBefore: `oldObject == null ? '1' : ${pinsIn("oldObject")}`,
      address: addressIn("object"),
      addressBefore: `oldObject == null ? '' : ${addressIn("oldObject")}`,
    },
    validations: [
      {
        field: "metadata.name",
        expression: `object.metadata.name == '${objects.machineConfiguration}'`,
        message: `there is one MachineConfiguration, and it is called ${objects.machineConfiguration}`,
      },
      // An invalid value that was stored while admission was off does not block changes of other fields.
      {
        field: "metadata.annotations",
        expression: "variables.access in ['required', 'insecure'] || variables.access == variables.accessBefore",
        message: `the annotation ${annotations.configServerAccess} is required or insecure`,
      },
      {
        field: "metadata.annotations",
        expression: `variables.pins.matches('^([1-9][0-9]{0,2}|${mostPinsAtOnce})$') || variables.pins == variables.pinsBefore`,
        message: `the annotation ${annotations.pinnedImagesAtOnce} is a number from 1 to ${mostPinsAtOnce}`,
      },
      {
        field: "metadata.annotations",
        expression: `variables.address == '' || variables.address.matches(${JSON.stringify(configServerAddress)}) || variables.address == variables.addressBefore`,
        message: `the annotation ${annotations.configServerAddress} is a name or an IP address, with or without a port, such as mcs.example.com or 192.0.2.1:22623`,
      },
    ],
  },
  {
    name: "disruption-policy-without-file",
    warns: true,
    rule: { apiGroup: operatorGroup, resources: ["machineconfigurations"], operations: ["CREATE", "UPDATE"] },
    variables: {
      idle: "has(object.spec.nodeDisruptionPolicy) && has(object.spec.nodeDisruptionPolicy.files) ? object.spec.nodeDisruptionPolicy.files.filter(f, !f.path.startsWith('/') || f.path == '/' || f.path.contains('//') || (f.path + '/').contains('/../') || (f.path + '/').contains('/./')).map(f, f.path) : []",
    },
    validations: [
      {
        field: "spec.nodeDisruptionPolicy.files",
        expression: "size(variables.idle) == 0",
        message: "a policy has a path that no file has; write the absolute path of a file or folder",
        messageExpression:
          "'no file has the path ' + variables.idle.join(', ') + ', and the policy has no effect; write the absolute path of a file or folder'",
      },
    ],
  },
  {
    name: "pinned-image-set-without-pool",
    warns: true,
    rule: { apiGroup: group, resources: ["pinnedimagesets"], operations: ["CREATE", "UPDATE"] },
    validations: [
      {
        field: "metadata.labels",
        expression: "has(object.metadata.labels) && size(object.metadata.labels) > 0",
        message: `no pool has a PinnedImageSet without labels, and no machine fetches its images; give it a label that the machineConfigSelector of a pool selects, such as ${labels.role}: worker`,
      },
    ],
  },
  {
    name: "machineosconfig-push-spec",
    warns: true,
    rule: { apiGroup: group, resources: ["machineosconfigs"], operations: ["CREATE", "UPDATE"] },
    validations: [
      {
        field: "spec.renderedImagePushSpec",
        expression: `object.spec.renderedImagePushSpec.matches(${JSON.stringify(`^[^/]+(/${pathSegment})+:\\w[\\w.-]{0,127}$`)})`,
        message: `no registry takes an image of this name, and nothing is built; ${nameRules}, such as registry.example.com/images/worker:latest`,
      },
    ],
  },
  {
    name: "pinned-image-names",
    warns: true,
    rule: { apiGroup: group, resources: ["pinnedimagesets"], operations: ["CREATE", "UPDATE"] },
    variables: {
      strange: `has(object.spec.pinnedImages) ? object.spec.pinnedImages.filter(i, !i.name.matches(${JSON.stringify(`^[^/]+(/${pathSegment})+@`)})).map(i, i.name) : []`,
    },
    validations: [
      {
        field: "spec.pinnedImages",
        expression: "size(variables.strange) == 0",
        message: `no registry has an image of this name, and no machine fetches it; ${nameRules}`,
        messageExpression: `'no registry has an image of the name ' + variables.strange[0] + ', and no machine fetches it; ${nameRules}'`,
      },
    ],
  },
  {
    name: "managed-bootimages-platform-check",
    needs: "infrastructure",
    rule: { apiGroup: operatorGroup, resources: ["machineconfigurations"], operations: ["CREATE", "UPDATE"] },
    params: infrastructure,
    validations: [
      {
        field: "spec.managedBootImages",
        expression: `!has(object.spec.managedBootImages) || ${platform} in ['GCP', 'AWS', 'VSphere', 'Azure']`,
        message: "can be set on GCP, AWS, VSphere and Azure only",
      },
    ],
  },
  {
    name: "managed-bootimages-cpms-platform-check",
    needs: "infrastructure",
    rule: { apiGroup: operatorGroup, resources: ["machineconfigurations"], operations: ["CREATE", "UPDATE"] },
    params: infrastructure,
    validations: [
      {
        field: "spec.managedBootImages.machineManagers",
        expression: `!has(object.spec.managedBootImages) || !has(object.spec.managedBootImages.machineManagers) || !object.spec.managedBootImages.machineManagers.exists(m, m.resource == 'controlplanemachinesets') || ${platform} in ['GCP', 'AWS', 'Azure']`,
        message: "boot images of controlplanemachinesets can be managed on GCP, AWS and Azure only",
      },
    ],
  },
  {
    name: "osimagestream-prevent-deletion",
    needs: "osImageStreams",
    rule: { apiGroup: group, resources: ["osimagestreams"], operations: ["DELETE"] },
    validations: [
      { expression: "false", message: "an OSImageStream cannot be deleted: pools take their OS image from it" },
    ],
  },
  {
    name: "internalreleaseimage-deletion-guard",
    needs: "internalReleaseImage",
    rule: { apiGroup: group, resources: ["internalreleaseimages"], operations: ["DELETE"] },
    params: { apiVersion: `${configGroup}/v1`, kind: "ClusterVersion", name: "version" },
    variables: {
      // A cluster that is new, or that was installed by tag, runs no bundle that is known by its digest.
      running:
        "has(params.status) && has(params.status.desired) && has(params.status.desired.image) && params.status.desired.image.contains('@') ? params.status.desired.image.split('@')[1] : 'unknown'",
    },
    validations: [
      {
        expression:
          "!has(oldObject.status) || !has(oldObject.status.releases) || !oldObject.status.releases.exists(r, has(r.image) && r.image.contains('@') && r.image.split('@')[1] == variables.running)",
        message: "the cluster runs a release of this InternalReleaseImage: go to another release before it is deleted",
      },
    ],
  },
  {
    name: "internalreleaseimage-without-effect",
    warns: true,
    rule: { apiGroup: group, resources: ["internalreleaseimages"], operations: ["CREATE", "UPDATE"] },
    validations: [
      {
        expression: "false",
        message:
          "an InternalReleaseImage is stored and guarded, but this suite serves no registry on control-plane machines: mirror the release to a registry, and name it in an ImageDigestMirrorSet",
      },
    ],
  },
  {
    name: "networkpolicy-prevent-deletion",
    rule: {
      apiGroup: "networking.k8s.io",
      resources: ["networkpolicies"],
      operations: ["DELETE"],
      inNamespace: namespace,
    },
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
    rule: {
      apiGroup: "networking.k8s.io",
      resources: ["networkpolicies"],
      operations: ["UPDATE"],
      inNamespace: namespace,
    },
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
  ...policiesOfUsers.map(keptWhileUsed),
];

const accountOf = (name: string) => `system:serviceaccount:${namespace}:${name}`;
const labelsIn = (object: string) => `(has(${object}.metadata.labels) ? ${object}.metadata.labels : {})`;

/**
 * What the names of rendered, generated and base configs are given to is the controllers' decision: whoever makes a MachineConfig
 * of such a name before they do would have its contents reach machines whose MachineConfigs it may not write. Of a base config the
 * template controller keeps the pull secret where its Secret is gone. It asks who writes, and not what: `mco validate` does
 * not judge by it.
 */
const reservedNames: Guard = {
  name: "rendered-and-generated-config-names",
  rule: { apiGroup: group, resources: ["machineconfigs"], operations: ["CREATE", "UPDATE"] },
  conditions: {
    "has-reserved-name": [
      ...[renderedNameForm, generatedNameForm].map(({ source }) => `object.metadata.name.matches('${source}')`),
      `object.metadata.name in ${quoted(roles.flatMap(baseConfigNames))}`,
    ].join(" || "),
    "by-somebody-else": `!(request.userInfo.username in ${quoted([objects.controller, objects.operator].map(accountOf))}) && !(has(request.userInfo.groups) && 'system:masters' in request.userInfo.groups)`,
    // The garbage collector removes owners and finalizers.
    "changes-what-machines-get": `oldObject == null || has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec) || ${labelsIn("object")} != ${labelsIn("oldObject")}`,
  },
  validations: [
    {
      field: "metadata.name",
      expression: "false",
      message:
        "names of this form are those of the configurations that the machine config controller makes: choose another name. It makes them again from a backup of everything else; one that nothing is rendered to any more is restored by a member of system:masters: kubectl create --as=restore --as-group=system:masters, or with kubeadm's super-admin.conf",
      reason: "Forbidden",
    },
  ],
};

/**
 * Former machines of a name ask for no certificate by it. Another approver than the suite's would approve that at once:
 * kube-controller-manager does where RBAC lets nodes renew, as on clusters of kubeadm and OpenShift. It refuses what the
 * controller has listed, and nothing else: whatever is missing keeps no machine from renewing.
 */
const formerMachines: Guard = {
  name: "former-machines-of-nodes",
  allowsWhatFails: true,
  rule: { apiGroup: "certificates.k8s.io", resources: ["certificatesigningrequests"], operations: ["CREATE"] },
  params: {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: objects.refusedCertificates,
    inNamespace: namespace,
    mayBeAbsent: true,
  },
  conditions: {
    "by-a-node": `request.userInfo.username.startsWith('${nodeIdentity.userPrefix}')`,
    "of-a-kubelet": `object.spec.signerName in ${quoted([signers.kubeletClient, signers.kubeletServing])}`,
  },
  variables: {
    refused: "has(params.data) ? params.data : {}",
    only: `request.userInfo.username.replace('${nodeIdentity.userPrefix}', '${holderOnlyPrefix}')`,
    credentials: `has(request.userInfo.extra) && '${credentialKey}' in request.userInfo.extra ? request.userInfo.extra['${credentialKey}'] : []`,
  },
  validations: [
    {
      expression: `!(request.userInfo.username.replace('${nodeIdentity.userPrefix}', '${refusedNodePrefix}') in variables.refused)`,
      message:
        "an administrator released the name of this node, so that its former machine gets no certificate; it can join again by its pool's account",
      reason: "Forbidden",
    },
    {
      expression: "!variables.credentials.exists(c, c.replace('X509SHA256=', '') in variables.refused)",
      message:
        "another machine has the name of this node, and this request was sent with a certificate of a former one",
      reason: "Forbidden",
    },
    {
      // An API server that records no credentials gives none: then nothing tells machines apart.
      expression: `!(variables.only in variables.refused) || variables.credentials.size() == 0 || variables.refused[variables.only].split(' ').exists(p, p.size() == ${certificateDigits} && variables.credentials.exists(c, c.startsWith('X509SHA256=' + p)))`,
      message:
        "another machine had the name of this node before, and this request was sent with a certificate that is not recorded of the one that has it now; if that is the one, remove spec.exclusive of its NodeBinding",
      reason: "Forbidden",
    },
  ],
};

/** They judge by who writes. */
const writers: readonly Guard[] = [reservedNames, formerMachines, stateConditions];

const referenceTo = ({ name, inNamespace, mayBeAbsent }: NonNullable<Guard["params"]>) => ({
  ...(name === undefined ? { selector: {} } : { name }),
  ...(inNamespace === undefined ? {} : { namespace: inNamespace }),
  parameterNotFoundAction: name === undefined || mayBeAbsent === true ? "Allow" : "Deny",
});

/** Names of all policies and of their bindings. */
export const guardNames: readonly string[] = [
  ...[...guards, ...writers].map(({ name }) => name),
  ...buildPodGuardNames,
  ...builderGuardNames,
].flatMap((name) => [name, `${name}-binding`]);

/** What bounds the builder: the pods that it has made, and the objects that it writes. */
export type BuilderBounds = BuildPods & OptInBounds;

/**
 * Policies that prevent changes that would break a cluster, and their bindings: only those whose kinds and parameters
 * exist.
 */
export const admissionPolicies = (has: GuardNeeds, bounds: BuilderBounds): readonly KubeObject[] => [
  ...manifestsOf([...guards.filter(({ needs }) => needs === undefined || has[needs]), ...writers]),
  ...builderPolicies(bounds),
];

/** Those of {@link admissionPolicies} that judge what people write, whatever kinds the cluster has. */
export const objectPolicies = (): readonly KubeObject[] => manifestsOf(guards);

/** Those of {@link admissionPolicies} without which there is no builder. */
export const builderPolicies = (bounds: BuilderBounds): readonly KubeObject[] =>
  manifestsOf([...buildPodGuards(bounds), ...builderGuards(bounds)]);

/** A rule as the API server reads it: its messages begin with the field, for which a policy has no place of its own. */
function withField({ field, message, messageExpression, ...rule }: Guard["validations"][number]): object {
  const [before, expressionBefore] = field === undefined ? ["", ""] : [`${field}: `, `'${field}: ' + `];
  return {
    ...rule,
    message: `${before}${message}`,
    ...(messageExpression === undefined ? {} : { messageExpression: `${expressionBefore}${messageExpression}` }),
  };
}

function manifestsOf(given: readonly Guard[]): readonly KubeObject[] {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const named = (given: Readonly<Record<string, string>> | undefined) =>
    Object.entries(given ?? {}).map(([name, expression]) => ({ name, expression }));
  const manifests = given.flatMap(
    ({ name, warns, allowsWhatFails, rule, params, conditions, variables, validations }) => [
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name },
        spec: {
          failurePolicy: warns === true || allowsWhatFails === true ? "Ignore" : "Fail",
          ...(params === undefined ? {} : { paramKind: { apiVersion: params.apiVersion, kind: params.kind } }),
          matchConstraints: {
            ...(rule.inNamespace === undefined
              ? {}
              : { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": rule.inNamespace } } }),
            resourceRules: [
              {
                apiGroups: [rule.apiGroup],
                apiVersions: ["v1"],
                operations: rule.operations,
                resources: rule.resources,
              },
            ],
          },
          ...(conditions === undefined ? {} : { matchConditions: named(conditions) }),
          ...(variables === undefined ? {} : { variables: named(variables) }),
          validations: validations.map(withField),
        },
      },
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: `${name}-binding` },
        spec: {
          policyName: name,
          validationActions: [warns === true ? "Warn" : "Deny"],
          ...(params === undefined ? {} : { paramRef: referenceTo(params) }),
        },
      },
    ],
  );
  return manifests as unknown as readonly KubeObject[];
}
