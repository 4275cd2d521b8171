import { describe, expect, test } from "vitest";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import {
  certificateIn,
  certificatesAfterJoin,
  credentialIn,
  holderOf,
  withCertificate,
  withFormerCertificate,
} from "./certificate-holder.ts";

const hex = (digit: string) => digit.repeat(64);
const key = "authentication.kubernetes.io/credential-id";
const now = Date.parse("2030-01-01T00:00:00Z");
const [past, later, latest] = ["2029-12-31T23:59:59Z", "2030-01-02T00:00:00Z", "2030-06-01T00:00:00Z"] as const;

test.for<{ extra: Readonly<Record<string, readonly string[]>> | undefined; is: string | undefined }>([
  { extra: { [key]: [`X509SHA256=${hex("a")}`] }, is: hex("a") },
  { extra: undefined, is: undefined },
  { extra: {}, is: undefined },
  { extra: { [key]: [] }, is: undefined },
  { extra: { [key]: ["JTI=5f2c"] }, is: undefined },
  { extra: { [key]: [`X509SHA256=${hex("a")}0`] }, is: undefined },
  { extra: { [key]: [`X509SHA256=${hex("A")}`] }, is: undefined },
  { extra: { [key]: [`X509SHA256=${hex("a")}`, `X509SHA256=${hex("b")}`] }, is: undefined },
])(
  "the certificate of a request is read as the API server records it: $extra [join-certificate-holder-1]",
  ({ extra, is }) => {
    expect(certificateIn(extra)).toBe(is);
  },
);

test("the token of a request is read as the API server records it [join-certificate-holder-5]", () => {
  expect(credentialIn({ [key]: ["JTI=5f2c"] })).toBe("JTI=5f2c");
  for (const extra of [undefined, {}, { [key]: [] }, { [key]: ["JTI=a", "JTI=b"] }, { other: ["JTI=a"] }])
    expect(credentialIn(extra)).toBeUndefined();
});

describe("by whose certificate a request was sent [join-certificate-holder-2]", () => {
  const certificates = [hex("a"), hex("b")];
  const taken = { certificates, formerExpiresAt: later };
  test.for<{
    title: string;
    spec: Parameters<typeof holderOf>[0];
    credential?: string;
    issued?: string[];
    isNew?: boolean;
    is: string;
  }>([
    { title: "one that was issued for nobody known", spec: { certificates }, credential: hex("f"), is: "former" },
    {
      title: "one that is listed, while nobody else had the name",
      spec: { certificates },
      credential: hex("a"),
      is: "holder",
    },
    { title: "an API server that names none, while nobody else had the name", spec: { certificates }, is: "holder" },
    { title: "a name whose certificates were never recorded", spec: {}, credential: hex("f"), is: "holder" },
    {
      title: "one that cannot be the first of a name that was just bound",
      spec: {},
      credential: hex("f"),
      isNew: true,
      is: "former",
    },
    {
      title: "the first of a name that was just bound",
      spec: {},
      credential: hex("f"),
      issued: [hex("f")],
      isNew: true,
      is: "holder",
    },
    { title: "one that is listed", spec: taken, credential: hex("b"), is: "holder" },
    { title: "one that is not listed yet", spec: taken, credential: hex("c"), issued: [hex("c")], is: "holder" },
    { title: "another one", spec: taken, credential: hex("f"), is: "former" },
    { title: "any, while nothing is recorded", spec: { formerExpiresAt: later }, credential: hex("a"), is: "former" },
    { title: "an API server that names none", spec: taken, is: "unknown" },
    {
      title: "one of a former machine after the end that was known of it",
      spec: { formerExpiresAt: past, formerCertificates: [{ sha256: hex("f"), expiresAt: past }] },
      credential: hex("f"),
      is: "former",
    },
    {
      title: "a listed one after the end of another one",
      spec: { certificates, formerExpiresAt: past },
      credential: hex("a"),
      is: "holder",
    },
  ])("$title", ({ spec, credential, issued = [], isNew = false, is }) => {
    expect(holderOf(spec, { credential, issued, isNew, askedAt: now })).toBe(is);
  });
});

test("a binding lists the last certificates, each once [join-certificate-holder-3]", () => {
  const expiresAt = "2031-01-01T00:00:00Z";
  const issued = (digit: string, endsAt?: string) => ({ sha256: hex(digit), endsAt });
  expect(withCertificate({ expiresAt }, issued("a"), undefined)).toEqual({ certificates: [hex("a")] });
  expect(withCertificate({ expiresAt, certificates: [hex("a")] }, issued("a", expiresAt), undefined)).toBeUndefined();
  expect(withCertificate({ expiresAt, certificates: Array.from("01234567", hex) }, issued("8"), undefined)).toEqual({
    certificates: Array.from("12345678", hex),
  });
  // The one that is in use stays, however many were requested with it.
  expect(withCertificate({ expiresAt, certificates: Array.from("01234567", hex) }, issued("8"), hex("0"))).toEqual({
    certificates: Array.from("23456708", hex),
  });
  // The signer may give it for longer than was assumed.
  const endsAt = "2040-01-01T00:00:00Z";
  expect(withCertificate({ expiresAt, certificates: [hex("a")] }, issued("a", endsAt), undefined)).toEqual({
    expiresAt: endsAt,
  });
});

