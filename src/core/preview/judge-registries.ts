import { openshift } from "../../api/foreign/openshift.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import type { Problem } from "../../ignition/problem.ts";
import { type RegistriesDecision, problemOf, problemText } from "../runtime/decide-registries.ts";
import type { ObjectProblem } from "../runtime/merge-mirrors.ts";
import {
  type RegistryObjects,
  objectNameOf,
  withRegistryManifests,
  withoutRegistryObject,
} from "../runtime/registry-objects.ts";
import { type AdmissionVerdict, judged } from "./judge-admission.ts";
import {
  type AroundRegistries,
  problemsByThemselves,
  registriesByPool,
  registriesByThemselves,
} from "./plan-registries.ts";

/**
 * Kinds that admission is asked about: those that say where images are pulled from, and whose signatures count in the
 * whole cluster. What is wrong with a namespace's image policy stands in its conditions.
 */
const judgedKinds: readonly (Pick<KubeObject, "kind"> & { readonly group: string })[] = [
  openshift.Image,
  openshift.ImageDigestMirrorSet,
  openshift.ImageTagMirrorSet,
  openshift.ImageContentSourcePolicy,
  openshift.ClusterImagePolicy,
];

/** Whether admission judges a kind as one about registries. */
export const isJudgedRegistryKind = (asked: { readonly group?: string; readonly kind?: string } | undefined): boolean =>
  judgedKinds.some(({ group, kind }) => group === asked?.group && kind === asked.kind);

/** One object of those kinds that is created (`before` is absent), changed, or deleted (`after` is absent). */
export interface RegistryChange {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** The objects of a cluster once one of them is changed. */
export function changedRegistries(objects: RegistryObjects, { before, after }: RegistryChange): RegistryObjects {
  if (after !== undefined) return withRegistryManifests([after], objects);
  return before === undefined ? objects : withoutRegistryObject(before, objects);
}

const byText = (problems: readonly ObjectProblem[]): Findings["problems"] =>
  new Map(problems.map((one) => [problemOf(one), one]));

/** What decisions about pools say, each once. */
interface Findings {
  readonly problems: ReadonlyMap<string, ObjectProblem>;
  readonly warnings: ReadonlyMap<string, ObjectProblem>;
  readonly cutsOff: boolean;
}

function findingsOf(decisions: readonly RegistriesDecision[]): Findings {
  const refused = decisions.filter((decision) => decision.do === "refuse");
  const written = decisions.filter((decision) => decision.do === "write");
  return {
    problems: byText([...refused.flatMap(({ problems }) => problems), ...written.flatMap(({ leftOut }) => leftOut)]),
    warnings: byText(written.flatMap(({ warnings }) => warnings)),
    cutsOff: refused.some(({ cutsOff }) => cutsOff),
  };
}

const byThemselves = (objects: RegistryObjects): Findings => findingsOf([registriesByThemselves(objects)]);

const newIn = (
  has: ReadonlyMap<string, ObjectProblem>,
  had: ReadonlyMap<string, ObjectProblem>,
): readonly ObjectProblem[] => [...has].flatMap(([text, problem]) => (had.has(text) ? [] : [problem]));

/**
 * Judges an object about registries. Errors are what is wrong with the object whatever else the cluster has, and what
 * cuts the cluster off from the image of its release. That it contradicts another object is a warning, because several
 * objects that must agree are changed one after the other; and so is everything about a deletion. Nothing is said of
 * what was the same before.
 *
 * @param cluster its objects before the change; `undefined`: unknown, and only the object itself is judged.
 */
export function judgeRegistryObject(
  change: RegistryChange,
  cluster: { readonly registries: RegistryObjects; readonly around: AroundRegistries } | undefined,
): AdmissionVerdict {
  const { before, after } = change;
  const object = after ?? before;
  if (object === undefined) return { verdict: "allowed", warnings: [] };
  const name = objectNameOf(object);
  const said = (severity: Problem["severity"]) => (problem: ObjectProblem) => asProblem(problem, name, severity);
  const own = after === undefined ? [] : newIn(ofOneObject(after), ofOneObject(before));
  if (own.length > 0 || cluster === undefined)
    return judged(`${object.kind} ${object.metadata.name}`, own.map(said("error")));
  const { registries, around } = cluster;
  const had = findingsOf([...registriesByPool(registries, around).values()]);
  const has = findingsOf([...registriesByPool(changedRegistries(registries, change), around).values()]);
  const isRefused = after !== undefined && has.cutsOff && !had.cutsOff;
  // A contradiction is said once: from the side of the object that is asked about.
  const problems = newIn(has.problems, had.problems).filter((one) => one.object === name || one.against !== name);
  return judged(`${object.kind} ${object.metadata.name}`, [
    ...problems.map(said(isRefused ? "error" : "warning")),
    ...newIn(has.warnings, had.warnings).map(said("warning")),
  ]);
}

const ofOneObject = (object: KubeObject | undefined): Findings["problems"] =>
  object === undefined ? new Map() : byText(problemsByThemselves(withRegistryManifests([object])));

/** A problem as it concerns one object: that of another one names it. */
const asProblem = (
  { object, path, reason, remedy }: ObjectProblem,
  name: string,
  severity: Problem["severity"],
): Problem => ({
  severity,
  path: object === name ? path : "",
  reason: object === name ? reason : `${object}: ${problemText({ path, reason })}`,
  ...(remedy === undefined ? {} : { remedy }),
});

/**
 * What is wrong with manifests about registries, alone and with each other, by the names of their objects.
 *
 * @param manifests of whatever kinds; a ClusterVersion among them says which release must stay in reach.
 */
export function registryManifestProblems(manifests: readonly KubeObject[]): ReadonlyMap<string, readonly Problem[]> {
  const { problems, warnings } = byThemselves(withRegistryManifests(manifests));
  const all = [
    ...[...problems.values()].map((one) => [one.object, asProblem(one, one.object, "error")] as const),
    ...[...warnings.values()].map((one) => [one.object, asProblem(one, one.object, "warning")] as const),
  ];
  return new Map(
    [...Map.groupBy(all, ([object]) => object)].map(([object, own]) => [object, own.map(([, problem]) => problem)]),
  );
}
