import { oversizedReason, oversizedText } from "../../ignition/held-contents.ts";
import { pushAll } from "../../api/schema/push-all.ts";
import { stringify } from "yaml";
import type { RegistrySources } from "../../api/foreign/openshift.ts";
import { parseImageReference, repositoryOf } from "../images/image-reference.ts";
import type { Decoded } from "../kubelet/decode-go.ts";
import type { GeneratedFile } from "../render/generated-config.ts";
import {
  type ImagePolicyObject,
  type PolicyStart,
  type Requirement,
  type Scoped,
  placesOf,
  policyText,
  requirementOf,
} from "./image-policies.ts";
import { type MirrorRule, type ObjectProblem, mergedMirrors, mirrorProblems } from "./merge-mirrors.ts";
import type { MadeRegistries } from "./mirror-warnings.ts";
import { type Registry, readRegistries, registriesText, withLists } from "./registries-conf-text.ts";
import { isNested, isPolicyNested, scopeProblem } from "./registry-scopes.ts";
import { isOfNamespace } from "./tenant-policies.ts";
import {
  type PoliciesInForce,
  type ScopesOfPolicies,
  type TakenPlaces,
  noneInForce,
  noneTaken,
  placesOfNamespaces,
  uncertainPlaces,
} from "./uncertain-places.ts";

/** The MachineConfig that says to the machines of a pool where they pull images from. */
export const registriesConfigName = (pool: string): string => `99-${pool}-generated-registries`;

export const registriesConfPath = "/etc/containers/registries.conf";
export const policyPath = "/etc/containers/policy.json";
export const searchRegistriesPath = "/etc/containers/registries.conf.d/01-image-searchRegistries.conf";
export const sigstorePath = "/etc/containers/registries.d/sigstore-registries.yaml";
const namespacePolicies = "/etc/crio/policies/";
export const namespacePolicyPath = (namespace: string) => `${namespacePolicies}${namespace}.json`;
export const isNamespacePolicy = (path: string): boolean => path.startsWith(namespacePolicies);
export const namespaceOfPolicy = (path: string): string => path.slice(namespacePolicies.length).replace(/\.json$/, "");

export interface RegistriesInputs {
  /** Texts of the templates. */
  readonly registries: string;
  readonly policy: string;
  readonly sources: RegistrySources;
  /** The image of the cluster's release; `undefined`: the cluster names none, and no block of it is looked for. */
  readonly releaseImage: string | undefined;
  readonly rules: readonly MirrorRule[];
  readonly policies: readonly ImagePolicyObject[];
  /** Places that other files of registries.d define: engines read none of them where two define one. */
  readonly taken?: TakenPlaces;
  /** What machines have of policies of namespaces; it stays while any further place may be taken. */
  readonly inForce?: PoliciesInForce;
}

export type RegistriesConfig =
  | {
      readonly verdict: "files";
      readonly files: readonly GeneratedFile[];
      readonly made: MadeRegistries;
      /** What policies of namespaces do not get yet, which are written without it. */
      readonly waiting: readonly ObjectProblem[];
    }
  | { readonly verdict: "refused"; readonly problems: readonly ObjectProblem[] };

/** Blocked registries that are left out: the release comes from them, and no usable mirror is known. */
export function ignoredBlocks({
  sources,
  releaseImage,
  rules,
}: Pick<RegistriesInputs, "sources" | "releaseImage" | "rules">): readonly string[] {
  const release = releaseImage === undefined ? undefined : parseImageReference(releaseImage);
  if (release?.verdict !== "reference") return [];
  return judgeBlocks(sources.blockedRegistries ?? [], repositoryOf(release.reference), rules).ignored;
}

const scopesOf = ({ spec }: ImagePolicyObject): readonly string[] => spec.scopes ?? [];

/** Which scopes a policy of the whole cluster decides about: one of a namespace then has no say. */
function coveredBy(policies: readonly ImagePolicyObject[]): (scope: string) => boolean {
  const outers = new Set(policies.flatMap((one) => (one.namespace === "" ? scopesOf(one) : [])));
  return (scope) => outers.has(scope) || [...outers].some((outer) => isPolicyNested(scope, outer));
}

