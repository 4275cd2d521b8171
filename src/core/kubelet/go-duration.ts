/** Nanoseconds of each unit that Go's `time.ParseDuration` knows. Source: Go, time/format.go (1.24). */
const units: ReadonlyMap<string, number> = new Map([
  ["ns", 1],
  ["us", 1e3],
  ["µs", 1e3],
  ["μs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
  ["m", 60e9],
  ["h", 3600e9],
]);
/** The same of units of one letter, by its code. */
const ofOneLetter = Array.from({ length: 128 }, (_, code) => units.get(String.fromCharCode(code)));
const longestUnit = 2;
const most = 2n ** 63n - 1n;

export const millisecond = 1_000_000n;
export const second = 1_000_000_000n;

/**
 * Nanoseconds of a duration in Go's notation (`1h30m`, `-0.5s`); `undefined`: Go refuses it. A text of megabytes has a
 * million parts, so that each is counted in a number as long as that is exact.
 */
export function parseGoDuration(text: string): bigint | undefined {
  const isNegative = text.startsWith("-");
  let at = isNegative || text.startsWith("+") ? 1 : 0;
  if (at === text.length) return undefined;
  if (at === text.length - 1 && text.endsWith("0")) return 0n;
  const limit = isNegative ? most + 1n : most;
  let [total, exact] = [0n, 0];
  while (at < text.length) {
    const whole = at;
    const wholeEnd = digitsEnd(text, whole);
    const fraction = text.charCodeAt(wholeEnd) === dot ? wholeEnd + 1 : wholeEnd;
    const fractionEnd = digitsEnd(text, fraction);
    if (wholeEnd === whole && fractionEnd === fraction) return undefined;
    at = unitEnd(text, fractionEnd);
    const unit = unitOf(text, fractionEnd, at);
    const count = wholeOf(text, whole, wholeEnd);
    if (unit === undefined || count === undefined) return undefined;
    const rest = fractionEnd === fraction ? 0 : fractionOf(text, fraction, fractionEnd, unit);
    const next = typeof count === "number" ? exact + count * unit + rest : Infinity;
    if (next <= Number.MAX_SAFE_INTEGER) {
      exact = next;
      continue;
    }
    total += BigInt(exact) + BigInt(count) * BigInt(unit) + BigInt(rest);
    exact = 0;
    if (total > limit) return undefined;
  }
  total += BigInt(exact);
  if (total > limit) return undefined;
  return isNegative ? -total : total;
}

const [dot, zero] = [46, 48];

/** Whether a character is a digit: that behind the end of a text is none. */
const isDigit = (code: number): boolean => code >= zero && code <= zero + 9;

function digitsEnd(text: string, from: number): number {
  let at = from;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

function unitEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === dot || isDigit(code)) return at;
  }
  return text.length;
}

function unitOf(text: string, from: number, to: number): number | undefined {
  if (to - from === 1) return ofOneLetter[text.charCodeAt(from)];
  return to - from > longestUnit ? undefined : units.get(text.slice(from, to));
}

/** The number of these digits; `undefined`: no duration has so many. */
function wholeOf(text: string, from: number, to: number): number | bigint | undefined {
  let value = 0;
  for (let at = from; at < to; at += 1) value = value * 10 + text.charCodeAt(at) - zero;
  if (value <= Number.MAX_SAFE_INTEGER) return value;
  if (value > 1e19) return undefined;
  let first = from;
  while (text.charCodeAt(first) === zero) first += 1;
  return BigInt(text.slice(first, to));
}

/** The largest number that one more digit may follow in Go. */
const mostOfFraction = most / 10n;

/** Nanoseconds of these digits behind a dot, with the precision that Go has: that of a float64. */
function fractionOf(text: string, from: number, to: number, unit: number): number {
  let scale = 1;
  let at = from;
  for (; at < to && text.charCodeAt(at) === zero; at += 1) scale *= 10;
  let value = 0;
  for (; at < to && value < 1e14; at += 1) {
    value = value * 10 + text.charCodeAt(at) - zero;
    scale *= 10;
  }
  let long = BigInt(value);
  for (; at < to && long <= mostOfFraction; at += 1) {
    const longer = long * 10n + BigInt(text.charCodeAt(at) - zero);
    if (longer > most + 1n) break;
    long = longer;
    scale *= 10;
  }
  return Math.trunc(Number(long) * (unit / scale));
}

/** A duration as Go prints it: `1h0m0s`, `1.5s`, `100ms`, `0s`. */
export function goDurationText(nanoseconds: bigint): string {
  if (nanoseconds === 0n) return "0s";
  const sign = nanoseconds < 0n ? "-" : "";
  const size = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  const decimal = (unit: bigint): string => {
    const whole = size / unit;
    const fraction = (size % unit)
      .toString()
      .padStart(unit.toString().length - 1, "0")
      .replace(/0+$/, "");
    return fraction === "" ? `${whole}` : `${whole}.${fraction}`;
  };
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < millisecond) return `${sign}${decimal(1_000n)}µs`;
  if (size < second) return `${sign}${decimal(millisecond)}ms`;
  const minutes = size / (60n * second);
  const seconds = size % (60n * second);
  const fraction = (seconds % second).toString().padStart(9, "0").replace(/0+$/, "");
  const tail = `${seconds / second}${fraction === "" ? "" : `.${fraction}`}s`;
  if (minutes === 0n) return `${sign}${tail}`;
  return minutes < 60n ? `${sign}${minutes}m${tail}` : `${sign}${minutes / 60n}h${minutes % 60n}m${tail}`;
}
