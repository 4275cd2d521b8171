export { timestampOf as timestamp } from "../../../api/schema/object.ts";

/** Milliseconds of a timestamp; `undefined` when it is absent or no time. */
export function millisecondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}
