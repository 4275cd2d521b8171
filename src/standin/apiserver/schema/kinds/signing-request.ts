import { certificateFacts } from "../../../../core/certificates/certificate-facts.ts";
import { readCertificateRequest } from "../../../../core/certificates/certificate-request-facts.ts";
import { readPem } from "../../../../core/certificates/pem.ts";
import { decodeContents, textOf } from "../../../../ignition/data-url.ts";
import type { FieldError, KubeObject } from "../contract.ts";
import { duplicate, forbidden, invalid, notSupported, required, tooLong } from "../field-errors.ts";
import { equalJson, isList, isObject, listAt, at, textAt, type JsonObject } from "../json-values.ts";
import { labelName, subdomainName } from "../validation/object-validation.ts";

/** Rules of CertificateSigningRequests: `k8s.io/kubernetes pkg/apis/certificates/validation/validation.go (v1.34)`. */

const usages = [
  "any",
  "cert sign",
  "client auth",
  "code signing",
  "content commitment",
  "crl sign",
  "data encipherment",
  "decipher only",
  "digital signature",
  "email protection",
  "encipher only",
  "ipsec end system",
  "ipsec tunnel",
  "ipsec user",
  "key agreement",
  "key encipherment",
  "microsoft sgc",
  "netscape sgc",
  "ocsp signing",
  "s/mime",
  "server auth",
  "signing",
  "timestamping",
];
const legacySigner = "kubernetes.io/legacy-unknown";
const minimumSeconds = 600;

/** Conditions that may only have the status True and can never be removed. */
const decisions = ["Approved", "Denied", "Failed"];
/** Conditions that only /approval may set. */
export const approvals: readonly string[] = ["Approved", "Denied"];

export const conditionsIn = (object: unknown): readonly JsonObject[] =>
  listAt(object, "status", "conditions").filter(isObject);
const ofType = (object: unknown, type: string) =>
  conditionsIn(object).filter((condition) => condition["type"] === type);

export function validateSigningRequest(
  object: KubeObject,
  before: KubeObject | undefined,
  subresource: string,
): readonly FieldError[] {
  return [
    ...validateAsked(object, before),
    ...validateConditions(object, before),
    ...validateCertificate(object, before),
    ...(before === undefined ? [] : validateDecided(object, before, subresource)),
  ];
}

