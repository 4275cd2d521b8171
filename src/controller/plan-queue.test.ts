import { expect, test } from "vitest";
import { clockFrom } from "../ports/clock.ts";
import type { HttpResponse } from "../ports/http.ts";
import { PlanQueue, type ReviewMessage } from "./plan-queue.ts";

const answered = (text: string): HttpResponse => ({ status: 200, headers: {}, body: text });

/** A queue whose time a test moves, and planners that record what happens to them. */
function queueInTest() {
  const timers = new Set<() => void>();
  const clock = clockFrom({
    now: () => 0,
    monotonic: () => 0,
    after: (_milliseconds, run) => {
      timers.add(run);
      return () => timers.delete(run);
    },
  });
  const queue = new PlanQueue(clock, 4000);
  const planner = () => {
    const sent: ReviewMessage[] = [];
    const state = { ended: false };
    const thread = {
      send: (message: unknown) => void sent.push(message as ReviewMessage),
      end: () => void (state.ended = true),
      ended: new Promise<undefined>(() => undefined),
    };
    queue.hear(thread, { is: "ready" });
    const answer = (text: string) =>
      queue.hear(thread, { is: "answer", id: sent.at(-1)?.id ?? 0, response: answered(text) });
    return { sent: () => sent.map(({ body }) => body), state, answer };
  };
  const never = new AbortController().signal;
  return {
    queue,
    planner,
    review: (body: string, signal = never) => queue.review(body, signal),
    limitPasses: () => {
      for (const run of timers) run();
    },
    limits: () => timers.size,
  };
}

test("reviews get 503 until a planner is ready, and then reach it one at a time", async () => {
  const { queue, planner, review, limits } = queueInTest();
  expect([queue.isReady, (await review("early")).status]).toEqual([false, 503]);
  const one = planner();
  const [first, second] = [review("1"), review("2")];
  expect([queue.isReady, one.sent()]).toEqual([true, ["1"]]);
  one.answer("a");
  expect([(await first).body, one.sent()]).toEqual(["a", ["1", "2"]]);
  one.answer("b");
  expect([(await second).body, limits()]).toEqual(["b", 0]);
});

test("a plan over its time limit ends its planner; waiting reviews go to the next one", async () => {
  const { queue, planner, review, limitPasses } = queueInTest();
  const one = planner();
  const [stuck, waiting] = [review("stuck"), review("waiting")];
  limitPasses();
  expect([one.state.ended, queue.isReady]).toEqual([true, false]);
  queue.plannerEnded("it ended");
  expect((await stuck).status).toBe(503);
  const two = planner();
  expect(two.sent()).toEqual(["waiting"]);
  two.answer("late");
  expect((await waiting).body).toBe("late");
});

test("a review whose client disconnected is not planned", () => {
  const { planner, review } = queueInTest();
  const one = planner();
  void review("1");
  const gone = new AbortController();
  void review("2", gone.signal);
  void review("3");
  gone.abort();
  one.answer("a");
  expect(one.sent()).toEqual(["1", "3"]);
});
