import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { imageFiles } from "../../hack/image-files.ts";
import { chosenFiles, debianPackages, spdxOfImage } from "../../hack/image-sbom.ts";
import { type ReleaseOptions, checkProgram, refusals, release } from "../../hack/release.ts";
import { version } from "../../src/cli/version.ts";
import { type PlainEntry, readTar, writeTar } from "../../src/registry/tar.ts";
import { provenanceProblems, spdxProblems } from "../support/release-rules.ts";

const root = join(import.meta.dirname, "../..");
const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const nodeImage = `registry.example.com/node@sha256:${sha256("an image of Node.js")}`;
const reader =
  spawnSync("pyspdxtools", ["--version"], { stdio: "ignore" }).error === undefined ? "pyspdxtools" : undefined;

/** A base of Debian, with a package that was removed and one from another source. */
const dpkg = `Package: libc6
Status: install ok installed
Maintainer: GNU Libc Maintainers
Architecture: amd64
Source: glibc (2.36-9+deb12u9)
Version: 2.36-9+deb12u10
Description: GNU C Library
 Package: of nothing, in a description

Package: buildah
Status: install ok installed
Architecture: amd64
Version: 1:1.28.2+ds1-3

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0
`;
const osRelease = 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n';
const file = (path: string, contents: string | Uint8Array): PlainEntry => ({
  path,
  kind: "file",
  mode: 0o644,
  contents: Buffer.from(contents),
});
const base = [file("usr/lib/os-release", osRelease), file("var/lib/dpkg/status", dpkg)];

