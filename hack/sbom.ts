/**
 * Writes a software bill of materials: SPDX 2.3 in JSON, of every npm package that package-lock.json names, with its
 * integrity hash. Prints it, or writes it to the file that is named.
 *
 * The lock file alone decides it: the same lock file gives the same document, but for the time of its making
 * (SOURCE_DATE_EPOCH, seconds, sets that).
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type SpdxDocument, type SpdxPackage, notAnalyzed, purl, spdxId, spdxTime } from "./spdx.ts";

interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface Lockfile {
  readonly name: string;
  readonly version: string;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

const folder = "node_modules/";
const algorithms: Readonly<Record<string, string>> = {
  sha1: "SHA1",
  sha256: "SHA256",
  sha384: "SHA384",
  sha512: "SHA512",
};

const nameOf = (path: string, { name }: LockedPackage): string =>
  name ?? path.slice(path.lastIndexOf(folder) + folder.length);

const idOf = (path: string): string => spdxId("npm", path);

/** @throws Error of a package that the lock file does not pin by a hash. */
function checksumsOf(path: string, { integrity }: LockedPackage): NonNullable<SpdxPackage["checksums"]> {
  const found = (integrity ?? "").split(/\s+/).flatMap((part) => {
    const [, name = "", value = ""] = /^([a-z0-9]+)-([A-Za-z0-9+/=]+)$/.exec(part) ?? [];
    const algorithm = algorithms[name];
    return algorithm === undefined ? [] : [{ algorithm, checksumValue: Buffer.from(value, "base64").toString("hex") }];
  });
  if (found.length === 0) throw new Error(`package-lock.json has no integrity hash of ${path}`);
  return found;
}

function packageOf(path: string, locked: LockedPackage): SpdxPackage {
  const name = nameOf(path, locked);
  const version = locked.version ?? "";
  return {
    SPDXID: idOf(path),
    name,
    versionInfo: version,
    ...notAnalyzed,
    // The purl names the package; which registry serves it is a setting of each machine.
    downloadLocation: locked.resolved ?? "NOASSERTION",
    licenseDeclared: locked.license ?? "NOASSERTION",
    checksums: checksumsOf(path, locked),
    externalRefs: purl(`pkg:npm/${name.replace("@", "%40")}@${version}`),
  };
}

/** The path of the package that a dependency leads to: npm looks in the package's own folder, then in those above. */
function resolve(lock: Lockfile, from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf(folder) - 1))) {
    const path = `${at === "" ? "" : `${at}/`}${folder}${name}`;
    if (lock.packages[path] !== undefined) return path;
    if (at === "") return undefined;
  }
}

/** @param created RFC 3339, without fractions of a second. */
export function spdxOf(lock: Lockfile, created: string): SpdxDocument {
  const paths = Object.keys(lock.packages).filter((path) => path !== "");
  const root = "SPDXRef-npm-root";
  const idAt = (path: string) => (path === "" ? root : idOf(path));
  const dependencies = Object.entries(lock.packages).flatMap(([path, locked]) => {
    const to = (names: Readonly<Record<string, string>> | undefined) =>
      Object.keys(names ?? {}).flatMap((name) => resolve(lock, path, name) ?? []);
    return [
      ...to({ ...locked.optionalDependencies, ...locked.dependencies }).map((other) => ({
        spdxElementId: idAt(path),
        relationshipType: "DEPENDS_ON" as const,
        relatedSpdxElement: idAt(other),
      })),
      ...to(locked.devDependencies).map((other) => ({
        spdxElementId: idAt(other),
        relationshipType: "DEV_DEPENDENCY_OF" as const,
        relatedSpdxElement: idAt(path),
      })),
    ];
  });
  const hash = createHash("sha256").update(JSON.stringify(lock)).digest("hex");
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: `${lock.name}-${lock.version}`,
    documentNamespace: `https://spdx.org/spdxdocs/${lock.name}-${lock.version}-${hash}`,
    creationInfo: { created, creators: [`Tool: ${lock.name}-sbom-${lock.version}`] },
    packages: [
      {
        SPDXID: root,
        name: lock.name,
        versionInfo: lock.version,
        ...notAnalyzed,
        licenseDeclared: lock.packages[""]?.license ?? "NOASSERTION",
      },
      ...paths.map((path) => packageOf(path, lock.packages[path] ?? {})),
    ],
    relationships: [
      { spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: root },
      ...dependencies,
    ],
  };
}

export const readLockfile = (): Lockfile =>
  JSON.parse(readFileSync(join(import.meta.dirname, "../package-lock.json"), "utf8")) as Lockfile;

if (import.meta.main) {
  const epoch = process.env["SOURCE_DATE_EPOCH"];
  const seconds = epoch === undefined ? Math.floor(Date.now() / 1000) : Number(epoch);
  const text = `${JSON.stringify(spdxOf(readLockfile(), spdxTime(seconds)), undefined, 2)}\n`;
  const [file] = process.argv.slice(2);
  if (file === undefined) process.stdout.write(text);
  else writeFileSync(file, text);
}
