import { strToU8 } from "fflate";

/** A parsed unit file, as far as validation needs it. */
export type ParsedUnit =
  | { readonly verdict: "parsed"; readonly sections: ReadonlySet<string> }
  | { readonly verdict: "invalid"; readonly reason: string };

/** systemd cuts lines at this length, so longer ones are refused instead of silently shortened. */
const lineMax = 2048;
/** The reader's look-ahead determines which long lines are detected, so its size affects the result. */
const bufferSize = 4096;

const newline = 10;
const carriageReturn = 13;

/**
 * Reads unit files with the strictness of coreos/go-systemd unit/deserialize.go (main), which decides what the
 * reference refuses. Sections without any option count as absent, as there.
 */
export function parseUnit(contents: string): ParsedUnit {
  const reader = new UnitReader(strToU8(contents.toWellFormed()));
  const sections = new Set<string>();
  let section: string | undefined;
  try {
    for (;;) {
      reader.guardLineLength();
      const char = reader.char();
      if (char === undefined) return { verdict: "parsed", sections };
      if (char === "[") {
        reader.guardLineLength();
        section = reader.until("]");
        reader.guardLineLength();
        if (!reader.line().blank) throw new Unreadable(`there is text after the section name [${section}]`);
      } else if (char === "#" || char === ";") {
        reader.guardLineLength();
        while (reader.line().continuesComment);
      } else if (section !== undefined && !isSpace(char)) {
        reader.back(char);
        reader.guardLineLength();
        reader.optionName();
        for (;;) {
          reader.guardLineLength();
          const line = reader.line();
          if (line.blank || !line.continues) break;
        }
        sections.add(section);
      }
    }
  } catch (error) {
    if (error instanceof Unreadable) return { verdict: "invalid", reason: error.message };
    throw error;
  }
}

class Unreadable extends Error {}

/** Unicode's White_Space, as in Go's TrimSpace. */
const isSpace = (char: string): boolean =>
  /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/.test(char);

/** Reads through a window of `bufferSize` bytes that is refilled only when it runs out. */
class UnitReader {
  readonly #bytes: Uint8Array;
  #position = 0;
  #windowEnd = 0;
  #breakAhead = -1;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  #refill(): void {
    this.#windowEnd = Math.min(this.#bytes.length, this.#position + bufferSize);
  }

  guardLineLength(): void {
    if (this.#windowEnd - this.#position < lineMax) return;
    // Remember the next line break until it is read: otherwise every character would scan 2 KiB again.
    if (this.#breakAhead >= this.#position && this.#breakAhead < this.#position + lineMax) return;
    for (let i = this.#position; i < this.#position + lineMax; i++) {
      const byte = this.#bytes[i];
      if (byte === newline || byte === carriageReturn) {
        this.#breakAhead = i;
        return;
      }
    }
    throw new Unreadable(`a line is longer than ${lineMax} bytes`);
  }

  /** The next character; `undefined` at the end. */
  char(): string | undefined {
    if (this.#position >= this.#windowEnd) this.#refill();
    const lead = this.#bytes[this.#position];
    if (lead === undefined) return undefined;
    const width = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (this.#position + width > this.#windowEnd) this.#refill();
    let point = width === 1 ? lead : lead & (0xff >> (width + 1));
    for (let i = 1; i < width; i++) point = (point << 6) | ((this.#bytes[this.#position + i] ?? 0) & 0x3f);
    this.#position += width;
    return String.fromCodePoint(point);
  }

  back(char: string): void {
    this.#position -= strToU8(char).length;
  }

  /** The index after the next `byte`, or the end; refills as often as the reference's reader does. */
  #seek(byte: number): number {
    const found = this.#bytes.indexOf(byte, this.#position);
    const target = found < 0 ? this.#bytes.length : found + 1;
    while (this.#windowEnd < target) {
      if (this.#windowEnd - this.#position >= bufferSize) this.#position = this.#windowEnd;
      this.#refill();
    }
    return target;
  }

  /** Text up to `end`, which is required. */
  until(end: string): string {
    const start = this.#position;
    const code = end.charCodeAt(0);
    const stop = this.#seek(code);
    this.#position = stop;
    if (this.#bytes[stop - 1] !== code || stop === start) throw new Unreadable("a section name is not closed with ]");
    return String.fromCharCode(...this.#bytes.subarray(start, Math.min(stop - 1, start + 200)));
  }

  /** The rest of the line. */
  line(): { readonly blank: boolean; readonly continues: boolean; readonly continuesComment: boolean } {
    const start = this.#position;
    const stop = this.#seek(newline);
    this.#position = stop;
    let end = stop;
    // A carriage return is removed only at the end of the file; before a newline it stays.
    if (end > start && this.#bytes[end - 1] === newline) end -= 1;
    else if (end > start && this.#bytes[end - 1] === carriageReturn) end -= 1;
    const backslash = 92;
    const beforeBlank = end > start && this.#bytes[end - 1] === 32 ? end - 1 : end;
    return {
      blank: this.#isBlank(start, end),
      continues: end > start && this.#bytes[end - 1] === backslash,
      continuesComment: beforeBlank > start && this.#bytes[beforeBlank - 1] === backslash,
    };
  }

  #isBlank(start: number, end: number): boolean {
    for (let i = start; i < end; i++) {
      const byte = this.#bytes[i] ?? 0;
      if (byte === 32 || (byte >= 9 && byte <= 13)) continue;
      if (byte < 0x80) return false;
      const width = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      let point = byte & (0xff >> (width + 1));
      for (let k = 1; k < width; k++) point = (point << 6) | ((this.#bytes[i + k] ?? 0) & 0x3f);
      if (!isSpace(String.fromCodePoint(point))) return false;
      i += width - 1;
    }
    return true;
  }

  optionName(): void {
    for (;;) {
      const char = this.char();
      if (char === undefined) throw new Unreadable("the last line has no = after its option name");
      if (char === "\n" || char === "\r") throw new Unreadable("a line has no = after its option name");
      if (char === "=") return;
    }
  }
}
