import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Lockfile, readLockfile, spdxOf } from "../../hack/sbom.ts";

const lock = readLockfile();
const document = spdxOf(lock, "2026-01-01T00:00:00Z");
const locked = Object.entries(lock.packages).filter(([path]) => path !== "");

describe("the bill of materials", () => {
  test("has the fields that SPDX 2.3 requires, in its forms [attack-supply-1]", () => {
    expect(document).toMatchObject({ spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT" });
    expect(document.name).not.toBe("");
    expect(URL.canParse(document.documentNamespace) && !document.documentNamespace.includes("#")).toBe(true);
    expect(document.creationInfo.created).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(document.creationInfo.creators.join()).toMatch(/^Tool: \S+$/);
    for (const one of document.packages) {
      expect(one.SPDXID).toMatch(/^SPDXRef-[A-Za-z0-9.-]+$/);
      expect([
        one.name,
        one.downloadLocation,
        one.licenseDeclared,
        one.licenseConcluded,
        one.copyrightText,
      ]).not.toContain("");
      for (const { algorithm, checksumValue } of one.checksums ?? [])
        expect([algorithm, checksumValue.length]).toEqual(["SHA512", 128]);
    }
    const ids = document.packages.map(({ SPDXID }) => SPDXID);
    expect(new Set(ids).size).toBe(ids.length);
    const known = new Set<string>([...ids, document.SPDXID]);
    for (const { spdxElementId, relatedSpdxElement } of document.relationships)
      expect([known.has(spdxElementId), known.has(relatedSpdxElement)]).toEqual([true, true]);
  });

  test("names every package of the lock file with its integrity hash [attack-supply-2]", () => {
    const named = document.packages.slice(1).map(({ name, versionInfo, checksums = [] }) => ({
      name,
      versionInfo,
      integrity: checksums
        .map(({ checksumValue }) => `sha512-${Buffer.from(checksumValue, "hex").toString("base64")}`)
        .join(" "),
    }));
    expect(named).toEqual(
      locked.map(([path, { name, version, integrity }]) => ({
        name: name ?? path.replace(/^.*node_modules\//, ""),
        versionInfo: version,
        integrity,
      })),
    );
  });

  test("is refused for a package that the lock file does not pin", () => {
    const loose: Lockfile = { ...lock, packages: { ...lock.packages, "node_modules/loose": { version: "1.0.0" } } };
    expect(() => spdxOf(loose, "2026-01-01T00:00:00Z")).toThrow("no integrity hash of node_modules/loose");
  });
});

describe("a compromised package", () => {
  test("runs no code during installation [attack-supply-3]", () => {
    const settings = readFileSync(join(import.meta.dirname, "../../.npmrc"), "utf8").split("\n");
    expect(settings).toContain("ignore-scripts=true");
    const scripted = Object.entries(lock.packages).filter(
      ([, one]) => (one as { readonly hasInstallScript?: boolean }).hasInstallScript === true,
    );
    // Its script is not needed: see .npmrc. Another package with a script is looked at before it is added here.
    expect(scripted.map(([path]) => path)).toEqual(["node_modules/esbuild"]);
  });
});
