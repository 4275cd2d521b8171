/** Columns that a text takes at most, however wide its terminal is. */
export const widest = 120;

/** Breaks a text at spaces; `indent` columns stand before every line but the first. */
export function wrapped(text: string, indent: number, width: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${" ".repeat(indent)}`);
}
