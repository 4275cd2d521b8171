import { expect, test } from "vitest";
import type { OSImageFacts, OSImageQuestion } from "../../core/preview/os-image-demands.ts";
import type { PoolForecast } from "../../core/preview/plan-cluster.ts";
import { judgeOSImages, osImageLines } from "./judge-os-images.ts";

const runc: OSImageQuestion["demands"] = {
  runtime: { path: "/etc/crio/crio.conf.d/01-x", name: "runc" },
  cgroupV1: [],
};
const changing = (pool: string, osImage: OSImageQuestion | undefined): PoolForecast => ({
  pool,
  verdict: "changes",
  from: "a",
  to: "b",
  paused: false,
  changes: [],
  because: [],
  services: [],
  irreconcilable: [],
  warnings: [],
  nodes: [{ node: `${pool}-0`, drains: true, reboots: true, actions: [], disruption: "reboot" }],
  ...(osImage === undefined ? {} : { osImage }),
});
const named = (name: string): OSImageQuestion => ({ demands: runc, image: { verdict: "named", name } });

test("an image is read once, and only where something is asked of it [judge-os-images-1]", async () => {
  const read: string[] = [];
  const facts: OSImageFacts = { verdict: "read", osRelease: {}, files: new Set(["/usr/bin/crun"]) };
  const forecasts = await judgeOSImages(
    {
      pools: [
        changing("worker", named("os@sha256:1")),
        changing("infra", named("os@sha256:1")),
        changing("quiet", undefined),
        changing("streamed", named("os@sha256:2")),
      ],
    },
    ["streamed"],
    (image) => {
      read.push(image);
      return Promise.resolve(facts);
    },
  );
  expect(read).toEqual(["os@sha256:1"]);
  expect(osImageLines(forecasts)).toEqual([
    expect.stringMatching(/^OS image of pool worker: breaks worker-0: .* runc, which the OS image does not have/),
    expect.stringMatching(/^OS image of pool infra: breaks infra-0: /),
  ]);
});

test("an image that cannot be read is no reason to stop, and said [judge-os-images-2]", async () => {
  const image = { verdict: "unread", problem: "no answer" } as const;
  const unread = { pools: [changing("worker", { demands: runc, image })] };
  const forecasts = await judgeOSImages(unread, [], () => Promise.reject(new Error("nothing to read")));
  expect(osImageLines(forecasts)).toEqual([
    expect.stringMatching(/^OS image of pool worker: not known: the OS image could not be read: no answer;/),
  ]);
  expect(forecasts[0]?.findings.map(({ verdict }) => verdict)).toEqual(["unknown"]);
});
