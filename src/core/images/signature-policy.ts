import { base64OfText } from "../text/base64-of-text.ts";
import { bytesOf, parseDataUrl, textOf as utf8 } from "../../ignition/data-url.ts";
import { isRecord } from "../../ignition/shape.ts";
import { repeatedField } from "../text/repeated-field.ts";
import { type ImageReference, parseImageReference, printImageReference, repositoryOf } from "./image-reference.ts";

/** A public key: a file on the machine, or its PEM text. */
export type SignatureKey = { readonly path: string } | { readonly pem: string };

/** Which image name a signature must carry. */
export type SignedIdentity =
  | { readonly type: "matchExact" | "matchRepoDigestOrExact" | "matchRepository" }
  | { readonly type: "exactReference"; readonly reference: string }
  | { readonly type: "exactRepository"; readonly repository: string }
  | { readonly type: "remapIdentity"; readonly prefix: string; readonly signedPrefix: string };

export type SignatureRequirement =
  | { readonly type: "insecureAcceptAnything" | "reject" }
  | { readonly type: "sigstoreSigned"; readonly keys: readonly SignatureKey[]; readonly identity: SignedIdentity }
  /** A known requirement that this suite cannot check. */
  | { readonly type: "unsupported"; readonly name: string };

/** The rules of `/etc/containers/policy.json` for images in registries. */
export interface SignaturePolicy {
  readonly otherwise: readonly SignatureRequirement[];
  readonly scopes: ReadonlyMap<string, readonly SignatureRequirement[]>;
}

export type SignaturePolicyReading =
  | { readonly verdict: "policy"; readonly policy: SignaturePolicy }
  | { readonly verdict: "refused"; readonly problem: string };

/** A signature that was found beside an image, not verified yet. */
export interface FoundSignature {
  /** The simple signing text, byte for byte as signed. */
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

export type KeyVerdict = "valid" | "invalid" | { readonly unusable: string };

/**
 * Checks whether the key made the signature; `unusable`: the key is missing or of an unsupported kind.
 */
export type VerifySignature = (key: SignatureKey, found: FoundSignature) => Promise<KeyVerdict>;

/** Characters of a public key; the largest RSA key that is usable has three thousand. */
export const mostKeyCharacters = 16 * 1024;

/** Characters of all keys that a policy names by path, each as often as it names it. */
const mostNamedKeyCharacters = 1024 * 1024;

/** Checks of a signature with a key that one image may take. */
const mostChecks = 1024;

export type SignatureVerdict =
  | { readonly verdict: "accepted"; readonly scope: string; readonly because: string }
  | { readonly verdict: "refused"; readonly scope: string; readonly requirement: string; readonly problem: string };

/** The payload of a signature. Source: containers/image signature/internal/sigstore_payload.go (main). */
const payloadType = "cosign container image signature";

class Unreadable extends Error {}

/** The scope name of the policy's own `default`. */
const defaultScope = "default";

/**
 * Reads a policy as strictly as container engines do: an unknown field makes the whole file unreadable, since ignoring
 * it could accept what its author meant to refuse. Known but unsupported requirements are kept by name and refuse only
 * the images that they apply to. Source: containers-policy.json(5).
 */
export function parseSignaturePolicy(text: string): SignaturePolicyReading {
  try {
    const top = objectOf(JSON.parse(text), "the policy", ["default", "transports"]);
    const repeated = repeatedField(text);
    if (repeated !== undefined) throw new Unreadable(`the field "${repeated}" stands there twice`);
    if (top["default"] === undefined) throw new Unreadable("it has no default");
    const transports = top["transports"] === undefined ? {} : objectOf(top["transports"], "transports");
    const docker = transports["docker"] === undefined ? {} : objectOf(transports["docker"], "transports.docker");
    const scopes = new Map(
      Object.entries(docker).map(([scope, requirements]) => [scope, requirementsOf(requirements, `scope "${scope}"`)]),
    );
    return { verdict: "policy", policy: { otherwise: requirementsOf(top["default"], defaultScope), scopes } };
  } catch (error) {
    if (error instanceof Unreadable) return { verdict: "refused", problem: error.message };
    if (error instanceof SyntaxError) return { verdict: "refused", problem: "it is not JSON" };
    throw error;
  }
}

/**
 * The requirements that apply to an image: those of the most specific scope alone. Wildcards of a host ignore its port.
 * Source: containers/image docker/policyconfiguration/naming.go (main).
 */
export function requirementsFor(
  policy: SignaturePolicy,
  reference: ImageReference,
): { readonly scope: string; readonly requirements: readonly SignatureRequirement[] } {
  const scopes = [printImageReference(reference)];
  for (let name = repositoryOf(reference); name !== ""; name = name.slice(0, Math.max(0, name.lastIndexOf("/"))))
    scopes.push(name);
  const host = reference.host.replace(/:[0-9]+$/, "");
  for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) scopes.push(`*${host.slice(dot)}`);
  for (const scope of [...scopes, ""]) {
    const requirements = policy.scopes.get(scope);
    if (requirements !== undefined) return { scope, requirements };
  }
  return { scope: defaultScope, requirements: policy.otherwise };
}

