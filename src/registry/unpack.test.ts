import { execFileSync } from "node:child_process";
import { lstat, mkdir, readFile, readdir, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type UnpackLimits, unpackLayers } from "./node/unpack-layers.ts";
import { failure, sha256Of, temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import {
  type BuiltEntry,
  gzippedLayer,
  paxHeader,
  tarOf,
  windowedLayer,
  zstdLayer,
} from "../../test/support/registry/tar-builder.ts";

type Layer = { readonly bytes: Uint8Array; readonly plain?: Uint8Array; readonly mediaType?: string };

const never = new AbortController().signal;
const asRoot = process.geteuid?.() === 0;
const nobody = 65534;

/** Unpacks layers into a folder inside of another one that must stay as it is. */
const unpack = async (layers: readonly (Layer | readonly BuiltEntry[])[], limits?: UnpackLimits): Promise<string> =>
  (await unpacked(layers, limits)).tree;

async function unpacked(layers: readonly (Layer | readonly BuiltEntry[])[], limits?: UnpackLimits) {
  const outside = await temporaryFolder();
  await writeFile(join(outside, "outside"), "untouched");
  const made = layers.map((layer): Layer => ("bytes" in layer ? layer : { bytes: tarOf(...layer) }));
  const described = made.map(({ bytes, plain, mediaType = "" }) => ({
    mediaType,
    digest: sha256Of(bytes),
    sizeBytes: bytes.length,
    annotations: {},
    diffId: sha256Of(plain ?? bytes),
    compression:
      plain === undefined ? ("none" as const) : mediaType.endsWith("zstd") ? ("zstd" as const) : ("gzip" as const),
  }));
  const store = {
    async *open(digest: string) {
      const bytes = made.find((layer) => sha256Of(layer.bytes) === digest)?.bytes ?? new Uint8Array();
      for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
    },
  };
  try {
    return {
      tree: join(outside, "tree"),
      owed: await unpackLayers(described, store, join(outside, "tree"), never, limits),
    };
  } finally {
    expect((await readdir(outside)).sort()).toEqual(["outside", "tree"]);
    expect(await readFile(join(outside, "outside"), "utf8")).toBe("untouched");
  }
}

/** Every path of a tree with what is there. */
async function listing(folder: string, below = ""): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(join(folder, below))).sort()) {
    const path = below === "" ? name : `${below}/${name}`;
    const entry = await lstat(join(folder, path));
    if (entry.isDirectory()) Object.assign(found, { [`${path}/`]: "" }, await listing(folder, path));
    else
      found[path] = entry.isSymbolicLink()
        ? `-> ${await readlink(join(folder, path))}`
        : await readFile(join(folder, path), "utf8");
  }
  return found;
}

const file = (path: string, contents = "x", more: Partial<BuiltEntry> = {}): BuiltEntry => ({
  path,
  contents,
  ...more,
});
const folder = (path: string, more: Partial<BuiltEntry> = {}): BuiltEntry => ({ path, type: "5", ...more });
const link = (path: string, target: string): BuiltEntry => ({ path, type: "2", target });
const hardLink = (path: string, target: string): BuiltEntry => ({ path, type: "1", target });

