import { expect, test } from "vitest";
import { Harness } from "../../test/support/control-plane-harness.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { labels } from "../api/names.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";

const apiVersion = "machineconfiguration.openshift.io/v1";

test("an object with settings that changes again and again and is never judged holds its pool back for ten seconds only [render-awaits-1]", async () => {
  const harness = await Harness.make();
  await harness.act(() =>
    harness.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { labels: { pool: "worker" } } } },
    ),
  );
  harness.start();
  await harness.pass(15_000);
  const target = async () => {
    const pool = await harness.act(() => harness.kube.get(MachineConfigPool, { name: "worker" }));
    return pool?.spec.configuration?.name ?? "";
  };
  const before = await target();
  // Nothing more fits into it: its conditions are refused.
  const most = 3 * 1024 * 1024 - 1000;
  await harness.act(() =>
    harness.kube.create(KubeletConfig, {
      apiVersion,
      kind: "KubeletConfig",
      metadata: { name: "large" },
      spec: {
        machineConfigPoolSelector: { matchLabels: { pool: "worker" } },
        kubeletConfig: { maxPods: 0, unknown: "x".repeat(most) },
      },
    } as KubeletConfig),
  );
  await harness.act(() =>
    harness.kube.create(MachineConfig, {
      apiVersion,
      kind: "MachineConfig",
      metadata: { name: "50-fix", labels: { [labels.role]: "worker" } },
      spec: {
        config: {
          ignition: { version: "3.5.0" },
          storage: { files: [{ path: "/etc/fix", mode: 0o644, contents: { source: encodeDataUrl("fix") } }] },
        },
      },
    } as MachineConfig),
  );
  for (let i = 0; i < 6; i += 1) {
    await harness.act(() =>
      harness.kube.patch(KubeletConfig, { name: "large" }, { type: "merge", body: { spec: { logLevel: i + 1 } } }),
    );
    await harness.pass(8000);
  }
  const large = await harness.act(() => harness.kube.get(KubeletConfig, { name: "large" }));
  expect(large?.status?.observedGeneration).not.toBe(large?.metadata.generation);
  expect(await target()).not.toBe(before);
});
