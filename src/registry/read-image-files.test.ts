import { describe, expect, test } from "vitest";
import {
  type BuiltEntry,
  gzippedLayer,
  tarOf,
  windowedLayer,
  zstdLayer,
} from "../../test/support/registry/tar-builder.ts";
import { ownerIdsOf } from "./owner-ids.ts";
import { readImageFiles } from "./read-image-files.ts";
import { digestOf } from "./registry-client.ts";

const never = new AbortController().signal;

/** Reads from layers, bottom first; also reports which of them were read. */
async function read(
  layers: readonly (readonly BuiltEntry[])[],
  paths: readonly string[],
  pack = (entries: readonly BuiltEntry[]): { bytes: Uint8Array; compression: "none" | "gzip" | "zstd" } => ({
    bytes: gzippedLayer(...entries).bytes,
    compression: "gzip",
  }),
) {
  const opened: number[] = [];
  const packed = layers.map(pack);
  const described = packed.map(({ bytes, compression }) => ({
    mediaType: "",
    digest: digestOf(bytes),
    sizeBytes: bytes.length,
    annotations: {},
    compression,
  }));
  const open = async function* (layer: (typeof described)[number]) {
    const at = described.indexOf(layer);
    opened.push(at);
    yield packed[at]?.bytes ?? new Uint8Array();
  };
  const found = await readImageFiles(described, open, paths, never);
  return {
    files: Object.fromEntries([...found].map(([path, bytes]) => [path, Buffer.from(bytes).toString()])),
    opened,
  };
}

/** A layer of these bytes, as a manifest describes it. */
const gzipDescriptor = (bytes: Uint8Array) =>
  ({ mediaType: "", digest: digestOf(bytes), sizeBytes: bytes.length, annotations: {}, compression: "gzip" }) as const;

/** A mebibyte of one letter. */
function bombOf(letter: string): { readonly bytes: Uint8Array; readonly digest: string } {
  const { bytes } = gzippedLayer({ path: "usr/bomb", contents: letter.repeat(1024 * 1024) });
  return { bytes, digest: digestOf(bytes) };
}

const passwd = (contents: string): BuiltEntry => ({ path: "etc/passwd", contents });