function validateAsked(object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const request = textAt(spec, "request");
  const reading = readCertificateRequest(request);
  const asked = isList(spec["usages"]) ? spec["usages"] : [];
  const seconds = spec["expirationSeconds"];
  const signer = textAt(spec, "signerName");
  return [
    ...(reading.verdict === "read" ? [] : [invalid("spec.request", request, reading.reason)]),
    ...(asked.length === 0 ? [required("spec.usages")] : []),
    ...(before === undefined
      ? [
          ...asked.flatMap((usage, index) =>
            usages.includes(String(usage)) ? [] : [notSupported(`spec.usages[${index}]`, usage, usages)],
          ),
          ...repeated(asked).map((index) => duplicate(`spec.usages[${index}]`, asked[index])),
        ]
      : []),
    ...(before === undefined && signer === legacySigner
      ? [invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version")]
      : validateSignerName(signer)),
    ...(typeof seconds === "number" && seconds < minimumSeconds
      ? [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 600 seconds (10 minutes)")]
      : []),
  ];
}

/** Indexes of the values that stood in the list before. */
function repeated(values: readonly unknown[]): readonly number[] {
  const seen = new Set<unknown>();
  return values.flatMap((value, index) => {
    if (seen.has(value)) return [index];
    seen.add(value);
    return [];
  });
}

/** `k8s.io/kubernetes pkg/apis/core/validation/names.go (v1.34)` */
function validateSignerName(name: string): readonly FieldError[] {
  const field = "spec.signerName";
  if (name === "") return [required(field)];
  const [domain, path, ...more] = name.split("/");
  if (domain === undefined || path === undefined || more.length > 0)
    return [invalid(field, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  const labels = domain.split(".");
  const firstWrong = (parts: readonly string[], whole: string, rule: typeof labelName): readonly FieldError[] => {
    const wrong = parts.find((part) => rule(part).length > 0);
    return wrong === undefined
      ? []
      : rule(wrong).map((problem) => invalid(field, whole, `validating label ${JSON.stringify(wrong)}: ${problem}`));
  };
  return [
    ...(domain.length > 253 ? [tooLong(field, 253)] : []),
    ...firstWrong(labels, domain, labelName),
    ...(labels.length < 2
      ? [invalid(field, domain, "should be a domain with at least two segments separated by dots")]
      : []),
    ...firstWrong(path.split("."), path, subdomainName),
    ...(path.length > 253 + 63 + 1 ? [tooLong(field, 253 + 63 + 1)] : []),
  ];
}

function validateConditions(object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const had = (type: string) => ofType(before, type).length > 0;
  const bothBefore = had("Approved") && had("Denied");
  const seen = new Set<unknown>();
  const errors: FieldError[] = [];
  for (const [index, condition] of conditionsIn(object).entries()) {
    const field = `status.conditions[${index}]`;
    const type = textAt(condition, "type");
    const status = textAt(condition, "status");
    if (type === "") errors.push(required(`${field}.type`));
    const allowed = decisions.includes(type) ? ["True"] : ["False", "True", "Unknown"];
    if (status === "") errors.push(required(`${field}.status`));
    else if (!allowed.includes(status)) errors.push(notSupported(`${field}.status`, status, allowed));
    const other = type === "Approved" ? "Denied" : "Approved";
    if (!bothBefore && approvals.includes(type) && seen.has(other))
      errors.push(invalid("status.conditions", type, "Approved and Denied conditions are mutually exclusive"));
    if (seen.has(type)) errors.push(duplicate(`${field}.type`, type));
    seen.add(type);
  }
  return errors;
}

function validateCertificate(object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const certificate = at(object, "status", "certificate");
  if (typeof certificate !== "string" || certificate === "" || certificate === at(before, "status", "certificate"))
    return [];
  const refuse = (why: string) => [invalid("status.certificate", "<certificate data>", why)];
  const decoded = decodeContents({ source: `data:;base64,${certificate}` });
  const pem = readPem((decoded.verdict === "decoded" ? textOf(decoded.bytes) : undefined) ?? "");
  if (pem.verdict === "unreadable") return refuse(pem.problem);
  const { blocks } = pem;
  const other = blocks.find(({ label }) => label !== "CERTIFICATE");
  if (other !== undefined)
    return refuse(`only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(other.label)}`);
  if (blocks.length === 0) return refuse("must contain at least one CERTIFICATE PEM block");
  return blocks.some(({ der }) => certificateFacts(der) === undefined)
    ? refuse("a CERTIFICATE PEM block holds no certificate")
    : [];
}

/** Decisions are permanent, and each decision has its own endpoint. */
function validateDecided(object: KubeObject, before: KubeObject, subresource: string): readonly FieldError[] {
  const refuse = (what: string) => forbidden("status.conditions", what);
  const removed = decisions
    .filter((type) => ofType(object, type).length < ofType(before, type).length)
    .map((type) => refuse(`updates may not remove a condition of type ${JSON.stringify(type)}`));
  const added =
    subresource === "approval"
      ? []
      : approvals.flatMap((type) => {
          if (ofType(object, type).length > ofType(before, type).length)
            return [refuse(`updates may not add a condition of type ${JSON.stringify(type)}`)];
          return ofType(object, type).length < ofType(before, type).length ||
            equalJson(ofType(object, type), ofType(before, type))
            ? []
            : [refuse(`updates may not modify a condition of type ${JSON.stringify(type)}`)];
        });
  const old = at(before, "status", "certificate") ?? "";
  const now = at(object, "status", "certificate") ?? "";
  if (old === now) return [...removed, ...added];
  if (subresource !== "status")
    return [...removed, ...added, forbidden("status.certificate", "updates may not set certificate content")];
  return [
    ...removed,
    ...added,
    ...(old === "" ? [] : [forbidden("status.certificate", "updates may not modify existing certificate content")]),
  ];
}
