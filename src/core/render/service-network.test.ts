import { describe, expect, test } from "vitest";
import { dnsAddressIn, ipFamiliesOf } from "./service-network.ts";

describe("the address of the cluster's DNS", () => {
  test.for([
    ["172.30.0.0/16", "172.30.0.10"],
    ["10.96.0.0/12", "10.96.0.10"],
    // A network need not be written with its first address.
    ["10.0.0.250/24", "10.0.0.10"],
    ["10.255.255.240/28", "10.255.255.250"],
    ["fd02::/112", "fd02::a"],
    ["2001:db8:0:0:1::/112", "2001:db8::1:0:0:a"],
    ["2001:DB8::1:0:0:0/112", "2001:db8::1:0:0:a"],
    ["::/0", "::a"],
  ] as const)("in %s is %s [render-service-network-1]", ([network, address]) => {
    expect(dnsAddressIn(network)).toBe(address);
  });

  test.for([
    "",
    "172.30.0.0",
    "172.30.0.0/33",
    "256.0.0.0/8",
    "1.2.3/8",
    "10.0.0.0/29",
    "fd02::1::/64",
    "fd02:/64",
    "g::/64",
    "::/129",
    "1:2:3:4:5:6:7:8:9/64",
  ])("there is none in %j", (network) => {
    expect(dnsAddressIn(network)).toBeUndefined();
  });
});

test.for([
  [["172.30.0.0/16"], "IPv4"],
  [["fd02::/112"], "IPv6"],
  [["172.30.0.0/16", "fd02::/112"], "DualStack"],
  [["fd02::/112", "172.30.0.0/16"], "DualStackIPv6Primary"],
] as const)("networks %j are %s [render-service-network-2]", ([networks, families]) => {
  expect(ipFamiliesOf(networks)).toBe(families);
});
