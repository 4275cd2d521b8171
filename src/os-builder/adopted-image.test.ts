import { expect, test } from "vitest";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, imageLabels, labels } from "../api/names.ts";
import { BuilderHarness } from "../../test/support/builder-harness.ts";

test("an image that a MachineOSConfig named as one of the installation is not removed from its registry [os-builder-adopted-1]", async () => {
  const harness = await BuilderHarness.make();
  const foreign = `registry.example.com/payments/api@sha256:${"7".repeat(64)}`;
  harness.registry.images.set(foreign, {});
  await harness.act(() => harness.optIn("worker", { [annotations.preBuiltImage]: foreign }));
  harness.start();
  await harness.pass(10_000);
  await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "worker" }));
  for (let index = 0; index < 3; index += 1) await harness.pass(3_600_000);
  expect(harness.registry.deleted).not.toContain(foreign);
});

test("it stays when its build was deleted and came back, and when its key was built for again [os-builder-adopted-2]", async () => {
  const harness = await BuilderHarness.make();
  const foreign = `registry.example.com/payments/api@sha256:${"7".repeat(64)}`;
  harness.registry.images.set(foreign, { [imageLabels.content]: "full" });
  await harness.act(() => harness.optIn("worker", { [annotations.preBuiltImage]: foreign }));
  harness.start();
  await harness.pass(10_000);
  // Named again, so that the condition is written again.
  await harness.act(() =>
    harness.kube.patch(
      MachineOSConfig,
      { name: "worker" },
      { type: "merge", body: { metadata: { annotations: { [annotations.preBuiltImage]: foreign } } } },
    ),
  );
  await harness.pass(10_000);
  const [adopted] = await harness.builds();
  await harness.act(() => harness.kube.delete(MachineOSBuild, { name: adopted?.metadata.name ?? "" }));
  await harness.pass(60_000);
  const again = await harness.builds();
  expect(again.map(({ status }) => status?.digestedImagePushSpec)).toEqual([foreign]);
  expect(again.map(({ metadata }) => metadata.labels?.[labels.preBuiltImage])).toEqual(["true"]);
  expect(again[0]?.metadata.uid).not.toBe(adopted?.metadata.uid);
  await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "worker" }));
  for (let index = 0; index < 3; index += 1) await harness.pass(3_600_000);
  expect(await harness.builds()).toEqual([]);
  expect(harness.registry.deleted).not.toContain(foreign);
});
