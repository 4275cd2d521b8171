import { expect, test } from "vitest";
import { silentLogger } from "../ports/logger.ts";
import { systemClock } from "../ports/node/system-clock.ts";
import { type RequestOutcome, answerRequest } from "./answer-request.ts";
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

test.for([
  ["Ignition/2.15.0", "2.15"],
  ["curl/8", undefined],
] as const)(
  "a request of %s gets the same answer, and its outcome says Ignition %s [server-answer-request-1]",
  async ([userAgent, ignition]) => {
    const outcomes: RequestOutcome[] = [];
    const representation = { etag: '"1"', headers: {}, bodyWith: () => Buffer.from("{}") };
    const answer = answerRequest({
      answers: {
        of: () =>
          Promise.resolve({ verdict: "answer", config: "rendered-1", gzip: representation, identity: representation }),
      } as never,
      credentials: new AccessControl({
        mode: "insecure",
        tokens: undefined,
        places: undefined,
        clock: systemClock,
        log: silentLogger,
      }),
      limits: new Limits(systemClock, defaultLimits),
      clock: systemClock,
      log: silentLogger,
      unready: () => [],
      troubles: () => [],
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    const headers = { "user-agent": userAgent, "if-none-match": '"1"' };
    const { status } = await answer(
      { method: "GET", target: "/config/worker", headers, from: "192.0.2.1", client: undefined },
      new AbortController().signal,
    );
    expect([status, outcomes[0]?.ignition]).toEqual([304, ignition]);
  },
);
