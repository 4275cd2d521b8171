const units = ["KiB", "MiB", "GiB", "TiB"];

/** A number of bytes for people: `512 bytes`, `1.5 GiB`. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, bytes === 1 ? "byte" : "bytes"];
  for (const next of units) {
    if (value < 1024) break;
    [value, unit] = [value / 1024, next];
  }
  return `${Number(value.toFixed(value < 10 ? 1 : 0))} ${unit}`;
}
