import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLoopbackHost, parseImageReference, printImageReference } from "./image-reference.ts";

const hex = "0123456789abcdef".repeat(4);
const printed = (text: string) => {
  const reading = parseImageReference(text);
  return reading.verdict === "reference" ? printImageReference(reading.reference) : reading.verdict;
};

describe("parseImageReference", () => {
  test.for([
    ["busybox", "docker.io/library/busybox:latest"],
    ["openshift/origin:v1", "docker.io/openshift/origin:v1"],
    ["docker.io/busybox", "docker.io/library/busybox:latest"],
    ["index.docker.io/library/busybox", "docker.io/library/busybox:latest"],
    ["localhost/os", "localhost/os:latest"],
    ["localhost:5000/os:1.2_3-x", "localhost:5000/os:1.2_3-x"],
    ["Registry/os", "Registry/os:latest"],
    ["[::1]:5000/a/b", "[::1]:5000/a/b:latest"],
    [`quay.io/a/b@sha256:${hex}`, `quay.io/a/b@sha256:${hex}`],
    [`quay.io/a/b:tag@sha256:${hex}`, `quay.io/a/b@sha256:${hex}`],
    ["quay.io/a__b/c--d/e.f", "quay.io/a__b/c--d/e.f:latest"],
  ] as const)("%s is %s", ([text, full]) => {
    expect(printed(text)).toBe(full);
  });

  test.for([
    ["", "empty"],
    ["quay.io/", "a part of its path is empty"],
    ["quay.io//a", "a part of its path is empty"],
    ["quay.io/A", '"A" in its path'],
    ["quay.io/a/../b", '".." in its path'],
    ["quay.io/a:", "tag"],
    [`quay.io/a:${"t".repeat(129)}`, "tag"],
    ["quay.io/a@sha256:abc", "64 hexadecimal digits"],
    [`quay.io/a@sha256:${hex.toUpperCase()}`, "64 hexadecimal digits"],
    [`quay.io/a@sha512:${hex}${hex}`, "not a sha256 digest"],
    ["quay.io:port/a", "no host"],
    ["https://quay.io/a", "no host"],
    ["user:word@quay.io/a", "not a sha256 digest"],
    [`quay.io/${"a".repeat(250)}`, "longer than 255"],
  ] as const)("%s is refused: %s", ([text, problem]) => {
    expect(parseImageReference(text)).toMatchObject({
      verdict: "refused",
      problem: expect.stringContaining(problem) as string,
    });
  });

  test("what is printed reads as the same reference", () => {
    const word = fc.stringMatching(/^[a-z0-9]{1,8}$/);
    const path = fc
      .array(
        fc.tuple(word, fc.constantFrom("", ".", "_", "__", "-", "---"), word).map((parts) => parts.join("")),
        { minLength: 1, maxLength: 5 },
      )
      .map((parts) => parts.join("/"));
    const host = fc
      .oneof(
        fc.constantFrom("localhost", "127.0.0.1", "[::1]", "docker.io", "quay.io"),
        fc.tuple(word, word).map((parts) => parts.join(".")),
      )
      .chain((name) =>
        fc
          .option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined })
          .map((port) => (port === undefined ? name : `${name}:${port}`)),
      );
    const end = fc.oneof(
      fc.constant(""),
      fc.stringMatching(/^\w[\w.-]{0,20}$/).map((tag) => `:${tag}`),
      fc.stringMatching(/^[0-9a-f]{64}$/).map((digits) => `@sha256:${digits}`),
    );
    fc.assert(
      fc.property(fc.option(host, { nil: undefined }), path, end, (where, name, rest) => {
        const full = printed(`${where === undefined ? "" : `${where}/`}${name}${rest}`);
        expect(full).not.toBe("refused");
        expect(printed(full)).toBe(full);
      }),
    );
  });

  test("no text at all makes it throw", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(["reference", "refused"]).toContain(parseImageReference(text).verdict);
      }),
    );
  });
});

test("only names that say so are this machine", () => {
  expect(
    ["localhost", "localhost:5000", "127.0.0.1", "127.9.8.7:1", "[::1]:80"].filter((host) => !isLoopbackHost(host)),
  ).toEqual([]);
  expect(
    ["localhost.example.com", "127.0.0.1.example.com", "quay.io", "10.0.0.1", "mylocalhost"].filter(isLoopbackHost),
  ).toEqual([]);
});
