import { clipText } from "../../../core/text/clip-text.ts";

/** Texts that an answer lists, and characters of all of them: a request of a few bytes can ask for billions. */
const most = { count: 100, characters: 64 * 1024 } as const;

/** The first texts of a list, of a long one the beginning, and how many there are besides. */
export interface FirstTexts {
  readonly texts: readonly string[];
  readonly left: number;
}

/** @param print one item as text: no item that is not shown is printed. */
export function firstTexts<T>(items: readonly T[], print: (item: T) => string): FirstTexts {
  const texts: string[] = [];
  let characters: number = most.characters;
  for (const item of items.slice(0, most.count)) {
    if (characters <= 0) break;
    const text = print(item);
    texts.push(clipText(text, characters));
    characters -= text.length;
  }
  return { texts, left: items.length - texts.length };
}
