import type { ImagePolicy } from "../../api/foreign/openshift.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, imagePolicyConditions as types, labels } from "../../api/names.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import { type Condition, type KubeObject, keyOf } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { generatedConfig, generatedFiles } from "../render/generated-config.ts";
import { hasFilesAlone } from "../kubelet/held-configs.ts";
import { clipText } from "../text/clip-text.ts";
import { listText, shortList } from "../text/list-text.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";
import { mirrorWarnings } from "./mirror-warnings.ts";
import { type InForceReading, policiesInForce } from "./policies-in-force.ts";
import type { RegistriesBase } from "./registries-base.ts";
import { isFileOfRegistries } from "./registries-causes.ts";
import {
  type RegistriesConfig,
  isNamespacePolicy,
  policyConflicts,
  policyPath,
  registriesConfPath,
  registriesConfig,
  registriesConfigName,
  sigstorePath,
} from "./registries-config.ts";
import { type KnownPolicy, type RegistryObjects, allObjects, objectNameOf, settingsOf } from "./registry-objects.ts";
import { cutOffProblems, releaseReach, releaseWarnings } from "./release-reach.ts";
import { isOfNamespace, withoutRoom } from "./tenant-policies.ts";
import { type PoliciesInForce, noneInForce } from "./uncertain-places.ts";

/** The pool of such a name. */
export const poolOfRegistries = (name: string): string | undefined => /^99-(.+)-generated-registries$/.exec(name)?.[1];

/** Everything that decides a pool's registries. */
export interface RegistriesView {
  readonly pool: string;
  readonly objects: RegistryObjects;
  readonly base: RegistriesBase;
  /** The pool's present MachineConfig of that name. */
  readonly present: MachineConfig | undefined;
  /** What owns the MachineConfig where the cluster has no Image config. */
  readonly owner: KubeObject;
  readonly generatorVersion: string;
}

/** What is accepted, with an effect that its author may not expect. */
export interface RegistriesWarning extends ObjectProblem {
  /** `release`: machines may not be able to pull its image. `effect`: a setting does not do what it says. */
  readonly concerns: "release" | "effect";
}

export type RegistriesDecision =
  /** Nothing says anything about registries, and nothing did. */
  | { readonly do: "nothing" }
  | {
      readonly do: "write";
      readonly config: MachineConfig;
      /** Accepted, but with an effect that their authors may not expect. */
      readonly warnings: readonly RegistriesWarning[];
      /**
       * What is wrong with policies of namespaces, which are left out: no tenant holds up the cluster's settings. While
       * places are uncertain, a policy that is named here may have some of its scopes written.
       */
      readonly leftOut: readonly ObjectProblem[];
    }
  | {
      readonly do: "refuse";
      readonly problems: readonly ObjectProblem[];
      /** Whether machines could not pull the image of the release any more: every object is valid by itself. */
      readonly cutsOff: boolean;
      /** What machines keep, marked as this version's: what stays is no reason for the pool to wait. */
      readonly kept: MachineConfig | undefined;
    };

/** What to write for a pool. What was written before stays where an object is wrong. */
export function decideRegistries(view: RegistriesView): RegistriesDecision {
  const { pool, objects, base, present, owner, generatorVersion } = view;
  if (present === undefined && allObjects(objects).length === 0) return { do: "nothing" };
  const settings = settingsOf(objects);
  const has = inForceIn(view);
  if (has.verdict === "unread") return refused([has.problem], view);
  const { result, leftOut } = withoutWrongPolicies(settings, { ...base, inForce: has.inForce });
  if (result.verdict === "refused") return refused(result.problems, view);
  const { files, made } = result;
  const written = files.find(({ path }) => path === registriesConfPath)?.text;
  const reach = releaseReach(written ?? base.registries, objects.releaseImage);
  if (reach.verdict === "cutOff") return { ...refused(cutOffProblems(settings), view), cutsOff: true };
  return {
    do: "write",
    config: generatedConfig({
      name: registriesConfigName(pool),
      role: pool,
      owner: objects.image ?? owner,
      files,
      generatorVersion,
    }),
    warnings: [
      ...releaseWarnings(settings, reach).map((one) => ({ ...one, concerns: "release" as const })),
      ...mirrorWarnings(settings.rules, settings.sources, made).map((one) => ({
        ...one,
        concerns: "effect" as const,
      })),
    ],
    leftOut,
  };
}

