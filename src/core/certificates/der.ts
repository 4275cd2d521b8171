import { textOf } from "../../ignition/data-url.ts";

/** One element of DER (ITU-T X.690): its tag, its contents, and where the next one begins. */
export interface Element {
  readonly tag: number;
  readonly contents: Uint8Array;
  /** With its tag and its length: the bytes that signatures cover. */
  readonly whole: Uint8Array;
  readonly end: number;
}

/** The element that begins at a byte; `undefined` if none does, or if it is truncated. */
export function elementAt(bytes: Uint8Array, at: number): Element | undefined {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return undefined;
  let length = first;
  let begin = at + 2;
  if (first >= 0x80) {
    const count = first & 0x7f;
    // No certificate has lengths of more than four bytes.
    if (count === 0 || count > 4) return undefined;
    length = 0;
    for (const byte of bytes.subarray(begin, begin + count)) length = length * 256 + byte;
    begin += count;
  }
  const end = begin + length;
  return end > bytes.length
    ? undefined
    : { tag, contents: bytes.subarray(begin, end), whole: bytes.subarray(at, end), end };
}

/** Consecutive elements, up to the first that cannot be read. */
export function children(bytes: Uint8Array): readonly Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const element = elementAt(bytes, at);
    if (element === undefined) return found;
    found.push(element);
    at = element.end;
  }
  return found;
}

/** Nothing that is signed here nests deeper. */
const deepest = 32;
const constructed = 0x20;

/**
 * Whether bytes are one element of DER as its only encoding: lengths in their shortest form, tags of one byte, and
 * elements that hold others filled to their last byte.
 */
export function isStrictDer(bytes: Uint8Array): boolean {
  const whole = strictAt(bytes, 0);
  return whole !== undefined && whole.end === bytes.length && isFilled(whole, deepest);
}

function strictAt(bytes: Uint8Array, at: number): Element | undefined {
  const element = elementAt(bytes, at);
  // A tag of more bytes has five ones in its first.
  if (element === undefined || (element.tag & 0x1f) === 0x1f) return undefined;
  const { length } = element.contents;
  const bytesOfLength = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x1_0000 ? 2 : length < 0x100_0000 ? 3 : 4;
  return element.whole.length === 2 + bytesOfLength + length ? element : undefined;
}

function isFilled({ tag, contents }: Element, depth: number): boolean {
  if ((tag & constructed) === 0) return true;
  if (depth === 0) return false;
  for (let at = 0; at < contents.length;) {
    const element = strictAt(contents, at);
    if (element === undefined || !isFilled(element, depth - 1)) return false;
    at = element.end;
  }
  return true;
}

/** One character for each byte. A certificate may hold more bytes than one call takes arguments. */
export const latin1 = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

const bmpString = 0x1e;
const t61String = 0x14;

/** A string of a name, as Go decodes it: UTF-16 (BMPString), Latin-1 (T61String), or UTF-8 and its parts. */
function stringOf({ tag, contents }: Element): string {
  if (tag === bmpString)
    return Array.from({ length: contents.length >> 1 }, (_, i) =>
      String.fromCharCode(((contents[2 * i] ?? 0) << 8) | (contents[2 * i + 1] ?? 0)),
    ).join("");
  return tag === t61String ? latin1(contents) : (textOf(contents) ?? latin1(contents));
}

/**
 * Last number of 2.5.4.x → its short name: RFC 2253, 2.3, and Go's crypto/x509/pkix (master), after which the
 * reference writes names.
 */
const attributeNames: Readonly<Record<number, string>> = {
  3: "CN",
  5: "SERIALNUMBER",
  6: "C",
  7: "L",
  8: "ST",
  9: "STREET",
  10: "O",
  11: "OU",
  17: "POSTALCODE",
};

/** Parts of a name in the order of the certificate, each with its short name; other attributes are dropped. */
export function partsOf(
  name: Element | undefined,
): readonly (readonly { readonly type: string; readonly value: string }[])[] {
  return children(name?.contents ?? new Uint8Array()).map((set) =>
    children(set.contents).flatMap((attribute) => {
      const [type, value] = children(attribute.contents);
      const [a, b, last = -1, ...more] = type?.contents ?? [];
      const called = a === 0x55 && b === 0x04 && more.length === 0 ? attributeNames[last] : undefined;
      if (called === undefined || value === undefined) return [];
      return [{ type: called, value: stringOf(value) }];
    }),
  );
}

const escaped = (value: string) => value.replaceAll(/[,+"\\<>;]|^[ #]|(?<=.) $/g, "\\$&");

/** The whole name in RFC 2253 form. */
export function nameOf(name: Element | undefined): string {
  return partsOf(name)
    .filter((set) => set.length > 0)
    .toReversed()
    .map((set) => set.map(({ type, value }) => `${type}=${escaped(value)}`).join("+"))
    .join(",");
}
