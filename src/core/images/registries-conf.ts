import { type ImageReference, parseImageReference, printImageReference, repositoryOf } from "./image-reference.ts";

export interface RegistryMirror {
  readonly location: string;
  readonly insecure: boolean;
  /** Empty, `all`, `digest-only` or `tag-only`. */
  readonly pullFromMirror: string;
}

export interface RegistrySection {
  /** Empty: the location. `*.example.com` stands for every host below that domain. */
  readonly prefix: string;
  readonly location: string;
  readonly blocked: boolean;
  readonly insecure: boolean;
  readonly mirrorByDigestOnly: boolean;
  readonly mirrors: readonly RegistryMirror[];
}

/** What `/etc/containers/registries.conf` (version 2) says. */
export interface RegistriesConf {
  readonly unqualifiedSearch: readonly string[];
  /** By prefix, or by location where a section has no prefix. */
  readonly registries: ReadonlyMap<string, RegistrySection>;
}

/** A place to pull an image from. */
export interface PullSource {
  readonly reference: ImageReference;
  /** Plain HTTP and certificates that nobody vouches for are put up with. */
  readonly insecure: boolean;
}

export type PullSources =
  | { readonly verdict: "sources"; readonly sources: readonly PullSource[] }
  | { readonly verdict: "refused"; readonly problem: string };

/**
 * Where an image is to be looked for: its mirrors in the order of the file, then the place that it names.
 * Source of the rules: containers-registries.conf(5) and containers/image pkg/sysregistriesv2 (main).
 *
 * @param conf `undefined`: the machine has no such file.
 */
export function pullSources(conf: RegistriesConf | undefined, reference: ImageReference): PullSources {
  const found = sectionFor(conf, reference);
  if (found === undefined) return { verdict: "sources", sources: [{ reference, insecure: false }] };
  const { scope, section } = found;
  if (section.blocked) return { verdict: "refused", problem: `registries.conf blocks ${scope}` };
  const byDigest = reference.digest !== undefined;
  const mirrors = section.mirrors.filter(({ pullFromMirror }) => {
    if (section.mirrorByDigestOnly || pullFromMirror === "digest-only") return byDigest;
    return pullFromMirror !== "tag-only" || !byDigest;
  });
  const sources: PullSource[] = [];
  for (const place of [...mirrors, section]) {
    const moved = relocated(reference, scope, place.location);
    if (moved === undefined)
      return {
        verdict: "refused",
        problem: `registries.conf moves ${scope} to ${place.location}, which makes no reference`,
      };
    sources.push({ reference: moved, insecure: place.insecure });
  }
  return { verdict: "sources", sources };
}

function sectionFor(
  conf: RegistriesConf | undefined,
  reference: ImageReference,
): { readonly scope: string; readonly section: RegistrySection } | undefined {
  const name = printImageReference(reference);
  let best: { readonly scope: string; readonly section: RegistrySection } | undefined;
  for (const [scope, section] of conf?.registries ?? []) {
    const matches = scope.startsWith("*.")
      ? reference.host.replace(/:[0-9]+$/, "").endsWith(scope.slice(1))
      : name.startsWith(scope) && (name.length === scope.length || /^[:/@]/.test(name.slice(scope.length)));
    if (matches && scope.length > (best?.scope.length ?? 0)) best = { scope, section };
  }
  return best;
}

function relocated(reference: ImageReference, scope: string, location: string): ImageReference | undefined {
  if (location === "") return scope.startsWith("*.") ? reference : undefined;
  const rest = printImageReference(reference).slice(scope.startsWith("*.") ? reference.host.length : scope.length);
  const reading = parseImageReference(`${location}${rest}`);
  // A location without a host would silently become one of docker.io.
  return reading.verdict === "reference" &&
    `${repositoryOf(reading.reference)}/`.startsWith(`${location.split("/")[0]}/`)
    ? reading.reference
    : undefined;
}

/**
 * Reads as much TOML as registries.conf has: comments, tables, arrays of tables, strings, booleans, numbers, arrays of
 * those. `undefined` for anything else: what reads it then refuses, or calls nothing safe.
 */
