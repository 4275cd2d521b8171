import { expect, test } from "vitest";
import { credentialsFor, parseAuthFile } from "./auth-file.ts";
import { parseChallenges } from "./challenge.ts";

const entry = (user: string) => ({ auth: Buffer.from(`${user}:word:with:colons`).toString("base64") });
const file = parseAuthFile(
  JSON.stringify({
    auths: {
      "quay.io": entry("host"),
      "quay.io/os": entry("namespace"),
      "quay.io/os/a": entry("repository"),
      "https://index.docker.io/v1/": entry("hub"),
      "http://old.io/v2/": entry("old"),
      "token.io": { identitytoken: "it", auth: entry("x").auth },
      "bearer.io": { registrytoken: "rt" },
      "plain.io": { username: "u", password: "p" },
      "empty.io": {},
      "odd.io": { auth: "!" },
    },
  }),
);
const user = (host: string, path: string) => {
  const found = credentialsFor(file, { host, path });
  return found?.kind === "password" ? found.user : found?.kind;
};

test("the longest matching key wins", () => {
  expect([
    user("quay.io", "os/a"),
    user("quay.io", "os/ab"),
    user("quay.io", "osx"),
    user("quay.io:5000", "os/a"),
    user("sub.quay.io", "os"),
  ]).toEqual(["repository", "namespace", "host", undefined, undefined]);
});

test("old keys are addresses", () => {
  expect([user("docker.io", "library/busybox"), user("old.io", "a/b")]).toEqual(["hub", "old"]);
});

test("passwords may hold colons; tokens come before passwords; entries may be empty", () => {
  expect(credentialsFor(file, { host: "quay.io", path: "os/a" })).toEqual({
    kind: "password",
    user: "repository",
    password: "word:with:colons",
  });
  expect([
    user("token.io", "a"),
    user("bearer.io", "a"),
    user("plain.io", "a"),
    user("empty.io", "a"),
    user("odd.io", "a"),
  ]).toEqual(["identityToken", "registryToken", "u", undefined, undefined]);
});

test("a missing, blank or empty file has no credentials; an invalid one is refused without quoting it", () => {
  for (const text of [undefined, "", "\n", "{}", '{"auths":{}}']) expect(parseAuthFile(text).size).toBe(0);
  for (const text of ["s3cret", "[]", '{"auths":["s3cret"]}', '{"auths":"s3cret"}']) {
    expect(() => parseAuthFile(text)).toThrow(expect.objectContaining({ code: "MCO_IMAGE_UNAUTHORIZED" }) as Error);
    expect(() => parseAuthFile(text)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("s3cret") as string }) as Error,
    );
  }
});

test.for([
  ['Basic realm="x"', [{ scheme: "basic", parameters: { realm: "x" } }]],
  [
    'Bearer realm="https://a.io/token?x=1,2",service="a.io",scope="repository:os/a:pull,push"',
    [
      {
        scheme: "bearer",
        parameters: { realm: "https://a.io/token?x=1,2", service: "a.io", scope: "repository:os/a:pull,push" },
      },
    ],
  ],
  [
    'Negotiate, Basic realm="a \\"b\\"", BEARER Realm=plain',
    [
      { scheme: "negotiate", parameters: {} },
      { scheme: "basic", parameters: { realm: 'a "b"' } },
      { scheme: "bearer", parameters: { realm: "plain" } },
    ],
  ],
  ["", []],
  ['="', []],
] as const)("challenges of %s", ([header, challenges]) => {
  expect(parseChallenges(header)).toEqual(challenges);
});

test("a challenge full of blanks is parsed fast", () => {
  expect(parseChallenges(`${" ".repeat(100_000)}Basic`)).toEqual([]);
});
