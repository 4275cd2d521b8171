import { defineConfig } from "vitest/config";

/** The tests that run on a real control plane: `make test-kubernetes`. Scenarios are the same files as in `make test`. */
export default defineConfig({
  test: {
    include: ["test/**/*.kubernetes.test.ts", "test/scenario/*.test.ts"],
    env: { MCO_TEST_API_SERVER: "kubernetes" },
    globalSetup: ["test/kubernetes/shared-control-plane.ts"],
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 180_000,
    reporters: ["default", "./hack/plain-reporter.ts"],
  },
});
