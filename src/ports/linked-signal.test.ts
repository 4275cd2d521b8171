import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { linkedSignal } from "./linked-signal.ts";

test("a linked signal aborts with its parent's reason, and by itself alone [ports-linked-signal-1]", () => {
  const parent = new AbortController();
  const [one, other] = [linkedSignal(parent.signal), linkedSignal(parent.signal)];
  one.abort(new Error("own"));
  expect([one.signal.aborted, other.signal.aborted, parent.signal.aborted]).toEqual([true, false, false]);
  parent.abort(new Error("all"));
  expect((one.signal.reason as Error).message).toBe("own");
  expect((other.signal.reason as Error).message).toBe("all");
  expect(linkedSignal(parent.signal).signal.aborted).toBe(true);
});

test("a released or aborted signal leaves nothing at its parent [ports-linked-signal-2]", () => {
  const parent = new AbortController();
  const links = Array.from({ length: 5 }, () => linkedSignal(parent.signal));
  expect(getEventListeners(parent.signal, "abort").length).toBe(5);
  for (const [index, link] of links.entries())
    if (index % 2 === 0) link.release();
    else link.abort(new Error("x"));
  expect(getEventListeners(parent.signal, "abort").length).toBe(0);
  parent.abort(new Error("y"));
  expect(links.map(({ signal }) => signal.aborted)).toEqual([false, true, false, true, false]);
});
