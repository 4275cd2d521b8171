/** The eight groups of an IPv6 address; `undefined`: it is none. */
export function groupsOfIpv6(address: string): readonly number[] | undefined {
  const [head = "", tail, more] = address.split("::");
  if (more !== undefined) return undefined;
  const [left, right] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")));
  const last = tail === undefined ? left : right;
  const numbers = (parts: readonly string[] = []) =>
    parts.flatMap((part, index) => numbersOf(part, parts === last && index === parts.length - 1));
  const [before, after] = [numbers(left), numbers(right)];
  const known = [...before, ...after];
  const missing = 8 - known.length;
  if (known.some(Number.isNaN) || (tail === undefined ? missing !== 0 : missing < 1)) return undefined;
  return [...before, ...Array.from({ length: missing }, () => 0), ...after];
}

/** One group, or the two that an IPv4 address at the end stands for. */
function numbersOf(part: string, isLast: boolean): readonly number[] {
  if (!isLast || !part.includes(".")) return [/^[\da-f]{1,4}$/i.test(part) ? Number.parseInt(part, 16) : Number.NaN];
  const bytes = part.split(".").map((byte) => (/^(0|[1-9]\d{0,2})$/.test(byte) ? Number(byte) : 256));
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  if (bytes.length !== 4 || bytes.some((byte) => byte > 255)) return [Number.NaN];
  return [a * 256 + b, c * 256 + d];
}
