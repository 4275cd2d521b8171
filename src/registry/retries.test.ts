import { expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { freshStartBytes, retried, retrySchedule } from "./retries.ts";

const busy = (facts = {}) => new McoError("MCO_IMAGE_UNREACHABLE", { retryable: true, ...facts });

/** Runs attempts with the given results (`undefined`: success) and returns the waits between them. */
async function schedule(
  ends: readonly unknown[],
  chance = 0.5,
  bytes: readonly number[] = [],
): Promise<{ readonly waits: readonly number[]; readonly attempts: number; readonly failed: unknown }> {
  const waits: number[] = [];
  let attempts = 0;
  const sleep = (milliseconds: number) => {
    waits.push(milliseconds);
    return Promise.resolve();
  };
  const attempt = () => {
    attempts += 1;
    const end = ends[attempts - 1];
    return end === undefined ? Promise.resolve() : Promise.reject(end as Error);
  };
  const received = () => bytes.slice(0, attempts).reduce((sum, each) => sum + each, 0);
  const failed = await retried(
    attempt,
    { clock: { ...systemClock, sleep }, random: { ...systemRandom, next: () => chance }, received },
    new AbortController().signal,
  ).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { waits, attempts, failed };
}

test("waits double from one second, for half a minute in total, and end after six failures in a row [registry-retries-1]", async () => {
  const error = busy();
  expect(await schedule(Array.from({ length: 99 }, () => error))).toEqual({
    waits: [1000, 2000, 4000, 8000, 16_000],
    attempts: 6,
    failed: error,
  });
});

test("each wait is spread by a fifth [registry-retries-2]", async () => {
  const ends = [busy(), busy(), busy()];
  expect((await schedule(ends, 0)).waits.map(Math.round)).toEqual([800, 1600, 3200]);
  expect((await schedule(ends, 1)).waits.map(Math.round)).toEqual([1200, 2400, 4800]);
});

test("permanent failures are not retried [registry-retries-3]", async () => {
  const refusal = new McoError("MCO_IMAGE_ABSENT", { retryable: false });
  expect(await schedule([refusal])).toEqual({ waits: [], attempts: 1, failed: refusal });
  const bug = new Error("bug");
  expect(await schedule([busy(), bug])).toMatchObject({ attempts: 2, failed: bug });
});

test("a registry may ask for a longer wait, but not for a very long one [registry-retries-4]", async () => {
  expect(
    (await schedule([busy({ retryAfterMs: 5000 }), busy({ retryAfterMs: 10 }), busy({ retryAfterMs: 9e9 })])).waits,
  ).toEqual([5000, 2000, 60_000]);
});

test("a download with progress may fail any number of times; one without progress may not [registry-retries-5]", async () => {
  const failures = Array.from({ length: 20 }, () => busy());
  expect(
    await schedule(
      [...failures, undefined],
      0.5,
      failures.map(() => freshStartBytes),
    ),
  ).toMatchObject({ attempts: 21, failed: undefined, waits: failures.map(() => 1000) });
  expect(
    (
      await schedule(
        failures,
        0.5,
        failures.map(() => freshStartBytes - 1),
      )
    ).attempts,
  ).toBe(retrySchedule.failures);
});

test("a caller can abort the wait [registry-retries-6]", async () => {
  const stop = new AbortController();
  const reason = new Error("no longer wanted");
  const work = retried(() => Promise.reject(busy()), { clock: systemClock, random: systemRandom }, stop.signal);
  stop.abort(reason);
  await expect(work).rejects.toBe(reason);
});
