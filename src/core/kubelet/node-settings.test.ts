import { expect, test } from "vitest";
import { allocatableOf, nodeSettings } from "./node-settings.ts";

const conf = (more: object) =>
  JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...more });
const capacity = { cpu: "2", memory: "8Gi", pods: "250", "ephemeral-storage": "64Gi" };

test("a Node has the pods and taints of its kubelet's configuration, and withholds what that reserves [node-settings-1]", () => {
  const settings = nodeSettings(
    conf({
      maxPods: 64,
      registerWithTaints: [{ key: "a", effect: "NoSchedule" }],
      systemReserved: { memory: "1Gi", cpu: "500m" },
      evictionHard: { "memory.available": "25%", "nodefs.available": "4Gi", "imagefs.available": "5%" },
    }),
  );
  expect(settings).toMatchObject({ maxPods: 64, taints: [{ key: "a", effect: "NoSchedule" }] });
  expect(allocatableOf(capacity, settings ?? expect.fail())).toEqual({
    cpu: "1500m",
    memory: `${5 * 1024 * 1024}Ki`,
    pods: "250",
    "ephemeral-storage": `${60 * 1024 * 1024}Ki`,
  });
});

test("reservations for the system that are in the file for the machine's sizing count, unless it leaves them to the machine [node-settings-3]", () => {
  const sizing = (isAutomatic: boolean) =>
    `NODE_SIZING_ENABLED=${isAutomatic}\nSYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=4Gi\n`;
  const text = conf({ kubeReserved: { memory: "1Gi" }, systemReserved: { cpu: "250m" } });
  expect(allocatableOf(capacity, nodeSettings(text, sizing(false)) ?? expect.fail())).toEqual({
    cpu: "1500m",
    memory: `${6 * 1024 * 1024}Ki`,
    pods: "250",
    "ephemeral-storage": `${60 * 1024 * 1024}Ki`,
  });
  expect(allocatableOf(capacity, nodeSettings(text, sizing(true)) ?? expect.fail())).toMatchObject({
    cpu: "1750m",
    "ephemeral-storage": "64Gi",
  });
});

test("without settings a kubelet has its defaults, and one that would not start has none [node-settings-2]", () => {
  const settings = nodeSettings(conf({}));
  expect(settings).toMatchObject({ maxPods: 110, taints: [] });
  expect(allocatableOf(capacity, settings ?? expect.fail())).toEqual(capacity);
  expect(allocatableOf({ memory: "1Gi" }, { withheld: [{ memory: "2Gi" }] })).toEqual({ memory: "0Ki" });
  for (const wrong of [conf({ maxPods: -1 }), "not: [yaml", "{}"]) expect(nodeSettings(wrong)).toBeUndefined();
});
