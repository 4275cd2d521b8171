/**
 * Deflate (RFC 1951), read as zlib and Go read it: what they refuse is refused. Time is in proportion to what goes in and
 * comes out: the tables of a block are small, so that blocks which give nothing cost little more than their bytes.
 */

/** Where decoded bytes are collected, up to a limit. */
export interface Output {
  bytes: Uint8Array;
  length: number;
  readonly maxBytes: number;
}

/** Nothing decoded yet. */
export const emptyOutput = (maxBytes: number): Output => ({ bytes: new Uint8Array(0), length: 0, maxBytes });

/** The result of {@link inflate}. */
export type Inflated =
  | { readonly verdict: "inflated"; readonly end: number }
  | { readonly verdict: "broken" | "tooLarge" };

/** What reading a block led to. */
type BlockResult = "read" | "broken" | "tooLarge";

/** The bits of the input that come next, the lowest first. `count` is negative once more were taken than there are. */
interface Bits {
  readonly bytes: Uint8Array;
  at: number;
  held: number;
  count: number;
}

/** Takes bytes in until no further one is needed for a code with its extra bits. */
function refill(bits: Bits): void {
  while (bits.count <= 16 && bits.at < bits.bytes.length) {
    bits.held |= (bits.bytes[bits.at] ?? 0) << bits.count;
    bits.at += 1;
    bits.count += 8;
  }
}

function drop(bits: Bits, count: number): void {
  bits.held >>>= count;
  bits.count -= count;
}

/** The next bits, 16 at most, as a number. */
function take(bits: Bits, count: number): number {
  refill(bits);
  const value = bits.held & ((1 << count) - 1);
  drop(bits, count);
  return value;
}

const mostLiterals = 286;
const mostDistances = 30;
const longestCode = 15;
/** Codes of so many bits are looked up at once, longer ones bit by bit. */
const tableBits = 9;
const endOfBlock = 256;

/** A canonical prefix code. */
interface Codes {
  /** By the next bits: the symbol, and in the lowest four bits the length of its code; 0 for a longer code or none. */
  readonly table: Uint16Array;
  /** How many codes there are of each length. */
  readonly counts: Uint16Array;
  /** The symbols in the order of their codes. */
  readonly symbols: Uint16Array;
}

const newCodes = (symbols: number): Codes => ({
  table: new Uint16Array(1 << tableBits),
  counts: new Uint16Array(longestCode + 1),
  symbols: new Uint16Array(symbols),
});

/**
 * Makes `codes` those of the lengths, and says whether they are a code: no bits stand for two symbols, and all for one. zlib
 * allows two exceptions outside of the code of lengths: a single code of one bit, and none at all.
 */
function assign(codes: Codes, lengths: Uint8Array, { mayBePart }: { readonly mayBePart: boolean }): boolean {
  const { counts, symbols } = codes;
  counts.fill(0);
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol] ?? 0;
    counts[length] = (counts[length] ?? 0) + 1;
  }
  const used = lengths.length - (counts[0] ?? 0);
  counts[0] = 0;
  let left = 1;
  const next = new Uint16Array(longestCode + 2);
  for (let length = 1; length <= longestCode; length++) {
    left = 2 * left - (counts[length] ?? 0);
    if (left < 0) return false;
    next[length + 1] = (next[length] ?? 0) + (counts[length] ?? 0);
  }
  const isPart = left > 0;
  if (isPart && !(mayBePart && (used === 0 || (used === 1 && counts[1] === 1)))) return false;
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol] ?? 0;
    if (length === 0) continue;
    const place = next[length] ?? 0;
    symbols[place] = symbol;
    next[length] = place + 1;
  }
  fillTable(codes, isPart);
  return true;
}

