import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type FakeSystem, fakeSystem } from "../../../test/support/hosts/fake-rpm-ostree.ts";
import { failure } from "../../../test/support/registry/pull-harness.ts";
import { systemClock, systemRandom } from "../../ports/node/index.ts";
import type { Host } from "../host.ts";
import type { PodImages } from "../pod-images.ts";
import { rpmOstreePodImages } from "./pod-images.ts";
import { rpmOstreeHost } from "./rpm-ostree-host.ts";

const { signal } = new AbortController();
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});
const app = `registry.example.com/apps/app@sha256:${"1".repeat(64)}`;
const other = `registry.example.com/apps/other@sha256:${"2".repeat(64)}`;
const policy = (type: string) => JSON.stringify({ default: [{ type }] });

async function machine(): Promise<{ readonly host: Host; readonly images: PodImages; readonly system: FakeSystem }> {
  const folder = await mkdtemp(join(tmpdir(), "mco-pod-images-"));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const root = join(folder, "root");
  const system = await fakeSystem({
    root,
    images: { os: { etc: { "/etc/os": "" }, usr: {} }, [app]: { etc: {}, usr: {} } },
    image: "os",
    extensions: [],
  });
  const ports = { root, processes: system.processes, clock: systemClock, architecture: "x64" };
  const host = await rpmOstreeHost({ ...ports, random: systemRandom });
  const images = rpmOstreePodImages({ ...ports, files: host.files });
  await put(host, "/etc/containers/policy.json", policy("insecureAcceptAnything"));
  await put(host, "/var/lib/kubelet/config.json", "{}");
  return { host, images, system };
}

const put = (host: Host, path: string, text: string) =>
  host.files.write(
    [{ path, entry: { kind: "file", contents: new TextEncoder().encode(text), mode: 0o644, uid: 0, gid: 0 } }],
    signal,
  );

// The fake gives files away, as root does on a real machine.
describe.runIf(process.geteuid?.() === 0)("images of pods on a machine with podman", () => {
  test("are there once they were pulled; their layers are known before [rpm-ostree-pod-images-1]", async () => {
    const { images, system } = await machine();
    expect(await images.has(app, signal)).toBe(false);
    expect(await images.layersOf(app, signal)).toEqual([{ digest: "sha256:aa", sizeBytes: 1234 }]);
    await images.pull(app, signal);
    expect(await images.has(app, signal)).toBe(true);
    const space = await images.space(signal);
    expect(space === undefined ? 0 : space.reserveBytes).toBeGreaterThan(0);
    expect(system.violations).toEqual([]);
  });

  test("that a registry lacks, or the machine's policy forbids, are refused by their code [rpm-ostree-pod-images-2]", async () => {
    const { host, images } = await machine();
    expect(await failure(images.layersOf(other, signal))).toMatchObject({ code: "MCO_IMAGE_ABSENT", retryable: false });
    expect(await failure(images.pull(other, signal))).toMatchObject({ code: "MCO_IMAGE_ABSENT", retryable: false });
    await put(host, "/etc/containers/policy.json", policy("reject"));
    expect(await failure(images.pull(app, signal))).toMatchObject({ code: "MCO_IMAGE_REFUSED", retryable: false });
  });
});
