import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { maxFileBytes, parseDocuments, readDocuments } from "./manifests.ts";

const outcome = (text: string) =>
  parseDocuments(text, "f.yaml").map((document) => (document.verdict === "read" ? document.manifest : document.reason));
const manifest = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  ...more,
});

describe("parseDocuments", () => {
  test("reads as kubectl does: several documents, empty ones left out, 0644 in octal", () => {
    expect(outcome(`${stringify(manifest("a"))}mode: 0644\n---\n# nothing\n---\n${stringify(manifest("b"))}`)).toEqual([
      manifest("a", { mode: 420 }),
      manifest("b"),
    ]);
  });

  test("takes Lists apart, also those whose items do not say their kind", () => {
    expect(outcome(stringify({ apiVersion: "v1", kind: "List", items: [manifest("a"), manifest("b")] }))).toEqual([
      manifest("a"),
      manifest("b"),
    ]);
    expect(
      outcome(stringify({ apiVersion: "v1", kind: "ConfigMapList", items: [{ metadata: { name: "a" } }] })),
    ).toEqual([manifest("a")]);
  });

  test("a bad document does not hide the good ones beside it", () => {
    const [first, second, third] = parseDocuments(
      `${stringify(manifest("a"))}---\na: [\n---\n${stringify(manifest("b"))}`,
      "f.yaml",
    );
    expect([first?.verdict, second?.verdict, third?.verdict]).toEqual(["read", "refused", "read"]);
    expect([first, second, third].map((document) => document?.place.document)).toEqual([1, 2, 3]);
  });

  test("places of fields are found, of those within a List too", () => {
    const [, second] = parseDocuments(
      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- apiVersion: v1\n  kind: B\n  metadata:\n    name: b\n  spec:\n    list:\n    - x\n    - y\n",
      "f.yaml",
    );
    expect(
      second?.verdict === "read" && [
        second.positionOf("spec.list[1]"),
        second.positionOf("spec.list[1].none"),
        second.positionOf("kind"),
        second.positionOf(""),
      ],
    ).toEqual([
      { line: 12, column: 7 },
      { line: 12, column: 7 },
      { line: 6, column: 9 },
      { line: 5, column: 3 },
    ]);
  });

  test.for([
    ["deep flow lists", "[".repeat(200_000), "nests deeper"],
    ["deep flow objects", "{a: ".repeat(100_000), "nests deeper"],
    ["deep block lists", "- ".repeat(100_000), "nests deeper"],
    [
      "deep blocks that the parser still reads",
      Array.from({ length: 150 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
      "nests deeper",
    ],
    [
      "aliases that repeat aliases",
      [
        "a: &a [x,x,x,x,x,x,x,x,x]",
        ..."bcdefghij"
          .split("")
          .map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghi"[i]}`).join(",")}]`),
      ].join("\n"),
      "its aliases and merges expand to too many nodes",
    ],
    ["very many documents", "a: 1\n---\n".repeat(10_001), "documents, more than"],
    ["a key that stands twice", "a: 1\na: 2\n", "a key stands there twice"],
    ["what is no object", "- a\n", "apiVersion, kind and metadata.name"],
    ["an object without a name", "apiVersion: v1\nkind: A\nmetadata: {}\n", "apiVersion, kind and metadata.name"],
    ["an alias to nothing", "a: *b\n", "Unresolved alias"],
  ] as const)("%s are refused with a reason, in bounded time", ([, text, reason]) => {
    const results = parseDocuments(text, "f.yaml");
    expect(results[0]).toMatchObject({ verdict: "refused", reason: expect.stringContaining(reason) as string });
  });

  test("an object's prototype stays what it is", () => {
    const [first] = parseDocuments(`${stringify(manifest("a"))}__proto__: {polluted: true}\n`, "f.yaml");
    expect(first?.verdict).toBe("read");
    expect(({} as { polluted?: boolean }).polluted).toBe(undefined);
  });

  test("no text makes it throw", () => {
    const pieces = fc.array(
      fc.constantFrom(
        "a",
        ":",
        " ",
        "\n",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&a",
        "*a",
        "|",
        ">",
        "---\n",
        "'",
        '"',
        "\\",
        "!!binary",
        "!x ",
        "%YAML 1.1\n",
        "#",
        "0x",
        "\0",
        "\u2028",
        "<<: *a",
        "? ",
      ),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          pieces.map((list) => list.join("")),
          fc.string({ maxLength: 200 }),
        ),
        (text) => void parseDocuments(text, "f.yaml"),
      ),
      { numRuns: 500 },
    );
  });
});

