import { groupsOfIpv6 } from "./ipv6.ts";

/** A URL, as far as Ignition interprets it. */
export interface ParsedUrl {
  /** Lower case; "" when there is none. */
  readonly scheme: string;
  /** The part after `scheme:` of a URL without a slash there. */
  readonly opaque: string;
  /** Query without its question mark, still escaped. */
  readonly query: string;
  /** The URL serialized again, with missing escapes added. */
  readonly text: string;
}

const hexPair = /^[0-9A-Fa-f]{2}$/;
const badEscape = (text: string): boolean => {
  for (let i = text.indexOf("%"); i >= 0; i = text.indexOf("%", i + 3))
    if (!hexPair.test(text.slice(i + 1, i + 3))) return true;
  return false;
};

/** Characters allowed unescaped in each part; all others are percent-encoded when a part is serialized. */
const pathSafe = /^[A-Za-z0-9\-_.~$&+,/:;=@!'()*[\]%]*$/;
const fragmentSafe = /^[A-Za-z0-9\-_.~$&+,/:;=?@!'()*[\]%]*$/;
const escapedWith = (text: string, safe: RegExp): string =>
  safe.test(text)
    ? text
    : Array.from(text, (char) =>
        safe.test(char)
          ? char
          : encodeURIComponent(char.toWellFormed()).replace(
              /[!'()*]/g,
              (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
            ),
      ).join("");

/** Escapes stand for bytes that could be written as they are, and for blanks. */
const zoneIsBad = (zone: string): boolean =>
  badEscape(zone) ||
  // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
  /[\x00-\x20#%/?@\\^`{|}\x7f]/.test(
    zone.replace(/%(?:25|20|2[1246789a-eA-E]|3[0-9a-eA-E]|4[1-9a-fA-F]|5[0-9abdfABDF]|6[1-9a-fA-F]|7[0-9aeAE])/g, ""),
  );

const hostIsBad = (scheme: string, authority: string): boolean => {
  const user = authority.lastIndexOf("@");
  if (
    user >= 0 &&
    (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(authority.slice(0, user)) || badEscape(authority.slice(0, user)))
  )
    return true;
  const host = authority.slice(user + 1);
  const bracket = host.lastIndexOf("[");
  if (bracket > 0) return true;
  if (bracket === 0) {
    const [, address, zone = ""] = /^\[([0-9A-Fa-f:.]+)(%25.+)?\](?::[0-9]*)?$/s.exec(host) ?? [];
    return address === undefined || groupsOfIpv6(address) === undefined || zoneIsBad(zone);
  }
  const colon = scheme === "http" || scheme === "https" ? host.indexOf(":") : host.lastIndexOf(":");
  if (colon >= 0 && !/^:[0-9]*$/.test(host.slice(colon))) return true;
  // Escapes of ASCII control characters are refused in hosts, as are characters that must be escaped there.
  const escapesAscii = /%[0-7][0-9A-Fa-f]/.test(host.replaceAll("%25", ""));
  // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
  const needsEscape = /[\x00-\x20#%/?@\\^`{|}\x7f]/.test(host.replace(/%[0-9A-Fa-f]{2}/g, ""));
  return badEscape(host) || escapesAscii || needsEscape;
};

/**
 * Splits a URL as Go's net/url does, because that determines which sources a config may name. `undefined` if invalid.
 * Source: golang/go src/net/url/url.go (release-branch.go1.26).
 */
export function parseUrl(url: string): ParsedUrl | undefined {
  const hash = url.indexOf("#");
  const main = hash < 0 ? url : url.slice(0, hash);
  const fragment = hash < 0 ? "" : url.slice(hash + 1);
  // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
  if (/[\x00-\x1f\x7f]/.test(main) || badEscape(fragment)) return undefined;
  const tail = fragment === "" ? "" : `#${escapedWith(fragment, fragmentSafe)}`;

  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*)?:/.exec(main);
  if (scheme !== null && scheme[1] === undefined) return undefined;
  const name = (scheme?.[1] ?? "").toLowerCase();
  const rest = main.slice(scheme?.[0].length ?? 0);
  const mark = rest.indexOf("?");
  const before = mark < 0 ? rest : rest.slice(0, mark);
  const query = mark < 0 ? "" : rest.slice(mark + 1);
  const asked = mark < 0 || (query === "" && rest.indexOf("?", mark + 1) >= 0) ? "" : `?${query}`;
  if (!before.startsWith("/")) {
    if (name !== "") return { scheme: name, opaque: before, query, text: `${name}:${before}${asked}${tail}` };
    if ((before.split("/", 1)[0] ?? "").includes(":")) return undefined;
  }
  let path = before;
  let authority = "";
  const hasAuthority = before.startsWith("//") && (name !== "" || !before.startsWith("///"));
  if (hasAuthority) {
    const slash = before.indexOf("/", 2);
    authority = slash < 0 ? before.slice(2) : before.slice(2, slash);
    path = slash < 0 ? "" : before.slice(slash);
    if (hostIsBad(name, authority)) return undefined;
  }
  if (badEscape(path)) return undefined;
  const hasText = authority !== "" || path !== "";
  const start = `${name === "" ? "" : `${name}:`}${hasAuthority && hasText ? `//${authority}` : ""}`;
  return { scheme: name, opaque: "", query, text: `${start}${escapedWith(path, pathSafe)}${asked}${tail}` };
}
