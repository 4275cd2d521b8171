/**
 * What specifications demand of the documents of a release, read from JSON, without a word of the code that writes them:
 * SPDX 2.3 (spdx/spdx-spec chapters 6, 7, 11 and schemas/spdx-schema.json, support/2.3), in-toto Statement v1 and
 * ResourceDescriptor v1 (in-toto/attestation spec/v1, main), SLSA provenance v1 (slsa-framework/slsa
 * spec/build-provenance.md, main). Each function returns the problems that it finds.
 */
type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const isUri = (value: unknown) =>
  typeof value === "string" && /^[a-z][a-z0-9+.-]*:\S+$/.test(value) && URL.canParse(value);
const isLine = (value: unknown) => typeof value === "string" && value !== "" && !/[\r\n]/.test(value);

/** A field's rule, and whether the field must be there. */
type Rules = Readonly<Record<string, { readonly must?: true; readonly is: (value: unknown) => boolean }>>;

/** Fields that break their rules, that are missing, and that the rules do not know. */
function broken(at: string, value: unknown, rules: Rules): readonly string[] {
  const fields = fieldsOf(value);
  return [
    ...Object.keys(fields)
      .filter((name) => rules[name] === undefined)
      .map((name) => `${at}.${name}: not a field of the specification`),
    ...Object.entries(rules).flatMap(([name, { must, is }]) => {
      const found = fields[name];
      if (found === undefined) return must === true ? [`${at}.${name}: missing`] : [];
      return is(found) ? [] : [`${at}.${name}: ${JSON.stringify(found).slice(0, 80)}`];
    }),
  ];
}

const lengths: Readonly<Record<string, number>> = { SHA1: 40, SHA256: 64, SHA384: 96, SHA512: 128 };
const isAgent = (value: unknown) => typeof value === "string" && /^(Person|Organization): \S/.test(value);
const isCreator = (value: unknown) => isAgent(value) || (typeof value === "string" && /^Tool: \S+-\S+$/.test(value));
const isSpdxId = (value: unknown) => typeof value === "string" && /^SPDXRef-[A-Za-z0-9.-]+$/.test(value);
const isTime = (value: unknown) =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) && !Number.isNaN(Date.parse(value));
const isNone = (value: unknown) => value === "NOASSERTION" || value === "NONE";
const license = /^[A-Za-z0-9.+() -]+$/;
const purl = /^pkg:[a-z][a-z0-9.+-]*\/(?:[A-Za-z0-9._~%-]+\/)*[A-Za-z0-9._~%+-]+@[A-Za-z0-9._~%:+-]+(?:\?\S+)?$/;
const purposes =
  "APPLICATION FRAMEWORK LIBRARY CONTAINER OPERATING-SYSTEM DEVICE FIRMWARE SOURCE ARCHIVE FILE INSTALL OTHER".split(
    " ",
  );
const relationships = "DESCRIBES DEPENDS_ON DEV_DEPENDENCY_OF CONTAINS".split(" ");

const isChecksum = (value: unknown) => {
  const { algorithm, checksumValue } = fieldsOf(value);
  const length = lengths[String(algorithm)];
  return typeof checksumValue === "string" && checksumValue.length === length && /^[0-9a-f]+$/.test(checksumValue);
};
const isReference = (value: unknown) => {
  const { referenceCategory, referenceType, referenceLocator } = fieldsOf(value);
  return referenceCategory === "PACKAGE-MANAGER" && referenceType === "purl" && purl.test(String(referenceLocator));
};

const packageRules: Rules = {
  SPDXID: { must: true, is: isSpdxId },
  name: { must: true, is: isLine },
  versionInfo: { is: isLine },
  supplier: { is: (value) => value === "NOASSERTION" || isAgent(value) },
  downloadLocation: { must: true, is: (value) => isNone(value) || isUri(value) },
  // Files that are not analyzed need no verification code; without this field they count as analyzed.
  filesAnalyzed: { must: true, is: (value) => value === false },
  licenseConcluded: { is: (value) => isNone(value) || license.test(String(value)) },
  licenseDeclared: { is: (value) => isNone(value) || license.test(String(value)) },
  copyrightText: { is: isLine },
  sourceInfo: { is: isLine },
  primaryPackagePurpose: { is: (value) => purposes.includes(String(value)) },
  checksums: { is: (value) => listOf(value).length > 0 && listOf(value).every(isChecksum) },
  externalRefs: { is: (value) => listOf(value).length > 0 && listOf(value).every(isReference) },
};

