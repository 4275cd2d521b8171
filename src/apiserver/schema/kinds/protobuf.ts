import { cloneJson, isList, isObject, type JsonObject } from "../json-values.ts";

/**
 * Messages of the kinds that kubectl sends as protobuf, `number:field:type`: `s` string, `i` integer, `b` bool, `y`
 * bytes (base64 in JSON), `T` time, `Q` quantity, `I` int-or-string, `V` list of strings in a message, `X` not
 * understood, `{}T` map, `[]T` list, `^T` fields of T stand in the outer object. Status (but that which an approval
 * writes) and managed fields are left out: servers ignore them. Facts from kubernetes/api and kubernetes/apimachinery
 * (master), generated.proto.
 */
const table = `
AggregationRule: 1:clusterRoleSelectors:[]LabelSelector
BoundObjectReference: 1:kind:s 2:apiVersion:s 3:name:s 4:uid:s
CertificateSigningRequest: 1:metadata:ObjectMeta 2:spec:CertificateSigningRequestSpec 3:status:CertificateSigningRequestStatus
CertificateSigningRequestCondition: 1:type:s 6:status:s 2:reason:s 3:message:s 4:lastUpdateTime:T 5:lastTransitionTime:T
CertificateSigningRequestSpec: 1:request:y 7:signerName:s 8:expirationSeconds:i 5:usages:[]s 2:username:s 3:uid:s 4:groups:[]s 6:extra:{}V
CertificateSigningRequestStatus: 1:conditions:[]CertificateSigningRequestCondition 2:certificate:y
Capabilities: 1:add:[]s 2:drop:[]s
ClusterRole: 1:metadata:ObjectMeta 2:rules:[]PolicyRule 3:aggregationRule:AggregationRule
ClusterRoleBinding: 1:metadata:ObjectMeta 2:subjects:[]Subject 3:roleRef:RoleRef
ConfigMap: 1:metadata:ObjectMeta 4:immutable:b 2:data:{}s 3:binaryData:{}y
ConfigMapEnvSource: 1::^LocalObjectReference 2:optional:b
ConfigMapKeySelector: 1::^LocalObjectReference 2:key:s 3:optional:b
Container: 1:name:s 2:image:s 3:command:[]s 4:args:[]s 5:workingDir:s 6:ports:[]ContainerPort 19:envFrom:[]EnvFromSource 7:env:[]EnvVar 8:resources:ResourceRequirements 23:resizePolicy:[]X 24:restartPolicy:s 25:restartPolicyRules:[]X 9:volumeMounts:[]VolumeMount 21:volumeDevices:[]X 10:livenessProbe:X 11:readinessProbe:X 22:startupProbe:X 12:lifecycle:X 13:terminationMessagePath:s 20:terminationMessagePolicy:s 14:imagePullPolicy:s 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b 18:tty:b
ContainerPort: 1:name:s 2:hostPort:i 3:containerPort:i 4:protocol:s 5:hostIP:s
CronJob: 1:metadata:ObjectMeta 2:spec:CronJobSpec
CronJobSpec: 1:schedule:s 8:timeZone:s 2:startingDeadlineSeconds:i 3:concurrencyPolicy:s 4:suspend:b 5:jobTemplate:JobTemplateSpec 6:successfulJobsHistoryLimit:i 7:failedJobsHistoryLimit:i
DeleteOptions: 1:gracePeriodSeconds:i 2:preconditions:Preconditions 3:orphanDependents:b 4:propagationPolicy:s 5:dryRun:[]s 6:ignoreStoreReadErrorWithClusterBreakingPotential:b
Deployment: 1:metadata:ObjectMeta 2:spec:DeploymentSpec
DeploymentSpec: 1:replicas:i 2:selector:LabelSelector 3:template:PodTemplateSpec 4:strategy:DeploymentStrategy 5:minReadySeconds:i 6:revisionHistoryLimit:i 7:paused:b 9:progressDeadlineSeconds:i
DeploymentStrategy: 1:type:s 2:rollingUpdate:RollingUpdateDeployment
EnvFromSource: 1:prefix:s 2:configMapRef:ConfigMapEnvSource 3:secretRef:SecretEnvSource
EnvVar: 1:name:s 2:value:s 3:valueFrom:EnvVarSource
EnvVarSource: 1:fieldRef:ObjectFieldSelector 2:resourceFieldRef:ResourceFieldSelector 3:configMapKeyRef:ConfigMapKeySelector 4:secretKeyRef:SecretKeySelector 5:fileKeyRef:FileKeySelector
FileKeySelector: 1:volumeName:s 2:path:s 3:key:s 4:optional:b
Job: 1:metadata:ObjectMeta 2:spec:JobSpec
JobSpec: 1:parallelism:i 2:completions:i 3:activeDeadlineSeconds:i 11:podFailurePolicy:X 16:successPolicy:X 7:backoffLimit:i 12:backoffLimitPerIndex:i 13:maxFailedIndexes:i 4:selector:LabelSelector 5:manualSelector:b 6:template:PodTemplateSpec 8:ttlSecondsAfterFinished:i 9:completionMode:s 10:suspend:b 14:podReplacementPolicy:s 15:managedBy:s 17:scheduling:X
JobTemplateSpec: 1:metadata:ObjectMeta 2:spec:JobSpec
LabelSelector: 1:matchLabels:{}s 2:matchExpressions:[]LabelSelectorRequirement
LabelSelectorRequirement: 1:key:s 2:operator:s 3:values:[]s
LocalObjectReference: 1:name:s
LocalSubjectAccessReview: 1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec
Namespace: 1:metadata:ObjectMeta 2:spec:NamespaceSpec
NamespaceSpec: 1:finalizers:[]s
NonResourceAttributes: 1:path:s 2:verb:s
ObjectFieldSelector: 1:apiVersion:s 2:fieldPath:s
ObjectMeta: 1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s 7:generation:i 8:creationTimestamp:T 9:deletionTimestamp:T 10:deletionGracePeriodSeconds:i 11:labels:{}s 12:annotations:{}s 13:ownerReferences:[]OwnerReference 14:finalizers:[]s
ObjectReference: 1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s 7:fieldPath:s
OwnerReference: 5:apiVersion:s 1:kind:s 3:name:s 4:uid:s 6:controller:b 7:blockOwnerDeletion:b
PodDisruptionBudget: 1:metadata:ObjectMeta 2:spec:PodDisruptionBudgetSpec
PodDisruptionBudgetSpec: 1:minAvailable:I 2:selector:LabelSelector 3:maxUnavailable:I 4:unhealthyPodEvictionPolicy:s
PodSecurityContext: 1:seLinuxOptions:X 8:windowsOptions:X 2:runAsUser:i 6:runAsGroup:i 3:runAsNonRoot:b 4:supplementalGroups:[]i 12:supplementalGroupsPolicy:s 5:fsGroup:i 7:sysctls:[]X 9:fsGroupChangePolicy:s 10:seccompProfile:X 11:appArmorProfile:X 13:seLinuxChangePolicy:s
PodSpec: 1:volumes:[]X 20:initContainers:[]Container 2:containers:[]Container 34:ephemeralContainers:[]X 3:restartPolicy:s 4:terminationGracePeriodSeconds:i 5:activeDeadlineSeconds:i 6:dnsPolicy:s 7:nodeSelector:{}s 8:serviceAccountName:s 9:serviceAccount:s 21:automountServiceAccountToken:b 10:nodeName:s 11:hostNetwork:b 12:hostPID:b 13:hostIPC:b 27:shareProcessNamespace:b 14:securityContext:PodSecurityContext 15:imagePullSecrets:[]LocalObjectReference 16:hostname:s 17:subdomain:s 18:affinity:X 19:schedulerName:s 22:tolerations:[]Toleration 23:hostAliases:[]X 24:priorityClassName:s 25:priority:i 26:dnsConfig:X 28:readinessGates:[]X 29:runtimeClassName:s 30:enableServiceLinks:b 31:preemptionPolicy:s 32:overhead:{}Q 33:topologySpreadConstraints:[]X 35:setHostnameAsFQDN:b 36:os:X 37:hostUsers:b 38:schedulingGates:[]X 39:resourceClaims:[]X 40:resources:ResourceRequirements 41:hostnameOverride:s 43:schedulingGroup:X 44:evictionResponders:[]X
PodTemplateSpec: 1:metadata:ObjectMeta 2:spec:PodSpec
PriorityClass: 1:metadata:ObjectMeta 2:value:i 3:globalDefault:b 4:description:s 5:preemptionPolicy:s
PolicyRule: 1:verbs:[]s 2:apiGroups:[]s 3:resources:[]s 4:resourceNames:[]s 5:nonResourceURLs:[]s
Preconditions: 1:uid:s 2:resourceVersion:s
ResourceAttributes: 1:namespace:s 2:verb:s 3:group:s 4:version:s 5:resource:s 6:subresource:s 7:name:s 8:fieldSelector:X 9:labelSelector:X
ResourceFieldSelector: 1:containerName:s 2:resource:s 3:divisor:Q
ResourceQuota: 1:metadata:ObjectMeta 2:spec:ResourceQuotaSpec
ResourceQuotaSpec: 1:hard:{}Q 2:scopes:[]s 3:scopeSelector:ScopeSelector
ResourceRequirements: 1:limits:{}Q 2:requests:{}Q 3:claims:[]X
Role: 1:metadata:ObjectMeta 2:rules:[]PolicyRule
RoleBinding: 1:metadata:ObjectMeta 2:subjects:[]Subject 3:roleRef:RoleRef
RoleRef: 1:apiGroup:s 2:kind:s 3:name:s
RollingUpdateDeployment: 1:maxUnavailable:I 2:maxSurge:I
ScopeSelector: 1:matchExpressions:[]ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: 1:scopeName:s 2:operator:s 3:values:[]s
Secret: 1:metadata:ObjectMeta 5:immutable:b 2:data:{}y 4:stringData:{}s 3:type:s
SecretEnvSource: 1::^LocalObjectReference 2:optional:b
SecretKeySelector: 1::^LocalObjectReference 2:key:s 3:optional:b
SecurityContext: 1:capabilities:Capabilities 2:privileged:b 3:seLinuxOptions:X 10:windowsOptions:X 4:runAsUser:i 8:runAsGroup:i 5:runAsNonRoot:b 6:readOnlyRootFilesystem:b 7:allowPrivilegeEscalation:b 9:procMount:s 11:seccompProfile:X 12:appArmorProfile:X
SelfSubjectAccessReview: 1:metadata:ObjectMeta 2:spec:SelfSubjectAccessReviewSpec
SelfSubjectAccessReviewSpec: 1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes
SelfSubjectReview: 1:metadata:ObjectMeta
SelfSubjectRulesReview: 1:metadata:ObjectMeta 2:spec:SelfSubjectRulesReviewSpec
SelfSubjectRulesReviewSpec: 1:namespace:s
ServiceAccount: 1:metadata:ObjectMeta 2:secrets:[]ObjectReference 3:imagePullSecrets:[]LocalObjectReference 4:automountServiceAccountToken:b
Subject: 1:kind:s 2:apiGroup:s 3:name:s 4:namespace:s
SubjectAccessReview: 1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec
SubjectAccessReviewSpec: 1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes 3:user:s 4:groups:[]s 5:extra:{}V 6:uid:s
TokenRequest: 1:metadata:ObjectMeta 2:spec:TokenRequestSpec
TokenRequestSpec: 1:audiences:[]s 4:expirationSeconds:i 3:boundObjectRef:BoundObjectReference 5:attestations:{}V
TokenReview: 1:metadata:ObjectMeta 2:spec:TokenReviewSpec
TokenReviewSpec: 1:token:s 2:audiences:[]s
Toleration: 1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:i
VolumeMount: 1:name:s 2:readOnly:b 7:recursiveReadOnly:s 3:mountPath:s 4:subPath:s 5:mountPropagation:s 6:subPathExpr:s 8:bindMountOptions:[]s
`;

