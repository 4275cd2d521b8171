import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ClusterOperator,
  ControllerConfig,
  MachineConfigNode,
  MachineConfigPool,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { TestCluster, hasApiServer } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { labels, namespace, objects } = names;
let cluster: TestCluster;

describe.skipIf(!hasApiServer)("the operator of a cluster", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 0 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  const operatorIs = (type: string, status: string, what: string) =>
    cluster.until(
      ClusterOperator,
      objects.clusterOperator,
      (operator) => conditionOf(operator.status?.conditions, type)?.status === status,
      what,
    );

  test("restores its pools' labels, and leaves their spec to the administrator [scenario-operator-2]", async () => {
    await cluster.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { labels: { [labels.builtInPool]: null } }, spec: { maxUnavailable: 2 } } },
    );
    const pool = await cluster.until(
      MachineConfigPool,
      "worker",
      ({ metadata }) => metadata.labels?.[labels.builtInPool] === "",
      "the label is back",
    );
    expect(pool.spec.maxUnavailable).toBe(2);
  });

  test("removes a MachineConfigNode without a Node [scenario-operator-1]", async () => {
    await cluster.kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: MachineConfigNode.kind,
      metadata: { name: "nobody" },
      spec: { node: { name: "nobody" }, pool: { name: "worker" }, configVersion: { desired: names.notYetSet } },
    });
    // Something has to make it look again.
    await cluster.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { spec: { maxUnavailable: 1 } } },
    );
    await expect
      .poll(() => cluster.kube.get(MachineConfigNode, { name: "nobody" }), { timeout: 300_000 })
      .toBeUndefined();
  });

  test("is Degraded while the OS image is unknown, and counts repetitions in the Event [scenario-operator-3]", async () => {
    const images = { name: objects.osImageConfigMap, namespace };
    const before = await cluster.kube.get(kubernetes.ConfigMap, images);
    for (const _ of ["once", "again"]) {
      await cluster.kube.patch(kubernetes.ConfigMap, images, {
        type: "merge",
        body: { data: { baseOSContainerImage: null } },
      });
      const degraded = await operatorIs("Degraded", "True", "the operator is degraded");
      expect(conditionOf(degraded.status?.conditions, "Degraded")?.message).toContain(objects.osImageConfigMap);
      await cluster.kube.patch(kubernetes.ConfigMap, images, { type: "merge", body: { data: before?.data } });
      await operatorIs("Degraded", "False", "the operator is well again");
    }
    const events = async () =>
      (
        await cluster.kube.list(kubernetes.Event, { fieldSelector: `involvedObject.name=${objects.clusterOperator}` })
      ).items
        .filter(({ reason }) => reason === "OperatorDegraded")
        .map(({ count }) => count);
    await expect.poll(events, { timeout: 300_000 }).toEqual([2]);
    expect(
      (await cluster.kube.get(ControllerConfig, { name: objects.controllerConfig }))?.spec.baseOSContainerImage,
    ).toBe(before?.data?.["baseOSContainerImage"]);
  });
});
