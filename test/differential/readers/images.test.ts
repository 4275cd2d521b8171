import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { McoError } from "../../../src/api/errors.ts";
import { parseImageReference, repositoryOf } from "../../../src/core/images/image-reference.ts";
import { parseChallenges } from "../../../src/registry/challenge.ts";
import { type Descriptor, mediaTypes, parseManifest } from "../../../src/registry/manifest.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { mutated, mutatedBytes, withFields } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(600, 5000);

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const references = mutated(
  fc.constantFrom(
    "busybox",
    "library/busybox:1.0",
    "quay.io/openshift/os:latest",
    `quay.io:5000/a/b@${digest("a")}`,
    `localhost/a:b@${digest("0")}`,
    "[::1]:5000/a/b-c__d.e:F_1.2-3",
    "index.docker.io/busybox",
    "Host/a",
    "a".repeat(64),
    `a.b/${"c/".repeat(120)}d`,
  ),
  [
    "/",
    ":",
    "@",
    ".",
    "_",
    "__",
    "-",
    "--",
    "A",
    "a",
    "0",
    "[",
    "]",
    "::",
    ":0",
    ":123456",
    "é",
    "\n",
    " ",
    "\u0000",
    "sha512:",
    "@sha256:",
    digest("b"),
    "docker.io/",
    "localhost",
    "LOCALHOST",
    "x".repeat(130),
    "%",
  ],
);

const image = {
  schemaVersion: 2,
  mediaType: "application/vnd.oci.image.manifest.v1+json",
  config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: digest("a"), size: 7 },
  layers: [
    {
      mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
      digest: digest("b"),
      size: 8,
      annotations: { a: "b", A: "c" },
    },
    { mediaType: "application/vnd.oci.image.layer.v1.tar", digest: digest("c"), size: 9 },
  ],
};
const index = {
  schemaVersion: 2,
  mediaType: "application/vnd.oci.image.index.v1+json",
  manifests: ["amd64", "arm64"].map((architecture, i) => ({
    mediaType: image.mediaType,
    digest: digest(String(i)),
    size: i,
    platform: { os: "linux", architecture },
  })),
};
const second = `{"mediaType":"x","digest":"${digest("d")}","size":1}`;
const fields = [
  `"Layers":[${second}]`,
  `"layers":[${second}]`,
  `"config":{"size":3}`,
  `"CONFIG":${second}`,
  `"Digest":"${digest("e")}"`,
  `"digest":"${digest("e")}"`,
  `"\\u0064igest":"${digest("e")}"`,
  `"Size":4`,
  `"mediaType":"application/vnd.oci.image.index.v1+json"`,
  `"MediaType":"application/vnd.oci.image.index.v1+json"`,
  `"manifeſts":[]`,
  `"Platform":{"os":"plan9","architecture":"amd64"}`,
  `"architecture":"s390x"`,
  `"digeſt":1`,
];
const whole = fc.constantFrom(JSON.stringify(image), JSON.stringify(index), JSON.stringify(image, undefined, 1));
const manifestTexts = fc.oneof(
  withFields(whole, fields),
  mutated(withFields(whole, fields), [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "null",
    "1",
    "-1",
    "1.0",
    "1e3",
    "9007199254740993",
    "1e400",
    "\\u0000",
    "\\ud800",
    "\ufeff",
    "\u0000",
    "ſ",
    "\u212a",
    "A",
  ]),
);

interface GoDescriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: { readonly os: string; readonly architecture: string; readonly variant?: string };
}

const ours = ({ mediaType, digest: sum, sizeBytes }: Descriptor) => [mediaType, sum, sizeBytes];
const theirs = ({ mediaType, digest: sum, size }: GoDescriptor) => [mediaType, sum, size];

