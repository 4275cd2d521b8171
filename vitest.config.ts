import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/longest-first.ts";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["**/*.kubernetes.test.ts", "node_modules/**"],
    // Scenarios start real processes and wait for them much of their time: one file more than cores is what two cores bear.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ["default", "./hack/plain-reporter.ts"],
  },
});
