import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { durationsPath, readDurations } from "./longest-first.ts";

/** Of a failure; the summary at the end of a run has the whole of it. */
const mostCharacters = 4_000;

/**
 * Names the tests that were skipped, with a word more where docs/conformance.md builds on one, and ends a run with one
 * plain line that any CI can read: `12 passed, 0 failed, 1 skipped`. `MCO_DURATIONS=1` writes down how long each file
 * took, for the order of later runs.
 */
export default class PlainReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  /** A run of many minutes may be ended before its summary: what failed is said at once. */
  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    if (state !== "failed") return;
    const file = relative(process.cwd(), test.module.moduleId);
    for (const { message, diff } of errors)
      process.stdout.write(
        `failed: ${file} > ${test.fullName}: ${stripVTControlCharacters([message, diff ?? ""].join("\n")).slice(0, mostCharacters)}\n`,
      );
  }

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const skipped: { readonly file: string; readonly name: string; readonly fullName: string }[] = [];
    for (const module of modules) {
      const file = relative(process.cwd(), module.moduleId);
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state === "pending" ? "skipped" : state] += 1;
        if (state === "skipped") skipped.push({ file, name: test.name, fullName: test.fullName });
      }
      if (module.state() === "failed" && [...module.children.allTests("failed")].length === 0) counts.failed += 1; // The file itself did not load.
    }
    // A run of tests by name skips the others on purpose.
    if (skipped.length > 0 && this.#vitest?.config.testNamePattern === undefined) {
      const isNamed = await namedByConformance();
      for (const { file, name, fullName } of skipped)
        process.stdout.write(
          `skipped: ${file} > ${fullName}${isNamed(name) ? " (docs/conformance.md says that it passed)" : ""}\n`,
        );
    }
    if (process.env["MCO_DURATIONS"] !== undefined) writeDurations(modules);
    process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  }
}

/** Whether docs/conformance.md builds on a test of this title. Its rows are many, and most runs need none of them. */
async function namedByConformance(): Promise<(title: string) => boolean> {
  const [{ idOf, namedIds }, { sections }] = await Promise.all([
    import("../test/conformance/conformance.ts"),
    import("../test/conformance/rows.ts"),
  ]);
  const named = new Set(namedIds(sections));
  return (title) => named.has(idOf(title) ?? "");
}

/** Seconds of each file that passed, over those of an earlier run. Files of less than half a second need no place in the order. */
function writeDurations(modules: readonly TestModule[]): void {
  const durations = new Map(Object.entries(readDurations()));
  for (const module of modules) {
    if (module.state() !== "passed") continue;
    const { duration, collectDuration } = module.diagnostic();
    const seconds = Math.round((duration + collectDuration) / 100) / 10;
    const file = relative(process.cwd(), module.moduleId);
    if (seconds < 0.5) durations.delete(file);
    else durations.set(file, seconds);
  }
  const sorted = Object.fromEntries([...durations].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(durationsPath, `${JSON.stringify(sorted, undefined, 2)}\n`);
}
