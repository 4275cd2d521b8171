import { groupsOfIpv6 } from "../../ignition/ipv6.ts";

/**
 * A host as clients compare it: letters of a name have no case and a final dot says nothing (RFC 4343; RFC 1034, 3.1),
 * and an address is the same however it is written: with brackets, with zeros, or as an IPv4 address in IPv6 (RFC 4291,
 * 2.5.5.2). Whatever compares names or addresses of machines compares these.
 *
 * @param host a DNS name or an IP address.
 */
export function canonicalHost(host: string): string {
  const plain = host.replace(/^\[|\]$/g, "").toLowerCase();
  if (!plain.includes(":")) return withoutFinalDots(plain);
  const groups = groupsOfIpv6(plain);
  if (groups === undefined) return plain;
  const [, , , , , mark = 0, high = 0, low = 0] = groups;
  const isIpv4 = mark === 0xff_ff && groups.slice(0, 5).every((group) => group === 0);
  return isIpv4
    ? [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".")
    : groups.map((group) => group.toString(16)).join(":");
}

/** A loop, because an expression would look at each dot of a long run again. */
function withoutFinalDots(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === ".") end -= 1;
  return text.slice(0, end);
}

/** Whether a host is the address of a machine, and no name. */
export const isAddress = (host: string): boolean =>
  host.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(canonicalHost(host));
