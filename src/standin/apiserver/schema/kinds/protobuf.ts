import { cloneJson, isList, isObject, type JsonObject } from "../json-values.ts";
import { type KubernetesField, kubernetesTypes } from "./builtin-types.ts";
import { own } from "../../../../api/schema/own.ts";

/** Kind by apiVersion. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  v1: ["Namespace", "ConfigMap", "Secret", "ServiceAccount", "ResourceQuota"],
  "apps/v1": ["Deployment"],
  "batch/v1": ["Job", "CronJob"],
  "certificates.k8s.io/v1": ["CertificateSigningRequest"],
  "policy/v1": ["PodDisruptionBudget"],
  "scheduling.k8s.io/v1": ["PriorityClass"],
  "rbac.authorization.k8s.io/v1": ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"],
  "authentication.k8s.io/v1": ["TokenRequest", "TokenReview", "SelfSubjectReview"],
  "authorization.k8s.io/v1": [
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
    "LocalSubjectAccessReview",
  ],
  "meta.k8s.io/v1": ["DeleteOptions"],
};

export type ProtobufResult =
  | { readonly verdict: "decoded"; readonly object: JsonObject }
  | { readonly verdict: "refused"; readonly message: string };

/**
 * Decodes a body of type `application/vnd.kubernetes.protobuf`: the magic `k8s\0`, the envelope `runtime.Unknown`, and
 * the object in it, as JSON would have it. Kinds beyond the table are refused by name.
 */
export function decodeProtobuf(body: Uint8Array): ProtobufResult {
  if (body[0] !== 0x6b || body[1] !== 0x38 || body[2] !== 0x73 || body[3] !== 0)
    return refused("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  try {
    return decodeEnvelope(body.subarray(4));
  } catch (error) {
    if (error instanceof Malformed) return refused(error.message);
    throw error;
  }
}

class Malformed extends Error {}

/** A value that a field cannot have; each message around it adds the name of its field. */
class WrongValue extends Malformed {
  readonly path: readonly string[];
  readonly reason: string;

  constructor(reason: string, path: readonly string[] = []) {
    super(`${path.join(".")}: ${reason}`);
    this.path = path;
    this.reason = reason;
  }
}

function refused(message: string): ProtobufResult {
  return { verdict: "refused", message };
}

function decodeEnvelope(body: Uint8Array): ProtobufResult {
  let apiVersion = "";
  let kind = "";
  let raw: Uint8Array = new Uint8Array();
  for (const field of fields(body)) {
    if (field.number === 1) {
      for (const inner of fields(bytesOf(field))) {
        if (inner.number === 1) apiVersion = textOf(inner);
        if (inner.number === 2) kind = textOf(inner);
      }
    }
    if (field.number === 2) raw = bytesOf(field);
  }
  const known = own(kinds, apiVersion)?.includes(kind) === true || kind === "DeleteOptions";
  if (!known)
    return refused(
      `no protobuf decoder for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}; send JSON`,
    );
  const { status, ...object } = decodeMessage(kind, raw);
  // A status sent with an object is ignored, except in an approval.
  const counts = status !== undefined && kind === "CertificateSigningRequest";
  return { verdict: "decoded", object: { kind, apiVersion, ...object, ...(counts ? { status } : {}) } };
}

interface WireField {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

function bytesOf({ value }: WireField): Uint8Array {
  if (typeof value === "bigint") throw new Malformed("proto: wrong wireType");
  return value;
}

const decoder = new TextDecoder();

function textOf(field: WireField): string {
  return decoder.decode(bytesOf(field));
}

function numberOf({ value }: WireField): number {
  if (typeof value !== "bigint") throw new Malformed("proto: wrong wireType");
  return Number(BigInt.asIntN(64, value));
}

/** As Go's decoders do (gogo/protobuf: `int32(b&0x7F) << shift`). */
function cutTo32Bits({ value }: WireField): number {
  if (typeof value !== "bigint") throw new Malformed("proto: wrong wireType");
  return Number(BigInt.asIntN(32, value));
}

function* fields(body: Uint8Array): Generator<WireField> {
  let position = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = body[position++];
      if (byte === undefined) throw new Malformed("unexpected EOF");
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, result);
    }
    throw new Malformed("proto: integer overflow");
  };
  const take = (length: number): Uint8Array => {
    if (length > body.length - position) throw new Malformed("unexpected EOF");
    position += length;
    return body.subarray(position - length, position);
  };
  while (position < body.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    if (number === 0) throw new Malformed("proto: illegal tag 0");
    switch (Number(tag & 7n)) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        take(8);
        break;
      case 2:
        yield { number, value: take(Number(varint())) };
        break;
      case 5:
        take(4);
        break;
      default:
        throw new Malformed("proto: illegal wireType");
    }
  }
}

interface Message {
  /** Number → name and form of the field. */
  readonly fields: ReadonlyMap<number, { readonly name: string; readonly field: KubernetesField }>;
  /** Number → embedded message. */
  readonly inline: ReadonlyMap<number, string>;
}

const messages = new Map<string, Message>();

