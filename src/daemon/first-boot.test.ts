import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { hostPaths } from "../api/names.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import type { Host } from "../host/host.ts";
import { type MemoryHost, memoryHost } from "../../test/support/hosts/memory-host.ts";
import { clockFrom } from "../ports/clock.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemRandom } from "../ports/node/index.ts";
import { memoryJournal } from "../ports/journal.ts";
import { documentStore } from "./machine-documents.ts";
import { completeFirstBoot, keepCompletingFirstBoot } from "./first-boot.ts";

const { signal } = new AbortController();
const images = {
  "os@1": { etc: { "/etc/app.conf": "vendor" }, usr: {} },
  "os@2": { etc: { "/etc/app.conf": "vendor" }, usr: {} },
  "ext@1": { etc: {}, usr: {} },
};

const served = (spec: Partial<MachineConfig["spec"]>): MachineConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name: "rendered-worker-1" },
  spec: {
    osImageURL: "os@1",
    baseOSExtensionsContainerImage: "ext@1",
    config: {
      ignition: { version: "3.5.0" },
      storage: { files: [{ path: "/etc/app.conf", mode: 0o644, contents: { source: encodeDataUrl("ours") } }] },
    },
    ...spec,
  },
});

/** A machine as Ignition leaves it: files written, what is left to do in a file. */
async function ignited(
  config: MachineConfig,
  parts: Partial<Parameters<typeof memoryHost>[0]> = {},
): Promise<MemoryHost> {
  const host = memoryHost({
    images,
    image: "os@1",
    kernelArguments: ["root=x"],
    random: systemRandom,
    onReboot: () => undefined,
    ...parts,
  });
  await host.boot({ orderly: true });
  const put = (path: string, text: string) =>
    host.files.write(
      [{ path, entry: { kind: "file", contents: new TextEncoder().encode(text), mode: 0o644, uid: 0, gid: 0 } }],
      signal,
    );
  await put("/etc/app.conf", "ours");
  await put(hostPaths.servedConfig, JSON.stringify(config));
  await put(
    hostPaths.encapsulated,
    JSON.stringify({ ...config, spec: { ...config.spec, config: { ignition: { version: "3.5.0" } } } }),
  );
  return host;
}

let now = 0;
const clock = clockFrom({
  now: () => now,
  monotonic: () => now,
  after: (ms, run) => {
    now += ms;
    queueMicrotask(run);
    return () => undefined;
  },
});
const options = (host: Host) => ({
  host,
  file: hostPaths.encapsulated,
  clock,
  log: silentLogger,
  journal: memoryJournal(),
});
const isThere = async (host: Host, path: string) => (await host.files.read(path, signal)) !== undefined;