/** What machines have of policies of namespaces, where it matters: while a place may be taken. */
const inForceIn = ({ base, present, objects, owner }: RegistriesView): InForceReading =>
  base.taken.unread.length > 0 && present !== undefined && isWrittenFor(present, [objects.image, owner])
    ? policiesInForce(present)
    : { verdict: "read", inForce: noneInForce };

/** What is wrong with objects on a base, whatever release the cluster has; no file is written for the answer. */
export function registriesProblems(objects: RegistryObjects, base: RegistriesBase): readonly ObjectProblem[] {
  const { result, leftOut } = withoutWrongPolicies(settingsOf(objects), base);
  return result.verdict === "refused" ? result.problems : leftOut;
}

/** Texts and places that settings are laid over, and what machines have. */
type LaidOver = RegistriesBase & { readonly inForce?: PoliciesInForce };

/** The files, without the policies of namespaces that are wrong, or have no room. */
function withoutWrongPolicies(
  settings: ReturnType<typeof settingsOf>,
  base: LaidOver,
): { readonly result: RegistriesConfig; readonly leftOut: readonly ObjectProblem[] } {
  const tenants = settings.policies.filter(({ namespace }) => namespace !== "");
  if (tenants.length === 0) return { result: registriesConfig({ ...settings, ...base }), leftOut: [] };
  const large = tooLarge(settings, base);
  const names = new Set(large.map(({ object }) => object));
  const others = settings.policies.filter(({ object }) => !names.has(object));
  const { result, leftOut } = withoutRefusedPolicies({ ...settings, policies: others }, base);
  const waiting = result.verdict === "files" ? result.waiting : [];
  return { result, leftOut: [...large, ...leftOut, ...waiting] };
}

/** The policies of namespaces that have no room. */
function tooLarge(settings: ReturnType<typeof settingsOf>, base: RegistriesBase): readonly ObjectProblem[] {
  const policies = settings.policies.filter(({ namespace }) => namespace === "");
  const ofCluster = registriesConfig({ ...settings, ...base, policies });
  const text =
    ofCluster.verdict === "files" ? ofCluster.files.find(({ path }) => path === policyPath)?.text : undefined;
  return withoutRoom(settings.policies, encodeDataUrl(text ?? "").length);
}

/** The large policies of namespaces that have room: what they say has to be read. */
export function policiesToRead({ objects, base }: Pick<RegistriesView, "objects" | "base">): readonly KnownPolicy[] {
  const unread = objects.imagePolicies.filter(({ room }) => room !== undefined);
  if (unread.length === 0) return [];
  const names = new Set(tooLarge(settingsOf(objects), base).map(({ object }) => object));
  return unread.filter((policy) => !names.has(objectNameOf(policy)));
}

/** The files, without the policies of namespaces that are wrong. */
function withoutRefusedPolicies(
  settings: ReturnType<typeof settingsOf>,
  base: LaidOver,
): { readonly result: RegistriesConfig; readonly leftOut: readonly ObjectProblem[] } {
  const result = registriesConfig({ ...settings, ...base });
  const wrong = result.verdict === "refused" ? result.problems.filter(({ object }) => isOfNamespace(object)) : [];
  if (wrong.length === 0) return { result, leftOut: [] };
  const names = new Set(wrong.map(({ object }) => object));
  const policies = settings.policies.filter(({ object }) => !names.has(object));
  // Each round leaves out one policy at least.
  const others = withoutRefusedPolicies({ ...settings, policies }, base);
  return { result: others.result, leftOut: [...wrong, ...others.leftOut] };
}

/** Whether two configurations of registries differ in nothing but what policies of namespaces say. */
export function differByTenants(has: MachineConfig, wanted: MachineConfig): boolean {
  const others = (config: MachineConfig) => [
    config.metadata.annotations?.[annotations.generatedByController],
    generatedFiles(config).filter(({ path }) => path !== sigstorePath && !isNamespacePolicy(path)),
  ];
  return equalValues(others(has), others(wanted));
}

function refused(
  problems: readonly ObjectProblem[],
  { pool, objects, present, owner, generatorVersion }: RegistriesView,
): Extract<RegistriesDecision, { do: "refuse" }> {
  if (present === undefined || !isWrittenFor(present, [objects.image, owner]))
    return { do: "refuse", problems, cutsOff: false, kept: undefined };
  const { name, ownerReferences = [] } = present.metadata;
  const kept: MachineConfig = {
    ...present,
    metadata: {
      name,
      labels: { [labels.role]: pool },
      annotations: { [annotations.generatedByController]: generatorVersion },
      ownerReferences,
    },
  };
  return { do: "refuse", problems, cutsOff: false, kept };
}

