import { expect, test } from "vitest";
import { silentLogger } from "../ports/logger.ts";
import { systemClock } from "../ports/node/system-clock.ts";
import { answerRequest } from "./answer-request.ts";
import { AccessControl } from "./credentials.ts";
import { Limits, defaultLimits } from "./limits.ts";

test("a flood of questions for the readiness costs one look a second, and refuses no prober [server-readiness-1]", async () => {
  let now = 0;
  let looks = 0;
  const clock = { ...systemClock, now: () => now, monotonic: () => now };
  const answer = answerRequest({
    answers: undefined as never,
    credentials: new AccessControl({
      mode: "required",
      tokens: undefined,
      places: undefined,
      clock,
      log: silentLogger,
    }),
    limits: new Limits(clock, defaultLimits),
    clock,
    log: silentLogger,
    unready: () => ((looks += 1), now >= 5000 ? ["broken"] : []),
    troubles: () => [],
    onOutcome: () => undefined,
  });
  const ask = async (target: string) =>
    (
      await answer(
        { method: "GET", target, headers: {}, from: "192.0.2.1", client: undefined },
        new AbortController().signal,
      )
    ).status;
  const statuses = new Set<number>();
  for (let index = 0; index < 5000; index += 1) {
    now = index;
    statuses.add(await ask("/readyz"));
    statuses.add(await ask("/healthz"));
  }
  expect([...statuses]).toEqual([200]);
  expect(looks).toBe(5);
  now = 5001;
  expect(await ask("/readyz")).toBe(503);
  expect(await ask("/healthz")).toBe(200);
});
