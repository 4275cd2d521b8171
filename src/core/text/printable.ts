/**
 * Characters that move a terminal's cursor, give it commands, hide text or change the order in which it is read: C0 but
 * tab and line feed, DEL, C1, separators of lines, and formatting characters that have no width.
 */
const unprintable =
  // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** In JSON and in quoted YAML this form stands for the character itself, so that documents keep their value. */
const escapeOf = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A text of any number of lines in which nothing but line feeds and tabs controls a terminal. */
export const printable = (text: string): string => text.replaceAll(unprintable, escapeOf);

/** The same for one line of a screen: its line feeds and tabs are shown, too. */
export const printableLine = (line: string): string => printable(line).replaceAll(/[\t\n]/g, escapeOf);
