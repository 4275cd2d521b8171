import type { EffectivePolicies, PolicyAction } from "../../src/core/config/disruption-policy.ts";
import type { NodeConfig, WantedEntry } from "../../src/core/config/node-config.ts";
import type { Ledger } from "../../src/core/machine/observed-node.ts";

/**
 * Whether pods must leave before a machine goes from one configuration to another. This is the suite's own
 * implementation of the rules: it shares no code with the planner that it judges, and knows only the contents of this
 * suite's scenarios.
 */
export function needsDrain(from: NodeConfig, to: NodeConfig, policies: EffectivePolicies): boolean {
  return (
    // An empty image means no image.
    (to.osImage !== "" && from.osImage !== to.osImage) ||
    bootOf(from) !== bootOf(to) ||
    differing(from.passwords, to.passwords).some(() => disrupts(policies.sshkey.actions, "keys", from, to)) ||
    differing(from.entries, to.entries).some((path) => pathDisrupts(path, from, to, policies)) ||
    differing(from.enablement, to.enablement).some((unit) => unitDisrupts(unit, from, to, policies))
  );
}

/** Whether what a ledger owes the machine cannot be done while pods run. */
export const owesDrain = ({ owes }: Ledger): boolean => owes.some(({ kind }) => kind === "reboot" || kind === "drain");

/** Everything else of a configuration that takes effect at boot. */
function bootOf({ kernelArguments, kernelType, extensions, fips }: NodeConfig): string {
  return JSON.stringify({
    kernelType,
    fips,
    words: [...kernelArguments].sort(),
    extensions: [...extensions].sort(),
  });
}

/** Keys whose values differ. */
function differing<Value>(a: ReadonlyMap<string, Value>, b: ReadonlyMap<string, Value>): readonly string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter((key) => textOf(a.get(key)) !== textOf(b.get(key)));
}

/** A value as text: the [Install] section counts as part of a unit's text, and bytes are compared by their digest. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (key, part: unknown) => (key === "installable" || key === "contents" ? undefined : part)) ??
  "absent";

function pathDisrupts(path: string, from: NodeConfig, to: NodeConfig, policies: EffectivePolicies): boolean {
  const entry = to.entries.get(path) ?? from.entries.get(path);
  switch (entry?.origin.kind) {
    case "unit":
      return unitDisrupts(entry.origin.name, from, to, policies);
    case "sshKeys":
      return disrupts(policies.sshkey.actions, path, from, to);
    default: {
      const [closest] = policies.files
        .filter((policy) => path === policy.path || path.startsWith(`${policy.path.replace(/\/$/, "")}/`))
        .sort((a, b) => b.path.length - a.path.length);
      return disrupts(closest?.actions, path, from, to);
    }
  }
}

const unitDisrupts = (unit: string, from: NodeConfig, to: NodeConfig, policies: EffectivePolicies): boolean =>
  disrupts(policies.units.find(({ name }) => name === unit)?.actions, unit, from, to);

/** A change without a policy reboots the machine. */
function disrupts(
  actions: readonly PolicyAction[] | undefined,
  what: string,
  from: NodeConfig,
  to: NodeConfig,
): boolean {
  if (actions === undefined) return true;
  return actions.some(
    ({ type }) =>
      type === "Reboot" ||
      type === "Drain" ||
      (type === "Special" && imagesMayChange(registriesAt(what, from), registriesAt(what, to))),
  );
}

/** Registries of a registries.conf by their prefix; the scenarios name nothing else. */
function registriesAt(path: string, config: NodeConfig): ReadonlyMap<string, string> {
  const entry: WantedEntry | undefined = config.entries.get(path);
  const text = entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : "";
  // The suite's canary comments the first line out.
  const tables = text
    .replace(/^#.*\n/gm, "")
    .split("[[registry]]\n")
    .slice(1);
  if (tables.some((table) => table.includes("[") || table.includes("unqualified")))
    throw new Error(`bug: this suite does not read such a registries.conf: ${text}`);
  return new Map(tables.map((table) => [/^prefix = "(.*)"$/m.exec(table)?.[1] ?? "", table]));
}

/** A registry that is removed or changed, or a new one that tags may name, changes the meaning of image names. */
const imagesMayChange = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): boolean =>
  [...before].some(([name, table]) => after.get(name) !== table) ||
  [...after].some(([name, table]) => !before.has(name) && !table.includes("mirror-by-digest-only = true"));
