/** Wall time in milliseconds as Kubernetes writes it, to the second. */
export const timestamp = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;

/** Milliseconds of a timestamp; `undefined` when it is absent or no time. */
export function millisecondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}
