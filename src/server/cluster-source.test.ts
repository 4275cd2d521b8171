import { expect, onTestFinished, test } from "vitest";
import { ServerHarness } from "../../test/support/server-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, finalizers, machineOSBuildConditions as types, namespace, objects } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { ClusterSource } from "./cluster-source.ts";

const image = `registry.example.com/os@sha256:${"a".repeat(64)}`;

/** The pool `worker` with an image that every machine of it runs, and whose MachineOSConfig is being deleted. */
async function leavingPool(harness: ServerHarness): Promise<void> {
  const { kube } = harness;
  const config = (await kube.get(MachineConfigPool, { name: "worker" }))?.spec.configuration?.name ?? "";
  await kube.create(MachineOSBuild, {
    apiVersion: MachineOSBuild.apiVersion,
    kind: MachineOSBuild.kind,
    metadata: { name: "worker-1", annotations: { [annotations.imageContent]: "full" } },
    spec: {
      machineConfig: { name: config },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example.com/os:x",
    },
  });
  const succeeded = { type: types.succeeded, status: "True", reason: "Ready", message: "" };
  const conditions = [{ ...succeeded, lastTransitionTime: timestampOf(systemClock.now()) }];
  await kube.patch(
    MachineOSBuild,
    { name: "worker-1" },
    { type: "merge", body: { status: { conditions, digestedImagePushSpec: image } } },
    { subresource: "status" },
  );
  await kube.create(MachineOSConfig, {
    apiVersion: MachineOSConfig.apiVersion,
    kind: MachineOSConfig.kind,
    metadata: { name: "worker", finalizers: [finalizers.osBuildCleanup] },
    spec: {
      machineConfigPool: { name: "worker" },
      imageBuilder: { imageBuilderType: "Job" },
      renderedImagePushSecret: { name: "push" },
      renderedImagePushSpec: "registry.example.com/os:x",
    },
  });
  const machineOSBuild = { group: MachineOSBuild.group, resource: MachineOSBuild.plural, name: "worker-1" };
  await kube.patch(
    MachineOSConfig,
    { name: "worker" },
    { type: "merge", body: { status: { currentImagePullSpec: image, machineOSBuild } } },
    { subresource: "status" },
  );
  await kube.delete(MachineOSConfig, { name: "worker" });
}

/** A source that reads the harness's cluster until the test is over. */
function startSource({ kube }: ServerHarness): ClusterSource {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort(new Error("the test is over")));
  const source = new ClusterSource({
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    kube,
    apiServerUrl: "https://127.9.9.1:6443",
    fallbackCa: undefined,
    signal: stopping.signal,
  });
  source.run().catch(() => undefined);
  return source;
}

/** The image of the pool `worker` that machines which join get, as soon as there is an answer. */
async function servedImage(harness: ServerHarness): Promise<string | undefined> {
  const source = startSource(harness);
  return new Promise((resolve) =>
    source.onChange(() => {
      const answer = source.pool("worker");
      if (answer.verdict === "snapshot") resolve(answer.snapshot.inputs.image?.image);
    }),
  );
}

test.for([
  { title: "none: joining machines no longer get an image", text: "0", expected: undefined },
  { title: "longer than a day: joining machines get the image", text: "100000", expected: image },
])("the grace of an opt-out is that of the ConfigMap here too, $title", async ({ text, expected }) => {
  const harness = await ServerHarness.make();
  await leavingPool(harness);
  await harness.kube.apply(
    kubernetes.ConfigMap,
    { metadata: { name: objects.buildConfig, namespace }, data: { optOutGraceSeconds: text } },
    { owner: "people" },
  );
  expect(await servedImage(harness)).toBe(expected);
});

test("the names of pools are sorted once for each change of pools, not for each request [config-server-pools-1]", async () => {
  const harness = await ServerHarness.make();
  const source = startSource(harness);
  const changed = () => new Promise<void>((resolve) => void source.onChange(resolve));
  while (source.missing().length > 0) await changed();
  const names = source.pools();
  expect(names).toContain("worker");
  expect(source.pools()).toBe(names);

  const made = changed();
  await harness.kube.create(MachineConfigPool, {
    apiVersion: MachineConfigPool.apiVersion,
    kind: MachineConfigPool.kind,
    metadata: { name: "a-first" },
    spec: { machineConfigSelector: { matchLabels: { a: "b" } }, nodeSelector: { matchLabels: { a: "b" } } },
  });
  await made;
  while (!source.pools().includes("a-first")) await changed();
  expect(source.pools()).toEqual([...names, "a-first"].sort());
  expect(source.pools()).toBe(source.pools());
});
