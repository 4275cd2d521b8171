import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseUrl } from "../../../src/ignition/parse-url.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { freeUrls } from "./grammar.ts";
import { mutated } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(600, 10_000);

const urls = mutated(
  fc.constantFrom(
    "http://example.com/a/b?c=d&e=f#g",
    "https://user:pass@[fe80::1%25en0]:8443/x%2Fy",
    "data:text/plain;charset=utf-8;base64,aGVsbG8=",
    "data:,%7B%22a%22%3A1%7D",
    "s3://bucket/key?versionId=1",
    "arn:aws:s3:us-west-2:123456789012:accesspoint/a/object/k",
    "tftp://host:69/file",
    "gs://bucket/o",
    "//host/path",
    "/path:with/colon",
    "a:b",
    "?q#f",
    "",
  ),
  [
    ":",
    "/",
    "//",
    "?",
    "#",
    "@",
    "[",
    "]",
    "%",
    "%2",
    "%41",
    "%00",
    "%zz",
    "%25",
    "\\",
    " ",
    "\t",
    "\n",
    "\u0000",
    "\u007f",
    "ü",
    "\ud800",
    "*",
    "|",
    "{",
    "<",
    '"',
    "^",
    "'",
    "::",
    ":80",
    ":-1",
    "HTTP",
    "..",
    ";",
    "%E4%F6",
  ],
);

/**
 * Go writes users, hosts and invalid paths with escapes of its own choice; we keep what is written. Compared is what the
 * escapes stand for. Where a path without a scheme has a colon in its first part, Go writes `./` before it.
 */
const decoded = (text: string) =>
  Buffer.from(text)
    .toString("latin1")
    .replaceAll(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));

/** Sources of configurations: Ignition on the machine reads them with Go. */
describe.skipIf(program === undefined)("URLs, as Go reads them", () => {
  let go: GoReaders;
  let isOlder = false;
  const older = "Go before 1.26 reads hosts with several colons";

  beforeAll(async () => {
    go = startGoReaders(program ?? "");
    const { version = "" } = await go.ask("version", "");
    isOlder = Number(/^go1\.(\d+)/.exec(version)?.[1] ?? 0) < 26;
  });
  afterAll(() => go.close());

  async function compare(texts: fc.Arbitrary<string>) {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(texts, async (url) => {
        const { url: theirs } = await go.ask("url", url.toWellFormed());
        const ours = parseUrl(url.toWellFormed());
        const added = theirs?.text.startsWith("./") === true && !url.startsWith("./") ? 2 : 0;
        expect(ours && { ...ours, text: decoded(ours.text) }).toEqual(
          theirs && { ...theirs, text: decoded(theirs.text.slice(added)) },
        );
        read += ours === undefined ? 0 : 1;
      }),
      sample,
    );
    expect(read).toBeGreaterThan(sample.numRuns / 20);
  }

  test("both read the same URLs, and the same in them [readers-url-1]", { timeout: 300_000 }, async ({ skip }) => {
    skip(isOlder, older);
    await compare(urls);
  });

  test("so do they where each part is written freely [readers-url-2]", { timeout: 300_000 }, async ({ skip }) => {
    skip(isOlder, older);
    await compare(freeUrls());
  });
});
