import { relative } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";
import { idOf, namedIds } from "../test/conformance/conformance.ts";
import { sections } from "../test/conformance/rows.ts";

/**
 * Names the tests that were skipped, with a word more where docs/conformance.md builds on one, and ends a run with one
 * plain line that any CI can read: `12 passed, 0 failed, 1 skipped`.
 */
export default class PlainReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const skipped: string[] = [];
    const named = new Set(namedIds(sections));
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state === "pending" ? "skipped" : state] += 1;
        if (state !== "skipped") continue;
        const file = relative(process.cwd(), module.moduleId);
        skipped.push(
          `skipped: ${file} > ${test.fullName}${named.has(idOf(test.name) ?? "") ? " (docs/conformance.md says that it passed)" : ""}\n`,
        );
      }
      if (module.state() === "failed" && [...module.children.allTests("failed")].length === 0) counts.failed += 1; // The file itself did not load.
    }
    // Whoever asked for some tests by name knows that he left out the others.
    if (this.#vitest?.config.testNamePattern === undefined) process.stdout.write(skipped.join(""));
    process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  }
}
