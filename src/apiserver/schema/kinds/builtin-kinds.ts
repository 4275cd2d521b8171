import { compileAdmissionPolicy } from "../validation/cel.ts";
import type { FieldError, KubeObject, ResourceDefinition, SubresourceDefinition } from "../contract.ts";
import { typeSchema } from "./builtin-types.ts";
import { definitionsOf } from "../validation/custom-resource-definition.ts";
import { duplicate, forbidden, invalid, notSupported, required } from "../field-errors.ts";
import {
  at,
  cloneJson,
  equalJson,
  isList,
  isObject,
  listAt,
  objectAt,
  textAt,
  type JsonObject,
} from "../json-values.ts";
import {
  immutable,
  labelName,
  serviceName,
  validateFinalizers,
  notNegative,
  oneOf,
  pathName,
  requireFields,
  subdomainName,
  validateMetadata,
  validatePodSpec,
  validatePodTemplate,
  validateSelector,
  validateTaints,
  validateWorkload,
  type NameRule,
} from "../validation/object-validation.ts";
import { base64OfBytes } from "./protobuf.ts";
import { validateSigningRequest } from "./signing-request.ts";
import { builtinTable } from "../tables.ts";

const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;

interface KindOptions {
  readonly plural?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly clusterScoped?: boolean;
  readonly verbs?: readonly string[];
  readonly status?: boolean;
  readonly scale?: boolean;
  readonly subresources?: readonly SubresourceDefinition[];
  /** The row of the type table, where it is not called as the kind. */
  readonly type?: string;
  readonly name?: NameRule;
  /** `never`: the kind has no generation; `annotations`: they count as well. */
  readonly generation?: "never" | "annotations";
  readonly prepare?: (object: KubeObject, before: KubeObject | undefined) => void;
  readonly validate?: (
    object: KubeObject,
    before: KubeObject | undefined,
    subresource: string,
  ) => readonly FieldError[];
  readonly selectableFields?: ResourceDefinition["selectableFields"];
}

const scaleKind = { group: "autoscaling", version: "v1", kind: "Scale" };

/** Groups that judge metadata by the rules of all kinds alone. */
const plainMetadata: ReadonlySet<string> = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "coordination.k8s.io",
  "policy",
]);

/**
 * Kinds whose updates are judged as new objects are, too: `ValidateXUpdate` in `k8s.io/kubernetes pkg/apis (v1.34)`
 * calls `ValidateX`.
 */
const judgedAnew: ReadonlySet<string> = new Set([
  "ClusterRole",
  "ClusterRoleBinding",
  "ConfigMap",
  "CSINode",
  "PersistentVolume",
  "PersistentVolumeClaim",
  "Role",
  "RoleBinding",
  "Secret",
  "Service",
  "ServiceAccount",
  "VolumeAttachment",
]);

function kind(group: string, version: string, name: string, options: KindOptions = {}): ResourceDefinition {
  const hasStatus = options.status === true;
  const subresources: SubresourceDefinition[] = [...(options.subresources ?? [])];
  if (options.scale === true) subresources.push({ name: "scale", kind: scaleKind, verbs: ["get", "patch", "update"] });
  if (hasStatus) subresources.push({ name: "status", verbs: ["get", "patch", "update"] });
  return {
    group,
    version,
    kind: name,
    listKind: `${name}List`,
    plural: options.plural ?? `${name.toLowerCase()}s`,
    singular: name.toLowerCase(),
    shortNames: options.shortNames ?? [],
    categories: options.categories ?? [],
    namespaced: options.clusterScoped !== true,
    verbs: options.verbs ?? allVerbs,
    custom: false,
    subresources,
    hasStatus,
    ...(options.scale === true
      ? {
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".spec.selector",
          },
        }
      : {}),
    schema: typeSchema(options.type ?? name),
    table: builtinTable(name),
    generationChanged:
      options.generation === "never"
        ? () => false
        : (before, after) =>
            !equalJson(withoutVolatile(before), withoutVolatile(after)) ||
            (options.generation === "annotations" &&
              !equalJson(before.metadata.annotations ?? {}, after.metadata.annotations ?? {})),
    prepare: options.prepare ?? (() => undefined),
    // Of an update the real server checks metadata twice, for all kinds and for this one, and tells both.
    validate: (object, before, subresource) => [
      ...(before === undefined ? [] : validateMetadata(object, before, options.name ?? subdomainName)),
      ...validateMetadata(object, before, options.name ?? subdomainName),
      ...(plainMetadata.has(group) ? [] : validateFinalizers(object)),
      ...(before !== undefined && judgedAnew.has(name)
        ? [...validateMetadata(object, undefined, options.name ?? subdomainName), ...validateFinalizers(object)]
        : []),
      ...(options.validate?.(object, before, subresource) ?? []),
    ],
    selectableFields: options.selectableFields ?? {},
  };
}

