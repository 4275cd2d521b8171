import { expect, test } from "vitest";
import { sourceGroup } from "./source-group.ts";

test.for([
  ["an IPv4 address by itself", "192.0.2.1", "192.0.2.1"],
  ["an IPv4 address that is written as IPv6, as IPv4", "::ffff:192.0.2.1", "192.0.2.1"],
  ["one in hexadecimal digits, as IPv4", "::FFFF:c000:201", "192.0.2.1"],
  ["one that is written out, as IPv4", "0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
  ["an IPv6 address with its /64", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["another one of that /64, as the same", "2001:db8:1:2::ffff", "2001:db8:1:2::/64"],
  ["one with leading zeros, as the same", "2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"],
  ["one of the next /64, as another", "2001:db8:1:3::1", "2001:db8:1:3::/64"],
  ["one that is cut at its beginning", "::1", "0:0:0:0::/64"],
  ["one that is cut inside the first half", "2001::5:6:7:8:9", "2001:0:0:5::/64"],
  ["one with a zone, without the zone", "fe80::1%eth0", "fe80:0:0:0::/64"],
  ["an embedded IPv4 address that is not mapped, as IPv6", "64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
  ["text with too many groups, as itself", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8:9"],
  ["text that is cut twice, as itself", "1::2::3", "1::2::3"],
  ["text that is no number, as itself", "::ffff:999.0.2.1", "::ffff:999.0.2.1"],
  ["no address, as itself", "", ""],
] as const)("counts %s [join-source-group-1]", ([, address, group]) => {
  expect(sourceGroup(address)).toBe(group);
});
