import { readJsonOfYaml } from "../../../core/text/json-as-yaml.ts";
import { kubernetesYaml } from "../../../core/text/kubernetes-yaml.ts";
import type { HttpRequest } from "../../../ports/http.ts";
import { isObject, jsonLength, maxJsonDepth } from "../schema/json-values.ts";
import { decodeProtobuf } from "../schema/kinds/protobuf.ts";
import { badRequest, Refusal, tooLarge, unsupportedMediaType } from "../schema/status.ts";

/** What the real server accepts as well: `k8s.io/apiserver pkg/server/config.go (master)` MaxRequestBodyBytes. */
export const bodyLimitBytes = 3 * 1024 * 1024;

/**
 * Objects in one body. What the real server stores (1.5 MiB, in etcd) has fewer; an empty one has three characters, and each
 * is filled with defaults and judged: a million takes a quarter of a minute.
 */
const maxObjects = 250_000;

/**
 * Longer bodies are read as JSON, which is YAML too, and which clients send. Tags without a meaning take two seconds for so
 * many characters, and a list of nothing but errors seven hundred times its size in memory.
 */
export const yamlLimitCharacters = 256 * 1024;

const objectTypes = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

export function bodyBytes(request: HttpRequest): number {
  const { body } = request;
  if (body === undefined) return 0;
  return typeof body === "string" ? utf8Length(body) : body.byteLength;
}

function utf8Length(text: string): number {
  // A string of n units has n to 3n bytes: encode only where that leaves a doubt.
  return text.length * 3 <= bodyLimitBytes || text.length > bodyLimitBytes
    ? text.length
    : new TextEncoder().encode(text).byteLength;
}

/** The body as text. */
export function bodyText(request: HttpRequest): string {
  const { body } = request;
  if (body === undefined) return "";
  // JSON begins with no byte order mark; YAML may.
  return typeof body === "string" ? body : new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
}

