import fc from "fast-check";

/** Writes bits, the lowest first, as deflate (RFC 1951) has them. */
export function bitWriter() {
  const bytes: number[] = [];
  let count = 0;
  const bit = (value: number) => {
    if (count % 8 === 0) bytes.push(0);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | ((value & 1) << (count % 8));
    count += 1;
  };
  return {
    bits: (value: number, width: number) => {
      for (let i = 0; i < width; i++) bit(value >> i);
    },
    /** A code: its first bit is the highest. */
    code: ({ value, width }: Code) => {
      for (let i = width - 1; i >= 0; i--) bit(value >> i);
    },
    align: () => {
      while (count % 8 !== 0) bit(0);
    },
    bytes: () => Uint8Array.from(bytes),
  };
}

type BitWriter = ReturnType<typeof bitWriter>;

interface Code {
  readonly value: number;
  readonly width: number;
}

/** The canonical codes of the lengths, by symbol; a length of 0 is no code. */
export function codesOf(lengths: readonly number[]): readonly Code[] {
  let next = 0;
  const codes = lengths.map((): Code => ({ value: 0, width: 0 }));
  for (let width = 1; width <= 15; width++) {
    next *= 2;
    for (const [symbol, length] of lengths.entries())
      if (length === width) {
        codes[symbol] = { value: next, width };
        next += 1;
      }
  }
  return codes;
}

const lengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Lengths of a complete code: each split makes two codes of one. */
const lengthsOfCode = (most: number, longest: number) =>
  fc
    .oneof(
      fc.array(fc.nat(300), { maxLength: Math.min(most - 2, 60) }),
      // The longest codes.
      fc.constant(Array.from({ length: Math.min(most - 2, longest - 1) }, () => 0)),
    )
    .map((splits) => {
      const lengths = [1, 1];
      for (const split of splits) {
        const at = split % lengths.length;
        const length = lengths[at] ?? 0;
        if (length < longest) lengths.splice(at, 1, length + 1, length + 1);
      }
      return lengths;
    });

/** A value, and now and then another one. */
const mostly = <T>(usual: T, other: fc.Arbitrary<T>, weight = 12) =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });

/** A change of one length, which makes a code incomplete or gives bits to two symbols. */
const wound = (longest: number) =>
  mostly<{ readonly at: number; readonly length: number } | undefined>(
    undefined,
    fc.record({ at: fc.nat(400), length: fc.nat(longest) }),
  );

const wounded = (lengths: readonly number[], change: { readonly at: number; readonly length: number } | undefined) =>
  change === undefined || lengths.length === 0 ? lengths : lengths.with(change.at % lengths.length, change.length);

/** Gives the lengths to symbols in an order that depends on `seed`; `first` gets one for certain. */
function spread(lengths: readonly number[], symbols: number, seed: number, first: readonly number[]): number[] {
  const order = Array.from({ length: symbols }, (_, i) => i).toSorted(
    (a, b) => (((a + 1) * seed) % 1009) - (((b + 1) * seed) % 1009) || a - b,
  );
  const all = Array.from({ length: symbols }, () => 0);
  for (const [i, symbol] of [...new Set([...first, ...order])].slice(0, lengths.length).entries())
    all[symbol] = lengths[(i + seed) % lengths.length] ?? 0;
  return all;
}

/** What a block says: bytes, repetitions, and seldom bits that may be no code. Symbols that have no code are left out. */
const anyWords = fc.array(
  fc.oneof(
    { weight: 80, arbitrary: fc.record({ literal: fc.nat(255) }) },
    { weight: 1, arbitrary: fc.record({ noise: fc.nat(0xffff) }) },
    {
      weight: 40,
      arbitrary: fc.record({
        length: fc.nat(30),
        distance: fc.oneof({ weight: 4, arbitrary: fc.nat(3) }, { weight: 1, arbitrary: fc.nat(31) }),
        extra: mostly(0, fc.nat(0x3fff), 2),
      }),
    },
  ),
  { maxLength: 30 },
);
type Words = typeof anyWords extends fc.Arbitrary<infer T> ? T : never;

const lengthExtra = (symbol: number) => (symbol < 8 || symbol >= 28 ? 0 : (symbol - 4) >> 2);
const distanceExtra = (symbol: number) => (symbol < 4 ? 0 : (symbol - 2) >> 1);

