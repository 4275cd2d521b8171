import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { hostPaths, imageLabels } from "../api/names.ts";
import { readTarget } from "../core/machine/read-config.ts";
import { applyImageContent } from "./apply-image-content.ts";
import { systemDisk } from "../host/directory/disk.ts";
import type { Host } from "../host/host.ts";
import type { MemoryImage } from "../../test/support/hosts/memory-host.ts";
import { fakeSystem } from "../../test/support/hosts/fake-rpm-ostree.ts";
import { rpmOstreeHost } from "../host/rpm-ostree/rpm-ostree-host.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { imageNumber, imageOf } from "../../test/support/image-harness.ts";
import { live } from "../../test/support/live.ts";
import { type Content, machineConfigOf } from "../../test/support/machine-harness.ts";

const { signal } = new AbortController();
const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};
const accounts = {
  "/etc/passwd": "root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n",
  "/etc/group": "core:x:1000:\n",
  "/etc/shadow": "root:*:1:0:99999:7:::\ncore:!!:1:0:99999:7:::\n",
};
const base: MemoryImage = {
  etc: {
    ...accounts,
    "/etc/app.conf": "vendor",
    "/etc/containers/policy.json": '{"default":[{"type":"insecureAcceptAnything"}]}',
  },
  usr: {
    "/usr/lib/os-release": 'ID="rhcos"\n',
    "/usr/lib/systemd/system/crio.service": "[Service]\n[Install]\nWantedBy=multi-user.target\n",
  },
};
const unit = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
const first: Content = {
  files: { "/etc/app.conf": "one", "/var/lib/data": "one" },
  units: [{ name: "a.service", enabled: true, contents: unit }],
  keys: ["ssh-ed25519 A"],
};
const second: Content = { files: { "/etc/app.conf": "two", "/usr/local/bin/tool": "2" }, ignition: {} };

const cleanups: string[] = [];
afterEach(async () => {
  for (const folder of cleanups.splice(0)) await rm(folder, { recursive: true, force: true });
});

// The fake gives files away, as root does on a real machine.
describe.runIf(process.geteuid?.() === 0)("a machine with rpm-ostree", () => {
  test("boots an image, the previous one and stock by documented commands only", { timeout: 60_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "mco-rpm-images-"));
    cleanups.push(folder);
    const stock = imageNumber(0);
    const images: Record<string, MemoryImage> = {
      [stock]: base,
      [imageNumber(1)]: imageOf(first, "full", base),
      [imageNumber(2)]: imageOf(second, "full", base),
    };
    const root = join(folder, "root");
    let host: Host | undefined;
    const applyContent = async () => {
      if (host === undefined) return;
      const outcome = await applyImageContent({ host, clock: systemClock, random: systemRandom, log: silent }, signal);
      if (outcome.verdict !== "settled" && outcome.verdict !== "nothing") throw new Error(JSON.stringify(outcome));
    };
    const system = await fakeSystem({ root, images, image: stock, extensions: [], applyImageContent: applyContent });
    await system.boot({ orderly: true });
    host = await rpmOstreeHost({
      root,
      processes: system.processes,
      clock: systemClock,
      random: systemRandom,
      architecture: "x64",
      disk: { ...systemDisk, sync: async () => undefined },
    });
    const machine = { host, machine: system };
    const target = (content: Content, number?: number) => {
      const read = readTarget(
        machineConfigOf(`rendered-${number ?? 0}`, { ...content, spec: { osImageURL: stock } }),
        number === undefined ? undefined : { image: imageNumber(number), content: "full" },
      );
      if (read.verdict === "refused") throw new Error(read.reason);
      return read.wanted;
    };
    const text = async (path: string) => {
      const entry = await host?.files.read(path, signal);
      return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : entry?.kind;
    };

    await live(machine, target(first), Infinity);
    expect(await live(machine, target(first, 1), Infinity)).toEqual({ verdict: "inSync" });
    expect(await host.os.labels(imageNumber(1), signal)).toMatchObject({ [imageLabels.content]: "full" });
    expect((await host.os.status(signal)).rollback?.image).toBe(stock);
    expect(await live(machine, target(second, 2), Infinity)).toEqual({ verdict: "inSync" });
    expect([
      await text("/etc/app.conf"),
      await text("/usr/local/bin/tool"),
      await text("/var/lib/data"),
      await text(hostPaths.sshKeys),
      await text("/etc/systemd/system/a.service"),
    ]).toEqual(["two", "2", undefined, undefined, undefined]);

    await host.os.bootPrevious(signal);
    await system.boot({ orderly: true });
    expect([
      await text("/etc/app.conf"),
      await text("/usr/local/bin/tool"),
      await text("/var/lib/data"),
      await text(hostPaths.sshKeys),
      await text("/etc/systemd/system/a.service"),
    ]).toEqual(["one", undefined, "one", "ssh-ed25519 A\n", unit]);

    expect(await live(machine, target({}), Infinity)).toEqual({ verdict: "inSync" });
    expect((await host.os.status(signal)).booted.image).toBe(stock);
    expect([
      await text("/etc/app.conf"),
      await text("/var/lib/data"),
      await text(`/etc/systemd/system/${hostPaths.settleUnit}`),
    ]).toEqual(["vendor", undefined, undefined]);
    expect(system.violations).toEqual([]);
  });
});
