import { expect, test } from "vitest";
import { simulate } from "./simulation.ts";

test(
  "the same seed gives the same run, event for event, and another seed gives another run [simulation-determinism-1]",
  { timeout: 600_000 },
  async () => {
    const [first, again, other] = [
      await simulate({ seed: 42, stormMs: 300_000 }),
      await simulate({ seed: 42, stormMs: 300_000 }),
      await simulate({ seed: 43, stormMs: 300_000 }),
    ];
    expect(again.traceHash).toBe(first.traceHash);
    expect(again.simulation.kernel.events).toBe(first.simulation.kernel.events);
    expect(other.traceHash).not.toBe(first.traceHash);
  },
);