describe("a first boot", () => {
  test("that needs nothing beyond Ignition completes at once, without a reboot [daemon-first-boot-2]", async () => {
    const host = await ignited(served({}));
    expect(await completeFirstBoot(options(host), signal)).toEqual({ verdict: "complete" });
    expect(host.reboots).toEqual([]);
    expect(await isThere(host, hostPaths.encapsulated)).toBe(false);
    expect(await isThere(host, hostPaths.encapsulatedDone)).toBe(true);
    expect(await completeFirstBoot(options(host), signal)).toEqual({ verdict: "complete" });
  });

  test("says which system the machine started from [daemon-first-boot-9]", async () => {
    const host = await ignited(served({}), {
      images: {
        ...images,
        "os@1": {
          ...images["os@1"],
          usr: { "/usr/lib/os-release": 'ID=rhcos\nPRETTY_NAME="Example CoreOS 418.94 \u001b[2J"\n' },
        },
      },
    });
    const journal = memoryJournal();
    await completeFirstBoot({ ...options(host), journal }, signal);
    expect(journal.lines[0]).toMatchObject({
      path: "EncapsulatedConfigRead",
      message: "rendered-worker-1; the machine started from Example CoreOS 418.94 \\u001b[2J",
      data: { bootImage: expect.stringContaining("Example CoreOS 418.94") as string },
    });
  });

  test("stages image, arguments, packages and kernel in one deployment, and reboots once [daemon-first-boot-3]", async () => {
    const host = await ignited(
      served({ osImageURL: "os@2", kernelArguments: ["nosmt"], extensions: ["usbguard"], kernelType: "realtime" }),
    );
    const journal = memoryJournal();
    expect(await completeFirstBoot({ ...options(host), journal }, signal)).toMatchObject({ verdict: "rebooting" });
    expect(journal.lines.map(({ path, mark, message }) => `${path} ${mark} ${message}`)).toEqual([
      "EncapsulatedConfigRead end rendered-worker-1",
      "OSUpdated begin os@2",
      "OSUpdated end os@2",
      "Extensions end usbguard",
      "Kargs end 1 kernel argument",
      expect.stringMatching(/^Reboot begin /),
    ]);
    expect(host.reboots).toHaveLength(1);
    expect(await isThere(host, hostPaths.encapsulated)).toBe(false);
    await host.boot({ orderly: true });
    const { booted } = await host.os.status(signal);
    expect(booted).toEqual({
      image: "os@2",
      kernelArguments: ["root=x", "nosmt"],
      packages: ["usbguard"],
      kernelType: "realtime",
    });
    // What the daemon will find: what it has, not yet proven, and what was there before, so that it can be restored.
    const known = await documentStore(host.ledger).load(signal);
    expect(known.previous).toMatchObject({ proven: false, config: { metadata: { name: "rendered-worker-1" } } });
    expect(known.originals?.paths["/etc/app.conf"]).toMatchObject({ kind: "file", contents: btoa("vendor") });
  });

  test("that loses power midway starts again and ends the same [daemon-first-boot-5]", async () => {
    const host = await ignited(served({ osImageURL: "os@2" }));
    await completeFirstBoot(options(host), signal);
    await host.boot({ orderly: false });
    expect((await host.os.status(signal)).booted.image).toBe("os@1");
    // The marker is gone, the ledger is not: the daemon goes on from it.
    expect((await documentStore(host.ledger).load(signal)).ledger).toMatchObject({
      target: "rendered-worker-1",
      owes: [{ kind: "reboot" }],
    });
  });

  test("is retried while a step fails [daemon-first-boot-6]", async () => {
    const host = await ignited(served({ osImageURL: "os@2" }));
    let failures = 3;
    const flaky: Host = {
      ...host,
      os: {
        ...host.os,
        prefetch: async (image, until) => {
          failures -= 1;
          if (failures >= 0) throw new Error("no route to the registry");
          await host.os.prefetch(image, until);
        },
      },
    };
    const before = now;
    const journal = memoryJournal();
    expect(await keepCompletingFirstBoot({ ...options(flaky), journal }, signal)).toMatchObject({
      verdict: "rebooting",
    });
    expect(now - before).toBe(180_000);
    // The same failure is told once.
    expect(journal.lines.filter(({ mark }) => mark === "fail").map(({ path, message }) => [path, message])).toEqual([
      ["OSUpdated", "no route to the registry"],
    ]);
  });

  test("refuses a kernel in the wrong FIPS mode without any change, and lets the machine join to report it [daemon-first-boot-4]", async () => {
    const host = await ignited(served({ fips: true, osImageURL: "os@2" }), { fips: false });
    expect(await completeFirstBoot(options(host), signal)).toMatchObject({
      verdict: "givenUp",
      reason: expect.stringContaining("FIPS") as string,
    });
    expect((await host.os.status(signal)).staged).toBeUndefined();
    expect(host.reboots).toEqual([]);
  });

  test("without a first-boot file does nothing [daemon-first-boot-1]", async () => {
    const host = memoryHost({ images, image: "os@1", random: systemRandom, onReboot: () => undefined });
    expect(await completeFirstBoot(options(host), signal)).toEqual({ verdict: "complete" });
    expect(host.snapshot().size).toBe(1);
  });
});
