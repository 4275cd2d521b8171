import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseImageReference } from "./image-reference.ts";
import {
  acceptsAnything,
  type FoundSignature,
  type SignaturePolicy,
  judgeImage,
  needsOfVerification,
  keysToVerify,
  parseSignaturePolicy,
  requirementsFor,
  withKnownKeys,
} from "./signature-policy.ts";

const digest = `sha256:${"d".repeat(64)}`;
const other = `sha256:${"e".repeat(64)}`;

function policy(value: unknown): SignaturePolicy {
  const reading = parseSignaturePolicy(JSON.stringify(value));
  if (reading.verdict === "refused") throw new Error(reading.problem);
  return reading.policy;
}

function reference(text: string) {
  const reading = parseImageReference(text);
  if (reading.verdict === "refused") throw new Error(reading.problem);
  return reading.reference;
}

const payload = (name: string, over = digest, extra = {}) =>
  JSON.stringify({
    critical: {
      type: "cosign container image signature",
      image: { "docker-manifest-digest": over },
      identity: { "docker-reference": name },
    },
    optional: null,
    ...extra,
  });
/** A signature whose bytes are the name of the key that made it. */
const signed = (text: string, key = "k1"): FoundSignature => ({
  payload: new TextEncoder().encode(text),
  signature: new TextEncoder().encode(key),
});
const judge = (requirements: readonly unknown[], image: string, found: readonly FoundSignature[] = []) =>
  judgeImage(
    policy({ default: requirements }),
    { reference: reference(image), digests: [digest] },
    found,
    async (key, { signature }) => {
      if (!("path" in key)) return "invalid";
      return key.path === "missing"
        ? { unusable: "the key missing cannot be read" }
        : key.path === new TextDecoder().decode(signature)
          ? "valid"
          : "invalid";
    },
  );
const by = (signedIdentity?: unknown, key: unknown = { keyPath: "k1" }) => ({
  type: "sigstoreSigned",
  ...(key as object),
  ...(signedIdentity === undefined ? {} : { signedIdentity }),
});

