import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { systemClock, systemFiles, systemRandom } from "../ports/node/index.ts";
import { folderStore } from "./node/folder-store.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import {
  attachSignature,
  bytesOf,
  failure,
  pull,
  registry,
  sha256Of,
  temporaryFolder,
} from "../../test/support/registry/pull-harness.ts";
import { authJson } from "../../test/support/registry/settings.ts";
import type { Fault } from "../../test/support/registry/test-registry.ts";

const megabyte = 1024 * 1024;
const layer = (length = 100_000, seed = 1) => ({ bytes: bytesOf(length, seed) });

describe("an image by digest", () => {
  test("is stored with all of its parts, each requested once", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer(100_000, 1), layer(50_000, 2)]);
    const { pulled, store, waits } = await pull(`${from.host}/os/a@${digest}`);
    expect(pulled).toMatchObject({ digest, indexDigest: undefined });
    expect(pulled.blobs.length).toBe(4);
    for (const blob of pulled.blobs) expect(sha256Of((await store.read(blob)) ?? "")).toBe(blob);
    expect(waits).toEqual([]);
    const before = from.seen.length;
    await pull(`${from.host}/os/a@${digest}`, { store });
    expect(from.seen.slice(before).filter(({ target }) => target !== "/v2/")).toEqual([]);
  });

  test("from an index is the one for this machine", async () => {
    const from = await registry();
    const arm = from.addImage("os/a", [layer(1000, 1)], { architecture: "arm64" });
    const amd = from.addImage("os/a", [layer(1000, 2)]);
    const entry = (digest: string, architecture: string) => ({
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      digest,
      size: from.manifests.get(digest)?.bytes.length ?? 0,
      platform: { os: "linux", architecture },
    });
    const index = from.addManifest(
      { schemaVersion: 2, manifests: [entry(arm, "arm64"), entry(amd, "amd64")] },
      "application/vnd.oci.image.index.v1+json",
    );
    expect((await pull(`${from.host}/os/a@${index}`)).pulled).toMatchObject({ digest: amd, indexDigest: index });
    expect((await pull(`${from.host}/os/a@${index}`, { architecture: "arm64" })).pulled).toMatchObject({ digest: arm });
    expect(await failure(pull(`${from.host}/os/a@${index}`, { architecture: "s390x" }))).toMatchObject({
      code: "MCO_IMAGE_INVALID",
      has: ["linux/arm64", "linux/amd64"],
    });
  });

  test("a tag is resolved once, and keeps that digest from then on", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()], { tag: "v1" });
    from.plan("/blobs/", { do: "cut", afterBytes: 10 });
    from.plan("manifests/", "none");
    const { pulled } = await pull(`${from.host}/os/a:v1`);
    expect(pulled.digest).toBe(digest);
    expect(from.seen.filter(({ target }) => target.endsWith("/manifests/v1")).length).toBe(1);
  });
});

