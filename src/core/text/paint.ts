/** Colours a text for a terminal; `code` is a parameter of SGR (ECMA-48, 8.3.117). */
export type Paint = (text: string, code: number | string) => string;

const ansi: Paint = (text, code) => `\u001b[${code}m${text}\u001b[0m`;
const none: Paint = (text) => text;

/** `true`: escape sequences; a function: what it makes of them. */
export const paintOf = (colours: boolean | Paint | undefined): Paint =>
  typeof colours === "function" ? colours : colours === true ? ansi : none;