/** The keys for which signatures must be fetched before {@link judgeImage} can decide, if any. */
export function keysToVerify(policy: SignaturePolicy, reference: ImageReference): readonly SignatureKey[] {
  return requirementsFor(policy, reference).requirements.flatMap((requirement) =>
    requirement.type === "sigstoreSigned" ? requirement.keys : [],
  );
}

/**
 * Whether an image is used by its name and digest alone: there is no policy, or it accepts whatever has this name. A text that
 * is no policy accepts nothing.
 */
export function acceptsAnything(text: string | undefined, reference: ImageReference): boolean {
  if (text === undefined) return true;
  const reading = parseSignaturePolicy(text);
  if (reading.verdict === "refused") return false;
  const { requirements } = requirementsFor(reading.policy, reference);
  return requirements.length > 0 && requirements.every(({ type }) => type === "insecureAcceptAnything");
}

/** Where a requirement's keys stand in the text of a policy, by path and by content. */
const keyFields = [
  { path: "keyPath", data: "keyData" },
  { path: "keyPaths", data: "keyDatas" },
] as const;

/**
 * The text of a policy with the keys in it that it names by path, so that images are judged away from the machine as the
 * machine judges them. A requirement of which a key is not known stays as it is, and so does a text that is no policy. A text
 * that is too large for a key is none, and so is what exceeds the limit of all keys together.
 *
 * @param fileOf text of a file that the machine is given; it is asked once for each path.
 */
export function withKnownKeys(text: string, fileOf: (path: string) => string | undefined): string {
  if (parseSignaturePolicy(text).verdict === "refused") return text;
  const known = new Map<string, string | undefined>();
  const keyAt = (file: string): string | undefined => {
    if (!known.has(file)) {
      const key = fileOf(file) ?? "";
      known.set(file, key === "" || key.length > mostKeyCharacters ? undefined : base64OfText(key));
    }
    return known.get(file);
  };
  let left = mostNamedKeyCharacters;
  return JSON.stringify(JSON.parse(text), (_, value: unknown) => {
    if (!isRecord(value) || value["type"] !== "sigstoreSigned") return value;
    for (const { path, data } of keyFields) {
      const { [path]: named, ...others } = value;
      if (named === undefined) continue;
      const paths = (Array.isArray(named) ? named : [named]) as readonly string[];
      const encoded = paths.flatMap((each) => keyAt(each) ?? []);
      const size = encoded.reduce((sum, key) => sum + key.length, 0);
      if (encoded.length < paths.length || size > left) continue;
      left -= size;
      return { ...others, [data]: Array.isArray(named) ? encoded : encoded[0] };
    }
    return value;
  });
}

/** What verifying an image takes beside its signatures; nothing for a text that is no policy. */
export interface VerificationNeeds {
  /** Files of keys. */
  readonly paths: readonly string[];
  /** Requirements that this suite cannot check, by name. */
  readonly unsupported: readonly string[];
  /** A signature must be for the image's very name: of no use for an image that is taken by its digest. */
  readonly exact: boolean;
}