/** Kind by apiVersion. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  v1: ["Namespace", "ConfigMap", "Secret", "ServiceAccount", "ResourceQuota"],
  "apps/v1": ["Deployment"],
  "batch/v1": ["Job", "CronJob"],
  "certificates.k8s.io/v1": ["CertificateSigningRequest"],
  "policy/v1": ["PodDisruptionBudget"],
  "scheduling.k8s.io/v1": ["PriorityClass"],
  "rbac.authorization.k8s.io/v1": ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"],
  "authentication.k8s.io/v1": ["TokenRequest", "TokenReview", "SelfSubjectReview"],
  "authorization.k8s.io/v1": [
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
    "LocalSubjectAccessReview",
  ],
  "meta.k8s.io/v1": ["DeleteOptions"],
};

/** Fields that are no pointers in Go: zero means absent there, and the wire always carries them. */
const absentWhenZero = new Set([
  "generation",
  "minReadySeconds",
  "hostPort",
  "hostNetwork",
  "hostPID",
  "hostIPC",
  "stdin",
  "stdinOnce",
  "tty",
  "readOnly",
  "paused",
]);

export type ProtobufResult =
  | { readonly verdict: "decoded"; readonly object: JsonObject }
  | { readonly verdict: "refused"; readonly message: string };

/**
 * Decodes a body of type `application/vnd.kubernetes.protobuf`: the magic `k8s\0`, the envelope `runtime.Unknown`, and
 * the object in it, as JSON would have it. Kinds beyond the table are refused by name.
 */
