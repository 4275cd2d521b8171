import { expect, test } from "vitest";
import { diffIdsOf, layersOf, manifestFacts, mediaTypes, parseManifest } from "./manifest.ts";

const digest = `sha256:${"a".repeat(64)}`;
const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const config = { mediaType: mediaTypes.ociConfig, digest, size: 2 };
const layer = { mediaType: mediaTypes.ociLayerGzip, digest, size: 10 };
const image = { schemaVersion: 2, mediaType: mediaTypes.ociManifest, config, layers: [layer] };

function problem(value: unknown, sentAs?: string): unknown {
  try {
    const manifest = parseManifest(bytes(value), sentAs);
    if (manifest.kind === "image") layersOf(manifest);
    return undefined;
  } catch (error) {
    return (error as { facts?: { problem?: string } }).facts?.problem;
  }
}

test("images and indexes of both kinds are read, by their own media type or by what they were sent as", () => {
  const { mediaType: _, ...bare } = image;
  const list = {
    schemaVersion: 2,
    manifests: [
      { mediaType: mediaTypes.dockerManifest, digest, size: 1, platform: { os: "linux", architecture: "arm64" } },
    ],
  };
  expect(parseManifest(bytes(image))).toMatchObject({ kind: "image", layers: [{ digest, sizeBytes: 10 }] });
  expect(parseManifest(bytes({ ...bare, mediaType: mediaTypes.dockerManifest })).kind).toBe("image");
  expect(parseManifest(bytes(bare), `${mediaTypes.dockerManifest}; charset=utf-8`).kind).toBe("image");
  expect(parseManifest(bytes(bare), "application/json").kind).toBe("image");
  expect(parseManifest(bytes(list), mediaTypes.dockerList)).toMatchObject({
    kind: "index",
    manifests: [{ architecture: "arm64" }],
  });
  expect(parseManifest(bytes(list)).kind).toBe("index");
});

test("a manifest of backslashes is searched many at once, and no further than to half a character [registry-manifest-1]", () => {
  const { exec } = RegExp.prototype;
  let searches = 0;
  RegExp.prototype.exec = function counted(text) {
    searches += 1;
    return exec.call(this, text);
  };
  try {
    expect(problem(`{"a":"${"\\\\".repeat(100_000)}"}`)).toBe("its manifest has no schema version 2");
    expect(problem(`{"a":"\\ud800${"\\n\\\\".repeat(100_000)}"}`)).toBe("the manifest has half a character in a text");
  } finally {
    RegExp.prototype.exec = exec;
  }
  expect(searches).toBeLessThan(5000);
});

test.for([
  ["{", "the manifest is not JSON"],
  ['{"a":"\\ud83d\\ude00\\\\ud800 \\uDC00"}', "the manifest has half a character in a text"],
  ['{"a":"\\ud83d\\ude00\\\\ud800"}', "its manifest has no schema version 2"],
  [[], "the manifest is no object"],
  [{ ...image, schemaVersion: 1 }, "its manifest is of schema version 1, which is not supported"],
  [{ ...image, manifests: [] }, "its manifest is an index and an image at once"],
  [{ ...image, mediaType: "application/vnd.example+json" }, "its manifest is of a media type that is not supported"],
  [{ ...image, config: undefined }, "config is no object"],
  [{ ...image, config: { ...config, size: 5 * 1024 * 1024 } }, "its config is too large"],
  [{ ...image, layers: [{ ...layer, size: -1 }] }, "layer 1 of its manifest has no media type, digest and size"],
  [
    { ...image, layers: [{ ...layer, digest: "sha256:../../etc" }] },
    "layer 1 of its manifest has a digest that is not sha256",
  ],
  [
    { ...image, layers: [{ ...layer, mediaType: "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip" }] },
    "a layer is of a media type that is not supported",
  ],
  [{ ...image, layers: [{ ...layer, mediaType: "constructor" }] }, "a layer is of a media type that is not supported"],
  [{ ...image, layers: [{ ...layer, size: 9e12 }, layer] }, "its layers are too large together"],
  [{ ...image, layers: Array.from({ length: 513 }, () => layer) }, "layers of its manifest has too many entries"],
] as const)("%j is refused", ([value, wanted]) => {
  expect(problem(value)).toBe(wanted);
});

test("diff ids are digests", () => {
  expect(diffIdsOf(bytes({ rootfs: { diff_ids: [digest] } }))).toEqual([digest]);
  expect(() => diffIdsOf(bytes({ rootfs: { diff_ids: ["x"] } }))).toThrow("diff id");
});

test.for([
  `{"rootfs":{"diff_ids":["${digest}"]},"RootFS":{"diff_ids":[]}}`,
  `{"rootfs":{"diff_ids":["${digest}"]},"rootfs":{"diff_ids":["${digest}"]}}`,
  `{"rootfs":{"diff_ids":["${digest}"],"Diff_ids":[]}}`,
  `{"rootfs":{"diff_ids":["${digest}"]},"config":{"Labels":{},"labels":{"a":"b"}}}`,
  `{"rootfs":{"diff_ids":["${digest}"]},"Architecture":"arm64"}`,
])("the config of an image has no field twice, in no spelling: %s [registry-config-1]", (text) => {
  const config = Buffer.from(text);
  const read = () => [diffIdsOf(config), manifestFacts(config)];
  expect(read).toThrow(/field in another spelling|a field twice/);
});
