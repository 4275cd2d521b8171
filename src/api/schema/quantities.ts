/** Characters of a quantity that is read: the work with its digits grows faster than their number. */
const longestQuantity = 1024;

/**
 * Quantities (`100m`, `2Gi`, `1e3`) as integers of billionths: exact for everything that Kubernetes accepts, but for
 * texts beyond any use. kubernetes/apimachinery pkg/api/resource/quantity.go (master)
 */
export function parseQuantity(text: string): bigint | undefined {
  if (text.length > longestQuantity) return undefined;
  const parts = form.exec(text);
  if (parts === null) return undefined;
  const [, sign = "", whole = "", fraction = "", suffix = ""] = parts;
  if (whole === "" && fraction === "") return undefined;
  const exponent = decimalExponent(suffix);
  const digits = BigInt(`${whole}${fraction}`);
  let value: bigint;
  if (exponent === undefined) {
    const scale = 1024n ** BigInt("KMGTPE".indexOf(suffix.charAt(0)) + 1);
    value = roundUp(digits * scale * nano, 10n ** BigInt(fraction.length));
  } else {
    const power = exponent + 9 - fraction.length;
    value = power >= 0 ? digits * 10n ** BigInt(power) : roundUp(digits, 10n ** BigInt(-power));
  }
  return sign === "-" ? -value : value;
}

const form = /^([-+]?)(\d+)?(?:\.(\d*))?(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?\d{1,3})?$/;

/** Most quantities that are written: at most three digits and a suffix. They are as Kubernetes writes them back. */
const short = /^[1-9]\d{0,2}(?:[munkMGTPE]|[KMGTPE]i)?$/;

/** Whether a text is a quantity that is not 0 and as Kubernetes writes it; of some such texts it does not tell. */
export const isShortQuantity = (text: string): boolean => short.test(text);

/** Whether {@link parseQuantity} reads a text; at a fraction of its cost. */
export const isQuantity = (text: string): boolean =>
  short.test(text) || (text.length <= longestQuantity && form.test(text) && /^[-+]?\.?\d/.test(text));

/** Whether a text is a quantity of 0. */
export const isZeroQuantity = (text: string): boolean => !short.test(text) && parseQuantity(text) === 0n;

export const nano = 1_000_000_000n;

function roundUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}

function decimalExponent(suffix: string): number | undefined {
  if (suffix === "") return 0;
  if (suffix.endsWith("i")) return undefined;
  if (/^[eE]./.test(suffix)) return Number(suffix.slice(1));
  return { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }[suffix] ?? 0;
}

/**
 * A quantity as Kubernetes writes it back: with the largest suffix that loses no precision. An unreadable text stays as
 * it is.
 */
export function canonicalQuantity(text: string): string {
  if (short.test(text)) return text;
  const value = parseQuantity(text);
  if (value === undefined || /[eE][-+]?\d/.test(text)) return text;
  if (value === 0n) return "0";
  const size = value < 0n ? -value : value;
  if (text.endsWith("i") && size >= 1024n * nano && size % nano === 0n) {
    const [digits, steps] = reduced(value / nano, 1024n, 6);
    return `${digits}${["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][steps] ?? ""}`;
  }
  const [digits, steps] = reduced(value, 1000n, 9);
  return `${digits}${["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][steps] ?? ""}`;
}

/** How often `base` divides a value, and what is left. */
function reduced(value: bigint, base: bigint, most: number): readonly [bigint, number] {
  let [rest, steps] = [value, 0];
  while (steps < most && rest % base === 0n) [rest, steps] = [rest / base, steps + 1];
  return [rest, steps];
}
