import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { labels } from "../api/names.ts";
import { judgeManifest, kindsToJudge } from "./judge-manifest.ts";
import type { Manifest } from "./manifests.ts";
import { soundPart } from "./sound-part.ts";

const apiVersion = "machineconfiguration.openshift.io/v1";
const kinds = kindsToJudge();

function judged(manifest: Manifest) {
  const served = kinds(manifest.apiVersion, manifest.kind);
  if (served === undefined) throw new Error(`no kind ${manifest.kind}`);
  return judgeManifest(manifest, served);
}
const pathsOf = (manifest: object) =>
  judged(manifest as Manifest).problems.map(({ severity, path }) => `${severity} ${path}`);

const poolSelector = { matchLabels: { "pools.example.com/all": "" } };
const config = {
  apiVersion,
  kind: "MachineConfig",
  metadata: { name: "99-a", labels: { [labels.role]: "worker" } },
  spec: {
    kernelArguments: ["quiet", "mitigations=off"],
    extensions: ["usbguard"],
    config: { ignition: { version: "3.4.0" }, storage: { files: [{ path: "/etc/a" }, { path: "etc/b" }] } },
  },
};
const kubelet = {
  apiVersion,
  kind: "KubeletConfig",
  metadata: { name: "a" },
  spec: { machineConfigPoolSelector: poolSelector, logLevel: 3, kubeletConfig: { maxPods: -1 } },
};
const pool = {
  apiVersion,
  kind: "MachineConfigPool",
  metadata: { name: "infra" },
  spec: {
    paused: false,
    maxUnavailable: "10%",
    machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }] },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/infra": "" } },
  },
};
const runtime = {
  apiVersion,
  kind: "ContainerRuntimeConfig",
  metadata: { name: "a" },
  spec: { machineConfigPoolSelector: poolSelector, containerRuntimeConfig: { pidsLimit: 3, logLevel: "debug" } },
};

describe("a manifest with a wrong shape in one part", () => {
  test.for([
    [
      { ...config, spec: { ...config.spec, kernelArguments: ["quiet", 3, "debug"] } },
      ["error spec.kernelArguments[1]", "error spec.config.storage.files[1].path"],
    ],
    [
      { ...kubelet, spec: { ...kubelet.spec, logLevel: "many" } },
      ["error spec.logLevel", "error spec.kubeletConfig.maxPods"],
    ],
    [
      { ...kubelet, spec: { ...kubelet.spec, machineConfigPoolSelector: null } },
      ["error spec.kubeletConfig.maxPods", "warning spec.machineConfigPoolSelector"],
    ],
    [
      { ...kubelet, metadata: { name: "a", labels: { "example.com/a.b": 3 } } },
      ["error metadata.labels.example.com/a.b", "error spec.kubeletConfig.maxPods"],
    ],
    [
      { ...runtime, spec: { ...runtime.spec, machineConfigPoolSelector: { matchExpressions: [{ operator: "In" }] } } },
      ["error spec.machineConfigPoolSelector.matchExpressions[0].key", "error spec.containerRuntimeConfig.pidsLimit"],
    ],
  ] as const)("%j has the problems %j [sound-part-1]", ([manifest, problems]) => {
    expect(pathsOf(manifest)).toEqual(problems);
  });

  test("where nothing can be judged, only the shape is reported [sound-part-2]", () => {
    expect(pathsOf({ ...kubelet, spec: 3 })).toEqual(["error spec"]);
    expect(pathsOf({ ...kubelet, spec: { ...kubelet.spec, kubeletConfig: "x" } })).toEqual([
      "error spec.kubeletConfig",
    ]);
  });

  test("items of a list keep their indices when others are taken out [sound-part-3]", () => {
    const whole = { metadata: { name: "a" }, spec: { list: [0, "x", 2, "y", 4], other: 1 } };
    const sound = soundPart(whole, ({ spec: { list } }) =>
      list.flatMap((item, i) => (typeof item === "string" ? [`spec.list[${i}]`] : [])),
    );
    expect(sound?.part.spec.list).toEqual([0, 2, 4]);
    const problem = (path: string) => ({ severity: "error" as const, path, reason: "is odd" });
    expect(
      sound?.inWhole(["spec.list[1]", "spec.list[2].deeper", "spec.list", "spec", "", "spec.other"].map(problem)),
    ).toEqual(["spec.list[2]", "spec.list[4].deeper", "spec.other"].map(problem));
  });
});

/** All places of a value, as steps. */
function placesIn(value: unknown, steps: readonly (string | number)[] = []): readonly (readonly (string | number)[])[] {
  if (typeof value !== "object" || value === null) return [steps];
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [steps, ...inner.flatMap(([step, one]) => placesIn(one, [...steps, step]))];
}

function replaced(value: unknown, [step, ...rest]: readonly (string | number)[], by: unknown): unknown {
  if (step === undefined) return by;
  const inner = replaced((value as Readonly<Record<string | number, unknown>>)[step], rest, by);
  return Array.isArray(value) ? value.with(step as number, inner) : { ...(value as object), [step]: inner };
}

describe("any malformed manifest", () => {
  const valid = [config, kubelet, pool, runtime];
  const broken = fc
    .constantFrom(...valid)
    .chain((manifest) => {
      const places = placesIn(manifest).filter(
        ([top, next]) => top === "spec" || (top === "metadata" && next !== undefined && next !== "name"),
      );
      const change = fc.tuple(
        fc.constantFrom(...places),
        fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(undefined, null, {}, [], [null], "", -1, 1e300)),
      );
      return fc.tuple(fc.constant(manifest), fc.array(change, { minLength: 1, maxLength: 4 }));
    })
    .map(([manifest, changes]) =>
      changes.reduce<unknown>((now, [steps, by]) => {
        const present = placesIn(now).some((one) => JSON.stringify(one) === JSON.stringify(steps));
        return present ? replaced(now, steps, by) : now;
      }, manifest),
    )
    .map((value) => JSON.parse(JSON.stringify(value)) as Manifest);

  test("is judged without an exception, and keeps what its API server refuses [sound-part-4]", () => {
    fc.assert(
      fc.property(broken, (manifest) => {
        const { hasShape, problems } = judged(manifest);
        if (!hasShape) expect(problems.some(({ severity }) => severity === "error")).toBe(true);
      }),
      { numRuns: Number(process.env["RUNS"] ?? 1500) },
    );
  });
});
