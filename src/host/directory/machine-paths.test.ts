import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { McoError } from "../../api/errors.ts";
import { folderStore } from "../../registry/node/folder-store.ts";
import { systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { directoryHost, directoryMachine } from "./directory-host.ts";
import { machineFiles } from "./machine-files.ts";
import { podImageFolder } from "./pod-images.ts";
import { machineMounts, resolveInRoot } from "./root-folder.ts";

const never = new AbortController().signal;
const pki = "/var/lib/kubelet/pki";
const certificate = `${pki}/kubelet-client-current.pem`;

let top = "";
/** A folder of the host that no machine may reach. */
let alice = "";
/** The machine's folder. */
let directory = "";
beforeEach(async () => {
  top = await fs.mkdtemp(join(tmpdir(), "mco-machine-paths-"));
  alice = join(top, "alice");
  directory = join(top, "hosts/w1");
  await fs.mkdir(join(alice, "etc"), { recursive: true });
  await fs.writeFile(join(alice, "etc/secret"), "alice's", { mode: 0o600 });
  await fs.mkdir(directory, { recursive: true });
});
afterEach(() => fs.rm(top, { recursive: true, force: true }));

/** All that is below Alice's folder, with its contents. */
async function seenByAlice(): Promise<Record<string, string>> {
  const entries = await fs.readdir(alice, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    await Promise.all(
      entries
        .filter((entry) => !entry.isDirectory())
        .map(async (entry) => {
          const path = join(entry.parentPath, entry.name);
          return [path.slice(alice.length + 1), entry.isFile() ? await fs.readFile(path, "utf8") : "no file"] as const;
        }),
    ),
  );
}
const untouched = { "etc/secret": "alice's" };

/** An OS image's tree. */
async function treeOf(name: string, make: (tree: string) => Promise<void>): Promise<string> {
  const tree = join(top, name);
  await fs.mkdir(tree);
  await make(tree);
  return tree;
}
const goodTree = () =>
  treeOf("good", async (tree) => {
    await fs.mkdir(join(tree, "usr/etc"), { recursive: true });
    await fs.writeFile(join(tree, "usr/etc/hostname"), "w1");
  });
const deploymentOf = (image: string) => ({
  image,
  kernelArguments: [],
  packages: [],
  kernelType: "default" as const,
});
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (error: unknown) => (error instanceof McoError ? `${error.code} ${String(error.facts["problem"])}` : String(error)),
  );

function machineWith(trees: Readonly<Record<string, string>>) {
  const images = {
    treeOf: async (image: string) => trees[image] ?? "",
    fetch: async () => undefined,
  };
  return {
    machine: directoryMachine({ directory, images }),
    host: directoryHost({ directory, images, requestReboot: async () => undefined }),
  };
}

describe("files beside the daemon of a machine", () => {
  let files: ReturnType<typeof machineFiles>;
  beforeEach(async () => {
    const { machine } = machineWith({ good: await goodTree() });
    await machine.provision(deploymentOf("good"));
    files = machineFiles(directory);
  });

  test("are written, replaced, read and removed by the machine's own paths [host-machine-paths-1]", async () => {
    expect(await files.readText(certificate)).toBeUndefined();
    await files.remove(certificate);
    await files.write(certificate, "first", { mode: 0o600 });
    await files.write(certificate, "second", { mode: 0o600 });
    await files.write("/etc/kubernetes/kubeconfig", "config", { mode: 0o600 });
    expect(await files.readText(certificate)).toBe("second");
    expect(await files.has("/etc/kubernetes/kubeconfig")).toBe(true);
    const real = join(directory, "sysroot", certificate);
    expect(await fs.readFile(real, "utf8")).toBe("second");
    expect((await fs.stat(real)).mode & 0o777).toBe(0o600);
    expect(await fs.readdir(dirname(real))).toEqual(["kubelet-client-current.pem"]);
    await files.remove(certificate);
    expect(await files.readText(certificate)).toBeUndefined();
  });

  test.for<[title: string, link: string, target: () => string]>([
    ["an absolute link", pki, () => alice],
    ["a link that climbs", pki, () => "../../../../../../alice"],
    ["a link above", "/var/lib/kubelet", () => alice],
    ["a link in place of the file", certificate, () => join(alice, "etc/secret")],
    ["a link to another machine", pki, () => join(dirname(directory), "m1/sysroot", pki)],
  ])("lead nowhere else: %s [host-machine-paths-2]", async ([, link, target]) => {
    const at = join(directory, "sysroot", link);
    await fs.mkdir(dirname(at), { recursive: true });
    await fs.symlink(target(), at);
    expect(await files.readText(certificate)).toBeUndefined();
    await files.write(certificate, "the machine's key", { mode: 0o600 });
    expect(await seenByAlice()).toEqual(untouched);
    expect(await files.readText(certificate)).toBe("the machine's key");
    await files.remove(certificate);
    expect(await files.readText(certificate)).toBeUndefined();
    expect(await seenByAlice()).toEqual(untouched);
    expect(await fs.readdir(join(top, "hosts"))).toEqual(["w1"]);
  });
});

