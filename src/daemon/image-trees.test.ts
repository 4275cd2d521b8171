import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { hostPaths, imageLabels } from "../api/names.ts";
import { hostAt } from "../cli/host-at.ts";
import { imageTrees } from "../cli/image-trees.ts";
import { layerEntries } from "../core/config/image-content.ts";
import { type Wanted, readTarget } from "../core/machine/read-config.ts";
import { applyImageContent } from "./apply-image-content.ts";
import { type DirectoryHostOptions, directoryHost, directoryMachine } from "../host/directory/directory-host.ts";
import { systemDisk } from "../host/directory/disk.ts";
import { entriesBelow } from "../host/directory/root-folder.ts";
import { systemClock, systemProcesses, systemRandom } from "../ports/node/index.ts";
import { unpackLayers } from "../registry/node/unpack-layers.ts";
import { packLayer } from "../registry/pack-layer.ts";
import { packTree } from "../registry/pack-tree.ts";
import { live } from "../../test/support/live.ts";
import { type Content, machineConfigOf } from "../../test/support/machine-harness.ts";
import { treeIn } from "../cli/tree-record.ts";
import type { ContentMode } from "../core/config/node-config.ts";

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};
const { signal } = new AbortController();
const root = join(import.meta.dirname, "../..");
const passwd = "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\n";
const base = packTree(
  {
    "/etc/app.conf": { contents: "vendor" },
    "/etc/passwd": { contents: passwd },
    "/etc/group": { contents: "root:x:0:\ncore:x:1000:\n" },
    "/etc/shadow": { contents: "core:!!::0:99999:7:::\n", mode: 0o600 },
    "/usr/lib/os-release": { contents: 'ID="test"\n' },
    "/usr/lib/systemd/system/crio.service": { contents: "[Service]\n[Install]\nWantedBy=multi-user.target\n" },
  },
  "amd64",
);
const baseDiffId =
  (JSON.parse(new TextDecoder().decode(base.config.bytes)) as { rootfs: { diff_ids: readonly string[] } }).rootfs
    .diff_ids[0] ?? "";
const unit = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
const first: Content = {
  files: {
    "/etc/app.conf": "one",
    "/etc/deep/er/one": "1",
    "/var/lib/data": "one",
    "/usr/local/bin/tool": "#!/bin/sh\n",
  },
  units: [{ name: "a.service", enabled: true, contents: unit }],
  keys: ["ssh-ed25519 A"],
  ignition: {},
};
const second: Content = {
  files: { "/etc/app.conf": "two", "/etc/only-two": "2", "/var/lib/data": "two" },
  units: [{ name: "crio.service", dropins: [{ name: "10-x.conf", contents: "[Service]\nNice=1\n" }] }],
};
const owners = { users: new Map([["core", 1000]]), groups: new Map([["core", 1000]]) };
const imageNumber = (number: number) => `registry.example/pool@sha256:${String(number).padStart(64, "0")}`;
const stock = imageNumber(0);

