import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { imageTrees } from "./image-trees.ts";
import { packedStockOs, stockOsImage, writeStockOs } from "../standin/cluster/stock-os.ts";
import { directoryHost, directoryMachine, imagesInUse } from "../host/directory/directory-host.ts";
import { systemClock, systemFiles, systemRandom } from "../ports/node/index.ts";
import { parseAuthFile } from "../registry/auth-file.ts";
import { httpsWire } from "../registry/node/https-wire.ts";
import { pushImage } from "../registry/push-image.ts";
import { registryClient } from "../registry/registry-client.ts";
import {
  attachSignature,
  bytesOf,
  failure,
  registry,
  sha256Of,
  temporaryFolder,
} from "../../test/support/registry/pull-harness.ts";
import { authJson, settings } from "../../test/support/registry/settings.ts";
import { gzippedLayer, tarOf } from "../../test/support/registry/tar-builder.ts";
import { untilSeen } from "../../test/support/until-seen.ts";
import type { TestRegistry } from "../../test/support/registry/test-registry.ts";

const never = new AbortController().signal;
const reject = '{"default":[{"type":"reject"}]}';

async function filesOf(folder: string, below = ""): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    const mode = ((await stat(join(folder, path))).mode & 0o7777).toString(8);
    if (entry.isDirectory()) Object.assign(found, { [`${path}/`]: mode }, await filesOf(folder, path));
    else found[path] = `${mode} ${await readFile(join(folder, path), "utf8")}`;
  }
  return found;
}

async function pushStock(to: TestRegistry, path: string, auth?: string): Promise<string> {
  const wire = httpsWire();
  try {
    const client = registryClient({
      wire: wire.send,
      clock: systemClock,
      auth: parseAuthFile(auth),
      certificates: async () => [],
    });
    await pushImage(
      packedStockOs,
      { host: to.host, path, insecure: false, tag: "1" },
      { client, clock: systemClock, random: systemRandom },
      never,
    );
  } finally {
    wire.close();
  }
  return `${to.host}/${path}@${packedStockOs.manifest.digest}`;
}

describe("the stock OS", () => {
  test("is the same tree, laid down or pushed and pulled", async () => {
    const [born, pulled] = [await temporaryFolder(), await temporaryFolder()];
    const from = await registry({ auth: { kind: "bearer", user: "builder", password: "s3cret" } });
    const auth = authJson(from.host, "builder", "s3cret");
    const image = await pushStock(from, "os/stock", auth);
    await pushStock(from, "os/stock", auth);
    expect(from.seen.filter(({ method, target }) => method === "PUT" && target.includes("/blobs/")).length).toBe(2);

    await writeStockOs(systemFiles, born);
    await imageTrees(pulled).fetch(image, settings({ auth }), never);
    expect(await filesOf(await imageTrees(pulled).treeOf(image, never))).toEqual(
      await filesOf(await imageTrees(born).treeOf(stockOsImage, never)),
    );
  });

  test("a provisioned image needs no confirmation, whatever the policy", async () => {
    const folder = await temporaryFolder();
    await writeStockOs(systemFiles, folder);
    await imageTrees(folder).fetch(stockOsImage, settings({ policy: reject }), never);
    expect(await readdir(folder)).toEqual([
      `sha256-${packedStockOs.manifest.digest.slice(7)}`,
      `sha256-${packedStockOs.manifest.digest.slice(7)}.complete`,
    ]);
  });
});

test("an image that was not fetched is unknown, and one without a digest is no OS image", async () => {
  const trees = imageTrees(await temporaryFolder());
  expect(await failure(trees.treeOf(`quay.io/os/a@sha256:${"1".repeat(64)}`, never))).toMatchObject({
    code: "MCO_HOST_IMAGE_UNKNOWN",
  });
  expect(await failure(trees.treeOf("quay.io/os/a:1", never))).toMatchObject({ code: "MCO_HOST_IMAGE_UNKNOWN" });
  expect(await failure(trees.fetch("quay.io/os/a:1", settings(), never))).toMatchObject({
    code: "MCO_IMAGE_INVALID",
    retryable: false,
  });
});

