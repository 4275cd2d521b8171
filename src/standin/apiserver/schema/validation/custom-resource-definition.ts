import { pushAll } from "../../../../api/schema/push-all.ts";
import { ruleProblems } from "./cel.ts";
import { literalPatternsOf, looksOf } from "./cel-expression.ts";
import type {
  CustomDefinitions,
  FieldError,
  KubeObject,
  PrinterColumn,
  ResourceDefinition,
  Schema,
  SubresourceDefinition,
} from "../contract.ts";
import { forbidden, invalid, notSupported, required, tooMany } from "../field-errors.ts";
import {
  at,
  cloneJson,
  equalJson,
  isList,
  isObject,
  listAt,
  numberAt,
  objectAt,
  textAt,
  type JsonObject,
} from "../json-values.ts";
import { compileJsonPath } from "../json-path.ts";
import { labelName, subdomainName, validateMetadata } from "./object-validation.ts";
import { compilationSize, compileExpression, largestProgram } from "../regular-expressions.ts";
import { object, rootSchema, string } from "../schema-parts.ts";
import { compileSchema, validateFragment } from "./structural.ts";
import { customTable, isPrinterColumns } from "../tables.ts";
import { own } from "../../../../api/schema/own.ts";

const verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const scaleKind = { group: "autoscaling", version: "v1", kind: "Scale" };

/**
 * What a CustomResourceDefinition defines: one definition for each served version, or the reasons why a server refuses
 * it. Texts: kubernetes/apiextensions-apiserver pkg/apis/apiextensions/validation (master).
 */
export function definitionsOf(crd: KubeObject): CustomDefinitions {
  const spec = objectAt(crd, "spec");
  const versions = listAt(spec, "versions");
  const tooLarge = checkPatterns(versions.map((version) => at(version, "schema")));
  if (tooLarge.length > 0) return { verdict: "refused", errors: tooLarge };
  const tooHeavy = checkWeight(versions);
  if (tooHeavy.length > 0) return { verdict: "refused", errors: tooHeavy };
  const errors = [...checkNames(crd), ...checkVersions(versions)];
  const same = versions.every((version) => equalJson(at(version, "schema"), at(versions[0], "schema")));
  versions.forEach((version, index) => {
    // One schema for all versions is held, and reported, in one place.
    if (same && index > 0) return;
    pushAll(errors, checkSchemaOf(version, same ? "spec.validation" : `spec.versions[${index}].schema`));
  });
  // So are columns and subresources.
  const alone = versions.length === 1;
  versions.forEach((version, index) =>
    pushAll(errors, [
      ...checkColumns(version, alone ? "spec" : `spec.versions[${index}]`),
      ...checkSelectableFields(version, alone ? "spec" : `spec.versions[${index}]`),
      ...checkSubresources(version, alone ? "spec" : `spec.versions[${index}]`),
    ]),
  );
  if (errors.length > 0) return { verdict: "refused", errors };
  const storage = versions.find((version) => at(version, "storage") === true);
  return {
    verdict: "served",
    definitions: versions
      .filter((version) => at(version, "served") === true)
      .map((version) => definitionOf(spec, version)),
    storageVersion: textAt(storage, "name"),
  };
}

