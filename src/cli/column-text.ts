import { greatestOf } from "../api/schema/extremes.ts";

/** Rows of cells as lines, each column as wide as its widest cell. The first row names the columns. */
export function columnText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => greatestOf(rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => {
      const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
      return `${cells.join("  ").trimEnd()}\n`;
    })
    .join("");
}
