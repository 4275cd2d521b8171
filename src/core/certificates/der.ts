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

const bmpString = 0x1e;

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
      // Names are UTF-8 or a part of ASCII in practice; UTF-16 (BMPString) is two bytes a character.
      const bytes = value.tag === bmpString ? value.contents.filter((_, index) => index % 2 === 1) : value.contents;
      return [{ type: called, value: textOf(bytes) ?? String.fromCharCode(...bytes) }];
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
