/** SPDX 2.3, https://spdx.github.io/spdx-spec/v2.3/ : what the bills of materials of this project use of it. */
import { createHash } from "node:crypto";

export interface SpdxDocument {
  readonly spdxVersion: "SPDX-2.3";
  readonly dataLicense: "CC0-1.0";
  readonly SPDXID: "SPDXRef-DOCUMENT";
  readonly name: string;
  readonly documentNamespace: string;
  readonly creationInfo: { readonly created: string; readonly creators: readonly string[] };
  readonly packages: readonly SpdxPackage[];
  readonly relationships: readonly {
    readonly spdxElementId: string;
    readonly relationshipType: "DESCRIBES" | "DEPENDS_ON" | "DEV_DEPENDENCY_OF" | "CONTAINS";
    readonly relatedSpdxElement: string;
  }[];
}

export interface SpdxPackage {
  readonly SPDXID: string;
  readonly name: string;
  readonly versionInfo: string;
  readonly supplier?: string;
  readonly downloadLocation: string;
  readonly filesAnalyzed: false;
  readonly licenseConcluded: "NOASSERTION";
  readonly licenseDeclared: string;
  readonly copyrightText: "NOASSERTION";
  readonly sourceInfo?: string;
  readonly primaryPackagePurpose?: "CONTAINER";
  readonly checksums?: readonly { readonly algorithm: string; readonly checksumValue: string }[];
  readonly externalRefs?: readonly {
    readonly referenceCategory: "PACKAGE-MANAGER";
    readonly referenceType: "purl";
    readonly referenceLocator: string;
  }[];
}

/** Letters, digits, dots and hyphens; unique: a hash distinguishes names that read alike. */
export const spdxId = (kind: string, name: string): string =>
  `SPDXRef-${kind}-${name.replaceAll(/[^A-Za-z0-9.-]+/g, "-")}-${createHash("sha256").update(name).digest("hex").slice(0, 8)}`;

export const purl = (referenceLocator: string): NonNullable<SpdxPackage["externalRefs"]> => [
  { referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator },
];

/** What is the same in every package of these documents: their files are not analyzed. */
export const notAnalyzed = {
  downloadLocation: "NOASSERTION",
  filesAnalyzed: false,
  licenseConcluded: "NOASSERTION",
  licenseDeclared: "NOASSERTION",
  copyrightText: "NOASSERTION",
} as const;

/** RFC 3339, without fractions of a second. */
export const spdxTime = (seconds: number): string => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