describe("layers", () => {
  test.for([
    {
      title: "files, folders and links",
      layers: [[folder("usr/"), file("usr/a", "1"), link("usr/b", "a"), hardLink("usr/c", "usr/a")]],
      tree: { "usr/": "", "usr/a": "1", "usr/b": "-> a", "usr/c": "1" },
    },
    {
      title: "/etc becomes /usr/etc, and both are one",
      layers: [
        [file("usr/etc/a", "1"), file("usr/etc/b", "1")],
        [file("etc/b", "2"), file("./etc/c", "2"), hardLink("etc/d", "etc/a")],
      ],
      tree: { "usr/": "", "usr/etc/": "", "usr/etc/a": "1", "usr/etc/b": "2", "usr/etc/c": "2", "usr/etc/d": "1" },
    },
    {
      title: "a link named /etc is not needed",
      layers: [[file("usr/etc/a", "1"), link("etc", "usr/etc")]],
      tree: { "usr/": "", "usr/etc/": "", "usr/etc/a": "1" },
    },
    {
      title: "later layers win",
      layers: [[file("usr/a", "1")], [file("usr/a", "2")]],
      tree: { "usr/": "", "usr/a": "2" },
    },
    {
      title: "a whiteout removes what lies below",
      layers: [
        [file("usr/a"), file("usr/d/e"), file("etc/f")],
        [file("usr/.wh.a", ""), file("usr/.wh.d", ""), file("etc/.wh.f", "")],
      ],
      tree: { "usr/": "", "usr/etc/": "" },
    },
    {
      title: "a whiteout spares entries of its own layer, in either order",
      layers: [
        [file("usr/d/old"), file("usr/a", "1")],
        [file("usr/d/new", "2"), file("usr/.wh.d", ""), file("usr/.wh.a", ""), file("usr/a", "2")],
      ],
      tree: { "usr/": "", "usr/a": "2", "usr/d/": "", "usr/d/new": "2" },
    },
    {
      title: "an opaque folder hides lower entries, and spares its own",
      layers: [
        [file("usr/d/old"), file("usr/d/sub/old")],
        [file("usr/d/new", "2"), file("usr/d/sub/new", "2"), file("usr/d/.wh..wh..opq", "")],
      ],
      tree: { "usr/": "", "usr/d/": "", "usr/d/new": "2", "usr/d/sub/": "", "usr/d/sub/new": "2" },
    },
    { title: "a whiteout of a missing entry", layers: [[file("usr/no/.wh.a", ""), file("usr/.wh.b", "")]], tree: {} },
    {
      title: "a file takes the place of a folder, and the other way round",
      layers: [
        [file("usr/a/b"), file("usr/c")],
        [file("usr/a", "2"), file("usr/c/d", "2")],
      ],
      tree: { "usr/": "", "usr/a": "2", "usr/c/": "", "usr/c/d": "2" },
    },
    {
      title: "the machine's own paths and devices are omitted",
      layers: [
        [
          file("var/log/x"),
          file("run/x"),
          file("dev/null"),
          file("tmp/x"),
          folder("proc"),
          file("root/.bashrc"),
          link("home", "var/home"),
          { path: "usr/null", type: "3" },
          file("opt/x", "1"),
        ],
      ],
      tree: { "opt/": "", "opt/x": "1" },
    },
  ])("$title", async ({ layers, tree }) => {
    expect(await listing(await unpack(layers))).toEqual(tree);
  });

  test("are compressed with gzip, zstd or not at all", async () => {
    expect(
      await listing(
        await unpack([gzippedLayer(file("usr/a", "1")), zstdLayer(file("usr/b", "2")), [file("usr/c", "3")]]),
      ),
    ).toEqual({ "usr/": "", "usr/a": "1", "usr/b": "2", "usr/c": "3" });
  });

  describe("give files and folders their modes and owners", () => {
    const layers = [
      [file("usr/gone/x", "1", { uid: 5 }), file("usr/d/a", "1", { uid: 5, mode: 0 })],
      [
        file("usr/.wh.gone", ""),
        folder("usr/d/", { mode: 0o2700, uid: 5, gid: 6 }),
        file("usr/d/a", "1", { mode: 0o4755, uid: 7, gid: 8 }),
        hardLink("usr/d/b", "usr/d/a"),
        { ...link("usr/l", "a"), uid: 9, gid: 9 },
        file("usr/closed", "1", { mode: 0 }),
      ],
    ];
    const paths = ["usr", "usr/d", "usr/d/a", "usr/d/b", "usr/closed"];
    const found = (tree: string) =>
      Promise.all(
        paths.map(async (path) => lstat(join(tree, path)).then(({ mode, uid, gid }) => [mode & 0o7777, uid, gid])),
      );

    test.skipIf(!asRoot)("as root, but no file the set-user-id bit [registry-unpack-setuid-1]", async () => {
      const { tree, owed } = await unpacked(layers);
      expect(await found(tree)).toEqual([
        [0o755, 0, 0],
        [0o2700, 5, 6],
        [0o755, 7, 8],
        [0o755, 7, 8],
        [0, 0, 0],
      ]);
      expect(await lstat(join(tree, "usr/l"))).toMatchObject({ uid: 9, gid: 9 });
      expect(owed).toEqual({});
    });

    test("without root keep all readable, and report the remaining modes and owners", async () => {
      const gid = process.getegid?.();
      if (asRoot) process.seteuid?.(nobody);
      const uid = process.geteuid?.();
      try {
        const { tree, owed } = await unpacked(layers);
        expect(await found(tree)).toEqual([0o755, 0o700, 0o755, 0o755, 0o600].map((mode) => [mode, uid, gid]));
        expect(owed).toEqual({
          "usr/d": { mode: 0o2700, uid: 5, gid: 6 },
          "usr/d/a": { mode: 0o4755, uid: 7, gid: 8 },
          "usr/d/b": { mode: 0o4755, uid: 7, gid: 8 },
          "usr/closed": { mode: 0, uid: 0, gid: 0 },
        });
      } finally {
        if (asRoot) process.seteuid?.(0);
      }
    });
  });

  test("hard links share a file until a layer replaces one of them", async () => {
    const tree = await unpack([[file("usr/a", "1"), hardLink("usr/b", "usr/a")], [file("usr/a", "2")]]);
    expect(await listing(tree)).toEqual({ "usr/": "", "usr/a": "2", "usr/b": "1" });
    const shared = await unpack([[file("usr/a", "1"), hardLink("usr/b", "./usr/a")]]);
    expect((await stat(join(shared, "usr/a"))).ino).toBe((await stat(join(shared, "usr/b"))).ino);
  });
});