export function decodeProtobuf(body: Uint8Array): ProtobufResult {
  if (body[0] !== 0x6b || body[1] !== 0x38 || body[2] !== 0x73 || body[3] !== 0)
    return refused("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  try {
    return decodeEnvelope(body.subarray(4));
  } catch (error) {
    if (error instanceof Malformed) return refused(error.message);
    throw error;
  }
}

class Malformed extends Error {}

function refused(message: string): ProtobufResult {
  return { verdict: "refused", message };
}

function decodeEnvelope(body: Uint8Array): ProtobufResult {
  let apiVersion = "";
  let kind = "";
  let raw: Uint8Array = new Uint8Array();
  for (const field of fields(body)) {
    if (field.number === 1) {
      for (const inner of fields(bytesOf(field))) {
        if (inner.number === 1) apiVersion = textOf(inner);
        if (inner.number === 2) kind = textOf(inner);
      }
    }
    if (field.number === 2) raw = bytesOf(field);
  }
  const known = kinds[apiVersion]?.includes(kind) === true || kind === "DeleteOptions";
  if (!known)
    return refused(
      `no protobuf decoder for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}; send JSON`,
    );
  return { verdict: "decoded", object: { kind, apiVersion, ...decodeMessage(kind, raw) } };
}

interface WireField {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

function bytesOf({ value }: WireField): Uint8Array {
  if (typeof value === "bigint") throw new Malformed("proto: wrong wireType");
  return value;
}

const decoder = new TextDecoder();

function textOf(field: WireField): string {
  return decoder.decode(bytesOf(field));
}

function numberOf({ value }: WireField): number {
  if (typeof value !== "bigint") throw new Malformed("proto: wrong wireType");
  return Number(BigInt.asIntN(64, value));
}

function* fields(body: Uint8Array): Generator<WireField> {
  let position = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = body[position++];
      if (byte === undefined) throw new Malformed("unexpected EOF");
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, result);
    }
    throw new Malformed("proto: integer overflow");
  };
  const take = (length: number): Uint8Array => {
    if (length > body.length - position) throw new Malformed("unexpected EOF");
    position += length;
    return body.subarray(position - length, position);
  };
  while (position < body.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    if (number === 0) throw new Malformed("proto: illegal tag 0");
    switch (Number(tag & 7n)) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        take(8);
        break;
      case 2:
        yield { number, value: take(Number(varint())) };
        break;
      case 5:
        take(4);
        break;
      default:
        throw new Malformed("proto: illegal wireType");
    }
  }
}