/** Writes each short code into the table, wherever the bits behind it lead. */
function fillTable({ table, counts, symbols }: Codes, isPart: boolean): void {
  if (isPart || counts.subarray(tableBits + 1).some((count) => count > 0)) table.fill(0);
  let place = 0;
  // The code with its first bit lowest, as it comes in.
  let reversed = 0;
  for (let length = 1; length <= tableBits; length++) {
    for (let left = counts[length] ?? 0; left > 0; left--) {
      const entry = ((symbols[place] ?? 0) << 4) | length;
      place += 1;
      for (let at = reversed; at < table.length; at += 1 << length) table[at] = entry;
      let bit = 1 << (length - 1);
      while ((reversed & bit) !== 0) {
        reversed ^= bit;
        bit >>= 1;
      }
      reversed |= bit;
    }
  }
}

/** The next symbol, or -1 where the bits are no code. */
function symbolOf(bits: Bits, codes: Codes): number {
  refill(bits);
  const entry = codes.table[bits.held & ((1 << tableBits) - 1)] ?? 0;
  if (entry === 0) return longSymbolOf(bits, codes);
  drop(bits, entry & 15);
  return entry >> 4;
}

function longSymbolOf(bits: Bits, { counts, symbols }: Codes): number {
  let code = 0;
  let first = 0;
  let place = 0;
  for (let length = 1; length <= longestCode; length++) {
    code |= (bits.held >> (length - 1)) & 1;
    const count = counts[length] ?? 0;
    if (code - first < count) {
      drop(bits, length);
      return symbols[place + code - first] ?? -1;
    }
    place += count;
    first = (first + count) << 1;
    code <<= 1;
  }
  return -1;
}

/** What the codes of a block are read into; those of each block take the place of those before. */
interface Tables {
  readonly ofLengths: Codes;
  readonly literals: Codes;
  readonly distances: Codes;
  readonly lengths: Uint8Array;
}

const newTables = (): Tables => ({
  ofLengths: newCodes(19),
  literals: newCodes(mostLiterals),
  distances: newCodes(mostDistances),
  lengths: new Uint8Array(mostLiterals + mostDistances),
});

/** The codes of a block that names none. */
const fixed = (() => {
  const lengths = Uint8Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
  const codes = { literals: newCodes(288), distances: newCodes(32) };
  assign(codes.literals, lengths, { mayBePart: false });
  assign(codes.distances, new Uint8Array(32).fill(5), { mayBePart: false });
  return codes;
})();

/** The order in which a block says how long the codes of lengths are. */
const lengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Reads the codes that a block begins with. */
function readCodes(bits: Bits, { ofLengths, literals, distances, lengths }: Tables): boolean {
  const literalCount = take(bits, 5) + 257;
  const distanceCount = take(bits, 5) + 1;
  const lengthCount = take(bits, 4) + 4;
  if (literalCount > mostLiterals || distanceCount > mostDistances) return false;
  const own = new Uint8Array(lengthOrder.length);
  for (const symbol of lengthOrder.slice(0, lengthCount)) own[symbol] = take(bits, 3);
  if (!assign(ofLengths, own, { mayBePart: false })) return false;
  const count = literalCount + distanceCount;
  if (!readLengths(bits, ofLengths, lengths.subarray(0, count))) return false;
  return (
    lengths[endOfBlock] !== 0 &&
    assign(literals, lengths.subarray(0, literalCount), { mayBePart: true }) &&
    assign(distances, lengths.subarray(literalCount, count), { mayBePart: true })
  );
}

function readLengths(bits: Bits, codes: Codes, lengths: Uint8Array): boolean {
  for (let at = 0; at < lengths.length;) {
    const symbol = symbolOf(bits, codes);
    if (symbol < 0 || (symbol === 16 && at === 0)) return false;
    const value = symbol < 16 ? symbol : symbol === 16 ? (lengths[at - 1] ?? 0) : 0;
    const times =
      symbol < 16 ? 1 : symbol === 16 ? 3 + take(bits, 2) : symbol === 17 ? 3 + take(bits, 3) : 11 + take(bits, 7);
    if (bits.count < 0 || at + times > lengths.length) return false;
    lengths.fill(value, at, at + times);
    at += times;
  }
  return true;
}

