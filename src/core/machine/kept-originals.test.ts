import { expect, test } from "vitest";
import { fittingOriginals, mostOriginalBytes, originalsUnder, withFound } from "./kept-originals.ts";
import type { OriginalEntry, Originals } from "./observed-content.ts";

const file = (bytes: number, uid = 0): OriginalEntry => ({
  kind: "file",
  contents: "A".repeat(Math.ceil((bytes * 4) / 3)),
  digest: "",
  mode: 0o644,
  uid,
  gid: uid,
});
const link: OriginalEntry = { kind: "link", target: "/x" };
const { ofUserFile, ofUsers, ofRoot } = mostOriginalBytes;
const originals = (paths: Originals["paths"]): Originals => ({
  paths,
  enablement: {},
  passwords: {},
  kernelArguments: [],
  ownKernelArguments: [],
});
const manyOfUser = Object.fromEntries(
  Array.from({ length: ofUsers / ofUserFile }, (_, i) => [`/home/${i}`, file(ofUserFile, 1000)]),
);

test.for<{
  readonly title: string;
  readonly before?: Readonly<Record<string, OriginalEntry | null>>;
  readonly found: Readonly<Record<string, OriginalEntry | null>>;
  readonly notKept: readonly string[];
}>([
  { title: "small files of root and of users", found: { "/a": file(10), "/b": file(ofUserFile, 1000) }, notKept: [] },
  { title: "a large file of root", found: { "/a": file(ofRoot) }, notKept: [] },
  { title: "no large file of a user", found: { "/a": file(ofUserFile + 1, 1000), "/b": link }, notKept: ["/a"] },
  {
    title: "no file of a user beyond what users may have, and those of root nevertheless",
    before: manyOfUser,
    found: { "/a": file(3, 1000), "/b": file(ofRoot), "/c": null },
    notKept: ["/a"],
  },
  {
    title: "no file of root beyond what root may have, and those of users nevertheless",
    before: { "/a": file(ofRoot) },
    found: { "/b": file(3), "/c": file(3, 1000) },
    notKept: ["/b"],
  },
  {
    title: "what the OS ships, however much it is",
    before: { "/a": file(ofRoot) },
    found: { "/b": { ...file(ofRoot), shipped: true } },
    notKept: [],
  },
])("the originals of a machine hold $title [machine-originals-1]", ({ before = {}, found, notKept }) => {
  const result = withFound(originals(before), new Map(Object.entries(found)));
  expect(result.notKept).toEqual(notKept);
  const expected = Object.entries(found).map(([path, entry]) => [path, notKept.includes(path) ? null : entry]);
  expect(result.originals.paths).toEqual({ ...before, ...Object.fromEntries(expected) });
  expect(result.originals.notKept).toEqual(notKept.length === 0 ? undefined : notKept);
});

test("paths whose original is not kept are named until no configuration manages them [machine-originals-2]", () => {
  const first = withFound(originals({}), new Map([["/b", null]]), ["/b"]).originals;
  const second = withFound(first, new Map([["/a", file(ofUserFile + 1, 1000)]])).originals;
  expect(second).toMatchObject({ paths: { "/a": null, "/b": null }, notKept: ["/a", "/b"] });
  const under = (...paths: string[]) => {
    const entries = new Map(paths.map((path) => [path, { kind: "absent", origin: { kind: "file" } } as const]));
    return originalsUnder({ entries, passwords: new Map() }, new Set(), second).notKept;
  };
  expect([under("/b", "/c"), under("/c")]).toEqual([["/b"], undefined]);
});

test("of the originals of an earlier release goes what is too much, and nothing else [machine-originals-3]", () => {
  const paths = { "/a": file(ofUserFile + 1, 1000), "/b": file(3), "/c": link, "/d": null, "/e": file(3, 1000) };
  expect(fittingOriginals(originals(paths))).toEqual({
    ...originals({ ...paths, "/a": null }),
    notKept: ["/a"],
  });
});