export function mediaType(request: HttpRequest): string {
  return (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** What became of a text that is YAML: `json` is the same as JSON. */
export type YamlOutcome =
  | { readonly verdict: "read"; readonly json: string }
  | { readonly verdict: "refused"; readonly code: 400 | 413; readonly message: string };

/** Reads YAML beside the loop that answers all others. @param share of users, who take turns. */
export type ReadYaml = (text: string, share: string, signal: AbortSignal) => Promise<YamlOutcome>;

/** A request whose YAML has been read already. */
export interface ReadRequest extends HttpRequest {
  readonly yaml?: { readonly value: unknown };
}

/** Longer YAML is read beside the loop: of unknown tags, this takes a tenth of a second. */
const yamlAtOnceCharacters = 16 * 1024;

const yamlTypes = ["application/yaml", "application/apply-patch+yaml"];

/** The request, with its body read where that would take long. */
export async function readAhead(
  request: HttpRequest,
  read: (text: string) => Promise<YamlOutcome>,
): Promise<ReadRequest> {
  if (!yamlTypes.includes(mediaType(request)) || bodyBytes(request) <= yamlAtOnceCharacters) return request;
  const text = bodyText(request);
  if (text.length > yamlLimitCharacters || readJsonOfYaml(text) !== undefined) return request;
  const outcome = await read(text);
  const value =
    outcome.verdict === "read"
      ? (JSON.parse(outcome.json) as unknown)
      : outcome.code === 413
        ? tooLarge(bodyLimitBytes)
        : badRequest(outcome.message);
  return { ...request, yaml: { value } };
}

/** {@link parseText} of YAML, as a thread passes it on. */
export function readYaml(text: string): YamlOutcome {
  const value = parseText(text, "yaml");
  return value instanceof Refusal
    ? { verdict: "refused", code: value.code === 413 ? 413 : 400, message: value.status.message ?? "" }
    : { verdict: "read", json: JSON.stringify(value) };
}

/** The value of a body in YAML, or why there is none. */
export const yamlOf = (request: ReadRequest): unknown =>
  request.yaml === undefined ? parseText(bodyText(request), "yaml") : request.yaml.value;

/** The object in a body: JSON, YAML, or protobuf where kubectl sends that. `kind`: what it must be, for the refusal. */
export function bodyObject(request: ReadRequest, kind = "object"): Record<string, unknown> | Refusal {
  if (bodyBytes(request) > bodyLimitBytes) return tooLarge(bodyLimitBytes);
  const type = mediaType(request);
  if (type === "application/vnd.kubernetes.protobuf") {
    const decoded = decodeProtobuf(
      typeof request.body === "string" || request.body === undefined
        ? new TextEncoder().encode(request.body ?? "")
        : request.body,
    );
    if (decoded.verdict === "refused") return badRequest(decoded.message);
    const problem = problemOfJson(decoded.object);
    return problem === undefined ? { ...decoded.object } : badRequest(`error decoding the body: ${problem}`);
  }
  if (type !== "" && !objectTypes.includes(type)) return unsupportedMediaType(objectTypes);
  const unrecognised = (why: string) =>
    badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
    );
  const value = type === "application/yaml" ? yamlOf(request) : parseText(bodyText(request), "json");
  if (value instanceof Refusal) return value.code === 413 ? value : unrecognised(value.status.message ?? "");
  if (!isObject(value)) return unrecognised("it is no object");
  for (const field of ["apiVersion", "kind"]) {
    if (field in value && typeof value[field] !== "string")
      return unrecognised(
        `json: cannot unmarshal ${typeof value[field]} into Go struct field .${field} of type string`,
      );
  }
  return value;
}

/** Reads JSON or YAML. */
export function parseText(text: string, language: "json" | "yaml"): unknown {
  try {
    // kubectl applies JSON under YAML's name; only small documents, some of which take long, are worth YAML's reader.
    if (language === "json" || text.length > yamlLimitCharacters) {
      const json = JSON.parse(text) as unknown;
      const problem = problemOfJson(json);
      return problem === undefined ? json : badRequest(`error decoding the body: ${problem}`);
    }
    const json = readJsonOfYaml(text);
    if (json !== undefined) {
      const problem = problemOfJson(json.value);
      return problem === undefined ? json.value : badRequest(`error decoding the body: ${problem}`);
    }
    const document = kubernetesYaml(text);
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const value = document.toJS({ maxAliasCount: 100 }) as unknown;
    // Aliases make a small text a huge value, even a hundred of them.
    if (jsonLength(value, bodyLimitBytes) > bodyLimitBytes) return tooLarge(bodyLimitBytes);
    const problem = problemOfJson(value);
    return problem === undefined ? value : badRequest(`error decoding the body: ${problem}`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const hint = language === "yaml" && text.length > yamlLimitCharacters ? " (beyond 256 KiB, YAML must be JSON)" : "";
    return badRequest(`error decoding the body: ${message}${hint}`);
  }
}

/** What a value has at most: levels of nesting, and objects. */
interface JsonSize {
  readonly depth: number;
  readonly objects: number;
}

/**
 * What no reader of JSON in Go takes: numbers beyond its range, which would become null; and deeper nesting (the real server
 * takes 10,000 levels, this one 1,000) and more objects than what works through the value can bear.
 *
 * @param before what an earlier version stored: what that has already is no problem.
 */
export function problemOfJson(value: unknown, before?: unknown): string | undefined {
  const problem = problemBeyond(value, { depth: maxJsonDepth, objects: maxObjects });
  if (before === undefined) return problem ?? problemOfKeys(value);
  if (problem === undefined) return undefined;
  const { depth, objects } = sizeOfJson(before);
  return problemBeyond(value, { depth: Math.max(depth, maxJsonDepth), objects: Math.max(objects, maxObjects) });
}

/** Whoever copies an object by assigning its keys would change what the copy inherits. */
function problemOfKeys(value: unknown): string | undefined {
  for (const level of levelsOf(value))
    if (level.some((one) => isObject(one) && Object.hasOwn(one, "__proto__"))) return "__proto__ is no key";
  return undefined;
}

function problemBeyond(value: unknown, most: JsonSize): string | undefined {
  let objects = 0;
  let depth = 0;
  for (const level of levelsOf(value)) {
    if (depth > most.depth) return "exceeded max depth";
    if (level.some((one) => one === Infinity || one === -Infinity)) return "a number is out of range";
    for (const one of level) if (isObject(one)) objects += 1;
    if (objects > most.objects) return `more than ${most.objects} objects`;
    depth += 1;
  }
  return undefined;
}

function sizeOfJson(value: unknown): JsonSize {
  let objects = 0;
  let depth = -1;
  for (const level of levelsOf(value)) {
    for (const one of level) if (isObject(one)) objects += 1;
    depth += 1;
  }
  return { depth, objects };
}

/** The value, what is in it, what is in that, and so on. */
function* levelsOf(value: unknown): Generator<readonly unknown[]> {
  for (let level: readonly unknown[] = [value]; level.length > 0;) {
    yield level;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? (Object.values(one) as unknown[]) : []));
  }
}

/** Paths of fields that a JSON body names twice, which a parsed object no longer shows. */
export function duplicateFields(request: HttpRequest): readonly string[] {
  const type = mediaType(request);
  return type === "" || type === "application/json" ? duplicatesOf(bodyText(request)) : [];
}

/** `text` has been parsed: it is valid JSON. */
function duplicatesOf(text: string): readonly string[] {
  interface Level {
    readonly seen: Set<string> | undefined;
    readonly path: string;
    step: string;
    index: number;
  }
  const found: string[] = [];
  const levels: Level[] = [];
  let expectsKey = false;
  const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g;
  for (const [token] of text.matchAll(tokens)) {
    const level = levels.at(-1);
    switch (token) {
      case "{":
      case "[": {
        const path =
          level === undefined
            ? ""
            : `${level.path}${level.seen === undefined ? `[${level.index}]` : level.path === "" ? level.step : `.${level.step}`}`;
        levels.push({ seen: token === "{" ? new Set() : undefined, path, step: "", index: 0 });
        expectsKey = token === "{";
        break;
      }
      case "}":
      case "]":
        levels.pop();
        expectsKey = false;
        break;
      case ",":
        if (level !== undefined) level.index += 1;
        expectsKey = level?.seen !== undefined;
        break;
      case ":":
        expectsKey = false;
        break;
      default:
        if (!expectsKey || level?.seen === undefined) break;
        level.step = JSON.parse(token) as string;
        if (level.seen.has(level.step)) found.push(level.path === "" ? level.step : `${level.path}.${level.step}`);
        level.seen.add(level.step);
    }
  }
  return found;
}
