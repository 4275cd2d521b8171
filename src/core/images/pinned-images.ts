import type { PinAnswer, PinGrant, PinnedSetVersion } from "./pin-grant.ts";
import { clipText } from "../text/clip-text.ts";
import { shortList } from "../text/list-text.ts";

/** A set whose images all lie on the machine. */
export interface PinnedSet extends PinnedSetVersion {
  readonly images: readonly string[];
}

/** What the daemon keeps on the disk: which sets the machine has, and whether the engine has yet to read the list. */
export interface PinRecord {
  readonly sets: readonly PinnedSet[];
  /** The list was changed, or is about to be, and the engine may not have read it. */
  readonly reloadOwed: boolean;
}

export const emptyPinRecord: PinRecord = { sets: [], reloadOwed: false };
const recordVersion = 1;

/** A record that cannot be read counts as none: the images are looked for again, and the list is written again. */
export function parsePinRecord(text: string | undefined): PinRecord {
  if (text === undefined) return emptyPinRecord;
  try {
    const { v, sets, reloadOwed } = JSON.parse(text) as Partial<PinRecord> & { readonly v?: unknown };
    const isSet = (set: Partial<PinnedSet>) =>
      typeof set.name === "string" &&
      typeof set.uid === "string" &&
      typeof set.generation === "number" &&
      Array.isArray(set.images) &&
      set.images.every((image) => typeof image === "string");
    return v === recordVersion && Array.isArray(sets) && sets.every(isSet)
      ? { sets, reloadOwed: reloadOwed === true }
      : { sets: [], reloadOwed: true };
  } catch {
    return { sets: [], reloadOwed: true };
  }
}

export const pinRecordText = (record: PinRecord): string => JSON.stringify({ v: recordVersion, ...record });

/** Every image of some sets, once, sorted. */
export const imagesOf = (sets: readonly Pick<PinnedSet, "images">[]): readonly string[] =>
  [...new Set(sets.flatMap(({ images }) => images))].sort();

/**
 * The engine's list of images that the kubelet may not remove (crio.conf.d(5), `pinned_images`); `undefined`: no image is
 * pinned, and the file goes. A name is no pattern there unless it has an asterisk, which names of images have not.
 */
export function pinDropIn(images: readonly string[]): string | undefined {
  if (images.length === 0) return undefined;
  const lines = images.map((image) => `  ${JSON.stringify(image)},`);
  return [
    "# Written by machine-config-daemon: the PinnedImageSets of this machine's pool.",
    "[crio.image]",
    "pinned_images = [",
    ...lines,
    "]",
    "",
  ].join("\n");
}

/** Compressed layers are on the disk beside what is unpacked from them until the pull is over. */
const unpackedFactor = 2;

export type PinForecast =
  | { readonly verdict: "fits"; readonly fetchBytes: number; readonly needBytes: number }
  | { readonly verdict: "short"; readonly fetchBytes: number; readonly needBytes: number; readonly freeBytes: number };

/**
 * Whether images that are not there yet fit on the disk. A layer that several have is fetched once; with nothing to fetch,
 * the reserve is the kubelet's concern.
 *
 * @param layers of all missing images. @param space `undefined`: not known, so that the pull itself shows it.
 */
export function forecastPins(
  layers: readonly { readonly digest: string; readonly sizeBytes: number }[],
  space: { readonly freeBytes: number; readonly reserveBytes: number } | undefined,
): PinForecast {
  const sizes = new Map(layers.map(({ digest, sizeBytes }) => [digest, sizeBytes]));
  const fetchBytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const needBytes = fetchBytes === 0 ? 0 : fetchBytes * unpackedFactor + (space?.reserveBytes ?? 0);
  return space === undefined || needBytes <= space.freeBytes
    ? { verdict: "fits", fetchBytes, needBytes }
    : { verdict: "short", fetchBytes, needBytes, freeBytes: space.freeBytes };
}

/** What the daemon sees before it does anything about pinned images. */
export interface PinView {
  readonly grant: PinGrant | undefined;
  readonly answer: PinAnswer | undefined;
  readonly record: PinRecord;
  /** The engine's list on the disk is that of the record. */
  readonly listed: boolean;
  /** An update is under way, or another reason to leave the machine alone. */
  readonly busy: boolean;
  /** Images of the record that are not on the machine any more. */
  readonly lost: readonly string[];
}

export type PinPlan =
  | { readonly case: "nothing" }
  /** The list of the engine is to be that of these sets; no registry is asked. */
  | { readonly case: "keep"; readonly sets: readonly PinnedSet[]; readonly answer: PinAnswer | undefined }
  /** Not now: the turn is given back. */
  | { readonly case: "postpone"; readonly answer: PinAnswer }
  | { readonly case: "fetch"; readonly grant: PinGrant };

/**
 * What a machine does about its pinned images. A set leaves the list as soon as the machine is not to have it; a set that
 * changes keeps its old images on the list until the new ones are there. Nothing here drains, reboots or removes an
 * image: those that leave the list are the kubelet's to collect.
 */
export function decidePins({ grant, answer, record, listed, busy, lost }: PinView): PinPlan {
  const names = new Set(grant?.sets.map(({ name }) => name));
  const kept = record.sets.filter(({ name }) => names.has(name));
  const isKept = kept.length === record.sets.length && listed && !record.reloadOwed;
  const keep = (said: PinAnswer | undefined): PinPlan =>
    isKept && said === undefined ? { case: "nothing" } : { case: "keep", sets: kept, answer: said };
  if (grant === undefined) return keep(undefined);
  const answered = answer?.of === grant.number ? answer.is : undefined;
  if (answered === "done" && lost.length > 0)
    return { case: "postpone", answer: { of: grant.number, is: "unfinished" } };
  if (answered !== undefined) return keep(undefined);
  const isWhole = lost.length === 0 && grant.sets.every((set) => kept.some((one) => isVersion(one, set)));
  if (isWhole) return { case: "keep", sets: kept, answer: { of: grant.number, is: "done" } };
  return busy ? { case: "postpone", answer: { of: grant.number, is: "unfinished" } } : { case: "fetch", grant };
}

export const isVersion = (one: PinnedSetVersion, other: PinnedSetVersion): boolean =>
  one.name === other.name && one.uid === other.uid && one.generation === other.generation;

/** Why one image of a set is not on the machine. */
export interface PinFailure {
  readonly set: string;
  /** Position in `spec.pinnedImages`. */
  readonly index: number;
  readonly image: string;
  readonly code: string;
  readonly problem: string;
}

export const pinFieldOf = (index: number): string => `spec.pinnedImages[${index}].name`;

const shownFailures = 5;
const problemLimit = 400;

/** What a set lacks, as its status says it. */
export const pinFailureText = (failures: readonly PinFailure[]): string =>
  shortList(
    failures,
    shownFailures,
    ({ index, image, code, problem }) => `${pinFieldOf(index)}: ${image}: ${code}: ${clipText(problem, problemLimit)}`,
  ).join("; ");

/** The answer to a grant. */
export const pinAnswerOf = (grant: PinGrant, failures: readonly PinFailure[]): PinAnswer => {
  const [first] = failures;
  return first === undefined
    ? { of: grant.number, is: "done" }
    : {
        of: grant.number,
        is: "failed",
        set: first.set,
        field: pinFieldOf(first.index),
        code: first.code,
        problem: clipText(`${first.image}: ${first.problem}`, 300),
      };
};