describe("faults", () => {
  const big = bytesOf(2 * megabyte, 3);
  test.for([
    {
      title: "a connection that is cut",
      faults: [
        { do: "cut", afterBytes: 1_000_000 },
        { do: "cut", afterBytes: 500_000 },
      ],
      again: 0,
    },
    { title: "a body that is short", faults: [{ do: "shorten", toBytes: 700_000 }], again: 0 },
    {
      title: "a registry that is busy",
      faults: [
        { do: "status", status: 503 },
        { do: "status", status: 429 },
      ],
      again: 0,
    },
    { title: "a registry that stops responding", faults: [{ do: "stall", afterBytes: 300_000 }], again: 0 },
    { title: "a registry that sends a byte now and then", faults: [{ do: "trickle", everyMs: 20 }], again: 0 },
    { title: "wrong bytes, once", faults: [{ do: "garble" }], again: big.length },
  ] as const)(
    "$title: the pull gets on, and no byte is fetched twice [registry-pull-1]",
    async ({ faults, again }: { faults: readonly Fault[]; again: number }) => {
      const from = await registry();
      const digest = from.addImage("os/a", [{ bytes: big }]);
      const blob = sha256Of(big);
      from.plan(blob, ...faults);
      const { store, waits } = await pull(`${from.host}/os/a@${digest}`, { client: { quietMs: 400 } });
      expect(await store.has(blob)).toBe(true);
      // A machine that is busy for longer than the patience looks like a registry that is.
      expect(waits.length).toBeGreaterThanOrEqual(faults.length);
      // What was on the wire when a connection was cut may be lost, and is fetched again.
      const slack = 512 * 1024 * (1 + waits.length - faults.length);
      expect(from.sentOf(blob) - big.length - again).toBeLessThan(slack);
    },
  );

  test("a server without ranges sends everything again, and that is accepted", async () => {
    const from = await registry({ withoutRanges: true });
    const digest = from.addImage("os/a", [{ bytes: big }]);
    from.plan(sha256Of(big), { do: "cut", afterBytes: 900_000 });
    const { store } = await pull(`${from.host}/os/a@${digest}`);
    expect(await store.has(sha256Of(big))).toBe(true);
  });

  test("wrong bytes a second time fail the pull, and are discarded [registry-pull-5]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    const blob = sha256Of(layer().bytes);
    from.plan(blob, { do: "garble" }, { do: "garble" }, { do: "garble" });
    const folder = await temporaryFolder();
    const store = folderStore(folder, { files: systemFiles, clock: systemClock, random: systemRandom });
    expect(await failure(pull(`${from.host}/os/a@${digest}`, { store }))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
      retryable: false,
      digest: blob,
    });
    expect(from.seen.filter(({ target }) => target.endsWith(blob)).length).toBe(2);
    expect(await store.has(blob)).toBe(false);
    await pull(`${from.host}/os/a@${digest}`, { store }).catch(() => undefined);
    expect((await pull(`${from.host}/os/a@${digest}`, { store })).pulled.digest).toBe(digest);
  });

  test("a manifest with another digest is never parsed [registry-pull-4]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    from.manifests.set(digest, {
      bytes: Buffer.from('{"schemaVersion":2}'),
      mediaType: "application/vnd.oci.image.manifest.v1+json",
    });
    expect(await failure(pull(`${from.host}/os/a@${digest}`))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
      retryable: false,
    });
  });

  test.for([
    { title: "an image that is not there", status: 404, code: "MCO_IMAGE_ABSENT" },
    { title: "a refusal", status: 403, code: "MCO_IMAGE_UNAUTHORIZED" },
    { title: "a registry that requires an unavailable credential", status: 401, code: "MCO_IMAGE_UNAUTHORIZED" },
  ])("$title is asked for once [registry-pull-3]", async ({ status, code }) => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    from.plan("/manifests/", { do: "status", status, body: '{"errors":[{"code":"DENIED","message":"s3cret"}]}' });
    const failed = await failure(pull(`${from.host}/os/a@${digest}`));
    expect(failed).toMatchObject({ code, retryable: false, image: `${from.host}/os/a@${digest}` });
    expect(JSON.stringify(failed)).not.toContain("s3cret");
    expect(from.seen.filter(({ target }) => target.includes("/manifests/")).length).toBe(1);
  });

  test("an unavailable registry is tried six times, with growing waits [registry-pull-2]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    from.plan("/manifests/", ...Array.from({ length: 9 }, () => ({ do: "status", status: 502 }) as const));
    const failed = await failure(pull(`${from.host}/os/a@${digest}`));
    expect(failed).toMatchObject({ code: "MCO_IMAGE_UNREACHABLE", status: 502, retryable: true });
    expect(from.seen.filter(({ target }) => target.includes("/manifests/")).length).toBe(6);
  });

  test("a layer longer than its manifest states is not read to its end", async () => {
    const from = await registry();
    const small = layer(1000);
    const digest = from.addImage("os/a", [small]);
    from.blobs.set(sha256Of(small.bytes), bytesOf(megabyte));
    expect(await failure(pull(`${from.host}/os/a@${digest}`))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
      problem: "it is longer than its manifest says",
    });
  });

  test("a manifest without an end is not read to its end", async () => {
    const from = await registry();
    from.addManifest(
      { schemaVersion: 2, filler: "x".repeat(5 * megabyte) },
      "application/vnd.oci.image.manifest.v1+json",
      ["os/a:v1"],
    );
    expect(await failure(pull(`${from.host}/os/a:v1`))).toMatchObject({
      code: "MCO_IMAGE_INVALID",
      problem: "the manifest is too large",
    });
  });
});

