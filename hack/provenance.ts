/**
 * Says how a release came to be: an in-toto Statement v1 (in-toto/attestation spec/v1/statement.md, main) whose predicate
 * is SLSA provenance v1 (slsa-framework/slsa spec/build-provenance.md, main). It is not signed; docs/releasing.md says how.
 */

/** Of the build: docs/releasing.md describes its parameters. Another meaning of a parameter gets another version here. */
export const buildType = "urn:machine-config-operator:release:v1";
/** Of a build whose owner names no builder: nothing vouches for the machine that it ran on. */
export const defaultBuilder = "urn:machine-config-operator:builder:unnamed";

/** What is known of an artifact: its name and digests, and where it comes from. */
export interface ResourceDescriptor {
  readonly name: string;
  readonly uri?: string;
  /** Hexadecimal, by algorithm. */
  readonly digest: Readonly<Record<string, string>>;
}

export interface Provenance {
  readonly buildDefinition: {
    readonly buildType: string;
    readonly externalParameters: Readonly<Record<string, string>>;
    readonly internalParameters: Readonly<Record<string, string>>;
    readonly resolvedDependencies: readonly ResourceDescriptor[];
  };
  readonly runDetails: {
    readonly builder: { readonly id: string; readonly version: Readonly<Record<string, string>> };
  };
}

export interface Statement {
  readonly _type: "https://in-toto.io/Statement/v1";
  readonly subject: readonly ResourceDescriptor[];
  readonly predicateType: "https://slsa.dev/provenance/v1";
  readonly predicate: Provenance;
}

export interface ReleaseFacts {
  readonly version: string;
  /** With its digest. */
  readonly nodeImage: string;
  readonly builder: string;
  /** URI of the repository, where the owner of the build names it. */
  readonly source: string | undefined;
  readonly commit: string;
  /** Seconds since the epoch: of the commit. */
  readonly commitSeconds: number;
  readonly nodeVersion: string;
  /** Files of the tree that pin what the build and its helpers take in. */
  readonly pins: readonly ResourceDescriptor[];
  readonly subjects: readonly ResourceDescriptor[];
}

/** Times are left out: the same commit, parameters and tools give the same statement. */
export function provenanceOf(facts: ReleaseFacts): Statement {
  const { version, nodeImage, builder, source, commit, commitSeconds, nodeVersion, pins, subjects } = facts;
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: subjects,
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType,
        externalParameters: { version, nodeImage, ...(source === undefined ? {} : { source }) },
        internalParameters: { sourceDateEpoch: String(commitSeconds) },
        resolvedDependencies: [
          {
            name: "source",
            ...(source === undefined ? {} : { uri: `${source}@${commit}` }),
            digest: { gitCommit: commit },
          },
          { name: "NODE_IMAGE", uri: `oci://${nodeImage}`, digest: { sha256: nodeImage.replace(/^.*@sha256:/, "") } },
          ...pins,
        ],
      },
      runDetails: { builder: { id: builder, version: { node: nodeVersion } } },
    },
  };
}
