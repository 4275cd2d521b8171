/** A field of a JSON text. */
interface Field {
  readonly name: string;
  /** Characters of its name in the text, quotes and escapes included. */
  readonly length: number;
  /** Whether its object has it before. */
  readonly isRepeated: boolean;
}

/**
 * The first field that an object of a JSON text has twice: `JSON.parse` takes the later one, other readers the earlier one
 * or both. `text` has been parsed before.
 */
export const repeatedField = (text: string): string | undefined =>
  findField(text, ({ isRepeated }) => isRepeated)?.name;

/** The first field of a JSON text that is asked for. `text` has been parsed before. */
export function findField(text: string, isIt: (field: Field) => boolean): Field | undefined {
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === "{") open.push(new Set());
    else if (char === "[") open.push(undefined);
    else if (char === "}" || char === "]") open.pop();
    else if (char === '"') {
      const end = endOfString(text, i);
      const siblings = isFieldBefore(text, end) ? open.at(-1) : undefined;
      if (siblings !== undefined) {
        const name = JSON.parse(text.slice(i, end)) as string;
        const field = { name, length: end - i, isRepeated: siblings.has(name) };
        if (isIt(field)) return field;
        siblings.add(name);
      }
      i = end - 1;
    }
  }
  return undefined;
}

/** Behind the closing quote. A regular expression would need a stack as deep as the string is long. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text[first - 1] === "\\") first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

function isFieldBefore(text: string, end: number): boolean {
  let at = end;
  while (/^\s$/.test(text[at] ?? "")) at += 1;
  return text[at] === ":";
}