export function needsOfVerification(text: string, reference: ImageReference): VerificationNeeds {
  const reading = parseSignaturePolicy(text);
  if (reading.verdict === "refused") return { paths: [], unsupported: [], exact: false };
  const { requirements } = requirementsFor(reading.policy, reference);
  const keys = keysToVerify(reading.policy, reference);
  return {
    paths: [...new Set(keys.flatMap((key) => ("path" in key ? [key.path] : [])))],
    unsupported: [
      ...new Set(requirements.flatMap((requirement) => (requirement.type === "unsupported" ? [requirement.name] : []))),
    ],
    exact: requirements.some(
      (requirement) => requirement.type === "sigstoreSigned" && requirement.identity.type === "matchExact",
    ),
  };
}

/**
 * Decides whether an image may be used. Every requirement of its scope must hold; a signature holds when one of the
 * requirement's keys made it, over this image's manifest, for a name that the requirement's identity accepts. Checking ends
 * with the first signature that holds, and an image that takes more than a thousand checks is refused.
 *
 * @param image `digests`: of the manifest, and of the index that led to it, if any: a signature over the
 * index covers every manifest that the index names by digest.
 */
export async function judgeImage(
  policy: SignaturePolicy,
  image: { readonly reference: ImageReference; readonly digests: readonly string[] },
  found: readonly FoundSignature[],
  verify: VerifySignature,
): Promise<SignatureVerdict> {
  const { scope, requirements } = requirementsFor(policy, image.reference);
  const refused = (requirement: string, problem: string): SignatureVerdict => ({
    verdict: "refused",
    scope,
    requirement,
    problem,
  });
  if (requirements.length === 0) return refused("none", "the scope has no requirement, and so accepts nothing");
  const checks = { left: mostChecks };
  const reasons: string[] = [];
  for (const requirement of requirements) {
    switch (requirement.type) {
      case "insecureAcceptAnything":
        reasons.push("anything is accepted");
        break;
      case "reject":
        return refused("reject", "every image of this scope is rejected");
      case "unsupported":
        return refused(requirement.name, `${requirement.name} is not supported here`);
      case "sigstoreSigned": {
        if (found.length === 0) return refused(requirement.type, "the image carries no signature");
        const problem = await problemWithAll(found, requirement, image, { verify, checks });
        if (problem !== undefined) return refused(requirement.type, problem);
        reasons.push("a signature holds");
        break;
      }
    }
  }
  return { verdict: "accepted", scope, because: [...new Set(reasons)].join(", ") };
}

type SigstoreSigned = Extract<SignatureRequirement, { type: "sigstoreSigned" }>;
type JudgedImage = { readonly reference: ImageReference; readonly digests: readonly string[] };

interface Checking {
  readonly verify: VerifySignature;
  /** Checks that the image may still take. */
  readonly checks: { left: number };
}

/** `undefined`: one of the signatures holds. */
async function problemWithAll(
  found: readonly FoundSignature[],
  requirement: SigstoreSigned,
  image: JudgedImage,
  checking: Checking,
): Promise<string | undefined> {
  const keys = [...new Map(requirement.keys.map((key) => [JSON.stringify(key), key])).values()];
  const problems = new Set<string>();
  for (const signature of found) {
    const made = await madeBy(signature, keys, checking);
    if (made === "tooMany")
      return `it has ${found.length} signatures and the scope ${keys.length} keys: an image may take ${mostChecks} checks of a signature with a key`;
    const problem = made === "valid" ? problemWith(signature, requirement, image) : made.invalid;
    if (problem === undefined) return undefined;
    problems.add(problem);
  }
  return `no signature holds: ${[...problems].join("; ")}`;
}