/** Takes the nearest symbol that has a code, so that most words are said in whatever code a block has. */
const near = (codes: readonly Code[], from: number, to: number, at: number): number | undefined => {
  const having = Array.from({ length: to - from }, (_, i) => from + i).filter(
    (symbol) => (codes[symbol]?.width ?? 0) > 0,
  );
  return having[at % Math.max(having.length, 1)];
};

function writeWords(
  out: BitWriter,
  words: Words,
  literals: readonly Code[],
  distances: readonly Code[],
  ends: boolean,
) {
  const say = (codes: readonly Code[], symbol: number) => out.code(codes[symbol] ?? { value: 0, width: 0 });
  for (const word of words) {
    if ("noise" in word) {
      out.bits(word.noise, 16);
      continue;
    }
    if ("literal" in word) {
      const symbol = near(literals, 0, 256, word.literal);
      if (symbol !== undefined) say(literals, symbol);
      continue;
    }
    const [length, distance] = [near(literals, 257, 288, word.length), near(distances, 0, 32, word.distance)];
    if (length === undefined || distance === undefined) continue;
    say(literals, length);
    out.bits(word.extra, lengthExtra(length - 257));
    // A single code leaves the other bit without a meaning.
    if (word.distance > 3 && distances[distance]?.width === 1) out.bits(1, 1);
    else say(distances, distance);
    out.bits(word.extra, distanceExtra(distance));
  }
  if (ends) say(literals, 256);
}

type Block = (out: BitWriter, isLast: boolean) => void;

const storedBlock = fc
  .record({ text: fc.uint8Array({ maxLength: 40 }), complement: mostly<number | undefined>(undefined, fc.nat(0xffff)) })
  .map(({ text, complement }): Block => (out, isLast) => {
    out.bits(isLast ? 1 : 0, 3);
    out.align();
    out.bits(text.length, 16);
    out.bits(complement ?? text.length ^ 0xffff, 16);
    for (const byte of text) out.bits(byte, 8);
  });

