import { pushAll } from "../../../../api/schema/push-all.ts";
import { decodeBase64 } from "../../../../ignition/data-url.ts";
import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { forbidden, invalid, required, tooLong } from "../field-errors.ts";
import { at, cloneJson, equalJson, isObject, listAt, objectAt, textAt } from "../json-values.ts";
import { immutable, labelName, serviceName, oneOf, validateTaints } from "../validation/object-validation.ts";
import { goObjectProblem } from "./go-json.ts";
import { base64OfBytes } from "./protobuf.ts";
import { objectIn, setDefault, kind } from "./define-kind.ts";
import { keepSingleFirst, preparePod, validatePod, podFields } from "./pods.ts";
import { validateEvent, eventFields, text } from "./event-kinds.ts";

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
        if (Object.hasOwn(objectAt(object, "data"), key))
          errors.push(invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
    for (const key of Object.keys(objectAt(object, field))) {
      if (!keyPattern.test(key) || key.length > 253) errors.push(invalid(`${field}[${key}]`, key, keyText));
      // A key is the name of a file: apimachinery pkg/util/validation/validation.go (v1.34) IsConfigMapKey.
      if (key === "." || key === "..") errors.push(invalid(`${field}[${key}]`, key, `must not be '${key}'`));
      else if (key.startsWith("..")) errors.push(invalid(`${field}[${key}]`, key, "must not start with '..'"));
    }
  }
  return errors;
}

/** Bytes of the values of a Secret at most: kubernetes/kubernetes pkg/apis/core/types.go (v1.34). */
const mostSecretBytes = 1_048_576;

/** As kubernetes/kubernetes pkg/apis/core/validation/validation.go (v1.34), ValidateSecret and ValidateSecretUpdate. */
function validateSecret(secret: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const sizes = Object.values(objectAt(secret, "data")).map((value) => bytesOfBase64(value).length);
  const isTooLong = sizes.reduce((sum, size) => sum + size, 0) > mostSecretBytes;
  return [
    ...(before === undefined ? [] : immutable(secret, before, "type")),
    ...validateData(secret, before),
    ...(isTooLong ? [tooLong("data", mostSecretBytes)] : []),
    ...problemsOfType(secret),
  ];
}

const serviceAccountName = "kubernetes.io/service-account.name";

/** What a Secret of a type must hold. */
function problemsOfType(secret: KubeObject): readonly FieldError[] {
  const data = objectAt(secret, "data");
  const lacking = (...keys: readonly string[]) =>
    keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`));
  switch (textAt(secret, "type")) {
    case "kubernetes.io/service-account-token":
      return textAt(secret, "metadata", "annotations", serviceAccountName) === ""
        ? [required(`metadata.annotations[${serviceAccountName}]`)]
        : [];
    case "kubernetes.io/dockercfg":
      return dockerProblems(data, ".dockercfg");
    case "kubernetes.io/dockerconfigjson":
      return dockerProblems(data, ".dockerconfigjson");
    case "kubernetes.io/basic-auth":
      return "username" in data || "password" in data ? [] : lacking("username", "password");
    case "kubernetes.io/ssh-auth":
      return bytesOfBase64(data["ssh-privatekey"]).length === 0 ? [required("data[ssh-privatekey]")] : [];
    case "kubernetes.io/tls":
      return lacking("tls.crt", "tls.key");
    default:
      return [];
  }
}

function dockerProblems(data: Readonly<Record<string, unknown>>, key: string): readonly FieldError[] {
  const field = `data[${key}]`;
  if (!Object.hasOwn(data, key)) return [required(field)];
  const problem = goObjectProblem(bytesOfBase64(data[key]));
  return problem === undefined ? [] : [invalid(field, "<secret contents redacted>", problem)];
}

/** Values that are no base64 were refused when the request was read. */
const bytesOfBase64 = (value: unknown): Uint8Array =>
  typeof value === "string" ? decodeBase64(value) : new Uint8Array();

const namespaceLabel = "kubernetes.io/metadata.name";

function prepareNamespace(namespace: KubeObject, before: KubeObject | undefined): void {
  const { metadata } = namespace;
  if (metadata.name !== undefined) (metadata.labels ??= {})[namespaceLabel] = metadata.name;
  if (before !== undefined) return;
  const spec = objectIn(namespace, "spec");
  // Its content is deleted before it goes, whoever else holds it: `pkg/registry/core/namespace/strategy.go (v1.34)`.
  const finalizers = listAt(spec, "finalizers");
  if (!finalizers.includes("kubernetes")) spec["finalizers"] = [...finalizers, "kubernetes"];
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
    pushAll(errors, oneOf(port, path, "protocol", ["SCTP", "TCP", "UDP"]));
  });
  pushAll(errors, oneOf(service, "", "spec.type", ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]));
  if (before !== undefined && textAt(before, "spec", "clusterIP") !== "")
    pushAll(errors, immutable(service, before, "spec.clusterIP"));
  return errors;
}

function prepareService(service: KubeObject): void {
  for (const port of listAt(service, "spec", "ports"))
    if (isObject(port) && (port["targetPort"] === 0 || port["targetPort"] === undefined || port["targetPort"] === ""))
      port["targetPort"] = port["port"];
}

function prepareNode(node: KubeObject): void {
  keepSingleFirst(
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

export const coreKinds: readonly ResourceDefinition[] = [
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
];
