import { expect, test } from "vitest";
import { problemsOfObject } from "./object-rules.ts";

const settings = (kubeletConfig: object) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "KubeletConfig",
  metadata: { name: "x" },
  spec: { machineConfigPoolSelector: { matchLabels: { pool: "worker" } }, kubeletConfig },
});

test("of an object's warnings the first hundred are told, and all of its errors [preview-object-rules-1]", () => {
  const unknown = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`field${i}`, 1]));
  const problems = problemsOfObject("KubeletConfig", settings(unknown));
  expect(problems).toHaveLength(101);
  expect(problems[0]).toMatchObject({ severity: "warning", path: "spec.kubeletConfig.field0" });
  expect(problems.at(-1)).toEqual({ severity: "warning", path: "", reason: "there are 4900 more warnings" });
  const wrong = problemsOfObject("KubeletConfig", settings({ ...unknown, maxPods: -1 }));
  expect(wrong.filter(({ severity }) => severity === "error")).toMatchObject([{ path: "spec.kubeletConfig.maxPods" }]);
});

test("items whose names are too long to be told apart whole are told by their beginning and length [preview-object-rules-2]", () => {
  const file = (path: string) => ({ path, contents: { source: "data:,x" } });
  const config = (...paths: readonly string[]) => ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: "99-x", labels: {} },
    spec: { config: { ignition: { version: "3.4.0" }, storage: { files: paths.map(file) } } },
  });
  const [long, longer] = ["a".repeat(300), "a".repeat(301)] as const;
  const errors = (now: object, before: object) =>
    problemsOfObject("MachineConfig", now as never, { before: before as never })
      .filter(({ severity }) => severity === "error")
      .map(({ path }) => path);
  expect(errors(config("/etc/new", long), config(long))).toEqual([]);
  expect(errors(config(long, longer), config(long))).toEqual(["spec.config.storage.files[1].path"]);
});
