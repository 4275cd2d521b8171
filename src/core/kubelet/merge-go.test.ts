import { expect, test } from "vitest";
import { kubeletConfiguration } from "./kubelet-fields.ts";
import { mergeGo } from "./merge-go.ts";

const base = {
  serializeImagePulls: true,
  maxPods: 250,
  clusterDomain: "cluster.local",
  evictionHard: { "memory.available": "100Mi" },
  enforceNodeAllocatable: ["pods"],
  authentication: { anonymous: { enabled: false }, webhook: { cacheTTL: "2m0s" } },
};

test("empty values change nothing where the base has others, and each is named [kubelet-merge-1]", () => {
  const over = {
    serializeImagePulls: false,
    maxPods: 0,
    clusterDomain: "",
    enforceNodeAllocatable: [],
    authentication: { webhook: { cacheTTL: "0s" } },
    podsPerCore: 0,
  };
  const { value, withoutEffect } = mergeGo(base, over, kubeletConfiguration);
  expect(value).toEqual({ ...base, podsPerCore: 0 });
  expect(withoutEffect).toEqual([
    "serializeImagePulls",
    "maxPods",
    "clusterDomain",
    "enforceNodeAllocatable",
    "authentication.webhook.cacheTTL",
  ]);
});

test("maps are merged key by key, lists replaced, and pointers that the base leaves unset are taken as they are [kubelet-merge-2]", () => {
  const over = {
    evictionHard: { "nodefs.available": "5%" },
    enforceNodeAllocatable: ["none"],
    authentication: { anonymous: { enabled: true } },
    failSwapOn: false,
  };
  expect(mergeGo(base, over, kubeletConfiguration)).toEqual({
    withoutEffect: [],
    value: {
      ...base,
      evictionHard: { "memory.available": "100Mi", "nodefs.available": "5%" },
      enforceNodeAllocatable: ["none"],
      authentication: { anonymous: { enabled: true }, webhook: { cacheTTL: "2m0s" } },
      failSwapOn: false,
    },
  });
});
