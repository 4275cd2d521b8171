import { MachineConfigPool, kubernetes, names } from "../../src/api/index.ts";
import { openshiftKinds } from "../../src/standin/cluster/openshift-kinds.ts";
import { Harness } from "./control-plane-harness.ts";

/** A cluster with OpenShift's kinds, whose controllers run; the pools master and worker are built in, and infra is not. */
export async function openshiftHarness(): Promise<Harness> {
  const harness = await Harness.make();
  const body = { metadata: { labels: { [names.labels.builtInPool]: "" } } };
  await harness.act(async () => {
    for (const definition of openshiftKinds) await harness.kube.create(kubernetes.CustomResourceDefinition, definition);
    for (const name of ["master", "worker"])
      await harness.kube.patch(MachineConfigPool, { name }, { type: "merge", body });
    await harness.pool("infra");
  });
  harness.start();
  await harness.pass(5000);
  return harness;
}
