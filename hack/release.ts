/**
 * Makes a release out of the commit that is checked out, into a folder: the program as an archive, bills of materials,
 * the provenance, and SHA256SUMS of all of them. docs/releasing.md says how images are built, and what is signed and how.
 *
 * Everything follows from the commit: its files are taken from git, its packages from its lock file, all times are the
 * commit's. The program is built twice, in two places; a difference fails the release.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { type PlainEntry, writeTar } from "../src/registry/tar.ts";
import { type ImageFiles, imageFiles } from "./image-files.ts";
import { chosenFiles, programFolder, spdxOfImage } from "./image-sbom.ts";
import { downloadsProblem, krewManifest } from "./krew.ts";
import { type ResourceDescriptor, defaultBuilder, provenanceOf } from "./provenance.ts";
import { type Lockfile, spdxOf } from "./sbom.ts";
import { spdxTime } from "./spdx.ts";

export interface ReleaseOptions {
  /** The repository, or a folder of it. */
  readonly root: string;
  readonly version: string;
  readonly nodeImage: string;
  readonly builder?: string;
  readonly source?: string;
  /** Where the release's files will be; with it there is a manifest for krew. */
  readonly downloads?: string;
  /** Names of images that were built from the same commit, and their trees or OCI layouts. */
  readonly images: Readonly<Record<string, string>>;
  readonly folder: string;
  /** Installs the packages of the lock file into a folder that holds it. */
  readonly install: (folder: string) => void;
}

