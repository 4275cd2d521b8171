import type { FieldError } from "./contract.ts";

/**
 * Constructors of the reasons for which a value is refused. The texts are those that Kubernetes prints:
 * kubernetes/apimachinery pkg/util/validation/field/errors.go (master).
 */

/** `Invalid value: "x": must be …` */
export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { reason: "FieldValueInvalid", field, message: `Invalid value: ${printed(value)}${tail(detail)}` };
}

/** As `invalid`, for a value of another type than asked for. */
export function typeInvalid(field: string, value: unknown, detail: string): FieldError {
  return { reason: "FieldValueTypeInvalid", field, message: `Invalid value: ${printed(value)}${tail(detail)}` };
}

/** `Required value` */
export function required(field: string, detail = ""): FieldError {
  return { reason: "FieldValueRequired", field, message: `Required value${tail(detail)}` };
}

/** Supported values as text: many values of an object may be refused by one long list. */
const supportedTexts = new WeakMap<readonly string[], string>();

function textOfSupported(supported: readonly string[]): string {
  const known = supportedTexts.get(supported);
  if (known !== undefined) return known;
  const text = `supported values: ${supported.map((one) => JSON.stringify(one)).join(", ")}`;
  supportedTexts.set(supported, text);
  return text;
}

/** `Unsupported value: "x": supported values: "a", "b"` */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const detail = supported.length === 0 ? "" : textOfSupported(supported);
  return { reason: "FieldValueNotSupported", field, message: `Unsupported value: ${printed(value)}${tail(detail)}` };
}

/** `Duplicate value: "x"` */
export function duplicate(field: string, value: unknown): FieldError {
  return { reason: "FieldValueDuplicate", field, message: `Duplicate value: ${printed(value)}` };
}

/** `Forbidden: …` */
export function forbidden(field: string, detail: string): FieldError {
  return { reason: "FieldValueForbidden", field, message: `Forbidden${tail(detail)}` };
}

/** `Too long: may not be more than 63 bytes` */
export function tooLong(field: string, maxLength: number): FieldError {
  return { reason: "FieldValueTooLong", field, message: `Too long: may not be more than ${maxLength} bytes` };
}

/** `Too many: 5: must have at most 3 items` */
export function tooMany(field: string, actual: number, maximum: number): FieldError {
  const items = maximum === 1 ? "item" : "items";
  return { reason: "FieldValueTooMany", field, message: `Too many: ${actual}: must have at most ${maximum} ${items}` };
}

/** `Not found: "x"` */
export function notFound(field: string, value: unknown): FieldError {
  return { reason: "FieldValueNotFound", field, message: `Not found: ${printed(value)}` };
}

/** `spec` + `replicas` → `spec.replicas`; a step that starts with `[` joins without a dot. */
export function child(path: string, step: string): string {
  if (path === "") return step;
  return `${path}.${step}`;
}

function tail(detail: string): string {
  return detail === "" ? "" : `: ${detail}`;
}

function printed(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "bigint") return value.toString();
  return JSON.stringify(value);
}
