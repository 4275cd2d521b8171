import { expect, test } from "vitest";
import type { Part } from "../schema/contract.ts";
import { Turns } from "./turns.ts";

const partOf = (of: string): Part => (of.startsWith("node") ? "nodes" : of.startsWith("admin") ? "cluster" : "others");
const shareOf = (of: string) => ({ of, part: partOf(of) });

/** A loop whose time passes only by the work of its turns. */
function start() {
  let now = 0;
  let rounds = 0;
  let next: { readonly run: () => void; readonly isRound: boolean } | undefined;
  const arrivals: { rounds: number; readonly arrive: () => void }[] = [];
  const turns = new Turns({
    monotonic: () => now,
    next: (run) => (next = { run, isRound: false }),
    afterwards: (run) => (next = { run, isRound: true }),
  });
  const done: string[] = [];
  const signal = new AbortController().signal;
  return {
    done,
    turns,
    rounds: () => rounds,
    passes: (ms: number) => (now += ms),
    /** Waits for a turn, and takes so long in it. */
    work(share: string, ms: number, more?: () => void, until = signal): void {
      void turns.begin(shareOf(share), until).then(
        (outcome) => {
          done.push(outcome === "begun" ? share : outcome);
          now += ms;
          more?.();
        },
        () => done.push(`${share} left`),
      );
    },
    /** Something arrives some rounds of the loop later. */
    later(rounds: number, arrive: () => void): void {
      arrivals.push({ rounds, arrive });
    },
    async run(): Promise<void> {
      for (; next !== undefined; await new Promise((resolve) => setImmediate(resolve))) {
        const { run, isRound } = next;
        next = undefined;
        if (isRound) {
          rounds += 1;
          for (const arrival of arrivals) if (--arrival.rounds === 0) arrival.arrive();
        }
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

test("turns that are short follow each other before what has arrived is read [apiserver-turns-5]", async () => {
  const { done, work, run, rounds } = start();
  for (let index = 0; index < 100; index += 1) work(`user-${index % 10}`, 1);
  await run();
  expect(done).toHaveLength(100);
  expect(rounds()).toBeGreaterThanOrEqual(20);
  expect(rounds()).toBeLessThan(30);
});

test("of one user only so many requests wait, and those of others do [apiserver-turns-6]", async () => {
  const { done, work, run } = start();
  for (let index = 0; index < 1_100; index += 1) work("eve", 0);
  work("bob", 0);
  await run();
  const count = (of: string) => done.filter((one) => one === of).length;
  expect([count("eve"), count("tooMany"), count("bob")]).toEqual([1_000, 100, 1]);
  done.length = 0;
  work("eve", 0);
  await run();
  expect(done).toEqual(["eve"]);
});

test("who goes away waits no longer, takes nobody's place and has no turn [apiserver-turns-7]", async () => {
  const { done, work, run } = start();
  const controller = new AbortController();
  for (let index = 0; index < 1_000; index += 1) work("eve", 0, undefined, controller.signal);
  controller.abort(new Error("gone"));
  work("eve", 0, undefined, controller.signal);
  work("eve", 0);
  await run();
  const count = (of: string) => done.filter((one) => one === of).length;
  expect([count("eve"), count("tooMany"), count("eve left")]).toEqual([1, 0, 1_001]);
});

test("a request that has begun is before those of its user that have not, and after one turn of another [apiserver-turns-8]", async () => {
  const { done, turns, run, passes } = start();
  const signal = new AbortController().signal;
  /** A request of several turns, of which each takes a while. */
  const list = async (share: string, name: string) => {
    await turns.begin(shareOf(share), signal);
    for (let part = 1; part <= 3; part += 1) {
      done.push(`${name}${part}`);
      passes(10);
      if (part < 3) await turns.goOn(shareOf(share), signal);
    }
  };
  const lists = [list("eve", "a"), list("eve", "b"), list("bob", "c")];
  await run();
  await Promise.all(lists);
  expect(done).toEqual(["a1", "c1", "a2", "c2", "a3", "c3", "b1", "b2", "b3"]);
});

test("a request whose client went away has no further turn [apiserver-turns-9]", async () => {
  const { turns, run, work, done } = start();
  const controller = new AbortController();
  const list = turns.begin(shareOf("eve"), controller.signal).then(async () => {
    work("eve", 1);
    controller.abort(new Error("gone"));
    await turns.goOn(shareOf("eve"), controller.signal);
  });
  const gone = expect(list).rejects.toThrow("gone");
  await run();
  await gone;
  const waits = turns.goOn(shareOf("eve"), AbortSignal.abort(new Error("gone before")));
  await expect(waits).rejects.toThrow("gone before");
  expect(done).toEqual(["eve"]);
});

test("the components of the cluster have a third of the time, however many machines and users there are [apiserver-turns-10]", async () => {
  const { done, work, run } = start();
  const again = (share: string, times: number) => {
    if (times > 0) work(share, 10, () => again(share, times - 1));
  };
  for (let index = 0; index < 30; index += 1) again(`node:${index}`, 4);
  for (let index = 0; index < 30; index += 1) again(`user-${index}`, 4);
  again("admin", 20);
  await run();
  const last = done.lastIndexOf("admin");
  expect(last).toBeGreaterThanOrEqual(57);
  expect(last).toBeLessThanOrEqual(62);
  // Within its part, each has the same.
  expect(new Set(done.slice(0, last).filter((of) => partOf(of) === "nodes")).size).toBeGreaterThanOrEqual(19);
});

test("of all users only so many have something half made, and short requests of others wait for none of these [apiserver-turns-11]", async () => {
  const { done, turns, run, passes, work } = start();
  const signal = new AbortController().signal;
  const halfMade = new Set<string>();
  let most = 0;
  const list = async (share: string, until = signal) => {
    await turns.begin(shareOf(share), until);
    for (let part = 2; part <= 5; part += 1) {
      passes(10);
      await turns.goOn(shareOf(share), until);
      halfMade.add(share);
      most = Math.max(most, halfMade.size);
    }
    halfMade.delete(share);
    done.push(share);
  };
  const gone = new AbortController();
  const left = Array.from({ length: 20 }, (_, index) =>
    list(`gone-${index}`, gone.signal).catch(() => halfMade.clear()),
  );
  const lists = Array.from({ length: 20 }, (_, index) => list(`user-${index}`));
  const nodes = Array.from({ length: 20 }, (_, index) => turns.begin(shareOf(`node-${index}`), signal));
  // Who goes away gives the place to another.
  work("admin", 200, () => gone.abort(new Error("gone")));
  work("short", 1);
  await run();
  await Promise.all([...left, ...lists, ...nodes]);
  expect(most).toBe(8);
  expect(done.slice(0, 2)).toEqual(["admin", "short"]);
  expect(done).toHaveLength(22);
});

test("a user whose long list waits for those of others has short requests answered meanwhile, and few further lists begun [apiserver-turns-12]", async () => {
  const { done, turns, run, passes, work } = start();
  const signal = new AbortController().signal;
  let turnsTaken = 0;
  const begun = new Set<number>();
  let most = 0;
  const lists: Promise<void>[] = [];
  let waited: number | undefined;
  const askAsBob = () => {
    const asked = turnsTaken;
    lists.push(list("bob", 3));
    work("bob", 1, () => {
      waited = turnsTaken - asked;
      for (let id = 1; id <= 20; id += 1) lists.push(list("bob", 3, id));
    });
  };
  const list = async (share: string, length: number, id = 0) => {
    await turns.begin(shareOf(share), signal);
    for (let turn = 1; turn < length; turn += 1) {
      turnsTaken += 1;
      passes(10);
      if (share === "bob") most = Math.max(most, begun.add(id).size);
      // All of these hold their places by now.
      if (share === "eve-7" && turn === 5) askAsBob();
      await turns.goOn(shareOf(share), signal);
      if (share === "bob") begun.delete(id);
    }
    done.push(share);
  };
  for (let index = 0; index < 8; index += 1) lists.push(list(`eve-${index}`, 50));
  await run();
  await Promise.all(lists);
  expect(waited).toBeLessThan(20);
  expect(most).toBe(4);
  expect(done.filter((of) => of === "bob")).toHaveLength(22);
});

test("of a user who waited with several long lists, one is half made at a time [apiserver-turns-13]", async () => {
  const { done, turns, run, passes } = start();
  const signal = new AbortController().signal;
  const halfMade = new Set<string>();
  let most = 0;
  const list = async (share: string, name: string, length: number) => {
    await turns.begin(shareOf(share), signal);
    for (let turn = 1; turn <= length; turn += 1) {
      await turns.goOn(shareOf(share), signal);
      passes(10);
      if (share === "bob") most = Math.max(most, halfMade.add(name).size);
    }
    halfMade.delete(name);
    done.push(name);
  };
  const others = Array.from({ length: 8 }, (_, index) => list(`eve-${index}`, `eve-${index}`, 20));
  const own = Array.from({ length: 6 }, (_, index) => list("bob", `bob-${index}`, 5));
  await run();
  await Promise.all([...others, ...own]);
  expect(done).toHaveLength(14);
  expect(most).toBe(1);
});