function definitionOf(spec: JsonObject, version: unknown): ResourceDefinition {
  const kind = textAt(spec, "names", "kind");
  const schema = objectAt(version, "schema", "openAPIV3Schema") as Schema;
  const subresources: SubresourceDefinition[] = [];
  const hasStatus = isObject(at(version, "subresources", "status"));
  const scale = at(version, "subresources", "scale");
  if (hasStatus) subresources.push({ name: "status", verbs: ["get", "patch", "update"] });
  if (isObject(scale)) subresources.push({ name: "scale", kind: scaleKind, verbs: ["get", "patch", "update"] });
  const columns = columnsOf(version);
  const selector = textAt(scale, "labelSelectorPath");
  return {
    group: textAt(spec, "group"),
    version: textAt(version, "name"),
    kind,
    listKind: textAt(spec, "names", "listKind") || `${kind}List`,
    plural: textAt(spec, "names", "plural"),
    singular: textAt(spec, "names", "singular") || kind.toLowerCase(),
    shortNames: listAt(spec, "names", "shortNames").filter((name) => typeof name === "string"),
    categories: listAt(spec, "names", "categories").filter((name) => typeof name === "string"),
    namespaced: textAt(spec, "scope") === "Namespaced",
    verbs,
    custom: true,
    subresources,
    hasStatus,
    ...(isObject(scale)
      ? {
          scale: {
            specReplicasPath: textAt(scale, "specReplicasPath"),
            statusReplicasPath: textAt(scale, "statusReplicasPath"),
            ...(selector === "" ? {} : { labelSelectorPath: selector }),
          },
        }
      : {}),
    schema,
    ...(columns === undefined ? {} : { columns }),
    table: customTable(columns),
    generationChanged: (before, after) => !equalJson(counted(before, hasStatus), counted(after, hasStatus)),
    prepare: () => undefined,
    validate: (object, before) => validateMetadata(object, before, subdomainName),
    selectableFields: Object.fromEntries(
      listAt(version, "selectableFields").flatMap((field): [string, (object: KubeObject) => string][] => {
        const path = compileJsonPath(textAt(field, "jsonPath"));
        if (path.verdict === "refused") return [];
        return [
          [
            textAt(field, "jsonPath").replace(/^\./, ""),
            (object) => {
              const value = path.first(object);
              return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
                ? String(value)
                : "";
            },
          ],
        ];
      }),
    ),
  };
}