/** Whether one of the keys made a signature. */
async function madeBy(
  found: FoundSignature,
  keys: readonly SignatureKey[],
  { verify, checks }: Checking,
): Promise<"valid" | "tooMany" | { readonly invalid: string }> {
  const unusable: string[] = [];
  for (const key of keys) {
    if (checks.left <= 0) return "tooMany";
    checks.left -= 1;
    const verdict = await verify(key, found);
    if (verdict === "valid") return "valid";
    if (typeof verdict === "object") unusable.push(verdict.unusable);
  }
  return { invalid: unusable.length > 0 ? unusable.join(", ") : "it was not made with a key of the policy" };
}

/** The problem of a signature by one of the keys; `undefined`: it holds. */
function problemWith(found: FoundSignature, { identity }: SigstoreSigned, image: JudgedImage): string | undefined {
  const signed = signedBy(found.payload);
  if (signed === undefined) return "the signed content is no simple signing text";
  if (!image.digests.includes(signed.digest)) return "it is a signature of another image";
  if (!identityAccepts(identity, image.reference, signed.name))
    return `it was made for the name ${JSON.stringify(signed.name.slice(0, 256))}, which ${identity.type} does not accept`;
  return undefined;
}

function signedBy(payload: Uint8Array): { readonly digest: string; readonly name: string } | undefined {
  try {
    const text = utf8(payload) ?? "";
    const top = objectOf(JSON.parse(text), "payload", ["critical", "optional"]);
    const critical = objectOf(top["critical"], "critical", ["type", "image", "identity"]);
    const digest = objectOf(critical["image"], "image", ["docker-manifest-digest"])["docker-manifest-digest"];
    const name = objectOf(critical["identity"], "identity", ["docker-reference"])["docker-reference"];
    return critical["type"] === payloadType &&
      typeof digest === "string" &&
      typeof name === "string" &&
      repeatedField(text) === undefined
      ? { digest, name }
      : undefined;
  } catch {
    return undefined; // Whatever is wrong with it: it is no such text.
  }
}

/** Source of the rules: containers/image signature/policy_reference_match.go (main). */
function identityAccepts(identity: SignedIdentity, intended: ImageReference, signedName: string): boolean {
  const signed = parseImageReference(signedName);
  if (signed.verdict === "refused") return false;
  const sameRepository = (other: ImageReference) => repositoryOf(signed.reference) === repositoryOf(other);
  const sameReference = (other: ImageReference) =>
    signed.exact && printImageReference(signed.reference) === printImageReference(other);
  const repoDigestOrExact = (other: ImageReference) =>
    other.digest === undefined ? sameReference(other) : signed.exact && sameRepository(other);
  switch (identity.type) {
    case "matchExact":
      return sameReference(intended);
    case "matchRepoDigestOrExact":
      return repoDigestOrExact(intended);
    case "matchRepository":
      return sameRepository(intended);
    case "exactReference": {
      const wanted = parseImageReference(identity.reference);
      return wanted.verdict === "reference" && wanted.exact && sameReference(wanted.reference);
    }
    case "exactRepository": {
      const wanted = parseImageReference(identity.repository);
      return wanted.verdict === "reference" && sameRepository(wanted.reference);
    }
    case "remapIdentity": {
      const name = printImageReference(intended);
      const matches =
        name.startsWith(identity.prefix) &&
        /^[:/@]/.test(name.slice(identity.prefix.length)) &&
        !(identity.prefix.indexOf("/") < 0 && name[identity.prefix.length] === ":");
      const moved = parseImageReference(matches ? identity.signedPrefix + name.slice(identity.prefix.length) : name);
      return moved.verdict === "reference" && repoDigestOrExact(moved.reference);
    }
  }
}

function requirementsOf(value: unknown, where: string): readonly SignatureRequirement[] {
  if (!Array.isArray(value)) throw new Unreadable(`${where} is no list of requirements`);
  return value.map((each: unknown) => requirementOf(each, where));
}