describe("judgeImage", () => {
  const accept = { type: "insecureAcceptAnything" };
  test.for([
    { title: "anything is accepted", requirements: [accept], wanted: "accepted" },
    { title: "everything is rejected", requirements: [accept, { type: "reject" }], wanted: "reject" },
    { title: "no requirement accepts nothing", requirements: [], wanted: "none" },
    {
      title: "GPG signatures are refused by name",
      requirements: [{ type: "signedBy", keyType: "GPGKeys", keyPath: "x" }],
      wanted: "signedBy",
    },
    {
      title: "signatures of a base layer are refused by name",
      requirements: [{ type: "signedBaseLayer" }],
      wanted: "signedBaseLayer",
    },
    {
      title: "Fulcio is refused by name",
      requirements: [{ type: "sigstoreSigned", fulcio: {} }],
      wanted: "sigstoreSigned with fulcio",
    },
    {
      title: "a PKI is refused by name",
      requirements: [{ type: "sigstoreSigned", pki: {} }],
      wanted: "sigstoreSigned with pki",
    },
    {
      title: "Rekor is refused by name",
      requirements: [{ ...by(), rekorPublicKeyPath: "r" }],
      wanted: "sigstoreSigned with a Rekor key",
    },
    { title: "an image without a signature", requirements: [by()], wanted: "sigstoreSigned" },
    {
      title: "a signature for the same repository by any tag",
      requirements: [by()],
      found: [signed(payload("quay.io/os/a:7"))],
      wanted: "accepted",
    },
    {
      title: "a signature of another image",
      requirements: [by()],
      found: [signed(payload("quay.io/os/a:7", other))],
      wanted: "sigstoreSigned",
    },
    {
      title: "a signature by another key",
      requirements: [by()],
      found: [signed(payload("quay.io/os/a:7"), "k2")],
      wanted: "sigstoreSigned",
    },
    {
      title: "one of several keys",
      requirements: [by(undefined, { keyPaths: ["k0", "k1"] })],
      found: [signed(payload("quay.io/os/a:7"))],
      wanted: "accepted",
    },
    {
      title: "a key that is missing beside one that fits",
      requirements: [by(undefined, { keyPaths: ["missing", "k1"] })],
      found: [signed(payload("quay.io/os/a:7"))],
      wanted: "accepted",
    },
    {
      title: "a key that is missing",
      requirements: [by(undefined, { keyPath: "missing" })],
      found: [signed(payload("quay.io/os/a:7"))],
      wanted: "sigstoreSigned",
    },
    {
      title: "a good signature among bad ones",
      requirements: [by()],
      found: [signed("nonsense"), signed(payload("x.io/y:1")), signed(payload("quay.io/os/a:7"))],
      wanted: "accepted",
    },
    {
      title: "both requirements, one signature by each key",
      requirements: [by(), by(undefined, { keyPath: "k2" })],
      found: [signed(payload("quay.io/os/a:7")), signed(payload("quay.io/os/a:7"), "k2")],
      wanted: "accepted",
    },
    {
      title: "both requirements, signed by one key",
      requirements: [by(), by(undefined, { keyPath: "k2" })],
      found: [signed(payload("quay.io/os/a:7"))],
      wanted: "sigstoreSigned",
    },
    {
      title: "a text with an unknown field",
      requirements: [by()],
      found: [signed(payload("quay.io/os/a:7", digest, { more: 1 }))],
      wanted: "sigstoreSigned",
    },
    {
      title: "a text of another type",
      requirements: [by()],
      found: [signed(payload("quay.io/os/a:7").replace("cosign", "atomic"))],
      wanted: "sigstoreSigned",
    },
    {
      title: "a text that names two digests",
      requirements: [by()],
      found: [
        signed(
          payload("quay.io/os/a:7").replace(
            '"docker-manifest-digest"',
            `"docker-manifest-digest":"${other}","docker-manifest-digest"`,
          ),
        ),
      ],
      wanted: "sigstoreSigned",
    },
  ] as const)(
    "$title: $wanted",
    async ({
      requirements,
      found,
      wanted,
    }: {
      requirements: readonly unknown[];
      found?: readonly FoundSignature[];
      wanted: string;
    }) => {
      const verdict = await judge(requirements, `quay.io/os/a@${digest}`, found);
      expect(verdict.verdict === "accepted" ? "accepted" : verdict.requirement).toBe(wanted);
    },
  );

  describe("checks of signatures with keys", () => {
    const checked = async (keyPaths: readonly string[], found: readonly FoundSignature[]) => {
      let checks = 0;
      const verdict = await judgeImage(
        policy({ default: [by(undefined, { keyPaths })] }),
        { reference: reference("quay.io/os/a:7"), digests: [digest] },
        found,
        async (key, { signature }) => {
          checks += 1;
          return "path" in key && key.path === new TextDecoder().decode(signature) ? "valid" : "invalid";
        },
      );
      return { verdict, checks };
    };
    const signatures = (count: number, key = "k1") =>
      Array.from({ length: count }, () => signed(payload("quay.io/os/a:7"), key));

    test("end with the first signature that holds, and equal keys are one [signature-policy-checks-1]", async () => {
      expect(await checked(["k1", "k2", "k3"], signatures(64))).toMatchObject({
        verdict: { verdict: "accepted" },
        checks: 1,
      });
      const same = Array.from({ length: 5000 }, () => "k0");
      expect(await checked([...same, "k1"], signatures(64))).toMatchObject({
        verdict: { verdict: "accepted" },
        checks: 2,
      });
      expect(await checked(same, signatures(64))).toMatchObject({ verdict: { verdict: "refused" }, checks: 64 });
    });

    test("are a thousand for an image at most, which is refused beyond [signature-policy-checks-2]", async () => {
      const keys = Array.from({ length: 5000 }, (_, i) => `other-${i}`);
      expect(await checked(keys, signatures(64))).toMatchObject({
        verdict: {
          verdict: "refused",
          problem: expect.stringContaining("64 signatures and the scope 5000 keys") as string,
        },
        checks: 1024,
      });
      expect(await checked([...keys.slice(0, 7), "k1"], [...signatures(127, "x"), ...signatures(1)])).toMatchObject({
        verdict: { verdict: "accepted" },
        checks: 1024,
      });
    });
  });

  const byDigest = `quay.io/os/a@${digest}`;
  test.for([
    ["matchRepoDigestOrExact", byDigest, "quay.io/os/a:7", true],
    ["matchRepoDigestOrExact", byDigest, "quay.io/os/a", false],
    ["matchRepoDigestOrExact", byDigest, "quay.io/os/b:7", false],
    ["matchRepoDigestOrExact", "quay.io/os/a:7", "quay.io/os/a:7", true],
    ["matchRepoDigestOrExact", "quay.io/os/a:7", "quay.io/os/a:8", false],
    ["matchExact", "quay.io/os/a:7", "quay.io/os/a:7", true],
    ["matchExact", byDigest, "quay.io/os/a:7", false],
    ["matchExact", byDigest, byDigest, true],
    ["matchRepository", "quay.io/os/a:7", "quay.io/os/a", true],
    ["matchRepository", byDigest, "quay.io/os/a:8", true],
    ["matchRepository", byDigest, "quay.io/os", false],
    [{ type: "exactReference", dockerReference: "vendor.io/os:1" }, byDigest, "vendor.io/os:1", true],
    [{ type: "exactReference", dockerReference: "vendor.io/os:1" }, byDigest, "vendor.io/os:2", false],
    [{ type: "exactReference", dockerReference: "vendor.io/os" }, byDigest, "vendor.io/os:latest", false],
    [{ type: "exactRepository", dockerRepository: "vendor.io/os" }, byDigest, "vendor.io/os:2", true],
    [{ type: "exactRepository", dockerRepository: "vendor.io/os" }, byDigest, "quay.io/os/a:2", false],
    [{ type: "remapIdentity", prefix: "quay.io/os", signedPrefix: "vendor.io" }, byDigest, "vendor.io/a:3", true],
    [{ type: "remapIdentity", prefix: "quay.io/os", signedPrefix: "vendor.io" }, byDigest, "quay.io/os/a:3", false],
    [{ type: "remapIdentity", prefix: "quay.io/o", signedPrefix: "vendor.io" }, byDigest, "quay.io/os/a:3", true],
    [
      { type: "remapIdentity", prefix: "quay.io", signedPrefix: "vendor.io/x" },
      "quay.io:5000/a:3",
      "quay.io:5000/a:3",
      true,
    ],
    [
      { type: "remapIdentity", prefix: "quay.io/os/a", signedPrefix: "vendor.io/b" },
      "quay.io/os/a:3",
      "vendor.io/b:3",
      true,
    ],
    [
      { type: "remapIdentity", prefix: "quay.io/os/a", signedPrefix: "vendor.io/b" },
      "quay.io/os/a:3",
      "vendor.io/b:4",
      false,
    ],
  ] as const)("%j of %s accepts %s: %s", async ([identity, image, name, accepted]) => {
    const requirement = by(typeof identity === "string" ? { type: identity } : identity);
    expect((await judge([requirement], image, [signed(payload(name))])).verdict).toBe(
      accepted ? "accepted" : "refused",
    );
  });
});

