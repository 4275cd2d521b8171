/**
 * Writes `src/standin/apiserver/schema/kinds/kubernetes-types.json`: the types of the built-in kinds, from the Go types and the
 * OpenAPI documents of the Kubernetes release that `hack/control-plane/go.mod` names. `make kubernetes-types` runs it; it needs
 * Go (to find the sources) and the modules that `hack/kubernetes build` has fetched. `--check` needs neither: it compares
 * the release in the file with the one in go.mod.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const output = join(root, "src/standin/apiserver/schema/kinds/kubernetes-types.json");

/** Packages in the order in which a short name is looked for. */
const packages = [
  ["api", "core/v1", "api__v1", "io.k8s.api.core.v1"],
  ["api", "apps/v1", "apis__apps__v1", "io.k8s.api.apps.v1"],
  ["api", "batch/v1", "apis__batch__v1", "io.k8s.api.batch.v1"],
  ["api", "policy/v1", "apis__policy__v1", "io.k8s.api.policy.v1"],
  ["api", "rbac/v1", "apis__rbac.authorization.k8s.io__v1", "io.k8s.api.rbac.v1"],
  ["api", "scheduling/v1", "apis__scheduling.k8s.io__v1", "io.k8s.api.scheduling.v1"],
  ["api", "coordination/v1", "apis__coordination.k8s.io__v1", "io.k8s.api.coordination.v1"],
  ["api", "networking/v1", "apis__networking.k8s.io__v1", "io.k8s.api.networking.v1"],
  ["api", "certificates/v1", "apis__certificates.k8s.io__v1", "io.k8s.api.certificates.v1"],
  ["api", "authentication/v1", "apis__authentication.k8s.io__v1", "io.k8s.api.authentication.v1"],
  ["api", "authorization/v1", "apis__authorization.k8s.io__v1", "io.k8s.api.authorization.v1"],
  ["api", "autoscaling/v1", "apis__autoscaling__v1", "io.k8s.api.autoscaling.v1"],
  ["api", "admissionregistration/v1", "apis__admissionregistration.k8s.io__v1", "io.k8s.api.admissionregistration.v1"],
  ["api", "events/v1", "apis__events.k8s.io__v1", "io.k8s.api.events.v1"],
  ["apimachinery", "pkg/apis/meta/v1", "api__v1", "io.k8s.apimachinery.pkg.apis.meta.v1"],
  [
    "apiextensions-apiserver",
    "pkg/apis/apiextensions/v1",
    "apis__apiextensions.k8s.io__v1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
  ],
] as const;
/** Types of the events group share their names with core's. */
const renamed: Readonly<Record<string, string>> = {
  "events/v1 Event": "EventsEvent",
  "events/v1 EventSeries": "EventsEventSeries",
};
/** Where a tree of types begins that the server knows: what they use comes with them. */
const roots = `
  Binding ConfigMap Endpoints Event LimitRange Namespace Node Pod PodTemplate ResourceQuota Secret Service
  ServiceAccount ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet CronJob Job Eviction
  PodDisruptionBudget ClusterRole ClusterRoleBinding Role RoleBinding PriorityClass Lease NetworkPolicy Scale
  CertificateSigningRequest SelfSubjectReview TokenRequest TokenReview LocalSubjectAccessReview
  SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview MutatingWebhookConfiguration
  ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration EventsEvent
  CustomResourceDefinition ObjectMeta OwnerReference DeleteOptions Preconditions
`
  .trim()
  .split(/\s+/);
/** Types whose inside the server does not look into. */
const opaque = new Set(["JSONSchemaProps", "RawExtension", "JSON", "FieldsV1", "ManagedFieldsEntry"]);
/** Fields, likewise. */
const opaqueFields = new Set([
  "Eviction.deleteOptions",
  "CustomResourceSubresources.status",
  "ControllerRevision.data",
  "ObjectMeta.managedFields",
]);
const words: Readonly<Record<string, string>> = {
  string: "string",
  bool: "boolean",
  int32: "int32",
  int64: "int64",
  int: "int64",
  byte: "byte",
  Time: "time",
  MicroTime: "microTime",
  Quantity: "quantity",
  IntOrString: "intOrString",
  Duration: "string",
  UID: "string",
  NodeName: "string",
  float64: "number",
};
const structs = new Set(["Time", "MicroTime", "Quantity", "IntOrString", "Duration", "RawExtension"]);
/** Embedded types that have no document of their own → the type that embeds them. */
const documentedAs: Readonly<Record<string, string>> = { EphemeralContainerCommon: "EphemeralContainer" };

