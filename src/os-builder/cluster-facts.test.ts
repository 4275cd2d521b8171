import { expect, test } from "vitest";
import { objects } from "../api/names.ts";
import type { Caches } from "../kube/controller.ts";
import { surroundings } from "./cluster-facts.ts";

test("certificates of registries may have any key of a ConfigMap as their name [os-builder-cluster-facts-1]", () => {
  const bundle = (file: string, text: string) => ({ file, data: btoa(text) });
  const spec = {
    imageRegistryBundleData: [bundle("registry.example..5000", "a")],
    imageRegistryBundleUserData: [
      bundle("__proto__", "b"),
      bundle("constructor", "c"),
      bundle("registry.example..5000", "d"),
    ],
  };
  const caches = { of: () => ({ get: (name: string) => (name === objects.controllerConfig ? { spec } : undefined) }) };
  const { certificates } = surroundings(caches as unknown as Caches);
  expect(Object.entries(certificates).toSorted()).toEqual([
    ["__proto__", ["b"]],
    ["constructor", ["c"]],
    ["registry.example:5000", ["a", "d"]],
  ]);
});
