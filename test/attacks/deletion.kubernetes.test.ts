import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/cli/connect.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { attackDeletions, deletable, refusals, removeKinds } from "../support/deletion-suite.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";

describe.skipIf(!hasKubernetes)("deletion of rendered configs without a controller, on a real control plane", () => {
  let kube: KubeClient;
  const closing: (() => void | Promise<void>)[] = [];
  beforeAll(async () => {
    const controlPlane = await startBareControlPlane();
    closing.push(() => controlPlane.stop());
    const admin = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "attack" });
    closing.push(() => admin.close());
    kube = admin.kube;
  });
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
  });

  test("one that a pool, node, machine or build names stays; the answer names the user object and the remedy [attack-deletion-3]", async () => {
    expect(await attackDeletions(kube)).toEqual({ refused: refusals, gone: deletable });
  });

  test("the kinds can be removed, with the configs in use [attack-deletion-4]", async () => {
    expect(await removeKinds(kube)).toEqual([]);
  });
});
