import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hostAt } from "./host-at.ts";

const signal = new AbortController().signal;
let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mco-host-at-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function lay(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

const running = { "usr/lib/os-release": "ID=fedora\n", "proc/sys/kernel/random/boot_id": "b\n" };

describe("the driver of a machine", () => {
  test("is `directory` where a state file lies beside the root file system", async () => {
    await lay({ "node/state.json": "{}", "node/sysroot/x": "" });
    await symlink(join(folder, "node/sysroot"), join(folder, "rootfs"));
    await lay({ "state.json": "{}" });
    expect((await hostAt(join(folder, "rootfs"))).driver).toBe("directory");
  });

  test("is `rpm-ostree` on a running system, with files and units only where ostree did not boot it", async () => {
    await lay(running);
    const host = await hostAt(folder);
    expect(host.driver).toBe("rpm-ostree");
    expect((await host.os.status(signal)).can).toMatchObject({
      images: false,
      kernelArguments: false,
      packages: false,
    });
  });

  test("is none for a folder that is no machine", async () => {
    await lay({ "etc/x": "" });
    await expect(hostAt(folder)).rejects.toMatchObject({
      code: "MCO_HOST_COMMAND_FAILED",
      facts: { problem: "this is not a machine that any driver knows" },
    });
  });
});
