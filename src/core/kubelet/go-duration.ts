/** Nanoseconds of each unit that Go's `time.ParseDuration` knows. Source: Go, time/format.go. */
const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const most = 2n ** 63n - 1n;

export const millisecond = 1_000_000n;
export const second = 1_000_000_000n;

/** Nanoseconds of a duration in Go's notation (`1h30m`, `-0.5s`); `undefined`: Go refuses it. */
export function parseGoDuration(text: string): bigint | undefined {
  const signed = /^([-+]?)(.+)$/s.exec(text);
  if (signed === null) return undefined;
  const [, sign = "", rest = ""] = signed;
  if (rest === "0") return 0n;
  let total = 0n;
  let at = 0;
  const part = /(\d*)(?:(\.)(\d*))?([^\d.]+)/y;
  while (at < rest.length) {
    part.lastIndex = at;
    const [all = "", whole = "", , fraction = "", unit = ""] = part.exec(rest) ?? [];
    const scale = Object.hasOwn(units, unit) ? units[unit] : undefined;
    if (scale === undefined || (whole === "" && fraction === "")) return undefined;
    const digits = fraction.slice(0, 18);
    const significant = whole.replace(/^0+/, "");
    // No duration has so many digits, and a number of a million is long in the reading.
    if (significant.length > 19) return undefined;
    total += BigInt(significant === "" ? "0" : significant) * scale;
    if (digits !== "") total += (BigInt(digits) * scale) / 10n ** BigInt(digits.length);
    if (total > (sign === "-" ? most + 1n : most)) return undefined;
    at += all.length;
  }
  return sign === "-" ? -total : total;
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
