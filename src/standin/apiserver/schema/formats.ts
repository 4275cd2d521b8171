import { parseQuantity } from "../../../api/schema/quantities.ts";

/**
 * Formats of strings that a schema may name; others are not checked, as in Kubernetes:
 * kubernetes/kube-openapi pkg/validation/strfmt (master).
 */
export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text),
  cidr: isCidr,
  date: isDate,
  "date-time": isTimestamp,
  datetime: isTimestamp,
  duration: (text) =>
    /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(text) ||
    /^[-+]?0$/.test(text) ||
    /^\d+ ?(?:ns|us|ms|[smhdw]|seconds?|minutes?|hours?|days?|weeks?)$/i.test(text),
  email: (text) => /^[^\s@<>]+@[^\s@<>]+$/.test(text),
  hostname: (text) =>
    text.length <= 255 &&
    /^(?:[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?\.?$/.test(text),
  ipv4: isIPv4,
  ipv6: isIPv6,
  mac: (text) => /^(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$/.test(text),
  /** Our own format, for built-in kinds: no CustomResourceDefinition uses it. */
  quantity: (text) => parseQuantity(text) !== undefined,
  uri: (text) => /^[A-Za-z][-A-Za-z0-9+.]*:\S+$/.test(text) || text.startsWith("/"),
  uuid: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
};

/** A day of the calendar: JavaScript takes the 30th of February for the 2nd of March. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** RFC 3339 */
export function isTimestamp(text: string): boolean {
  return (
    /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[-+]\d{2}:\d{2})$/.test(text) &&
    isDate(text.slice(0, 10)) &&
    !Number.isNaN(Date.parse(text))
  );
}

/** Four decimal numbers without leading zeros. */
export function isIPv4(text: string): boolean {
  return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(text);
}

/** Without zone. */
export function isIPv6(text: string): boolean {
  let rest = text;
  const dotted = /^(.*:)([\d.]+)$/.exec(rest);
  if (dotted !== null) {
    if (!isIPv4(dotted[2] ?? "")) {
      if ((dotted[2] ?? "").includes(".")) return false;
    } else rest = `${dotted[1] ?? ""}0:0`;
  }
  const halves = rest.split("::");
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return false;
  return halves.length === 2 ? groups.length <= 7 : groups.length === 8;
}

/** Address and length of the prefix. */
export function isCidr(text: string): boolean {
  const split = /^([^/]+)\/(\d{1,3})$/.exec(text);
  if (split === null) return false;
  const [, address = "", length = ""] = split;
  if (/^0\d/.test(length)) return false;
  return (isIPv4(address) && Number(length) <= 32) || (isIPv6(address) && Number(length) <= 128);
}
