import { test } from "vitest";
import { expectSeedsToHold, concerns } from "./run-seeds.ts";

test.skipIf(!concerns(1, 2))(
  "no order of events breaks an invariant (even seeds) [simulation-seeds-even-1]",
  { timeout: 3_600_000 },
  () => expectSeedsToHold(1, 2),
);
