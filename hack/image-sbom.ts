/**
 * Writes a software bill of materials of an image: SPDX 2.3 in JSON, of the Debian packages that its dpkg names, of
 * Node.js where it lies beside them, and of the program itself, whose npm packages `hack/sbom.ts` names.
 *
 *     hack/image-sbom.ts NAME TREE|OCI-LAYOUT [FILE]
 *
 * dpkg's records hold no hashes: the image's digest, which the document names where it is known, covers the contents.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { version } from "../src/cli/version.ts";
import { type ImageFiles, imageFiles } from "./image-files.ts";
import { type SpdxDocument, type SpdxPackage, notAnalyzed, purl, spdxId, spdxTime } from "./spdx.ts";

const dpkgStatus = "var/lib/dpkg/status";
/** `etc/os-release` is a link to it. */
const osRelease = "usr/lib/os-release";
/** Of Node.js as its project packs it, which is no package of Debian. */
const nodeVersion = "usr/local/include/node/node_version.h";
export const programFolder = "usr/lib/mco/";

export const chosenFiles: readonly string[] = [dpkgStatus, osRelease, nodeVersion, programFolder];

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly source: string;
}

/** Installed packages of dpkg's status file (deb822; dpkg(1)), in its order. What was removed but not purged is left out. */
export function debianPackages(status: string): readonly DebianPackage[] {
  return status.split(/\n{2,}/).flatMap((stanza) => {
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(stanza)?.[1]?.trim();
    const [name, found, architecture] = [field("Package"), field("Version"), field("Architecture")];
    if (field("Status")?.split(" ").at(-1) !== "installed") return [];
    if (name === undefined || found === undefined || architecture === undefined)
      throw new Error(`dpkg's status names an installed package without name, version or architecture: ${stanza}`);
    return [{ name, version: found, architecture, source: sourceOf(name, found, field("Source")) }];
  });
}

/** `Source: glibc (2.36-9)`; without a version it has the package's, without the field the package's name as well. */
function sourceOf(name: string, version_: string, field: string | undefined): string {
  const [, source = name, other = version_] = /^(\S+)(?: \((.+)\))?$/.exec(field ?? "") ?? [];
  return `${source} ${other}`;
}

/** A value of os-release(5). */
const settingOf = (text: string, name: string) =>
  new RegExp(`^${name}=(?:"([^"]*)"|(.*))$`, "m")
    .exec(text)
    ?.slice(1)
    .find((value) => value !== undefined);

const encoded = (text: string) => encodeURIComponent(text).replaceAll("%3A", ":");

function debPackage({ name, version: found, architecture, source }: DebianPackage, release: string): SpdxPackage {
  const id = settingOf(release, "ID") ?? "debian";
  const distro = `${id}-${settingOf(release, "VERSION_ID") ?? "unknown"}`;
  return {
    SPDXID: spdxId("deb", `${name}-${architecture}`),
    name,
    versionInfo: found,
    supplier: `Organization: ${settingOf(release, "NAME") ?? id}`,
    ...notAnalyzed,
    sourceInfo: `built from the source package ${source}`,
    externalRefs: purl(
      `pkg:deb/${id}/${encoded(name)}@${encoded(found)}?arch=${architecture}&distro=${encoded(distro)}`,
    ),
  };
}

function nodePackage(header: string): SpdxPackage {
  const part = (name: string) => new RegExp(`#define NODE_${name}_VERSION (\\d+)`).exec(header)?.[1] ?? "0";
  const found = ["MAJOR", "MINOR", "PATCH"].map(part).join(".");
  return {
    SPDXID: "SPDXRef-node",
    name: "node",
    versionInfo: found,
    ...notAnalyzed,
    externalRefs: purl(`pkg:generic/node@${found}`),
  };
}

/**
 * @param created RFC 3339, without fractions of a second.
 * @throws Error for an image without dpkg: then its packages are not known.
 */
export function spdxOfImage(name: string, { digest, files }: ImageFiles, created: string): SpdxDocument {
  const text = (path: string) => files.get(path)?.toString("utf8") ?? "";
  const debian = debianPackages(text(dpkgStatus));
  if (debian.length === 0) throw new Error(`the image ${name} has no ${dpkgStatus} that names a package`);
  const hex = digest?.replace("sha256:", "");
  const image: SpdxPackage = {
    SPDXID: "SPDXRef-image",
    name,
    versionInfo: version,
    ...notAnalyzed,
    primaryPackagePurpose: "CONTAINER",
    ...(hex === undefined
      ? {}
      : {
          checksums: [{ algorithm: "SHA256", checksumValue: hex }],
          externalRefs: purl(`pkg:oci/${encoded(name)}@sha256%3A${hex}`),
        }),
  };
  const program: SpdxPackage = {
    SPDXID: "SPDXRef-program",
    name: "machine-config-operator",
    versionInfo: version,
    ...notAnalyzed,
    licenseDeclared: "Apache-2.0",
  };
  const contents = [
    ...debian.map((one) => debPackage(one, text(osRelease))),
    ...(files.has(nodeVersion) ? [nodePackage(text(nodeVersion))] : []),
    ...([...files.keys()].some((path) => path.startsWith(programFolder)) ? [program] : []),
  ];
  const hash = createHash("sha256")
    .update(JSON.stringify([image, contents]))
    .digest("hex");
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: `${name}-${version}`,
    documentNamespace: `https://spdx.org/spdxdocs/${encoded(name)}-${version}-${hash}`,
    creationInfo: { created, creators: [`Tool: machine-config-operator-image-sbom-${version}`] },
    packages: [image, ...contents],
    relationships: [
      { spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: image.SPDXID },
      ...contents.map(({ SPDXID }) => ({
        spdxElementId: image.SPDXID,
        relationshipType: "CONTAINS" as const,
        relatedSpdxElement: SPDXID,
      })),
    ],
  };
}

if (import.meta.main) {
  const [name, place, file] = process.argv.slice(2);
  if (name === undefined || place === undefined) {
    process.stderr.write("usage: hack/image-sbom.ts NAME TREE|OCI-LAYOUT [FILE]\n");
    process.exit(64);
  }
  const epoch = process.env["SOURCE_DATE_EPOCH"];
  const seconds = epoch === undefined ? Math.floor(Date.now() / 1000) : Number(epoch);
  const document = spdxOfImage(name, await imageFiles(place, chosenFiles), spdxTime(seconds));
  const text = `${JSON.stringify(document, undefined, 2)}\n`;
  if (file === undefined) process.stdout.write(text);
  else writeFileSync(file, text);
}