describe("requirementsFor", () => {
  const nested = (...scopes: readonly string[]) =>
    policy({
      default: [{ type: "reject" }],
      transports: {
        docker: Object.fromEntries(scopes.map((scope) => [scope, [{ type: "insecureAcceptAnything" }]])),
        "docker-daemon": { "": [{ type: "reject" }] },
      },
    });
  const inOrder = (image: string, ...scopes: readonly string[]) => {
    const left = [...scopes];
    while (left.length > 0) {
      expect(requirementsFor(nested(...left), reference(image)).scope).toBe(left[0]);
      left.shift();
    }
    expect(requirementsFor(nested("else.io"), reference(image)).scope).toBe("default");
  };

  test("the most specific scope applies, and no other", () => {
    inOrder(
      "sub.quay.io:5000/os/a:7",
      "sub.quay.io:5000/os/a:7",
      "sub.quay.io:5000/os/a",
      "sub.quay.io:5000/os",
      "sub.quay.io:5000",
      "*.quay.io",
      "*.io",
      "",
    );
    inOrder(`quay.io/os/a@${digest}`, `quay.io/os/a@${digest}`, "quay.io/os/a", "quay.io/os", "quay.io", "*.io", "");
    inOrder(
      "busybox",
      "docker.io/library/busybox:latest",
      "docker.io/library/busybox",
      "docker.io/library",
      "docker.io",
      "",
    );
  });

  test("of any scopes, the one that applies matches and none that matches is longer", () => {
    const segment = fc.constantFrom("a", "b", "ab");
    const name = fc
      .tuple(
        fc.constantFrom("x.io", "y.x.io", "y.x.io:5000", "yx.io"),
        fc.array(segment, { minLength: 1, maxLength: 3 }),
      )
      .map(([host, parts]) => [host, ...parts]);
    const scope = fc.oneof(
      name.chain((parts) => fc.integer({ min: 1, max: parts.length }).map((n) => parts.slice(0, n).join("/"))),
      fc.constantFrom("*.io", "*.x.io", ""),
    );
    fc.assert(
      fc.property(name, fc.uniqueArray(scope, { maxLength: 8 }), (parts, scopes) => {
        const image = parts.join("/");
        const host = (parts[0] ?? "").replace(/:.*/, "");
        const rank = (each: string) => (each === "" ? 0 : each.startsWith("*") ? each.length : 1000 + each.length);
        const fits = scopes.filter(
          (each) =>
            each === "" || (each.startsWith("*") ? host.endsWith(each.slice(1)) : `${image}/`.startsWith(`${each}/`)),
        );
        const wanted = fits.toSorted((p, q) => rank(q) - rank(p))[0] ?? "default";
        expect(requirementsFor(nested(...scopes), reference(image)).scope).toBe(wanted);
      }),
    );
  });

  test("keys are asked for only where a signature matters", () => {
    const both = policy({
      default: [by(undefined, { keyPaths: ["k1", "k2"] })],
      transports: { docker: { "quay.io": [{ type: "insecureAcceptAnything" }] } },
    });
    expect(keysToVerify(both, reference("quay.io/a"))).toEqual([]);
    expect(keysToVerify(both, reference("other.io/a"))).toEqual([{ path: "k1" }, { path: "k2" }]);
  });
});

