import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/longest-first.ts";

/**
 * What `make test` leaves out: suites of half a minute and more, each with a neighbour in `make test` that covers the
 * same ground with less. `make test-long` runs them; those of `test/scenario` run in `make test-kubernetes` as well.
 */
const long = [
  "test/faults/*.test.ts",
  "test/simulation/planted-bugs.test.ts",
  "test/crash/power-cuts.test.ts",
  "test/crash/effects-odd.test.ts",
  "test/crash/rpm-ostree.test.ts",
  "test/crash/journal.test.ts",
  "test/scenario/{books,crash,images,install,joining,machines,release}.test.ts",
  "test/contract/over-tls.test.ts",
  "test/contract/kubectl.test.ts",
  "test/guards/library.test.ts",
  "test/differential/ignition/*.test.ts",
];
/** What `make test` runs with small numbers, and `make test-long` with large ones. */
const longer = [
  "test/simulation/*.test.ts",
  "test/crash/effects-even.test.ts",
  "test/differential/readers/*.test.ts",
  "src/daemon/killed-at-start.test.ts",
  "src/daemon/killed-with-images.test.ts",
];
const isLong = process.env["MCO_LONG"] !== undefined;
const never = ["**/*.kubernetes.test.ts", "node_modules/**", ...(isLong ? [] : long)];
/** `MCO_LONG=only`: what `make test-long` runs, and nothing else. */
const only = (all: readonly string[], room: string) =>
  process.env["MCO_LONG"] === "only" ? [...long, ...longer].filter((path) => path.startsWith(room)) : [...all];
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
      { extends: true, test: { name: "parts", isolate: false, include: only(shared, "src/"), exclude: never } },
      {
        extends: true,
        test: { name: "suites", include: only(["test/**/*.test.ts"], "test/"), exclude: [...never, ...shared] },
      },
    ],
  },
});
