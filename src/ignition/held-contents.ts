import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import {
  type Contents,
  decodeContents,
  decodeMeasured,
  defaultMaxBytes,
  defaultMaxTotalBytes,
  isLongerThan,
  textOf,
} from "./data-url.ts";
import type { Resource } from "./types.ts";

/**
 * What the files of MachineConfigs hold. Each resource is decoded once, and what is remembered of it is small: whether it is
 * inline, how much it is, and its digest. Its bytes are decoded again for whoever writes them.
 */

type Refusal = Extract<Contents, { readonly verdict: "refused" }>;

/** What is remembered of a resource. */
interface Facts {
  /** Why it gives no bytes; absent: it does. */
  readonly refusal?: Refusal;
  /** The limit within which it was decoded: what is too large for it may be good within a larger one. */
  readonly maxBytes: number;
  /** Bytes that decoding wrote, and what it read in such bytes; 0: nothing was decompressed. */
  readonly written: number;
  readonly read: number;
  /** SHA-256 of the bytes. */
  digest?: string;
}

/** The contents of a file that a config holds. */
export type HeldContents =
  | {
      readonly verdict: "decoded";
      readonly sizeBytes: number;
      /** SHA-256 of the bytes, in hexadecimal. */
      readonly digest: string;
      /** Decodes them again: they are not remembered. */
      bytes(): Uint8Array;
    }
  | Refusal;

/** Facts by resource, which must not be changed in place. */
const byResource = new WeakMap<Resource, Facts>();

/**
 * Facts by source, for contents that are slow to decompress: each change of a config creates new resource objects. The last
 * entry is the newest.
 */
const bySource = new Map<string, Facts>();
const mostSourceCharacters = 4 * 1024 * 1024;
let sourceCharacters = 0;

/** What takes a millisecond. */
const isSlow = ({ written, read }: Facts): boolean => Math.max(written, read) >= 64 * 1024;

const isCompressed = ({ compression }: Resource): boolean => compression !== undefined && compression !== "";

function known(resource: Resource): Facts | undefined {
  const own = byResource.get(resource);
  if (own !== undefined || resource.source === undefined || resource.compression !== "gzip") return own;
  const facts = bySource.get(resource.source);
  if (facts === undefined) return undefined;
  remember(resource, facts);
  return facts;
}

function remember(resource: Resource, facts: Facts): void {
  byResource.set(resource, facts);
  const { source, compression } = resource;
  if (source === undefined || compression !== "gzip" || !isSlow(facts)) return;
  if (bySource.delete(source)) sourceCharacters -= source.length;
  bySource.set(source, facts);
  sourceCharacters += source.length;
  for (const [oldest] of bySource) {
    if (sourceCharacters <= mostSourceCharacters) break;
    bySource.delete(oldest);
    sourceCharacters -= oldest.length;
  }
}

const digestOf = (bytes: Uint8Array): string => bytesToHex(sha256(bytes));

/** Whether what is remembered of a resource answers for a limit. */
const answersFor = ({ refusal, maxBytes }: Facts, most: number): boolean =>
  refusal?.because !== "tooLarge" || maxBytes >= most;

/** Decodes a resource within a limit, and remembers what came of it, with the digest of what took long to decode. */
function decodeNow(
  resource: Resource,
  maxBytes: number,
  { withDigest }: { readonly withDigest: boolean },
): { readonly facts: Facts; readonly contents: Contents } {
  const { contents, written, read } = decodeMeasured(resource, maxBytes);
  const facts: Facts = { maxBytes, written, read, ...(contents.verdict === "refused" ? { refusal: contents } : {}) };
  if (withDigest && contents.verdict === "decoded" && read > 0) facts.digest = digestOf(contents.bytes);
  remember(resource, facts);
  return { facts, contents };
}

function factsOf(resource: Resource, maxBytes: number): Facts {
  const facts = known(resource);
  return facts !== undefined && answersFor(facts, maxBytes)
    ? facts
    : decodeNow(resource, maxBytes, { withDigest: true }).facts;
}

/** The bytes of a resource that is known to give some. */
function bytesOf(resource: Resource): Uint8Array {
  const contents = decodeContents(resource);
  return contents.verdict === "decoded" ? contents.bytes : new Uint8Array(0);
}