describe("a field items", () => {
  const list = { apiVersion: "v1", kind: "List" };
  test.for([
    ["a list of objects", [manifest("b")]],
    ["an empty list", []],
    ["null", null],
    ["a text", "x"],
  ])("%s makes kubectl take an object for a list: it is refused [cli-manifests-24]", ([, items]) => {
    const text = stringify(manifest("a", { items }));
    const [first, ...others] = parseDocuments(text, "f.yaml");
    expect(others).toEqual([]);
    expect(first).toMatchObject({
      verdict: "refused",
      reason: "it has items, and kubectl applies these instead of the object itself, whose kind does not end in List",
      remedy: "take items out, or give a List",
      position: { line: Array.isArray(items) && items.length > 0 ? 6 : 5 },
    });
  });

  test("so it is within a List, and of one whose items are no list [cli-manifests-25]", () => {
    expect(outcome(stringify({ ...list, items: [manifest("a", { items: [manifest("b")] }), manifest("c")] }))).toEqual([
      expect.stringContaining("it has items") as string,
      manifest("c"),
    ]);
    const inner = { ...list, metadata: { name: "l" }, items: [manifest("b")] };
    expect(outcome(stringify({ ...list, items: [inner] }))).toEqual(["it is a List within a List"]);
    for (const items of [null, "x", { a: 1 }])
      expect(outcome(stringify({ ...list, metadata: { name: "l" }, items }))).toEqual(["items is no list"]);
  });

  test("items without both apiVersion and kind have those of their List; others need both [cli-manifests-26]", () => {
    const needed = "apiVersion, kind and metadata.name are required";
    const bare = { metadata: { name: "a" } };
    const items = [
      bare,
      { ...bare, apiVersion: "", kind: "" },
      { ...bare, kind: "ConfigMap" },
      { ...bare, apiVersion: "v1" },
    ];
    expect(outcome(stringify({ apiVersion: "v1", kind: "ConfigMapList", items }))).toEqual([
      manifest("a"),
      manifest("a"),
      needed,
      needed,
    ]);
    for (const metadata of [{ name: "" }, {}])
      expect(outcome(stringify({ ...manifest("a"), metadata }))).toEqual([needed]);
  });
});

describe("texts that kubectl does not read as YAML does", () => {
  const [a, b] = [stringify(manifest("a")), stringify(manifest("b"))];
  test.for([
    ["a manifest behind ...", `${a}...\n${b}`, "text follows ..., and kubectl reads nothing more before ---"],
    ["... in front of a manifest", `...\n${a}`, "... stands before a document"],
    ["... behind JSON", `${JSON.stringify(manifest("a"))}\n...\n`, "... stands behind JSON"],
    ["a directive", `%YAML 1.1\n---\n${a}`, "a directive stands before ---"],
    ["an escaped slash", `${a}x: "\\/"\n`, "an escape in double quotes that Kubernetes refuses"],
    ["halves of a character", `${a}x: "\\ud83d\\ude00"\n`, "an escape in double quotes that Kubernetes refuses"],
    ["an escaped line end before a blank line", `${a}x: "a\\\n\n  b"\n`, "an escape in double quotes"],
    ["a tab behind a dash", `${a}x:\n-\t\n- 1\n`, "a tab stands behind a dash"],
    ["a tab on a line of blanks", `${a}x: |\n  \t\n  a\n`, "a tab stands on a line of blanks"],
    ["a block of blanks", `${a}x: |1\n    \n`, "a block with an indentation indicator ends with lines of blanks"],
  ] as const)("%s is refused [cli-manifests-27]", ([, text, reason]) => {
    expect(outcome(text)).toContainEqual(expect.stringContaining(reason) as string);
  });

  test("... at the end of a document, its comments and the next --- are read [cli-manifests-28]", () => {
    expect(outcome(`${a}...\n# c\n\n---\n${b}... # end\n`)).toEqual([manifest("a"), manifest("b")]);
    expect(outcome(JSON.stringify(manifest("a", { x: "/\u{1f600}" })).replace("/", "\\/"))).toEqual([
      manifest("a", { x: "/\u{1f600}" }),
    ]);
  });

  test("a text at the end of a file has the line end that kubectl adds [cli-manifests-29]", () => {
    expect(outcome(`${a}x: |\n  text`)).toEqual([manifest("a", { x: "text\n" })]);
  });
});

describe("readDocuments", () => {
  test("files that are too large, no text, or not there are refused", () => {
    const folder = mkdtempSync(join(tmpdir(), "mco-manifests-"));
    try {
      writeFileSync(join(folder, "large.yaml"), Buffer.alloc(maxFileBytes + 1, "#"));
      writeFileSync(join(folder, "latin.yaml"), Uint8Array.of(0x61, 0xff, 0xfe));
      const reasons = readDocuments([folder, join(folder, "none.yaml")]).map((document) =>
        document.verdict === "refused" ? document.reason : "read",
      );
      expect(reasons).toEqual([
        expect.stringContaining("more than"),
        "it is not UTF-8",
        "there is no such file or folder",
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("of a folder only regular files within it are read, and of no path more than the limit [cli-manifests-23]", () => {
    const parent = mkdtempSync(join(tmpdir(), "mco-manifests-"));
    const folder = join(parent, "given");
    try {
      mkdirSync(join(folder, "..data"), { recursive: true });
      writeFileSync(join(parent, "outside.yaml"), stringify(manifest("outside")));
      writeFileSync(join(folder, "..data", "one.yaml"), stringify(manifest("one")));
      symlinkSync("..data/one.yaml", join(folder, "a.yaml"));
      symlinkSync("/dev/zero", join(folder, "b.yaml"));
      execFileSync("mkfifo", [join(folder, "c.yaml")]);
      symlinkSync("../outside.yaml", join(folder, "d.yaml"));
      mkdirSync(join(folder, "e.yaml"));
      symlinkSync("f.yaml", join(folder, "f.yaml"));
      const told = (paths: readonly string[]) =>
        readDocuments(paths).map((one) => (one.verdict === "read" ? one.manifest.metadata.name : one.reason));
      expect(told([folder])).toEqual([
        "one",
        `it is a link to /dev/zero, which is not in ${folder}`,
        "it is no regular file",
        expect.stringMatching(/^it is a link to .*\/outside\.yaml, which is not in/),
        "it is no regular file",
        expect.any(String),
      ]);
      expect(told([join(folder, "d.yaml"), "/dev/zero"])).toEqual([
        "outside",
        `it has more than ${maxFileBytes} bytes`,
      ]);
    } finally {
      rmSync(parent, { recursive: true, force: true });
    }
  });
});
