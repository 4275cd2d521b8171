import "reflect-metadata";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readBundle } from "../../../src/core/certificates/certificate-facts.ts";
import { readCertificateRequest } from "../../../src/core/certificates/certificate-request-facts.ts";
import { readPem } from "../../../src/core/certificates/pem.ts";
import { runs } from "./runs.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { selfSigned } from "../../support/self-signed.ts";
import { signingRequest } from "../../support/test-pki.ts";

const program = goReadersProgram();
const sample = runs(400, 20000);
const { numRuns } = sample;

const bytes = (text: string) => new TextEncoder().encode(text);
const pemOf = (label: string, der: Uint8Array) =>
  `-----BEGIN ${label}-----\n${Buffer.from(der)
    .toString("base64")
    .replaceAll(/.{64}(?!$)/g, "$&\n")}\n-----END ${label}-----\n`;

/** Texts near PEM: blocks, broken blocks, and what readers disagree about, in any order. */
function pemTexts(blocks: readonly string[]): fc.Arbitrary<string> {
  const whole = fc.constantFrom(...blocks);
  const wounded = fc
    .tuple(
      whole,
      fc.nat(),
      fc.constantFrom("", " ", "\t", "\r", "\n", "=", ":", "A", "-", "-----", "é", "\u0000"),
      fc.nat(2),
    )
    .map(([text, at, put, cut]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + put + text.slice(place + cut);
    });
  const piece = fc.oneof(
    { weight: 3, arbitrary: whole },
    { weight: 4, arbitrary: wounded },
    fc.constantFrom(
      "text\n",
      "\n",
      " ",
      "-----BEGIN CERTIFICATE REQUEST-----\n",
      "-----END CERTIFICATE REQUEST-----\n",
      "Proc-Type: 4,ENCRYPTED\n\n",
      "x-----BEGIN CERTIFICATE-----\n",
      "-----BEGIN CERTIFICATE-----\nA: b\n\nAAAA\n-----END CERTIFICATE-----\n",
      "-----BEGIN -----\n-----END -----\n",
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    ),
    whole.map((text) => text.replaceAll("\n", "\r\n")),
    whole.map((text) => text.replaceAll("\n", " \t\n")),
    whole.map((text) => text.slice(0, -1)),
  );
  return fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(""));
}

