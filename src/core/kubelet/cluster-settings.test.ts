import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { labels } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { clusterSettings, kubeletBaseOf } from "./cluster-settings.ts";

const base = (text: string): MachineConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name: "01-infra-kubelet", labels: { [labels.role]: "infra" } },
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: {
        files: [
          {
            path: "/etc/kubernetes/kubelet.conf",
            contents: { compression: "gzip", source: encodeDataUrl(gzipSync(text, { level: 9 })) },
          },
        ],
      },
    },
  },
});
const read = (config: MachineConfig) =>
  kubeletBaseOf("infra", clusterSettings({}), (name) => (name === config.metadata.name ? config : undefined));

test("a base kubelet.conf that is too large to be parsed is refused at once, and says so [cluster-settings-1]", () => {
  const large = base(`a:\n${"- 1\n".repeat(256 * 1024)}`);
  const before = process.threadCpuUsage();
  expect(read(large)).toEqual({
    verdict: "refused",
    reason:
      "01-infra-kubelet: /etc/kubernetes/kubelet.conf has more than 262144 characters, which are not read: shorten it, or delete 01-infra-kubelet to begin with the worker pool's",
  });
  expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(0.5);
});

test("a base kubelet.conf is parsed once, whoever begins with it [cluster-settings-2]", () => {
  const config = base(`maxPods: 7\na:\n${"- 1\n".repeat(30_000)}`);
  expect(read(config)).toMatchObject({ verdict: "read", config: { maxPods: 7 } });
  const before = process.threadCpuUsage();
  for (let i = 0; i < 20; i++) expect(read(config)?.verdict).toBe("read");
  expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(1);
});
