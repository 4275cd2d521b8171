import type { NodeBinding } from "../../api/kinds/node-binding.ts";

/** Before the name of a node, the key of an entry that refuses all its requests. Other keys are certificates. */
export const refusedNodePrefix = "node.";

/** Characters of all entries; the API server stores them twice, and 1.5 MiB of an object at most. */
export const mostRefusedCharacters = 400_000;

/** Length of a key of a ConfigMap (k8s.io/apimachinery pkg/util/validation, IsConfigMapKey). */
const longestKey = 253;

/** The nodes and certificates whose requests for certificates are refused. */
export interface RefusedCertificates {
  /** `node.NAME` or the SHA-256 of a certificate, in hexadecimal digits → the end of its entry. */
  readonly entries: Readonly<Record<string, string>>;
  /** When the first entry ends, in milliseconds since the epoch. */
  readonly until: number | undefined;
}

/**
 * Collects what the API server is to refuse: requests of nodes that an administrator released, and those that are sent with a
 * certificate of a former machine of the name. A certificate that has ended needs no entry. Where there are too many, those of
 * released names count first, and of certificates those that last longest.
 */
export function refusedCertificates(bindings: readonly NodeBinding[], now: number): RefusedCertificates {
  const isGood = ([key, end]: Entry) => Date.parse(end) > now && key.length <= longestKey;
  const byEnd = ([aKey, a]: Entry, [bKey, b]: Entry) => Date.parse(b) - Date.parse(a) || (aKey < bKey ? -1 : 1);
  const all = [bindings.flatMap(releasedIn), bindings.flatMap(formerIn)].flatMap((some) =>
    some.filter(isGood).toSorted(byEnd),
  );
  const entries: Record<string, string> = {};
  let left = mostRefusedCharacters;
  for (const [key, end] of all) {
    left -= key.length + end.length;
    if (left < 0) break;
    entries[key] = end;
  }
  const ends = Object.values(entries).map((end) => Date.parse(end));
  return { entries, until: ends.length === 0 ? undefined : ends.reduce((a, b) => Math.min(a, b)) };
}

type Entry = readonly [key: string, end: string];

const releasedIn = ({ metadata, spec }: NodeBinding): readonly Entry[] =>
  spec.revoked === true
    ? [
        [
          `${refusedNodePrefix}${metadata.name}`,
          [spec.expiresAt, spec.formerExpiresAt ?? spec.expiresAt].reduce((a, b) =>
            Date.parse(a) > Date.parse(b) ? a : b,
          ),
        ],
      ]
    : [];

const formerIn = ({ spec }: NodeBinding): readonly Entry[] =>
  (spec.formerCertificates ?? []).map(({ sha256, expiresAt }) => [sha256, expiresAt]);
