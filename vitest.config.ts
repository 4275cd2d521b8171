import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/longest-first.ts";

const never = ["**/*.kubernetes.test.ts", "node_modules/**"];

export default defineConfig({
  test: {
    // Scenarios start real processes and wait for them much of their time: one file more than cores is what two cores bear.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ["default", "./hack/plain-reporter.ts"],
    projects: [
      // Tests beside their source leave nothing behind in their process: their files share it, which halves what they cost.
      { extends: true, test: { name: "units", isolate: false, include: ["src/**/*.test.ts"], exclude: never } },
      { extends: true, test: { name: "suites", include: ["test/**/*.test.ts"], exclude: never } },
    ],
  },
});
