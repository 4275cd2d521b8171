import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { packedStockOs } from "../standin/cluster/stock-os.ts";
import { packTree } from "./pack-tree.ts";
import { type TarEntry, readTar } from "./tar.ts";

async function entriesOf(
  archive: Uint8Array,
): Promise<readonly (Pick<TarEntry, "path" | "kind" | "mode"> & { readonly text: string })[]> {
  const entries = [];
  const stream = async function* () {
    // In odd portions, as a network gives them.
    for (let at = 0; at < archive.length; at += 333) yield archive.subarray(at, at + 333);
  };
  for await (const { path, kind, mode, contents } of readTar(stream())) {
    let text = "";
    for await (const chunk of contents) text += Buffer.from(chunk).toString("utf8");
    entries.push({ path, kind, mode, text });
  }
  return entries;
}

test("a packed tree holds its folders and files in order, with /etc where builders look for it", async () => {
  const { layer } = packTree(
    { "/usr/lib/b": { contents: "b" }, "/usr/etc/shadow": { contents: "ü", mode: 0o600 } },
    "amd64",
  );
  expect(await entriesOf(gunzipSync(layer.bytes))).toEqual([
    { path: "etc/", kind: "folder", mode: 0o755, text: "" },
    { path: "etc/shadow", kind: "file", mode: 0o600, text: "ü" },
    { path: "usr/", kind: "folder", mode: 0o755, text: "" },
    { path: "usr/lib/", kind: "folder", mode: 0o755, text: "" },
    { path: "usr/lib/b", kind: "file", mode: 0o644, text: "b" },
  ]);
});

test("the same tree makes the same image, in any order of its paths", () => {
  const a = packTree({ "/usr/a": { contents: "1" }, "/usr/b": { contents: "2" } }, "amd64");
  expect(packTree({ "/usr/b": { contents: "2" }, "/usr/a": { contents: "1" } }, "amd64")).toEqual(a);
  expect(packTree({ "/usr/b": { contents: "2" }, "/usr/a": { contents: "3" } }, "amd64").manifest.digest).not.toBe(
    a.manifest.digest,
  );
});

test("the digest of the stock OS changes only with the stock OS, and never with the machine", () => {
  // Machines name it in their configurations: a change of it is an update of every machine.
  expect(packedStockOs.manifest.digest).toBe("sha256:74d02e5bdaef4bf2c9a8d008a1ebcf1d65d4606803e30b7ff5aa7bd6251560bb");
});
