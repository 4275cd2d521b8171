import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, labels } from "../../api/names.ts";
import { isRendered, poolOfRendered } from "./is-rendered.ts";

const hash = "0123456789abcdef0123456789abcdef";
const controlledBy = (name: string, kind = "MachineConfigPool", controller = true) => ({
  ownerReferences: [{ apiVersion: "machineconfiguration.openshift.io/v1", kind, name, uid: "u", controller }],
});
const pools = [
  { metadata: { name: "worker" }, spec: { configuration: { name: `rendered-worker-${hash}` } } },
  { metadata: { name: "infra-gpu" }, spec: {} },
] as unknown as readonly MachineConfigPool[];

describe("isRendered", () => {
  test.for([
    {
      title: "the config that its pool controls is",
      name: `rendered-worker-${hash}`,
      more: controlledBy("worker"),
      is: true,
    },
    {
      title: "so is one of a pool with a hyphen",
      name: `rendered-infra-gpu-${hash}`,
      more: controlledBy("infra-gpu"),
      is: true,
    },
    {
      title: "so is one that a deleted pool left behind",
      name: `rendered-gone-${hash}`,
      more: controlledBy("gone"),
      is: true,
    },
    {
      title: "one of the installation is, as long as its pool points to it",
      name: `rendered-worker-${hash}`,
      more: {},
      is: true,
    },
    { title: "a name that no pool points to is not", name: `rendered-infra-gpu-${hash}`, more: {}, is: false },
    { title: "a user's name is not", name: "rendered-x", more: { labels: { [labels.role]: "worker" } }, is: false },
    {
      title: "a user's name is not, whatever owns the config",
      name: "rendered-x",
      more: controlledBy("worker"),
      is: false,
    },
    {
      title: "the name of one pool with the owner of another is not",
      name: `rendered-worker-${hash}`,
      more: controlledBy("infra-gpu"),
      is: false,
    },
    {
      title: "an owner that does not control is not enough",
      name: `rendered-gone-${hash}`,
      more: controlledBy("gone", "MachineConfigPool", false),
      is: false,
    },
    {
      title: "an owner of another kind is not enough",
      name: `rendered-worker-${hash}`,
      more: controlledBy("worker", "KubeletConfig"),
      is: false,
    },
    {
      title: "the annotation of generated configs says nothing of it",
      name: "99-generated",
      more: { annotations: { [annotations.generatedByController]: "1" } },
      is: false,
    },
    { title: "an owner alone says nothing of it", name: "99-generated", more: controlledBy("worker"), is: false },
  ])("$title", ({ name, more, is }) => {
    expect(isRendered({ metadata: { name, ...more } }, pools)).toBe(is);
  });

  test("the pool of a rendered config is the one that controls it", () => {
    const name = `rendered-worker-${hash}`;
    expect(poolOfRendered({ metadata: { name, ...controlledBy("worker") } })).toBe("worker");
    expect(poolOfRendered({ metadata: { name, ...controlledBy("infra") } })).toBeUndefined();
    expect(poolOfRendered({ metadata: { name } })).toBeUndefined();
  });
});