/** ImagePolicies, as `namespace/name`, and their scopes that a ClusterImagePolicy covers already. */
export function policyConflicts(policies: readonly ImagePolicyObject[]): ReadonlyMap<string, readonly string[]> {
  const isCovered = coveredBy(policies);
  const covered = policies.flatMap((one): [string, readonly string[]][] => {
    if (one.namespace === "") return [];
    const scopes = scopesOf(one).filter(isCovered);
    return scopes.length === 0 ? [] : [[one.object.replace(/^ImagePolicy\//, ""), scopes]];
  });
  return new Map(covered);
}

const imageObject = "Image/cluster";

/**
 * The files by which a machine's container engine knows mirrors, blocked registries and signature policies. Who only judges
 * objects does not pay for the files.
 */
export function registriesConfig(inputs: RegistriesInputs): RegistriesConfig {
  const refused = (problems: readonly ObjectProblem[]): RegistriesConfig => ({ verdict: "refused", problems });
  const { sources, rules } = inputs;
  const lists = listProblems(sources);
  if (lists.length > 0) return refused(lists);
  const contradictions = mirrorProblems(rules);
  if (contradictions.length > 0) return refused(contradictions);
  const base = readRegistries(inputs.registries);
  const release = inputs.releaseImage === undefined ? undefined : parseImageReference(inputs.releaseImage);
  if (base.verdict === "refused")
    return refused([{ object: "template", path: registriesConfPath, reason: base.reason }]);
  if (inputs.policy === oversizedText)
    return refused([{ object: "template", path: policyPath, reason: `the base policy.json ${oversizedReason}` }]);
  if (release?.verdict === "refused")
    return refused([{ object: "ClusterVersion/version", path: "status.desired.image", reason: release.problem }]);
  const payload = release === undefined ? undefined : repositoryOf(release.reference);
  const blocks = judgeBlocks(sources.blockedRegistries ?? [], payload, rules);
  const allowed = [...blocks.allowed, ...(sources.allowedRegistries ?? [])];
  if (blocks.policy.length > 0 && allowed.some((scope) => scope !== payload))
    return refused([
      {
        object: imageObject,
        path: "spec.registrySources",
        reason: "allowedRegistries and blockedRegistries must not both be set",
        remedy: "take one of the lists out: what is not allowed is blocked already",
      },
    ]);
  const insecure = sources.insecureRegistries ?? [];
  const hasLists = sources.insecureRegistries !== undefined || blocks.conf.length > 0 || rules.length > 0;
  const mirrors = lazily(() => mergedMirrors(rules));
  const registries = lazily(() =>
    hasLists ? withLists(base.registries, { mirrors: mirrors(), blocked: blocks.conf, insecure }) : [],
  );
  const policies = judgePolicies(inputs, { allowed, blocked: blocks.policy });
  if (policies.verdict === "refused") return policies;
  const lookaside = judgePlaces(policies.scopes, registries, inputs);
  if (lookaside.problems.length > 0) return refused(lookaside.problems);
  const made = (): MadeRegistries => ({
    registries: registries(),
    mirrors: mirrors(),
    blocked: blocks.conf,
    rejected: blocks.policy,
    accepted: allowed,
    payload,
  });
  return {
    verdict: "files",
    waiting: lookaside.waiting,
    get made() {
      return made();
    },
    get files() {
      return [
        ...(hasLists ? [file(registriesConfPath, registriesText(registries(), base.others))] : []),
        ...policies.ofCluster(),
        ...placesFiles(lookaside.places),
        ...searchFiles(sources.containerRuntimeSearchRegistries),
        ...policies.ofNamespaces(lookaside.waits),
      ];
    },
  };
}

/** Makes a value once, when it is asked for. */
function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

const file = (path: string, text: string): GeneratedFile => ({ path, mode: 0o644, text });

const placesFiles = (places: readonly string[]): readonly GeneratedFile[] =>
  places.length === 0
    ? []
    : [
        file(
          sigstorePath,
          stringify({
            docker: Object.fromEntries(places.map((place) => [place, { "use-sigstore-attachments": true }])),
          }),
        ),
      ];

const searchFiles = (search: readonly string[] | undefined): readonly GeneratedFile[] =>
  search === undefined
    ? []
    : [file(searchRegistriesPath, `unqualified-search-registries = ${JSON.stringify(search)}\n`)];

interface JudgedPlaces {
  /** Of the signatures of all scopes, sorted. */
  readonly places: readonly string[];
  /** Which policies name a scope that cannot have one. */
  readonly problems: readonly ObjectProblem[];
  readonly waiting: readonly ObjectProblem[];
  /** Whether a policy does not decide about one of its scopes yet. */
  readonly waits: (object: string, scope: string) => boolean;
}

function judgePlaces(
  scopes: ScopesOfPolicies,
  registries: () => readonly Registry[],
  { taken = noneTaken, inForce = noneInForce }: Pick<RegistriesInputs, "taken" | "inForce">,
): JudgedPlaces {
  const places = new Set<string>();
  const problems: ObjectProblem[] = [];
  const waiting = new Set<string>();
  const mayHave = placesOfNamespaces(taken.unread, inForce);
  for (const [scope, all] of scopes) {
    const isOfCluster = all.some((object) => !isOfNamespace(object));
    const objects = isOfCluster ? all : mayHave.kept(scope, all);
    if (objects.length < all.length) for (const object of all) if (!objects.includes(object)) waiting.add(object);
    if (objects.length === 0) continue;
    const own = placesOf(scope, registries());
    const problem = (reason: string) => ({ path: "spec.scopes", reason: `has ${scope}, ${reason}` });
    if (own === undefined) {
      const nameless = problem(
        "whose signatures cannot be looked for: a mirror of one of its repositories is a whole host; name a repository there",
      );
      for (const object of objects) problems.push({ object, ...nameless });
      continue;
    }
    const twice = own.find((place) => taken.places.has(place));
    if (twice !== undefined && !isOfCluster) {
      const defined = problem(
        `and machines have ${twice} in another file of /etc/containers/registries.d: no engine would pull anything with both`,
      );
      for (const object of objects)
        problems.push({ object, ...defined, remedy: `name repositories in it: ${twice}/REPOSITORY` });
      continue;
    }
    const known = isOfCluster ? own : mayHave.known(own);
    if (known.length < own.length) for (const object of objects) waiting.add(object);
    for (const place of known) places.add(place);
  }
  return {
    places: [...places].sort(),
    problems,
    waiting: uncertainPlaces(waiting, taken.unread),
    waits: (object, scope) => waiting.has(object) && mayHave.kept(scope, [object]).length === 0,
  };
}

const listsOfScopes = ["insecureRegistries", "blockedRegistries", "allowedRegistries"] as const;

const listProblems = (sources: RegistrySources): readonly ObjectProblem[] =>
  listsOfScopes.flatMap((list) =>
    (sources[list] ?? []).flatMap((scope, i) => {
      const reason = scopeProblem(scope);
      return reason === undefined ? [] : [{ object: imageObject, path: `spec.registrySources.${list}[${i}]`, reason }];
    }),
  );

interface Blocks {
  /** For registries.conf. */
  readonly conf: readonly string[];
  /** For policy.json. */
  readonly policy: readonly string[];
  /** What policy.json has to allow for it. */
  readonly allowed: readonly string[];
  readonly ignored: readonly string[];
}

/**
 * A cluster must be able to pull its release: a block of it counts only where a mirror is left. Where none is, the
 * reference reads no further than the entry that is the release's own repository, and so do we.
 */
function judgeBlocks(blocked: readonly string[], payload: string | undefined, rules: readonly MirrorRule[]): Blocks {
  if (payload === undefined) return { conf: blocked, policy: blocked, allowed: [], ignored: [] };
  const isBlocked = (place: string) => blocked.some((scope) => isNested(place, scope));
  const hasMirror = rules.some(
    ({ of, source, mirrors }) =>
      of === "digest" && isNested(payload, source) && mirrors.some((mirror) => mirror !== source && !isBlocked(mirror)),
  );
  const isOfPayload = (scope: string) => isNested(payload, scope);
  if (hasMirror)
    return {
      conf: blocked,
      policy: blocked.filter((scope) => scope !== payload),
      allowed: blocked.some(isOfPayload) ? [payload] : [],
      ignored: [],
    };
  const own = blocked.indexOf(payload);
  const read = own < 0 ? blocked : blocked.slice(0, own);
  const kept = read.filter((scope) => !isOfPayload(scope));
  return { conf: kept, policy: kept, allowed: [], ignored: blocked.filter((scope) => !kept.includes(scope)) };
}

interface Lists {
  readonly allowed: readonly string[];
  readonly blocked: readonly string[];
}

type Policies =
  | {
      readonly verdict: "policies";
      /** The policy of the cluster; none where nothing says anything. */
      readonly ofCluster: () => readonly GeneratedFile[];
      readonly ofNamespaces: (waits: JudgedPlaces["waits"]) => readonly GeneratedFile[];
      readonly scopes: ScopesOfPolicies;
    }
  | { readonly verdict: "refused"; readonly problems: readonly ObjectProblem[] };

interface ScopedRequirement extends Scoped {
  readonly object: ImagePolicyObject;
}

function judgePolicies({ policy, policies }: RegistriesInputs, lists: Lists): Policies {
  const read = policies.map((object) => ({ object, reading: requirementOf(object) }));
  const problems = read.flatMap(({ reading }) => (reading.verdict === "refused" ? reading.problems : []));
  const all = read.flatMap(({ object, reading }): readonly ScopedRequirement[] =>
    reading.verdict === "refused"
      ? []
      : scopesOf(object).map((scope) => ({ object, scope, requirement: reading.requirement })),
  );
  const ofCluster = all.filter(({ object }) => object.namespace === "");
  const isCovered = coveredBy(policies);
  const own = all.filter(({ object, scope }) => object.namespace !== "" && !isCovered(scope));
  pushAll(
    problems,
    [...ofCluster, ...own].flatMap((one) => scopeProblems(one, lists)),
  );
  if (problems.length > 0) return { verdict: "refused", problems };
  const isSaid = lists.allowed.length + lists.blocked.length + policies.length > 0;
  const start = lazily(() => startOf(JSON.parse(policy) as Decoded, lists, ofCluster));
  const byNamespace = [...Map.groupBy(own, ({ object }) => object.namespace)].toSorted(([one], [other]) =>
    one < other ? -1 : 1,
  );
  return {
    verdict: "policies",
    ofCluster: () => (isSaid ? [file(policyPath, policyText(start(), ofCluster))] : []),
    ofNamespaces: (waits) =>
      byNamespace.flatMap(([namespace, list]) => {
        const decided = list.filter(({ object, scope }) => !waits(object.object, scope));
        return decided.length === 0
          ? []
          : [file(namespacePolicyPath(namespace), policyText(start(), [...ofCluster, ...decided]))];
      }),
    // No policy of a namespace names what one of the cluster does.
    scopes: new Map(
      [...Map.groupBy([...own, ...ofCluster], ({ scope }) => scope)].map(([scope, list]) => [
        scope,
        list.map(({ object }) => object.object),
      ]),
    ),
  };
}

/** What the lists of the Image config make of a policy.json. */
function startOf(base: Decoded, { allowed, blocked }: Lists, ofCluster: readonly Scoped[]): PolicyStart {
  const [accept, reject] = [[{ type: "insecureAcceptAnything" }], [{ type: "reject" }]];
  const named = new Set(ofCluster.map(({ scope }) => scope));
  const scopes = new Map<string, readonly Requirement[]>();
  for (const scope of allowed) if (!named.has(scope)) scopes.set(scope, accept);
  for (const scope of blocked) scopes.set(scope, reject);
  const fallback = (base["default"] ?? []) as readonly Requirement[];
  return {
    base,
    fallback: blocked.length > 0 ? accept : allowed.length > 0 ? reject : fallback,
    scopes,
    keepsBase: allowed.length + blocked.length + ofCluster.length === 0,
  };
}

function scopeProblems({ object, scope }: ScopedRequirement, { allowed, blocked }: Lists): readonly ObjectProblem[] {
  const at = { object: object.object, path: `spec.scopes[${object.spec.scopes?.indexOf(scope) ?? 0}]` };
  if (allowed.length > 0 && !allowed.some((outer) => isNested(scope, outer)))
    return [
      {
        ...at,
        reason: `${scope} is in none of the allowed registries of the Image config cluster`,
        remedy: "add it to spec.registrySources.allowedRegistries there, or take the scope out",
      },
    ];
  const outer = blocked.find((one) => isPolicyNested(scope, one));
  return outer === undefined
    ? []
    : [
        {
          ...at,
          reason: `${scope} is in ${outer}, which the Image config cluster blocks`,
          remedy: "take one of them out: no image of a blocked registry is pulled, whatever its signature",
        },
      ];
}