describe("files of an image", () => {
  test.for<{ title: string; layers: readonly (readonly BuiltEntry[])[]; files: object; opened?: readonly number[] }>([
    {
      title: "the topmost layer with a file gives its content, and no layer below is read",
      layers: [[passwd("old")], [{ path: "./etc/passwd", contents: "new" }], [{ path: "etc/group" }]],
      files: { "/etc/passwd": "new" },
      opened: [2, 1],
    },
    {
      title: "a removed file does not exist",
      layers: [[passwd("old")], [{ path: "etc/.wh.passwd" }]],
      files: {},
      opened: [1],
    },
    {
      title: "an opaque directory hides its earlier content",
      layers: [[passwd("old")], [{ path: "etc/.wh..wh..opq" }]],
      files: {},
      opened: [1],
    },
    {
      title: "an opaque directory has the content of its own layer",
      layers: [[passwd("old")], [passwd("new"), { path: "etc/.wh..wh..opq" }]],
      files: { "/etc/passwd": "new" },
      opened: [1],
    },
    {
      title: "a file in the place of its folder hides it",
      layers: [[passwd("old")], [{ path: "etc", contents: "x" }]],
      files: {},
      opened: [1],
    },
    {
      title: "a link is not a file",
      layers: [[passwd("old")], [{ path: "etc/passwd", type: "2", target: "elsewhere" }]],
      files: {},
      opened: [1],
    },
    {
      title: "a hard link is the file that it names",
      layers: [
        [
          { path: "sysroot/ostree/repo/objects/1.file", contents: "object" },
          { path: "etc/passwd", type: "1", target: "sysroot/ostree/repo/objects/1.file" },
        ],
      ],
      files: { "/etc/passwd": "object" },
      opened: [0, 0],
    },
  ])("$title", async ({ layers, files, opened }) => {
    expect(await read(layers, ["/etc/passwd"])).toEqual({ files, opened });
  });

  test.for([
    {
      pack: (entries: readonly BuiltEntry[]) => ({ bytes: zstdLayer(...entries).bytes, compression: "zstd" as const }),
    },
    { pack: (entries: readonly BuiltEntry[]) => ({ bytes: tarOf(...entries), compression: "none" as const }) },
  ])("every compression is read", async ({ pack }) => {
    expect((await read([[passwd("x")]], ["/etc/passwd"], pack)).files).toEqual({ "/etc/passwd": "x" });
  });

  test("a layer with a wrong digest or compression is refused", async () => {
    const layer = gzippedLayer(passwd("x"));
    const described = {
      mediaType: "",
      digest: `sha256:${"1".repeat(64)}`,
      sizeBytes: 1,
      annotations: {},
      compression: "gzip" as const,
    };
    const from = (bytes: Uint8Array) =>
      async function* () {
        yield bytes;
      };
    await expect(readImageFiles([described], from(layer.bytes), ["/etc/passwd"], never)).rejects.toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
    });
    await expect(readImageFiles([described], from(layer.plain), ["/etc/passwd"], never)).rejects.toMatchObject({
      code: "MCO_IMAGE_INVALID",
      facts: { reason: "Z_DATA_ERROR" },
    });
  });

  test("presence is asked of files of any size, without their contents [read-image-files-1]", async () => {
    const { bytes } = gzippedLayer({ path: "usr/bin/runc", contents: "x".repeat(1024 * 1024 + 1) });
    const layer = gzipDescriptor(bytes);
    const open = async function* () {
      yield bytes;
    };
    const found = await readImageFiles([layer], open, ["/usr/bin/runc", "/usr/bin/crun"], never, "presence");
    expect([...found].map(([path, { length }]) => [path, length])).toEqual([["/usr/bin/runc", 0]]);
  });

  test("layers that are small are refused when they are too large together, unpacked [read-image-files-2]", async () => {
    const { bytes } = bombOf("x");
    const layer = gzipDescriptor(bytes);
    const readWith = (count: number) => {
      const open = async function* () {
        yield bytes;
      };
      const layers = Array.from({ length: count }, () => layer);
      return readImageFiles(layers, open, ["/etc/passwd"], never, "contents", {
        unpackedBytes: 3 * 1024 * 1024,
        entries: 10,
      });
    };
    expect(await readWith(2)).toEqual(new Map());
    await expect(readWith(512)).rejects.toMatchObject({ code: "MCO_IMAGE_INVALID", facts: { limitBytes: 3_145_728 } });
  });

  test("empty files are counted, of all layers together [read-image-files-3]", async () => {
    const { bytes } = gzippedLayer(...Array.from({ length: 20 }, (_, index) => ({ path: `usr/${index}` })));
    const layer = gzipDescriptor(bytes);
    const readWith = (entries: number) => {
      const open = async function* () {
        yield bytes;
      };
      return readImageFiles([layer, layer], open, ["/etc/passwd"], never, "contents", {
        unpackedBytes: 1024 * 1024,
        entries,
      });
    };
    expect(await readWith(40)).toEqual(new Map());
    await expect(readWith(39)).rejects.toMatchObject({
      code: "MCO_IMAGE_INVALID",
      facts: { problem: "its layers have too many entries", limit: 39 },
    });
  });

  test("a layer that takes too much memory to decompress is refused [read-image-files-4]", async () => {
    const readWith = async (windowLog: number) => {
      const { bytes } = await windowedLayer(windowLog, passwd("root"));
      return read([[]], ["/etc/passwd"], () => ({ bytes, compression: "zstd" }));
    };
    expect((await readWith(25)).files).toEqual({ "/etc/passwd": "root" });
    await expect(readWith(27)).rejects.toMatchObject({
      code: "MCO_IMAGE_INVALID",
      facts: { problem: "a layer takes too much memory to decompress" },
    });
  });

  test("a file that is too large is refused", async () => {
    await expect(read([[passwd("x".repeat(1024 * 1024 + 1))]], ["/etc/passwd"])).rejects.toMatchObject({
      code: "MCO_IMAGE_INVALID",
      facts: { limitBytes: 1024 * 1024 },
    });
  });
});

test("the machine's accounts override the vendor's, and invalid lines are skipped", async () => {
  const files: Readonly<Record<string, string>> = {
    "/usr/lib/passwd": "root:x:0:0::/:/bin/sh\nchrony:x:990:989::/:/bin/false\n",
    "/etc/passwd": "chrony:x:123:1::/:/bin/false\nbroken\nnobody:x::\n",
    "/usr/lib/group": "wheel:x:10:core\n",
  };
  const ids = await ownerIdsOf(
    {
      readFiles: async (_, paths) =>
        new Map(paths.flatMap((path) => (files[path] === undefined ? [] : [[path, Buffer.from(files[path])]]))),
    },
    "image",
    never,
  );
  expect([...ids.users]).toEqual([
    ["root", 0],
    ["chrony", 123],
  ]);
  expect([...ids.groups]).toEqual([["wheel", 10]]);
});
