import { groupsOfIpv6 } from "../../ignition/ipv6.ts";

/**
 * The addresses that limits count as one client: a single IPv4 address, or the /64 of IPv6 that one client has (RFC
 * 6177). An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) counts as IPv4. Text that is no address is a
 * group of its own.
 *
 * @param address as a socket names it, with or without a zone.
 */
export function sourceGroup(address: string): string {
  const plain = address.split("%", 1)[0] ?? "";
  if (!plain.includes(":")) return plain;
  const groups = groupsOfIpv6(plain);
  if (groups === undefined) return plain;
  const [, , , , , mark = 0, high = 0, low = 0] = groups;
  if (mark === 0xff_ff && groups.slice(0, 5).every((group) => group === 0))
    return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}