/** One field, in words; the reader is `builtin-types.ts`. */
interface Field {
  readonly type?: string;
  readonly list?: string;
  readonly map?: string;
  readonly listType?: "set" | "map";
  readonly keys?: readonly string[];
  readonly patch?: string;
  readonly patchKey?: string;
  readonly written?: "always" | "pointer" | "null";
  readonly required?: true;
  readonly atomic?: true;
  /** In protobuf. */
  readonly number?: number;
}
interface TypeEntry {
  readonly atomic?: true;
  /** Number of an embedded message → its type. */
  readonly inline?: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, Field>>;
}

interface Declared {
  readonly package: (typeof packages)[number];
  readonly kind: "struct" | "list" | "map" | "alias";
  readonly text: string;
  readonly atomic: boolean;
}

const release = (): string =>
  /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(root, "hack/control-plane/go.mod"), "utf8"))?.[1] ?? "";

function declarations(modules: string, version: string): ReadonlyMap<string, Declared> {
  const found = new Map<string, Declared>();
  for (const one of packages) {
    const folder = join(modules, `k8s.io/${one[0]}@${version.replace("v1.", "v0.")}`, one[1]);
    const text = readFileSync(join(folder, "types.go"), "utf8");
    for (const [, comment = "", name = "", rest = ""] of text.matchAll(
      /((?:^\/\/.*\n)*)^type (\w+) (struct \{\n[\s\S]*?^\}|[^\n{]+)/gm,
    )) {
      const key = renamed[`${one[1]} ${name}`] ?? name;
      if (found.has(key)) continue;
      const kind = rest.startsWith("struct")
        ? "struct"
        : rest.startsWith("[]")
          ? "list"
          : rest.startsWith("map[")
            ? "map"
            : "alias";
      found.set(key, { package: one, kind, text: rest, atomic: comment.includes("+structType=atomic") });
    }
  }
  return found;
}

/** Required fields by OpenAPI name of the type, and which of them are atomic maps. */
function openApi(modules: string, version: string): ReadonlyMap<string, Record<string, unknown>> {
  const schemas = new Map<string, Record<string, unknown>>();
  for (const file of new Set(packages.map((one) => one[2]))) {
    const path = join(modules, `k8s.io/kubernetes@${version}/api/openapi-spec/v3/${file}_openapi.json`);
    const document = JSON.parse(readFileSync(path, "utf8")) as {
      readonly components: { readonly schemas: Readonly<Record<string, Record<string, unknown>>> };
    };
    for (const [name, schema] of Object.entries(document.components.schemas)) schemas.set(name, schema);
  }
  return schemas;
}

function build(modules: string, version: string): Readonly<Record<string, TypeEntry>> {
  const declared = declarations(modules, version);
  const schemas = openApi(modules, version);
  const made = new Map<string, TypeEntry>();
  const waiting = [...roots];

  /** A Go type without its pointer, in a word of the file. */
  function wordOf(go: string, from: (typeof packages)[number]): string {
    const bare = go.replace(/^\*/, "").replace(/^\w+\./, "");
    if (bare === "[]byte") return "byte";
    const word = words[bare];
    if (word !== undefined) return word;
    const key = renamed[`${from[1]} ${bare}`] ?? bare;
    if (opaque.has(key)) return "any";
    const type = declared.get(key);
    if (type === undefined) throw new Error(`no type ${go} (${from[1]})`);
    if (type.kind === "struct") {
      waiting.push(key);
      return key;
    }
    if (type.kind === "alias") return wordOf(type.text.trim(), type.package);
    return type.text;
  }

  function fieldOf(go: string, from: (typeof packages)[number]): Pick<Field, "type" | "list" | "map"> {
    const bare = go.replace(/^\*/, "");
    if (bare === "[]byte") return { type: "byte" };
    if (bare.startsWith("[]")) return { list: fieldOf(bare.slice(2), from).type ?? "any" };
    const map = /^map\[[\w.]+\](.+)$/.exec(bare);
    if (map !== null) {
      const inner = fieldOf(map[1] ?? "", from);
      return { map: inner.list === undefined ? (inner.type ?? "any") : `list of ${inner.list}` };
    }
    const word = wordOf(bare, from);
    return /^(\[\]|map\[)/.test(word) ? fieldOf(word, from) : { type: word };
  }

  const isStruct = (go: string, from: (typeof packages)[number]): boolean => {
    const bare = go.replace(/^\w+\./, "");
    return structs.has(bare) || declared.get(renamed[`${from[1]} ${bare}`] ?? bare)?.kind === "struct";
  };

  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    if (made.has(name)) continue;
    const type = declared.get(name);
    if (type === undefined) throw new Error(`no type ${name}`);
    const from = type.package;
    const short =
      Object.entries(renamed)
        .find(([, to]) => to === name)?.[0]
        .split(" ")[1] ?? name;
    const schema = schemas.get(`${from[3]}.${documentedAs[short] ?? short}`);
    const required = new Set((schema?.["required"] as readonly string[] | undefined) ?? []);
    const fields: Record<string, Field> = {};
    const inline: Record<string, string> = {};
    made.set(name, { fields });
    let comment = "";
    for (const line of type.text.split("\n").slice(1, -1)) {
      const trimmed = line.trim();
      if (trimmed.startsWith("//")) {
        comment += `${trimmed}\n`;
        continue;
      }
      const tagged = /^(?:(\w+)\s+)?(\S+)\s+`(.*)`/.exec(trimmed);
      if (tagged === null) {
        comment = "";
        continue;
      }
      const [, , go = "", tags = ""] = tagged;
      const notes = comment;
      comment = "";
      const json = /json:"([^"]*)"/.exec(tags)?.[1] ?? "";
      const [key = "", ...options] = json.split(",");
      const number = Number(/protobuf:"\w+,(\d+),/.exec(tags)?.[1] ?? "0");
      if (key === "-") continue;
      if (options.includes("inline") || (key === "" && json.includes("inline"))) {
        const inner = go.replace(/^\w+\./, "");
        if (inner === "TypeMeta" || inner === "ListMeta") continue;
        waiting.push(inner);
        if (number > 0) inline[String(number)] = inner;
        continue;
      }
      const isOpaque = opaqueFields.has(`${name}.${key}`);
      const shape = isOpaque ? { type: "any" } : fieldOf(go, from);
      const isPointer = go.startsWith("*");
      const isCollection = shape.list !== undefined || shape.map !== undefined || shape.type === "byte";
      const omits = options.includes("omitempty");
      const written =
        isPointer && omits
          ? "pointer"
          : !omits
            ? isCollection || isPointer
              ? "null"
              : "always"
            : !isPointer && !isCollection && isStruct(go, from)
              ? "always"
              : undefined;
      const listType = /\+listType=(\w+)/.exec(notes)?.[1];
      const keys = [...notes.matchAll(/\+listMapKey=(\w+)/g)].map(([, one = ""]) => one);
      const patch = /patchStrategy:"([^"]+)"/.exec(tags)?.[1];
      const patchKey = /patchMergeKey:"([^"]+)"/.exec(tags)?.[1];
      const property = (schema?.["properties"] as Record<string, Record<string, unknown>> | undefined)?.[key];
      fields[key] = {
        ...shape,
        ...(listType === "map" || listType === "set" ? { listType } : {}),
        ...(keys.length === 0 ? {} : { keys }),
        ...(patch === undefined ? {} : { patch }),
        ...(patchKey === undefined ? {} : { patchKey }),
        ...(property?.["x-kubernetes-map-type"] === "atomic" && shape.map !== undefined
          ? { atomic: true as const }
          : {}),
        ...(written === undefined ? {} : { written }),
        ...(required.has(key) ? { required: true as const } : {}),
        ...(number === 0 || shape.type === "any" ? {} : { number }),
      };
    }
    made.set(name, {
      ...(type.atomic || schema?.["x-kubernetes-map-type"] === "atomic" ? { atomic: true } : {}),
      ...(Object.keys(inline).length === 0 ? {} : { inline }),
      fields,
    });
  }
  return Object.fromEntries([...made].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A type on a line or some, a field on one: a file that people can read and compare. */
function print(version: string, types: Readonly<Record<string, TypeEntry>>): string {
  const lines = Object.entries(types).map(([name, { atomic, inline, fields }]) => {
    const rows = Object.entries(fields).map(
      ([key, field]) => `        ${JSON.stringify(key)}: ${JSON.stringify(field)}`,
    );
    const head = [
      ...(atomic === true ? [`      "atomic": true,\n`] : []),
      ...(inline === undefined ? [] : [`      "inline": ${JSON.stringify(inline)},\n`]),
    ].join("");
    return `    ${JSON.stringify(name)}: {\n${head}      "fields": {\n${rows.join(",\n")}\n      }\n    }`;
  });
  return `{\n  "release": ${JSON.stringify(version)},\n  "sources": "k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver types.go; k8s.io/kubernetes api/openapi-spec/v3",\n  "types": {\n${lines.join(",\n")}\n  }\n}\n`;
}

const version = release();
if (process.argv.includes("--check")) {
  const { release: written } = JSON.parse(readFileSync(output, "utf8")) as { readonly release: string };
  if (written !== version) {
    process.stderr.write(
      `kubernetes-types.json is of Kubernetes ${written}, hack/control-plane/go.mod of ${version}: run 'make kubernetes-types'\n`,
    );
    process.exitCode = 1;
  }
} else {
  const modules = execFileSync("go", ["env", "GOMODCACHE"], { encoding: "utf8" }).trim();
  const types = build(modules, version);
  writeFileSync(output, print(version, types));
  process.stdout.write(`${Object.keys(types).length} types of Kubernetes ${version}\n`);
}
