import { strFromU8, strToU8 } from "fflate";
import { gunzip } from "./gunzip.ts";
import type { Resource } from "./types.ts";

/** A parsed data URL, its payload still encoded. */
export type DataUrl =
  | {
      readonly verdict: "parsed";
      readonly mediaType: string;
      readonly encoding: "base64" | "percent";
      readonly payload: string;
    }
  | { readonly verdict: "invalid"; readonly reason: string };

const invalid = (reason: string) => ({ verdict: "invalid", reason }) as const;

const token = "[!#$%&'*+\\-.0-9A-Z^_`a-z{|}~]";
const mediaTypeStart = new RegExp(
  `(?:(?:text|image|audio|video|application|message|multipart)${token}*|[xX]-${token}*)/${token}*(?=[;,])`,
  "y",
);
const parameterName = new RegExp(`;(${token}+)(?=[=,])`, "y");
const parameterValue = new RegExp(
  `=(?:(${token}+)|"((?:[^"\\\\\\u0080-\\u{10ffff}]|\\\\[\\u0000-\\u007f])*)")(?=[;,])`,
  "yu",
);
const percentPayload = /^[!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]*$/;
const badEscape = /%(?![0-9A-Fa-f]{2})/;

/**
 * Parses a data URL exactly as strictly as the parser of the reference: vincent-petithory/dataurl lex.go, as vendored
 * in openshift/machine-config-operator (main).
 */
export function parseDataUrl(url: string): DataUrl {
  if (!url.startsWith("data:")) return invalid("a data URL starts with data:");
  let position = 5;
  let mediaType = "";
  mediaTypeStart.lastIndex = position;
  const start = mediaTypeStart.exec(url);
  if (start !== null) {
    mediaType = start[0];
    position = mediaTypeStart.lastIndex;
  }
  for (;;) {
    const next = url[position];
    if (next === ",") return payloadOf(url, position + 1, mediaType, "percent");
    if (next === undefined) return invalid("the data URL has no comma before its data");
    parameterName.lastIndex = position;
    const name = parameterName.exec(url);
    if (name === null)
      return invalid(`the data URL has an invalid media type or parameter at character ${position + 1}`);
    position = parameterName.lastIndex;
    if (url[position] === ",") {
      if (name[1] !== "base64") return invalid(`the data URL has the parameter ${name[1]} without a value`);
      return payloadOf(url, position + 1, mediaType, "base64");
    }
    parameterValue.lastIndex = position;
    const value = parameterValue.exec(url);
    if (value === null || (value[1] !== undefined && badEscape.test(value[1])))
      return invalid(`the data URL's parameter ${name[1]} has an invalid value`);
    mediaType += `;${name[1]}=${value[1] ?? value[2] ?? ""}`;
    position = parameterValue.lastIndex;
  }
}

function payloadOf(url: string, from: number, mediaType: string, encoding: "base64" | "percent"): DataUrl {
  let payload = url.slice(from);
  if (encoding === "percent") {
    if (!percentPayload.test(payload))
      return invalid("the data URL's data has a character that must be percent-encoded");
    if (badEscape.test(payload))
      return invalid("the data URL's data has a percent sign without two hexadecimal digits");
  } else {
    if (payload.includes("\n")) payload = payload.replaceAll("\n", "");
    if (payload.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(payload))
      return invalid("the data URL's data is not base64");
  }
  return { verdict: "parsed", mediaType, encoding, payload };
}

/** The bytes that a parsed data URL carries. */
export function bytesOf(url: DataUrl & { readonly verdict: "parsed" }): Uint8Array {
  return url.encoding === "base64" ? decodeBase64(url.payload) : decodePercent(url.payload);
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const sextets = new Uint8Array(128);
for (let i = 0; i < 64; i++) sextets[alphabet.charCodeAt(i)] = i;

/** `text` is valid base64 without line breaks. */
export function decodeBase64(text: string): Uint8Array {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  const six = (i: number) => sextets[text.charCodeAt(i)] ?? 0;
  for (let i = 0, out = 0; i < text.length; i += 4) {
    const quad = (six(i) << 18) | (six(i + 1) << 12) | (six(i + 2) << 6) | six(i + 3);
    bytes[out++] = quad >> 16;
    if (out < bytes.length) bytes[out++] = (quad >> 8) & 255;
    if (out < bytes.length) bytes[out++] = quad & 255;
  }
  return bytes;
}

/** `text` is ASCII with valid escapes. */
function decodePercent(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  let out = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 37) {
      bytes[out++] = Number.parseInt(text.slice(i + 1, i + 3), 16);
      i += 2;
    } else bytes[out++] = code;
  }
  return bytes.subarray(0, out);
}

