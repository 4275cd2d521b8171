const padded = (value: number) => String(value).padStart(2, "0");

/** How long something took, for people: `412ms`, `12s`, `2m31s`, `3h05m`, `2d03h`. Negative times count as none. */
export function durationText(ms: number): string {
  if (!(ms > 0)) return "0s";
  if (ms < 1000) return `${Math.round(ms) === 1000 ? 999 : Math.round(ms)}ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m${padded(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours}h${padded(minutes % 60)}m` : `${Math.floor(hours / 24)}d${padded(hours % 24)}h`;
}

/** Time of day in UTC of milliseconds since the epoch: `11:40:05`; with the day before it where it is another day than `beside`. */
export function clockText(at: number, beside?: number): string {
  const text = new Date(at).toISOString();
  const day = beside === undefined ? undefined : new Date(beside).toISOString().slice(0, 10);
  return day === undefined || day === text.slice(0, 10) ? text.slice(11, 19) : `${text.slice(5, 10)} ${text.slice(11, 19)}`;
}

/** Day and time in UTC, to the second: `2030-01-01 11:40:05Z`. */
export const momentText = (at: number): string => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
