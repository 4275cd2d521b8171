import fc from "fast-check";

/** A text with one to three places changed: something put in, characters left out, or another part of the text repeated. */
export function mutated(texts: fc.Arbitrary<string>, puts: readonly string[]): fc.Arbitrary<string> {
  const change = fc.tuple(
    fc.nat(),
    fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...puts) }, { weight: 1, arbitrary: fc.string({ maxLength: 3 }) }),
    fc.nat(3),
    fc.boolean(),
  );
  return fc.tuple(texts, fc.array(change, { maxLength: 3 })).map(([text, changes]) => {
    let result = text;
    for (const [at, put, cut, isRepeated] of changes) {
      const place = at % (result.length + 1);
      const piece = isRepeated ? result.slice(place, place + cut * 8) : put;
      result = result.slice(0, place) + piece + result.slice(place + (isRepeated ? 0 : cut));
    }
    return result;
  });
}

/** Bytes with one to three of them changed, or cut off. */
export function mutatedBytes(texts: fc.Arbitrary<string>): fc.Arbitrary<Uint8Array> {
  return fc
    .tuple(
      texts,
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 9, 0x0d, 0x22, 0x5c, 0x7f, 0x80, 0xc3, 0xed, 0xff)), {
        maxLength: 3,
      }),
    )
    .map(([text, changes]) => {
      const bytes = new TextEncoder().encode(text);
      for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value;
      return bytes;
    });
}

/** A JSON text with up to two more fields (`"a":1`) in objects of it, before or after those that are there. */
export function withFields(texts: fc.Arbitrary<string>, fields: readonly string[]): fc.Arbitrary<string> {
  const change = fc.tuple(fc.nat(), fc.constantFrom(...fields), fc.boolean());
  return fc.tuple(texts, fc.array(change, { maxLength: 2 })).map(([text, changes]) => {
    let result = text;
    for (const [at, field, isFirst] of changes) {
      const places = [...result.matchAll(isFirst ? /\{(?=\s*")/g : /(?<=["\d\]}el]\s*)\}/g)].map(({ index }) => index);
      const place = places[at % Math.max(1, places.length)];
      if (place === undefined) continue;
      result = isFirst
        ? `${result.slice(0, place + 1)}${field},${result.slice(place + 1)}`
        : `${result.slice(0, place)},${field}${result.slice(place)}`;
    }
    return result;
  });
}
