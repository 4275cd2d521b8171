import { canonicalHost } from "./canonical-host.ts";

/**
 * The addresses that limits count as one client: a single IPv4 address, or the /64 of IPv6 that one client has (RFC
 * 6177). An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) counts as IPv4. Text that is no address is a
 * group of its own.
 *
 * @param address as a socket names it, with or without a zone.
 */
export function sourceGroup(address: string): string {
  const host = canonicalHost(address.split("%", 1)[0] ?? "");
  const groups = host.split(":");
  return groups.length === 8 ? `${groups.slice(0, 4).join(":")}::/64` : host;
}