function messageOf(name: string): Message {
  const known = messages.get(name);
  if (known !== undefined) return known;
  const type = kubernetesTypes[name];
  if (type === undefined) throw new Malformed(`proto: no message ${name}`);
  const fields = Object.entries(type.fields).flatMap(([key, field]) =>
    field.number === undefined ? [] : [[field.number, { name: key, field }] as const],
  );
  const inline = Object.entries(type.inline ?? {}).map(([number, of]) => [Number(number), of] as const);
  const message = { fields: new Map(fields), inline: new Map(inline) };
  messages.set(name, message);
  return message;
}

/** Deeper than any message of the tables. */
const maxDepth = 40;

function decodeMessage(name: string, body: Uint8Array, depth = 0): JsonObject {
  if (depth > maxDepth) throw new Malformed("proto: nested too deeply");
  const message = messageOf(name);
  const result: JsonObject = {};
  for (const wire of fields(body)) {
    const inline = message.inline.get(wire.number);
    if (inline !== undefined) Object.assign(result, decodeMessage(inline, bytesOf(wire), depth + 1));
    const spec = message.fields.get(wire.number);
    if (spec === undefined) continue;
    try {
      decodeField(result, spec, wire, depth);
    } catch (error) {
      throw error instanceof WrongValue ? new WrongValue(error.reason, [spec.name, ...error.path]) : error;
    }
  }
  return result;
}

function decodeField(
  result: JsonObject,
  { name, field }: { readonly name: string; readonly field: KubernetesField },
  wire: WireField,
  depth: number,
): void {
  if (field.list !== undefined) {
    const item = decodeValue(field.list, wire, depth);
    const list = result[name];
    if (isList(list)) list.push(item);
    else result[name] = [item];
    return;
  }
  if (field.map !== undefined) {
    const map = isObject(result[name]) ? result[name] : {};
    result[name] = map;
    let key = "";
    let value: unknown = emptyOf(field.map);
    for (const inner of fields(bytesOf(wire))) {
      if (inner.number === 1) key = textOf(inner);
      if (inner.number === 2) value = decodeValue(field.map, inner, depth);
    }
    if (key !== "__proto__") map[key] = cloneJson(value);
    return;
  }
  const value = decodeValue(field.type ?? "any", wire, depth);
  // The wire carries the zero of a field that is no pointer in Go; JSON leaves it out where Go does.
  const isAbsent =
    value === "" || value === undefined || (field.written === undefined && (value === 0 || value === false));
  if (!isAbsent) result[name] = value;
}

function emptyOf(type: string): unknown {
  if (type.startsWith("list of ")) return [];
  return type === "int32" || type === "int64" ? 0 : "";
}

function decodeValue(type: string, wire: WireField, depth: number): unknown {
  switch (type) {
    case "string":
      return textOf(wire);
    case "int32":
      return cutTo32Bits(wire);
    case "int64":
      return numberOf(wire);
    case "boolean":
      return numberOf(wire) !== 0;
    case "byte":
      return base64OfBytes(bytesOf(wire));
    case "time":
    case "microTime":
      return decodeTime(bytesOf(wire));
    case "quantity":
      return decodeQuantity(bytesOf(wire));
    case "intOrString":
      return decodeIntOrString(bytesOf(wire));
    case "list of string":
      return [...fields(bytesOf(wire))].filter(({ number }) => number === 1).map(textOf);
    default:
      return decodeMessage(type, bytesOf(wire), depth + 1);
  }
}

/** 9999-12-31T23:59:59Z: RFC 3339 has years of four digits. */
const lastSecond = 253_402_300_799;

/** A zero time is an absent one. */
function decodeTime(body: Uint8Array): string | undefined {
  let seconds = 0;
  for (const field of fields(body)) if (field.number === 1) seconds = numberOf(field);
  if (seconds <= 0) return undefined;
  if (seconds > lastSecond) throw new WrongValue("a time after the year 9999, which no calendar here has");
  return new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}

function decodeQuantity(body: Uint8Array): string {
  for (const field of fields(body)) if (field.number === 1) return textOf(field);
  return "0";
}

function decodeIntOrString(body: Uint8Array): string | number {
  let kind = 0;
  let number = 0;
  let text = "";
  for (const field of fields(body)) {
    if (field.number === 1) kind = numberOf(field);
    else if (field.number === 2) number = cutTo32Bits(field);
    else if (field.number === 3) text = textOf(field);
  }
  return kind === 1 ? text : number;
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** RFC 4648, with padding. */
export function base64OfBytes(bytes: Uint8Array): string {
  let result = "";
  for (let index = 0; index < bytes.length; index += 3) {
    const a = bytes[index] ?? 0;
    const b = bytes[index + 1];
    const c = bytes[index + 2];
    result += digits.charAt(a >> 2) + digits.charAt(((a & 3) << 4) | ((b ?? 0) >> 4));
    result += b === undefined ? "=" : digits.charAt(((b & 15) << 2) | ((c ?? 0) >> 6));
    result += c === undefined ? "=" : digits.charAt(c & 63);
  }
  return result;
}