const cleanups: string[] = [];
afterEach(async () => {
  for (const folder of cleanups.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** Machines of one folder, as the host of a cluster keeps them, with images as a registry would bring them. */
class Folder {
  readonly path: string;
  readonly #images: string;

  private constructor(path: string) {
    this.path = path;
    this.#images = join(path, "os");
  }

  static async make(): Promise<Folder> {
    const path = await mkdtemp(join(tmpdir(), "mco-images-"));
    cleanups.push(path);
    const made = new Folder(path);
    await mkdir(join(path, "os"), { recursive: true });
    await made.image(0, undefined, "os-only");
    return made;
  }

  /** Unpacks the stock system, with the layer of a configuration on top where there is one. */
  async image(number: number, wanted: Wanted | undefined, content: ContentMode): Promise<void> {
    const layer =
      wanted === undefined || content === "os-only" ? undefined : packLayer(layerEntries(wanted.config, owners), 0);
    const blobs = new Map<string, Uint8Array>([
      [base.layer.digest, base.layer.bytes],
      ...(layer === undefined ? [] : [[layer.digest, layer.bytes] as const]),
    ]);
    const described = [{ digest: base.layer.digest, diffId: baseDiffId }, ...(layer === undefined ? [] : [layer])].map(
      ({ digest, diffId }) => ({
        mediaType: "",
        digest,
        diffId,
        sizeBytes: 0,
        annotations: {},
        compression: "gzip" as const,
      }),
    );
    const tree = treeIn(this.#images, imageNumber(number)) ?? "";
    const open = async function* (digest: string) {
      yield blobs.get(digest) ?? new Uint8Array();
    };
    const owed = await unpackLayers(described, { open }, tree, signal);
    await writeFile(
      `${tree}.complete`,
      JSON.stringify({ v: 1, digests: [], blobs: [], owners: owed, labels: { [imageLabels.content]: content } }),
    );
  }

  async machine(name: string, applyContent: (directory: string) => Promise<void>) {
    const directory = join(this.path, "hosts", name);
    await mkdir(directory, { recursive: true });
    const options: DirectoryHostOptions = {
      directory,
      images: { ...imageTrees(this.#images), fetch: async () => undefined },
      requestReboot: async () => undefined,
      applyImageContent: () => applyContent(directory),
      disk: { ...systemDisk, sync: async () => undefined },
    };
    const machine = directoryMachine(options);
    await machine.provision({ image: stock, kernelArguments: [], packages: [], kernelType: "default" });
    await machine.boot({ orderly: true });
    const host = directoryHost(options);
    return { host, machine, directory };
  }
}

/** All of /etc and /var with owners, but what daemon and driver keep of their own. */
async function treeOf({
  host,
  directory,
}: {
  readonly host: ReturnType<typeof directoryHost>;
  readonly directory: string;
}): Promise<Readonly<Record<string, unknown>>> {
  const found: Record<string, unknown> = {};
  for (const top of ["etc", "../../var"]) {
    for (const { path } of await entriesBelow(join(directory, "rootfs", top))) {
      const name = `/${top === "etc" ? "etc" : "var"}/${path}`;
      if (name.startsWith(hostPaths.stateFolder) || name === hostPaths.currentConfig || name === hostPaths.currentImage)
        continue;
      const entry = await host.files.read(name, signal);
      found[name] = entry?.kind === "file" ? { ...entry, contents: new TextDecoder().decode(entry.contents) } : entry;
    }
  }
  return found;
}

let serial = 0;
function target(content: Content, number?: number, mode: ContentMode = "full"): Wanted {
  const read = readTarget(
    machineConfigOf(`rendered-${(serial += 1)}`, { ...content, spec: { osImageURL: stock } }),
    number === undefined ? undefined : { image: imageNumber(number), content: mode },
  );
  if (read.verdict === "refused") throw new Error(read.reason);
  return read.wanted;
}

let runs = 0;
/** The program itself, as the unit runs it; after the first time, what it does, in this process. */
async function runSettle(directory: string): Promise<void> {
  runs += 1;
  if (runs > 1) {
    const outcome = await applyImageContent(
      { host: await hostAt(join(directory, "rootfs")), clock: systemClock, random: systemRandom, log: silent },
      signal,
    );
    if (outcome.verdict !== "settled") throw new Error(JSON.stringify(outcome));
    return;
  }
  const { code, stderr } = await systemProcesses.run(
    process.execPath,
    [join(root, "src/cli/main.ts"), "settle", "--root-mount", join(directory, "rootfs")],
    { signal, env: { PATH: "" } },
  );
  if (code !== 0) throw new Error(stderr);
}

test(
  "a directory machine boots an image, the next one, the previous one, and stock without a trace of an image [daemon-image-trees-1]",
  { timeout: 60_000 },
  async () => {
    const folder = await Folder.make();
    const layered = await folder.machine("layered", runSettle);
    const never = await folder.machine("never", async () => undefined);
    const [withFirst, withSecond] = [target(first, 1), target(second, 2)];
    await folder.image(1, withFirst, "full");
    await folder.image(2, withSecond, "full");
    await live(layered, target(first), Infinity);
    await live(never, target(first), Infinity);
    const classic = await treeOf(layered);
    expect(classic).toEqual(await treeOf(never));

    await live(layered, withFirst, Infinity);
    expect((await layered.host.os.status(signal)).booted.image).toBe(imageNumber(1));
    expect(await treeOf(layered)).toEqual(classic);
    // The image's own content, by ostree's merge: nothing of the machine hides it.
    expect(await layered.host.files.vendor("/etc/deep/er/one", signal)).toEqual(
      await layered.host.files.read("/etc/deep/er/one", signal),
    );

    await live(layered, withSecond, Infinity);
    await live(never, target(second), Infinity);
    const stocked = await treeOf(never);
    expect(await treeOf(layered)).toEqual(stocked);

    await layered.host.os.bootPrevious(signal);
    await layered.machine.boot({ orderly: true });
    expect(await treeOf(layered)).toEqual(classic);

    await live(layered, target(second), Infinity);
    expect((await layered.host.os.status(signal)).booted.image).toBe(stock);
    expect(await treeOf(layered)).toEqual(stocked);
  },
);
