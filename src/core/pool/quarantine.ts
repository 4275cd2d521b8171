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
  /** Machines that rolled back from it: two at least, or the only one of its pool. */
  readonly nodes: readonly string[];
}

export interface QuarantineStep {
  /** The new annotation of the pool: a text, `null` to remove it, `undefined` to leave it. */
  readonly annotation: string | null | undefined;
  /**
   * Unrecorded refusals that exclude their own machine: node → record for its MachineConfigNode. Write them before the
   * pool's annotation: a quarantine that turns into an exclusion is not lifted.
   */
  readonly excluded: ReadonlyMap<string, string>;
  /** Refusals that the quarantine of the pool has just recorded: node → record for its MachineConfigNode. */
  readonly quarantined: ReadonlyMap<string, string>;
  /** Every machine whose refusal the quarantine rests on, sorted; empty without a quarantine. */
  readonly witnesses: readonly string[];
  /** Machines whose refusal is to be cleared, because an administrator removed the quarantine from the annotation. */
  readonly remedy: readonly string[];
}

/** A target that the machine of a MachineConfigNode rolled back from. */
export interface MachineRefusal {
  readonly config: string;
  /** Empty: the stock OS. */
  readonly image: string;
  readonly reason: string;
}

/** How many different machines must refuse a target before no other machine of their pool gets it. */
const enoughWitnesses = 2;

/** Before the time of a refusal that its own machine alone was excluded for. */
const excludedMark = "excluded ";

/**
 * The consequences for a pool of targets that its machines rolled back from.
 *
 * Any machine writes its own refusals, so a refusal excludes its own machine only. Refusals of two different machines,
 * or of the only machine of a pool, quarantine the target for the pool. A quarantine lasts until the next target, until
 * its last refusal is gone, or until an administrator removes it from the annotation.
 *
 * @param members how many machines the pool has.
 */
export function quarantineStep(
  target: string,
  image: string,
  pool: Pick<MachineConfigPool, "metadata"> & { readonly members: number },
  machines: readonly Pick<MachineConfigNode, "metadata">[],
): QuarantineStep {
  const before = pool.metadata.annotations?.[annotations.quarantined] ?? null;
  const entries = listOf(before ?? undefined);
  const named = entries.find((entry) => isTarget(entry, target, image));
  const refusals = refusalsOf(target, image, machines);
  const lifted = named === undefined ? refusals.filter(({ recorded }) => recorded === "quarantined") : [];
  const standing = refusals.filter((refusal) => !lifted.includes(refusal));
  const witnesses = [...new Set([...nodesOf(named), ...standing.map(({ node }) => node)])].sort();
  const isQuarantine = standing.length > 0 && (witnesses.length >= enoughWitnesses || pool.members <= 1);
  const as = isQuarantine ? "quarantined" : "excluded";
  const unrecorded = standing.filter(({ recorded }) => recorded !== as);
  const records = new Map(unrecorded.map(({ node, at }) => [node, isQuarantine ? at : `${excludedMark}${at}`]));

  const [first] = unrecorded;
  const kept = entries.filter((entry) => !isOurs(entry) || (isQuarantine && isTarget(entry, target, image)));
  const entry: Quarantined | undefined =
    isQuarantine && first !== undefined
      ? {
          config: target,
          ...(image === "" ? {} : { image }),
          reason: named === undefined ? first.reason : textOf(named["reason"]),
          at: named === undefined ? first.at : textOf(named["at"]),
          nodes: witnesses,
        }
      : undefined;
  const list = entry === undefined ? kept : [...kept.filter((each) => !isTarget(each, target, image)), entry];
  const isSame = entry === undefined && kept.length === entries.length;
  const annotation = list.length === 0 ? null : JSON.stringify(list);
  return {
    annotation: isSame || annotation === before ? undefined : annotation,
    excluded: isQuarantine ? new Map() : records,
    quarantined: isQuarantine ? records : new Map(),
    witnesses: isQuarantine ? witnesses : [],
    remedy: lifted.map(({ node }) => node),
  };
}

/** The machines that refuse a target, and what the controller has recorded of each refusal. */
const refusalsOf = (target: string, image: string, machines: readonly Pick<MachineConfigNode, "metadata">[]) =>
  machines.flatMap(({ metadata }) => {
    const entry = refusedIn({ metadata }).find((each) => isTarget(each, target, image));
    if (entry === undefined) return [];
    const at = shortText(entry["at"]);
    const record = metadata.annotations?.[annotations.quarantineReported];
    const recorded = record === at ? "quarantined" : record === `${excludedMark}${at}` ? "excluded" : "no";
    return [{ node: metadata.name, reason: shortText(entry["reason"]), at, recorded } as const];
  });

type Entry = Readonly<Record<string, unknown>> & { readonly config: string };

/** More than a daemon keeps: what root on a machine writes beside them would only keep the controllers busy. */
const mostRefused = 16;
/** No object has a longer name. */
const longestName = 253;
const noEntries: readonly Entry[] = [];
const refusedLists = new WeakMap<object, readonly Entry[]>();

/**
 * Targets that a machine says it rolled back from: the last of its list, which are the newest. Read once for each state of
 * the object, which many decisions ask.
 */
function refusedIn({ metadata }: Pick<MachineConfigNode, "metadata">): readonly Entry[] {
  const said = metadata.annotations;
  if (said?.[annotations.refusedTargets] === undefined) return noEntries;
  const known = refusedLists.get(said);
  if (known !== undefined) return known;
  const read = listOf(said[annotations.refusedTargets], mostRefused).filter(
    ({ config }) => config.length <= longestName,
  );
  refusedLists.set(said, read);
  return read;
}

/** Entries of a JSON list: objects that name a config, or plain names. Unreadable entries are ignored. */
function listOf(text: string | undefined, most?: number): readonly Entry[] {
  if (text === undefined || text === "") return [];
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return [];
    return (most === undefined ? list : list.slice(-most)).flatMap((entry: unknown): Entry[] => {
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
export const refusedTargetsOf = ({ metadata }: Pick<MachineConfigNode, "metadata">): readonly MachineRefusal[] =>
  refusedIn({ metadata }).map((entry) => ({
    config: entry.config,
    image: textOf(entry["image"]),
    reason: shortText(entry["reason"]),
  }));

/** What a machine says of its refusal of a target; `undefined`: it did not refuse it. */
export const refusalIn = (
  refused: readonly MachineRefusal[],
  config: string,
  image: string,
): MachineRefusal | undefined => refused.find((refusal) => isTarget({ ...refusal }, config, image));

/** This suite wrote it: people name no machines. */
const isOurs = (entry: Entry) => Array.isArray(entry["nodes"]);

const nodesOf = (entry: Entry | undefined): readonly string[] =>
  Array.isArray(entry?.["nodes"]) ? entry["nodes"].filter((node) => typeof node === "string") : [];

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** A machine's words go into annotations and events of its pool. */
const shortText = (value: unknown): string => textOf(value).slice(0, 500);
