import type { Environment } from "@marcbachmann/cel-js";
import type { Schema } from "../contract.ts";
import { isObject } from "../json-values.ts";
import { namedPropertiesOf } from "./cel-values.ts";

/** The types that a schema gives to the values of an expression. */
export interface SchemaTypes {
  /** Of the whole value. */
  readonly type: string;
  /** Objects: their fields with their types. */
  readonly objects: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Places of the schema, and names at each of them, that were looked at. */
  readonly looks: number;
}

/** Most looks for one expression. */
export const mostLooks = 20_000;

/** The names of an expression occur too often in the schema. */
export class TooManyLooks extends Error {
  override readonly name = "TooManyLooks";
  constructor() {
    super("its names occur too often in the schema: move the rule closer to what it names");
  }
}

/**
 * The types that a definition gives to the values of its rules: kubernetes/apiserver pkg/cel/common/schemas.go (v1.34).
 * They exist for the check of an expression alone; a value is what `cel-values.ts` makes of it. Objects of two places
 * have two types, which cannot be compared.
 *
 * @param names of fields that occur in the expression: others do not count.
 * @throws TooManyLooks if that takes more than {@link mostLooks}.
 */
export function typesOf(schema: Schema, names: ReadonlySet<string>): SchemaTypes {
  const objects: Record<string, Readonly<Record<string, string>>> = {};
  let looks = 0;
  const look = (): void => {
    looks += 1;
    if (looks > mostLooks) throw new TooManyLooks();
  };
  /** Undefined: rules may not name such values. */
  const typeOf = (place: Schema | undefined): string | undefined => {
    look();
    if (place === undefined) return undefined;
    if (place["x-kubernetes-int-or-string"] === true) return "dyn";
    if (place["x-kubernetes-embedded-resource"] === true) return objectType(place);
    switch (place.type) {
      case "array":
        return within("list<", typeOf(place.items));
      case "object":
        return isObject(place.additionalProperties)
          ? within("map<string, ", typeOf(place.additionalProperties as Schema))
          : objectType(place);
      case "string":
        return typeOfFormat(place.format);
      case "boolean":
        return "bool";
      case "number":
        return "double";
      case "integer":
        return "int";
      default:
        return undefined;
    }
  };
  let count = 0;
  const objectType = (place: Schema): string => {
    const name = `object.T${count++}`;
    const fields: Record<string, string> = Object.create(null) as Record<string, string>;
    const properties = namedPropertiesOf(place);
    const smaller = names.size < properties.size ? names : properties.keys();
    for (const named of smaller) {
      if (!names.has(named)) {
        look();
        continue;
      }
      const type = typeOf(properties.get(named));
      if (type !== undefined) fields[named] = type;
    }
    objects[name] = fields;
    return name;
  };
  return { type: typeOf(schema) ?? "dyn", objects, looks };
}

/** Registers the types of objects, and that they may be compared with each other and with null. */
export function declareTypes(env: Environment, { objects }: SchemaTypes): void {
  for (const [name, fields] of Object.entries(objects)) {
    env.registerType(name, { fields });
    env.registerOperator(`${name} == ${name}`, () => true);
    env.registerOperator(`${name} == null`, () => true);
  }
}

const within = (open: string, type: string | undefined): string | undefined =>
  type === undefined ? undefined : `${open}${type}>`;

function typeOfFormat(format: string | undefined): string {
  switch (format) {
    case "byte":
      return "bytes";
    case "duration":
      return "google.protobuf.Duration";
    case "date":
    case "date-time":
      return "google.protobuf.Timestamp";
    default:
      return "string";
  }
}
