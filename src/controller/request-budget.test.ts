import { expect, test } from "vitest";
import { RequestBudget } from "./request-budget.ts";

const w1 = "system:node:w1";
const request = (index: number, requester = w1, isShared = false) => ({
  key: `csr-${index}`,
  requester,
  certificate: undefined as string | undefined,
  isShared,
  isOfHolder: false,
  createdAt: new Date(Date.UTC(2030, 0, 1, 0, 0, Math.floor(index / 10))).toISOString(),
});

test("of a node's open requests the ten newest are judged, in whatever order they are listed [controller-request-budget-1]", () => {
  const budget = new RequestBudget();
  const order = Array.from({ length: 1000 }, (_, index) => (index * 7) % 1000);
  for (const index of order) budget.opened(request(index));
  const judged = Array.from({ length: 1000 }, (_, index) => index).filter(
    (index) => budget.take(request(index), 0).verdict === "judge",
  );
  expect(judged).toEqual([990, 991, 992, 993, 994, 995, 996, 997, 998, 999]);
  // One that is decided makes no room for those that were passed over.
  budget.ended(request(995));
  expect(budget.take(request(995), 0)).toEqual({ verdict: "abandoned" });
  expect(budget.take(request(5), 0)).toEqual({ verdict: "abandoned" });
});

test("a node has a minute's judgments at once, then one in two seconds; others do not wait [controller-request-budget-2]", () => {
  const budget = new RequestBudget();
  for (const requester of [w1, "system:node:w2"]) budget.opened(request(1, requester));
  budget.opened(request(2));
  const verdicts = Array.from({ length: 100 }, () => budget.take(request(1), 0).verdict);
  expect(verdicts.filter((verdict) => verdict === "judge")).toHaveLength(60);
  expect(budget.take(request(1), 0)).toEqual({ verdict: "later", afterSeconds: 4 });
  expect(budget.take(request(1, "system:node:w2"), 0)).toEqual({ verdict: "judge" });
  expect(budget.take(request(1), 2000)).toEqual({ verdict: "judge" });
});

test("machines that nothing tells apart share an account: five thousand requests at once, none abandoned [controller-request-budget-3]", () => {
  const budget = new RequestBudget();
  const all = Array.from({ length: 6000 }, (_, index) => request(index, "the account of a pool", true));
  for (const one of all) budget.opened(one);
  const verdicts = all.map((one) => budget.take(one, 0));
  expect(verdicts.filter(({ verdict }) => verdict === "judge")).toHaveLength(5000);
  expect(verdicts.at(-1)).toEqual({ verdict: "later", afterSeconds: 60 });
});

test("the machine that has a name has turns that no other certificate of the name uses, however many there are [controller-request-budget-4]", () => {
  const budget = new RequestBudget();
  const own = { ...request(0), certificate: "own", isOfHolder: true };
  const next = { ...request(1), certificate: "next", isOfHolder: true };
  const flood = Array.from({ length: 1000 }, (_, index) => ({
    ...request(100 + index),
    certificate: `former-${index % 50}`,
  }));
  for (const one of [own, next, ...flood]) budget.opened(one);
  const verdicts = flood.map((one) => budget.take(one, 0).verdict);
  // All of them together are one requester.
  expect(verdicts.filter((verdict) => verdict === "judge")).toHaveLength(10);
  expect(verdicts.filter((verdict) => verdict === "abandoned")).toHaveLength(990);
  for (const one of Array.from({ length: 50 }, () => flood.at(-1) ?? own)) budget.take(one, 0);
  expect(budget.take(flood.at(-1) ?? own, 0)).toEqual({ verdict: "later", afterSeconds: 20 });
  expect([own, next].map((one) => budget.take(one, 0))).toEqual([{ verdict: "judge" }, { verdict: "judge" }]);
  // Those of the machine are bounded as well, by whichever of its certificates.
  const more = Array.from({ length: 100 }, (_, index) => budget.take(index % 2 === 0 ? own : next, 0).verdict);
  expect(more.filter((verdict) => verdict === "judge")).toHaveLength(58);
  for (const one of [own, next]) budget.ended(one);
  expect(budget.take(own, 60_000)).toEqual({ verdict: "abandoned" });
});

test("certificates of a name are followed a minute's worth at once, then one in two seconds, apart from judgments [controller-request-budget-5]", () => {
  const budget = new RequestBudget();
  const verdicts = Array.from({ length: 100 }, () =>
    budget.takeRecord({ requester: "system:node:w0", isShared: false }, 0),
  );
  expect(verdicts.filter(({ verdict }) => verdict === "judge")).toHaveLength(60);
  expect(verdicts.at(-1)).toMatchObject({ verdict: "later", afterSeconds: expect.any(Number) as number });
  expect(budget.takeRecord({ requester: "system:node:w1", isShared: false }, 0)).toEqual({ verdict: "judge" });
});