function withoutVolatile(object: KubeObject): JsonObject {
  const { metadata: _metadata, status: _status, apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}

function objectIn(parent: JsonObject, field: string): JsonObject {
  const current = parent[field];
  if (isObject(current)) return current;
  const made: JsonObject = {};
  parent[field] = made;
  return made;
}

/** An empty text is an absent one. */
function setDefault(target: JsonObject, field: string, value: unknown): void {
  if (target[field] === "") target[field] = value;
  target[field] ??= value;
}

/** kubernetes/kubernetes pkg/apis/core/v1/defaults.go (master): what depends on other fields. */
function preparePodSpec(spec: JsonObject): void {
  for (const field of ["initContainers", "containers"]) {
    for (const container of listAt(spec, field)) {
      if (!isObject(container)) continue;
      const image = textAt(container, "image");
      if (container["imagePullPolicy"] === undefined && image !== "")
        container["imagePullPolicy"] = imageTag(image) === "latest" ? "Always" : "IfNotPresent";
    }
  }
  // A volume without a source is an empty folder.
  for (const volume of listAt(spec, "volumes"))
    if (isObject(volume) && Object.keys(volume).every((key) => key === "name")) volume["emptyDir"] = {};
  const account = spec["serviceAccountName"] ?? spec["serviceAccount"];
  if (typeof account === "string" && account !== "") {
    spec["serviceAccountName"] = account;
    spec["serviceAccount"] = account;
  }
}

/** What is filled in for pods, and not for their templates. */
function preparePlainPod(spec: JsonObject): void {
  for (const field of ["initContainers", "containers"]) {
    for (const container of listAt(spec, field)) {
      if (!isObject(container)) continue;
      const { resources } = container;
      if (isObject(resources) && isObject(resources["limits"])) {
        const requests = objectIn(resources, "requests");
        for (const [name, value] of Object.entries(resources["limits"])) setDefault(requests, name, value);
      }
    }
  }
  if (spec["hostNetwork"] === true) {
    for (const container of listAt(spec, "containers"))
      for (const port of listAt(container, "ports"))
        if (isObject(port)) setDefault(port, "hostPort", port["containerPort"]);
  }
}

/** A value and the list that it is the first of: the single one wins. `pkg/apis/core/v1/conversion.go (v1.34)` */
function twin(
  object: JsonObject,
  single: string,
  list: string,
  read: (item: unknown) => unknown,
  write: (value: unknown) => unknown,
): void {
  const [value, items] = [object[single], listAt(object, list)];
  if (value === undefined || value === "") {
    if (items.length > 0) object[single] = read(items[0]);
  } else if (items.length === 0 || read(items[0]) !== value) object[list] = [write(value)];
}

function imageTag(image: string): string {
  if (image.includes("@")) return "";
  const last = image.slice(image.lastIndexOf("/") + 1);
  const colon = last.lastIndexOf(":");
  return colon === -1 ? "latest" : last.slice(colon + 1);
}

function prepareTemplate(object: KubeObject): JsonObject {
  const spec = objectIn(object, "spec");
  const template = spec["template"];
  if (isObject(template)) {
    setDefault(template, "metadata", {});
    if (isObject(template["spec"])) preparePodSpec(template["spec"]);
  }
  return spec;
}

const resourceNames = ["cpu", "memory"];

/** kubernetes/kubernetes pkg/apis/core/v1/helper/qos/qos.go (master) */
function qosClass(spec: unknown): string {
  let any = false;
  let guaranteed = true;
  for (const container of [...listAt(spec, "containers"), ...listAt(spec, "initContainers")]) {
    const [limits, requests] = [
      objectAt(container, "resources", "limits"),
      objectAt(container, "resources", "requests"),
    ];
    for (const name of resourceNames) {
      if (limits[name] !== undefined || requests[name] !== undefined) any = true;
      if (limits[name] === undefined || (requests[name] !== undefined && !equalJson(limits[name], requests[name])))
        guaranteed = false;
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

function preparePod(pod: KubeObject, before: KubeObject | undefined): void {
  const spec = objectIn(pod, "spec");
  preparePodSpec(spec);
  preparePlainPod(spec);
  twin(
    objectIn(pod, "status"),
    "podIP",
    "podIPs",
    (one) => textAt(one, "ip"),
    (ip) => ({ ip }),
  );
  setDefault(spec, "enableServiceLinks", true);
  if (before !== undefined) return;
  const status = objectIn(pod, "status");
  setDefault(status, "phase", "Pending");
  setDefault(status, "qosClass", qosClass(spec));
}

const podUpdateText =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** `pkg/apis/core/validation/validation.go (v1.34)` ValidatePodUpdate */
function validatePod(pod: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors = [...validatePodSpec(pod["spec"], "spec")];
  if (before === undefined) return errors;
  for (const field of ["containers", "initContainers"]) {
    if (listAt(pod, "spec", field).length !== listAt(before, "spec", field).length)
      return [...errors, forbidden(`spec.${field}`, "pod updates may not add or remove containers")];
  }
  const [deadline, earlier] = [at(pod, "spec", "activeDeadlineSeconds"), at(before, "spec", "activeDeadlineSeconds")];
  if (typeof deadline === "number" && typeof earlier === "number" && earlier < deadline)
    return [...errors, invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")];
  if (deadline === undefined && earlier !== undefined)
    errors.push(invalid("spec.activeDeadlineSeconds", null, "must not update from a positive integer to nil value"));
  listAt(pod, "spec", "schedulingGates").forEach((gate, index) => {
    const name = textAt(gate, "name");
    if (listAt(before, "spec", "schedulingGates").some((one) => textAt(one, "name") === name)) return;
    errors.push(
      forbidden(
        `spec.schedulingGates[${index}].name`,
        `only deletion is allowed, but found new scheduling gate '${name}'`,
      ),
    );
  });
  const timeless = (toleration: unknown) => ({ ...objectAt(toleration), tolerationSeconds: 0 });
  const kept = listAt(before, "spec", "tolerations").every((toleration) =>
    listAt(pod, "spec", "tolerations").some((one) => equalJson(timeless(one), timeless(toleration))),
  );
  if (!kept)
    errors.push(forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"));
  if (!equalJson(frozenPodSpec(pod["spec"]), frozenPodSpec(before["spec"])))
    errors.push(forbidden("spec", podUpdateText));
  return errors;
}

function frozenPodSpec(spec: unknown): JsonObject {
  const frozen = cloneJson(objectAt(spec));
  for (const field of ["tolerations", "activeDeadlineSeconds", "schedulingGates"]) delete frozen[field];
  for (const field of ["containers", "initContainers"])
    for (const container of listAt(frozen, field)) if (isObject(container)) delete container["image"];
  return Object.fromEntries(Object.entries(frozen).filter(([, value]) => value !== undefined));
}

function prepareSecret(secret: KubeObject): void {
  const plain = secret["stringData"];
  if (isObject(plain)) {
    const data = objectIn(secret, "data");
    for (const [key, value] of Object.entries(plain))
      if (typeof value === "string") data[key] = base64OfBytes(new TextEncoder().encode(value));
    delete secret["stringData"];
  }
  setDefault(secret, "type", "Opaque");
}

const keyPattern = /^[-._a-zA-Z0-9]+$/;
const keyText =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function validateData(object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (before?.["immutable"] === true) {
    if (object["immutable"] !== true) errors.push(forbidden("immutable", "field is immutable when `immutable` is set"));
    for (const field of ["data", "binaryData"])
      if (!equalJson(object[field] ?? {}, before[field] ?? {}))
        errors.push(forbidden(field, "field is immutable when `immutable` is set"));
  }
  for (const field of ["data", "binaryData"]) {
    if (field === "binaryData")
      for (const key of Object.keys(objectAt(object, field)))
        if (key in objectAt(object, "data"))
          errors.push(invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
    for (const key of Object.keys(objectAt(object, field)))
      if (!keyPattern.test(key) || key.length > 253) errors.push(invalid(`${field}[${key}]`, key, keyText));
  }
  return errors;
}

function validateSecret(secret: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors = [...validateData(secret, before), ...(before === undefined ? [] : immutable(secret, before, "type"))];
  const wanted: Readonly<Record<string, readonly string[]>> = {
    "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
    "kubernetes.io/dockercfg": [".dockercfg"],
    "kubernetes.io/tls": ["tls.crt", "tls.key"],
    "kubernetes.io/ssh-auth": ["ssh-privatekey"],
  };
  for (const key of wanted[textAt(secret, "type")] ?? [])
    if (at(secret, "data", key) === undefined) errors.push(required(`data[${key}]`));
  return errors;
}

function prepareDeployment(deployment: KubeObject): void {
  const spec = prepareTemplate(deployment);
  const { strategy } = spec;
  if (isObject(strategy) && strategy["type"] === "RollingUpdate") {
    const rolling = objectIn(strategy, "rollingUpdate");
    setDefault(rolling, "maxUnavailable", "25%");
    setDefault(rolling, "maxSurge", "25%");
  }
}

function validateDeployment(deployment: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors = [...validateWorkload(deployment, before, ["Always"])];
  const strategy = at(deployment, "spec", "strategy");
  const type = textAt(strategy, "type");
  if (type === "Recreate" && at(strategy, "rollingUpdate") !== undefined)
    errors.push(forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"));
  else if (isObject(strategy) && type !== "Recreate" && type !== "RollingUpdate")
    errors.push(
      notSupported("spec.strategy", { Type: type, RollingUpdate: strategy["rollingUpdate"] ?? null }, [
        "Recreate",
        "RollingUpdate",
      ]),
    );
  const rolling = type === "RollingUpdate" ? at(strategy, "rollingUpdate") : undefined;
  const [deadline, ready] = [
    at(deployment, "spec", "progressDeadlineSeconds"),
    at(deployment, "spec", "minReadySeconds") ?? 0,
  ];
  if (isZero(at(rolling, "maxUnavailable")) && isZero(at(rolling, "maxSurge")))
    errors.push(
      invalid(
        "spec.strategy.rollingUpdate.maxUnavailable",
        at(rolling, "maxUnavailable"),
        "may not be 0 when `maxSurge` is 0",
      ),
    );
  if (before !== undefined && !equalJson(before["status"] ?? {}, deployment["status"] ?? {}))
    errors.push(...validateReplicaCounts(deployment["status"]));
  if (typeof deadline === "number" && typeof ready === "number" && deadline <= ready)
    errors.push(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
  return errors;
}

/** `pkg/apis/apps/validation/validation.go (v1.34)` ValidateDeploymentStatus */
function validateReplicaCounts(status: unknown): readonly FieldError[] {
  const count = (field: string): number => {
    const value = at(status, field);
    return typeof value === "number" ? value : 0;
  };
  const errors = [
    ...notNegative(
      status,
      "status",
      "observedGeneration",
      "replicas",
      "updatedReplicas",
      "readyReplicas",
      "availableReplicas",
      "unavailableReplicas",
      "terminatingReplicas",
      "collisionCount",
    ),
  ];
  for (const field of ["updatedReplicas", "readyReplicas", "availableReplicas"])
    if (count(field) > count("replicas"))
      errors.push(invalid(`status.${field}`, count(field), "cannot be greater than status.replicas"));
  if (count("availableReplicas") > count("readyReplicas"))
    errors.push(
      invalid("status.availableReplicas", count("availableReplicas"), "cannot be greater than readyReplicas"),
    );
  return errors;
}

function isZero(value: unknown): boolean {
  return value === 0 || value === "0%" || value === "0";
}

function prepareDaemonSet(object: KubeObject): void {
  const spec = prepareTemplate(object);
  const strategy = objectIn(spec, "updateStrategy");
  if (strategy["type"] === "RollingUpdate") {
    const rolling = objectIn(strategy, "rollingUpdate");
    setDefault(rolling, "maxUnavailable", 1);
    setDefault(rolling, "maxSurge", 0);
  }
}

function prepareJob(job: KubeObject, before: KubeObject | undefined): void {
  const spec = prepareTemplate(job);
  if (spec["completions"] === undefined && spec["parallelism"] === undefined) {
    spec["completions"] = 1;
    spec["parallelism"] = 1;
  }
  setDefault(spec, "parallelism", 1);
  const { uid, name } = job.metadata;
  if (before !== undefined || spec["manualSelector"] === true || uid === undefined || !isObject(spec["template"]))
    return;
  // kubernetes/kubernetes pkg/registry/batch/job/strategy.go (master), generateSelector
  const labels = objectIn(objectIn(spec["template"], "metadata"), "labels");
  labels["controller-uid"] = uid;
  labels["batch.kubernetes.io/controller-uid"] = uid;
  if (name !== undefined) {
    labels["job-name"] = name;
    labels["batch.kubernetes.io/job-name"] = name;
  }
  spec["selector"] ??= { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
}

function validateJob(job: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  return [
    ...validatePodTemplate(at(job, "spec", "template"), "spec.template", ["OnFailure", "Never"]),
    ...notNegative(
      job,
      "",
      "spec.parallelism",
      "spec.completions",
      "spec.backoffLimit",
      "spec.activeDeadlineSeconds",
      "spec.ttlSecondsAfterFinished",
    ),
    ...immutable(job, before, "spec.completions", "spec.selector", "spec.template", "spec.completionMode"),
  ];
}

const namespaceLabel = "kubernetes.io/metadata.name";

function prepareNamespace(namespace: KubeObject, before: KubeObject | undefined): void {
  const { metadata } = namespace;
  if (metadata.name !== undefined) (metadata.labels ??= {})[namespaceLabel] = metadata.name;
  if (before !== undefined) return;
  const spec = objectIn(namespace, "spec");
  if (listAt(spec, "finalizers").length === 0) spec["finalizers"] = ["kubernetes"];
  objectIn(namespace, "status")["phase"] = "Active";
}

function validateService(service: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors: FieldError[] = [];
  const type = textAt(service, "spec", "type");
  const headless = textAt(service, "spec", "clusterIP") === "None";
  const ports = listAt(service, "spec", "ports");
  if (ports.length === 0 && !headless && type !== "ExternalName") errors.push(required("spec.ports"));
  ports.forEach((port, index) => {
    const path = `spec.ports[${index}]`;
    const number = at(port, "port");
    if (ports.length > 1 && textAt(port, "name") === "") errors.push(required(`${path}.name`));
    if (typeof number !== "number" || number < 1 || number > 65_535)
      errors.push(invalid(`${path}.port`, number ?? 0, "must be between 1 and 65535, inclusive"));
    errors.push(...oneOf(port, path, "protocol", ["SCTP", "TCP", "UDP"]));
  });
  errors.push(...oneOf(service, "", "spec.type", ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]));
  if (before !== undefined && textAt(before, "spec", "clusterIP") !== "")
    errors.push(...immutable(service, before, "spec.clusterIP"));
  return errors;
}

function prepareService(service: KubeObject): void {
  for (const port of listAt(service, "spec", "ports"))
    if (isObject(port) && (port["targetPort"] === 0 || port["targetPort"] === undefined || port["targetPort"] === ""))
      port["targetPort"] = port["port"];
}

const rbacGroup = "rbac.authorization.k8s.io";

function prepareBinding(binding: KubeObject): void {
  const reference = binding["roleRef"];
  if (isObject(reference)) setDefault(reference, "apiGroup", rbacGroup);
  for (const subject of listAt(binding, "subjects")) {
    if (!isObject(subject)) continue;
    if (subject["kind"] === "User" || subject["kind"] === "Group") setDefault(subject, "apiGroup", rbacGroup);
  }
}

function validateBinding(binding: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors: FieldError[] = [];
  const kinds = binding.kind === "RoleBinding" ? ["Role", "ClusterRole"] : ["ClusterRole"];
  if (textAt(binding, "roleRef", "apiGroup") !== rbacGroup)
    errors.push(notSupported("roleRef.apiGroup", textAt(binding, "roleRef", "apiGroup"), [rbacGroup]));
  if (!kinds.includes(textAt(binding, "roleRef", "kind")))
    errors.push(notSupported("roleRef.kind", textAt(binding, "roleRef", "kind"), kinds));
  errors.push(...requireFields(binding["roleRef"], "roleRef", "name"));
  listAt(binding, "subjects").forEach((subject, index) => {
    const path = `subjects[${index}]`;
    errors.push(...requireFields(subject, path, "name"));
    const type = textAt(subject, "kind");
    if (!subjectKinds.includes(type)) errors.push(notSupported(`${path}.kind`, type, subjectKinds));
    if (type === "ServiceAccount" && textAt(subject, "namespace") === "") errors.push(required(`${path}.namespace`));
  });
  if (before !== undefined && !equalJson(binding["roleRef"], before["roleRef"]))
    errors.push(invalid("roleRef", asGo(binding["roleRef"], ["apiGroup", "kind", "name"]), "cannot change roleRef"));
  return errors;
}

const subjectKinds = ["ServiceAccount", "User", "Group"];

function validateRole(role: KubeObject): readonly FieldError[] {
  return listAt(role, "rules").flatMap((rule, index) => {
    const path = `rules[${index}]`;
    const errors =
      listAt(rule, "verbs").length === 0 ? [required(`${path}.verbs`, "verbs must contain at least one value")] : [];
    const urls = listAt(rule, "nonResourceURLs");
    if (urls.length > 0) {
      if (role.kind === "Role")
        errors.push(invalid(`${path}.nonResourceURLs`, urls, "namespaced rules cannot apply to non-resource URLs"));
      if (
        listAt(rule, "apiGroups").length + listAt(rule, "resources").length + listAt(rule, "resourceNames").length >
        0
      ) {
        errors.push(
          invalid(
            `${path}.nonResourceURLs`,
            urls,
            "rules cannot apply to both regular resources and non-resource URLs",
          ),
        );
      }
      return errors;
    }
    if (listAt(rule, "apiGroups").length === 0)
      errors.push(required(`${path}.apiGroups`, "resource rules must supply at least one api group"));
    if (listAt(rule, "resources").length === 0)
      errors.push(required(`${path}.resources`, "resource rules must supply at least one resource"));
    return errors;
  });
}

const operations = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

function validateWebhooks(object: KubeObject): readonly FieldError[] {
  const seen = new Set<string>();
  return listAt(object, "webhooks").flatMap((webhook, index) => {
    const path = `webhooks[${index}]`;
    const name = textAt(webhook, "name");
    const errors: FieldError[] = [...requireFields(webhook, path, "name", "sideEffects")];
    const versions = listAt(webhook, "admissionReviewVersions");
    if (versions.length === 0)
      errors.push(required(`${path}.admissionReviewVersions`, "must specify one of v1, v1beta1"));
    else if (!versions.includes("v1") && !versions.includes("v1beta1"))
      errors.push(invalid(`${path}.admissionReviewVersions`, versions, "must include at least one of v1, v1beta1"));
    listAt(webhook, "rules").forEach((rule, number) =>
      listAt(rule, "operations").forEach((operation, which) => {
        if (!operations.includes(String(operation)))
          errors.push(notSupported(`${path}.rules[${number}].operations[${which}]`, operation, operations));
      }),
    );
    if (name !== "" && name.split(".").length < 3)
      errors.push(invalid(`${path}.name`, name, "should be a domain with at least three segments separated by dots"));
    if (seen.has(name)) errors.push(duplicate(`${path}.name`, name));
    seen.add(name);
    if (textAt(webhook, "sideEffects") !== "" && !["None", "NoneOnDryRun"].includes(textAt(webhook, "sideEffects")))
      errors.push(notSupported(`${path}.sideEffects`, textAt(webhook, "sideEffects"), ["None", "NoneOnDryRun"]));
    const [url, service] = [at(webhook, "clientConfig", "url"), at(webhook, "clientConfig", "service")];
    if ((url === undefined) === (service === undefined))
      errors.push(required(`${path}.clientConfig`, "exactly one of url or service is required"));
    const parsed = typeof url === "string" ? URL.parse(url) : null;
    if (parsed !== null && parsed.username !== "")
      errors.push(invalid(`${path}.clientConfig.url`, parsed.username, "user information is not permitted in the URL"));
    if (typeof url === "string" && parsed?.protocol !== "https:")
      errors.push(
        invalid(
          `${path}.clientConfig.url`,
          parsed?.protocol.replace(":", "") ?? url,
          "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
      );
    const seconds = at(webhook, "timeoutSeconds");
    if (typeof seconds === "number" && (seconds < 1 || seconds > 30))
      errors.push(invalid(`${path}.timeoutSeconds`, seconds, "the timeout value must be between 1 and 30 seconds"));
    errors.push(
      ...oneOf(webhook, path, "failurePolicy", ["Fail", "Ignore"]),
      ...oneOf(webhook, path, "matchPolicy", ["Equivalent", "Exact"]),
    );
    errors.push(
      ...validateSelector(at(webhook, "namespaceSelector"), `${path}.namespaceSelector`),
      ...validateSelector(at(webhook, "objectSelector"), `${path}.objectSelector`),
    );
    const conditions = compileAdmissionPolicy({ matchConditions: at(webhook, "matchConditions") });
    if (conditions.verdict === "refused")
      errors.push(...conditions.errors.map((error) => ({ ...error, field: error.field.replace(/^spec/, path) })));
    return errors;
  });
}

function validatePolicy(policy: KubeObject): readonly FieldError[] {
  const compiled = compileAdmissionPolicy(policy["spec"]);
  const rules = listAt(policy, "spec", "matchConstraints", "resourceRules");
  return [
    ...(isObject(at(policy, "spec", "matchConstraints"))
      ? rules.length === 0
        ? [required("spec.matchConstraints.resourceRules")]
        : []
      : [required("spec.matchConstraints")]),
    ...(listAt(policy, "spec", "validations").length + listAt(policy, "spec", "auditAnnotations").length === 0
      ? ["spec.validations", "spec.auditAnnotations"].map((field) =>
          required(field, "validations or auditAnnotations must contain at least one item"),
        )
      : []),
    ...listAt(policy, "spec", "validations").flatMap((validation, index) =>
      oneOf(validation, `spec.validations[${index}]`, "reason", ["Forbidden", "Invalid", "RequestEntityTooLarge"]),
    ),
    ...oneOf(policy["spec"], "spec", "failurePolicy", ["Fail", "Ignore"]),
    ...(compiled.verdict === "refused" ? compiled.errors : []),
  ];
}

/** kubernetes/kubernetes pkg/apis/admissionregistration/validation/validation.go (master) */
function validatePolicyBinding(binding: KubeObject): readonly FieldError[] {
  const actions = listAt(binding, "spec", "validationActions");
  const reference = at(binding, "spec", "paramRef");
  const errors: FieldError[] = [...requireFields(binding, "", "spec.policyName")];
  if (isObject(reference)) {
    if (textAt(reference, "name") !== "" && isObject(reference["selector"]))
      for (const field of ["name", "selector"])
        errors.push(forbidden(`spec.paramRef.${field}`, "name and selector are mutually exclusive"));
    errors.push(
      ...requireFields(reference, "spec.paramRef", "parameterNotFoundAction"),
      ...oneOf(reference, "spec.paramRef", "parameterNotFoundAction", ["Allow", "Deny"]),
    );
  }
  if (actions.length === 0)
    errors.push(required("spec.validationActions", "at least one validation action is required"));
  actions.forEach((action, index) =>
    errors.push(
      ...oneOf({ [index]: action }, "", String(index), ["Audit", "Deny", "Warn"]).map((error) => ({
        ...error,
        field: `spec.validationActions[${index}]`,
      })),
    ),
  );
  if (actions.includes("Deny") && actions.includes("Warn")) {
    errors.push(
      invalid(
        "spec.validationActions",
        actions,
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
      ),
    );
  }
  return errors;
}

/** A value as the real server prints its own struct: every field, by its name in Go. */
function asGo(value: unknown, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.map((field) => [
      field === "apiGroup" ? "APIGroup" : `${field.charAt(0).toUpperCase()}${field.slice(1)}`,
      at(value, field) ?? null,
    ]),
  );
}

function validateBudget(budget: KubeObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [minimum, maximum] = [at(budget, "spec", "minAvailable"), at(budget, "spec", "maxUnavailable")];
  if (minimum !== undefined && maximum !== undefined)
    errors.push(
      invalid(
        "spec",
        asGo(budget["spec"], ["minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"]),
        "minAvailable and maxUnavailable cannot be both set",
      ),
    );
  for (const [field, value] of [["minAvailable", minimum] as const, ["maxUnavailable", maximum] as const]) {
    if (typeof value === "string" && !/^\d+%$/.test(value))
      errors.push(
        invalid(
          `spec.${field}`,
          value,
          "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ),
      );
    else if (typeof value === "number" && value < 0)
      errors.push(invalid(`spec.${field}`, value, "must be greater than or equal to 0"));
  }
  return [...errors, ...validateSelector(at(budget, "spec", "selector"), "spec.selector")];
}

function validateLease(lease: KubeObject): readonly FieldError[] {
  const [seconds, transitions] = [at(lease, "spec", "leaseDurationSeconds"), at(lease, "spec", "leaseTransitions")];
  return [
    ...(typeof seconds === "number" && seconds <= 0
      ? [invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
      : []),
    ...(typeof transitions === "number" && transitions < 0
      ? [invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")]
      : []),
  ];
}

function prepareDefinition(object: KubeObject): void {
  const names = objectIn(objectIn(object, "spec"), "names");
  const name = textAt(names, "kind");
  if (name === "") return;
  setDefault(names, "singular", name.toLowerCase());
  setDefault(names, "listKind", `${name}List`);
}

function validateDefinition(object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const lowered = definitionsOf(object);
  const errors = lowered.verdict === "refused" ? [...lowered.errors] : [];
  return before === undefined
    ? errors
    : [...errors, ...immutable(object, before, "spec.group", "spec.names.plural", "spec.scope", "spec.names.kind")];
}

function prepareNode(node: KubeObject): void {
  twin(
    objectIn(node, "spec"),
    "podCIDR",
    "podCIDRs",
    (one) => one,
    (one) => one,
  );
  const status = objectIn(node, "status");
  if (status["allocatable"] === undefined && isObject(status["capacity"]))
    status["allocatable"] = cloneJson(status["capacity"]);
}

function validateNode(node: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors = [...validateTaints(listAt(node, "spec", "taints"))];
  const ranges = listAt(before, "spec", "podCIDRs");
  if (ranges.length > 0 && !equalJson(ranges, listAt(node, "spec", "podCIDRs")))
    errors.push(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'));
  const provider = textAt(before, "spec", "providerID");
  if (provider !== "" && provider !== textAt(node, "spec", "providerID"))
    errors.push(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'));
  return errors;
}

function validateEvent(event: KubeObject): readonly FieldError[] {
  const about = textAt(event, "involvedObject", "namespace") || textAt(event, "regarding", "namespace");
  const own = event.metadata.namespace ?? "";
  // Events of cluster-scoped objects live in `default`; a namespace is never made up, or `describe node` would not find
  // them.
  if (about === "" ? own !== "default" && own !== "" && own !== "kube-system" : about !== own)
    return [invalid("involvedObject.namespace", about, "does not match event.namespace")];
  return [];
}

const text =
  (...path: readonly string[]) =>
  (object: KubeObject): string => {
    const value = at(object, ...path);
    return value === undefined || value === null
      ? ""
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value as string | number | boolean);
  };

const eventFields: ResourceDefinition["selectableFields"] = {
  "involvedObject.kind": text("involvedObject", "kind"),
  "involvedObject.namespace": text("involvedObject", "namespace"),
  "involvedObject.name": text("involvedObject", "name"),
  "involvedObject.uid": text("involvedObject", "uid"),
  "involvedObject.apiVersion": text("involvedObject", "apiVersion"),
  "involvedObject.resourceVersion": text("involvedObject", "resourceVersion"),
  "involvedObject.fieldPath": text("involvedObject", "fieldPath"),
  reason: text("reason"),
  reportingComponent: (event) => textAt(event, "reportingComponent") || textAt(event, "source", "component"),
  source: (event) => textAt(event, "source", "component") || textAt(event, "reportingComponent"),
  type: text("type"),
};

/** events.k8s.io names the same values differently. */
const newEventFields: ResourceDefinition["selectableFields"] = {
  ...Object.fromEntries(
    ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((field) => [
      `regarding.${field}`,
      (event: KubeObject): string => textAt(event, "regarding", field) || textAt(event, "involvedObject", field),
    ]),
  ),
  reason: text("reason"),
  reportingController: (event) => textAt(event, "reportingController") || textAt(event, "reportingComponent"),
  type: text("type"),
};

const podFields: ResourceDefinition["selectableFields"] = {
  "spec.nodeName": text("spec", "nodeName"),
  "spec.restartPolicy": text("spec", "restartPolicy"),
  "spec.schedulerName": text("spec", "schedulerName"),
  "spec.serviceAccountName": text("spec", "serviceAccountName"),
  "spec.hostNetwork": (pod) => String(at(pod, "spec", "hostNetwork") === true),
  "status.phase": text("status", "phase"),
  "status.podIP": text("status", "podIP"),
  "status.nominatedNodeName": text("status", "nominatedNodeName"),
};

const review: KindOptions = { verbs: ["create"], clusterScoped: true, generation: "never", name: () => [] };

function reviewKind(group: string, name: string, options: KindOptions = {}): ResourceDefinition {
  const definition = kind(group, "v1", name, { ...review, ...options });
  // Reviews are answered, not stored: they have no name.
  return { ...definition, validate: () => [] };
}

/** Every kind that Kubernetes itself serves here, in the order of discovery. */
export const builtinDefinitions: readonly ResourceDefinition[] = [
  kind("", "v1", "ConfigMap", { shortNames: ["cm"], generation: "never", validate: validateData }),
  kind("", "v1", "Endpoints", { plural: "endpoints", shortNames: ["ep"], generation: "never" }),
  kind("", "v1", "Event", {
    shortNames: ["ev"],
    generation: "never",
    validate: validateEvent,
    selectableFields: eventFields,
  }),
  kind("", "v1", "LimitRange", { shortNames: ["limits"], generation: "never" }),
  kind("", "v1", "Namespace", {
    shortNames: ["ns"],
    clusterScoped: true,
    verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
    status: true,
    subresources: [{ name: "finalize", verbs: ["update"] }],
    name: labelName,
    generation: "never",
    prepare: prepareNamespace,
    selectableFields: { "status.phase": text("status", "phase"), name: text("metadata", "name") },
  }),
  kind("", "v1", "Node", {
    shortNames: ["no"],
    clusterScoped: true,
    status: true,
    generation: "never",
    prepare: prepareNode,
    validate: validateNode,
    selectableFields: { "spec.unschedulable": (node) => String(at(node, "spec", "unschedulable") === true) },
  }),
  kind("", "v1", "Pod", {
    shortNames: ["po"],
    categories: ["all"],
    status: true,
    subresources: [
      { name: "binding", kind: { group: "", version: "v1", kind: "Binding" }, verbs: ["create"] },
      { name: "eviction", kind: { group: "policy", version: "v1", kind: "Eviction" }, verbs: ["create"] },
      { name: "log", verbs: ["get"] },
    ],
    prepare: preparePod,
    validate: validatePod,
    selectableFields: podFields,
  }),
  kind("", "v1", "PodTemplate", { generation: "never" }),
  kind("", "v1", "ResourceQuota", { shortNames: ["quota"], status: true, generation: "never" }),
  kind("", "v1", "Secret", {
    generation: "never",
    prepare: prepareSecret,
    validate: validateSecret,
    selectableFields: { type: text("type") },
  }),
  kind("", "v1", "ServiceAccount", {
    shortNames: ["sa"],
    generation: "never",
    subresources: [
      {
        name: "token",
        kind: { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" },
        verbs: ["create"],
      },
    ],
  }),
  kind("", "v1", "Service", {
    shortNames: ["svc"],
    categories: ["all"],
    status: true,
    name: serviceName,
    generation: "never",
    prepare: prepareService,
    validate: validateService,
    selectableFields: { "spec.clusterIP": text("spec", "clusterIP"), "spec.type": text("spec", "type") },
  }),

  kind("apps", "v1", "ControllerRevision", {
    generation: "never",
    validate: (object, before) => immutable(object, before, "data"),
  }),
  kind("apps", "v1", "DaemonSet", {
    shortNames: ["ds"],
    categories: ["all"],
    status: true,
    prepare: prepareDaemonSet,
    validate: (object, before) => validateWorkload(object, before, ["Always"]),
  }),
  kind("apps", "v1", "Deployment", {
    generation: "annotations",
    shortNames: ["deploy"],
    categories: ["all"],
    status: true,
    scale: true,
    prepare: prepareDeployment,
    validate: validateDeployment,
  }),
  kind("apps", "v1", "ReplicaSet", {
    shortNames: ["rs"],
    categories: ["all"],
    status: true,
    scale: true,
    prepare: prepareTemplate,
    validate: (object, before) => validateWorkload(object, before, ["Always"]),
    selectableFields: { "status.replicas": text("status", "replicas") },
  }),
  kind("apps", "v1", "StatefulSet", {
    shortNames: ["sts"],
    categories: ["all"],
    status: true,
    scale: true,
    prepare: prepareTemplate,
    validate: (object, before) => [
      ...validateWorkload(object, before, ["Always"]),
      ...(before === undefined ||
      (equalJson(at(object, "spec", "serviceName"), at(before, "spec", "serviceName")) &&
        equalJson(at(object, "spec", "volumeClaimTemplates"), at(before, "spec", "volumeClaimTemplates")))
        ? []
        : [
            forbidden(
              "spec",
              "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ),
          ]),
    ],
  }),

  kind("events.k8s.io", "v1", "Event", {
    type: "EventsEvent",
    shortNames: ["ev"],
    generation: "never",
    validate: validateEvent,
    selectableFields: newEventFields,
  }),

  reviewKind("authentication.k8s.io", "SelfSubjectReview"),
  reviewKind("authentication.k8s.io", "TokenReview"),
  reviewKind("authorization.k8s.io", "LocalSubjectAccessReview", { clusterScoped: false }),
  reviewKind("authorization.k8s.io", "SelfSubjectAccessReview"),
  reviewKind("authorization.k8s.io", "SelfSubjectRulesReview"),
  reviewKind("authorization.k8s.io", "SubjectAccessReview"),

  kind("batch", "v1", "CronJob", {
    shortNames: ["cj"],
    categories: ["all"],
    status: true,
    prepare: (object) => {
      const template = at(object, "spec", "jobTemplate", "spec", "template", "spec");
      if (isObject(template)) preparePodSpec(template);
    },
    validate: (object) => [
      ...requireFields(object, "", "spec.schedule"),
      ...oneOf(object, "", "spec.concurrencyPolicy", ["Allow", "Forbid", "Replace"]),
      ...validatePodTemplate(at(object, "spec", "jobTemplate", "spec", "template"), "spec.jobTemplate.spec.template", [
        "OnFailure",
        "Never",
      ]),
    ],
  }),
  kind("batch", "v1", "Job", {
    categories: ["all"],
    status: true,
    prepare: prepareJob,
    validate: validateJob,
    selectableFields: { "status.successful": (job) => text("status", "succeeded")(job) || "0" },
  }),

  kind("certificates.k8s.io", "v1", "CertificateSigningRequest", {
    shortNames: ["csr"],
    clusterScoped: true,
    name: () => [],
    status: true,
    generation: "never",
    subresources: [{ name: "approval", verbs: ["get", "patch", "update"] }],
    // Whatever is sent, what was asked for stays.
    prepare: (object, before) => {
      if (before !== undefined) object["spec"] = cloneJson(before["spec"]);
    },
    validate: validateSigningRequest,
    selectableFields: { "spec.signerName": text("spec", "signerName") },
  }),

  kind("networking.k8s.io", "v1", "NetworkPolicy", {
    plural: "networkpolicies",
    shortNames: ["netpol"],
    prepare: (object) => {
      const spec = objectIn(object, "spec");
      setDefault(spec, "podSelector", {});
      setDefault(spec, "policyTypes", isList(spec["egress"]) ? ["Ingress", "Egress"] : ["Ingress"]);
    },
    validate: (object) => validateSelector(at(object, "spec", "podSelector"), "spec.podSelector"),
  }),

  kind("policy", "v1", "PodDisruptionBudget", { shortNames: ["pdb"], status: true, validate: validateBudget }),

  kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", {
    clusterScoped: true,
    name: pathName,
    generation: "never",
    prepare: prepareBinding,
    validate: validateBinding,
  }),
  kind("rbac.authorization.k8s.io", "v1", "ClusterRole", {
    clusterScoped: true,
    name: pathName,
    generation: "never",
    validate: validateRole,
  }),
  kind("rbac.authorization.k8s.io", "v1", "RoleBinding", {
    name: pathName,
    generation: "never",
    prepare: prepareBinding,
    validate: validateBinding,
  }),
  kind("rbac.authorization.k8s.io", "v1", "Role", { name: pathName, generation: "never", validate: validateRole }),

  kind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", {
    clusterScoped: true,
    categories: ["api-extensions"],
    validate: validateWebhooks,
  }),
  kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", {
    plural: "validatingadmissionpolicies",
    clusterScoped: true,
    categories: ["api-extensions"],
    status: true,
    validate: validatePolicy,
  }),
  kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", {
    clusterScoped: true,
    categories: ["api-extensions"],
    validate: validatePolicyBinding,
  }),
  kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", {
    clusterScoped: true,
    categories: ["api-extensions"],
    validate: validateWebhooks,
  }),

  kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", {
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    clusterScoped: true,
    status: true,
    prepare: prepareDefinition,
    validate: validateDefinition,
  }),

  kind("scheduling.k8s.io", "v1", "PriorityClass", {
    plural: "priorityclasses",
    shortNames: ["pc"],
    clusterScoped: true,
    prepare: (object) => {
      setDefault(object, "preemptionPolicy", "PreemptLowerPriority");
      setDefault(object, "value", 0);
    },
    validate: (object, before) =>
      before === undefined
        ? []
        : immutable(object, before, "value", "preemptionPolicy").map((error) =>
            forbidden(error.field, "may not be changed in an update."),
          ),
  }),

  kind("coordination.k8s.io", "v1", "Lease", { generation: "never", validate: validateLease }),
];
