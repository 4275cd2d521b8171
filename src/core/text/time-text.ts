/**
 * Time of day in UTC of milliseconds since the epoch: `11:40:05`; with the day before it where it is another day than
 * `beside`.
 */
export function clockText(at: number, beside?: number): string {
  const text = new Date(at).toISOString();
  const day = beside === undefined ? undefined : new Date(beside).toISOString().slice(0, 10);
  return day === undefined || day === text.slice(0, 10)
    ? text.slice(11, 19)
    : `${text.slice(5, 10)} ${text.slice(11, 19)}`;
}

/** Day and time in UTC, to the second: `2030-01-01 11:40:05Z`. */
export const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
