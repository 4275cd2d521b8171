import { join } from "node:path";
import { afterAll, beforeAll, describe, inject } from "vitest";
import { MachineStateBook, MachineStateChapter, definedResources, kubernetes } from "../../src/api/index.ts";
import type { Resource } from "../../src/api/schema/object.ts";
import { connect } from "../../src/cli/connect.ts";
import { KubernetesBookStore } from "../../src/state/kubernetes-book-store.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { bookStoreSuite } from "../support/book-store-suite.ts";

describe.skipIf(!hasKubernetes)("books kept on a real kube-apiserver", () => {
  let connected: Awaited<ReturnType<typeof connect>>;
  const kinds: readonly Resource[] = [MachineStateBook, MachineStateChapter];

  beforeAll(async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    connected = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "test" });
    const { kube } = connected;
    const wanted = definedResources.filter(({ kind }) => kinds.some((one) => one.kind === kind));
    const { resourceVersion } = await kube.list(kubernetes.CustomResourceDefinition);
    for (const resource of wanted)
      await kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "test-books" });
    const served = new Set<string>();
    for await (const event of kube.watch(
      kubernetes.CustomResourceDefinition,
      {},
      { resourceVersion, timeoutSeconds: 30 },
      AbortSignal.timeout(30_000),
    )) {
      if (event.type === "BOOKMARK") continue;
      const { metadata, status } = event.object;
      if (
        status?.conditions?.some(({ type, status: is }) => type === "Established" && is === "True") === true &&
        wanted.some((resource) => resource.crd().metadata.name === metadata.name)
      )
        served.add(metadata.name);
      if (served.size === wanted.length) break;
    }
  });

  afterAll(async () => {
    for (const resource of kinds)
      await connected.kube.delete(kubernetes.CustomResourceDefinition, {
        name: `${resource.plural}.${resource.group}`,
      });
    connected.close();
  });

  bookStoreSuite(async () => {
    const { kube } = connected;
    for (const resource of kinds)
      for (const { metadata } of (await kube.list(resource)).items)
        await kube.delete(resource, { name: metadata.name });
    return new KubernetesBookStore(kube);
  });
});
