import { expect, test } from "vitest";
import { mostOriginalBytes, withFound } from "./kept-originals.ts";
import type { OriginalEntry } from "./observed-content.ts";

const file = (bytes: number, uid = 0): OriginalEntry => ({
  kind: "file",
  contents: "A".repeat(Math.ceil((bytes * 4) / 3)),
  digest: "",
  mode: 0o644,
  uid,
  gid: uid,
});
const link: OriginalEntry = { kind: "link", target: "/x" };
const { ofUser, ofAll } = mostOriginalBytes;

test.for<{
  readonly title: string;
  readonly before?: Readonly<Record<string, OriginalEntry | null>>;
  readonly found: Readonly<Record<string, OriginalEntry | null>>;
  readonly notKept: readonly string[];
}>([
  { title: "small files of root and of users", found: { "/a": file(10), "/b": file(ofUser, 1000) }, notKept: [] },
  { title: "a large file of root", found: { "/a": file(ofAll) }, notKept: [] },
  { title: "no large file of a user", found: { "/a": file(ofUser + 1, 1000), "/b": link }, notKept: ["/a"] },
  {
    title: "files of root before those of users, and none once there are too many",
    found: { "/a": file(ofUser, 1000), "/b": file(ofAll - ofUser), "/c": file(ofUser, 1000), "/d": null },
    notKept: ["/c"],
  },
  {
    title: "none beyond those that were kept before",
    before: { "/a": file(ofAll) },
    found: { "/b": file(3) },
    notKept: ["/b"],
  },
  {
    title: "what the OS ships, however much it is",
    before: { "/a": file(ofAll) },
    found: { "/b": { ...file(ofAll), shipped: true } },
    notKept: [],
  },
])("the originals of a machine hold $title [machine-originals-1]", ({ before = {}, found, notKept }) => {
  const result = withFound(before, new Map(Object.entries(found)));
  expect(result.notKept).toEqual(notKept);
  const expected = Object.entries(found).map(([path, entry]) => [path, notKept.includes(path) ? null : entry]);
  expect(result.paths).toEqual({ ...before, ...Object.fromEntries(expected) });
});