describe("hostile layers", () => {
  test.for([
    { title: "a path that climbs", layers: [[file("usr/../../outside", "bad")]], problem: "leads out of the image" },
    {
      title: "a path that climbs behind a folder",
      layers: [[folder("usr/.."), file("usr/a")]],
      problem: "leads out of the image",
    },
    {
      title: "a whiteout of the folder above",
      layers: [[file("usr/a"), file("usr/.wh...", "")]],
      problem: "leads out of the image",
    },
    { title: "a whiteout of nothing", layers: [[file("usr/.wh.", "")]], problem: "an invalid path" },
    { title: "a whiteout of its own folder", layers: [[file("usr/.wh..", "")]], problem: "an invalid path" },
    {
      title: "a hard link to a path that climbs",
      layers: [[hardLink("usr/a", "../outside")]],
      problem: "leads out of the image",
    },
    {
      title: "a hard link to a missing file",
      layers: [[hardLink("usr/a", "etc/passwd")]],
      problem: "hard link to a path that is no file",
    },
    {
      title: "a hard link through a planted link",
      layers: [[link("usr/up", "../.."), hardLink("usr/a", "usr/up/outside")]],
      problem: "hard link to a path that is no file",
    },
    {
      title: "a hard link to a folder",
      layers: [[folder("usr/d"), hardLink("usr/a", "usr/d")]],
      problem: "hard link to a path that is no file",
    },
    { title: "too many entries", layers: [[file("a"), file("b"), file("c"), file("d")]], problem: "too many entries" },
    {
      title: "too many bytes",
      layers: [gzippedLayer(file("a", "0".repeat(100_000)))],
      problem: "too large when unpacked",
    },
    {
      title: "a name with a NUL in an extended header",
      layers: [[{ path: "pax", type: "x", contents: "13 path=a\0b\n\n" }, file("a")]],
      problem: "a name holds a NUL",
    },
    {
      title: "an invalid size",
      layers: [[{ path: "pax", type: "x", contents: "13 size=-100\n" }, file("a")]],
      problem: "a number is none",
    },
    {
      title: "a sparse file",
      layers: [[{ path: "pax", type: "x", contents: "22 GNU.sparse.major=1\n" }, file("a")]],
      problem: "sparse",
    },
    {
      title: "an archive that ends early",
      layers: [{ bytes: tarOf(file("a", "0".repeat(2000))).subarray(0, 1024) }],
      problem: "ends in the middle",
    },
    { title: "no archive at all", layers: [{ bytes: Buffer.alloc(1024, "7") }], problem: "checksum" },
    {
      title: "a wrong compression",
      layers: [{ bytes: Buffer.from("plain"), plain: Buffer.from("plain") }],
      problem: "not compressed as its manifest says",
    },
  ])("$title", async ({ layers, problem }) => {
    expect(await failure(unpack(layers, { entries: 3, totalBytes: 50_000 }))).toMatchObject({
      code: "MCO_IMAGE_INVALID",
      problem: expect.stringContaining(problem) as string,
      retryable: false,
    });
  });

  test.for([
    {
      title: "a path through a link that escapes hides the link",
      layers: [[link("usr", "../"), file("usr/outside", "bad")]],
      tree: { "usr/": "", "usr/outside": "bad" },
    },
    {
      title: "a path through an absolute link of a lower layer hides it",
      layers: [[link("lib", "/tmp")], [file("lib/x", "1")]],
      tree: { "lib/": "", "lib/x": "1" },
    },
    {
      title: "a file over a link does not follow it",
      layers: [[link("usr/a", "../../outside")], [file("usr/a", "1")]],
      tree: { "usr/": "", "usr/a": "1" },
    },
    {
      title: "a folder over a link does not follow it",
      layers: [[link("usr/d", "../..")], [folder("usr/d", { mode: 0o777 })]],
      tree: { "usr/": "", "usr/d/": "" },
    },
    {
      title: "a whiteout through a link removes nothing",
      layers: [[link("usr/up", "../..")], [file("usr/up/.wh.outside", "")]],
      tree: { "usr/": "", "usr/up": "-> ../.." },
    },
    {
      title: "an opaque mark on a link removes nothing behind it",
      layers: [[link("usr/up", "../..")], [file("usr/up/.wh..wh..opq", "")]],
      tree: { "usr/": "", "usr/up/": "" },
    },
    {
      title: "an absolute path is relative to the image",
      layers: [[file("/usr//./a", "1"), hardLink("/usr/b", "/usr/a")]],
      tree: { "usr/": "", "usr/a": "1", "usr/b": "1" },
    },
  ])("$title", async ({ layers, tree }) => {
    expect(await listing(await unpack(layers))).toEqual(tree);
  });

  test.for<[title: string, layer: readonly BuiltEntry[], path: string]>([
    ["a link", [link("usr", "/home/alice")], "usr"],
    ["a link that climbs", [link("usr", "../outside")], "usr"],
    ["a file", [file("usr")], "usr"],
    ["a file in place of /etc", [folder("usr"), file("etc")], "usr/etc"],
  ])("an image whose folders of the system are none is refused: %s [registry-unpack-1]", async ([, layer, path]) => {
    expect(await failure(unpack([layer]))).toMatchObject({
      code: "MCO_IMAGE_INVALID",
      problem: `its /${path} is no folder`,
      retryable: false,
    });
  });

  test("a link in place of a folder of the system that a higher layer replaces is no fault [registry-unpack-2]", async () => {
    expect(await listing(await unpack([[link("usr", "/home/alice")], [file("usr/a", "1")]]))).toEqual({
      "usr/": "",
      "usr/a": "1",
    });
  });

  test.for<[title: string, layer: readonly BuiltEntry[], problem: string]>([
    ["an owner", [paxHeader("uid", "5000000000"), file("usr/a")], "an owner of a layer is none of Linux"],
    ["a group", [paxHeader("gid", "5000000000"), folder("usr/a")], "an owner of a layer is none of Linux"],
    // For chown(2) it means that the owner stays.
    ["no owner", [paxHeader("uid", "4294967295"), file("usr/a")], "an owner of a layer is none of Linux"],
    ["a name", [paxHeader("path", `usr/${"n".repeat(300)}`), file("usr/a")], "a path of a layer is too long"],
    [
      "headers",
      [...Array.from({ length: 20 }, () => ({ path: "pax", type: "g", contents: "6 a=b\n" })), file("usr/a")],
      "an entry has too many headers",
    ],
  ])("what no file system takes is a fault of the image: %s [registry-unpack-3]", async ([, layer, problem]) => {
    expect(await failure(unpack([layer]))).toMatchObject({
      code: "MCO_IMAGE_INVALID",
      problem: expect.stringContaining(problem) as string,
      retryable: false,
    });
  });

  test("a layer takes the memory to decompress that container engines write, and no more [registry-unpack-4]", async () => {
    expect(await listing(await unpack([await windowedLayer(25, file("usr/a", "1"))]))).toEqual({
      "usr/": "",
      "usr/a": "1",
    });
    expect(await failure(unpack([await windowedLayer(26, file("usr/a", "1"))]))).toMatchObject({
      code: "MCO_IMAGE_INVALID",
      problem: "a layer takes too much memory to decompress",
      limitBytes: 32 * 1024 * 1024,
    });
  });

  test("folders that no entry names count as entries do [registry-unpack-5]", async () => {
    expect(
      await failure(unpack([[file("a/b/c/d"), file("e/f/g/h")]], { entries: 5, totalBytes: 50_000 })),
    ).toMatchObject({ problem: "its layers have too many entries" });
  });

  test("what was in a replaced folder is forgotten [registry-unpack-6]", async () => {
    const owned = (path: string) => file(path, "1", { mode: 0o4711, uid: nobody });
    const { tree, owed } = await unpacked([
      [owned("usr/d/e/f"), owned("usr/d2")],
      [file("usr/d", "2")],
      [file("usr/d2", "2"), folder("usr/d/e")],
    ]);
    expect(await listing(tree)).toEqual({ "usr/": "", "usr/d/": "", "usr/d/e/": "", "usr/d2": "2" });
    expect(Object.keys(owed).filter((path) => path.startsWith("usr/d"))).toEqual([]);
  });

  test("a layer whose content differs from its config is refused", async () => {
    const { bytes } = gzippedLayer(file("usr/a"));
    expect(await failure(unpack([{ bytes, plain: Buffer.from("other") }]))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
    });
  });
});

test("GNU tar's long names, links and large owners are read correctly", async (context) => {
  const source = await temporaryFolder();
  const long = `usr/share/${"long-name-".repeat(12)}/${"file-".repeat(30)}`;
  await mkdir(join(source, long, ".."), { recursive: true });
  await writeFile(join(source, long), "1");
  await symlink(long, join(source, "usr/long"));
  for (const format of ["gnu", "posix"]) {
    let bytes: Buffer;
    try {
      bytes = execFileSync("tar", [
        "-C",
        source,
        `--format=${format}`,
        "--owner=99999999",
        "--group=0",
        "-cf",
        "-",
        "usr",
      ]);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") context.skip("there is no tar on this machine");
      throw error;
    }
    const tree = await unpack([{ bytes }]);
    expect(await readFile(join(tree, long), "utf8")).toBe("1");
    expect(await readlink(join(tree, "usr/long"))).toBe(long);
    if (asRoot) expect((await stat(join(tree, long))).uid).toBe(99_999_999);
  }
});