test("a tree that one machine fetched is another's only if its own policy says so", async () => {
  const folder = await temporaryFolder();
  const from = await registry();
  const key = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const image = await pushStock(from, "os/stock");
  const trees = imageTrees(folder);
  const signed = settings({
    policy: JSON.stringify({ default: [{ type: "sigstoreSigned", keyPath: "/k" }] }),
    file: async (path) =>
      path === "/k" ? key.publicKey.export({ type: "spki", format: "pem" }).toString() : undefined,
  });
  await trees.fetch(image, settings(), never);
  const asked = from.seen.length;
  await trees.fetch(image, settings(), never);
  expect(from.seen.length).toBe(asked);
  expect(await failure(trees.fetch(image, settings({ policy: reject }), never))).toMatchObject({
    code: "MCO_IMAGE_REFUSED",
  });
  expect(await failure(trees.fetch(image, signed, never))).toMatchObject({
    code: "MCO_IMAGE_REFUSED",
    requirement: "sigstoreSigned",
  });
  attachSignature(from, "os/stock", packedStockOs.manifest.digest, key.privateKey);
  await trees.fetch(image, signed, never);
});

test("an image that the policy refuses leaves no tree", async () => {
  const folder = await temporaryFolder();
  const from = await registry();
  const image = await pushStock(from, "os/stock");
  await failure(imageTrees(folder).fetch(image, settings({ policy: reject }), never));
  expect(await failure(imageTrees(folder).treeOf(image, never))).toMatchObject({ code: "MCO_HOST_IMAGE_UNKNOWN" });
});

test("what was half unpacked when a process was killed is removed, and a tree without its note is made again", async () => {
  const folder = await temporaryFolder();
  const from = await registry();
  const image = await pushStock(from, "os/stock");
  const tree = join(folder, packedStockOs.manifest.digest.replace(":", "-"));
  await mkdir(join(folder, ".part-999999999-1-dead"), { recursive: true });
  await mkdir(tree);
  await writeFile(join(tree, "half"), "");
  await imageTrees(folder).fetch(image, settings(), never);
  expect((await readdir(folder)).filter((name) => name.startsWith(".part"))).toEqual([]);
  expect(await readdir(tree)).toEqual(["usr"]);
});

