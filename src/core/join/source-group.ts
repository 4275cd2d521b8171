/**
 * The addresses that limits count as one client: an IPv4 address by itself, of IPv6 the /64 that one client has for
 * itself (RFC 6177). An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) counts as IPv4. Text that is no
 * address is a group of its own.
 *
 * @param address as a socket names it, with or without a zone.
 */
export function sourceGroup(address: string): string {
  const plain = address.split("%", 1)[0] ?? "";
  if (!plain.includes(":")) return plain;
  const groups = groupsOf(plain);
  if (groups === undefined) return plain;
  const [, , , , , mark = 0, high = 0, low = 0] = groups;
  if (mark === 0xff_ff && groups.slice(0, 5).every((group) => group === 0))
    return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight groups of an IPv6 address; `undefined`: it is none. */
function groupsOf(address: string): readonly number[] | undefined {
  const [head = "", tail, more] = address.split("::");
  if (more !== undefined) return undefined;
  const [left, right] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":").flatMap(numbersOf)));
  const known = [...(left ?? []), ...(right ?? [])];
  const missing = 8 - known.length;
  if (known.some(Number.isNaN) || (tail === undefined ? missing !== 0 : missing < 1)) return undefined;
  return [...(left ?? []), ...Array.from({ length: missing }, () => 0), ...(right ?? [])];
}

/** One group, or the two that an IPv4 address at the end stands for. */
function numbersOf(part: string): readonly number[] {
  if (!part.includes(".")) return [/^[\da-f]{1,4}$/i.test(part) ? Number.parseInt(part, 16) : Number.NaN];
  const bytes = part.split(".").map((byte) => (/^\d{1,3}$/.test(byte) ? Number(byte) : 256));
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  if (bytes.length !== 4 || bytes.some((byte) => byte > 255)) return [Number.NaN];
  return [a * 256 + b, c * 256 + d];
}
