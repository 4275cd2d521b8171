import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readBelow } from "../ports/node/index.ts";
import { hostPaths } from "../api/names.ts";
import { tarOf } from "../../test/support/registry/tar-builder.ts";
import { readLayout, withOwnLayer } from "./read-layout.ts";

const digestOf = (bytes: string) => createHash("sha256").update(bytes).digest("hex");

/** A layout of one layer, as a builder writes it, and what an attacker makes of it. */
async function readAfter(attack: (folder: string, layer: string) => void, size?: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "mco-layout-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "layout/blobs/sha256"), { recursive: true });
  const put = (bytes: string, mediaType: string, named = bytes.length) => {
    const hex = digestOf(bytes);
    writeFileSync(join(folder, "layout/blobs/sha256", hex), bytes);
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest: `sha256:${hex}`, size: named };
  };
  const layer = put("a layer", "layer.v1.tar", size);
  const config = put(
    JSON.stringify({ rootfs: { type: "layers", diff_ids: [layer.digest] }, config: {} }),
    "config.v1+json",
  );
  const manifest = put(JSON.stringify({ schemaVersion: 2, config, layers: [layer] }), "manifest.v1+json");
  writeFileSync(join(folder, "layout/index.json"), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
  // What the container that reads the layout holds beside it.
  writeFileSync(join(folder, "credential"), "a layer");
  mkdirSync(join(folder, "outside/sha256"), { recursive: true });
  attack(folder, join(folder, "layout/blobs/sha256", layer.digest.slice("sha256:".length)));
  const parts: Uint8Array[] = [];
  try {
    const image = await readLayout(folder, "layout", readBelow);
    for (const { open } of image.layers)
      for await (const chunk of open(new AbortController().signal)) parts.push(chunk);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return Buffer.concat(parts).toString();
}

test("a layout that a builder wrote is read", async () => {
  expect(await readAfter(() => undefined)).toBe("a layer");
});

test.for<{ title: string; attack: (folder: string, layer: string) => void; size?: number; problem: RegExp }>([
  {
    title: "a blob that is a link",
    attack(folder, layer) {
      rmSync(layer);
      symlinkSync(join(folder, "credential"), layer);
    },
    problem: /it is a link/,
  },
  {
    title: "a folder of blobs that is a link",
    attack(folder) {
      renameSync(join(folder, "layout/blobs"), join(folder, "elsewhere"));
      symlinkSync(join(folder, "elsewhere"), join(folder, "layout/blobs"));
    },
    problem: /it lies behind a link/,
  },
  {
    title: "a layout that is a link",
    attack(folder) {
      renameSync(join(folder, "layout"), join(folder, "elsewhere"));
      symlinkSync(join(folder, "elsewhere"), join(folder, "layout"));
    },
    problem: /it lies behind a link/,
  },
  {
    title: "a pipe in place of a blob, which is not waited for",
    attack(_, layer) {
      rmSync(layer);
      execFileSync("mkfifo", [layer]);
    },
    problem: /it is no regular file/,
  },
  {
    title: "a blob with other bytes than its digest says",
    attack: (_, layer) => writeFileSync(layer, "b layer"),
    problem: /does not match its digest and size/,
  },
  {
    title: "a blob that is longer than its size says",
    attack: (_, layer) => writeFileSync(layer, "a layer and more"),
    problem: /more than 7 bytes/,
  },
  {
    title: "a blob that is shorter than its size says",
    attack: () => undefined,
    size: 8,
    problem: /does not match its digest and size/,
  },
  {
    title: "layers that are larger together than an image may be",
    attack: () => undefined,
    size: 17 * 1024 ** 3,
    problem: /too large together/,
  },
  {
    title: "an index that is larger than an index may be",
    attack: (folder) => writeFileSync(join(folder, "layout/index.json"), " ".repeat(1024 * 1024 + 1)),
    problem: /more than 1048576 bytes/,
  },
  {
    title: "a digest that leads out of the layout",
    attack: (folder) =>
      writeFileSync(
        join(folder, "layout/index.json"),
        JSON.stringify({
          schemaVersion: 2,
          manifests: [
            {
              mediaType: "application/vnd.oci.image.manifest.v1+json",
              digest: `sha256:${"../".repeat(20)}a`,
              size: 7,
            },
          ],
        }),
      ),
    problem: /digest/,
  },
])("the push refuses $title [build-image-layout-1]", async ({ attack, size, problem }) => {
  expect(await readAfter(attack, size)).toMatch(problem);
});

/** The layers of a built image whose steps left these files, with the configuration's own one. */
async function layersWith(...paths: readonly string[]): Promise<readonly string[]> {
  const layers = ["base", ...paths].map((path) => ({
    descriptor: { mediaType: "application/vnd.oci.image.layer.v1.tar", digest: path, size: 1 },
    diffId: path,
    async *open() {
      yield tarOf({ path });
    },
  }));
  const own = { bytes: new Uint8Array(1), diffId: "own", digest: "own" };
  const built = { mediaType: "", config: {}, layers };
  const made = await withOwnLayer(built, own, new Set(["base"]), new AbortController().signal);
  return made.layers.map(({ diffId }) => diffId);
}

test("the layer with the configuration is replaced by the configuration's own [build-own-layer-1]", async () => {
  const payload = hostPaths.payload.slice(1);
  expect(await layersWith("usr/a", payload, "usr/b")).toEqual(["base", "usr/a", "own", "usr/b"]);
});
