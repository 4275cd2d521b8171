import { afterAll } from "vitest";
import { cleanUp } from "./clean-up.ts";

// Vitest runs this once for each file of tests: `setupFiles` in vitest.config.ts.
afterAll(cleanUp);