describe("credentials", () => {
  test.for(["basic", "bearer"] as const)("%s", async (kind) => {
    const from = await registry({ auth: { kind, user: "builder", password: "s3cret" } });
    const digest = from.addImage("os/a", [layer()]);
    const image = `${from.host}/os/a@${digest}`;
    expect((await pull(image, { auth: authJson(`${from.host}/os`, "builder", "s3cret") })).pulled.digest).toBe(digest);
    if (kind === "bearer")
      expect(
        from.seen
          .filter(({ target }) => target.startsWith("/token"))
          .map(({ target }) => new URL(target, "http://x").searchParams.get("scope")),
      ).toEqual(["repository:os/a:pull"]);

    const wrong = await failure(pull(image, { auth: authJson(from.host, "builder", "wr0ng") }));
    expect(wrong).toMatchObject({ code: "MCO_IMAGE_UNAUTHORIZED", retryable: false });
    expect(JSON.stringify(wrong)).not.toMatch(/wr0ng|s3cret|YnVpbGRlcj/);
    expect(await failure(pull(image))).toMatchObject({ code: "MCO_IMAGE_UNAUTHORIZED" });
    expect(await failure(pull(image, { auth: authJson(`${from.host}/other`, "builder", "s3cret") }))).toMatchObject({
      code: "MCO_IMAGE_UNAUTHORIZED",
    });
  });

  test("a redirect to elsewhere is followed without them", async () => {
    const storage = await registry();
    const from = await registry({ auth: { kind: "basic", user: "builder", password: "s3cret" } });
    const { bytes } = layer();
    storage.addBlob(bytes);
    const digest = from.addImage("os/a", [{ bytes }]);
    from.plan(sha256Of(bytes), { do: "redirect", to: `http://${storage.host}/v2/x/blobs/${sha256Of(bytes)}` });
    await pull(`${from.host}/os/a@${digest}`, { auth: authJson(from.host, "builder", "s3cret") });
    expect(storage.seen.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  test("a redirect target gets no answer to a challenge", async () => {
    const thief = await registry({ auth: { kind: "bearer", user: "builder", password: "s3cret" } });
    const from = await registry({ auth: { kind: "basic", user: "builder", password: "s3cret" } });
    const { bytes } = layer();
    thief.addBlob(bytes);
    const digest = from.addImage("os/a", [{ bytes }]);
    from.plan(sha256Of(bytes), { do: "redirect", to: `http://${thief.host}/v2/x/blobs/${sha256Of(bytes)}` });
    expect(
      await failure(pull(`${from.host}/os/a@${digest}`, { auth: authJson(from.host, "builder", "s3cret") })),
    ).toMatchObject({ code: "MCO_IMAGE_UNAUTHORIZED" });
    expect(thief.seen.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  test("redirects in circles end", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    from.plan(
      "/manifests/",
      ...Array.from({ length: 20 }, () => ({ do: "redirect", to: `/v2/os/a/manifests/${digest}` }) as const),
    );
    expect(await failure(pull(`${from.host}/os/a@${digest}`))).toMatchObject({
      code: "MCO_IMAGE_UNREACHABLE",
      problem: "it redirects in circles",
    });
  });
});

describe("TLS", () => {
  test("a registry is trusted if the machine has its authority", async () => {
    const authority = await testAuthority();
    const from = await registry({ tls: await authority.server("127.0.0.1") });
    const digest = from.addImage("os/a", [layer()]);
    const image = `${from.host}/os/a@${digest}`;
    expect((await pull(image, { certificate: authority.certificate })).pulled.digest).toBe(digest);
    expect(await failure(pull(image))).toMatchObject({
      code: "MCO_IMAGE_UNREACHABLE",
      kind: "untrusted",
      retryable: false,
    });
    expect(await failure(pull(image, { certificate: (await testAuthority()).certificate }))).toMatchObject({
      kind: "untrusted",
    });
    const registries = `[[registry]]\nlocation = "${from.host}"\ninsecure = true\n`;
    expect((await pull(image, { registries })).pulled.digest).toBe(digest);
  });

  test("a registry that requires TLS is not contacted without it", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    const authority = await testAuthority();
    expect(await failure(pull(`${from.host}/os/a@${digest}`, { certificate: authority.certificate }))).toMatchObject({
      code: "MCO_IMAGE_UNREACHABLE",
      kind: "notTls",
    });
  });

  test("TLS is never downgraded to plain HTTP", async () => {
    const authority = await testAuthority();
    const plain = await registry();
    const from = await registry({ tls: await authority.server("127.0.0.1") });
    const digest = from.addImage("os/a", [layer()]);
    from.plan("/manifests/", { do: "redirect", to: `http://${plain.host}/v2/os/a/manifests/${digest}` });
    expect(await failure(pull(`${from.host}/os/a@${digest}`, { certificate: authority.certificate }))).toMatchObject({
      problem: "it redirects from TLS to plain HTTP",
    });
    expect(plain.seen).toEqual([]);
  });
});

describe("mirrors", () => {
  const mirroring = (source: string, ...mirrors: readonly string[]) =>
    `[[registry]]\nlocation = "${source}"\n${mirrors.map((mirror) => `[[registry.mirror]]\nlocation = "${mirror}"\n`).join("")}`;

  test("the first one with the image serves it, with its own credentials", async () => {
    const [empty, second, source] = await Promise.all([
      registry(),
      registry({ auth: { kind: "basic", user: "m", password: "mirror" } }),
      registry(),
    ]);
    const digest = second.addImage("copies/os/a", [layer()]);
    const { pulled } = await pull(`${source.host}/os/a@${digest}`, {
      registries: mirroring(source.host, empty.host, `${second.host}/copies`),
      auth: authJson(second.host, "m", "mirror"),
    });
    expect(pulled.digest).toBe(digest);
    expect(source.seen).toEqual([]);
    expect(empty.seen.map(({ authorization }) => authorization).filter((shown) => shown !== undefined)).toEqual([]);
  });

  test("the source finishes a download that a mirror started", async () => {
    const [mirror, source] = await Promise.all([registry(), registry()]);
    const { bytes } = layer(megabyte);
    const digest = source.addImage("os/a", [{ bytes }]);
    mirror.addImage("os/a", [{ bytes }]);
    mirror.plan(sha256Of(bytes), { do: "cut", afterBytes: 800_000 });
    await pull(`${source.host}/os/a@${digest}`, { registries: mirroring(source.host, mirror.host) });
    expect(source.sentOf(sha256Of(bytes))).toBeLessThan(bytes.length / 2);
    expect(source.sentOf(sha256Of(bytes))).toBeGreaterThan(0);
  });

  test("a mirror without the image is not asked again while the source is busy", async () => {
    const [mirror, source] = await Promise.all([registry(), registry()]);
    const digest = source.addImage("os/a", [layer()]);
    source.plan("/manifests/", { do: "status", status: 503 }, { do: "status", status: 503 });
    await pull(`${source.host}/os/a@${digest}`, { registries: mirroring(source.host, mirror.host) });
    expect(mirror.seen.filter(({ target }) => target.includes("/manifests/")).length).toBe(1);
  });

  test("a failure quotes the answer of each location", async () => {
    const [mirror, source] = await Promise.all([registry(), registry()]);
    const failed = await failure(
      pull(`${source.host}/os/a@sha256:${"1".repeat(64)}`, { registries: mirroring(source.host, mirror.host) }),
    );
    expect(failed).toMatchObject({
      code: "MCO_IMAGE_ABSENT",
      host: source.host,
      mirrors: [{ from: `${mirror.host}/os/a`, code: "MCO_IMAGE_ABSENT" }],
    });
  });

  test("a blocked registry and a file that cannot be read are refusals", async () => {
    const from = await registry();
    const image = `${from.host}/os/a@sha256:${"1".repeat(64)}`;
    expect(
      await failure(pull(image, { registries: `[[registry]]\nlocation = "${from.host}"\nblocked = true\n` })),
    ).toMatchObject({ code: "MCO_IMAGE_REFUSED" });
    expect(await failure(pull(image, { registries: "nonsense" }))).toMatchObject({
      code: "MCO_IMAGE_REFUSED",
      problem: "registries.conf cannot be read",
    });
    expect(from.seen).toEqual([]);
  });
});

describe("policy", () => {
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = ec.publicKey.export({ type: "spki", format: "pem" }).toString();
  const signedBy = (signedIdentity: object = { type: "matchRepoDigestOrExact" }) =>
    JSON.stringify({ default: [{ type: "sigstoreSigned", keyPath: "/etc/pki/os.pub", signedIdentity }] });
  const keys = { "/etc/pki/os.pub": pem };

  test.for([
    ["P-256", ec],
    ["P-384", generateKeyPairSync("ec", { namedCurve: "P-384" })],
    ["RSA", generateKeyPairSync("rsa", { modulusLength: 2048 })],
    ["Ed25519", generateKeyPairSync("ed25519")],
  ] as const)("a signature by a key of the policy (%s) is what an image needs [registry-pull-6]", async ([, pair]) => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    attachSignature(from, "os/a", digest, pair.privateKey);
    const keyData = Buffer.from(pair.publicKey.export({ type: "spki", format: "pem" })).toString("base64");
    expect(
      (
        await pull(`${from.host}/os/a@${digest}`, {
          policy: JSON.stringify({ default: [{ type: "sigstoreSigned", keyData }] }),
        })
      ).pulled.digest,
    ).toBe(digest);
  });

  test("without one nothing but manifests is fetched [registry-pull-7]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    expect(await failure(pull(`${from.host}/os/a@${digest}`, { policy: signedBy(), keys }))).toMatchObject({
      code: "MCO_IMAGE_REFUSED",
      scope: "default",
      requirement: "sigstoreSigned",
      retryable: false,
    });
    expect(from.seen.filter(({ target }) => target.includes("/blobs/"))).toEqual([]);
  });

  test("a signature of another image, by another key, or for another name does not count [registry-pull-8]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    const image = `${from.host}/os/a@${digest}`;
    const refusals: unknown[] = [];
    const attempt = async (choices: object = {}) =>
      void refusals.push((await failure(pull(image, { policy: signedBy(), keys, ...choices })))["problem"]);
    attachSignature(from, "os/a", digest, ec.privateKey, { digest: `sha256:${"2".repeat(64)}` });
    await attempt();
    attachSignature(from, "os/a", digest, generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);
    await attempt();
    attachSignature(from, "os/a", digest, ec.privateKey, { name: "elsewhere.io/os/a:1" });
    await attempt();
    attachSignature(from, "os/a", digest, ec.privateKey);
    await attempt({ keys: {} });
    expect(refusals).toEqual([
      "no signature holds: it is a signature of another image",
      "no signature holds: it was not made with a key of the policy",
      'no signature holds: it was made for the name "elsewhere.io/os/a:1", which matchRepoDigestOrExact does not accept',
      "no signature holds: the key /etc/pki/os.pub cannot be read",
    ]);
    await attempt({ policy: signedBy({ type: "matchRepository" }) });
    expect(refusals.at(-1)).toBeUndefined();
  });

  test("a signature over an index covers the manifest that it names [registry-pull-9]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    const index = from.addManifest(
      {
        schemaVersion: 2,
        manifests: [
          {
            mediaType: "application/vnd.oci.image.manifest.v1+json",
            digest,
            size: 1,
            platform: { os: "linux", architecture: "amd64" },
          },
        ],
      },
      "application/vnd.oci.image.index.v1+json",
    );
    attachSignature(from, "os/a", index, ec.privateKey);
    expect((await pull(`${from.host}/os/a@${index}`, { policy: signedBy(), keys })).pulled.digest).toBe(digest);
    expect(await failure(pull(`${from.host}/os/a@${digest}`, { policy: signedBy(), keys }))).toMatchObject({
      code: "MCO_IMAGE_REFUSED",
    });
  });

  test("a signature with other bytes is blamed on the registry [registry-pull-10]", async () => {
    const from = await registry();
    const digest = from.addImage("os/a", [layer()]);
    attachSignature(from, "os/a", digest, ec.privateKey);
    from.plan("/blobs/", { do: "garble" });
    expect(await failure(pull(`${from.host}/os/a@${digest}`, { policy: signedBy(), keys }))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
      retryable: false,
    });
  });

  test("a rejected image is not even requested [registry-pull-11]", async () => {
    const from = await registry();
    const image = `${from.host}/os/a@sha256:${"1".repeat(64)}`;
    expect(await failure(pull(image, { policy: '{"default":[{"type":"reject"}]}' }))).toMatchObject({
      code: "MCO_IMAGE_REFUSED",
      scope: "default",
      requirement: "reject",
    });
    expect(
      await failure(
        pull(image, {
          policy: JSON.stringify({
            default: [{ type: "insecureAcceptAnything" }],
            transports: { docker: { [from.host]: [{ type: "signedBy", keyType: "GPGKeys", keyPath: "k" }] } },
          }),
        }),
      ),
    ).toMatchObject({ code: "MCO_IMAGE_REFUSED", scope: from.host, requirement: "signedBy" });
    expect(await failure(pull(image, { policy: "{}" }))).toMatchObject({
      code: "MCO_IMAGE_REFUSED",
      problem: "policy.json cannot be read: it has no default",
    });
    expect(await failure(pull(image, { policy: undefined }))).toMatchObject({
      code: "MCO_IMAGE_REFUSED",
      problem: "the machine has no policy.json",
    });
    expect(from.seen).toEqual([]);
  });
});
