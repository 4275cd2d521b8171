import { test } from "vitest";
import { expectSeedsToHold, concerns } from "./run-seeds.ts";

test.skipIf(!concerns(0, 2))(
  "no order of events breaks an invariant (odd seeds) [simulation-seeds-odd-1]",
  { timeout: 3_600_000 },
  () => expectSeedsToHold(0, 2),
);