interface Spec {
  readonly name: string;
  readonly type: string;
}

let messages: ReadonlyMap<string, ReadonlyMap<number, Spec>> | undefined;

function message(name: string): ReadonlyMap<number, Spec> {
  messages ??= new Map(
    table
      .trim()
      .split("\n")
      .map((line) => {
        const colon = line.indexOf(": ");
        const specs = line
          .slice(colon + 2)
          .split(" ")
          .map((part): [number, Spec] => {
            const [number = "", field = "", type = ""] = part.split(":");
            return [Number(number), { name: field, type }];
          });
        return [line.slice(0, colon), new Map(specs)];
      }),
  );
  const found = messages.get(name);
  if (found === undefined) throw new Malformed(`proto: no message ${name}`);
  return found;
}

/** Deeper than any message of the table. */
const maxDepth = 40;

function decodeMessage(name: string, body: Uint8Array, depth = 0): JsonObject {
  if (depth > maxDepth) throw new Malformed("proto: nested too deeply");
  const specs = message(name);
  const result: JsonObject = {};
  for (const field of fields(body)) {
    const spec = specs.get(field.number);
    if (spec === undefined) continue;
    const { name: key, type } = spec;
    if (type.startsWith("^")) Object.assign(result, decodeMessage(type.slice(1), bytesOf(field), depth + 1));
    else if (type.startsWith("[]")) {
      const item = decodeValue(type.slice(2), field, `${name}.${key}`, depth);
      const list = result[key];
      if (isList(list)) list.push(item);
      else result[key] = [item];
    } else if (type.startsWith("{}")) {
      const map = isObject(result[key]) ? result[key] : {};
      result[key] = map;
      let entryKey = "";
      let value: unknown = emptyOf(type.slice(2));
      for (const inner of fields(bytesOf(field))) {
        if (inner.number === 1) entryKey = textOf(inner);
        if (inner.number === 2) value = decodeValue(type.slice(2), inner, `${name}.${key}`, depth);
      }
      if (entryKey !== "__proto__") map[entryKey] = cloneJson(value);
    } else {
      const value = decodeValue(type, field, `${name}.${key}`, depth);
      if (value === "" || value === undefined || (absentWhenZero.has(key) && (value === 0 || value === false)))
        continue;
      result[key] = value;
    }
  }
  return result;
}

