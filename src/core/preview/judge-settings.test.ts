import { describe, expect, test } from "vitest";
import { judgeKubeletConfiguration } from "../kubelet/validate-kubelet.ts";
import { baseRoles, kubeletDefaults } from "../render/base-configs.ts";
import { problemsOfKubeletConfig, problemsOfRuntimeConfig } from "./judge-settings.ts";

const machineConfigPoolSelector = { matchLabels: { pool: "worker" } };
const said = (problems: readonly { readonly severity: string; readonly path: string }[]) =>
  problems.map(({ severity, path }) => `${severity} ${path}`);

describe("settings by themselves", () => {
  test.for(baseRoles)("a kubelet starts with the base configuration of %s [judge-settings-1]", (role) => {
    expect(judgeKubeletConfiguration(kubeletDefaults(role, "10.0.0.10"))).toMatchObject({ problems: [], unknown: [] });
  });

  test.for([
    [{ maxPods: 64 }, []],
    [{ maxPods: -1 }, ["error spec.kubeletConfig.maxPods"]],
    [{ evictionPressureTransitionPeriod: "soon" }, ["error spec.kubeletConfig.evictionPressureTransitionPeriod"]],
    [{ enableSystemLogQuery: true }, ["error spec.kubeletConfig.enableSystemLogQuery"]],
    [{ maxpods: 3 }, ["warning spec.kubeletConfig.maxpods"]],
    [{ clusterDomain: "x" }, ["error spec.kubeletConfig.clusterDomain"]],
  ] as const)("a KubeletConfig with %j has the problems %j [judge-settings-2]", ([kubeletConfig, problems]) => {
    expect(said(problemsOfKubeletConfig({ spec: { machineConfigPoolSelector, kubeletConfig } }))).toEqual(problems);
  });

  test.for([
    [{ pidsLimit: 2048 }, []],
    [{ pidsLimit: 3 }, ["error spec.containerRuntimeConfig.pidsLimit"]],
    [{ defaultRuntime: "runc" }, ["warning spec.containerRuntimeConfig.defaultRuntime"]],
    [{ defaultRuntime: "kata" }, ["error spec.containerRuntimeConfig.defaultRuntime"]],
  ] as const)("a ContainerRuntimeConfig with %j has the problems %j [judge-settings-3]", ([settings, problems]) => {
    const spec = { machineConfigPoolSelector, containerRuntimeConfig: settings } as never;
    expect(said(problemsOfRuntimeConfig({ spec }))).toEqual(problems);
  });

  test("the first fifty fields that no kubelet knows are warnings, with the number of the others [judge-settings-5]", () => {
    const kubeletConfig = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`field${i}`, 1])) as never;
    const problems = problemsOfKubeletConfig({ spec: { machineConfigPoolSelector, kubeletConfig } });
    expect(problems).toHaveLength(51);
    expect(problems[50]).toEqual({
      severity: "warning",
      path: "spec.kubeletConfig",
      reason: "has 99950 more unknown fields",
      remedy: "take them out",
    });
  });

  test("a list of enforcements with null in it is refused with its path, as a kubelet reads it [judge-settings-6]", () => {
    const kubeletConfig = { enforceNodeAllocatable: [null] } as never;
    const [problem] = problemsOfKubeletConfig({ spec: { machineConfigPoolSelector, kubeletConfig } });
    expect(problem).toMatchObject({
      severity: "error",
      path: "spec.kubeletConfig.enforceNodeAllocatable",
      reason: expect.stringContaining('"" is none of pods, system-reserved') as string,
    });
  });

  test("an empty selector is a warning, a wrong one is refused [judge-settings-4]", () => {
    expect(said(problemsOfKubeletConfig({ spec: {} }))).toEqual(["warning spec.machineConfigPoolSelector"]);
    const wrong = { matchExpressions: [{ key: "a", operator: "Like", values: ["b"] }] };
    expect(said(problemsOfKubeletConfig({ spec: { machineConfigPoolSelector: wrong } as never }))).toEqual([
      "error spec.machineConfigPoolSelector.matchExpressions[0].operator",
    ]);
  });
});
