import { pushAll } from "../../../../api/schema/push-all.ts";
import type { FieldError, KubeObject } from "../contract.ts";
import { child, duplicate, forbidden, invalid, notFound, notSupported, required, tooLong } from "../field-errors.ts";
import { at, equalJson, isList, isObject, listAt, objectAt, textAt } from "../json-values.ts";
import { parseQuantity } from "../../../../api/schema/quantities.ts";
import { compileLabelSelector, labelSelectorMatches } from "../selectors.ts";

/** Texts: kubernetes/apimachinery pkg/util/validation/validation.go and pkg/api/validation/objectmeta.go (master). */
const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const serviceNameText =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const qualifiedText =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const labelPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedPattern = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** The errors of a name; an empty list if it is valid. */
export type NameRule = (name: string) => readonly string[];

/** RFC 1123 subdomain: the rule of most kinds. */
export const subdomainName: NameRule = (name) => [
  ...longer(name, 253),
  ...(subdomainPattern.test(name) ? [] : [subdomainText]),
];
/** RFC 1123 label: namespaces, services. */
export const labelName: NameRule = (name) => [
  ...longer(name, 63),
  ...(labelPattern.test(name) ? [] : [subdomainPattern.test(name) ? "must not contain dots" : labelText]),
];
/** RFC 1035 label: services. */
export const serviceName: NameRule = (name) => [
  ...longer(name, 63),
  ...(/^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(name) ? [] : [serviceNameText]),
];
/** Anything that can be part of a path: roles and bindings. */
export const pathName: NameRule = (name) => {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  return [
    ...(name.includes("/") ? ["may not contain '/'"] : []),
    ...(name.includes("%") ? ["may not contain '%'"] : []),
  ];
};

function longer(text: string, maximum: number): string[] {
  return text.length > maximum ? [`must be no more than ${maximum} characters`] : [];
}

