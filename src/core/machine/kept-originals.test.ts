import { expect, test } from "vitest";
import {
  type OriginalLimits,
  fittingOriginals,
  mostOriginalBytes,
  mostOriginalsText,
  originalsToStore,
  originalsUnder,
  withFound,
} from "./kept-originals.ts";
import type { OriginalEntry, Originals } from "./observed-content.ts";

const file = (bytes: number, uid = 0): OriginalEntry => ({
  kind: "file",
  contents: `${"A".repeat(Math.ceil((bytes * 4) / 3))}${"=".repeat((3 - (bytes % 3)) % 3)}`,
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
    title: "the small files of root where not all of them fit",
    found: { "/a": file(ofRoot), "/b": file(3), "/c": file(6) },
    notKept: ["/a"],
  },
  {
    title: "no links beyond what links may have, which users may have made, and all other files nevertheless",
    before: { "/c": file(ofRoot), ...manyOfUser },
    found: { "/a": { kind: "link", target: "x".repeat(mostOriginalBytes.ofLinks) }, "/b": link },
    notKept: ["/a"],
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

const size = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length;

test("a document of originals has its bound, however many small files, long names and files of the OS there are [machine-originals-4]", () => {
  const found = new Map<string, OriginalEntry | null>(
    Array.from({ length: 12 }, (_, i) => [
      [`/etc/ü${i}`, file(6 + 3 * i)] as const,
      [`/home/"${i}"`, file(3, 1000)] as const,
      [`/usr/${i}`, { ...file(9 * i), shipped: true }] as const,
      [`/etc/link${i}`, { kind: "link", target: "\u0001".repeat(i) }] as const,
      [`/etc/none${i}`, null] as const,
    ]).flat(),
  );
  const most: OriginalLimits = { ofUserFile: 9, ofUsers: 99, ofRoot: 900, ofLinks: 900, ofOs: 90, ofText: 0 };
  const [earlier, later] = [new Map([...found].slice(0, 30)), new Map([...found].slice(30))];
  const keptOf = (ofText: number, before: Originals, more: typeof found) =>
    originalsToStore(withFound(before, more, [], { ...most, ofText }).originals, { ...most, ofText });
  const sizeOf = ({ paths, notKept = [] }: Originals) => size(paths) + size(notKept);
  /** What each document has: the names of all paths, and what is known of files of the OS. */
  const leastOf = (of: typeof found) =>
    size(
      Object.fromEntries([...of].map(([path, entry]) => [path, entry?.shipped ? { ...entry, contents: "" } : null])),
    ) + size([...of.keys()]);
  const whole = keptOf(100_000, originals({}), found);
  expect(whole.notKept).toBeUndefined();
  expect(whole.hidden).toEqual(["/usr/10", "/usr/11", "/usr/5", "/usr/6", "/usr/7", "/usr/8", "/usr/9"]);
  const least = leastOf(found) + (most.ofOs * 4) / 3;
  for (let ofText = least; ofText < least + size(whole); ofText += 13) {
    expect(sizeOf(keptOf(ofText, originals({}), found))).toBeLessThanOrEqual(ofText);
    const before = keptOf(ofText, originals({}), earlier);
    expect(sizeOf(keptOf(ofText, before, later))).toBeLessThanOrEqual(ofText + leastOf(later));
  }
  expect(keptOf(least, originals({}), found).notKept?.length).toBeGreaterThan(30);
  expect(keptOf(least + size(whole), originals({}), found)).toEqual(whole);
});

test("the bounds of originals leave room in their document [machine-originals-5]", () => {
  const { ofOs, ofLinks, ofText } = mostOriginalBytes;
  const contents = ((ofUsers + ofRoot + ofOs) * 4) / 3 + ofLinks;
  // For the paths, owners and digests of twenty thousand files.
  expect(contents + 20_000 * 256).toBeLessThan(ofText);
  expect(ofText).toBeLessThan(mostOriginalsText);
});