describe("parseSignaturePolicy", () => {
  const reject = [{ type: "reject" }];
  test.for([
    ["", "not JSON"],
    ["[]", "no object"],
    ["{}", "no default"],
    [JSON.stringify({ default: reject, extra: 1 }), 'unknown field "extra"'],
    [JSON.stringify({ default: {} }), "no list"],
    [JSON.stringify({ default: [{ type: "sometimes" }] }), 'unknown type "sometimes"'],
    [JSON.stringify({ default: [{ type: "reject", reason: "x" }] }), 'unknown field "reason"'],
    [JSON.stringify({ default: [{ type: "sigstoreSigned" }] }), "exactly one of"],
    [JSON.stringify({ default: [{ type: "sigstoreSigned", keyPath: "a", keyData: "YQ==" }] }), "exactly one of"],
    [JSON.stringify({ default: [{ type: "sigstoreSigned", keyPaths: [] }] }), "names no key"],
    [JSON.stringify({ default: [{ type: "sigstoreSigned", keyData: "?" }] }), "base64"],
    [JSON.stringify({ default: [by({ type: "matchAnything" })] }), 'unknown type "matchAnything"'],
    [JSON.stringify({ default: [by({ type: "exactReference" })] }), "not empty"],
    [
      '{"default":[{"type":"reject"}],"default":[{"type":"insecureAcceptAnything"}]}',
      'the field "default" stands there twice',
    ],
    ['{"default":[{"type":"reject","type":"insecureAcceptAnything"}]}', 'the field "type" stands there twice'],
    [
      '{"default":[{"type":"reject"}],"\\u0064efault":[{"type":"insecureAcceptAnything"}]}',
      'the field "default" stands there twice',
    ],
  ] as const)("%s is refused: %s", ([text, problem]) => {
    expect(parseSignaturePolicy(text)).toMatchObject({
      verdict: "refused",
      problem: expect.stringContaining(problem) as string,
    });
  });

  test("a key may be in the file itself", () => {
    expect(
      policy({ default: [by(undefined, { keyDatas: [Buffer.from("PEM ä").toString("base64")] })] }).otherwise,
    ).toMatchObject([{ keys: [{ pem: "PEM ä" }] }]);
  });

  test("what does not apply may be of any known kind", async () => {
    const mixed = policy({
      default: [{ type: "insecureAcceptAnything" }],
      transports: {
        docker: {
          "registry.access.redhat.com": [
            { type: "signedBy", keyType: "GPGKeys", keyPath: "/etc/pki/rpm-gpg/RPM-GPG-KEY-redhat-release" },
          ],
        },
      },
    });
    const unsigned = (image: string) =>
      judgeImage(mixed, { reference: reference(image), digests: [digest] }, [], async () => "invalid");
    expect((await unsigned("quay.io/a")).verdict).toBe("accepted");
    expect(await unsigned("registry.access.redhat.com/a")).toMatchObject({
      verdict: "refused",
      requirement: "signedBy",
      scope: "registry.access.redhat.com",
    });
  });
});

