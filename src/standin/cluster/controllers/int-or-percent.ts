/** The number that an `IntOrString` means: itself, or its share of `total`. `fallback` if it is no number. */
export function intOrPercent(
  value: number | string | undefined,
  total: number,
  round: "up" | "down",
  fallback = 0,
): number {
  if (value === undefined) return fallback;
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  if (percent === undefined) return /^\d+$/.test(value) ? Number(value) : fallback;
  const exact = (Number(percent) * total) / 100;
  return round === "up" ? Math.ceil(exact) : Math.floor(exact);
}