describe("a certificate more of a former machine [join-certificate-holder-6]", () => {
  const former = { formerCertificates: [{ sha256: hex("a"), expiresAt: later }], formerExpiresAt: later };
  const issued = { sha256: hex("b"), endsAt: latest };
  test.for<{ title: string; spec: Parameters<typeof withFormerCertificate>[0]; isSure: boolean; is: unknown }>([
    {
      title: "is listed, and prolongs the time in which there is one",
      spec: former,
      isSure: true,
      is: {
        formerCertificates: [...former.formerCertificates, { sha256: hex("b"), expiresAt: latest }],
        formerExpiresAt: latest,
      },
    },
    {
      title: "of a machine that is not known prolongs that time",
      spec: former,
      isSure: false,
      is: { formerExpiresAt: latest },
    },
    { title: "begins such a time", spec: {}, isSure: false, is: { formerExpiresAt: latest } },
    {
      title: "is listed once",
      spec: { formerCertificates: [{ sha256: hex("b"), expiresAt: latest }], formerExpiresAt: latest },
      isSure: true,
      is: undefined,
    },
    {
      title: "takes the place of one that has ended",
      spec: { formerCertificates: [{ sha256: hex("a"), expiresAt: past }], formerExpiresAt: past },
      isSure: true,
      is: { formerCertificates: [{ sha256: hex("b"), expiresAt: latest }], formerExpiresAt: latest },
    },
  ])("$title", ({ spec, isSure, is }) => {
    expect(withFormerCertificate(spec, issued, { isSure, askedAt: now })).toEqual(is);
  });
});

describe("a machine that joins by a name takes over what is known of certificates [join-certificate-holder-4]", () => {
  const before = (more: Partial<NodeBinding["spec"]>): NodeBinding["spec"] => ({
    pool: "worker",
    publicKey: hex("1"),
    expiresAt: later,
    certificates: [hex("a")],
    ...more,
  });
  const former = (digit: string, expiresAt: string) => ({ sha256: hex(digit), expiresAt });
  test.for<{
    title: string;
    before: NodeBinding["spec"] | undefined;
    key: string;
    issued?: ReadonlyMap<string, string>;
    is: unknown;
  }>([
    { title: "of a new name, nothing", before: undefined, key: "2", is: {} },
    {
      title: "of another machine, its certificates and their end",
      before: before({}),
      key: "2",
      is: { exclusive: true, formerExpiresAt: later, formerCertificates: [former("a", later)] },
    },
    {
      title: "of another machine, also those that were not listed yet",
      before: before({}),
      key: "2",
      issued: new Map([[hex("b"), latest]]),
      is: { exclusive: true, formerExpiresAt: latest, formerCertificates: [former("a", later), former("b", latest)] },
    },
    {
      title: "of several, each certificate that is good",
      before: before({ formerExpiresAt: latest, formerCertificates: [former("e", past), former("f", latest)] }),
      key: "2",
      is: { exclusive: true, formerExpiresAt: latest, formerCertificates: [former("f", latest), former("a", later)] },
    },
    {
      title: "of very many, the last ones",
      before: before({
        formerExpiresAt: latest,
        formerCertificates: Array.from({ length: 64 }, (_, index) => ({
          sha256: String(index).padStart(64, "0"),
          expiresAt: latest,
        })),
      }),
      key: "2",
      is: {
        exclusive: true,
        formerExpiresAt: latest,
        formerCertificates: expect.objectContaining({ length: 64 }) as unknown,
      },
    },
    { title: "of one that has ended, nothing", before: before({ expiresAt: past }), key: "2", is: {} },
    {
      title: "of two, the later end",
      before: before({ formerExpiresAt: latest }),
      key: "2",
      is: { exclusive: true, formerExpiresAt: latest, formerCertificates: [former("a", later)] },
    },
    {
      title: "of two, the later end, whichever it is",
      before: before({ formerExpiresAt: later, expiresAt: latest }),
      key: "2",
      is: { exclusive: true, formerExpiresAt: latest, formerCertificates: [former("a", latest)] },
    },
    {
      title: "of the same machine, that another one had the name before it",
      before: before({ formerExpiresAt: latest, exclusive: true }),
      key: "1",
      is: { certificates: [hex("a")], formerExpiresAt: latest, exclusive: true },
    },
    {
      title: "of the same machine, its certificates",
      before: before({ formerExpiresAt: latest }),
      key: "1",
      is: { certificates: [hex("a")], formerExpiresAt: latest },
    },
  ])("$title", ({ before: spec, key: publicKey, issued = new Map(), is }) => {
    expect(certificatesAfterJoin(spec, hex(publicKey), issued, now)).toEqual(is);
  });
});
