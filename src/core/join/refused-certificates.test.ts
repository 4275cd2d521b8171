import { describe, expect, test } from "vitest";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { mostRefusedBytes, refusedCertificates } from "./refused-certificates.ts";

const now = Date.parse("2030-01-01T00:00:00Z");
const [past, soon, later] = ["2029-12-31T23:59:59Z", "2030-01-02T00:00:00Z", "2030-06-01T00:00:00Z"] as const;
const hex = (digit: string) => digit.repeat(64);
const bindingOf = (name: string, spec: Partial<NodeBinding["spec"]>) =>
  ({ metadata: { name }, spec: { pool: "worker", publicKey: hex("0"), expiresAt: later, ...spec } }) as NodeBinding;

describe("requests of former machines that the API server refuses", () => {
  test.for<{ title: string; spec: Partial<NodeBinding["spec"]>; is: ReturnType<typeof refusedCertificates> }>([
    {
      title: "none of a machine that has its name",
      spec: { certificates: [hex("a")], releasedAt: past },
      is: { entries: {}, until: undefined, leftOut: 0 },
    },
    {
      title: "all of a released name, until the last certificate for it has ended",
      spec: { revoked: true, expiresAt: soon, formerExpiresAt: later },
      is: { entries: { "node.w": later }, until: Date.parse(later), leftOut: 0 },
    },
    {
      title: "those that come with a certificate of a former machine, until that has ended",
      spec: {
        formerCertificates: [
          { sha256: hex("a"), expiresAt: past },
          { sha256: hex("b"), expiresAt: later },
          { sha256: hex("c"), expiresAt: soon },
        ],
      },
      is: { entries: { [hex("b")]: later, [hex("c")]: soon }, until: Date.parse(soon), leftOut: 0 },
    },
    {
      title: "of a name that another machine had, all but those by a certificate of the one that has it",
      spec: { exclusive: true, formerExpiresAt: later, certificates: [hex("a"), hex("b")] },
      is: { entries: { "only.w": `${later} aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb` }, until: Date.parse(later), leftOut: 0 },
    },
    {
      title: "all of such a name, until the first certificate of its machine is recorded, for an hour",
      spec: { exclusive: true, formerExpiresAt: later, joinedAt: past },
      is: { entries: { "only.w": later }, until: Date.parse(past) + 3_600_000, leftOut: 0 },
    },
    {
      title: "none of such a name whose first certificate was missed",
      spec: { exclusive: true, formerExpiresAt: later, joinedAt: "2029-12-31T22:00:00Z" },
      is: { entries: {}, until: undefined, leftOut: 0 },
    },
    {
      title: "none of such a name once the certificates of others have ended",
      spec: { exclusive: true, formerExpiresAt: past, certificates: [hex("a")] },
      is: { entries: {}, until: undefined, leftOut: 0 },
    },
    {
      title: "none of a release whose certificates have ended",
      spec: { revoked: true, expiresAt: past },
      is: { entries: {}, until: undefined, leftOut: 0 },
    },
  ])("$title [join-refused-certificates-1]", ({ spec, is }) => {
    expect(refusedCertificates([bindingOf("w", spec)], now)).toEqual(is);
  });

  test("fit into one object, released names first and then what lasts longest [join-refused-certificates-2]", () => {
    const all = Array.from({ length: 10_000 }, (_, index) =>
      bindingOf(`w${index}`, {
        formerCertificates: [{ sha256: String(index).padStart(64, "0"), expiresAt: index < 5 ? later : soon }],
      }),
    );
    const { entries, leftOut } = refusedCertificates([...all, bindingOf("x", { revoked: true })], now);
    expect(Object.keys(entries)).toContain("node.x");
    expect(Object.values(entries).filter((end) => end === later)).toHaveLength(6);
    const fields = Object.keys(entries).map((key) => [`f:${key}`, {}] as const);
    const stored = JSON.stringify(entries) + JSON.stringify(Object.fromEntries(fields));
    expect(stored.length).toBeLessThanOrEqual(mostRefusedBytes);
    expect(Object.keys(entries).length).toBeGreaterThan(6500);
    expect(leftOut).toBe(10_001 - Object.keys(entries).length);
  });

  test("that an entry of their name stands for need no room [join-refused-certificates-4]", () => {
    const all = Array.from({ length: 4000 }, (_, index) =>
      bindingOf(`worker-${index}.cluster.example.com`, {
        exclusive: true,
        formerExpiresAt: later,
        certificates: [hex("a"), hex("b")],
        formerCertificates: [{ sha256: String(index).padStart(64, "0"), expiresAt: later }],
      }),
    );
    const { entries, leftOut } = refusedCertificates(all, now);
    expect(Object.keys(entries).filter((key) => key.startsWith("only."))).toHaveLength(4000);
    expect(Object.keys(entries).length).toBeLessThan(8000);
    expect(leftOut).toBe(0);
  });

  test("of a name that no key holds are counted as left out [join-refused-certificates-5]", () => {
    const all = [bindingOf("w".repeat(249), { revoked: true }), bindingOf("x".repeat(248), { revoked: true })];
    const { entries, leftOut } = refusedCertificates(all, now);
    expect(Object.keys(entries)).toEqual([`node.${"x".repeat(248)}`]);
    expect(leftOut).toBe(1);
  });

  test.for([
    { length: 63, certificates: 2, fit: 5000 },
    { length: 63, certificates: 8, fit: 3500 },
    { length: 248, certificates: 8, fit: 1600 },
  ])(
    "of taken names of $length characters, with $certificates certificates each, $fit fit [join-refused-certificates-6]",
    (each) => {
      const all = Array.from({ length: 8000 }, (_, index) =>
        bindingOf(`w${index}`.padEnd(each.length, "x"), {
          exclusive: true,
          formerExpiresAt: later,
          certificates: Array.from({ length: each.certificates }, (_unused, own) => hex(String(own))),
        }),
      );
      const { entries, leftOut } = refusedCertificates(all, now);
      const count = Object.keys(entries).length;
      expect(count).toBeGreaterThanOrEqual(each.fit);
      expect(count).toBeLessThan(each.fit * 1.25);
      expect(leftOut).toBe(8000 - count);
    },
  );

  test("stay refused until they end, also after their binding was deleted or made again [join-refused-certificates-3]", () => {
    const before = { [hex("a")]: later, [hex("b")]: past, [hex("c")]: soon, "node.gone": later };
    expect(refusedCertificates([], now, before).entries).toEqual({ [hex("a")]: later, [hex("c")]: soon });
    const again = bindingOf("w", { certificates: [hex("d")] });
    expect(refusedCertificates([again], now, before).entries).toEqual({ [hex("a")]: later, [hex("c")]: soon });
    // An administrator says whose a certificate is.
    const corrected = bindingOf("w", { certificates: [hex("c")] });
    expect(refusedCertificates([corrected], now, before).entries).toEqual({ [hex("a")]: later });
    const former = bindingOf("w", {
      certificates: [hex("a")],
      formerCertificates: [{ sha256: hex("a"), expiresAt: soon }],
    });
    expect(refusedCertificates([former], now, {}).entries).toEqual({ [hex("a")]: soon });
  });
});
