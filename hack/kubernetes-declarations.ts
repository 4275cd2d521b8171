import { kubernetesTypes } from "../src/standin/apiserver/schema/kinds/builtin-types.ts";
import json from "../src/standin/apiserver/schema/kinds/kubernetes-types.json" with { type: "json" };

/** Types that `src/api/foreign/kubernetes.ts` names; what they use comes with them. */
const roots = `
  Namespace Node Pod ConfigMap Secret Service ServiceAccount Event Deployment ReplicaSet DaemonSet ControllerRevision Job
  PodDisruptionBudget Lease CertificateSigningRequest Role RoleBinding ClusterRole ClusterRoleBinding
  ValidatingWebhookConfiguration
`
  .trim()
  .split(/\s+/);

/** How types of Go are written in JSON. */
const plain: Readonly<Record<string, string>> = {
  string: "string",
  boolean: "boolean",
  int32: "number",
  int64: "number",
  quantity: "string",
  time: "string",
  microTime: "string",
  byte: "string",
  intOrString: "number | string",
  any: "unknown",
};

type Field = (typeof kubernetesTypes)[string]["fields"][string];

/** The fields of a type with those of the types that it embeds. */
function fieldsOf(name: string): readonly (readonly [name: string, field: Field])[] {
  const { fields = {}, inline = {} } = kubernetesTypes[name] ?? {};
  return [...Object.values(inline).flatMap(fieldsOf), ...Object.entries(fields)];
}

const inside = ({ type, list, map }: Field): string => type ?? list ?? map ?? "any";
/** `list of string` → `string` */
const itemOf = (field: Field): string => inside(field).replace(/^(?:list of )+/, "");

/** The named types that the roots lead to. */
function reached(): readonly string[] {
  const names = new Set(roots);
  for (const name of names)
    for (const [, field] of fieldsOf(name)) {
      const type = itemOf(field);
      if (kubernetesTypes[type] !== undefined) names.add(type);
    }
  return [...names].sort();
}

function typeOf(field: Field): string {
  const lists = inside(field).split(" of ").length - 1;
  const item = itemOf(field);
  const one = `${plain[item] ?? item}${"[]".repeat(lists)}`;
  if (field.list !== undefined) return one.includes("|") ? `(${one})[]` : `${one}[]`;
  return field.map === undefined ? one : `{ [key: string]: ${one} }`;
}

const declaration = (name: string): string =>
  [
    `export interface ${name} {`,
    ...fieldsOf(name).map(
      ([field, described]) =>
        `  ${/^\w+$/.test(field) ? field : JSON.stringify(field)}${described.required === true ? "" : "?"}: ${typeOf(described)};`,
    ),
    "}",
  ].join("\n");

/** Kubernetes' own types as TypeScript reads them: the same data that the embedded API server judges objects by. */
export function kubernetesDeclarations(): string {
  return (
    [
      `/** Types of Kubernetes ${json.release}, written by \`make generate\` from \`kubernetes-types.json\`. */`,
      ...reached().map(declaration),
    ].join("\n\n") + "\n"
  );
}