describe.skipIf(program === undefined)("images, as Go's libraries read them", () => {
  let go: GoReaders;

  beforeAll(() => {
    go = startGoReaders(program ?? "");
  });
  afterAll(() => go.close());

  test("both read the same references, as the same images [readers-images-1]", { timeout: 300_000 }, async () => {
    let both = 0;
    await fc.assert(
      fc.asyncProperty(references, async (text) => {
        const mine = parseImageReference(text);
        const { reference, error } = await go.ask("reference", text);
        if (mine.verdict === "refused") return;
        expect(error, text).toBeUndefined();
        both += 1;
        expect([repositoryOf(mine.reference), mine.reference.digest ?? ""]).toEqual([
          reference?.name,
          reference?.digest,
        ]);
        if (mine.reference.digest === undefined)
          expect(mine.reference.tag).toBe(reference?.tag === "" ? "latest" : reference?.tag);
      }),
      sample,
    );
    expect(both).toBeGreaterThan(sample.numRuns / 20);
  });

  test(
    "a manifest that is read has the config, layers and manifests that Go reads in it [readers-images-2]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            manifestTexts.map((text) => Buffer.from(text)),
            mutatedBytes(manifestTexts),
            { weight: 6, arbitrary: freeManifests.map((document) => Buffer.from(JSON.stringify(document))) },
          ),
          async (bytes) => {
            let mine: ReturnType<typeof parseManifest>;
            try {
              mine = parseManifest(bytes);
            } catch (cause) {
              expect(cause).toBeInstanceOf(McoError);
              return;
            }
            const { json, error } = await go.ask("image", bytes);
            expect(error).toBeUndefined();
            both += 1;
            const other = json as {
              readonly mediaType: string;
              readonly manifests: readonly GoDescriptor[] | null;
              readonly config: GoDescriptor;
              readonly layers: readonly GoDescriptor[] | null;
            };
            if (mine.kind === "image") {
              expect(ours(mine.config)).toEqual(theirs(other.config));
              expect(mine.layers.map(ours)).toEqual((other.layers ?? []).map(theirs));
              for (const [i, { annotations }] of mine.layers.entries())
                expect(annotations).toEqual(other.layers?.[i]?.annotations ?? {});
              expect(other.manifests ?? []).toEqual([]);
            } else
              expect(mine.manifests.map((one) => [...ours(one), one.os, one.architecture, one.variant])).toEqual(
                (other.manifests ?? [])
                  .filter(({ mediaType }) => mediaType === image.mediaType || mediaType === mediaTypes.dockerManifest)
                  .map((one) => [
                    ...theirs(one),
                    one.platform?.os ?? "",
                    one.platform?.architecture ?? "",
                    one.platform?.variant ?? "",
                  ]),
              );
          },
        ),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 20);
    },
  );
});

/** A value of a type that no field has, or of another one's. */
const misfit = fc.constantFrom<unknown>(null, 1, "x", true, [], {}, ["a"], [null], 1.5, -1, 1e20, "", { a: 1 });
const orMisfit = (value: fc.Arbitrary<unknown>, weight = 14) =>
  fc.oneof({ weight, arbitrary: value }, { weight: 1, arbitrary: misfit });
const some = (fields: Record<string, fc.Arbitrary<unknown>>, requiredKeys: string[] = []) =>
  fc.record(fields, { requiredKeys });
