import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";

/** One target in a pool's annotation, as this suite writes it. What people write there has no `nodes`. */
interface Quarantined {
  readonly config: string;
  /** Absent: the one that the configuration names. */
  readonly image?: string;
  readonly reason: string;
  /** RFC 3339, of the first machine. */
  readonly at: string;
  /** Machines that went back from it. */
  readonly nodes: readonly string[];
}

export interface QuarantineStep {
  /** What the pool's annotation should be: a text, `null` to remove it, `undefined` to leave it. */
  readonly annotation: string | null | undefined;
  /** Machines whose refusal the pool now knows: node → time of the refusal, to be noted on their MachineConfigNodes. */
  readonly tell: ReadonlyMap<string, string>;
  /** Machines that should forget their refusal, because somebody has taken the quarantine away. */
  readonly remedy: readonly string[];
}

/**
 * What follows for a pool from targets that its machines went back from. A refusal that the pool does not know yet
 * quarantines the target; one that it knew, and that its annotation does not name any more, was lifted by somebody. A
 * new target ends what machines said of older ones.
 */
export function quarantineStep(
  target: string,
  image: string,
  pool: Pick<MachineConfigPool, "metadata">,
  machines: readonly Pick<MachineConfigNode, "metadata">[],
): QuarantineStep {
  const refusals = machines.flatMap(({ metadata }) =>
    listOf(metadata.annotations?.[annotations.refusedTargets])
      .filter((entry) => isTarget(entry, target, image))
      .map(({ reason, at }) => ({
        node: metadata.name,
        reason: textOf(reason),
        at: textOf(at),
        told: metadata.annotations?.[annotations.quarantineTold] === textOf(at),
      })),
  );
  const entries = listOf(pool.metadata.annotations?.[annotations.quarantined]);
  const named = entries.find((entry) => isTarget(entry, target, image));
  const others = entries.filter((entry) => !isTarget(entry, target, image) && !Array.isArray(entry["nodes"]));
  const untold = refusals.filter(({ told }) => !told);
  const written = (list: readonly object[]) => (list.length === 0 ? null : JSON.stringify(list));
  const unlessSame = (annotation: string | null) =>
    annotation === (pool.metadata.annotations?.[annotations.quarantined] ?? null) ? undefined : annotation;

  const [first] = untold;
  if (first !== undefined) {
    const known = Array.isArray(named?.["nodes"]) ? named["nodes"].filter((node) => typeof node === "string") : [];
    const entry: Quarantined = {
      config: target,
      ...(image === "" ? {} : { image }),
      reason: named === undefined ? first.reason : textOf(named["reason"]),
      at: named === undefined ? first.at : textOf(named["at"]),
      nodes: [...new Set([...known, ...untold.map(({ node }) => node)])].sort(),
    };
    return {
      annotation: unlessSame(written([...others, entry])),
      tell: new Map(untold.map(({ node, at }) => [node, at])),
      remedy: [],
    };
  }
  const isStale = (entry: Entry) =>
    Array.isArray(entry["nodes"]) && (!isTarget(entry, target, image) || refusals.length === 0);
  const annotation = entries.some(isStale) ? written(entries.filter((entry) => !isStale(entry))) : undefined;
  return { annotation, tell: new Map(), remedy: named === undefined ? refusals.map(({ node }) => node) : [] };
}

type Entry = Readonly<Record<string, unknown>> & { readonly config: string };

/** Entries of a JSON list: objects that name a config, or names alone. What cannot be read is no entry. */
function listOf(text: string | undefined): readonly Entry[] {
  if (text === undefined || text === "") return [];
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return [];
    return list.flatMap((entry: unknown): Entry[] => {
      if (typeof entry === "string") return [{ config: entry }];
      const config: unknown =
        typeof entry === "object" && entry !== null && "config" in entry ? entry.config : undefined;
      return typeof config === "string" ? [{ ...(entry as object), config }] : [];
    });
  } catch {
    return [];
  }
}

/**
 * Targets that a pool's `quarantined` annotation names: a JSON list of `{config}` objects or of names. What cannot be
 * read quarantines nothing.
 */
export const quarantinedTargets = (pool: Pick<MachineConfigPool, "metadata">): readonly string[] =>
  listOf(pool.metadata.annotations?.[annotations.quarantined]).map(({ config }) => config);

/** Whether that annotation names a target, image and all. @param image empty: the stock OS. */
export const isQuarantined = (pool: Pick<MachineConfigPool, "metadata">, config: string, image: string): boolean =>
  listOf(pool.metadata.annotations?.[annotations.quarantined]).some((entry) => isTarget(entry, config, image));

/** An entry without an image speaks of all of them; with the stock OS it names what the configuration names. */
const isTarget = (entry: Entry, config: string, image: string) =>
  entry.config === config && (image === "" || ["", image].includes(textOf(entry["image"])));

/** Targets that the machine of a MachineConfigNode went back from. */
export const refusedTargetsOf = ({ metadata }: Pick<MachineConfigNode, "metadata">): readonly string[] =>
  listOf(metadata.annotations?.[annotations.refusedTargets]).map(({ config }) => config);

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