function emptyOf(type: string): unknown {
  if (type === "V") return [];
  return type === "i" ? 0 : "";
}

function decodeValue(type: string, field: WireField, where: string, depth: number): unknown {
  switch (type) {
    case "s":
      return textOf(field);
    case "i":
      return numberOf(field);
    case "b":
      return numberOf(field) !== 0;
    case "y":
      return base64OfBytes(bytesOf(field));
    case "T":
      return decodeTime(bytesOf(field));
    case "Q":
      return decodeQuantity(bytesOf(field));
    case "I":
      return decodeIntOrString(bytesOf(field));
    case "V":
      return [...fields(bytesOf(field))].filter(({ number }) => number === 1).map(textOf);
    case "X":
      throw new Malformed(`proto: field ${where} is not understood in this form; send JSON`);
    default:
      return decodeMessage(type, bytesOf(field), depth + 1);
  }
}

/** A zero time is an absent one. */
function decodeTime(body: Uint8Array): string | undefined {
  let seconds = 0;
  for (const field of fields(body)) if (field.number === 1) seconds = numberOf(field);
  if (seconds <= 0) return undefined;
  return new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}

function decodeQuantity(body: Uint8Array): string {
  for (const field of fields(body)) if (field.number === 1) return textOf(field);
  return "0";
}

function decodeIntOrString(body: Uint8Array): string | number {
  let kind = 0;
  let number = 0;
  let text = "";
  for (const field of fields(body)) {
    if (field.number === 1) kind = numberOf(field);
    else if (field.number === 2) number = numberOf(field);
    else if (field.number === 3) text = textOf(field);
  }
  return kind === 1 ? text : number;
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** RFC 4648, with padding. */
export function base64OfBytes(bytes: Uint8Array): string {
  let result = "";
  for (let index = 0; index < bytes.length; index += 3) {
    const a = bytes[index] ?? 0;
    const b = bytes[index + 1];
    const c = bytes[index + 2];
    result += digits.charAt(a >> 2) + digits.charAt(((a & 3) << 4) | ((b ?? 0) >> 4));
    result += b === undefined ? "=" : digits.charAt(((b & 15) << 2) | ((c ?? 0) >> 6));
    result += c === undefined ? "=" : digits.charAt(c & 63);
  }
  return result;
}