function counted(object: KubeObject, hasStatus: boolean): JsonObject {
  const { metadata: _metadata, apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  if (!hasStatus) return rest;
  const { status: _status, ...without } = rest as JsonObject;
  return without;
}

function columnsOf(version: unknown): readonly PrinterColumn[] | undefined {
  const columns = at(version, "additionalPrinterColumns");
  return isPrinterColumns(columns) && columns.length > 0 ? columns : undefined;
}

function checkNames(crd: KubeObject): FieldError[] {
  const errors: FieldError[] = [];
  const spec = objectAt(crd, "spec");
  const [group, plural, kind] = [textAt(spec, "group"), textAt(spec, "names", "plural"), textAt(spec, "names", "kind")];
  if (group === "") errors.push(required("spec.group"));
  else {
    pushAll(
      errors,
      subdomainName(group).map((problem) => invalid("spec.group", group, problem)),
    );
    if (!group.includes(".")) errors.push(invalid("spec.group", group, "should be a domain with at least one dot"));
  }
  const scope = textAt(spec, "scope");
  if (scope === "") errors.push(required("spec.scope"));
  else if (scope !== "Cluster" && scope !== "Namespaced")
    errors.push(notSupported("spec.scope", scope, ["Cluster", "Namespaced"]));
  if (plural === "") errors.push(required("spec.names.plural"));
  else
    pushAll(
      errors,
      labelName(plural).map((problem) => invalid("spec.names.plural", plural, problem)),
    );
  if (kind === "") errors.push(required("spec.names.kind"));
  else
    pushAll(
      errors,
      labelName(kind.toLowerCase()).map((problem) =>
        invalid("spec.names.kind", kind, `may have mixed case, but should otherwise match: ${problem}`),
      ),
    );
  if (kind !== "" && textAt(spec, "names", "listKind") === kind)
    errors.push(invalid("spec.names.listKind", kind, "kind and listKind may not be the same"));
  listAt(spec, "names", "shortNames").forEach((name, index) =>
    pushAll(
      errors,
      labelName(String(name)).map((problem) => invalid(`spec.names.shortNames[${index}]`, name, problem)),
    ),
  );
  if (group !== "" && plural !== "" && crd.metadata.name !== `${plural}.${group}`) {
    errors.push(invalid("metadata.name", crd.metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  if (spec["preserveUnknownFields"] === true)
    errors.push(
      invalid(
        "spec.preserveUnknownFields",
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
      ),
    );
  return errors;
}

function checkVersions(versions: readonly unknown[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  versions.forEach((version, index) => {
    const name = textAt(version, "name");
    const path = `spec.versions[${index}]`;
    if (!/^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
      errors.push(
        invalid(
          `${path}.name`,
          name,
          "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
      );
    }
    if (seen.has(name)) errors.push(invalid("spec.versions", name, "must contain unique version names"));
    seen.add(name);
  });
  if (versions.filter((version) => at(version, "storage") === true).length !== 1) {
    errors.push(
      invalid("spec.versions", versions.map(asGo), "must have exactly one version marked as storage version"),
      invalid("status.storedVersions", null, "must have at least one stored version"),
    );
  }
  return errors;
}

/** A version as the real server prints its own struct: fields that are the same in all versions are elsewhere. */
function asGo(version: unknown): JsonObject {
  return {
    Name: textAt(version, "name"),
    Served: at(version, "served") === true,
    Storage: at(version, "storage") === true,
    Deprecated: at(version, "deprecated") === true,
    DeprecationWarning: at(version, "deprecationWarning") ?? null,
    Schema: null,
    Subresources: null,
    AdditionalPrinterColumns: null,
    SelectableFields: null,
  };
}

const columnTypes = ["boolean", "date", "integer", "number", "string"];

/** Most steps that the columns of a version have together: each row of a table takes all of them. */
const mostColumnSteps = 256;

function checkColumns(version: unknown, path: string): FieldError[] {
  let steps = 0;
  const errors = listAt(version, "additionalPrinterColumns").flatMap((column, index) => {
    const at_ = `${path}.additionalPrinterColumns[${index}]`;
    const errors: FieldError[] = [];
    if (textAt(column, "name") === "") errors.push(required(`${at_}.name`));
    const type = textAt(column, "type");
    if (type === "") errors.push(required(`${at_}.type`, `must be one of ${columnTypes.join(",")}`));
    else if (!columnTypes.includes(type))
      errors.push(invalid(`${at_}.type`, type, `must be one of ${columnTypes.join(",")}`));
    const jsonPath = textAt(column, "jsonPath");
    const compiled = compileJsonPath(jsonPath);
    if (jsonPath === "") errors.push(required(`${at_}.jsonPath`));
    else if (!jsonPath.startsWith("."))
      errors.push(invalid(`${at_}.jsonPath`, jsonPath, "must be a simple json path starting with ."));
    else if (compiled.verdict === "refused") errors.push(invalid(`${at_}.jsonPath`, jsonPath, compiled.message));
    else steps += compiled.steps;
    return errors;
  });
  if (steps > mostColumnSteps)
    errors.push(
      forbidden(
        `${path}.additionalPrinterColumns`,
        `the paths must not have more than ${mostColumnSteps} steps together: remove columns, or shorten their paths`,
      ),
    );
  return errors;
}

/** kubernetes/apiextensions-apiserver pkg/apis/apiextensions/validation (v0.34) */
const mostSelectableFields = 8;

/** Selectable fields are read whenever objects are listed: they name fields, and search nothing. */
function checkSelectableFields(version: unknown, path: string): FieldError[] {
  const fields = listAt(version, "selectableFields");
  const at_ = `${path}.selectableFields`;
  if (fields.length > mostSelectableFields) return [tooMany(at_, fields.length, mostSelectableFields)];
  return fields.flatMap((field, index) => {
    const jsonPath = textAt(field, "jsonPath");
    if (jsonPath === "") return [required(`${at_}[${index}].jsonPath`)];
    const isSimple = /^(?:\.[^.[\]\\(){}*]+)+$/.test(jsonPath) && compileJsonPath(jsonPath).verdict === "compiled";
    return isSimple
      ? []
      : [invalid(`${at_}[${index}].jsonPath`, jsonPath, "is an invalid path: fields alone may be named")];
  });
}

function checkSubresources(version: unknown, path: string): FieldError[] {
  const scale = at(version, "subresources", "scale");
  if (!isObject(scale)) return [];
  return (["specReplicasPath", "statusReplicasPath"] as const).flatMap((field) => {
    const value = textAt(scale, field);
    const root = field === "specReplicasPath" ? ".spec." : ".status.";
    if (value === "") return [required(`${path}.subresources.scale.${field}`)];
    return value.startsWith(root) && !value.split(".").includes("__proto__")
      ? []
      : [invalid(`${path}.subresources.scale.${field}`, value, `should be a json path under ${root.slice(0, -1)}`)];
  });
}

function checkSchemaOf(version: unknown, path: string): FieldError[] {
  const schema = at(version, "schema", "openAPIV3Schema");
  if (!isObject(schema)) return [required("spec.versions[0].schema.openAPIV3Schema")];
  const errors = checkNode(schema, `${path}.openAPIV3Schema`, "root", 0);
  if (textAt(schema, "type") !== "object") {
    errors.push(
      textAt(schema, "type") === ""
        ? required(`${path}.openAPIV3Schema.type`, "must not be empty at the root")
        : invalid(`${path}.openAPIV3Schema.type`, schema["type"], "must be object at the root"),
    );
  }
  const metadata = at(schema, "properties", "metadata");
  if (isObject(metadata)) {
    const fields = Object.keys(objectAt(metadata, "properties"));
    const others = Object.keys(metadata).filter((key) => !["type", "description", "properties"].includes(key));
    if (others.length > 0 || fields.some((field) => field !== "name" && field !== "generateName")) {
      errors.push(
        forbidden(
          `${path}.openAPIV3Schema.properties[metadata]`,
          "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
      );
    }
  }
  // Compiling proves that this server supports the whole schema.
  if (errors.length === 0) compileSchema(schema as Schema);
  return errors;
}

/** Keywords of JSON Schema that a structural schema may not use. */
const foreign = [
  "$ref",
  "$defs",
  "const",
  "definitions",
  "dependencies",
  "deprecated",
  "id",
  "patternProperties",
  "additionalItems",
  "propertyNames",
  "contains",
  "if",
  "then",
  "else",
];

const types = ["array", "boolean", "integer", "number", "object", "string"];
const structuralOnly = [
  "description",
  "type",
  "default",
  "additionalProperties",
  "nullable",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-embedded-resource",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
];
const maxDepth = 100;

type Place = "root" | "field" | "items";

function checkNode(schema: JsonObject, path: string, place: Place, depth: number): FieldError[] {
  if (depth > maxDepth) return [forbidden(path, "nested too deeply")];
  const errors: FieldError[] = checkWords(schema, path);
  const intOrString = schema["x-kubernetes-int-or-string"] === true;
  const preserves = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const type = schema["type"];
  if (type === undefined || type === "") {
    if (!intOrString && !preserves && place !== "root")
      errors.push(
        required(
          `${path}.type`,
          place === "items"
            ? "must not be empty for specified array items"
            : "must not be empty for specified object fields",
        ),
      );
  } else if (typeof type !== "string" || !types.includes(type)) errors.push(notSupported(`${path}.type`, type, types));
  else if (intOrString)
    errors.push(invalid(`${path}.type`, type, "must be empty if x-kubernetes-int-or-string is true"));
  if (schema["x-kubernetes-embedded-resource"] === true && type !== "object")
    errors.push(invalid(`${path}.type`, type, "must be object if x-kubernetes-embedded-resource is true"));
  if (schema["x-kubernetes-preserve-unknown-fields"] === false)
    errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, "must be true or undefined"));
  const properties = objectAt(schema, "properties");
  for (const [name, property] of Object.entries(properties)) {
    if (place === "root" && name === "metadata") continue;
    if (isObject(property)) pushAll(errors, checkNode(property, `${path}.properties[${name}]`, "field", depth + 1));
  }
  const additional = schema["additionalProperties"];
  if (additional === false)
    errors.push(forbidden(`${path}.additionalProperties`, "additionalProperties cannot be set to false"));
  else if (additional !== undefined && Object.keys(properties).length > 0)
    errors.push(forbidden(`${path}.additionalProperties`, "additionalProperties and properties are mutual exclusive"));
  else if (place === "root" && isObject(additional))
    errors.push(forbidden(`${path}.additionalProperties`, "additionalProperties cannot be used at the root"));
  else if (isObject(additional))
    pushAll(errors, checkNode(additional, `${path}.additionalProperties`, "field", depth + 1));
  const items = schema["items"];
  if (isList(items)) errors.push(forbidden(`${path}.items`, "items must be a schema object and not an array"));
  else if (isObject(items)) pushAll(errors, checkNode(items, `${path}.items`, "items", depth + 1));
  else if (type === "array") errors.push(required(`${path}.items`, "must be specified"));
  pushAll(errors, [
    ...checkLists(schema, path),
    ...checkCombinations(schema, path, intOrString),
    ...ruleProblems(place === "root" ? seenByRules(schema as Schema) : (schema as Schema), path),
  ]);
  if (schema["default"] !== undefined && errors.length === 0) pushAll(errors, checkDefault(schema, path));
  return errors;
}

/** Of the metadata, rules see the names only: labels and other fields change without the schema being involved. */
function seenByRules(schema: Schema): Schema {
  const root = rootSchema(schema);
  return { ...root, properties: { ...root.properties, metadata: object({ name: string, generateName: string }) } };
}

/** Most that the different patterns of a definition compile to: it is compiled at each of its writes, and at each start. */
const largestPrograms = 200_000;

/** Refuses a definition whose patterns, those of its rules included, would take long to compile. */
function checkPatterns(schemas: readonly unknown[]): FieldError[] {
  let size = 0;
  for (const pattern of patternsIn(schemas)) {
    // What is too large alone is refused at its field, and not compiled.
    const own = compilationSize(pattern);
    if (own <= largestProgram) size += own;
  }
  if (size <= largestPrograms) return [];
  const detail = `different patterns must not compile to more than ${largestPrograms} instructions together`;
  return [forbidden("spec.versions", detail)];
}

/** Most that the rules of a definition weigh: they are compiled at each of its writes, at each start, and for its first object. */
const mostWeight = 100_000;
/** The weight of a rule besides the places of the schema that it looks at. */
const weightOfRule = 20;

/** The weight of a schema's rules, and where they weigh more than is left. */
export function weighRules(
  schema: unknown,
  path: string,
  most: number,
): { readonly weight: number; readonly beyond?: string } {
  let weight = 0;
  let beyond: string | undefined;
  const look = (value: unknown, at_: string): void => {
    if (beyond !== undefined) return;
    if (isList(value)) {
      for (const [index, one] of value.entries()) look(one, `${at_}[${index}]`);
      return;
    }
    if (!isObject(value)) return;
    const rules = value["x-kubernetes-validations"];
    for (const rule of isList(rules) ? rules : []) {
      for (const expression of [at(rule, "rule"), at(rule, "messageExpression")])
        if (typeof expression === "string") weight += weightOfRule + looksOf(expression, value as Schema);
      if (weight <= most) continue;
      beyond = `${at_}.x-kubernetes-validations`;
      return;
    }
    for (const key of Object.keys(value)) if (key !== "x-kubernetes-validations") look(value[key], `${at_}.${key}`);
  };
  look(schema, path);
  return beyond === undefined ? { weight } : { weight, beyond };
}

/** Refuses a definition whose rules would take long to compile: they are many, or look at many properties each. */
function checkWeight(versions: readonly unknown[]): FieldError[] {
  let weight = 0;
  for (const [index, version] of versions.entries()) {
    const path = `spec.versions[${index}].schema.openAPIV3Schema`;
    const weighed = weighRules(at(version, "schema", "openAPIV3Schema"), path, mostWeight - weight);
    weight += weighed.weight;
    if (weighed.beyond === undefined) continue;
    const detail = `the rules of a definition must not weigh more than ${mostWeight}, of which each has ${weightOfRule} and one for each property of its schema that it looks at: use fewer rules, or move them closer to what they name`;
    return [forbidden(weighed.beyond, detail)];
  }
  return [];
}

function patternsIn(schemas: readonly unknown[]): ReadonlySet<string> {
  const patterns = new Set<string>();
  const look = (value: unknown): void => {
    if (isList(value)) value.forEach(look);
    if (!isObject(value)) return;
    const { pattern, rule, messageExpression } = value;
    if (typeof pattern === "string") patterns.add(pattern);
    for (const expression of [rule, messageExpression])
      if (typeof expression === "string") for (const one of literalPatternsOf(expression)) patterns.add(one);
    Object.values(value).forEach(look);
  };
  look(schemas);
  return patterns;
}

function checkWords(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const word of foreign)
    if (schema[word] !== undefined) errors.push(forbidden(`${path}.${word}`, `${word} is not supported`));
  if (schema["uniqueItems"] === true)
    errors.push(
      forbidden(
        `${path}.uniqueItems`,
        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
      ),
    );
  const { pattern } = schema as { readonly pattern?: unknown };
  if (typeof pattern === "string" && compilationSize(pattern) > largestProgram)
    errors.push(forbidden(`${path}.pattern`, `must not compile to more than ${largestProgram} instructions`));
  else if (typeof pattern === "string") {
    const compiled = compileExpression(pattern);
    if (compiled.verdict === "refused")
      errors.push(
        invalid(`${path}.pattern`, pattern, `must be a valid regular expression, but isn't: ${compiled.message}`),
      );
  }
  return errors;
}

function checkLists(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const type = schema["x-kubernetes-list-type"];
  const keys = listAt(schema, "x-kubernetes-list-map-keys");
  if (type !== undefined && type !== "atomic" && type !== "set" && type !== "map")
    errors.push(notSupported(`${path}.x-kubernetes-list-type`, type, ["atomic", "set", "map"]));
  if (type !== undefined && schema["type"] !== "array")
    errors.push(invalid(`${path}.type`, schema["type"] ?? "", "must be array if x-kubernetes-list-type is specified"));
  if (type !== "map") {
    if (keys.length > 0)
      errors.push(
        type === undefined
          ? required(`${path}.x-kubernetes-list-type`, "must be map if x-kubernetes-list-map-keys is non-empty")
          : invalid(`${path}.x-kubernetes-list-type`, type, "must be map if x-kubernetes-list-map-keys is non-empty"),
      );
    return errors;
  }
  if (keys.length === 0)
    errors.push(required(`${path}.x-kubernetes-list-map-keys`, "must not be empty if x-kubernetes-list-type is map"));
  const items = objectAt(schema, "items");
  if (items["type"] !== "object")
    errors.push(
      invalid(
        `${path}.items.type`,
        items["type"] ?? "",
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
  const wanted = listAt(items, "required");
  if (keys.some((key) => typeof key === "string" && !isObject(at(items, "properties", key))))
    errors.push(invalid(`${path}.x-kubernetes-list-map-keys`, keys, "entries must all be names of item properties"));
  keys.forEach((key) => {
    if (typeof key !== "string") return;
    const property = at(items, "properties", key);
    if (!isObject(property)) return;
    if (["object", "array"].includes(textAt(property, "type")))
      errors.push(
        invalid(
          `${path}.items.properties[${key}].type`,
          property["type"],
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    if (property["default"] === undefined && !wanted.includes(key)) {
      errors.push(
        required(
          `${path}.items.properties[${key}].default`,
          "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
      );
    }
  });
  return errors;
}

/** Inside anyOf and similar keywords only values may be restricted; the fields are declared outside. */
function checkCombinations(schema: JsonObject, path: string, intOrString: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const visit = (part: unknown, outer: JsonObject, at_: string, depth: number): void => {
    if (!isObject(part) || depth > maxDepth) return;
    pushAll(errors, checkWords(part, at_));
    for (const word of structuralOnly) {
      if (part[word] === undefined || (intOrString && word === "type")) continue;
      errors.push(forbidden(`${at_}.${word}`, "must be empty to be structural"));
    }
    for (const [name, inner] of Object.entries(objectAt(part, "properties"))) {
      const duplicate =
        at(outer, "properties", name) ??
        (isObject(outer["additionalProperties"]) ? outer["additionalProperties"] : undefined);
      if (!isObject(duplicate))
        errors.push(required(`${path}.properties[${name}]`, `because it is defined in ${at_}.properties[${name}]`));
      else visit(inner, duplicate, `${at_}.properties[${name}]`, depth + 1);
    }
    if (isObject(part["items"])) {
      if (!isObject(outer["items"])) errors.push(required(`${path}.items`, `because it is defined in ${at_}.items`));
      else visit(part["items"], outer["items"], `${at_}.items`, depth + 1);
    }
    for (const word of ["allOf", "anyOf", "oneOf"])
      listAt(part, word).forEach((one, index) => visit(one, outer, `${at_}.${word}[${index}]`, depth + 1));
    if (isObject(part["not"])) visit(part["not"], outer, `${at_}.not`, depth + 1);
  };
  for (const word of ["allOf", "anyOf", "oneOf"])
    listAt(schema, word).forEach((one, index) => visit(one, schema, `${path}.${word}[${index}]`, 0));
  if (isObject(schema["not"])) visit(schema["not"], schema, `${path}.not`, 0);
  return errors;
}

function checkDefault(schema: JsonObject, path: string): FieldError[] {
  const value = cloneJson(schema["default"]);
  const pruned =
    isObject(value) && schema["type"] === "object" && !("x-kubernetes-embedded-resource" in schema)
      ? unknownFields(schema as Schema, value)
      : [];
  if (pruned.length > 0) return [invalid(`${path}.default`, schema["default"], "must not have unknown fields")];
  // Messages about the value have no path of its own.
  return validateFragment(schema as Schema, value, `${path}.default`).map((error) => ({
    reason: error.reason,
    field: error.field,
    message: error.message.replace(`: ${path}.default in body`, ":  in body"),
  }));
}

function unknownFields(schema: Schema, value: JsonObject): readonly string[] {
  if (schema["x-kubernetes-preserve-unknown-fields"] === true || schema.additionalProperties !== undefined) return [];
  return Object.keys(value).flatMap((key) => {
    const property = own(schema.properties, key);
    const inner = value[key];
    if (property === undefined) return [key];
    return isObject(inner) ? unknownFields(property, inner).map((name) => `${key}.${name}`) : [];
  });
}

interface Names {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
}

/**
 * The definition with its status: its names are accepted unless another kind of its group has them (`definitions`: the
 * served ones), and then it is established. `time`: RFC 3339. kubernetes/apiextensions-apiserver
 * pkg/controller/status/naming_controller.go (master)
 */
export function establish(crd: KubeObject, definitions: readonly ResourceDefinition[], time: string): KubeObject {
  const result = cloneJson(crd);
  const spec = objectAt(result, "spec");
  const names = isObject(spec["names"]) ? spec["names"] : {};
  const kind = textAt(names, "kind");
  const wanted: Names = {
    plural: textAt(names, "plural"),
    singular: textAt(names, "singular") || kind.toLowerCase(),
    kind,
    listKind: textAt(names, "listKind") || `${kind}List`,
    shortNames: listAt(names, "shortNames").filter((name) => typeof name === "string"),
  };
  const group = textAt(spec, "group");
  const conflict = conflictOf(
    wanted,
    definitions.filter(
      (definition) => definition.group === group && !(definition.custom && definition.plural === wanted.plural),
    ),
  );
  const old = objectAt(crd, "status");
  const wasEstablished = listAt(old, "conditions").some(
    (condition) => textAt(condition, "type") === "Established" && textAt(condition, "status") === "True",
  );
  const conditions: JsonObject[] = [
    condition(
      old,
      "NamesAccepted",
      conflict === undefined,
      conflict?.reason ?? "NoConflicts",
      conflict?.message ?? "no conflicts found",
      time,
    ),
    wasEstablished || conflict === undefined
      ? condition(old, "Established", true, "InitialNamesAccepted", "the initial names have been accepted", time)
      : condition(old, "Established", false, "NotAccepted", "not all names are accepted", time),
    ...listAt(old, "conditions").filter(
      (one): one is JsonObject => isObject(one) && !["NamesAccepted", "Established"].includes(textAt(one, "type")),
    ),
  ];
  const storage = textAt(
    listAt(spec, "versions").find((version) => at(version, "storage") === true),
    "name",
  );
  const stored = listAt(old, "storedVersions").filter((version) => typeof version === "string");
  const categories = listAt(names, "categories");
  result["status"] = {
    ...old,
    conditions,
    acceptedNames:
      conflict === undefined
        ? {
            plural: wanted.plural,
            singular: wanted.singular,
            ...(wanted.shortNames.length > 0 ? { shortNames: wanted.shortNames } : {}),
            kind,
            listKind: wanted.listKind,
            ...(categories.length > 0 ? { categories } : {}),
          }
        : (old["acceptedNames"] ?? { plural: "", kind: "" }),
    storedVersions: stored.includes(storage) ? stored : [...stored, storage],
  };
  return result;
}

function condition(
  old: unknown,
  type: string,
  holds: boolean,
  reason: string,
  message: string,
  time: string,
): JsonObject {
  const status = holds ? "True" : "False";
  const before = listAt(old, "conditions").find((one) => textAt(one, "type") === type);
  const since = textAt(before, "status") === status ? textAt(before, "lastTransitionTime") || time : time;
  const generation = numberAt(before, "observedGeneration");
  return {
    lastTransitionTime: since,
    message,
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    reason,
    status,
    type,
  };
}

/**
 * Of several conflicts the last one is reported: `k8s.io/apiextensions-apiserver
 * pkg/controller/status/naming_controller.go (master)`.
 */
function conflictOf(
  wanted: Names,
  others: readonly ResourceDefinition[],
): { readonly reason: string; readonly message: string } | undefined {
  const resources = new Set(others.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]));
  const kinds = new Set(others.flatMap(({ kind, listKind }) => [kind, listKind]));
  const used = (name: string): string => `${JSON.stringify(name)} is already in use`;
  if (kinds.has(wanted.listKind)) return { reason: "ListKindConflict", message: used(wanted.listKind) };
  if (kinds.has(wanted.kind)) return { reason: "KindConflict", message: used(wanted.kind) };
  const short = wanted.shortNames.filter((name) => resources.has(name)).map(used);
  if (short.length > 0)
    return { reason: "ShortNamesConflict", message: short.length === 1 ? (short[0] ?? "") : `[${short.join(", ")}]` };
  if (resources.has(wanted.singular)) return { reason: "SingularConflict", message: used(wanted.singular) };
  if (resources.has(wanted.plural)) return { reason: "PluralConflict", message: used(wanted.plural) };
  return undefined;
}
