import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line that any CI can read: `12 passed, 0 failed, 1 skipped`. */
export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state === "pending" ? "skipped" : state] += 1;
      }
      if (module.state() === "failed" && [...module.children.allTests("failed")].length === 0) counts.failed += 1; // The file itself did not load.
    }
    process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  }
}
