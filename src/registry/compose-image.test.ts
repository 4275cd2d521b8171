import { describe, expect, test } from "vitest";
import { composeImage, parentFrom } from "./compose-image.ts";
import { mediaTypes, parseManifest } from "./manifest.ts";
import { packLayer } from "./pack-layer.ts";
import { packTree } from "./pack-tree.ts";
import { digestOf } from "./registry-client.ts";

const stock = packTree({ "/usr/lib/os-release": { contents: "ID=mco\n" } }, "amd64");
const nowhere = () => ({
  async *open() {
    yield new Uint8Array();
  },
});
const parent = parentFrom(stock.manifest.bytes, stock.config.bytes, nowhere);
const layer = (contents: string) =>
  packLayer([{ path: "/etc/x", kind: "file", contents: Buffer.from(contents), mode: 0o644, uid: 0, gid: 0 }], 7);
const addition = (contents: string, dropTopLayer = false) => ({
  dropTopLayer,
  layer: layer(contents),
  labels: { content: contents },
  repository: "r",
  tag: "t",
  createdSeconds: 7,
});
const asParent = (image: ReturnType<typeof composeImage>) =>
  parentFrom(image.manifest.bytes, image.config.bytes, nowhere);

describe("an image appended to another", () => {
  test("has the parent's layers and one of ours on top, in both of its documents", () => {
    const made = composeImage(parent, addition("a"));
    expect(parseManifest(made.manifest.bytes)).toMatchObject({
      kind: "image",
      config: { digest: digestOf(made.config.bytes) },
      layers: [{ digest: stock.layer.digest }, { digest: layer("a").digest, mediaType: mediaTypes.ociLayerGzip }],
    });
    expect(JSON.parse(made.config.bytes.toString())).toMatchObject({
      architecture: "amd64",
      created: "1970-01-01T00:00:07Z",
      config: { Labels: { content: "a" } },
      rootfs: { diff_ids: [...parent.layers.map(({ diffId }) => diffId), layer("a").diffId] },
    });
  });

  test("is the same image each time, and the same whether or not an older configuration was there before", () => {
    const made = composeImage(parent, addition("a"));
    expect(composeImage(parent, addition("a")).manifest).toEqual(made.manifest);
    expect(composeImage(asParent(composeImage(parent, addition("b"))), addition("a", true)).manifest).toEqual(
      made.manifest,
    );
  });

  test("without a layer differs only by its labels", () => {
    const { layer: _, ...labelsOnly } = addition("a");
    const made = composeImage(parent, labelsOnly);
    expect(asParent(made).layers.map(({ descriptor }) => descriptor)).toEqual(
      parent.layers.map(({ descriptor }) => descriptor),
    );
    expect(made.layer).toBeUndefined();
  });

  test("uses its parent's form of manifest", () => {
    const docker = { ...parent, mediaType: mediaTypes.dockerManifest };
    expect(parseManifest(composeImage(docker, addition("a")).manifest.bytes)).toMatchObject({
      layers: [{}, { mediaType: "application/vnd.docker.image.rootfs.diff.tar.gzip" }],
      config: { mediaType: "application/vnd.docker.container.image.v1+json" },
    });
    expect(() => composeImage({ ...parent, mediaType: "text/plain" }, addition("a"))).toThrow(
      expect.objectContaining({ code: "MCO_IMAGE_INVALID" }),
    );
  });
});