/** The errors of the key of a label or annotation. */
export function qualifiedNameProblems(key: string): readonly string[] {
  const parts = key.split("/");
  if (parts.length > 2)
    return [
      `a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  const name = parts.at(-1) ?? "";
  const problems: string[] = [];
  if (parts.length === 2) {
    const [prefix = ""] = parts;
    if (prefix === "") problems.push("prefix part must be non-empty");
    else
      pushAll(
        problems,
        subdomainName(prefix).map((problem) => `prefix part ${problem}`),
      );
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push("name part must be no more than 63 characters");
  if (!qualifiedPattern.test(name)) problems.push(qualifiedText);
  return problems;
}

/** Labels at `path`: keys and values. */
export function validateLabels(labels: unknown, path: string): readonly FieldError[] {
  if (!isObject(labels)) return [];
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedNameProblems(key).map((problem) => invalid(path, key, problem)),
    ...labelValueProblems(value).map((problem) => invalid(path, value, problem)),
  ]);
}

/** The errors of a label's value; one that is no text is judged elsewhere. */
export function labelValueProblems(value: unknown): readonly string[] {
  if (typeof value !== "string") return [];
  if (value.length > 63) return ["must be no more than 63 characters"];
  return value === "" || qualifiedPattern.test(value) ? [] : [labelValueText];
}

const annotationsLimit = 256 * 1024;

/** Finalizers that need no domain: `k8s.io/kubernetes pkg/apis/core/helper/helpers.go (master)`. */
const standardFinalizers = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

/**
 * Finalizers of built-in kinds are known ones or have a domain: `k8s.io/kubernetes pkg/apis/core/validation (master)`.
 */
export function validateFinalizers({ apiVersion, metadata }: KubeObject): readonly FieldError[] {
  if (/^(?:apiextensions|admissionregistration)\.k8s\.io\//.test(apiVersion)) return [];
  return (metadata.finalizers ?? []).flatMap((finalizer, index) =>
    finalizer.includes("/") || standardFinalizers.has(finalizer)
      ? []
      : [
          invalid(
            `metadata.finalizers[${index}]`,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
          ),
        ],
  );
}

/** Name, namespace, labels, annotations, owners, finalizers; on update also immutable fields. */
export function validateMetadata(
  object: KubeObject,
  before: KubeObject | undefined,
  rule: NameRule,
): readonly FieldError[] {
  const { metadata } = object;
  const errors: FieldError[] = [];
  if (before === undefined && (metadata.generateName ?? "") !== "") {
    pushAll(
      errors,
      rule(`${metadata.generateName?.replace(/[-.]$/, "") ?? ""}a`.slice(0, 63)).map((problem) =>
        invalid("metadata.generateName", metadata.generateName, problem),
      ),
    );
  }
  if ((metadata.name ?? "") === "") {
    if ((metadata.generateName ?? "") === "")
      errors.push(required("metadata.name", "name or generateName is required"));
  } else if (before === undefined)
    pushAll(
      errors,
      rule(metadata.name ?? "").map((problem) => invalid("metadata.name", metadata.name, problem)),
    );
  pushAll(errors, validateLabels(metadata.labels, "metadata.labels"));
  let size = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    size += key.length + value.length;
    pushAll(
      errors,
      qualifiedNameProblems(key.toLowerCase()).map((problem) => invalid("metadata.annotations", key, problem)),
    );
  }
  if (size > annotationsLimit) errors.push(tooLong("metadata.annotations", annotationsLimit));
  pushAll(errors, validateOwners(object));
  for (const finalizer of metadata.finalizers ?? [])
    pushAll(
      errors,
      qualifiedNameProblems(finalizer).map((problem) => invalid("metadata.finalizers", finalizer, problem)),
    );
  if (before !== undefined) {
    for (const field of [
      "name",
      "namespace",
      "uid",
      "creationTimestamp",
      "deletionTimestamp",
      "deletionGracePeriodSeconds",
    ] as const) {
      if (
        metadata[field] !== undefined &&
        (before.metadata[field] !== undefined || field.startsWith("deletion")) &&
        metadata[field] !== before.metadata[field]
      ) {
        errors.push(invalid(`metadata.${field}`, metadata[field], "field is immutable"));
      }
    }
    if (before.metadata.deletionTimestamp !== undefined) {
      const known = new Set(before.metadata.finalizers);
      const added = (metadata.finalizers ?? []).filter((finalizer) => !known.has(finalizer));
      if (added.length > 0)
        errors.push(
          forbidden(
            "metadata.finalizers",
            `no new finalizers can be added if the object is being deleted, found new finalizers ${goStrings(added)}`,
          ),
        );
    }
  }
  return errors;
}

function goStrings(values: readonly string[]): string {
  return `[]string{${values.map((value) => JSON.stringify(value)).join(", ")}}`;
}

function validateOwners({ metadata }: KubeObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  let controller: string | undefined;
  const path = "metadata.ownerReferences";
  // Printed once: each of many controllers would print all of them.
  let all: FieldError | undefined;
  for (const owner of metadata.ownerReferences ?? []) {
    for (const field of ["apiVersion", "kind", "name", "uid"] as const) {
      if ((owner[field] ?? "") === "")
        errors.push(
          invalid(
            `${path}.${field}`,
            owner[field] ?? "",
            field === "apiVersion" ? "version must not be empty" : "must not be empty",
          ),
        );
    }
    if (owner.controller === true) {
      if (controller !== undefined) {
        all ??= invalid(path, metadata.ownerReferences, "");
        errors.push({
          ...all,
          message: `${all.message}: Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${owner.kind}/${owner.name}`,
        });
      }
      controller = `${owner.kind}/${owner.name}`;
    }
    const { group, version } = splitVersion(owner.apiVersion);
    if (owner.kind === "Event" && (group === "" || group === "events.k8s.io"))
      errors.push(invalid(path, owner, `${group}/${version}, Kind=Event is disallowed from being an owner`));
  }
  return errors;
}

function splitVersion(apiVersion = ""): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** `field is immutable` for each of `paths` that changed. */
export function immutable(
  object: KubeObject,
  before: KubeObject | undefined,
  ...paths: readonly string[]
): readonly FieldError[] {
  if (before === undefined) return [];
  return paths.flatMap((path) => {
    const steps = path.split(".");
    const value = at(object, ...steps);
    return equalJson(value, at(before, ...steps)) ? [] : [invalid(path, value, "field is immutable")];
  });
}

/** `Required value` for each of `paths` that is absent or empty. */
export function requireFields(object: unknown, prefix: string, ...fields: readonly string[]): readonly FieldError[] {
  return fields.flatMap((field) => {
    const value = at(object, ...field.split("."));
    const empty = value === undefined || value === null || value === "" || (isList(value) && value.length === 0);
    return empty ? [required(child(prefix, field))] : [];
  });
}

/** A number that may not be negative. */
export function notNegative(object: unknown, prefix: string, ...fields: readonly string[]): readonly FieldError[] {
  return fields.flatMap((field) => {
    const value = at(object, ...field.split("."));
    return typeof value === "number" && value < 0
      ? [invalid(child(prefix, field), value, "must be greater than or equal to 0")]
      : [];
  });
}

/** One of a few words, where present. */
export function oneOf(
  object: unknown,
  prefix: string,
  field: string,
  supported: readonly string[],
): readonly FieldError[] {
  const value = at(object, ...field.split("."));
  return value === undefined || (typeof value === "string" && supported.includes(value))
    ? []
    : [notSupported(child(prefix, field), value, supported)];
}

/** A LabelSelector object. */
export function validateSelector(selector: unknown, path: string): readonly FieldError[] {
  const errors = [...validateLabels(at(selector, "matchLabels"), `${path}.matchLabels`)];
  listAt(selector, "matchExpressions").forEach((expression, index) => {
    const at_ = `${path}.matchExpressions[${index}]`;
    const operator = textAt(expression, "operator");
    const values = listAt(expression, "values");
    if (operator === "In" || operator === "NotIn") {
      if (values.length === 0)
        errors.push(required(`${at_}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (values.length > 0)
        errors.push(forbidden(`${at_}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    } else errors.push(invalid(`${at_}.operator`, operator, "not a valid selector operator"));
    pushAll(
      errors,
      qualifiedNameProblems(textAt(expression, "key")).map((problem) =>
        invalid(`${at_}.key`, textAt(expression, "key"), problem),
      ),
    );
  });
  return errors;
}

/** Selector and template of a workload: both there, and the one selects the other. */
export function validateWorkload(
  object: KubeObject,
  before: KubeObject | undefined,
  restartPolicies: readonly string[],
): readonly FieldError[] {
  const spec = objectAt(object, "spec");
  const selector = spec["selector"];
  const given = at(spec, "template", "metadata", "labels");
  const labels = objectAt(given);
  const errors: FieldError[] = [
    ...notNegative(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
  ];
  const mismatch = () =>
    invalid("spec.template.metadata.labels", given ?? null, "`selector` does not match template `labels`");
  if (!isObject(selector))
    pushAll(errors, [required("spec.selector"), ...(object.kind === "Deployment" ? [mismatch()] : [])]);
  else {
    pushAll(errors, validateSelector(selector, "spec.selector"));
    if (Object.keys(objectAt(selector, "matchLabels")).length + listAt(selector, "matchExpressions").length === 0) {
      errors.push(
        invalid(
          "spec.selector",
          selector,
          `empty selector is invalid for ${object.kind === "ReplicaSet" ? "deployment" : object.kind.toLowerCase()}`,
        ),
      );
    } else if (
      compileLabelSelector(selector).verdict === "valid" &&
      !labelSelectorMatches(selector, labels as Record<string, string>)
    ) {
      errors.push(mismatch());
    }
  }
  pushAll(errors, validatePodTemplate(spec["template"], "spec.template", restartPolicies));
  pushAll(errors, immutable(object, before, "spec.selector"));
  return errors;
}

/** A pod template. */
export function validatePodTemplate(
  template: unknown,
  path: string,
  restartPolicies: readonly string[],
): readonly FieldError[] {
  return [
    ...validateLabels(at(template, "metadata", "labels"), `${path}.metadata.labels`),
    ...validatePodSpec(at(template, "spec"), `${path}.spec`, restartPolicies),
  ];
}

/** kubernetes/kubernetes pkg/apis/core/validation/validation.go (master), the part that manifests meet. */
export function validatePodSpec(
  spec: unknown,
  path: string,
  restartPolicies: readonly string[] = ["Always", "OnFailure", "Never"],
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const volumes = new Set<string>();
  listAt(spec, "volumes").forEach((volume, index) => {
    const at_ = `${path}.volumes[${index}]`;
    const name = textAt(volume, "name");
    if (name === "") errors.push(required(`${at_}.name`));
    else {
      pushAll(
        errors,
        labelName(name).map((problem) => invalid(`${at_}.name`, name, problem)),
      );
      if (volumes.has(name)) errors.push(duplicate(`${at_}.name`, name));
      volumes.add(name);
    }
    const sources = isObject(volume) ? Object.keys(volume).filter((key) => key !== "name") : [];
    if (sources.length === 0) errors.push(required(at_, "must specify a volume type"));
    else
      for (const extra of sources.slice(1))
        errors.push(forbidden(`${at_}.${extra}`, "may not specify more than 1 volume type"));
    if (isObject(at(volume, "hostPath")) && textAt(volume, "hostPath", "path") === "")
      errors.push(required(`${at_}.hostPath.path`));
    if (isObject(at(volume, "secret")) && textAt(volume, "secret", "secretName") === "")
      errors.push(required(`${at_}.secret.secretName`));
    if (isObject(at(volume, "configMap")) && textAt(volume, "configMap", "name") === "")
      errors.push(required(`${at_}.configMap.name`));
  });
  const names = new Set<string>();
  for (const field of ["initContainers", "containers"] as const) {
    const containers = listAt(spec, field);
    if (field === "containers" && containers.length === 0) errors.push(required(`${path}.containers`));
    containers.forEach((container, index) =>
      pushAll(errors, validateContainer(container, `${path}.${field}[${index}]`, volumes, names)),
    );
  }
  // Without a choice, the default of pods counts as absent.
  if (restartPolicies.length === 2 && textAt(spec, "restartPolicy") === "Always")
    errors.push(
      required(
        `${path}.restartPolicy`,
        `valid values: ${restartPolicies.map((one) => JSON.stringify(one)).join(", ")}`,
      ),
    );
  else if (!restartPolicies.includes(textAt(spec, "restartPolicy")))
    errors.push(notSupported(`${path}.restartPolicy`, textAt(spec, "restartPolicy"), restartPolicies));
  pushAll(errors, [
    ...oneOf(spec, path, "dnsPolicy", ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ...notNegative(spec, path, "terminationGracePeriodSeconds"),
    ...validateLabels(at(spec, "nodeSelector"), `${path}.nodeSelector`),
  ]);
  listAt(spec, "tolerations").forEach((toleration, index) => {
    const at_ = `${path}.tolerations[${index}]`;
    const key = textAt(toleration, "key");
    const operator = textAt(toleration, "operator");
    if (key !== "")
      pushAll(
        errors,
        qualifiedNameProblems(key).map((problem) => invalid(`${at_}.key`, key, problem)),
      );
    if (key === "" && operator !== "Exists")
      errors.push(
        invalid(
          `${at_}.operator`,
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    if (operator === "Exists" && textAt(toleration, "value") !== "")
      errors.push(invalid(`${at_}.operator`, toleration, "value must be empty when `operator` is 'Exists'"));
    if (operator !== "" && operator !== "Exists" && operator !== "Equal")
      errors.push(notSupported(`${at_}.operator`, operator, ["Equal", "Exists"]));
    pushAll(errors, validateEffect(textAt(toleration, "effect"), `${at_}.effect`, true));
  });
  return errors;
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

function validateEffect(effect: string, path: string, allowEmpty: boolean): readonly FieldError[] {
  if (effect === "") return allowEmpty ? [] : [required(path)];
  return effects.includes(effect) ? [] : [notSupported(path, effect, effects)];
}

function validateContainer(
  container: unknown,
  path: string,
  volumes: ReadonlySet<string>,
  names: Set<string>,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(container, "name");
  if (name === "") errors.push(required(`${path}.name`));
  else {
    pushAll(
      errors,
      labelName(name).map((problem) => invalid(`${path}.name`, name, problem)),
    );
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  }
  if (textAt(container, "image") === "") errors.push(required(`${path}.image`));
  else if (textAt(container, "image").trim() !== textAt(container, "image"))
    errors.push(invalid(`${path}.image`, textAt(container, "image"), "must not have leading or trailing whitespace"));
  pushAll(errors, [
    ...oneOf(container, path, "imagePullPolicy", ["Always", "IfNotPresent", "Never"]),
    ...oneOf(container, path, "terminationMessagePolicy", ["FallbackToLogsOnError", "File"]),
  ]);
  listAt(container, "ports").forEach((port, index) => {
    const at_ = `${path}.ports[${index}]`;
    const number = at(port, "containerPort");
    if (number === undefined || number === 0) errors.push(required(`${at_}.containerPort`));
    else if (typeof number === "number" && (number < 1 || number > 65_535))
      errors.push(invalid(`${at_}.containerPort`, number, "must be between 1 and 65535, inclusive"));
    pushAll(errors, oneOf(port, at_, "protocol", ["SCTP", "TCP", "UDP"]));
  });
  listAt(container, "env").forEach((variable, index) => {
    if (textAt(variable, "name") === "") errors.push(required(`${path}.env[${index}].name`));
    else if (textAt(variable, "value") !== "" && isObject(at(variable, "valueFrom")))
      errors.push(invalid(`${path}.env[${index}].valueFrom`, "", "may not be specified when `value` is not empty"));
  });
  const limits = objectAt(container, "resources", "limits");
  for (const [name, value] of Object.entries(objectAt(container, "resources", "requests"))) {
    const [asked, limit] = [
      parseQuantity(String(value)),
      Object.hasOwn(limits, name) ? parseQuantity(String(limits[name])) : undefined,
    ];
    if (asked !== undefined && limit !== undefined && asked > limit)
      errors.push(
        invalid(
          `${path}.resources.requests`,
          value,
          `must be less than or equal to ${name} limit of ${String(limits[name])}`,
        ),
      );
  }
  const mounts = new Set<string>();
  listAt(container, "volumeMounts").forEach((mount, index) => {
    const at_ = `${path}.volumeMounts[${index}]`;
    const volume = textAt(mount, "name");
    if (volume === "") errors.push(required(`${at_}.name`));
    else if (!volumes.has(volume)) errors.push(notFound(`${at_}.name`, volume));
    const mountPath = textAt(mount, "mountPath");
    if (mountPath === "") errors.push(required(`${at_}.mountPath`));
    else if (mounts.has(mountPath)) errors.push(invalid(`${at_}.mountPath`, mountPath, "must be unique"));
    mounts.add(mountPath);
  });
  return errors;
}

/** Taints of a node. */
export function validateTaints(taints: readonly unknown[]): readonly FieldError[] {
  const seen = new Set<string>();
  return taints.flatMap((taint, index) => {
    // So the real server: `pkg/apis/core/validation/validation.go (v1.34)` ValidateNode.
    const path = `metadata.taints[${index}]`;
    const [key, effect] = [textAt(taint, "key"), textAt(taint, "effect")];
    const errors = [
      ...qualifiedNameProblems(key).map((problem) => invalid(`${path}.key`, key, problem)),
      ...labelValueProblems(at(taint, "value")).map((problem) => invalid(`${path}.value`, at(taint, "value"), problem)),
      ...validateEffect(effect, `${path}.effect`, false),
    ];
    if (seen.has(`${effect}/${key}`)) {
      const problem = duplicate(path, {
        Key: key,
        Value: textAt(taint, "value"),
        Effect: effect,
        TimeAdded: at(taint, "timeAdded") ?? null,
      });
      errors.push({ ...problem, message: `${problem.message}: taints must be unique by key and effect pair` });
    }
    seen.add(`${effect}/${key}`);
    return errors;
  });
}
