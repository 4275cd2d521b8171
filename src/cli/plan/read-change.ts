import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { type ClusterForecast, type ClusterObjects } from "../../core/preview/plan-cluster.ts";
import { objectNameOf, registryKinds } from "../../core/runtime/registry-objects.ts";
import type { Problem } from "../../ignition/problem.ts";
import { usageError } from "../arguments.ts";
import type { ValuesOf, flags } from "../flags.ts";
import {
  isOneOf,
  isPlanned,
  kindText,
  objectsInCluster,
  objectsInManifests,
  overlaid,
  plannedObjects,
} from "../cluster-objects.ts";
import { judgeByPolicies } from "../judge-by-policies.ts";
import { type ManifestRole, judgeShape, kindsToJudge, problemsOfConditions } from "../judge-manifest.ts";
import { type Manifest, readManifests } from "../manifests.ts";
import { withPlannedRegistries } from "../registry-objects.ts";

/** The flags of `mco plan` that name a change, and the objects that it changes. */
export type PlanFlags = ValuesOf<typeof flags.plan>;

/** How to reach the cluster; `undefined`: a plan asks none. */
export type PlanSource = { readonly kubeconfig: string | undefined; readonly dir: string | undefined } | undefined;

/** A change, before anything is planned. */
export interface PlannedChange {
  readonly source: PlanSource;
  readonly before: ClusterObjects;
  readonly after: ClusterObjects;
  /** The manifests of the change that have the shape of their kinds. */
  readonly manifests: readonly KubeObject[];
  /** The manifests that stand for a cluster. */
  readonly from: readonly KubeObject[];
  /** Why an API server refuses manifests by themselves. */
  readonly refusals: ClusterForecast["refusals"];
  /** What an API server warns of, of manifests by themselves. */
  readonly warnings: readonly string[];
  /** Kinds among the manifests that no plan covers. */
  readonly ignored: readonly string[];
}

/** The objects before and after a change; a flag that does not go with the others is an error of usage. */
export async function readChange(values: PlanFlags): Promise<PlannedChange> {
  const [files, deleted, stream] = [values.filename, values.delete, values["os-stream"]];
  if (files.length === 0 && deleted.length === 0 && stream === undefined)
    throw usageError("name the change with -f, --delete or --os-stream");
  if (stream === undefined && values.pool.length > 0) throw usageError("--pool goes with --os-stream");
  const source =
    values.offline || values.from.length > 0 ? undefined : { kubeconfig: values.kubeconfig, dir: values.dir };
  const base = sortedOut(readManifests(values.from), "stored");
  const before =
    source === undefined
      ? withPlannedRegistries(objectsInManifests(base.sound), base.sound)
      : await objectsInCluster({ kubeconfig: source.kubeconfig, directory: source.dir, component: "plan" });
  const standsAlone = source === undefined && values.from.length === 0;
  const given = sortedOut(
    readManifests(files),
    standsAlone ? "cluster" : "change",
    source === undefined ? storedAmong(base.sound) : storedIn(before),
  );
  const allowed = allowedByPolicies(given.sound, [...base.sound, ...before.pools]);
  const { after, ignored } = overlaid(before, allowed.sound, deleted);
  return {
    source,
    before,
    after: source === undefined ? withBrought(after, before, allowed.sound) : after,
    manifests: allowed.sound,
    from: base.sound,
    refusals: [...base.refusals, ...given.refusals, ...allowed.refusals],
    warnings: allowed.warnings,
    ignored: unplanned(ignored, source),
  };
}

/** Without a cluster, machines and the cluster's own values come with the manifests. */
function withBrought(after: ClusterObjects, before: ClusterObjects, manifests: readonly KubeObject[]): ClusterObjects {
  const brought = objectsInManifests(manifests);
  const known = new Set(after.pools.map(({ metadata }) => metadata.name));
  return {
    ...after,
    pools: [...after.pools, ...brought.pools.filter(({ metadata }) => !known.has(metadata.name))],
    controllerConfig: brought.controllerConfig ?? before.controllerConfig,
    nodes: before.nodes.length === 0 ? brought.nodes : before.nodes,
  };
}