export function parseRegistriesConf(text: string): RegistriesConf | undefined {
  const unqualifiedSearch: string[] = [];
  const list: Record<string, unknown>[] = [];
  const mirrorsOf = new Map<Record<string, unknown>, Record<string, unknown>[]>();
  const top: Record<string, unknown> = {};
  let target: Record<string, unknown> = top;
  const lines = joinedLines(text);
  if (lines === undefined) return undefined;
  for (const line of lines) {
    if (line === "") continue;
    // One quantifier each: blanks around the name would make a hostile line cost its length cubed.
    const heading = /^\[\[([A-Za-z0-9_.\-\s]+)\]\]$/.exec(line) ?? /^\[([A-Za-z0-9_.\-\s"]+)\]$/.exec(line);
    if (heading !== null) {
      const name = (heading[1] ?? "").replaceAll(/\s/g, "");
      target = {};
      if (!line.startsWith("[[")) continue;
      if (name === "registry") list.push(target);
      else if (name === "registry.mirror") {
        const registry = list.at(-1);
        if (registry === undefined) return undefined;
        const mirrors = mirrorsOf.get(registry) ?? [];
        mirrors.push(target);
        mirrorsOf.set(registry, mirrors);
      }
      continue;
    }
    const pair = /^(?:"([^"\\]*)"|([A-Za-z0-9_-]+))\s*=\s*(.*)$/s.exec(line);
    if (pair === null) return undefined;
    const value = readValue(pair[3] ?? "");
    if (value === undefined) return undefined;
    target[pair[1] ?? pair[2] ?? ""] = value;
  }
  const search = top["unqualified-search-registries"] ?? [];
  if (!Array.isArray(search)) return undefined;
  for (const registry of search) {
    if (typeof registry !== "string") return undefined;
    unqualifiedSearch.push(registry);
  }
  const registries = new Map<string, RegistrySection>();
  for (const raw of list) {
    const {
      prefix = "",
      location = "",
      blocked = false,
      insecure = false,
      "mirror-by-digest-only": mirrorByDigestOnly = false,
    } = raw;
    if (
      typeof prefix !== "string" ||
      typeof location !== "string" ||
      typeof blocked !== "boolean" ||
      typeof insecure !== "boolean" ||
      typeof mirrorByDigestOnly !== "boolean"
    )
      return undefined;
    const mirrors: RegistryMirror[] = [];
    for (const {
      location: where = "",
      insecure: insecureMirror = false,
      "pull-from-mirror": pullFromMirror = "",
    } of mirrorsOf.get(raw) ?? []) {
      if (typeof where !== "string" || typeof insecureMirror !== "boolean" || typeof pullFromMirror !== "string")
        return undefined;
      mirrors.push({ location: where, insecure: insecureMirror, pullFromMirror });
    }
    registries.set(prefix === "" ? location : prefix, {
      prefix,
      location,
      blocked,
      insecure,
      mirrorByDigestOnly,
      mirrors,
    });
  }
  return { unqualifiedSearch, registries };
}

/** Lines without comments; an array that goes on over several lines becomes one. */
function joinedLines(text: string): readonly string[] | undefined {
  const lines: string[] = [];
  let line = "";
  let depth = 0;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i] ?? "";
    if (quote !== "") {
      if (char === "\n") return undefined;
      if (char === "\\" && quote === '"') line += char + (text[++i] ?? "");
      else {
        if (char === quote) quote = "";
        line += char;
      }
    } else if (char === "#") {
      const end = text.indexOf("\n", i);
      i = (end < 0 ? text.length : end) - 1;
    } else if (char === "\n" && depth === 0) {
      lines.push(line.trim());
      line = "";
    } else {
      if (char === '"' || char === "'") {
        if (text.startsWith(char.repeat(3), i)) return undefined;
        quote = char;
      }
      if (char === "[" && line.includes("=")) depth += 1;
      if (char === "]" && depth > 0) depth -= 1;
      line += char === "\n" ? " " : char;
    }
  }
  if (quote !== "" || depth > 0) return undefined;
  lines.push(line.trim());
  return lines;
}

function readValue(text: string): unknown {
  const value = text.trim();
  if (value === "true" || value === "false") return value === "true";
  if (/^[-+]?[0-9_]+$/.test(value)) return Number(value.replaceAll("_", ""));
  const string = readString(value);
  if (string !== undefined) return string;
  if (!value.startsWith("[") || !value.endsWith("]")) return undefined;
  const items: string[] = [];
  const item = /\s*("(?:[^"\\]|\\.)*"|'[^']*')\s*(,|$)/sy;
  const inner = value.slice(1, -1).trim();
  while (item.lastIndex < inner.length) {
    const found = item.exec(inner);
    const read = found === null ? undefined : readString(found[1] ?? "");
    if (read === undefined) return undefined;
    items.push(read);
  }
  return items;
}

function readString(text: string): string | undefined {
  if (/^'[^']*'$/.test(text)) return text.slice(1, -1);
  if (!/^"(?:[^"\\]|\\.)*"$/s.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
