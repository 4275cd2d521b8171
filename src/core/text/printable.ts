/**
 * Characters that move a terminal's cursor, give it commands, hide text or change the order in which it is read: C0 but
 * tab and line feed, DEL, C1, separators of lines, and all that Unicode calls formatting characters or shows as nothing.
 */
const unprintable = /(?![\t\n])[\p{Cc}\p{Zl}\p{Zp}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * In JSON and in quoted YAML this form stands for the character itself, so that documents keep their value. JSON writes
 * a character beyond U+FFFF as two.
 */
const escapeOf = (character: string) =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");

/** A YAML text whose strings are in double quotes: a character beyond U+FFFF is one escape there. */
export const printableYaml = (text: string): string =>
  text.replaceAll(unprintable, (character) =>
    character.length === 1 ? escapeOf(character) : `\\U${character.codePointAt(0)?.toString(16).padStart(8, "0")}`,
  );

/** A text of any number of lines in which nothing but line feeds and tabs controls a terminal. */
export const printable = (text: string): string => text.replaceAll(unprintable, escapeOf);

/** The same for one line of a screen: its line feeds and tabs are shown, too. */
export const printableLine = (line: string): string => printable(line).replaceAll(/[\t\n]/g, escapeOf);