/** The kinds that neither the plan of machines nor that of registries covers. */
function unplanned(objects: readonly KubeObject[], source: PlanSource): readonly string[] {
  const isCovered = isOneOf([...registryKinds, ...(source === undefined ? [ControllerConfig, kubernetes.Node] : [])]);
  return [...new Set(objects.filter((one) => !isCovered(one)).map(kindText))];
}

/** The object that is stored before a change, in the place of a manifest. */
type StoredObject = (manifest: Manifest) => KubeObject | "unknown" | undefined;

const placeOf = (object: Pick<KubeObject, "apiVersion" | "kind" | "metadata">): string =>
  `${object.apiVersion}/${objectNameOf(object)}`;

function storedAmong(objects: readonly KubeObject[]): StoredObject {
  const known = new Map(objects.map((object) => [placeOf(object), object]));
  return (manifest) => known.get(placeOf(manifest));
}

/** A cluster has objects that decide nothing here, and were not read. */
function storedIn(before: ClusterObjects): StoredObject {
  const among = storedAmong(plannedObjects(before));
  return (manifest) => among(manifest) ?? (isPlanned(manifest) ? undefined : "unknown");
}

/**
 * The manifests that have the shape of their kinds, as an API server would store them, and why it refuses the others.
 *
 * @param storedBefore absent: the manifests are what is stored.
 */
function sortedOut(
  manifests: readonly Manifest[],
  role: ManifestRole,
  storedBefore?: StoredObject,
): {
  readonly sound: readonly Manifest[];
  readonly refusals: ClusterForecast["refusals"];
} {
  const kinds = kindsToJudge();
  const sound: Manifest[] = [];
  const refusals: ClusterForecast["refusals"][number][] = [];
  for (const manifest of manifests) {
    const { stored, errors: own } = judgeShape(manifest, kinds(manifest.apiVersion, manifest.kind), role);
    const unmet = storedBefore === undefined ? [] : problemsOfConditions(manifest, storedBefore(stored));
    const errors = own.length > 0 ? own : unmet;
    if (errors.length === 0) sound.push(stored);
    for (const { path, reason, remedy } of errors)
      refusals.push({ object: objectNameOf(manifest), path, reason, ...(remedy === undefined ? {} : { remedy }) });
  }
  return { sound, refusals };
}

/** The manifests that the policies of an API server allow, and why the others are refused. @param before what is stored. */
function allowedByPolicies(
  manifests: readonly Manifest[],
  before: readonly KubeObject[],
): {
  readonly sound: readonly Manifest[];
  readonly refusals: ClusterForecast["refusals"];
  readonly warnings: readonly string[];
} {
  const [kinds, judge] = [kindsToJudge(), judgeByPolicies([...before, ...manifests])];
  const stored = new Map(before.map((object) => [objectNameOf(object), object]));
  const judged = manifests.map((manifest) => {
    const definition = kinds(manifest.apiVersion, manifest.kind)?.definition;
    const object = objectNameOf(manifest);
    const problems =
      definition === undefined ? [] : judge({ definition, object: manifest, before: stored.get(object) });
    const of = (wanted: Problem["severity"]) => problems.filter(({ severity }) => severity === wanted);
    return { manifest, object, errors: of("error"), warnings: of("warning") };
  });
  return {
    sound: judged.flatMap(({ manifest, errors }) => (errors.length === 0 ? [manifest] : [])),
    refusals: judged.flatMap(({ object, errors }) => errors.map(({ path, reason }) => ({ object, path, reason }))),
    warnings: judged.flatMap(({ object, warnings }) =>
      warnings.map(({ path, reason }) => `${object}: ${path === "" ? "" : `${path}: `}${reason}`),
    ),
  };
}