describe("trees of images that are of no more use", () => {
  const hour = 3_600_000;
  const content = (n: number) =>
    tarOf({ path: "usr/lib/n", contents: `${n}` }, { path: "etc/n", contents: `${n}`, uid: 5 });

  /** A folder with machines and images, whose time the test turns. */
  async function harness() {
    const folder = await temporaryFolder();
    const from = await registry();
    let later = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + later };
    const trees = imageTrees(join(folder, "os"), { inUse: () => imagesInUse(join(folder, "hosts")), clock });
    const images = [0, 1, 2, 3, 4].map((n) => `${from.host}/os/a@${from.addImage("os/a", [{ bytes: content(n) }])}`);
    const machine = (name: string) => {
      const options = { directory: join(folder, "hosts", name), images: trees, requestReboot: async () => undefined };
      return {
        ...directoryMachine(options),
        stage: (image: string) => directoryHost(options).os.stage({ ...bare, image }, undefined, never),
      };
    };
    const bare = { kernelArguments: [], packages: [], kernelType: "default" } as const;
    await mkdir(join(folder, "os"));
    return {
      folder,
      trees,
      images,
      machine,
      bare,
      from,
      wait: (ms: number) => {
        later += ms;
      },
      fetch: (n: number) => trees.fetch(images[n] ?? "", settings(), never),
      /** Numbers of the images that have a tree. */
      left: async () => {
        const found: number[] = [];
        for (const [n, image] of images.entries())
          if ((await trees.treeOf(image, never).catch(() => undefined)) !== undefined) found.push(n);
        return found;
      },
    };
  }

  test("go an hour after somebody asked for them, with their blobs; what a machine boots, is about to boot or can go back to stays", async () => {
    const { folder, images, machine, bare, from, wait, fetch, left } = await harness();
    await writeStockOs(systemFiles, join(folder, "os"));
    const [first, second] = [machine("worker-0"), machine("worker-1")];
    for (const name of ["worker-0", "worker-1", "worker-new"])
      await mkdir(join(folder, "hosts", name), { recursive: true });
    for (const n of [0, 1, 2, 3]) await fetch(n);
    await first.provision({ ...bare, image: images[0] ?? "" });
    await first.stage(images[1] ?? "");
    await first.boot({ orderly: true });
    await second.provision({ ...bare, image: stockOsImage });
    await second.stage(images[2] ?? "");
    wait(2 * hour);
    await fetch(4);
    expect(await left()).toEqual([0, 1, 2, 4]);
    const lists = await readdir(join(folder, "os"));
    expect(lists.filter((name) => name.startsWith("sha256-")).length).toBe(2 * (4 + 1)); // With the one that machines are born with.
    expect(lists.filter((name) => name.startsWith("."))).toEqual([]);
    expect(await readdir(join(folder, "os/store/blobs"))).not.toContain(sha256Of(content(3)).slice(7));

    await fetch(3);
    expect(from.sentOf(sha256Of(content(3)))).toBe(2 * content(3).length);
    expect(await left()).toEqual([0, 1, 2, 3, 4]);
    // The first machine moves on twice: from then on it cannot go back to its first image.
    await first.stage(images[3] ?? "");
    await first.boot({ orderly: true });
    wait(2 * hour);
    await rm(join(folder, "os", (images[4] ?? "").split("@")[1]?.replace(":", "-") ?? ""), { recursive: true });
    await fetch(4);
    expect(await left()).toEqual([1, 2, 3, 4]);
  });

  test("stay as long as somebody asks for them, and all of them while a machine cannot say what it has", async () => {
    const { folder, wait, fetch, left } = await harness();
    for (const n of [0, 1]) await fetch(n);
    wait(hour - 60_000);
    await fetch(0);
    wait(hour - 60_000);
    await mkdir(join(folder, "hosts/worker-0"), { recursive: true });
    await writeFile(join(folder, "hosts/worker-0/state.json"), "{");
    await fetch(2);
    expect((await readdir(join(folder, "os"))).filter((name) => /^sha256-[0-9a-f]+$/.test(name)).length).toBe(3);
    await rm(join(folder, "hosts/worker-0"), { recursive: true });
    await fetch(3);
    expect(await left()).toEqual([0, 2, 3]);
  });

  test("go too when no note says that they are whole, an hour after they came", async () => {
    const { folder, images, wait, fetch, left } = await harness();
    await fetch(0);
    await rm(join(folder, "os", `${(images[0] ?? "").split("@")[1]?.replace(":", "-")}.complete`));
    await fetch(1);
    expect((await readdir(join(folder, "os"))).filter((name) => name.startsWith("sha256-")).length).toBe(3);
    wait(2 * hour);
    await fetch(2);
    expect((await readdir(join(folder, "os"))).filter((name) => name.startsWith("sha256-")).length).toBe(2);
    expect(await left()).toEqual([2]);
  });

  test("are not removed by who does not know the machines", async () => {
    const { folder, images, wait, fetch, left } = await harness();
    await fetch(0);
    wait(2 * hour);
    await imageTrees(join(folder, "os"), { clock: { ...systemClock, now: () => systemClock.now() + 2 * hour } }).fetch(
      images[1] ?? "",
      settings(),
      never,
    );
    expect(await left()).toEqual([0, 1]);
  });
});