export function spdxProblems(document: unknown): readonly string[] {
  const { packages, relationships: links } = fieldsOf(document);
  const ids = listOf(packages).map((one) => fieldsOf(one)["SPDXID"]);
  const known = new Set<unknown>(["SPDXRef-DOCUMENT", ...ids]);
  const isRelated = (value: unknown) => known.has(value);
  const described = listOf(links).filter((link) => fieldsOf(link)["relationshipType"] === "DESCRIBES");
  return [
    ...broken("document", document, {
      spdxVersion: { must: true, is: (value) => value === "SPDX-2.3" },
      dataLicense: { must: true, is: (value) => value === "CC0-1.0" },
      SPDXID: { must: true, is: (value) => value === "SPDXRef-DOCUMENT" },
      name: { must: true, is: isLine },
      documentNamespace: { must: true, is: (value) => isUri(value) && !String(value).includes("#") },
      creationInfo: { must: true, is: () => true },
      packages: { must: true, is: (value) => listOf(value).length > 0 },
      relationships: { must: true, is: (value) => listOf(value).length > 0 },
    }),
    ...broken("creationInfo", fieldsOf(document)["creationInfo"], {
      created: { must: true, is: isTime },
      creators: { must: true, is: (value) => listOf(value).length > 0 && listOf(value).every(isCreator) },
    }),
    ...listOf(packages).flatMap((one, index) => broken(`packages[${index}]`, one, packageRules)),
    ...listOf(links).flatMap((link, index) =>
      broken(`relationships[${index}]`, link, {
        spdxElementId: { must: true, is: isRelated },
        relationshipType: { must: true, is: (value) => relationships.includes(String(value)) },
        relatedSpdxElement: { must: true, is: isRelated },
      }),
    ),
    ...(new Set(ids).size === ids.length ? [] : ["packages: two have one SPDXID"]),
    ...(described.length > 0 ? [] : ["relationships: the document describes nothing"]),
  ];
}

const digestLengths: Readonly<Record<string, number>> = { sha256: 64, sha512: 128, gitCommit: 40 };
const isDigestSet = (value: unknown) => {
  const digests = Object.entries(fieldsOf(value));
  return (
    digests.length > 0 &&
    digests.every(
      ([name, hex]) => typeof hex === "string" && hex.length === digestLengths[name] && /^[0-9a-f]+$/.test(hex),
    )
  );
};
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

/** In a Statement, a resource without a digest is refused: what follows from one that may change cannot be verified. */
const resources = (at: string, value: unknown) => [
  ...listOf(value).flatMap((one, index) =>
    broken(`${at}[${index}]`, one, {
      name: { is: isLine },
      uri: { is: isUri },
      digest: { must: true, is: isDigestSet },
    }),
  ),
  ...(new Set(listOf(value).map((one) => fieldsOf(one)["name"])).size === listOf(value).length
    ? []
    : [`${at}: two have one name`]),
];

export function provenanceProblems(statement: unknown): readonly string[] {
  const { subject, predicate } = fieldsOf(statement);
  const { buildDefinition, runDetails } = fieldsOf(predicate);
  const { resolvedDependencies } = fieldsOf(buildDefinition);
  return [
    ...broken("statement", statement, {
      _type: { must: true, is: (value) => value === "https://in-toto.io/Statement/v1" },
      subject: { must: true, is: (value) => listOf(value).length > 0 },
      predicateType: { must: true, is: (value) => value === "https://slsa.dev/provenance/v1" },
      predicate: { must: true, is: isObject },
    }),
    ...resources("subject", subject),
    ...broken("predicate", predicate, {
      buildDefinition: { must: true, is: isObject },
      runDetails: { must: true, is: isObject },
    }),
    ...broken("buildDefinition", buildDefinition, {
      buildType: { must: true, is: isUri },
      externalParameters: { must: true, is: isObject },
      internalParameters: { is: isObject },
      resolvedDependencies: { must: true, is: (value) => listOf(value).length > 0 },
    }),
    ...resources("resolvedDependencies", resolvedDependencies),
    ...broken("runDetails", runDetails, { builder: { must: true, is: isObject } }),
    ...broken("builder", fieldsOf(runDetails)["builder"], {
      id: { must: true, is: isUri },
      version: { is: (value) => Object.values(fieldsOf(value)).every((one) => typeof one === "string") },
    }),
  ];
}
