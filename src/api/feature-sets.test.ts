import { describe, expect, test } from "vitest";
import { apiGates, apiGatesOf, gateKeyword } from "./feature-sets.ts";
import { ContainerRuntimeConfig } from "./kinds/container-runtime-config.ts";
import { KubeletConfig } from "./kinds/kubelet-config.ts";
import { definedResources } from "./index.ts";

const listed = (...lists: readonly (readonly string[])[]) => ({
  spec: { featureSet: "TechPreviewNoUpgrade" },
  status: { featureGates: lists.map((enabled) => ({ enabled: enabled.map((name) => ({ name })) })) },
});

describe("features that decide about fields", () => {
  test.for([
    { title: "no choice", chosen: undefined, has: [] },
    { title: "an empty FeatureGate", chosen: {}, has: [] },
    { title: "OKD", chosen: { spec: { featureSet: "OKD" } }, has: [] },
    {
      title: "TechPreviewNoUpgrade",
      chosen: { spec: { featureSet: "TechPreviewNoUpgrade" } },
      has: ["GomaxprocsInjection", "TLSGroupPreferences"],
    },
    {
      title: "one feature of its own choice",
      chosen: { spec: { featureSet: "CustomNoUpgrade", customNoUpgrade: { enabled: ["GomaxprocsInjection", "X"] } } },
      has: ["GomaxprocsInjection"],
    },
    {
      title: "what its operator lists, whatever the set",
      chosen: listed(["TLSGroupPreferences"]),
      has: ["TLSGroupPreferences"],
    },
    {
      title: "what one of two versions has",
      chosen: listed(["X"], ["GomaxprocsInjection"]),
      has: ["GomaxprocsInjection"],
    },
  ])("$title [api-features-1]", ({ chosen, has }) => {
    expect([...apiGatesOf(chosen)]).toEqual(has);
  });

  test("a definition has their fields where the cluster has them, and never the keyword [api-features-2]", () => {
    const every = apiGatesOf({ spec: { featureSet: "DevPreviewNoUpgrade" } });
    for (const [kind, field] of [
      [KubeletConfig, "systemGomaxprocsBehavior"],
      [KubeletConfig, "groups"],
      [ContainerRuntimeConfig, "containerGomaxprocsBehavior"],
    ] as const) {
      expect(JSON.stringify(kind.crd())).not.toContain(`"${field}"`);
      expect(JSON.stringify(kind.crd(every))).toContain(`"${field}"`);
      expect(JSON.stringify(kind.crd(every))).not.toContain(gateKeyword);
    }
  });

  test("each of them decides about a field [api-features-3]", () => {
    const schemas = JSON.stringify(definedResources.map(({ schema }) => schema));
    for (const gate of Object.keys(apiGates)) expect(schemas).toContain(`"${gateKeyword}":"${gate}"`);
  });
});
