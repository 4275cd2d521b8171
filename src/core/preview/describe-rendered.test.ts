import { expect, test } from "vitest";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { describeRendered } from "./describe-rendered.ts";
import { renderPool } from "../render/render-pool.ts";

const member = (name: string, files: Readonly<Record<string, string>>, more: object = {}) =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name, labels: { "machineconfiguration.openshift.io/role": "worker" } },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 0o644,
            contents: { source: encodeDataUrl(text) },
          })),
        },
      },
      ...more,
    },
  }) as unknown as MachineConfig;
const pool = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker" },
  spec: {},
} as unknown as MachineConfigPool;
const controllerConfig = {
  metadata: { name: "machine-config-controller", annotations: {} },
  spec: { baseOSContainerImage: "os@sha256:1", releaseImage: "r" },
} as never;

function render(...members: readonly MachineConfig[]) {
  const result = renderPool({ pool, members, controllerConfig, generatorVersion: "g" });
  if (result.verdict === "refused") throw new Error(JSON.stringify(result.refusals));
  return result;
}

test("the description of a rendered config lists changes and their members, never contents [preview-describe-rendered-1]", () => {
  const before = render(member("50-a", { "/etc/a": "1", "/etc/gone": "x" }), member("60-b", { "/etc/b": "1" })).config;
  const after = render(
    member("50-a", { "/etc/a": "1" }),
    member("60-b", { "/etc/b": "secret-password" }),
    member("70-c", { "/etc/c": "1" }, { kernelArguments: ["nosmt"], kernelType: "realtime" }),
  );
  const text = describeRendered(before, after);
  expect(text).toBe(
    "~/etc/b (60-b), +/etc/c (70-c), -/etc/gone (no member says it any more), ~kernel arguments (70-c), ~kernel type (70-c)",
  );
});

test("a value that falls back to the cluster is the cluster's; long lists are counted [preview-describe-rendered-2]", () => {
  const before = render(member("50-a", {}, { osImageURL: "other@sha256:2" })).config;
  expect(describeRendered(before, render(member("50-a", {})))).toBe("~OS image (the cluster)");
  const many = render(
    member("50-a", Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`/etc/${index}`, "1"])), {
      osImageURL: "other@sha256:2",
    }),
  );
  expect(describeRendered(before, many)).toMatch(/^\+\/etc\/0 \(50-a\), .*\+\/etc\/5 \(50-a\) and 3 more$/);
  expect(describeRendered(before, render(member("40-x", {}, { osImageURL: "other@sha256:2" })))).toMatch(
    /^nothing that machines would notice/,
  );
});

test("the members of a hundred thousand kernel arguments are found in bounded time [preview-describe-rendered-3]", () => {
  const words = (prefix: string) =>
    Array.from({ length: 1000 }, (_, i) => Array.from({ length: 100 }, (__, j) => `${prefix}${i * 100 + j}`).join(" "));
  const before = render(member("50-a", {}, { kernelArguments: words("a") })).config;
  const after = render(member("50-a", {}, { kernelArguments: words("b") }));
  expect(describeRendered(before, after)).toBe("~kernel arguments (50-a)");
});
