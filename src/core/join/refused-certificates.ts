import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { requestLifeMs } from "./certificate-holder.ts";
import { joinedAt } from "./join-places.ts";

/** Before the name of a node, the key of an entry that refuses all its requests. */
export const refusedNodePrefix = "node.";

/**
 * Before the name of a node, the key of an entry that refuses requests by all certificates but some. A machine chooses how many
 * certificates it has, and this entry does not grow with them. Other keys are certificates.
 */
export const holderOnlyPrefix = "only.";

/**
 * Digits of a certificate in the value of such an entry. The signer chooses what else is in a certificate, so that nobody can
 * search for one that begins like another.
 */
export const certificateDigits = 16;

/**
 * Bytes that all entries take in the object: the API server stores each key twice (in metadata.managedFields as well), and
 * 1.5 MiB of an object at most.
 */
export const mostRefusedBytes = 1_100_000;

/** Beside a key, its copy and its value: quotation marks, colons, commas and what marks a field of managedFields. */
const bytesBeside = 16;

/** Length of a key of a ConfigMap (k8s.io/apimachinery pkg/util/validation, IsConfigMapKey). */
const longestKey = 253;

/** Machines with longer names do not join: no entry could refuse their requests once they are released. */
export const longestNodeName = longestKey - Math.max(refusedNodePrefix.length, holderOnlyPrefix.length);

/** Keys and ends of entries, as the ConfigMap holds them. */
type Entries = Readonly<Record<string, string>>;

/** The nodes and certificates whose requests for certificates are refused. */
export interface RefusedCertificates {
  /**
   * `node.NAME`, `only.NAME` or the SHA-256 of a certificate, in hexadecimal digits → the end of its entry, and after that of
   * `only.NAME` the beginnings of the certificates that are not refused, each after a space.
   */
  readonly entries: Entries;
  /** When the first entry ends, in milliseconds since the epoch. */
  readonly until: number | undefined;
  /** Entries for which there is no room, without those that another one stands for. */
  readonly leftOut: number;
}

/**
 * Collects what the API server is to refuse: requests of nodes that an administrator released; of names that another machine had
 * before, those that are not sent with a certificate of the machine that has the name; and those that are sent with a
 * certificate of a former machine. A certificate that has ended needs no entry. Where there are too many, those of released names
 * count first, and of certificates those that last longest.
 *
 * @param before the entries that the API server has. Those of certificates stay until they end, also if their binding was
 * deleted and made again, unless a binding lists the certificate as one of its machine.
 */
export function refusedCertificates(
  bindings: readonly NodeBinding[],
  now: number,
  before: Entries = {},
): RefusedCertificates {
  const isGood = ({ endsAt }: Entry) => endsAt > now;
  const byEnd = (a: Entry, b: Entry) => b.endsAt - a.endsAt || (a.key < b.key ? -1 : 1);
  const own = new Set(bindings.flatMap(ownOf));
  const kept = Object.entries(before).flatMap(([key, value]) => (isCertificate.test(key) ? [entryOf(key, value)] : []));
  const former = new Map(
    [...kept, ...bindings.flatMap(formerIn)].flatMap((entry) => (own.has(entry.key) ? [] : [[entry.key, entry]])),
  );
  const bounded = new Map(bindings.flatMap((binding) => holderOnlyIn(binding, now)));
  // These are refused by the entry of the name as well, until its binding is deleted.
  const again = new Set([...bounded.keys()].flatMap((binding) => formerIn(binding).map(({ key }) => key)));
  const good = [...former.values()].filter(isGood).toSorted(byEnd);
  const needed = [
    ...bindings.flatMap(releasedIn).filter(isGood).toSorted(byEnd),
    ...[...bounded.values()].filter(isGood).toSorted(byEnd),
    ...good.filter(({ key }) => !again.has(key)),
  ];
  const entries: Record<string, string> = {};
  const ends = [...bounded.keys()].flatMap((binding) => firstEndsAt(binding, now));
  let left = mostRefusedBytes;
  let leftOut = 0;
  for (const [index, { key, value, endsAt }] of [
    ...needed,
    ...good.filter((entry) => again.has(entry.key)),
  ].entries()) {
    const isKey = key.length <= longestKey;
    if (isKey) left -= 2 * key.length + value.length + bytesBeside;
    if (isKey && left >= 0) {
      entries[key] = value;
      ends.push(endsAt);
    } else if (index < needed.length) leftOut += 1;
  }
  return {
    entries,
    until: ends.length === 0 ? undefined : ends.reduce((one, other) => Math.min(one, other)),
    leftOut,
  };
}

/** An entry; `endsAt` in milliseconds since the epoch: it is parsed once, and compared often. */
interface Entry {
  readonly key: string;
  readonly value: string;
  readonly endsAt: number;
}

/** @param value its end, in ISO 8601, and what else stands after a space. */
const entryOf = (key: string, value: string): Entry => ({
  key,
  value,
  endsAt: Date.parse(value.split(" ", 1)[0] ?? ""),
});

/**
 * Of a name that another machine had: the certificates of the one that has it now. Until the first of those is recorded, no
 * certificate counts; where that was missed, none is refused, since nothing tells which one is right.
 */
function holderOnlyIn(binding: NodeBinding, now: number): readonly (readonly [NodeBinding, Entry])[] {
  const { formerExpiresAt, exclusive, revoked } = binding.spec;
  if (exclusive !== true || formerExpiresAt === undefined || revoked === true) return [];
  if (Date.parse(formerExpiresAt) <= now) return [];
  const own = ownOf(binding);
  if (own.length === 0 && firstEndsAt(binding, now).length === 0) return [];
  const value = [formerExpiresAt, ...own.map((sha256) => sha256.slice(0, certificateDigits))].join(" ");
  return [[binding, entryOf(`${holderOnlyPrefix}${binding.metadata.name}`, value)]];
}

/** Until when the first certificate of a machine that joined is waited for; none: that is over. */
function firstEndsAt(binding: NodeBinding, now: number): readonly number[] {
  const end = Date.parse(joinedAt(binding)) + requestLifeMs;
  return binding.spec.certificates === undefined && end > now ? [end] : [];
}

const isCertificate = /^[0-9a-f]{64}$/;

/** Certificates of the machine that has a name; of a former machine as well, they count as its. */
const ownOf = ({ spec }: NodeBinding): readonly string[] => {
  const former = new Set((spec.formerCertificates ?? []).map(({ sha256 }) => sha256));
  return (spec.certificates ?? []).filter((sha256) => !former.has(sha256));
};

const releasedIn = ({ metadata, spec }: NodeBinding): readonly Entry[] => {
  if (spec.revoked !== true) return [];
  const key = `${refusedNodePrefix}${metadata.name}`;
  const own = entryOf(key, spec.expiresAt);
  const former = entryOf(key, spec.formerExpiresAt ?? spec.expiresAt);
  return [former.endsAt > own.endsAt ? former : own];
};

const formerIn = ({ spec }: NodeBinding): readonly Entry[] =>
  (spec.formerCertificates ?? []).map(({ sha256, expiresAt }) => entryOf(sha256, expiresAt));
