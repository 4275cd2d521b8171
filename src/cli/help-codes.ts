import { reportReasons } from "../api/books/report-table.ts";
import { errorCodes } from "../api/errors.ts";
import { own } from "../api/schema/own.ts";
import { widest, wrapped } from "./wrap-text.ts";

/**
 * The meaning of an error code, or of a reason of books, conditions and alerts, and its remedy; `undefined`: there is none of
 * that name. @param columns of the terminal; never wider than 120.
 */
export function codeHelp(name: string, columns = widest): string | undefined {
  const [code, reason] = [own(errorCodes, name), own(reportReasons, name)];
  const meaning = code?.meaning ?? reason?.means;
  if (meaning === undefined) return undefined;
  const width = Math.min(columns, widest);
  const lead = "what to do: ";
  const remedy = code?.remedy ?? reason?.next ?? "";
  return `${wrapped(meaning, 0, width)}\n\n${lead}${wrapped(remedy === "" ? "nothing" : remedy, lead.length, width)}\n`;
}

/** All codes and reasons. */
export const helpCodes = (): readonly string[] => [...Object.keys(errorCodes), ...Object.keys(reportReasons)];