function requirementOf(value: unknown, where: string): SignatureRequirement {
  const { type } = objectOf(value, `a requirement of ${where}`);
  switch (type) {
    case "insecureAcceptAnything":
    case "reject":
      objectOf(value, `a requirement of ${where}`, ["type"]);
      return { type };
    case "signedBy":
    case "signedBaseLayer":
      return { type: "unsupported", name: type };
    case "sigstoreSigned":
      return sigstoreSignedOf(
        objectOf(value, `sigstoreSigned of ${where}`, [
          "type",
          "keyPath",
          "keyPaths",
          "keyData",
          "keyDatas",
          "fulcio",
          "pki",
          "rekorPublicKeyPath",
          "rekorPublicKeyPaths",
          "rekorPublicKeyData",
          "rekorPublicKeyDatas",
          "signedIdentity",
        ]),
        where,
      );
    default:
      throw new Unreadable(`${where} has a requirement of the unknown type ${JSON.stringify(type)}`);
  }
}

function sigstoreSignedOf(fields: Readonly<Record<string, unknown>>, where: string): SignatureRequirement {
  const { keyPath, keyPaths, keyData, keyDatas, fulcio, pki } = fields;
  const identity = identityOf(fields["signedIdentity"], where);
  if ([keyPath, keyPaths, keyData, keyDatas, fulcio, pki].filter((field) => field !== undefined).length !== 1)
    throw new Unreadable(
      `sigstoreSigned of ${where} must have exactly one of keyPath, keyPaths, keyData, keyDatas, fulcio and pki`,
    );
  if (fulcio !== undefined) return { type: "unsupported", name: "sigstoreSigned with fulcio" };
  if (pki !== undefined) return { type: "unsupported", name: "sigstoreSigned with pki" };
  if (Object.keys(fields).some((field) => field.startsWith("rekor")))
    return { type: "unsupported", name: "sigstoreSigned with a Rekor key" };
  const texts = (one: unknown, many: unknown, name: string): readonly string[] => {
    const list: readonly unknown[] = one === undefined ? (Array.isArray(many) ? many : []) : [one];
    if (list.length === 0) throw new Unreadable(`${name} of ${where} names no key`);
    return list.map((item) => textOf(item, `${name} of ${where}`));
  };
  const keys: readonly SignatureKey[] =
    keyPath !== undefined || keyPaths !== undefined
      ? texts(keyPath, keyPaths, "keyPath").map((path) => ({ path }))
      : texts(keyData, keyDatas, "keyData").map((data) => ({ pem: base64Text(data, where) }));
  return { type: "sigstoreSigned", keys, identity };
}

function base64Text(data: string, where: string): string {
  const url = parseDataUrl(`data:;base64,${data}`);
  const text = url.verdict === "parsed" ? utf8(bytesOf(url)) : undefined;
  if (text === undefined) throw new Unreadable(`keyData of ${where} is not a text in base64`);
  return text;
}

function identityOf(value: unknown, where: string): SignedIdentity {
  if (value === undefined) return { type: "matchRepoDigestOrExact" };
  const what = `signedIdentity of ${where}`;
  const fields = objectOf(value, what);
  const { type } = fields;
  const only = (...names: readonly string[]) => void objectOf(value, what, ["type", ...names]);
  switch (type) {
    case "matchExact":
    case "matchRepoDigestOrExact":
    case "matchRepository":
      only();
      return { type };
    case "exactReference":
      only("dockerReference");
      return { type, reference: textOf(fields["dockerReference"], what) };
    case "exactRepository":
      only("dockerRepository");
      return { type, repository: textOf(fields["dockerRepository"], what) };
    case "remapIdentity":
      only("prefix", "signedPrefix");
      return { type, prefix: textOf(fields["prefix"], what), signedPrefix: textOf(fields["signedPrefix"], what) };
    default:
      throw new Unreadable(`${what} is of the unknown type ${JSON.stringify(type)}`);
  }
}

function objectOf(value: unknown, what: string, known?: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Unreadable(`${what} is no object`);
  const stray = known === undefined ? undefined : Object.keys(value).find((name) => !known.includes(name));
  if (stray !== undefined) throw new Unreadable(`${what} has the unknown field ${JSON.stringify(stray)}`);
  return value as Readonly<Record<string, unknown>>;
}

function textOf(value: unknown, what: string): string {
  if (typeof value !== "string" || value === "") throw new Unreadable(`${what} wants a text that is not empty`);
  return value;
}
