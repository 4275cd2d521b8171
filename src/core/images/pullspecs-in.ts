const digest = /@sha256:[0-9a-f]{64}/g;
/** What does not belong to the name of an image. */
const ends = /[\s"'\\,;]/;

/**
 * Names of images by digest that stand anywhere in a text, each as far to the left as it may go. In one pass, whoever wrote
 * the text: a pattern that begins with the name would look for a digest behind each character of it.
 */
export function pullspecsIn(text: string): readonly string[] {
  const found: string[] = [];
  let behind = 0;
  for (const { 0: match, index } of text.matchAll(digest)) {
    let start = index;
    while (start > behind && !ends.test(text.charAt(start - 1))) start -= 1;
    while (start < index && !/[A-Za-z0-9]/.test(text.charAt(start))) start += 1;
    behind = index + match.length;
    if (start < index) found.push(text.slice(start, behind));
  }
  return found;
}