/** Makes room for further bytes, and says whether they may come. */
function makeRoom(out: Output, count: number): boolean {
  const needed = out.length + count;
  if (needed > out.maxBytes) return false;
  if (needed <= out.bytes.length) return true;
  const larger = new Uint8Array(Math.min(out.maxBytes, Math.max(4096, 2 * needed)));
  larger.set(out.bytes.subarray(0, out.length));
  out.bytes = larger;
  return true;
}

const lengthBases = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
];
const lengthExtras = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const distanceBases = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
  8193, 12289, 16385, 24577,
];
const distanceExtra = (symbol: number) => (symbol < 4 ? 0 : (symbol >> 1) - 1);

/** Reads a block's symbols. `from` is where the stream's own bytes begin in the output. */
function readSymbols(
  bits: Bits,
  codes: Pick<Tables, "literals" | "distances">,
  out: Output,
  from: number,
): BlockResult {
  for (;;) {
    const symbol = symbolOf(bits, codes.literals);
    if (symbol < 0 || bits.count < 0) return "broken";
    if (symbol === endOfBlock) return "read";
    if (symbol < endOfBlock) {
      if (out.length === out.bytes.length && !makeRoom(out, 1)) return "tooLarge";
      out.bytes[out.length] = symbol;
      out.length += 1;
      continue;
    }
    const base = lengthBases[symbol - 257];
    if (base === undefined) return "broken";
    const length = base + take(bits, lengthExtras[symbol - 257] ?? 0);
    const distanceSymbol = symbolOf(bits, codes.distances);
    const distanceBase = distanceBases[distanceSymbol];
    if (distanceBase === undefined) return "broken";
    const distance = distanceBase + take(bits, distanceExtra(distanceSymbol));
    if (bits.count < 0 || distance > out.length - from) return "broken";
    if (!makeRoom(out, length)) return "tooLarge";
    repeat(out, distance, length);
  }
}

/** Appends bytes that came `distance` before; they may overlap with what is appended. */
function repeat(out: Output, distance: number, length: number): void {
  const { bytes } = out;
  const end = out.length + length;
  for (let at = out.length; at < end; at++) bytes[at] = bytes[at - distance] ?? 0;
  out.length = end;
}

/** Reads a block whose bytes stand as they are, from the next whole byte on. */
function readStored(bits: Bits, out: Output): BlockResult {
  drop(bits, bits.count & 7);
  const length = take(bits, 16);
  const complement = take(bits, 16);
  if (bits.count < 0 || length !== (complement ^ 0xffff)) return "broken";
  // Whole bytes that were taken in already.
  const start = bits.at - (bits.count >> 3);
  if (start + length > bits.bytes.length) return "broken";
  if (!makeRoom(out, length)) return "tooLarge";
  out.bytes.set(bits.bytes.subarray(start, start + length), out.length);
  out.length += length;
  bits.at = start + length;
  bits.held = 0;
  bits.count = 0;
  return "read";
}

/**
 * Decodes one deflate stream of `bytes` that begins at `start`, and appends what it gives to `out`.
 *
 * @returns where the stream ends. `broken`: zlib or Go refuses it, or it is cut off. `tooLarge`: `out` may hold no more.
 */
export function inflate(bytes: Uint8Array, start: number, out: Output): Inflated {
  const bits: Bits = { bytes, at: start, held: 0, count: 0 };
  const from = out.length;
  let tables: Tables | undefined;
  const readBlock = (): BlockResult => {
    const type = take(bits, 2);
    if (type === 0) return readStored(bits, out);
    if (type === 1) return readSymbols(bits, fixed, out, from);
    if (type === 3) return "broken";
    tables ??= newTables();
    return readCodes(bits, tables) ? readSymbols(bits, tables, out, from) : "broken";
  };
  for (;;) {
    const isLast = take(bits, 1) === 1;
    const result = readBlock();
    if (result !== "read") return { verdict: result };
    if (bits.count < 0) return { verdict: "broken" };
    if (isLast) return { verdict: "inflated", end: bits.at - (bits.count >> 3) };
  }
}
