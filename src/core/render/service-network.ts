/** An address as a number, and how many bits its family has. */
interface Address {
  readonly value: bigint;
  readonly bits: 32 | 128;
}

function addressOf(text: string): Address | undefined {
  if (!text.includes(":")) {
    const bytes = text.split(".");
    if (bytes.length !== 4 || !bytes.every((byte) => /^(0|[1-9]\d{0,2})$/.test(byte) && Number(byte) <= 255))
      return undefined;
    return { value: bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n), bits: 32 };
  }
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head = [], tail = []] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array.from({ length: missing }, () => "0"), ...tail];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return { value: groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n), bits: 128 };
}

/**
 * As RFC 5952 asks for IPv6: lower case, and the longest run of zeros (of at least two, the first of equals) as `::`.
 */
function textOfAddress({ value, bits }: Address): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join(".");
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((value >> BigInt(112 - 16 * index)) & 65_535n).toString(16),
  ).join(":");
  const runs = [...groups.matchAll(/(?<![0-9a-f])0(:0)+(?![0-9a-f])/g)].sort(
    (a, b) => b[0].length - a[0].length || a.index - b.index,
  );
  const [longest] = runs;
  if (longest === undefined) return groups;
  return `${groups.slice(0, longest.index).replace(/:$/, "")}::${groups.slice(longest.index + longest[0].length).replace(/^:/, "")}`;
}

/**
 * The conventional address of the cluster's DNS in a service network, the tenth after the network's own:
 * openshift/installer pkg/types/defaults/installconfig.go, openshift/machine-config-operator pkg/operator/sync.go
 * (main).
 *
 * @param cidr `172.30.0.0/16`, `fd02::/112`
 * @returns `undefined` if the text is not a network, or the network is too small.
 */
export function dnsAddressIn(cidr: string): string | undefined {
  const [, text = "", prefix = ""] = /^([^/]+)\/(\d{1,3})$/.exec(cidr) ?? [];
  const address = addressOf(text);
  if (address === undefined || Number(prefix) > address.bits) return undefined;
  const hostBits = BigInt(address.bits - Number(prefix));
  if (1n << hostBits <= 10n) return undefined;
  return textOfAddress({ value: ((address.value >> hostBits) << hostBits) + 10n, bits: address.bits });
}

export type IpFamilies = "IPv4" | "IPv6" | "DualStack" | "DualStackIPv6Primary";

/** The address families of networks or addresses; the first item decides which family comes first. */
export function ipFamiliesOf(networks: readonly string[]): IpFamilies {
  const [first = "", ...more] = networks.map((network) => (network.includes(":") ? "IPv6" : "IPv4"));
  if (first === "IPv6") return more.includes("IPv4") ? "DualStackIPv6Primary" : "IPv6";
  return more.includes("IPv6") ? "DualStack" : "IPv4";
}
