import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { labels } from "../../api/names.ts";
import { fileText } from "./config-file.ts";
import { mostTextCharacters } from "../../ignition/held-contents.ts";

/** Parts of a role's base configuration that generated files are laid over. */
export type BasePart = "files" | "kubelet" | "container-runtime";

const parts = ["files", "kubelet", "container-runtime"] as const satisfies readonly BasePart[];

/** The name of a part of a role's base configuration. */
export const baseConfigName = (part: BasePart, role: string): string =>
  part === "files" ? `00-${role}` : `01-${role}-${part}`;

/** The names of all parts of a role's base configuration. */
export const baseConfigNames = (role: string): readonly string[] => parts.map((part) => baseConfigName(part, role));

/** The part that a MachineConfig of a name is; `undefined`: it is none of them. */
export function basePartOf(name: string): BasePart | undefined {
  const part = /^01-.+-(kubelet|container-runtime)$/.exec(name)?.[1];
  return part === undefined ? (/^00-./.test(name) ? "files" : undefined) : (part as BasePart);
}

/** The parts of a base configuration that count: its role, and what it brings. */
export const baseContents = (config: MachineConfig | undefined): readonly unknown[] => [
  config?.spec,
  config?.metadata.labels?.[labels.role],
];

/**
 * A part of the base configuration that a pool's machines begin with: the pool's own, else that of `worker`, whichever
 * generator made it. The pool's own has the pool's name as its role: a name alone gives an author whom a policy holds to
 * the role of another pool no machine of this one. The names of `worker` are the controller's alone.
 *
 * @param configOf a MachineConfig by its name.
 * @returns `undefined`: neither is there.
 */
export function baseConfigOf(
  part: BasePart,
  pool: string,
  configOf: (name: string) => MachineConfig | undefined,
): MachineConfig | undefined {
  const own = configOf(baseConfigName(part, pool));
  return own?.metadata.labels?.[labels.role] === pool ? own : configOf(baseConfigName(part, "worker"));
}

/** The text of a file in the first of these parts that holds it; `undefined`: none does. */
export function baseFileText(
  path: string,
  pool: string,
  configOf: (name: string) => MachineConfig | undefined,
  parts: readonly BasePart[] = ["container-runtime", "files"],
): string | undefined {
  for (const part of parts) {
    const text = fileText(baseConfigOf(part, pool, configOf), path, mostTextCharacters);
    if (text !== undefined) return text;
  }
  return undefined;
}
