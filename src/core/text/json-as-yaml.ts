import { hasUnprintable } from "./kubernetes-yaml.ts";
import { findField } from "./repeated-field.ts";

/** A longer key may end YAML's search for its colon: it looks back 1,024 characters (yaml/go-yaml scannerc.go, v2). */
const longestKey = 1000;

/**
 * What YAML writes or reads otherwise than JSON: line ends and tabs, half of a character, `\/`, which YAML 1.1 does not know,
 * the key that merges, and the negative zero, which is an integer there.
 */
const different = /[\t\r\n]|\\\/|\\u[dD][89a-fA-F]|"<<"|-0(?![.\d])/;

/**
 * The value of a text that is JSON on one line, as machines write it, and that means the same as YAML: reading it as JSON
 * costs a small part of reading it as YAML. `undefined`: it has to be read as YAML.
 */
export function readJsonOfYaml(text: string): { readonly value: unknown } | undefined {
  if (text[0] !== "{" || text.at(-1) !== "}" || different.test(text) || hasUnprintable(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const field = findField(text, ({ isRepeated, length }) => isRepeated || length > longestKey);
  return field === undefined ? { value } : undefined;
}