describe("the keys of a policy, away from the machine that it is for", () => {
  const image = reference(`r.example/os@${digest}`);
  const files = new Map([
    ["/etc/pki/a.pub", "A"],
    ["/etc/pki/b.pub", "B"],
  ]);
  const known = (requirement: object) =>
    withKnownKeys(JSON.stringify({ default: [requirement] }), (path) => files.get(path));
  const keysIn = (text: string) => keysToVerify(policy(JSON.parse(text)), image);

  test("keys that the configuration brings are put into the policy, and nothing else of it changes [signature-policy-keys-1]", () => {
    expect(keysIn(known({ type: "sigstoreSigned", keyPath: "/etc/pki/a.pub" }))).toEqual([{ pem: "A" }]);
    expect(keysIn(known({ type: "sigstoreSigned", keyPaths: ["/etc/pki/a.pub", "/etc/pki/b.pub"] }))).toEqual([
      { pem: "A" },
      { pem: "B" },
    ]);
    const more = {
      default: [{ type: "reject" }],
      transports: {
        docker: {
          "r.example": [
            { type: "sigstoreSigned", keyPath: "/etc/pki/a.pub", signedIdentity: { type: "matchRepository" } },
            { type: "signedBy", keyType: "GPGKeys", keyPath: "/etc/pki/a.pub" },
          ],
        },
        "docker-daemon": { "": [{ type: "insecureAcceptAnything" }] },
      },
    };
    expect(JSON.parse(withKnownKeys(JSON.stringify(more), (path) => files.get(path)))).toEqual({
      ...more,
      transports: {
        ...more.transports,
        docker: {
          "r.example": [
            { type: "sigstoreSigned", keyData: btoa("A"), signedIdentity: { type: "matchRepository" } },
            { type: "signedBy", keyType: "GPGKeys", keyPath: "/etc/pki/a.pub" },
          ],
        },
      },
    });
  });

  test("each file is read once, however often the policy names it, and what is no key stays out of the text [signature-policy-keys-5]", () => {
    const paths = Array.from({ length: 2000 }, () => "/k");
    const read: string[] = [];
    const knownOf = (keyPaths: readonly string[], size: number) =>
      withKnownKeys(JSON.stringify({ default: [{ type: "sigstoreSigned", keyPaths }] }), (path) => {
        read.push(path);
        return "k".repeat(size);
      });
    expect(keysIn(knownOf(paths, 300)).length).toBe(2000);
    expect(read).toEqual(["/k"]);
    for (const [named, size] of [
      [["/k", "/k"], 1_500_000],
      [["/k"], 16 * 1024 + 1],
      [paths, 16 * 1024],
    ] as const) {
      const text = knownOf(named, size);
      expect(text.length).toBeLessThan(20_000);
      expect(needsOfVerification(text, image).paths).toEqual(["/k"]);
    }
  });

  test("a key that it does not bring is named for the images that need it [signature-policy-keys-2]", () => {
    const missing = known({ type: "sigstoreSigned", keyPaths: ["/etc/pki/a.pub", "/etc/pki/none.pub"] });
    expect(needsOfVerification(missing, image).paths).toEqual(["/etc/pki/a.pub", "/etc/pki/none.pub"]);
    const scoped = { "r.example": [{ type: "sigstoreSigned", keyPath: "/etc/pki/none.pub" }] };
    const text = JSON.stringify({ default: [{ type: "reject" }], transports: { docker: scoped } });
    expect(needsOfVerification(text, image).paths).toEqual(["/etc/pki/none.pub"]);
    expect(needsOfVerification(text, reference(`other.example/os@${digest}`)).paths).toEqual([]);
  });

  test.for([
    ["no policy", undefined, true],
    ["a policy that accepts anything", { default: [{ type: "insecureAcceptAnything" }] }, true],
    [
      "one that rejects the rest",
      { default: [{ type: "reject" }], accepts: [{ type: "insecureAcceptAnything" }] },
      true,
    ],
    ["a scope that rejects", { default: [{ type: "insecureAcceptAnything" }], accepts: [{ type: "reject" }] }, false],
    ["a key", { default: [{ type: "sigstoreSigned", keyData: btoa("A") }] }, false],
    [
      "anything, and a key",
      { default: [{ type: "insecureAcceptAnything" }, { type: "sigstoreSigned", keyData: btoa("A") }] },
      false,
    ],
    ["what nobody checks here", { default: [{ type: "signedBy", keyType: "GPGKeys", keyPath: "/k" }] }, false],
    ["no requirement", { default: [{ type: "insecureAcceptAnything" }], accepts: [] }, false],
    ["no policy at all", "{", false],
  ] as const)("an image is used by its name alone under %s [signature-policy-keys-4]", ([, given, expected]) => {
    const text = (() => {
      if (given === undefined || typeof given === "string") return given;
      const { accepts, ...top }: { readonly default: unknown; readonly accepts?: unknown } = given;
      return JSON.stringify(
        accepts === undefined ? top : { ...top, transports: { docker: { "r.example/os": accepts } } },
      );
    })();
    expect(acceptsAnything(text, image)).toBe(expected);
  });

  test("a text that is no policy stays as it is [signature-policy-keys-3]", () => {
    for (const text of ["{", '{"default":[{"type":"sigstoreSigned","keyPath":"/etc/pki/a.pub"}],"default":[]}', "[]"]) {
      expect(withKnownKeys(text, (path) => files.get(path))).toBe(text);
      expect(needsOfVerification(text, image).paths).toEqual([]);
    }
  });
});