const fixedCodes = {
  literals: codesOf(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
  distances: codesOf(Array.from({ length: 32 }, () => 5)),
};

const fixedBlock = fc
  .tuple(anyWords, mostly(true, fc.constant(false), 30))
  .map(([words, ends]): Block => (out, isLast) => {
    out.bits(isLast ? 1 : 0, 1);
    out.bits(1, 2);
    writeWords(out, words, fixedCodes.literals, fixedCodes.distances, ends);
  });

/** The lengths of codes as symbols of the code of lengths: runs are repeated if `packs` says so. */
function packed(
  lengths: readonly number[],
  packs: boolean,
): readonly { readonly symbol: number; readonly extra: number; readonly width: number }[] {
  const said: { symbol: number; extra: number; width: number }[] = [];
  for (let at = 0; at < lengths.length;) {
    const length = lengths[at] ?? 0;
    let run = 1;
    while (lengths[at + run] === length) run += 1;
    if (packs && length === 0 && run >= 11) {
      run = Math.min(run, 138);
      said.push({ symbol: 18, extra: run - 11, width: 7 });
    } else if (packs && length === 0 && run >= 3) said.push({ symbol: 17, extra: run - 3, width: 3 });
    else if (packs && at > 0 && lengths[at - 1] === length && run >= 3) {
      run = Math.min(run, 6);
      said.push({ symbol: 16, extra: run - 3, width: 2 });
    } else {
      run = 1;
      said.push({ symbol: length, extra: 0, width: 0 });
    }
    at += run;
  }
  return said;
}

const dynamicBlock = fc
  .record({
    literals: fc.oneof(
      { weight: 12, arbitrary: lengthsOfCode(60, 15) },
      { weight: 1, arbitrary: fc.constantFrom([1], [1], [2], []) },
    ),
    distances: fc.oneof(
      { weight: 8, arbitrary: lengthsOfCode(30, 15) },
      { weight: 3, arbitrary: fc.constantFrom([1], [1], [2], []) },
    ),
    literalCount: mostly(286, fc.integer({ min: 257, max: 288 }), 2),
    distanceCount: mostly(30, fc.integer({ min: 1, max: 32 }), 2),
    seed: fc.integer({ min: 1, max: 1000 }),
    hasEnd: mostly(true, fc.constant(false)),
    literalWound: wound(15),
    distanceWound: wound(15),
    ofLengths: lengthsOfCode(19, 7),
    lengthWound: wound(7),
    type: mostly(2, fc.constant(3), 30),
    repeatsFirst: mostly(false, fc.constant(true), 20),
    repeatsLast: mostly(false, fc.constant(true), 20),
    packs: fc.boolean(),
    words: anyWords,
    ends: mostly(true, fc.constant(false), 30),
  })
  .map((field): Block => (out, isLast) => {
    const { literalCount, distanceCount, seed } = field;
    const literals = wounded(
      spread(field.literals.slice(0, literalCount), literalCount, seed, field.hasEnd ? [256] : []),
      field.literalWound,
    );
    // Distances of which there are too many for the count make the code incomplete.
    const distances = wounded(spread(field.distances, distanceCount, seed, [0]), field.distanceWound);
    const all = [...literals, ...distances];
    // There is nothing to repeat before the first length.
    const repeats = field.repeatsFirst && all.slice(0, 3).every((length) => length === 0);
    const said = [
      ...(repeats ? [{ symbol: 16, extra: 0, width: 2 }] : []),
      ...packed(repeats ? all.slice(3) : all, field.packs),
    ];
    const last = said.at(-1);
    // Beyond the last length.
    if (field.repeatsLast && last !== undefined && last.width > 0)
      said.splice(-1, 1, { ...last, extra: last.extra + 1 });
    const used = [...new Set(said.map(({ symbol }) => symbol))];
    const lengths = lengthsFor(used, field.ofLengths, seed);
    const own = wounded(lengths, field.lengthWound);
    const codes = codesOf(own);
    out.bits(isLast ? 1 : 0, 1);
    out.bits(field.type, 2);
    out.bits(literalCount - 257, 5);
    out.bits(distanceCount - 1, 5);
    out.bits(19 - 4, 4);
    for (const symbol of lengthOrder) out.bits(own[symbol] ?? 0, 3);
    for (const { symbol, extra, width } of said) {
      out.code(codes[symbol] ?? { value: 0, width: 0 });
      out.bits(extra, width);
    }
    writeWords(out, field.words, codesOf(literals), codesOf(distances), field.ends);
  });

/** Lengths of a complete code in which all `used` symbols have one. */
function lengthsFor(used: readonly number[], shape: readonly number[], seed: number): number[] {
  const lengths = [...shape];
  while (lengths.length < used.length) {
    const at = lengths.indexOf(Math.min(...lengths));
    const length = lengths[at] ?? 1;
    lengths.splice(at, 1, length + 1, length + 1);
  }
  return spread(lengths, 19, seed, used);
}

const block = fc.oneof(
  { weight: 2, arbitrary: storedBlock },
  { weight: 2, arbitrary: fixedBlock },
  { weight: 8, arbitrary: dynamicBlock },
  { weight: 1, arbitrary: fc.constant<Block>((out) => out.bits(6, 3)) },
);

/** Deflate streams whose blocks are written field by field, whether they are right or not. */
export const anyDeflate: fc.Arbitrary<Uint8Array> = fc
  .record({
    blocks: fc.array(block, { minLength: 1, maxLength: 4 }),
    isEnded: mostly(true, fc.constant(false), 20),
    cut: mostly(0, fc.nat(4), 20),
  })
  .map(({ blocks, isEnded, cut }) => {
    const out = bitWriter();
    for (const [i, write] of blocks.entries()) write(out, isEnded && i === blocks.length - 1);
    const bytes = out.bytes();
    return bytes.subarray(0, Math.max(0, bytes.length - cut));
  });

/** A block that gives nothing, and whose codes are as long as they can be: 28 bytes. */
export const costlyEmptyBlock: Block = (out, isLast) => {
  const longest = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15];
  const ofLengths = Array.from({ length: 19 }, (_, symbol) => (symbol === 18 || (symbol > 0 && symbol < 16) ? 4 : 0));
  const codes = codesOf(ofLengths);
  const say = (symbol: number) => out.code(codes[symbol] ?? { value: 0, width: 0 });
  out.bits(isLast ? 1 : 0, 1);
  out.bits(2, 2);
  out.bits(0, 5);
  out.bits(15, 5);
  out.bits(19 - 4, 4);
  for (const symbol of lengthOrder) out.bits(ofLengths[symbol] ?? 0, 3);
  for (const length of longest) say(length);
  for (const run of [138, 103]) {
    say(18);
    out.bits(run - 11, 7);
  }
  for (const length of [1, 1, ...longest]) say(length);
  // The end of the block.
  out.code({ value: 0, width: 1 });
};
