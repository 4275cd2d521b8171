import fc from "fast-check";
import { expect, test } from "vitest";
import type { LayerEntry } from "../core/config/image-content.ts";
import { packLayer } from "./pack-layer.ts";
import { digestOf } from "./registry-client.ts";
import { readTar } from "./tar.ts";
import { gunzipSync } from "node:zlib";

const file = (path: string, contents: string, owner = { mode: 0o644, uid: 0, gid: 0 }): LayerEntry => ({
  path,
  kind: "file",
  contents: Buffer.from(contents),
  ...owner,
});
const long = `/etc/${"deep-folder/".repeat(12)}file-with-a-name`;
const entries: readonly LayerEntry[] = [
  file("/etc/b", "b", { mode: 0o600, uid: 1000, gid: 3_000_000 }),
  { path: "/etc/a", kind: "folder", mode: 0o750, uid: 0, gid: 10 },
  file("/etc/a/ü", "ü"),
  { path: "/etc/systemd/system/x.service", kind: "link", target: "/dev/null" },
  { path: "/etc/l", kind: "link", target: `../${"t".repeat(150)}` },
  file(long, "long"),
];

async function listed(bytes: Uint8Array) {
  const found: object[] = [];
  for await (const entry of readTar(
    (async function* () {
      yield gunzipSync(bytes);
    })(),
  )) {
    const parts: Uint8Array[] = [];
    for await (const part of entry.contents) parts.push(part);
    const { path, kind, mode, uid, gid, target } = entry;
    found.push({ path, kind, mode, uid, gid, target, contents: Buffer.concat(parts).toString() });
  }
  return found;
}

test("a layer holds every entry as it is, long names and large numbers too, by path", async () => {
  const root = { uid: 0, gid: 0, target: "", contents: "" };
  expect(await listed(packLayer(entries, 7).bytes)).toEqual([
    { ...root, path: "etc/a/", kind: "folder", mode: 0o750, gid: 10 },
    { ...root, path: "etc/a/ü", kind: "file", mode: 0o644, contents: "ü" },
    { ...root, path: "etc/b", kind: "file", mode: 0o600, uid: 1000, gid: 3_000_000, contents: "b" },
    { ...root, path: long.slice(1), kind: "file", mode: 0o644, contents: "long" },
    { ...root, path: "etc/l", kind: "link", mode: 0o777, target: `../${"t".repeat(150)}` },
    { ...root, path: "etc/systemd/system/x.service", kind: "link", mode: 0o777, target: "/dev/null" },
  ]);
});

test("the same entries make the same layer, in any order and on any machine", () => {
  const layer = packLayer(entries, 1_700_000_000);
  expect(packLayer([...entries].reverse(), 1_700_000_000)).toEqual(layer);
  expect(layer).toMatchObject({ diffId: digestOf(gunzipSync(layer.bytes)), digest: digestOf(layer.bytes) });
  // Were this to change, every image in the field would be built again.
  expect(layer.digest).toBe("sha256:3801c09c3ade62633bb2b72980acbb2f4b9f3e82871c68de172ee05d2a1377ca");
});

test.for([
  {
    what: "its contents",
    change: [file("/etc/b", "c", { mode: 0o600, uid: 1000, gid: 3_000_000 }), ...entries.slice(1)],
    seconds: 7,
  },
  {
    what: "an owner",
    change: [file("/etc/b", "b", { mode: 0o600, uid: 1001, gid: 3_000_000 }), ...entries.slice(1)],
    seconds: 7,
  },
  { what: "the age", change: entries, seconds: 8 },
])("with $what changed, it is another layer", ({ change, seconds }) => {
  expect(packLayer(change, seconds).digest).not.toBe(packLayer(entries, 7).digest);
});

test("every configuration's layer reads back as packed, and packs equally from any order", async () => {
  const name = fc
    .stringMatching(/^[a-zA-Z0-9ü._ -]{1,60}$/)
    .filter((part) => part !== "." && part !== ".." && part.trim() === part);
  const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((parts) => `/etc/${parts.join("/")}x`);
  const id = fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 2 ** 31 }));
  const owner = fc.record({ mode: fc.integer({ min: 0, max: 0o7777 }), uid: id, gid: id });
  const entry = fc.oneof(
    fc
      .record({ path, contents: fc.uint8Array({ maxLength: 1500 }), owner })
      .map(({ path: at, contents, owner: own }): LayerEntry => ({ path: at, kind: "file", contents, ...own })),
    fc
      .record({ path, target: fc.stringMatching(/^[a-z./]{1,200}$/) })
      .map(({ path: at, target }): LayerEntry => ({ path: at, kind: "link", target })),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(entry, { maxLength: 12, selector: ({ path: at }) => at }),
      fc.integer({ min: 0, max: 2 ** 32 }),
      async (any, seconds) => {
        const layer = packLayer(any, seconds);
        expect(packLayer(any.toReversed(), seconds).digest).toBe(layer.digest);
        const read = (await listed(layer.bytes)) as readonly {
          path: string;
          mode: number;
          uid: number;
          gid: number;
          target: string;
          contents: string;
        }[];
        const wanted = any.map((one) => ({
          path: one.path.slice(1),
          ...(one.kind === "link"
            ? { target: one.target }
            : {
                mode: one.mode,
                uid: one.uid,
                gid: one.gid,
                contents: Buffer.from(one.kind === "file" ? one.contents : "").toString(),
              }),
        }));
        expect(read.length).toBe(wanted.length);
        for (const one of wanted) expect(read.find(({ path: at }) => at === one.path)).toMatchObject(one);
      },
    ),
    { numRuns: 60 },
  );
});
