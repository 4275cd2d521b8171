import { expect, test } from "vitest";
import { kubeletConfiguration } from "./kubelet-fields.ts";
import { lostFieldText } from "./lost-fields.ts";
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
  expect(withoutEffect.map(lostFieldText)).toEqual([
    "serializeImagePulls changes nothing: false does not replace true of the base: take it out; no KubeletConfig turns it off",
    "maxPods changes nothing: 0 does not replace 250 of the base: take it out, or give it another value",
    'clusterDomain changes nothing: "" does not replace "cluster.local" of the base: take it out, or give it another value',
    'enforceNodeAllocatable changes nothing: [] does not replace ["pods"] of the base: take it out, or give it another value',
    'authentication.webhook.cacheTTL changes nothing: "0s" does not replace "2m0s" of the base: take it out, or give it another value',
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