const heldAs = (resource: Resource, facts: Facts): HeldContents =>
  facts.refusal ?? {
    verdict: "decoded",
    sizeBytes: facts.written,
    get digest() {
      return (facts.digest ??= digestOf(bytesOf(resource)));
    },
    bytes: () => bytesOf(resource),
  };

/** Of a file without contents. */
const nothing: Resource = {};

/**
 * Reads the files of one config in sequence: compressed contents may weigh `maxTotalBytes` together, and later
 * ones are refused unread. Each weighs what it gives, or eight times what goes in where that is more, also if it
 * is refused. A config thus costs bounded time and memory, whatever its number of files, and each of its resources is
 * decoded once, however often the config is read.
 */
export function contentsReader(
  options: { readonly maxTotalBytes?: number } = {},
): (resource: Resource | undefined) => HeldContents {
  const maxTotalBytes = options.maxTotalBytes ?? defaultMaxTotalBytes;
  let left = maxTotalBytes;
  const exhausted = {
    verdict: "refused",
    because: "tooLarge",
    reason: `the compressed contents of the config are larger than ${maxTotalBytes} bytes together`,
  } as const;
  return (resource = nothing) => {
    if (!isCompressed(resource)) return heldAs(resource, factsOf(resource, defaultMaxBytes));
    if (left <= 0) return exhausted;
    const maxBytes = Math.min(defaultMaxBytes, left);
    const isCut = maxBytes < defaultMaxBytes;
    if (isCut && isLongerThan(resource.source ?? "", maxBytes)) return exhausted;
    const facts = factsOf(resource, maxBytes);
    const isTooLarge = facts.refusal?.because === "tooLarge" || facts.written > maxBytes;
    if (facts.read > 0) left -= Math.max(isTooLarge ? maxBytes : facts.written, facts.read);
    return isCut && isTooLarge ? exhausted : heldAs(resource, facts);
  };
}

/** Characters of a text that people write and that is parsed as YAML or TOML: such files have a few thousand. */
export const mostTextCharacters = 256 * 1024;

/** Bytes of UTF-8 that a character takes at most. */
const bytesOfCharacter = 3;

/** Bytes of a text that controllers generate, or that is compared: no object holds a longer one uncompressed. */
export const mostStoredTextBytes = 1536 * 1024;

/**
 * Stands for a text that is too large to be parsed. It is no YAML, no TOML and no JSON: whoever parses it refuses it, and
 * nobody takes it for an absent one.
 */
export const oversizedText = "\0too large to be parsed";

/** What is wrong with a text that is too large to be parsed, to follow the name of its file. */
export const oversizedReason = `has more than ${mostTextCharacters} characters, which are not read`;

/** The text of a file that a config holds, or why it is not read. */
export type HeldText =
  | { readonly verdict: "text"; readonly text: string }
  | Refusal
  | { readonly verdict: "refused"; readonly because: "notText"; readonly reason: string };

/** A text of so many characters at most, decoded again and without its digest; decoding stops where there must be more. */
export function heldText(contents: Resource | undefined, mostCharacters: number): HeldText {
  const resource = contents ?? nothing;
  const maxBytes = bytesOfCharacter * mostCharacters;
  const tooLarge = {
    verdict: "refused",
    because: "tooLarge",
    reason: `it has more than ${mostCharacters} characters`,
  } as const;
  const facts = known(resource);
  if (facts?.refusal !== undefined && answersFor(facts, maxBytes))
    return facts.refusal.because === "tooLarge" ? tooLarge : facts.refusal;
  if (facts !== undefined && facts.written > maxBytes) return tooLarge;
  // What is known within a larger limit is not forgotten.
  const decoded =
    facts === undefined || facts.maxBytes < maxBytes
      ? decodeNow(resource, maxBytes, { withDigest: false }).contents
      : decodeContents(resource, { maxBytes });
  if (decoded.verdict === "refused") return decoded.because === "tooLarge" ? tooLarge : decoded;
  const text = textOf(decoded.bytes);
  if (text === undefined) return { verdict: "refused", because: "notText", reason: "it is no text in UTF-8" };
  return text.length > mostCharacters ? tooLarge : { verdict: "text", text };
}
