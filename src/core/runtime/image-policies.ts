import type { ImagePolicySpec } from "../../api/foreign/openshift.ts";
import type { Decoded } from "../kubelet/decode-go.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";
import { type Registry, scopeOf } from "./registries-conf-text.ts";
import { isNested, isRepository } from "./registry-scopes.ts";

export interface ImagePolicyObject {
  /** `ClusterImagePolicy/name` or `ImagePolicy/namespace/name`. */
  readonly object: string;
  /** Empty: of the whole cluster. */
  readonly namespace: string;
  readonly spec: ImagePolicySpec;
  /** Characters that it takes in a configuration, where its spec was not kept. */
  readonly room?: number;
}

/** A requirement of policy.json: containers-policy.json(5). */
export type Requirement = Decoded;
/** The requirements by scope. */
export type ScopeRequirements = ReadonlyMap<string, readonly Requirement[]>;

export type RequirementReading =
  | { readonly verdict: "requirement"; readonly requirement: Requirement }
  | { readonly verdict: "refused"; readonly problems: readonly ObjectProblem[] };

/** What a signature must satisfy for a policy. */
export function requirementOf({ object, spec }: ImagePolicyObject): RequirementReading {
  const problems: ObjectProblem[] = [];
  const problem = (at: string, reason: string) => void problems.push({ object, path: `spec.policy.${at}`, reason });
  const root = rootOf(spec, problem);
  const identity = identityOf(spec, problem);
  if (problems.length > 0) return { verdict: "refused", problems };
  return { verdict: "requirement", requirement: { type: "sigstoreSigned", ...root, signedIdentity: identity } };
}

type Problem = (at: string, reason: string) => void;

function rootOf({ policy }: ImagePolicySpec, problem: Problem): Decoded {
  const root = policy?.rootOfTrust ?? {};
  switch (root.policyType) {
    case "PublicKey": {
      const { keyData = "", rekorKeyData } = root.publicKey ?? {};
      if (keyData === "") problem("rootOfTrust.publicKey.keyData", "must be set");
      return { keyData, ...(isSet(rekorKeyData) ? { rekorPublicKeyData: rekorKeyData } : {}) };
    }
    case "FulcioCAWithRekor": {
      const { fulcioCAData = "", rekorKeyData = "", fulcioSubject = {} } = root.fulcioCAWithRekor ?? {};
      const { oidcIssuer = "", signedEmail = "" } = fulcioSubject;
      const at = "rootOfTrust.fulcioCAWithRekor";
      if (fulcioCAData === "") problem(`${at}.fulcioCAData`, "must be set");
      if (rekorKeyData === "") problem(`${at}.rekorKeyData`, "must be set");
      if (oidcIssuer === "") problem(`${at}.fulcioSubject.oidcIssuer`, "must be set");
      if (signedEmail === "") problem(`${at}.fulcioSubject.signedEmail`, "must be set");
      return {
        fulcio: { caData: fulcioCAData, oidcIssuer, subjectEmail: signedEmail },
        rekorPublicKeyData: rekorKeyData,
      };
    }
    case "PKI": {
      const { caRootsData = "", caIntermediatesData, pkiCertificateSubject = {} } = root.pki ?? {};
      const { email, hostname } = pkiCertificateSubject;
      if (caRootsData === "") problem("rootOfTrust.pki.caRootsData", "must be set");
      if (!isSet(email) && !isSet(hostname))
        problem("rootOfTrust.pki.pkiCertificateSubject", "must have an email, a hostname, or both");
      return {
        pki: {
          caRootsData,
          ...(isSet(caIntermediatesData) ? { caIntermediatesData } : {}),
          ...(isSet(email) ? { subjectEmail: email } : {}),
          ...(isSet(hostname) ? { subjectHostname: hostname } : {}),
        },
      };
    }
    default:
      problem("rootOfTrust.policyType", "must be PublicKey, FulcioCAWithRekor or PKI");
      return {};
  }
}

const isSet = (text: string | undefined): text is string => text !== undefined && text !== "";