/** Bytes of `der` with a few of them changed, so that structures stay near enough to be read. */
const woundedDer = (der: Uint8Array) =>
  fc.array(fc.tuple(fc.nat(der.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }).map((changes) => {
    const changed = Uint8Array.from(der);
    for (const [at, value] of changes) changed[at] = value;
    return changed;
  });

const derOf = (base64Pem: string) => {
  const reading = readPem(Buffer.from(base64Pem, "base64").toString());
  if (reading.verdict === "unreadable") throw new Error(reading.problem);
  return reading.blocks[0]?.der ?? new Uint8Array();
};

describe.skipIf(program === undefined)("PEM, as Go reads it", () => {
  let go: GoReaders;
  let requests: readonly string[];
  let certificates: readonly string[];

  beforeAll(async () => {
    go = startGoReaders(program ?? "");
    requests = await Promise.all([
      signingRequest("O=system:nodes,CN=system:node:worker-0"),
      signingRequest("O=system:nodes,CN=system:node:master-0", {
        names: [
          { type: "dns", value: "master-0.example" },
          { type: "ip", value: "10.0.0.9" },
          { type: "ip", value: "fd00::9" },
          { type: "email", value: "a@b.c" },
          { type: "url", value: "spiffe://a/b" },
        ],
      }),
      signingRequest("CN=system:node:master-0,O=system:nodes,CN=system:node:worker-0"),
    ]);
    certificates = await Promise.all([
      selfSigned("O=one, CN=first"),
      selfSigned("CN=zweite ü"),
      selfSigned("CN=one,CN=two"),
    ]);
  });
  afterAll(() => go.close());

  test(
    "a text that is read has the blocks that Go reads; one that Go reads and we cannot is unreadable [readers-pem-1]",
    { timeout: 300_000 },
    async () => {
      const texts = pemTexts([...certificates, ...requests.map((one) => Buffer.from(one, "base64").toString())]);
      let read = 0;
      await fc.assert(
        fc.asyncProperty(texts, async (text) => {
          const ours = readPem(text);
          const { blocks = [] } = await go.ask("pem", bytes(text));
          if (ours.verdict === "unreadable") return;
          read += 1;
          expect(ours.blocks.map(({ label, der }) => [label, Buffer.from(der).toString("base64")])).toEqual(
            blocks.map(({ label, der }) => [label, der]),
          );
          expect(blocks.every(({ headers }) => headers === 0)).toBe(true);
        }),
        sample,
      );
      expect(read).toBeGreaterThan(numRuns / 20);
    },
  );

  test(
    "a bundle that is read has the certificates that Go believes, with the same names and times [readers-pem-2]",
    { timeout: 300_000 },
    async () => {
      const ders = certificates.map((text) => derOf(Buffer.from(text).toString("base64")));
      const inputs = fc.oneof(
        pemTexts(certificates),
        fc.constantFrom(...ders).chain((der) => woundedDer(der).map((changed) => pemOf("CERTIFICATE", changed))),
      );
      let read = 0;
      await fc.assert(
        fc.asyncProperty(inputs, async (text) => {
          const ours = readBundle(text);
          if (ours.verdict === "unreadable") return;
          const theirs = (await go.ask("bundle", bytes(text))).certificates ?? [];
          // Go refuses more certificates than a reader of names and times sees through: it never believes one unseen.
          for (const { commonName, notBefore, notAfter } of theirs)
            expect(ours.certificates).toContainEqual(expect.objectContaining({ commonName, notBefore, notAfter }));
          expect(theirs.length).toBeLessThanOrEqual(ours.certificates.length);
          read += theirs.length;
        }),
        sample,
      );
      expect(read).toBeGreaterThan(numRuns / 20);
    },
  );

  test("of two common names Go believes the last, and so do our readers [readers-pem-5]", async () => {
    const [, , certificate = ""] = certificates;
    const theirs = (await go.ask("bundle", bytes(certificate))).certificates ?? [];
    const ours = readBundle(certificate);
    expect(theirs.map(({ commonName }) => commonName)).toEqual(["two"]);
    expect(ours.verdict === "read" ? ours.certificates.map(({ commonName }) => commonName) : []).toEqual(["two"]);
    const request = await go.ask("request", Buffer.from(requests[2] ?? "", "base64"));
    expect(request.request?.commonName).toBe("system:node:worker-0");
  });

  test(
    "a request that is read asks for what Go's signer would sign [readers-pem-3]",
    { timeout: 300_000 },
    async () => {
      const texts = requests.map((one) => Buffer.from(one, "base64").toString());
      const ders = requests.map(derOf);
      const inputs = fc.oneof(
        { weight: 1, arbitrary: pemTexts(texts) },
        {
          weight: 3,
          arbitrary: fc
            .constantFrom(...ders)
            .chain((der) => woundedDer(der).map((changed) => pemOf("CERTIFICATE REQUEST", changed))),
        },
      );
      let read = 0;
      await fc.assert(
        fc.asyncProperty(inputs, async (text) => {
          const ours = readCertificateRequest(Buffer.from(text).toString("base64"));
          if (ours.verdict === "unreadable") return;
          const { request: theirs } = await go.ask("request", bytes(text));
          // What Go cannot read is signed by nobody.
          if (theirs === undefined) return;
          read += 1;
          const { facts } = ours;
          expect(facts.commonNames.at(-1) ?? "").toBe(theirs.commonName);
          expect(facts.organizations).toEqual(theirs.organizations ?? []);
          // A name that Go does not see is judged nevertheless: that refuses more, never less.
          expect(facts.dnsNames).toEqual(expect.arrayContaining([...(theirs.dnsNames ?? [])]));
          expect(facts.ipAddresses).toEqual(expect.arrayContaining([...(theirs.ipAddresses ?? [])]));
          expect(facts.emailAddresses).toEqual(expect.arrayContaining([...(theirs.emailAddresses ?? [])]));
          expect(facts.uris.length).toBeGreaterThanOrEqual(theirs.uris?.length ?? 0);
          expect(Buffer.from(facts.publicKey).toString("base64")).toBe(theirs.publicKey);
        }),
        { ...sample, numRuns: numRuns * 2 },
      );
      expect(read).toBeGreaterThan(numRuns / 20);
    },
  );

  test(
    "of two blocks Go signs the first: such a request is refused, wherever the second hides [readers-pem-4]",
    { timeout: 300_000 },
    async () => {
      const [worker = "", master = ""] = requests.map((one) => `${Buffer.from(one, "base64").toString().trimEnd()}\n`);
      const hidden = [
        master + worker,
        master.replaceAll("-----\n", "----- \t\n") + worker,
        master.replace("REQUEST-----\n", "REQUEST-----\nA: b\n\n") + worker,
        master.replaceAll("\n", "\r\n") + worker,
        `${master.trimEnd()} \n${worker}`,
        master.replace(/\n(.)/, "\n $1") + worker,
      ];
      for (const text of hidden) {
        const { request } = await go.ask("request", bytes(text));
        expect(request?.commonName, text).toBe("system:node:master-0");
        expect(readCertificateRequest(Buffer.from(text).toString("base64")).verdict, text).toBe("unreadable");
      }
    },
  );
});