export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const [a = 0, b, c] = [bytes[i], bytes[i + 1], bytes[i + 2]];
    const triple = (a << 16) | ((b ?? 0) << 8) | (c ?? 0);
    text += `${alphabet[triple >> 18]}${alphabet[(triple >> 12) & 63]}${b === undefined ? "=" : alphabet[(triple >> 6) & 63]}${c === undefined ? "=" : alphabet[triple & 63]}`;
  }
  return text;
}

/** Encodes contents as a data URL: text percent-encoded and readable, bytes as base64. `decodeContents` reverses it. */
export function encodeDataUrl(contents: string | Uint8Array): string {
  if (typeof contents !== "string") return `data:;base64,${encodeBase64(contents)}`;
  return `data:,${encodeURIComponent(contents.toWellFormed())}`;
}

/** The result of `decodeContents`. */
export type Contents =
  | { readonly verdict: "decoded"; readonly bytes: Uint8Array }
  | { readonly verdict: "refused"; readonly because: "remote" | "invalid" | "tooLarge"; readonly reason: string };

/**
 * Default limit of decoded contents; a MachineConfig holds 1.5 MiB at most, so more is a compression bomb or a mistake.
 */
export const defaultMaxBytes = 16 * 1024 * 1024;

/**
 * The bytes of a file, certificate or key that a config carries inline.
 *
 * An absent source means no bytes. Remote sources are refused as `remote`: a running machine does not fetch them.
 * Memory stays within a small multiple of `maxBytes`, whatever size the compressed data claims, and time is in proportion to
 * the length of the source and of the bytes.
 */
export function decodeContents(resource: Resource | undefined, options: { readonly maxBytes?: number } = {}): Contents {
  return decodeMeasured(resource, options.maxBytes ?? defaultMaxBytes).contents;
}

/** Default limit of what all compressed contents of one config weigh together: many small bombs add up. */
export const defaultMaxTotalBytes = 32 * 1024 * 1024;

const refuse = (because: "remote" | "invalid" | "tooLarge", reason: string) =>
  ({ verdict: "refused", because, reason }) as const;

/** Contents, and what decompressing them took: bytes that were written, and the input in such bytes. */
export interface Measured {
  readonly contents: Contents;
  readonly written: number;
  readonly read: number;
}

/** Whether a source of so many characters is too long for so many bytes: each character gives at least a third of one. */
export const isLongerThan = (source: string, maxBytes: number): boolean => source.length > maxBytes * 3 + 4096;

/** {@link decodeContents}, with what it took. */
export function decodeMeasured(resource: Resource | undefined, maxBytes: number): Measured {
  const { source, compression } = resource ?? {};
  const plain = (contents: Contents): Measured => ({
    contents,
    written: contents.verdict === "decoded" ? contents.bytes.length : 0,
    read: 0,
  });
  if (source === undefined) return plain({ verdict: "decoded", bytes: new Uint8Array(0) });
  if (!source.startsWith("data:")) {
    return plain(
      source === "" || !/^[A-Za-z][A-Za-z0-9+.-]*:/.test(source)
        ? refuse("invalid", "the source is not a data URL")
        : refuse(
            "remote",
            `the source is a ${source.slice(0, source.indexOf(":"))} URL; only data URLs can be applied to a running machine`,
          ),
    );
  }
  if (isLongerThan(source, maxBytes))
    return plain(refuse("tooLarge", `the contents are larger than ${maxBytes} bytes`));
  const url = parseDataUrl(source);
  if (url.verdict === "invalid") return plain(refuse("invalid", url.reason));
  const bytes = bytesOf(url);
  if (compression === undefined || compression === "") {
    return plain(
      bytes.length > maxBytes
        ? refuse("tooLarge", `the contents are larger than ${maxBytes} bytes`)
        : { verdict: "decoded", bytes },
    );
  }
  if (compression !== "gzip")
    return plain(refuse("invalid", `the compression ${JSON.stringify(compression)} is not known; use gzip or none`));
  const { written, read, ...unpacked } = gunzip(bytes, maxBytes);
  const contents =
    unpacked.verdict === "read"
      ? ({ verdict: "decoded", bytes: unpacked.bytes } as const)
      : unpacked.verdict === "tooLarge"
        ? refuse("tooLarge", `the decompressed contents are larger than ${maxBytes} bytes`)
        : refuse("invalid", "the contents are marked as gzip and cannot be decompressed");
  return { contents, written, read };
}

/** The bytes as text, or `undefined` when they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  const decoded = strFromU8(bytes);
  // Decoders drop a byte order mark; files keep it.
  const text =
    bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf && !decoded.startsWith("\ufeff")
      ? `\ufeff${decoded}`
      : decoded;
  // A replacement character is valid only if the bytes contain one.
  if (!text.includes("\ufffd")) return text;
  const again = strToU8(text);
  return again.length === bytes.length && again.every((byte, i) => byte === bytes[i]) ? text : undefined;
}
