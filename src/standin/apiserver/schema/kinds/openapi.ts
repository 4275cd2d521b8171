import { canonicalJson } from "../../../../core/text/canonical-json.ts";
import { type ResourceDefinition, type Schema, documentedRequired } from "../contract.ts";
import { isObject, type JsonObject } from "../json-values.ts";
import { anything, boolean, object, objectMeta, rootSchema, string, stringMap } from "../schema-parts.ts";

/** OpenAPI v3 of what is served: what kubectl needs for explain, apply, diff and validation. */
export interface OpenApiDocuments {
  /** `/openapi/v3` */
  readonly index: JsonObject;
  /** The document of `/openapi/v3/<path>`, path being `api/v1` or `apis/GROUP/VERSION`; built when first asked for. */
  document(path: string): { readonly hash: string; readonly text: string } | undefined;
}

/** The documents for these definitions. The hash in an address changes with the content that it leads to. */
export function openApiDocuments(definitions: readonly ResourceDefinition[]): OpenApiDocuments {
  const byPath = new Map<string, ResourceDefinition[]>();
  for (const definition of definitions) {
    const path =
      definition.group === "" ? `api/${definition.version}` : `apis/${definition.group}/${definition.version}`;
    const group = byPath.get(path);
    if (group === undefined) byPath.set(path, [definition]);
    else group.push(definition);
  }
  const texts = new Map<string, string>();
  return {
    index: {
      paths: Object.fromEntries(
        [...byPath].map(([path, group]) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hashOf(group)}` }]),
      ),
    },
    document(path) {
      const group = byPath.get(path);
      if (group === undefined) return undefined;
      let text = texts.get(path);
      if (text === undefined) {
        text = JSON.stringify(documentOf(group));
        texts.set(path, text);
      }
      return { hash: hashOf(group), text };
    },
  };
}

const hashes = new WeakMap<ResourceDefinition, string>();

/** Built-in definitions never change; their part of the hash is computed once. */
function hashOf(group: readonly ResourceDefinition[]): string {
  const parts = group.map((definition) => {
    const known = hashes.get(definition);
    if (known !== undefined) return known;
    const { group: apiGroup, version, kind, plural, namespaced, verbs, subresources } = definition;
    const hash = fingerprint(
      `${canonicalJson({ apiGroup, version, kind, plural, namespaced, verbs, subresources })}${canonicalJson(definition.schema)}`,
    );
    hashes.set(definition, hash);
    return hash;
  });
  return fingerprint(parts.join());
}

/** Two 64-bit FNV-1a runs distinguish documents; this is no protection against an adversary. */
function fingerprint(text: string): string {
  let [a, b] = [0x811c_9dc5, 0x01_00_01_93];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = Math.imul(a ^ code, 0x01_00_01_93);
    b = Math.imul(b ^ (code + index), 0x85eb_ca6b);
    b ^= b >>> 13;
  }
  return [a, b].map((part) => (part >>> 0).toString(16).toUpperCase().padStart(8, "0")).join("");
}

const metaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1";
const reference = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });

function componentName({
  group,
  version,
  kind,
  custom,
}: Pick<ResourceDefinition, "group" | "version" | "kind" | "custom">): string {
  if (custom) return `${group.split(".").toReversed().join(".")}.${version}.${kind}`;
  const short = group === "" ? "core" : (group.split(".")[0] ?? group);
  return `io.k8s.api.${short}.${version}.${kind}`;
}

/** Descriptions that every kind shares, as kubectl explain shows them. */
const described: Readonly<Record<string, string>> = {
  apiVersion:
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
  kind: "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
  metadata:
    "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
};

function documentOf(definitions: readonly ResourceDefinition[]): JsonObject {
  const schemas: Record<string, unknown> = {
    [`${metaPrefix}.ObjectMeta`]: {
      ...publish(objectMeta),
      description:
        "ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.",
    },
    [`${metaPrefix}.ListMeta`]: publish(
      object({
        continue: string,
        remainingItemCount: { type: "integer", format: "int64" },
        resourceVersion: string,
        selfLink: string,
      }),
    ),
    [`${metaPrefix}.Status`]: publish(
      object({
        apiVersion: string,
        kind: string,
        metadata: anything,
        status: string,
        message: string,
        reason: string,
        details: anything,
        code: { type: "integer", format: "int32" },
      }),
    ),
    [`${metaPrefix}.DeleteOptions`]: {
      ...publish(
        object({
          apiVersion: string,
          kind: string,
          dryRun: { type: "array", items: string, "x-kubernetes-list-type": "atomic" },
          ignoreStoreReadErrorWithClusterBreakingPotential: boolean,
          gracePeriodSeconds: { type: "integer", format: "int64" },
          orphanDependents: boolean,
          preconditions: object({ resourceVersion: string, uid: string }),
          propagationPolicy: string,
        }),
      ),
      "x-kubernetes-group-version-kind": [{ group: "", kind: "DeleteOptions", version: "v1" }],
    },
    [`${metaPrefix}.Patch`]: {
      description: "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.",
      type: "object",
    },
    "io.k8s.api.autoscaling.v1.Scale": {
      ...publish(
        object({
          apiVersion: string,
          kind: string,
          metadata: objectMeta,
          spec: object({ replicas: { type: "integer", format: "int32" } }),
          status: object(
            { replicas: { type: "integer", format: "int32" }, selector: string },
            { [documentedRequired]: ["replicas"] },
          ),
        }),
      ),
      "x-kubernetes-group-version-kind": [{ group: "autoscaling", kind: "Scale", version: "v1" }],
    },
    "io.k8s.api.policy.v1.Eviction": publish(
      object({
        apiVersion: string,
        kind: string,
        metadata: object({ name: string, namespace: string, labels: stringMap }),
        deleteOptions: anything,
      }),
    ),
  };
  const paths: Record<string, unknown> = {};
  for (const definition of definitions) {
    const name = componentName(definition);
    schemas[name] = kindSchema(definition);
    schemas[`${name}List`] = listSchema(definition, name);
    Object.assign(paths, pathsOf(definition, name));
  }
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.34.1" },
    paths,
    components: {
      schemas,
      securitySchemes: {
        BearerToken: {
          description: "Bearer Token authentication",
          in: "header",
          name: "authorization",
          type: "apiKey",
        },
      },
    },
  };
}

function kindSchema(definition: ResourceDefinition): JsonObject {
  const { schema, group, version, kind } = definition;
  const properties = Object.fromEntries(
    Object.entries(rootSchema(schema).properties ?? {}).map(([name, property]): [string, JsonObject] => {
      if (name === "metadata")
        return [
          name,
          { allOf: [reference(`${metaPrefix}.ObjectMeta`)], default: {}, description: described["metadata"] },
        ];
      const description = described[name];
      return [
        name,
        description === undefined
          ? publish(property)
          : { ...publish(property), description: property.description ?? description },
      ];
    }),
  );
  const { properties: _properties, ...rest } = publish({ ...schema, properties: {} });
  return { ...rest, type: "object", properties, "x-kubernetes-group-version-kind": [{ group, kind, version }] };
}

function listSchema({ group, version, listKind }: ResourceDefinition, name: string): JsonObject {
  return {
    type: "object",
    required: ["items"],
    properties: {
      apiVersion: { type: "string", description: described["apiVersion"] },
      items: { type: "array", items: { allOf: [reference(name)], default: {} } },
      kind: { type: "string", description: described["kind"] },
      metadata: { allOf: [reference(`${metaPrefix}.ListMeta`)], default: {} },
    },
    "x-kubernetes-group-version-kind": [{ group, kind: listKind, version }],
  };
}

const published = new WeakMap<Schema, JsonObject>();

/** A schema in the words of OpenAPI 3.0. Shared parts are translated once. */
function publish(schema: Schema): JsonObject {
  const known = published.get(schema);
  if (known !== undefined) return known;
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined) continue;
    if (key === "properties" && isObject(value))
      result[key] = Object.fromEntries(
        Object.entries(value).map(([name, property]) => [name, publish(property as Schema)]),
      );
    else if ((key === "items" || key === "not" || key === "additionalProperties") && isObject(value))
      result[key] = publish(value as Schema);
    else if ((key === "allOf" || key === "anyOf" || key === "oneOf") && Array.isArray(value))
      result[key] = value.map((part) => publish(part as Schema));
    else if (key !== "uniqueItems") result[key] = value;
  }
  const required = schema[documentedRequired] ?? [];
  if (required.length > 0) result["required"] = required;
  // Clients know a value of either type by its format.
  if (schema["x-kubernetes-int-or-string"] === true && schema.type === undefined) {
    result["oneOf"] ??= [{ type: "integer" }, { type: "string" }];
    result["format"] = "int-or-string";
  }
  published.set(schema, result);
  return result;
}

const parameter = (name: string, type: string, place = "query"): JsonObject => ({
  name,
  in: place,
  ...(place === "path" ? { required: true } : {}),
  schema: { type, uniqueItems: true },
});
const json = (name: string): JsonObject => ({
  "application/json": { schema: reference(name) },
  "application/yaml": { schema: reference(name) },
});
const ok = (name: string): JsonObject => ({
  200: { description: "OK", content: json(name) },
  401: { description: "Unauthorized" },
});

const writing = [
  parameter("dryRun", "string"),
  parameter("fieldManager", "string"),
  parameter("fieldValidation", "string"),
];
const listing = [
  "allowWatchBookmarks:boolean",
  "continue:string",
  "fieldSelector:string",
  "labelSelector:string",
  "limit:integer",
  "resourceVersion:string",
  "resourceVersionMatch:string",
  "sendInitialEvents:boolean",
  "timeoutSeconds:integer",
  "watch:boolean",
].map((one) => {
  const [name = "", type = ""] = one.split(":");
  return parameter(name, type);
});

function pathsOf(definition: ResourceDefinition, name: string): Record<string, JsonObject> {
  const { group, version, kind, plural, namespaced, verbs, subresources, custom } = definition;
  const gvk = { group, kind, version };
  const base = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = namespaced ? `${base}/namespaces/{namespace}/${plural}` : `${base}/${plural}`;
  const scope = namespaced ? [parameter("namespace", "string", "path")] : [];
  const operation = (
    action: string,
    response: string,
    parameters: readonly JsonObject[],
    more: JsonObject = {},
    about: JsonObject = gvk,
  ): JsonObject => ({
    operationId: `${action}${group.replaceAll(/[.-]/g, "_")}${version}${plural}`,
    parameters,
    responses: ok(response),
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": about,
    ...more,
  });
  const body = (schema: string): JsonObject => ({
    requestBody: { content: { "*/*": { schema: reference(schema) } }, required: true },
  });
  const patchTypes = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    ...(custom ? [] : ["application/strategic-merge-patch+json"]),
  ];
  const patchBody: JsonObject = {
    requestBody: {
      content: Object.fromEntries(patchTypes.map((type) => [type, { schema: reference(`${metaPrefix}.Patch`) }])),
      required: true,
    },
  };
  const force = parameter("force", "boolean");
  const has = (verb: string): boolean => verbs.includes(verb);
  const paths: Record<string, JsonObject> = {
    [collection]: {
      ...(has("list") ? { get: operation("list", `${name}List`, listing) } : {}),
      ...(has("create") ? { post: operation("post", name, writing, body(name)) } : {}),
      ...(has("deletecollection") ? { delete: operation("deletecollection", `${metaPrefix}.Status`, listing) } : {}),
      parameters: [...scope, parameter("pretty", "string")],
    },
  };
  const single = [...scope, parameter("name", "string", "path"), parameter("pretty", "string")];
  if (has("get")) {
    paths[`${collection}/{name}`] = {
      get: operation("get", name, []),
      ...(has("update") ? { put: operation("put", name, writing, body(name)) } : {}),
      ...(has("patch") ? { patch: operation("patch", name, [...writing, force], patchBody) } : {}),
      ...(has("delete")
        ? {
            delete: operation(
              "delete",
              `${metaPrefix}.Status`,
              [
                parameter("dryRun", "string"),
                parameter("gracePeriodSeconds", "integer"),
                parameter("propagationPolicy", "string"),
              ],
              body(`${metaPrefix}.DeleteOptions`),
            ),
          }
        : {}),
      parameters: single,
    };
    if (namespaced)
      paths[`${base}/${plural}`] = {
        get: operation("list", `${name}List`, listing),
        parameters: [parameter("pretty", "string")],
      };
  }
  for (const sub of subresources) {
    const about = sub.kind === undefined ? gvk : { ...sub.kind };
    const response =
      sub.kind?.kind === "Scale"
        ? "io.k8s.api.autoscaling.v1.Scale"
        : sub.kind?.kind === "Eviction"
          ? "io.k8s.api.policy.v1.Eviction"
          : name;
    paths[`${collection}/{name}/${sub.name}`] = {
      ...(sub.verbs.includes("get") ? { get: operation("get", response, [], {}, about) } : {}),
      ...(sub.verbs.includes("create") ? { post: operation("post", response, writing, body(response), about) } : {}),
      ...(sub.verbs.includes("update") ? { put: operation("put", response, writing, body(response), about) } : {}),
      ...(sub.verbs.includes("patch")
        ? { patch: operation("patch", response, [...writing, force], patchBody, about) }
        : {}),
      parameters: single,
    };
  }
  return paths;
}
