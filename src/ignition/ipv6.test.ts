import { expect, test } from "vitest";
import { groupsOfIpv6 } from "./ipv6.ts";

test.for([
  { address: "::", groups: [0, 0, 0, 0, 0, 0, 0, 0] },
  { address: "fd00::1", groups: [0xfd00, 0, 0, 0, 0, 0, 0, 1] },
  { address: "::ffff:1.2.3.4", groups: [0, 0, 0, 0, 0, 0xffff, 0x102, 0x304] },
  { address: "1:2:3:4:5:6:1.2.3.4", groups: [1, 2, 3, 4, 5, 6, 0x102, 0x304] },
  // An IPv4 address stands at the end alone (RFC 4291, 2.2).
  { address: "1.2.3.4::", groups: undefined },
  { address: "1:1.2.3.4:4:5:6:7:8", groups: undefined },
  { address: "1.2.3.4:3:4:5:6:1.2.3.4", groups: undefined },
  { address: "1.2.3.4", groups: undefined },
])("$address has the groups that it says, or is no address [ignition-ipv6-1]", ({ address, groups }) =>
  expect(groupsOfIpv6(address)).toEqual(groups),
);
