import { randomBytes } from "node:crypto";
import { gunzipSync } from "node:zlib";
import type { KubeObject } from "../../src/api/schema/object.ts";

/** One secret of a scenario, by what it is. `text` must appear nowhere but where secrets belong. */
export interface Canary {
  readonly name: string;
  readonly text: string;
}

/** A text that leaves the places of secrets, and where it was found. */
export interface Sink {
  readonly where: string;
  readonly text: string;
}

/** Begins every planted secret, so that a first search needs one word in few forms. Letters that a token may have. */
const marker = "canary7q";
/** A quarter of a base64 group may be missing at both ends. */
const shortest = 8;

const planted = {
  "file content": "f",
  "password hash": "h",
  "pull secret": "p",
  "push credential": "c",
  "provisioning token": "t",
  "kubelet token": "k",
  "setting in a file": "s",
} as const;
export type CanaryName = keyof typeof planted;

/** The planted secrets of one cluster: 32 lower-case letters and digits each, which is the form of a token's secret. */
export type Canaries = Readonly<Record<CanaryName, string>>;

export function newCanaries(): Canaries {
  const core = (kind: string) => `${marker}${kind}${randomBytes(12).toString("hex").slice(0, 23)}`;
  return Object.fromEntries(Object.entries(planted).map(([name, kind]) => [name, core(kind)])) as Canaries;
}

export const canariesOf = (canaries: Canaries): readonly Canary[] =>
  Object.entries(canaries).map(([name, text]) => ({ name, text }));

interface Form {
  readonly form: string;
  readonly text: string;
}

/** Base64 of a text within a longer one, for each place where the text may begin; characters that others share go. */
function base64Within(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    const whole = padded.toString("base64").replace(/=+$/, "");
    const own = whole.slice(Math.ceil((before * 8) / 6), Math.floor((padded.length * 8) / 6));
    const safe = own.replaceAll("+", "-").replaceAll("/", "_");
    return safe === own ? [own] : [own, safe];
  });
}

function formsOf(text: string): readonly Form[] {
  const once = base64Within(text);
  const hex = Buffer.from(text).toString("hex");
  const all: readonly Form[] = [
    { form: "in plain text", text },
    { form: "URL-encoded", text: encodeURIComponent(text) },
    { form: "JSON-escaped", text: JSON.stringify(text).slice(1, -1) },
    { form: "JSON-escaped twice", text: JSON.stringify(JSON.stringify(text).slice(1, -1)).slice(1, -1) },
    ...once.map((each) => ({ form: "in base64", text: each })),
    ...once.flatMap(base64Within).map((each) => ({ form: "in base64 of base64", text: each })),
    { form: "in hexadecimal digits", text: hex },
    { form: "in hexadecimal digits", text: hex.toUpperCase() },
  ];
  return all.filter((form, index) => all.findIndex((other) => other.text === form.text) === index);
}

const markerForms = formsOf(marker);

/** Packed texts that a text holds: gzip in base64 begins with these letters (RFC 1952: 1f 8b 08). */
function unpacked(text: string): readonly string[] {
  return [...text.matchAll(/H4sI[A-Za-z0-9+/=_-]{16,}/g)].flatMap(([packed]) => {
    try {
      return [gunzipSync(Buffer.from(packed, "base64")).toString("utf8")];
    } catch {
      // Text that only begins like it, or a part of it.
      return [];
    }
  });
}

/**
 * The secrets that sinks hold, as sentences: which one, how it is encoded, and where. A sink with the first letters of
 * a planted secret alone is named as well: a part of a secret has leaked then.
 *
 * @param others secrets that were not planted, such as keys that the suite made; they are looked for as they are.
 */
export function leaksIn(
  sinks: Iterable<Sink>,
  canaries: readonly Canary[],
  others: readonly Canary[] = [],
): readonly string[] {
  const forms = new Map(canaries.map((canary) => [canary.name, formsOf(canary.text)]));
  const foreign = others.map(({ name, text }) => ({ name, forms: formsOf(text) }));
  const leaks: string[] = [];
  const search = (where: string, text: string, how: string) => {
    for (const { name, forms: each } of foreign) {
      const found = each.find((one) => text.includes(one.text));
      if (found !== undefined) leaks.push(`${where} holds the ${name} ${found.form}${how}`);
    }
    const begins = markerForms.find((one) => text.includes(one.text));
    if (begins === undefined) return;
    const before = leaks.length;
    for (const [name, each] of forms) {
      const found = each.find((one) => text.includes(one.text));
      if (found !== undefined) leaks.push(`${where} holds the ${name} ${found.form}${how}`);
    }
    if (leaks.length === before) leaks.push(`${where} holds the beginning of a secret ${begins.form}${how}`);
  };
  for (const { where, text } of sinks) {
    if (text.length < shortest) continue;
    search(where, text, "");
    if (text.includes("H4sI")) for (const inner of unpacked(text)) search(where, inner, ", packed with gzip");
  }
  return [...new Set(leaks)];
}

/** Where secrets belong: fields of objects, by kind. Whoever may read these may read the secrets. */
const placesOfSecrets: Readonly<Record<string, readonly string[]>> = {
  MachineConfig: ["spec.config"],
  ControllerConfig: ["spec.internalRegistryPullSecret"],
};

/** Every text of an object, keys included, each with its field, without the fields in which secrets belong. */
export function sinksOfObject(object: KubeObject): readonly Sink[] {
  if (object.kind === "Secret") return [];
  const exempt = placesOfSecrets[object.kind] ?? [];
  const { name, namespace } = object.metadata;
  const who = `${object.kind}/${namespace === undefined ? "" : `${namespace}/`}${name}`;
  const found: Sink[] = [];
  const walk = (value: unknown, path: string): void => {
    if (exempt.includes(path)) return;
    if (typeof value === "string") found.push({ where: `${who} ${path}`, text: value });
    else if (Array.isArray(value)) for (const [index, each] of value.entries()) walk(each, `${path}[${index}]`);
    else if (typeof value === "object" && value !== null)
      for (const [key, each] of Object.entries(value)) {
        found.push({ where: `${who} ${path} (a key)`, text: key });
        walk(each, path === "" ? key : `${path}.${key}`);
      }
  };
  walk(object, "");
  return found;
}

/** Secrets that objects of the kind Secret hold: passwords of registries, and a line of each private key. */
export function secretsIn(
  object: KubeObject & { readonly data?: Readonly<Record<string, string>> },
): readonly Canary[] {
  return Object.entries(object.data ?? {}).flatMap(([key, value]) => {
    const text = Buffer.from(value, "base64").toString("utf8");
    const name = `${key} of the Secret ${object.metadata.name}`;
    if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
      const line = text.split("\n")[2] ?? "";
      return line.length < 16 ? [] : [{ name, text: line }];
    }
    if (!key.startsWith(".dockerc")) return [];
    return passwordsIn(text)
      .filter((password) => password.length >= shortest && !password.startsWith(marker))
      .map((password) => ({ name, text: password }));
  });
}

function passwordsIn(dockerConfig: string): readonly string[] {
  const read = JSON.parse(dockerConfig) as { readonly auths?: Readonly<Record<string, { readonly auth?: string }>> };
  return Object.values(read.auths ?? {}).flatMap(({ auth }) =>
    auth === undefined
      ? []
      : [
          Buffer.from(auth, "base64")
            .toString("utf8")
            .replace(/^[^:]*:/, ""),
        ],
  );
}
