import { parseGoDuration, second } from "./go-duration.ts";
import type { Decoded } from "./decode-go.ts";
import { featureGates } from "./feature-gates.ts";

/** What a configuration says, with the kubelet's defaults in place of what it leaves out. */
export interface KubeletSettings {
  /** @param otherwise where the field is absent. */
  number(path: string, otherwise: number): number;
  /** @param otherwise where the field is absent or 0: such fields are no pointers in the kubelet. */
  numberOrDefault(path: string, otherwise: number): number;
  flag(path: string, otherwise: boolean): boolean;
  /** @param otherwise where the field is absent or empty. */
  text(path: string, otherwise?: string): string;
  /** In nanoseconds. */
  duration(path: string): bigint;
  list<T>(path: string): readonly T[] | undefined;
  map(path: string): Readonly<Record<string, string>>;
  isSet(path: string): boolean;
  /** Whether a feature gate is on. */
  isOn(gate: string): boolean;
}

export function kubeletSettings(decoded: Decoded): KubeletSettings {
  const at = (path: string): unknown =>
    path
      .split(".")
      .reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>> | undefined)?.[name], decoded);
  const gates = gatesIn((at("featureGates") ?? {}) as Readonly<Record<string, boolean>>);
  return {
    number: (path, otherwise) => (at(path) as number | undefined) ?? otherwise,
    numberOrDefault: (path, otherwise) => (at(path) as number | undefined) || otherwise,
    flag: (path, otherwise) => (at(path) as boolean | undefined) ?? otherwise,
    text: (path, otherwise = "") => (at(path) as string | undefined) || otherwise,
    duration: (path) => parseGoDuration((at(path) as string | undefined) ?? "0s") ?? 0n,
    list: <T>(path: string) => at(path) as readonly T[] | undefined,
    map: (path) => (at(path) ?? {}) as Readonly<Record<string, string>>,
    isSet: (path) => at(path) !== undefined,
    isOn: (gate) => gates.has(gate),
  };
}

const known: ReadonlySet<string> = new Set<string>([...featureGates.on, ...featureGates.off]);
const isOnByDefault: ReadonlySet<string> = new Set<string>(featureGates.on);
const locked: ReadonlySet<string> = new Set<string>(featureGates.locked);

export type GateProblem = "unknown" | "locked on" | "locked off";

/** Why a kubelet would not start with a feature gate set to a value; `undefined`: it would. */
export function gateProblem(name: string, isOn: boolean): GateProblem | undefined {
  if (!known.has(name)) return "unknown";
  if (!locked.has(name) || isOnByDefault.has(name) === isOn) return undefined;
  return isOnByDefault.has(name) ? "locked on" : "locked off";
}

/** The gates that are on. `AllAlpha` and `AllBeta` set what is not set by its own name. */
function gatesIn(set: Readonly<Record<string, boolean>>): ReadonlySet<string> {
  const isOn = new Map<string, boolean>([...known].map((name) => [name, isOnByDefault.has(name)]));
  if (set["AllAlpha"] !== undefined) for (const name of featureGates.alpha) isOn.set(name, set["AllAlpha"]);
  if (set["AllBeta"] !== undefined) for (const name of featureGates.beta) isOn.set(name, set["AllBeta"]);
  for (const [name, value] of Object.entries(set)) isOn.set(name, value);
  return new Set([...isOn].flatMap(([name, value]) => (value ? [name] : [])));
}

/** `1m30s` for a text of a message. */
export const seconds = (nanoseconds: bigint): string => `${Number(nanoseconds) / Number(second)} s`;