const installLocked = (folder: string): void => {
  execFileSync("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
};

/** Files of the tree that pin what the program, its image, its tools and its tests take in from elsewhere. */
export const pinFiles = [
  "package-lock.json",
  "Containerfile",
  "hack/formatter/package-lock.json",
  "hack/ignition",
  "hack/**/go.{mod,sum}",
  "hack/**/go-tool.txt",
];

/** Why there is no release; empty: nothing is against it. */
export function refusals(given: {
  readonly version: string;
  readonly packageVersion: string;
  readonly nodeImage: string;
  readonly changedFiles: readonly string[];
  readonly downloads?: string | undefined;
}): readonly string[] {
  const { version, packageVersion, nodeImage, changedFiles, downloads } = given;
  return [
    ...[downloads === undefined ? undefined : downloadsProblem(downloads)].filter((problem) => problem !== undefined),
    ...(version === packageVersion
      ? []
      : [`VERSION is ${version || "missing"}, and package.json has ${packageVersion}`]),
    ...(/^[^\s@]+@sha256:[0-9a-f]{64}$/.test(nodeImage)
      ? []
      : [`NODE_IMAGE is ${nodeImage || "missing"}: name an image by its digest, NAME@sha256:…`]),
    ...(changedFiles.length === 0 ? [] : [`the tree is not that of the commit: ${changedFiles.join(", ")}`]),
  ];
}

const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

/** @throws Error with the reasons, and without a file, where there is no release. */
export async function release(options: ReleaseOptions): Promise<readonly string[]> {
  const { root, version, nodeImage, folder, downloads } = options;
  const git = (...words: readonly string[]) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lockfile;
  const changedFiles = git("status", "--porcelain")
    .split("\n")
    .flatMap((line) => line.trim() || []);
  const reasons = refusals({ version, packageVersion: lock.version, nodeImage, changedFiles, downloads });
  if (reasons.length > 0) throw new Error(reasons.join("\n"));
  const commit = git("rev-parse", "HEAD");
  const commitSeconds = Number(git("show", "-s", "--format=%ct", "HEAD"));

  const program = programOf(options);
  const images: (readonly [string, ImageFiles])[] = [];
  for (const [name, place] of Object.entries(options.images)) {
    const image = await imageFiles(place, chosenFiles);
    checkProgram(name, image, program);
    images.push([name, image]);
  }
  const files = new Map<string, string | Uint8Array>([
    [`machine-config-operator-${version}.tar.gz`, gzipSync(writeTar(program, commitSeconds), { level: 9 })],
    ...(downloads === undefined ? [] : krewFiles({ version, program, commitSeconds, downloads })),
    ["npm.spdx.json", json(spdxOf(lock, spdxTime(commitSeconds)))],
    ...images.map(
      ([name, image]) => [`${name}.spdx.json`, json(spdxOfImage(name, image, spdxTime(commitSeconds)))] as const,
    ),
  ]);
  const described = ([name, bytes]: readonly [string, string | Uint8Array]): ResourceDescriptor => ({
    name,
    digest: { sha256: sha256(bytes) },
  });
  const statement = provenanceOf({
    version,
    nodeImage,
    commit,
    commitSeconds,
    builder: options.builder ?? defaultBuilder,
    source: options.source,
    nodeVersion: process.version,
    pins: globSync(pinFiles, { cwd: root })
      .sort()
      .map((path) => described([path, readFileSync(join(root, path))])),
    subjects: [
      ...[...files].map(described),
      ...images.flatMap(([name, { digest }]) =>
        digest === undefined ? [] : [{ name, digest: { sha256: digest.replace("sha256:", "") } }],
      ),
    ],
  });
  files.set("provenance.intoto.json", json(statement));
  // `cosign attest` makes the statement of an image itself, and takes the predicate alone.
  files.set("provenance.predicate.json", json(statement.predicate));
  const sums = [...files]
    .map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`)
    .sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1));
  files.set("SHA256SUMS", sums.join(""));

  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
  return [...files.keys()];
}

/** The plugin of kubectl for krew, which unpacks no archive with links, and the manifest that names it. */
function krewFiles(given: {
  readonly version: string;
  readonly program: readonly PlainEntry[];
  readonly commitSeconds: number;
  readonly downloads: string;
}): readonly (readonly [string, string | Uint8Array])[] {
  const { version, program, commitSeconds, downloads } = given;
  const name = `kubectl-mco-${version}.tar.gz`;
  const files = program.filter(({ path }) => path.startsWith("lib/mco/"));
  const archive = gzipSync(writeTar(files, commitSeconds), { level: 9 });
  return [
    [name, archive],
    ["krew.yaml", krewManifest({ version, archive: { name, sha256: sha256(archive) }, downloads })],
  ];
}

/** The program's files, built twice in two places, of the commit and not of the work tree. */
function programOf({ root, install }: ReleaseOptions): readonly PlainEntry[] {
  const place = mkdtempSync(join(tmpdir(), "mco-release-"));
  try {
    const first = join(place, "first");
    const second = join(place, "elsewhere/second");
    mkdirSync(first);
    const archive = execFileSync("git", ["archive", "--format=tar", "HEAD"], { cwd: root, maxBuffer: 1024 ** 3 });
    execFileSync("tar", ["-x", "-C", first], { input: archive });
    install(first);
    cpSync(first, second, { recursive: true, verbatimSymlinks: true });
    const [one, other] = [first, second].map(built);
    if (one === undefined || other === undefined) throw new Error("bug: two places give two programs");
    if (sha256(writeTar(one)) !== sha256(writeTar(other))) throw new Error("two builds of the program differ");
    return one;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

function built(tree: string): readonly PlainEntry[] {
  const out = join(tree, "out");
  execFileSync(process.execPath, [join(tree, "hack/bundle.ts"), out], {
    cwd: dirname(tree),
    stdio: ["ignore", "ignore", "inherit"],
  });
  const in_ = (folder: string) => readdirSync(join(out, folder)).sort();
  const file = (path: string, mode: number): PlainEntry => ({
    path,
    kind: "file",
    mode,
    contents: readFileSync(join(out, path)),
  });
  return [
    ...in_("bin").map((name) => {
      const path = `bin/${name}`;
      return { path, kind: "link" as const, mode: 0o777, target: readlinkSync(join(out, path)) };
    }),
    ...in_("lib/mco").map((name) => file(`lib/mco/${name}`, name === "mco.mjs" ? 0o755 : 0o644)),
    ...in_("share/man/man1").map((name) => file(`share/man/man1/${name}`, 0o644)),
  ];
}

/** @throws Error for an image whose program is not the one of this commit. */
export function checkProgram(name: string, { files }: ImageFiles, program: readonly PlainEntry[]): void {
  const ours = new Map(
    program.flatMap(({ path, contents }) => (contents === undefined ? [] : [[`usr/${path}`, sha256(contents)]])),
  );
  const theirs = [...files].filter(([path]) => path.startsWith(programFolder));
  const differs = theirs.filter(([path, bytes]) => ours.get(path) !== sha256(bytes)).map(([path]) => path);
  // Images have no pages for man(1).
  const lacks = [...ours.keys()].filter((path) => path.startsWith(programFolder) && !files.has(path));
  if (differs.length + lacks.length > 0)
    throw new Error(`the image ${name} has another program: ${[...differs, ...lacks].slice(0, 5).join(", ")}`);
}

/** What the next steps of docs/releasing.md need and this machine lacks. */
function missingTools(): readonly string[] {
  const needs = { skopeo: "copies the images to the registry", cosign: "signs images, files and attestations" };
  return Object.entries(needs).flatMap(([tool, what]) =>
    spawnSync(tool, ["--version"], { stdio: "ignore" }).error === undefined ? [] : [`${tool} (${what})`],
  );
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const { values } = parseArgs({
    options: {
      version: { type: "string", default: "" },
      "node-image": { type: "string", default: "" },
      builder: { type: "string" },
      source: { type: "string" },
      downloads: { type: "string" },
      image: { type: "string", multiple: true, default: [] },
      folder: { type: "string", default: join(root, "dist/release") },
    },
  });
  const { version, "node-image": nodeImage, builder, source, downloads, folder } = values;
  const images = Object.fromEntries(values.image.map((word) => word.split(/=(.*)/s).slice(0, 2) as [string, string]));
  try {
    const files = await release({
      root,
      version,
      nodeImage,
      images,
      folder,
      install: installLocked,
      ...(builder === undefined ? {} : { builder }),
      ...(source === undefined ? {} : { source }),
      ...(downloads === undefined ? {} : { downloads }),
    });
    process.stdout.write(`${folder}:\n${files.map((name) => `  ${name}\n`).join("")}`);
    const missing = missingTools();
    if (missing.length > 0) process.stdout.write(`not on this machine: ${missing.join(", ")}\n`);
    process.stdout.write("nothing is signed or pushed yet: docs/releasing.md says what follows\n");
  } catch (error) {
    process.stderr.write(`no release:\n${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