test("a machine without root has the owners of what it pulled", async () => {
  const wasRoot = process.geteuid?.() === 0;
  if (wasRoot) process.seteuid?.(65534);
  try {
    const folder = await temporaryFolder();
    const from = await registry();
    const image = `${from.host}/os/a@${from.addImage("os/a", [{ bytes: tarOf({ path: "etc/key", contents: "1", mode: 0o440, uid: 5, gid: 6 }) }])}`;
    const options = {
      directory: join(folder, "node"),
      images: imageTrees(join(folder, "os")),
      requestReboot: async () => undefined,
    };
    await options.images.fetch(image, settings(), never);
    await mkdir(options.directory);
    await directoryMachine(options).provision({ image, kernelArguments: [], packages: [], kernelType: "default" });
    for (const entry of [
      await directoryHost(options).files.read("/etc/key", never),
      await directoryHost(options).files.vendor("/etc/key", never),
    ])
      expect(entry).toMatchObject({ mode: 0o440, uid: 5, gid: 6 });
  } finally {
    if (wasRoot) process.seteuid?.(0);
  }
});

describe("processes", () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL"); // None is left but by a test that failed.
  });
  function start(folder: string, image: string): ChildProcess {
    const child = spawn(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        join(import.meta.dirname, "../../test/support/registry/fetch-once.ts"),
        folder,
        image,
      ],
      { stdio: ["ignore", "inherit", "inherit"] },
    );
    started.push(child);
    return child;
  }
  const exitOf = async (child: ChildProcess): Promise<unknown> => (await once(child, "exit"))[0];
  const big = bytesOf(3 * 1024 * 1024, 9);
  const layer = tarOf({ path: "usr/lib/big", contents: big.toString("base64") });

  test("one that is killed half-way is followed by one that fetches the other half, and not a byte twice", async () => {
    const folder = await temporaryFolder();
    const from = await registry();
    const image = `${from.host}/os/a@${from.addImage("os/a", [{ bytes: layer }])}`;
    const blob = sha256Of(layer);
    const half = 2_000_000;
    from.plan(blob, { do: "stall", afterBytes: half });
    const first = start(folder, image);
    const partial = join(folder, "store", "partial");
    // Other parts of the image come and go there meanwhile.
    const sizeOf = (name: string) =>
      stat(join(partial, name)).then(
        ({ size }) => size,
        () => 0,
      );
    const arrived = async () => ({
      sizes: await Promise.all((await readdir(partial).catch(() => [])).map(sizeOf)),
      exitCode: first.exitCode,
    });
    await untilSeen(
      "half of the layer has arrived",
      arrived,
      ({ sizes, exitCode }) => exitCode !== null || sizes.includes(half),
      { everyMs: 10 },
    );
    expect(first.exitCode).toBe(null);
    first.kill("SIGKILL");
    expect(await exitOf(first)).toBe(null);
    expect(await failure(imageTrees(folder).treeOf(image, never))).toMatchObject({ code: "MCO_HOST_IMAGE_UNKNOWN" });

    expect(await exitOf(start(folder, image))).toBe(0);
    expect(from.seen.filter(({ target }) => target.endsWith(blob)).map(({ range }) => range)).toEqual([
      undefined,
      `bytes=${half}-`,
    ]);
    expect(from.sentOf(blob)).toBe(layer.length);
    expect(await readFile(join(await imageTrees(folder).treeOf(image, never), "usr/lib/big"), "utf8")).toBe(
      big.toString("base64"),
    );
  });

  test("three that fetch the same image at once all end well, with one tree", async () => {
    const folder = await temporaryFolder();
    const from = await registry();
    const image = `${from.host}/os/a@${from.addImage("os/a", [{ bytes: layer }, gzippedLayer({ path: "etc/a", contents: "1" })])}`;
    const children = [1, 2, 3].map(() => start(folder, image));
    expect(await Promise.all(children.map(exitOf))).toEqual([0, 0, 0]);
    expect((await readdir(folder)).filter((name) => name !== "store").length).toBe(2);
    expect(await readFile(join(await imageTrees(folder).treeOf(image, never), "usr/etc/a"), "utf8")).toBe("1");
    expect(await readdir(join(folder, "store", "partial"))).toEqual([]);
  });
});
