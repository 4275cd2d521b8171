import type { MetricFamily, Sample } from "./metrics.ts";

/** Bounds in seconds, from fractions of a second to an hour. */
const longBounds: readonly number[] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600];

/** Maximum number of series of one histogram: labels are closed lists and pools, of which there are few. */
const mostSeries = 2000;

/** Distribution of durations, by labels, since the process began. */
export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #labels: readonly string[];
  readonly #bounds: readonly number[];
  readonly #series = new Map<
    string,
    { readonly labels: Sample["labels"]; readonly counts: number[]; count: number; sum: number }
  >();

  /** @param bounds in seconds, ascending; by default up to an hour. */
  constructor(name: string, help: string, labels: readonly string[], bounds = longBounds) {
    this.#name = name;
    this.#help = help;
    this.#labels = labels;
    this.#bounds = bounds;
  }

  observe(labels: Readonly<Record<string, string>>, seconds: number): void {
    const key = this.#labels.map((label) => labels[label] ?? "").join("\n");
    let series = this.#series.get(key);
    if (series === undefined) {
      if (this.#series.size >= mostSeries) return;
      series = {
        labels: Object.fromEntries(this.#labels.map((label) => [label, labels[label] ?? ""])),
        counts: this.#bounds.map(() => 0),
        count: 0,
        sum: 0,
      };
      this.#series.set(key, series);
    }
    const least = Math.max(0, seconds);
    for (const [index, bound] of this.#bounds.entries())
      if (least <= bound) series.counts[index] = (series.counts[index] ?? 0) + 1;
    series.count += 1;
    series.sum += least;
  }

  family(): MetricFamily {
    return {
      name: this.#name,
      help: this.#help,
      type: "histogram",
      labels: this.#labels,
      samples: [...this.#series.values()].flatMap(({ labels, counts, count, sum }): readonly Sample[] => [
        ...this.#bounds.map((bound, index) => ({
          suffix: "_bucket",
          labels: { ...labels, le: String(bound) },
          value: counts[index] ?? 0,
        })),
        { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count },
        { suffix: "_sum", labels, value: sum },
        { suffix: "_count", labels, value: count },
      ]),
    };
  }
}
