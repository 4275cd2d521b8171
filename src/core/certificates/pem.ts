import { decodeBase64, encodeBase64 } from "../../ignition/data-url.ts";
import { withoutEnd } from "../text/without-end.ts";

/** One block of a PEM text. */
export interface PemBlock {
  readonly label: string;
  /** From `-----BEGIN` to the end of the line `-----END`, with line feeds and without blanks at the ends of lines. */
  readonly text: string;
  readonly der: Uint8Array;
}

export type PemReading =
  | { readonly verdict: "read"; readonly blocks: readonly PemBlock[] }
  | {
      readonly verdict: "unreadable";
      /** A sentence without a final full stop that names the line. */
      readonly problem: string;
    };

const begin = "-----BEGIN ";
const end = "-----END ";
const dashes = "-----";

/**
 * All blocks of a PEM text, of whatever label; text between them is left out.
 *
 * API server, signer and kubelet read PEM with Go's `encoding/pem` (Decode), which passes over a block that it cannot
 * read, and reads some that are unusual. Two readers that pass over different blocks judge different certificates.
 * Therefore a line that opens a block for Go opens one here, and one that cannot be read to its end makes the whole
 * text unreadable. A block that is read here has the bytes that Go reads. Headers (RFC 1421) are refused.
 */
export function readPem(text: string): PemReading {
  const blocks: PemBlock[] = [];
  let open: { readonly label: string; readonly line: number; readonly lines: string[] } | undefined;
  const rows = text.split("\n");
  for (const [index, row] of rows.entries()) {
    // A carriage return belongs to the line feed behind it.
    const line = withoutEnd(index < rows.length - 1 ? row.replace(/\r$/, "") : row, " \t");
    const at = `line ${index + 1}`;
    if (line.startsWith(begin)) {
      if (open !== undefined) return unreadable(`the block of line ${open.line} has no end before ${at}`);
      const label = line.slice(begin.length, -dashes.length);
      if (line !== `${begin}${label}${dashes}` || !isLabel(label))
        return unreadable(`${at} begins a block, but does not end with ${dashes}`);
      open = { label, line: index + 1, lines: [] };
    } else if (open === undefined) {
      if (line.startsWith(end)) return unreadable(`${at} ends a block that no line begins`);
    } else if (line.startsWith(end)) {
      if (line !== `${end}${open.label}${dashes}`)
        return unreadable(`${at} does not end the block ${JSON.stringify(open.label)} of line ${open.line}`);
      const der = strictBase64(open.lines.join("").replaceAll(/[ \t]/g, ""));
      if (der === undefined) return unreadable(`the block of line ${open.line} is not base64`);
      blocks.push({ label: open.label, text: `${begin}${open.label}${dashes}\n${linesOf(open.lines)}${line}\n`, der });
      open = undefined;
    } else if (/^[A-Za-z0-9+/= \t]*$/.test(line)) open.lines.push(line);
    else
      return unreadable(
        line.includes(":")
          ? `the block of line ${open.line} has a header in ${at}, which readers of certificates pass over`
          : `${at}, inside of a block, is not base64`,
      );
  }
  return open === undefined ? { verdict: "read", blocks } : unreadable(`the block of line ${open.line} has no end`);
}

const unreadable = (problem: string): PemReading => ({ verdict: "unreadable", problem });

const isLabel = (label: string) => /^[!-,.-~]([ -,.-~]*[!-,.-~])?$/.test(label);

const linesOf = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join("");

/** `undefined`: another text stands for the same bytes, or it is none of base64 (RFC 4648, 3.5). */
export function strictBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  const bytes = decodeBase64(text);
  return encodeBase64(bytes) === text ? bytes : undefined;
}