/** Writes an OCI layout as buildah does: of layers from the bottom to the top. @returns the digest of its manifest. */
function writeLayout(folder: string, layers: readonly (readonly PlainEntry[])[]): string {
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
  const put = (mediaType: string, bytes: string | Uint8Array) => {
    writeFileSync(join(folder, "blobs/sha256", sha256(bytes)), bytes);
    return { mediaType, digest: `sha256:${sha256(bytes)}`, size: Buffer.byteLength(bytes) };
  };
  const archives = layers.map((entries) => writeTar(entries));
  const config = put(
    "application/vnd.oci.image.config.v1+json",
    JSON.stringify({ rootfs: { type: "layers", diff_ids: archives.map((bytes) => `sha256:${sha256(bytes)}`) } }),
  );
  const manifest = put(
    "application/vnd.oci.image.manifest.v1+json",
    JSON.stringify({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config,
      layers: archives.map((bytes) => put("application/vnd.oci.image.layer.v1.tar+gzip", gzipSync(bytes))),
    }),
  );
  writeFileSync(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
  writeFileSync(join(folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  return manifest.digest;
}

let folder: string;
/** A repository with the sources of this tree, and one commit. */
let repository: string;
const git = (...words: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...words], {
    cwd: repository,
    encoding: "utf8",
    env: { ...process.env, GIT_AUTHOR_DATE: "2026-01-02T03:04:05Z", GIT_COMMITTER_DATE: "2026-01-02T03:04:05Z" },
  }).trim();
const options = (more: Partial<ReleaseOptions> = {}): ReleaseOptions => ({
  root: repository,
  version,
  nodeImage,
  images: {},
  folder: join(folder, "out"),
  install: (at) => symlinkSync(join(root, "node_modules"), join(at, "node_modules")),
  ...more,
});
const read = (name: string, out = "out") => readFileSync(join(folder, out, name), "utf8");

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "mco-release-test-"));
  repository = join(folder, "repository");
  for (const path of ["src", "hack", "package.json", "package-lock.json", ".npmrc", "Containerfile"])
    cpSync(join(root, path), join(repository, path), { recursive: true });
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--no-gpg-sign", "--message", "sources");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a release", () => {
  test("is reproducible, byte for byte: program, sums, bills of materials and provenance [attack-release-1]", async () => {
    const downloads = "https://downloads.example.com/mco/";
    await release(options({ downloads }));
    await release(options({ downloads, folder: join(folder, "again") }));
    const names = readdirSync(join(folder, "out")).sort();
    expect(names).toEqual([
      "SHA256SUMS",
      "krew.yaml",
      `kubectl-mco-${version}.tar.gz`,
      `machine-config-operator-${version}.tar.gz`,
      "npm.spdx.json",
      "provenance.intoto.json",
      "provenance.predicate.json",
    ]);
    for (const name of names)
      expect([name, sha256(readFileSync(join(folder, "again", name)))]).toEqual([
        name,
        sha256(readFileSync(join(folder, "out", name))),
      ]);
    const sums = read("SHA256SUMS").trim().split("\n");
    expect(sums).toEqual(names.slice(1).map((name) => `${sha256(readFileSync(join(folder, "out", name)))}  ${name}`));
  }, 600_000);

  test("has a manifest for krew, whose archive and program are there [attack-release-krew-1]", () => {
    const { metadata, spec } = parse(read("krew.yaml")) as {
      readonly metadata: { readonly name: string };
      readonly spec: {
        readonly version: string;
        readonly platforms: readonly { readonly uri: string; readonly sha256: string; readonly bin: string }[];
      };
    };
    expect([metadata.name, spec.version]).toEqual(["mco", `v${version}`]);
    const archive = `kubectl-mco-${version}.tar.gz`;
    const bytes = readFileSync(join(folder, "out", archive));
    for (const platform of spec.platforms)
      expect(platform).toMatchObject({
        uri: `https://downloads.example.com/mco/${archive}`,
        sha256: sha256(bytes),
        files: [{ from: "lib/mco/*", to: "." }],
        bin: "mco.mjs",
      });
    // krew refuses an archive with a link.
    const entries = execFileSync("tar", ["-tvz"], { input: bytes, encoding: "utf8" }).trim().split("\n");
    expect(entries.filter((line) => !line.startsWith("-"))).toEqual([]);
    expect(entries.some((line) => line.endsWith(" lib/mco/mco.mjs"))).toBe(true);
  });

  test.for(["http://downloads.example.com", "downloads", "https://a@downloads.example.com", "https://a/?b"])(
    "has no manifest for downloads from %s [attack-release-krew-2]",
    (downloads) => {
      const given = { version, packageVersion: version, nodeImage, changedFiles: [], downloads };
      expect(refusals(given)).toEqual([expect.stringContaining("name an https address") as string]);
    },
  );

  test("names its source, parameters and materials by digests, as in-toto and SLSA require [attack-release-2]", () => {
    const statement = JSON.parse(read("provenance.intoto.json")) as Record<string, unknown>;
    expect(provenanceProblems(statement)).toEqual([]);
    expect(spdxProblems(JSON.parse(read("npm.spdx.json")))).toEqual([]);
    const named = (path: string) => ({ name: path, digest: { sha256: sha256(readFileSync(join(root, path))) } });
    expect(statement).toMatchObject({
      subject: expect.arrayContaining(
        [`machine-config-operator-${version}.tar.gz`, "npm.spdx.json"].map((name) => ({
          name,
          digest: { sha256: sha256(readFileSync(join(folder, "out", name))) },
        })),
      ) as unknown,
      predicate: {
        buildDefinition: {
          externalParameters: { version, nodeImage },
          resolvedDependencies: expect.arrayContaining([
            { name: "source", digest: { gitCommit: git("rev-parse", "HEAD") } },
            { name: "NODE_IMAGE", uri: `oci://${nodeImage}`, digest: { sha256: nodeImage.replace(/.*:/, "") } },
            named("package-lock.json"),
            named("hack/control-plane/go.mod"),
            named("hack/control-plane/go.sum"),
          ]) as unknown,
        },
      },
    });
    expect(JSON.parse(read("provenance.predicate.json"))).toEqual(statement["predicate"]);
  });

  test.for([
    { title: "an image of Node.js by a tag", more: { nodeImage: "registry.example.com/node:24" }, says: "NODE_IMAGE" },
    { title: "a truncated digest", more: { nodeImage: nodeImage.slice(0, -1) }, says: "NODE_IMAGE" },
    { title: "another version than the package's", more: { version: "9.9.9" }, says: "VERSION is 9.9.9" },
  ])("is refused for $title [attack-release-3]", async ({ more, says }) => {
    await expect(release(options({ ...more, folder: join(folder, "refused") }))).rejects.toThrow(says);
    expect(readdirSync(folder)).not.toContain("refused");
  });

  test("is refused for a tree with a change or a file that is not in the commit [attack-release-4]", async () => {
    const stray = join(repository, "src/stray.ts");
    writeFileSync(stray, "");
    await expect(release(options({ folder: join(folder, "refused") }))).rejects.toThrow("src/stray.ts");
    rmSync(stray);
    expect(
      refusals({ version, packageVersion: version, nodeImage, changedFiles: ["M package.json"] }).join(),
    ).toContain("M package.json");
  });

  test("takes an image with its program only, and names the image's packages and digest [attack-release-5]", async () => {
    const archive = gunzipSync(readFileSync(join(folder, "out", `machine-config-operator-${version}.tar.gz`)));
    const program: PlainEntry[] = [];
    for await (const entry of readTar(chunks(archive)))
      if (entry.kind === "file") {
        const parts: Uint8Array[] = [];
        for await (const part of entry.contents) parts.push(part);
        program.push(file(`usr/${entry.path}`, Buffer.concat(parts)));
      }
    const good = join(folder, "good");
    const digest = writeLayout(good, [base, program]);
    await release(options({ images: { suite: good }, folder: join(folder, "with-image") }));
    const document = JSON.parse(read("suite.spdx.json", "with-image")) as ReturnType<typeof spdxOfImage>;
    expect(spdxProblems(document)).toEqual([]);
    expect(document.packages.map(({ name, versionInfo }) => `${name} ${versionInfo}`)).toEqual([
      `suite ${version}`,
      "libc6 2.36-9+deb12u10",
      "buildah 1:1.28.2+ds1-3",
      `machine-config-operator ${version}`,
    ]);
    expect(JSON.parse(read("provenance.intoto.json", "with-image"))).toMatchObject({
      subject: expect.arrayContaining([{ name: "suite", digest: { sha256: digest.slice(7) } }]) as unknown,
    });

    const bad = join(folder, "bad");
    writeLayout(bad, [base, [...program, file("usr/lib/mco/added.mjs", "export {};")]]);
    const ours = program.map((one) => ({ ...one, path: one.path.replace(/^usr\//, "") }));
    const judged = async (place: string) => checkProgram("suite", await imageFiles(place, chosenFiles), ours);
    await expect(judged(good)).resolves.toBeUndefined();
    await expect(judged(bad)).rejects.toThrow("the image suite has another program: usr/lib/mco/added.mjs");
  }, 600_000);
});

describe("the bill of materials of an image", () => {
  test("names what dpkg has installed, with its source package and purl", async () => {
    expect(debianPackages(dpkg)).toEqual([
      { name: "libc6", version: "2.36-9+deb12u10", architecture: "amd64", source: "glibc 2.36-9+deb12u9" },
      { name: "buildah", version: "1:1.28.2+ds1-3", architecture: "amd64", source: "buildah 1:1.28.2+ds1-3" },
    ]);
    const tree = join(folder, "tree");
    for (const { path, contents = "" } of base) {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      writeFileSync(join(tree, path), contents);
    }
    const document = spdxOfImage("base", await imageFiles(tree, chosenFiles), "2026-01-01T00:00:00Z");
    expect(spdxProblems(document)).toEqual([]);
    expect(document.packages.at(-1)?.externalRefs?.[0]?.referenceLocator).toBe(
      "pkg:deb/debian/buildah@1:1.28.2%2Bds1-3?arch=amd64&distro=debian-12",
    );
  });

  test.for<{ readonly title: string; readonly layers: readonly (readonly PlainEntry[])[]; readonly libc?: string }>([
    {
      title: "an upper layer's file wins",
      layers: [base, [file("var/lib/dpkg/status", dpkg.replace("u10", "u11"))]],
      libc: "2.36-9+deb12u11",
    },
    { title: "a whiteout hides a lower layer's file", layers: [base, [file("var/lib/dpkg/.wh.status", "")]] },
    { title: "an opaque folder hides lower layers", layers: [base, [file("var/lib/dpkg/.wh..wh..opq", "")]] },
    { title: "a folder's whiteout hides its contents", layers: [base, [file("var/lib/.wh.dpkg", "")]] },
  ])("of layers: $title [attack-release-6]", async ({ title, layers, libc }) => {
    const layout = join(folder, title.replaceAll(/\W+/g, "-"));
    writeLayout(layout, layers);
    const made = imageFiles(layout, chosenFiles).then((files) => spdxOfImage("i", files, "2026-01-01T00:00:00Z"));
    if (libc === undefined) await expect(made).rejects.toThrow("has no var/lib/dpkg/status");
    else expect((await made).packages.find(({ name }) => name === "libc6")?.versionInfo).toBe(libc);
  });

  test("is refused for a link in place of dpkg's records, and for a blob that does not match its digest [attack-release-7]", async () => {
    const linked = join(folder, "linked");
    writeLayout(linked, [[{ path: "var/lib/dpkg/status", kind: "link", mode: 0o777, target: "/etc/passwd" }]]);
    await expect(imageFiles(linked, chosenFiles)).rejects.toThrow("is a link in this image");
    const forged = join(folder, "forged");
    writeLayout(forged, [base]);
    const blobs = join(forged, "blobs/sha256");
    for (const name of readdirSync(blobs)) {
      const bytes = readFileSync(join(blobs, name));
      if (bytes[0] === 0x1f) writeFileSync(join(blobs, name), Buffer.concat([bytes.subarray(0, -1), Buffer.of(7)]));
    }
    await expect(imageFiles(forged, chosenFiles)).rejects.toThrow();
  });
});

describe.skipIf(reader === undefined)(
  `an independent reader${reader === undefined ? " (left out: pyspdxtools, of the Python package spdx-tools, is not on this machine)" : ""}`,
  () => {
    test.for(["out/npm.spdx.json", "with-image/suite.spdx.json"])("finds no fault in %s [attack-release-8]", (path) => {
      const { status, stderr } = spawnSync(reader ?? "", ["-i", join(folder, path)], { encoding: "utf8" });
      expect([status, stderr]).toEqual([0, expect.not.stringContaining("ERROR")]);
    });
  },
);

describe("the rules of the specifications", () => {
  const good = () => JSON.parse(read("npm.spdx.json")) as Record<string, unknown>;
  const proven = () => JSON.parse(read("provenance.intoto.json")) as Record<string, unknown>;
  test.for<readonly [string, () => readonly string[]]>([
    ["a document without a name", () => spdxProblems({ ...good(), name: undefined })],
    ["an unknown field", () => spdxProblems({ ...good(), extra: 1 })],
    [
      "a time with fractions",
      () => spdxProblems({ ...good(), creationInfo: { created: "2026-01-01T00:00:00.0Z", creators: ["Tool: a-1"] } }),
    ],
    ["no DESCRIBES", () => spdxProblems({ ...good(), relationships: (good()["relationships"] as unknown[]).slice(1) })],
    ["a subject without a digest", () => provenanceProblems({ ...proven(), subject: [{ name: "a" }] })],
    ["another predicate", () => provenanceProblems({ ...proven(), predicateType: "https://slsa.dev/provenance/v0.2" })],
    [
      "no builder",
      () => provenanceProblems({ ...proven(), predicate: { ...(proven()["predicate"] as object), runDetails: {} } }),
    ],
  ])("are broken by %s", ([, problems]) => {
    expect(problems()).not.toEqual([]);
  });
});

async function* chunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  yield bytes;
}
