import { expect, test } from "vitest";
import { problemsOfObject } from "./object-rules.ts";

const settings = (kubeletConfig: object) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "KubeletConfig",
  metadata: { name: "x" },
  spec: { machineConfigPoolSelector: { matchLabels: { pool: "worker" } }, kubeletConfig },
});

test("of an object's warnings the first hundred are told, and all of its errors [preview-object-rules-1]", () => {
  const files = Array.from({ length: 130 }, (_, i) => ({
    path: `/etc/containers/registries.d/${i}.yaml`,
    contents: { source: "data:,%5B" },
  }));
  const config = (more: object) => ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: "99-x", labels: {} },
    spec: { config: { ignition: { version: "3.4.0" }, storage: { files } }, ...more },
  });
  const problems = problemsOfObject("MachineConfig", config({}));
  expect(problems).toHaveLength(101);
  expect(problems.at(-1)).toMatchObject({ severity: "warning", path: "" });
  expect(problems.at(-1)?.reason).toMatch(/^the object has \d+ more warnings?$/);
  const wrong = problemsOfObject("MachineConfig", config({ kernelType: "fast" }));
  expect(wrong.filter(({ severity }) => severity === "error")).toMatchObject([{ path: "spec.kernelType" }]);
});

test("of unknown fields, whose number is told, the first are named [preview-object-rules-3]", () => {
  const unknown = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`field${i}`, 1]));
  const problems = problemsOfObject("KubeletConfig", settings({ ...unknown, maxPods: -1 }));
  expect(problems.filter(({ severity }) => severity === "error")).toMatchObject([
    { path: "spec.kubeletConfig.maxPods" },
  ]);
  const sound = problemsOfObject("KubeletConfig", settings(unknown));
  expect(sound[0]).toMatchObject({ severity: "warning", path: "spec.kubeletConfig.field0" });
  expect(sound.at(-1)).toMatchObject({ path: "spec.kubeletConfig", reason: "has 4950 more unknown fields" });
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