/**
 * Whether a MachineConfig is one that was written for the cluster's objects: it is kept, and given the role of the pool. The
 * name proves nothing.
 */
const isWrittenFor = (present: MachineConfig, owners: readonly (KubeObject | undefined)[]): boolean =>
  owners.some(
    (owner) =>
      owner?.metadata.uid !== undefined &&
      present.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) === true,
  ) &&
  hasFilesAlone(present) &&
  generatedFiles(present).every(({ path }) => isFileOfRegistries(path));

/** One sentence about a problem: the field, what is wrong, and what to do. */
export const problemText = ({ path, reason, remedy }: Omit<ObjectProblem, "object">): string =>
  `${path} ${reason}${remedy === undefined ? "" : `; ${remedy}`}`;

/** Problems that a message names; a scope has 512 characters at most. */
const mostProblems = 10;

/** Problems of one object, as a condition and an Event say them: the API server takes 32,768 characters. */
export const problemsText = (problems: readonly ObjectProblem[]): string =>
  shortList(problems, mostProblems, (problem) => clipText(problemText(problem), 1024)).join("; ");

/** The same as {@link problemText}, with the object. */
export const problemOf = (problem: ObjectProblem): string => `${problem.object}: ${problemText(problem)}`;

/** What is to be said of all image policies. */
export interface PolicyFindings {
  /** What is wrong with the settings of registries. */
  readonly problems: readonly ObjectProblem[];
  /** Whether the others are written all the same. */
  readonly isWritten: boolean;
}

interface PolicyVerdicts extends PolicyFindings {
  /** Object → its own problems. */
  readonly own: ReadonlyMap<string, readonly ObjectProblem[]>;
  /** Policy → scopes that a ClusterImagePolicy decides about. */
  readonly conflicts: ReadonlyMap<string, readonly string[]>;
}

/**
 * The conditions of image policies, as a function of each: what concerns all of them is computed once.
 *
 * @returns a function of the policy and of the time in milliseconds since the epoch.
 */
export function policyStatuses(
  objects: RegistryObjects,
  { problems, isWritten }: PolicyFindings,
): (policy: ImagePolicy, now: number) => readonly Condition[] {
  const own = Map.groupBy(problems, ({ object }) => object);
  const judged = settingsOf(objects).policies.filter(({ object }) => !own.has(object));
  const verdicts = { problems, isWritten, own, conflicts: policyConflicts(judged) };
  return (policy, now) => policyConditions(policy, verdicts, now);
}

function policyConditions(policy: ImagePolicy, verdicts: PolicyVerdicts, now: number): readonly Condition[] {
  const [reason, message] = verdictOn(policy, verdicts);
  const isApplied = reason === applied;
  const { generation } = policy.metadata;
  const condition = (type: string, is: boolean) => ({
    type,
    status: is ? ("True" as const) : ("False" as const),
    reason,
    message,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  });
  return [condition(types.pending, !isApplied), condition(types.applied, isApplied)].reduce<readonly Condition[]>(
    (list, next) => setCondition<Condition>(list, next, now),
    policy.status?.conditions ?? [],
  );
}

const applied = "AsWritten";

function verdictOn(
  policy: ImagePolicy,
  { problems, isWritten, own: ofObjects, conflicts }: PolicyVerdicts,
): readonly [reason: string, message: string] {
  const own = ofObjects.get(objectNameOf(policy)) ?? [];
  if (own.length > 0) return ["Invalid", problemsText(own)];
  const [first] = problems;
  if (first !== undefined && !isWritten)
    return ["RegistriesRefused", `no settings of registries are written until ${clipText(problemOf(first), 1024)}`];
  const covered = conflicts.get(keyOf(policy)) ?? [];
  if (policy.metadata.namespace === undefined || covered.length === 0) return [applied, "machines get this policy"];
  const isWhole = covered.length === (policy.spec?.scopes ?? []).length;
  return [
    "ConflictScopes",
    `${listText(covered, mostProblems)}: a ClusterImagePolicy decides about ${covered.length === 1 ? "this scope" : "these scopes"}${isWhole ? "" : ", this policy about its other ones"}; take ${covered.length === 1 ? "it" : "them"} out of one of the policies`,
  ];
}