function identityOf({ policy }: ImagePolicySpec, problem: Problem): Decoded {
  const { matchPolicy = "", exactRepository, remapIdentity } = policy?.signedIdentity ?? {};
  switch (matchPolicy) {
    case "":
    case "MatchRepoDigestOrExact":
      return { type: "matchRepoDigestOrExact" };
    case "MatchRepository":
      return { type: "matchRepository" };
    case "ExactRepository": {
      const repository = exactRepository?.repository ?? "";
      if (!isRepository(repository)) problem("signedIdentity.exactRepository.repository", "must be a repository");
      return { type: "exactRepository", dockerRepository: repository };
    }
    case "RemapIdentity": {
      const { prefix = "", signedPrefix = "" } = remapIdentity ?? {};
      if (!isRepository(prefix)) problem("signedIdentity.remapIdentity.prefix", "must be a repository or a host");
      if (!isRepository(signedPrefix))
        problem("signedIdentity.remapIdentity.signedPrefix", "must be a repository or a host");
      return { type: "remapIdentity", prefix, signedPrefix };
    }
    default:
      problem(
        "signedIdentity.matchPolicy",
        "must be MatchRepoDigestOrExact, MatchRepository, ExactRepository or RemapIdentity",
      );
      return {};
  }
}

/** A requirement and where it holds. */
export interface Scoped {
  readonly scope: string;
  readonly requirement: Requirement;
}

/** Appends requirements to their scopes. */
function withPolicies(start: ScopeRequirements, added: readonly Scoped[]): ScopeRequirements {
  const all = new Map(start);
  for (const { scope, requirement } of added) all.set(scope, [...(all.get(scope) ?? []), requirement]);
  return all;
}

/** What a policy.json starts with, before policies are added. */
export interface PolicyStart {
  readonly base: Decoded;
  readonly fallback: readonly Requirement[];
  /** Scopes of both transports. */
  readonly scopes: ScopeRequirements;
  /** Whether the template's own scopes stay. */
  readonly keepsBase: boolean;
}

/** The text of a policy.json with requirements for scopes of the transports `docker` and `atomic`. */
export function policyText({ base, fallback, scopes, keepsBase }: PolicyStart, added: readonly Scoped[]): string {
  const own = (base["transports"] ?? {}) as Readonly<Record<string, Readonly<Record<string, readonly Requirement[]>>>>;
  const { docker = {}, atomic = {}, ...others } = own;
  const all = withPolicies(scopes, added);
  // The transport atomic has no scopes below a namespace and a name.
  const short = new Map([...all].filter(([scope]) => scope.split("/").length <= 3));
  const transport = (kept: Readonly<Record<string, readonly Requirement[]>>, given: ScopeRequirements) => {
    const start = keepsBase ? new Map(Object.entries(kept)) : new Map<string, readonly Requirement[]>();
    for (const [scope, list] of given) start.set(scope, [...(start.get(scope) ?? []), ...list]);
    return Object.fromEntries([...start].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  };
  const isSaid = all.size > 0;
  const transports = {
    ...others,
    ...(isSaid || own["atomic"] !== undefined ? { atomic: transport(atomic, short) } : {}),
    ...(isSaid || own["docker"] !== undefined ? { docker: transport(docker, all) } : {}),
  };
  const hasTransports = base["transports"] !== undefined || Object.keys(transports).length > 0;
  return JSON.stringify({ ...base, default: fallback, ...(hasTransports ? { transports } : {}) }, undefined, 2);
}

/**
 * Every place that an image of a scope may be pulled from: itself, the mirrors of the entry around it, and the entries in
 * it with their mirrors. `undefined`: a whole host is the mirror of a repository, and has no name for its images.
 */
export function placesOf(scope: string, registries: readonly Registry[]): readonly string[] | undefined {
  const around = registries
    .filter((one) => isNested(scope, scopeOf(one)))
    .toSorted((one, other) => scopeOf(other).length - scopeOf(one).length)[0];
  const inside = registries.filter((one) => one !== around && isNested(scopeOf(one), scope));
  const isNameless = [...(around === undefined ? [] : [around]), ...inside].some(
    (one) => scopeOf(one).includes("/") && one.mirror.some(({ location }) => !location.includes("/")),
  );
  if (isNameless) return undefined;
  const moved =
    around?.mirror.map(({ location }) =>
      scopeOf(around).startsWith("*.") ? location : `${location}${scope.slice(scopeOf(around).length)}`,
    ) ?? [];
  return [
    ...new Set([
      scope,
      ...moved,
      ...inside.flatMap((one) => [scopeOf(one), ...one.mirror.map(({ location }) => location)]),
    ]),
  ];
}
