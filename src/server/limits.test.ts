import { expect, test } from "vitest";
import { systemClock } from "../ports/node/system-clock.ts";
import { Limits } from "./limits.ts";

function limits(more: Partial<ConstructorParameters<typeof Limits>[1]> = {}) {
  let now = 0;
  const made = new Limits(
    { ...systemClock, monotonic: () => now },
    { burst: 3, perSecond: 2, sources: 100, answers: 2, answersOfOneSource: 2, ...more },
  );
  return { made, pass: (milliseconds: number) => void (now += milliseconds) };
}

test("a source has a burst, then a rate; other sources do not wait for it [server-limits-1]", () => {
  const { made, pass } = limits();
  expect([1, 2, 3, 4].map(() => made.take("192.0.2.1"))).toEqual([0, 0, 0, 1]);
  expect(made.take("192.0.2.2")).toBe(0);
  pass(500);
  expect([made.take("192.0.2.1"), made.take("192.0.2.1")]).toEqual([0, 1]);
  pass(3_600_000);
  expect([1, 2, 3, 4].map(() => made.take("192.0.2.1"))).toEqual([0, 0, 0, 1]);
});

test.for([
  ["2001:db8::1", "2001:db8:0:0:ffff::9", true],
  ["2001:db8:1::1", "2001:db8:2::1", false],
  ["::1", "0:0:0:0:1:2:3:4", true],
  ["fe80::1%eth0", "fe80::2", true],
  ["2001:0db8::1", "2001:db8::2", true],
] as const)("%s and %s are one source: %s [server-limits-2]", ([one, other, same]) => {
  const { made } = limits({ burst: 1 });
  expect(made.take(one)).toBe(0);
  expect(made.take(other) > 0).toBe(same);
});

test("the number of remembered sources is bounded, and includes the current one [server-limits-3]", () => {
  const { made } = limits({ sources: 10, burst: 1 });
  for (let index = 0; index < 1000; index += 1) made.take(`192.0.2.${index}`);
  expect(made.sources).toBe(10);
  expect(made.take("192.0.2.999")).toBeGreaterThan(0);
});

test("concurrent answers are bounded, and one that ends twice counts once [server-limits-4]", () => {
  const { made } = limits();
  const [one, two] = [made.begin("192.0.2.1"), made.begin("192.0.2.1")];
  expect([made.begin("192.0.2.1"), made.underWay]).toEqual([undefined, 2]);
  one?.();
  one?.();
  expect(made.underWay).toBe(1);
  expect(made.begin("192.0.2.1")).toBeDefined();
  two?.();
});

test("one source does not take the answers of all [server-limits-5]", () => {
  const { made } = limits({ answers: 3 });
  const one = made.begin("192.0.2.1");
  made.begin("192.0.2.1");
  expect(made.begin("192.0.2.1")).toBeUndefined();
  expect(made.begin("192.0.2.2")).toBeDefined();
  one?.();
  expect(made.begin("192.0.2.1")).toBeDefined();
});
