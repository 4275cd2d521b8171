import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/longest-first.ts";
import { useOwnState } from "./hack/tests-state.ts";

useOwnState();

/** Where scenarios leave what their components asked of the API server, for the test of the rights, which runs last. */
const auditFolder = (process.env["MCO_AUDIT_FOLDER"] ??= mkdtempSync(join(tmpdir(), "mco-audit-")));

const rights = "test/scenario/rights.kubernetes.test.ts";
const each = {
  env: { MCO_TEST_API_SERVER: "kubernetes", MCO_AUDIT_FOLDER: auditFolder },
  testTimeout: 600_000,
  hookTimeout: 600_000,
  setupFiles: ["test/support/each-file.ts"],
};

/** The tests that run on a real control plane: `make test-kubernetes`. Scenarios are the same files as in `make test`. */
export default defineConfig({
  test: {
    // A real control plane for each keeps two cores busy: with a third file at a time, all of them take longer.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./hack/plain-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          ...each,
          name: "kubernetes",
          globalSetup: ["test/support/kubernetes/shared-control-plane.ts"],
          include: ["test/**/*.kubernetes.test.ts", "test/scenario/*.test.ts", "test/faults/*.test.ts"],
          exclude: [rights],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          ...each,
          name: "rights",
          globalSetup: ["test/support/kubernetes/audit-folder.ts"],
          include: [rights],
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