describe("an OS image whose folders of the system are none", () => {
  test.for<[title: string, path: string, make: (tree: string) => Promise<void>]>([
    ["a link of /usr", "usr", (tree) => fs.symlink(alice, join(tree, "usr"))],
    ["/usr is a file", "usr", (tree) => fs.writeFile(join(tree, "usr"), "x")],
    [
      "a link of /usr/etc",
      "usr/etc",
      async (tree) => {
        await fs.mkdir(join(tree, "usr"));
        await fs.symlink(join(alice, "etc"), join(tree, "usr/etc"));
      },
    ],
    ["a link of /etc", "etc", (tree) => fs.symlink(join(alice, "etc"), join(tree, "etc"))],
    ["a link of /var", "var", (tree) => fs.symlink(alice, join(tree, "var"))],
  ])("is not laid down: %s [host-machine-paths-3]", async ([, path, make]) => {
    const { machine, host } = machineWith({ good: await goodTree(), bad: await treeOf("bad", make) });
    const problem = `its /${path} is no folder`;
    expect(await codeOf(machine.provision(deploymentOf("bad")))).toBe(`MCO_IMAGE_INVALID ${problem}`);
    await machine.provision(deploymentOf("good"));
    await host.os.stage(deploymentOf("bad"), undefined, never);
    await machine.boot({ orderly: true });
    expect(await host.os.finaliseFailure(never)).toContain(problem);
    expect((await host.os.status(never)).booted.image).toBe("good");
    expect(await seenByAlice()).toEqual(untouched);
    expect(await fs.readdir(join(directory, "rootfs/etc"))).toEqual(["hostname"]);
  });

  test("/usr/local may be a link, as an ostree system has it [host-machine-paths-4]", async () => {
    const tree = await goodTree();
    await fs.symlink("../var/usrlocal", join(tree, "usr/local"));
    const { machine } = machineWith({ good: tree });
    await machine.provision(deploymentOf("good"));
    expect(await fs.realpath(join(directory, "rootfs/usr/local"))).toBe(join(directory, "sysroot/var/usrlocal"));
  });
});

describe("images of pods", () => {
  test("lie where no path of the machine leads, and go with it [host-machine-paths-5]", async () => {
    const { machine } = machineWith({ good: await goodTree() });
    await machine.provision(deploymentOf("good"));
    const blobs = join(alice, "blobs");
    await fs.mkdir(blobs);
    await fs.writeFile(join(blobs, "a".repeat(64)), "x");
    await fs.utimes(join(blobs, "a".repeat(64)), 1, 1);
    const storage = join(directory, "sysroot/var/lib/containers/storage");
    await fs.mkdir(dirname(storage), { recursive: true });
    await fs.symlink(alice, storage);
    const folder = podImageFolder(directory);
    const store = folderStore(folder, { clock: systemClock, random: systemRandom, files: systemFiles });
    await store.keep(new Set(), 0);
    expect(await fs.readdir(blobs)).toEqual(["a".repeat(64)]);
    for (const path of ["/pod-images", "/../pod-images", "/var/../../pod-images", "/run/../../../pod-images/blobs"]) {
      const real = await resolveInRoot(join(directory, "rootfs"), path, machineMounts(directory), true);
      expect(real.startsWith(folder)).toBe(false);
    }
    await fs.mkdir(folder, { recursive: true });
    await machine.wipe();
    expect(await fs.readdir(directory)).toEqual([]);
  });
});
