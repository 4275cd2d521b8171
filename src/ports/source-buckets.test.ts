import { expect, test } from "vitest";
import { SourceBuckets } from "./source-buckets.ts";

const limits = { burst: 2, perSecond: 1, sources: 2 } as const;
type Request = readonly [at: number, source: string, wait: number];

test.for<{ readonly title: string; readonly requests: readonly Request[] }>([
  {
    title: "a source has its burst, then waits",
    requests: [
      [0, "a", 0],
      [0, "a", 0],
      [0, "a", 1],
    ],
  },
  {
    title: "a source that was refused loses nothing by asking",
    requests: [
      [0, "a", 0],
      [0, "a", 0],
      [500, "a", 1],
      [1000, "a", 0],
      [1000, "a", 1],
    ],
  },
  {
    title: "a quiet source has its burst again, and no more",
    requests: [
      [0, "a", 0],
      [0, "a", 0],
      [3_600_000, "a", 0],
      [3_600_000, "a", 0],
      [3_600_000, "a", 1],
    ],
  },
  {
    title: "a full memory forgets the source that was quiet longest",
    requests: [
      [0, "a", 0],
      [0, "b", 0],
      [0, "b", 0],
      [0, "a", 0],
      [0, "c", 0],
      [0, "a", 1],
      [0, "b", 0],
    ],
  },
])("$title", ({ requests }) => {
  const buckets = new SourceBuckets(limits);
  expect(requests.map(([at, source]) => buckets.take(source, at))).toEqual(requests.map(([, , wait]) => wait));
  expect(buckets.size).toBeLessThanOrEqual(limits.sources);
});
