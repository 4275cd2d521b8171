import type { NodeBinding } from "../../api/kinds/node-binding.ts";

/** Before the name of a node, the key of an entry that refuses all its requests. Other keys are certificates. */
export const refusedNodePrefix = "node.";

/**
 * Bytes that all entries take in the object: the API server stores each key twice (in metadata.managedFields as well), and
 * 1.5 MiB of an object at most.
 */
export const mostRefusedBytes = 1_100_000;

/** Beside a key, its copy and its value: quotation marks, colons, commas and what marks a field of managedFields. */
const bytesBeside = 16;

/** Length of a key of a ConfigMap (k8s.io/apimachinery pkg/util/validation, IsConfigMapKey). */
const longestKey = 253;

/** Keys and ends of entries, as the ConfigMap holds them. */
type Entries = Readonly<Record<string, string>>;

/** The nodes and certificates whose requests for certificates are refused. */
export interface RefusedCertificates {
  /** `node.NAME` or the SHA-256 of a certificate, in hexadecimal digits → the end of its entry. */
  readonly entries: Entries;
  /** When the first entry ends, in milliseconds since the epoch. */
  readonly until: number | undefined;
  /** Entries for which there is no room. */
  readonly leftOut: number;
}

/**
 * Collects what the API server is to refuse: requests of nodes that an administrator released, and those that are sent with a
 * certificate of a former machine of the name. A certificate that has ended needs no entry. Where there are too many, those of
 * released names count first, and of certificates those that last longest.
 *
 * @param before the entries that the API server has. Those of certificates stay until they end, also if their binding was
 * deleted and made again, unless a binding lists the certificate as one of its machine.
 */
export function refusedCertificates(
  bindings: readonly NodeBinding[],
  now: number,
  before: Entries = {},
): RefusedCertificates {
  const isGood = ([key, end]: Entry) => Date.parse(end) > now && key.length <= longestKey;
  const byEnd = ([aKey, a]: Entry, [bKey, b]: Entry) => Date.parse(b) - Date.parse(a) || (aKey < bKey ? -1 : 1);
  const own = new Set(bindings.flatMap(ownOf));
  const kept = Object.entries(before).filter(([key]) => isCertificate.test(key));
  const former = new Map([...kept, ...bindings.flatMap(formerIn)].filter(([key]) => !own.has(key)));
  const all = [bindings.flatMap(releasedIn), [...former]].flatMap((some) => some.filter(isGood).toSorted(byEnd));
  const entries: Record<string, string> = {};
  let left = mostRefusedBytes;
  let count = 0;
  for (const [key, end] of all) {
    left -= 2 * key.length + end.length + bytesBeside;
    if (left < 0) break;
    entries[key] = end;
    count += 1;
  }
  const ends = Object.values(entries).map((end) => Date.parse(end));
  return {
    entries,
    until: ends.length === 0 ? undefined : ends.reduce((a, b) => Math.min(a, b)),
    leftOut: all.length - count,
  };
}

type Entry = readonly [key: string, end: string];

const isCertificate = /^[0-9a-f]{64}$/;

/** Certificates of the machine that has a name; of a former machine as well, they count as its. */
const ownOf = ({ spec }: NodeBinding): readonly string[] => {
  const former = new Set((spec.formerCertificates ?? []).map(({ sha256 }) => sha256));
  return (spec.certificates ?? []).filter((sha256) => !former.has(sha256));
};

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
