import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

/** A loop whose time passes only by the work of its turns. */
function start() {
  let now = 0;
  let next: (() => void) | undefined;
  const arrivals: { rounds: number; readonly arrive: () => void }[] = [];
  const turns = new Turns({ monotonic: () => now, afterwards: (run) => (next = run) });
  const done: string[] = [];
  return {
    done,
    /** Waits for a turn, and takes so long in it. */
    work(share: string, ms: number, more?: () => void): void {
      void turns.take(share).then(() => {
        done.push(share);
        now += ms;
        more?.();
      });
    },
    /** Something arrives some rounds of the loop later. */
    later(rounds: number, arrive: () => void): void {
      arrivals.push({ rounds, arrive });
    },
    async run(): Promise<void> {
      for (; next !== undefined; await Promise.resolve()) {
        for (const arrival of arrivals) if (--arrival.rounds === 0) arrival.arrive();
        const run = next;
        next = undefined;
        run();
      }
    },
  };
}

test("a short request waits for one turn of a user whose requests are long [apiserver-turns-1]", async () => {
  const { done, work, run } = start();
  for (let index = 0; index < 4; index += 1) work("eve", 500, index === 1 ? () => work("bob", 1) : undefined);
  await run();
  expect(done).toEqual(["eve", "eve", "bob", "eve", "eve"]);
});

test("what arrived during a long turn is read before the next one [apiserver-turns-4]", async () => {
  const { done, work, run, later } = start();
  // It arrives with the first turn, and is read in the third round of the loop after it.
  work("eve", 500, () => later(3, () => work("bob", 1)));
  work("eve", 500);
  await run();
  expect(done).toEqual(["eve", "bob", "eve"]);
});

test("users whose requests are equally long take turns [apiserver-turns-2]", async () => {
  const { done, work, run } = start();
  for (const share of ["eve", "eve", "eve", "bob", "bob", "bob"]) work(share, 100);
  await run();
  expect(done).toEqual(["eve", "bob", "eve", "bob", "eve", "bob"]);
});

test("what a user took is forgotten [apiserver-turns-3]", async () => {
  const { done, work, run } = start();
  work("eve", 400);
  await run();
  work("carl", 20_000);
  await run();
  done.length = 0;
  // Long ago, and not at all, are the same; who waits longer is first.
  for (const share of ["eve", "bob"]) work(share, 10);
  await run();
  expect(done).toEqual(["eve", "bob"]);
});
