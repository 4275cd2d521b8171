import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";

/** One target in a pool's annotation, as this suite writes it. Entries that people write have no `nodes`. */
interface Quarantined {
  readonly config: string;
  /** Absent: the image that the configuration names. */
  readonly image?: string;
  readonly reason: string;
  /** RFC 3339: the first roll-back. */
  readonly at: string;
  /** Machines that rolled back from it. */
  readonly nodes: readonly string[];
}

export interface QuarantineStep {
  /** The new annotation of the pool: a text, `null` to remove it, `undefined` to leave it. */
  readonly annotation: string | null | undefined;
  /** Refusals that the pool has just recorded: node → time of the refusal, to be noted on the MachineConfigNode. */
  readonly tell: ReadonlyMap<string, string>;
  /** Machines whose refusal is to be cleared, because the quarantine was removed from the annotation. */
  readonly remedy: readonly string[];
}

/**
 * The consequences for a pool of targets that its machines rolled back from. A refusal that the pool has not recorded
 * quarantines the target. A recorded refusal that the annotation no longer names was lifted by an administrator. A new
 * target clears the refusals of older ones.
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
  const unreported = refusals.filter(({ told }) => !told);
  const written = (list: readonly object[]) => (list.length === 0 ? null : JSON.stringify(list));
  const unlessSame = (annotation: string | null) =>
    annotation === (pool.metadata.annotations?.[annotations.quarantined] ?? null) ? undefined : annotation;

  const [first] = unreported;
  if (first !== undefined) {
    const known = Array.isArray(named?.["nodes"]) ? named["nodes"].filter((node) => typeof node === "string") : [];
    const entry: Quarantined = {
      config: target,
      ...(image === "" ? {} : { image }),
      reason: named === undefined ? first.reason : textOf(named["reason"]),
      at: named === undefined ? first.at : textOf(named["at"]),
      nodes: [...new Set([...known, ...unreported.map(({ node }) => node)])].sort(),
    };
    return {
      annotation: unlessSame(written([...others, entry])),
      tell: new Map(unreported.map(({ node, at }) => [node, at])),
      remedy: [],
    };
  }
  const isStale = (entry: Entry) =>
    Array.isArray(entry["nodes"]) && (!isTarget(entry, target, image) || refusals.length === 0);
  const annotation = entries.some(isStale) ? written(entries.filter((entry) => !isStale(entry))) : undefined;
  return { annotation, tell: new Map(), remedy: named === undefined ? refusals.map(({ node }) => node) : [] };
}

type Entry = Readonly<Record<string, unknown>> & { readonly config: string };

/** Entries of a JSON list: objects that name a config, or plain names. Unreadable entries are ignored. */
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
 * Targets in a pool's `quarantined` annotation: a JSON list of `{config}` objects or of names. An unreadable annotation
 * quarantines nothing.
 */
export const quarantinedTargets = (pool: Pick<MachineConfigPool, "metadata">): readonly string[] =>
  listOf(pool.metadata.annotations?.[annotations.quarantined]).map(({ config }) => config);

/** Whether that annotation names a target, image and all. @param image empty: the stock OS. */
export const isQuarantined = (pool: Pick<MachineConfigPool, "metadata">, config: string, image: string): boolean =>
  listOf(pool.metadata.annotations?.[annotations.quarantined]).some((entry) => isTarget(entry, config, image));

/** An entry without an image applies to every image; on the stock OS it applies to the image of the configuration. */
const isTarget = (entry: Entry, config: string, image: string) =>
  entry.config === config && (image === "" || ["", image].includes(textOf(entry["image"])));

/** Targets that the machine of a MachineConfigNode rolled back from. */
export const refusedTargetsOf = ({ metadata }: Pick<MachineConfigNode, "metadata">): readonly string[] =>
  listOf(metadata.annotations?.[annotations.refusedTargets]).map(({ config }) => config);

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
