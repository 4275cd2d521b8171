/**
 * A text without those of `characters` that stand at its end, however many. In one pass: a pattern like `/ +$/` begins
 * again at each blank of a run that ends before the text does, and so takes the square of its length.
 */
export function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
