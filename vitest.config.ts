import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/longest-first.ts";
import { useOwnState } from "./hack/tests-state.ts";

useOwnState();

/**
 * Suites that `make test-kubernetes` runs as well, on a real control plane. `SCENARIOS=some` leaves them out of the long
 * tests where it has just run; kubectl's dialogue is worth both planes at any time.
 */
const secondTime = [
  "test/faults/*.test.ts",
  "test/scenario/{books,brought,cluster-config,crash,images,install,joining,machines,operator,pinned-images,registries,release,settings}.test.ts",
];
/**
 * What `make test` leaves out: suites of half a minute and more, each with a neighbour in `make test` that covers the
 * same ground with less. `make test-long` runs them; those of `test/scenario` run in `make test-kubernetes` as well.
 */
const long = [
  ...(process.env["SCENARIOS"] === "some" ? [] : secondTime),
  "test/simulation/planted-bugs.test.ts",
  "test/simulation/{clumsy,determinism,memory}.test.ts",
  "test/remedies/remedies-of-all.test.ts",
  "src/daemon/killed-with-images.test.ts",
  "test/crash/power-cuts.test.ts",
  "test/crash/effects-odd.test.ts",
  "test/crash/rpm-ostree.test.ts",
  "test/crash/journal.test.ts",
  "test/scenario/{kubectl,verbs}.test.ts",
  "test/ecosystem/scraped-cluster.test.ts",
  "test/sessions/sessions.test.ts",
  "test/attacks/release.test.ts",
  "test/contract/over-tls.test.ts",
  "test/contract/kubectl.test.ts",
  "test/guards/library.test.ts",
  "test/differential/ignition/*.test.ts",
  "test/differential/readers/kubelet.test.ts",
];
/** What `make test` runs with small numbers, and `make test-long` with large ones. */
const longer = [
  "test/simulation/*.test.ts",
  "test/crash/effects-even.test.ts",
  "test/crash/{kills,pairs}.test.ts",
  "test/differential/readers/*.test.ts",
  "src/daemon/killed-at-start.test.ts",
];
/** A test that is asked for by its id or its file runs, however long it is. */
const isNamed = process.argv.some((word) => word === "-t" || word.endsWith(".test.ts"));
const isLong = process.env["MCO_LONG"] !== undefined || isNamed;
const never = ["**/*.kubernetes.test.ts", "node_modules/**", ...(isLong ? [] : [...long, ...secondTime])];
/** What takes every fault at every effect. `MCO_LONG=effects` runs that alone, and `MCO_LONG=only` all other long suites. */
const isOfEffects = (path: string) => path.startsWith("test/crash/effects-");
const asked = (room: string): readonly string[] =>
  [...long, ...longer, "test/crash/effects-*.test.ts"].filter(
    (path) => path.startsWith(room) && isOfEffects(path) === (process.env["MCO_LONG"] === "effects"),
  );
const only = (all: readonly string[], room: string) =>
  ["only", "effects"].includes(process.env["MCO_LONG"] ?? "") ? [...asked(room)] : [...all];
/** Tests that leave nothing behind in their process: their files share it, which halves what they cost. */
const shared = ["src/**/*.test.ts"];

export default defineConfig({
  test: {
    // Scenarios start real processes and wait for them much of their time: one file more than cores is what two cores bear.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 600_000,
    hookTimeout: 600_000,
    setupFiles: ["test/support/each-file.ts"],
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
