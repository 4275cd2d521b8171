import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { type TokenQuestion, bearerOf, judgeToken, newToken, parseToken, tokenHash } from "./provisioning-token.ts";

const now = Date.UTC(2030, 0, 1);
const hour = 3_600_000;
const id = "a1b2c3d4e5";
const secret = "0123456789abcdefghijklmnopqrstuv";
const text = `${id}.${secret}`;
const token = (
  spec: Partial<ProvisioningToken["spec"]> = { maxUses: 1 },
  more: Partial<ProvisioningToken> = {},
): ProvisioningToken => ({
  apiVersion: ProvisioningToken.apiVersion,
  kind: ProvisioningToken.kind,
  metadata: { name: id },
  spec: { pool: "worker", tokenHash: tokenHash(secret), ...spec },
  ...more,
});
const ask = (one: ProvisioningToken, question: Partial<TokenQuestion> = {}) =>
  judgeToken({ presented: text, pool: "worker", find: (name) => (name === id ? one : undefined), now, ...question });

describe("judgeToken", () => {
  test.for([
    { what: "has a use left", one: token({ maxUses: 2 }, { status: { uses: 1 } }) },
    { what: "ends later", one: token({ expiresAt: "2030-01-01T00:00:01Z" }) },
    { what: "was never used", one: token() },
  ])("a token that $what gives its pool's configuration [join-provisioning-token-1]", ({ one }) => {
    expect(ask(one)).toEqual({ verdict: "allowed", id });
  });

  test.for([
    { what: "its time has come", one: token({ expiresAt: "2030-01-01T00:00:00Z", maxUses: 5 }), reason: "Expired" },
    { what: "nobody can read its end", one: token({ expiresAt: "some day" }), reason: "Expired" },
    { what: "it is used up", one: token({ maxUses: 2 }, { status: { uses: 2 } }), reason: "UsedUp" },
    { what: "the pool is another", one: token({ maxUses: 1, pool: "infra" }), reason: "WrongPool" },
  ])("a client with the right secret learns the reason: $what [join-provisioning-token-2]", ({ one, reason }) => {
    expect(ask(one)).toMatchObject({ verdict: "refused", reason, proven: true });
  });

  test("a token that has ended proves nothing about pools [join-provisioning-token-3]", () => {
    expect(ask(token({ expiresAt: "2029-01-01T00:00:00Z", pool: "infra" }))).toMatchObject({ reason: "Expired" });
  });

  test("uses that are being booked count [join-provisioning-token-4]", () => {
    expect(ask(token({ maxUses: 3 }, { status: { uses: 1 } }), { pending: () => 1 })).toMatchObject({
      verdict: "allowed",
    });
    expect(ask(token({ maxUses: 3 }, { status: { uses: 1 } }), { pending: () => 2 })).toMatchObject({
      reason: "UsedUp",
    });
  });

  test.for([
    ["nothing", undefined],
    ["another id", `b${text.slice(1)}`],
    ["another secret", `${text.slice(0, -1)}x`],
    ["no secret", `${id}.`],
    ["no form", "something"],
    ["what only looks like it", `${text} `],
    ["a very long text", "a".repeat(100_000)],
  ] as const)("%s is nothing that is known [join-provisioning-token-5]", ([, presented]) => {
    expect(ask(token(), { presented })).toMatchObject({ verdict: "refused", proven: false });
  });

  test("a token that is being deleted gives nothing, and neither does one without an end [join-provisioning-token-6]", () => {
    expect(
      ask(token({ maxUses: 1 }, { metadata: { name: id, deletionTimestamp: "2029-01-01T00:00:00Z" } })),
    ).toMatchObject({ verdict: "refused", proven: false });
    expect(ask(token({}))).toMatchObject({ verdict: "refused" });
  });

  test("a truncated or extended hash is invalid [join-provisioning-token-7]", () => {
    expect(ask(token({ maxUses: 1, tokenHash: `${tokenHash(secret)}0` }))).toMatchObject({
      verdict: "refused",
      proven: false,
    });
    expect(ask(token({ maxUses: 1, tokenHash: tokenHash(secret).slice(0, 32) }))).toMatchObject({
      verdict: "refused",
      proven: false,
    });
    expect(ask(token({ maxUses: 1, tokenHash: "" }))).toMatchObject({ verdict: "refused", proven: false });
  });
});

describe("newToken", () => {
  const random = (seed: number) => ({
    bytes: (length: number) => Uint8Array.from({ length }, (_, i) => (seed * 31 + i * 97) & 255),
  });

  test("matches its own object and no other, for any random bytes [join-provisioning-token-8]", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 255 }),
        fc.uint8Array({ minLength: 168, maxLength: 168 }),
        (seed, bytes) => {
          let at = 0;
          const made = newToken(
            { bytes: (length) => bytes.slice(at, (at += length)) },
            { pool: "worker", maxUses: 1, expiresAt: now + hour },
          );
          const other = newToken(random(seed), { pool: "worker", maxUses: 1 });
          expect(ProvisioningToken.is(made.object)).toBe(true);
          expect(parseToken(made.text)?.id).toBe(made.object.metadata.name);
          expect(judgeToken({ presented: made.text, pool: "worker", find: () => made.object, now })).toMatchObject({
            verdict: "allowed",
          });
          if (other.text !== made.text)
            expect(judgeToken({ presented: other.text, pool: "worker", find: () => made.object, now })).toMatchObject({
              verdict: "refused",
            });
        },
      ),
      { numRuns: 50 },
    );
  });

  test("its object does not hold the secret [join-provisioning-token-9]", () => {
    const { text: made, object } = newToken(random(7), { pool: "worker", maxUses: 1 });
    expect(JSON.stringify(object)).not.toContain(parseToken(made)?.secret);
  });
});

test.for([
  ["Bearer abc", "abc"],
  ["bearer   abc ", "abc"],
  ["Basic abc", undefined],
  ["Bearer", undefined],
  ["Bearer a b", undefined],
  ["", undefined],
  [undefined, undefined],
] as const)("the bearer of %j is %j [join-provisioning-token-10]", ([header, bearer]) => {
  expect(bearerOf(header)).toBe(bearer);
});
