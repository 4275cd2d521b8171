import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/longest-first.ts";

/** What `make test-long` runs besides: suites that take minutes, and whose neighbours in `make test` look at the same things more briefly. */
const long = [
  "test/faults/**",
  "test/simulation/planted-bugs.test.ts",
  "test/crash/power-cuts.test.ts",
  "test/crash/effects-odd.test.ts",
  "test/crash/rpm-ostree.test.ts",
  "test/crash/journal.test.ts",
  "test/scenario/crash.test.ts",
  "test/contract/over-tls.test.ts",
  "test/differential/ignition/**",
];
const never = ["**/*.kubernetes.test.ts", "node_modules/**", ...(process.env["MCO_LONG"] === undefined ? long : [])];
/** Tests that leave nothing behind in their process: their files share it, which halves what they cost. */
const shared = ["src/**/*.test.ts"];

export default defineConfig({
  test: {
    // Scenarios start real processes and wait for them much of their time: one file more than cores is what two cores bear.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ["default", "./hack/plain-reporter.ts"],
    projects: [
      { extends: true, test: { name: "parts", isolate: false, include: shared, exclude: never } },
      { extends: true, test: { name: "suites", include: ["test/**/*.test.ts"], exclude: [...never, ...shared] } },
    ],
  },
});
