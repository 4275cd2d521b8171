import type { TSchema } from "typebox";
import { type ApiGate, gateKeyword } from "../feature-sets.ts";

type Node = Record<string, unknown>;

const unsupported = ["const", "$ref", "$defs", "$id", "patternProperties", "if", "then", "else"] as const;

/**
 * Lowers a JSON Schema to the structural dialect of CustomResourceDefinitions; throws and names the node if that is not
 * possible. The API server silently drops `const`, refuses `patternProperties` and nodes without a type, and requires
 * every key of a list-map to be required or defaulted. This detects all four at generation time (rules:
 * kubernetes/apiextensions-apiserver pkg/apis/apiextensions/validation).
 *
 * @param gates the features whose fields are part of it.
 */
export function structuralSchema(schema: TSchema, gates: ReadonlySet<ApiGate>, at = "$"): Node {
  const { [gateKeyword]: _, ...node } = schema as unknown as Node;
  for (const key of unsupported) if (key in node) throw new Error(`${at}: ${key} has no structural equivalent`);
  const isIntOrString = node["x-kubernetes-int-or-string"] === true;
  if (node["type"] === undefined && !isIntOrString) throw new Error(`${at}: every node needs a type`);
  if (node["anyOf"] !== undefined && !isIntOrString)
    throw new Error(`${at}: anyOf is for int-or-string only; write an enum with oneOf()`);

  const additional = node["additionalProperties"];
  if (typeof additional === "boolean") {
    if (additional) throw new Error(`${at}: say anyObject() where unknown fields are kept`);
    delete node["additionalProperties"]; // Unknown fields are pruned by the server, not refused by the schema.
  } else if (additional !== undefined) {
    node["additionalProperties"] = structuralSchema(additional as TSchema, gates, `${at}.*`);
  }
  if (node["properties"] !== undefined) {
    node["properties"] = Object.fromEntries(
      Object.entries(node["properties"] as Record<string, TSchema>).flatMap(([name, child]) => {
        const gate = (child as unknown as Node)[gateKeyword] as ApiGate | undefined;
        return gate === undefined || gates.has(gate) ? [[name, structuralSchema(child, gates, `${at}.${name}`)]] : [];
      }),
    );
  }
  if (Array.isArray(node["required"]) && node["required"].length === 0) delete node["required"];
  if (node["items"] !== undefined) {
    const items = structuralSchema(node["items"] as TSchema, gates, `${at}[]`);
    node["items"] = items;
    for (const key of (node["x-kubernetes-list-map-keys"] as string[] | undefined) ?? []) {
      const required = (items["required"] as string[] | undefined)?.includes(key) === true;
      const defaulted = (items["properties"] as Record<string, Node> | undefined)?.[key]?.["default"] !== undefined;
      if (!required && !defaulted) throw new Error(`${at}[].${key}: a list-map key must be required or have a default`);
    }
  }
  return node;
}
