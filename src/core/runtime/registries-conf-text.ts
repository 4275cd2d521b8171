import { pushAll } from "../../api/schema/push-all.ts";
import { parse, stringify } from "smol-toml";
import { oversizedReason, oversizedText } from "../../ignition/held-contents.ts";
import { type Decoded, decodeGo } from "../kubelet/decode-go.ts";
import type { GoStruct } from "../kubelet/kubelet-fields.ts";
import { readOnce } from "../text/read-once.ts";
import type { MergedMirrors } from "./merge-mirrors.ts";
import { outerScopes } from "./registry-scopes.ts";

const strings = { list: "string" } as const;
const endpoint = { location: "string", insecure: "bool", "pull-from-mirror": "string" } as const;

/** What container engines know of the file. Source: containers/image pkg/sysregistriesv2 (main). */
const registriesConf: GoStruct = {
  struct: {
    registry: {
      list: {
        struct: {
          prefix: "string",
          ...endpoint,
          blocked: "bool",
          mirror: { list: { struct: endpoint } },
          "mirror-by-digest-only": "bool",
        },
      },
    },
    "unqualified-search-registries": strings,
    "credential-helpers": strings,
    "short-name-mode": "string",
    "additional-layer-store-auth-helper": "string",
    aliases: { map: "string" },
  },
};

export interface RegistryEndpoint {
  readonly location: string;
  insecure: boolean;
  readonly "pull-from-mirror": string;
}

export interface Registry {
  readonly prefix: string;
  readonly location: string;
  insecure: boolean;
  blocked: boolean;
  mirror: RegistryEndpoint[];
  readonly "mirror-by-digest-only": boolean;
  readonly "pull-from-mirror": string;
}

export interface RegistryLists {
  readonly mirrors: readonly MergedMirrors[];
  readonly blocked: readonly string[];
  readonly insecure: readonly string[];
}

export type RegistriesReading =
  | { readonly verdict: "read"; readonly registries: readonly Registry[]; readonly others: Decoded }
  | { readonly verdict: "refused"; readonly reason: string };

/** Reads the template's registries.conf; an empty one enforces short names, as the reference's own. */
export const readRegistries = readOnce((text: string): RegistriesReading => {
  if (text === oversizedText) return { verdict: "refused", reason: `the base registries.conf ${oversizedReason}` };
  let parsed: unknown;
  try {
    parsed = text === "" ? { "short-name-mode": "enforcing" } : parse(text);
  } catch (error) {
    return { verdict: "refused", reason: `the base registries.conf is no TOML: ${String(error)}` };
  }
  const { value, problems } = decodeGo(parsed, registriesConf);
  const [first] = problems;
  if (first !== undefined)
    return { verdict: "refused", reason: `the base registries.conf is wrong: ${first.path} ${first.reason}` };
  const { registry = [], ...others } = value;
  return { verdict: "read", registries: (registry as readonly Partial<Registry>[]).map(completed), others };
});

const completedEndpoint = (one: Partial<RegistryEndpoint>): RegistryEndpoint => ({
  location: one.location ?? "",
  insecure: one.insecure ?? false,
  "pull-from-mirror": one["pull-from-mirror"] ?? "",
});
const completed = (one: Partial<Registry>): Registry => ({
  ...completedEndpoint(one),
  prefix: one.prefix ?? "",
  blocked: one.blocked ?? false,
  mirror: (one.mirror ?? []).map(completedEndpoint),
  "mirror-by-digest-only": one["mirror-by-digest-only"] ?? false,
});

/** Where the images come from that an entry is for. */
export const scopeOf = ({ prefix, location }: Pick<Registry, "prefix" | "location">): string =>
  prefix === "" ? location : prefix;

/**
 * The entries of a registries.conf with mirrors, blocked and insecure registries. Source of the rules:
 * openshift/runtime-utils pkg/registries (main).
 */
export function withLists(
  base: readonly Registry[],
  { mirrors, blocked, insecure }: RegistryLists,
): readonly Registry[] {
  const entries = base.map((one) => ({ ...one, mirror: one.mirror.map((mirror) => ({ ...mirror })) }));
  const known = firstByScope(entries);
  const entryOf = (scope: string): Registry => {
    const there = known.get(scope);
    if (there !== undefined) return there;
    const added = completed(scope.startsWith("*.") ? { prefix: scope } : { location: scope });
    entries.push(added);
    known.set(scope, added);
    return added;
  };
  for (const { of, source, mirrors: own, neverContactsSource } of mirrors) {
    const entry = entryOf(source);
    if (neverContactsSource) entry.blocked = true;
    const only = of === "digest" ? "digest-only" : "tag-only";
    pushAll(
      entry.mirror,
      own.map((location) => completedEndpoint({ location, "pull-from-mirror": only })),
    );
  }
  for (const scope of blocked) entryOf(scope);
  for (const scope of insecure) entryOf(scope);
  inheritMirrors(entries, new Set(mirrors.map(({ source }) => source)));
  const [insecureAround, blockedAround] = [outerScopes(insecure), outerScopes(blocked)];
  for (const entry of entries) {
    const scope = scopeOf(entry);
    entry.insecure ||= insecureAround(scope).length > 0;
    entry.blocked ||= blockedAround(scope).length > 0;
    for (const mirror of entry.mirror) mirror.insecure ||= insecureAround(mirror.location).length > 0;
  }
  return entries;
}

/** Of several entries for one scope the first counts. */
function firstByScope(entries: readonly Registry[]): Map<string, Registry> {
  const found = new Map<string, Registry>();
  for (const one of entries) if (!found.has(scopeOf(one))) found.set(scopeOf(one), one);
  return found;
}

/** Without mirrors of its own, an entry would hide those of the source that it is a part of. */
function inheritMirrors(entries: readonly Registry[], sources: ReadonlySet<string>): void {
  const parents = firstByScope(entries.filter((one) => sources.has(scopeOf(one))));
  const around = outerScopes(parents.keys());
  for (const entry of entries) {
    if (entry.mirror.length > 0) continue;
    const scope = scopeOf(entry);
    const parent = around(scope)
      .flatMap((outer) => parents.get(outer) ?? [])
      .find((one) => one !== entry);
    if (parent === undefined) continue;
    const rest = scope.slice(scopeOf(parent).length);
    entry.mirror = parent.mirror.map((mirror) => ({
      ...mirror,
      location: scopeOf(parent).startsWith("*.") ? mirror.location : `${mirror.location}${rest}`,
    }));
  }
}

/** The text of a registries.conf; what is empty or false is left out. */
export function registriesText(registries: readonly Registry[], others: Decoded): string {
  return stringify({
    ...others,
    ...(registries.length === 0
      ? {}
      : { registry: registries.map((one) => shortened({ ...one, mirror: one.mirror.map(shortened) })) }),
  });
}

const shortened = (one: object): Decoded =>
  Object.fromEntries(
    Object.entries(one).filter(
      ([, value]) => value !== "" && value !== false && !(Array.isArray(value) && value.length === 0),
    ),
  );