const anyNotes = orMisfit(
  fc.dictionary(fc.constantFrom("a", "A", "__proto__", "constructor", ""), orMisfit(fc.constantFrom("b", "")), {
    maxKeys: 2,
  }),
);
const anyPlatform = orMisfit(
  some({
    os: orMisfit(fc.constantFrom("linux", "windows", "")),
    architecture: orMisfit(fc.constantFrom("amd64", "arm64")),
    variant: orMisfit(fc.constantFrom("v8", "v9", "")),
    "os.version": orMisfit(fc.constant("1")),
    "os.features": orMisfit(fc.constant(["x"])),
    "OS.version": misfit,
  }),
);
const anyType = fc.constantFrom(
  image.mediaType,
  image.config.mediaType,
  "application/vnd.oci.image.layer.v1.tar",
  mediaTypes.dockerManifest,
  index.mediaType,
  "x",
  "",
);
const anyDescriptor = orMisfit(
  some(
    {
      mediaType: orMisfit(anyType),
      digest: orMisfit(
        fc.constantFrom(digest("a"), digest("b"), digest("A"), `sha512:${"a".repeat(128)}`, "sha256:x"),
        20,
      ),
      size: orMisfit(fc.constantFrom(0, 1, 7, 2 ** 53 - 1, 2 ** 53), 20),
      annotations: anyNotes,
      platform: anyPlatform,
      urls: orMisfit(fc.constant(["https://a"])),
      data: orMisfit(fc.constantFrom("aGk=", "!", "aGk", "a_k=", "aG k=")),
      artifactType: orMisfit(fc.constant("a/b")),
      ArtifactType: misfit,
      extra: misfit,
    },
    ["mediaType", "digest", "size"],
  ),
  30,
);
/** Documents of which each field is there or not, and of any type. */
const freeManifests = fc
  .tuple(
    some(
      {
        schemaVersion: orMisfit(fc.constant(2), 30),
        mediaType: orMisfit(anyType, 30),
        config: anyDescriptor,
        layers: orMisfit(fc.array(anyDescriptor, { maxLength: 2 }), 30),
        manifests: orMisfit(fc.array(anyDescriptor, { maxLength: 2 }), 30),
        annotations: anyNotes,
        subject: anyDescriptor,
        artifactType: orMisfit(fc.constant("a/b")),
        extra: misfit,
      },
      ["schemaVersion"],
    ),
    fc.constantFrom("image", "image", "index", "index", "any"),
  )
  .map(([document, kind]) => {
    const { manifests, config, layers, ...rest } = document as Record<string, unknown>;
    if (kind === "image") return { ...rest, config, layers, mediaType: image.mediaType };
    return kind === "index" ? { ...rest, manifests, mediaType: index.mediaType } : document;
  });

const token = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}$/);
const quoted = (value: string) => `"${value.replaceAll(/["\\]/g, "\\$&")}"`;

describe("challenges of registries", () => {
  test("challenges that follow the grammar of RFC 9110 are read as they were meant [readers-challenge-1]", () => {
    const parameter = fc.tuple(
      token,
      fc.oneof(token, fc.stringMatching(/^[\t\x20-\x7e]{0,12}$/)),
      fc.boolean(),
      fc.constantFrom("=", " = ", "\t="),
    );
    const challenge = fc.record({
      scheme: token,
      parameters: fc.uniqueArray(parameter, { maxLength: 3, selector: ([name]) => name.toLowerCase() }),
    });
    fc.assert(
      fc.property(
        fc.array(challenge, { maxLength: 3 }),
        fc.constantFrom(", ", ",", " ,\t", ",, "),
        (challenges, comma) => {
          const text = challenges
            .map(
              ({ scheme, parameters }) =>
                `${scheme}${parameters.length === 0 ? "" : " "}${parameters
                  .map(
                    ([name, value, isPlain, equals]) =>
                      `${name}${equals}${isPlain && /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(value) ? value : quoted(value)}`,
                  )
                  .join(comma)}`,
            )
            .join(comma);
          expect(parseChallenges(text).map(({ scheme, parameters }) => [scheme, Object.entries(parameters)])).toEqual(
            challenges.map(({ scheme, parameters }) => [
              scheme.toLowerCase(),
              Object.entries(Object.fromEntries(parameters.map(([name, value]) => [name.toLowerCase(), value]))),
            ]),
          );
        },
      ),
      sample,
    );
  });

  test("any bytes are read without an error, and in time [readers-challenge-2]", () => {
    const texts = mutated(
      fc.constantFrom('Bearer realm="https://a/token",service="a",scope="b"', "Basic realm=a, Negotiate abc==", ""),
      [
        ",",
        '"',
        "\\",
        "=",
        " ",
        "\t",
        "\\\\".repeat(5000),
        " ".repeat(9000),
        '"'.repeat(9000),
        "a=".repeat(5000),
        "__proto__=a",
        "\u0000",
        "é",
      ],
    );
    fc.assert(
      fc.property(texts, (text) => {
        const began = process.cpuUsage();
        for (const { parameters } of parseChallenges(text))
          expect(Object.getPrototypeOf(parameters)).toBe(Object.prototype);
        expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
      }),
      sample,
    );
  });
});
