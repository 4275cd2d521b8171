import type { KubeObject } from "../../api/schema/object.ts";
import { type ClusterForecast, type ClusterObjects } from "../../core/preview/plan-cluster.ts";
import { objectNameOf, registryKinds } from "../../core/runtime/registry-objects.ts";
import type { Problem } from "../../ignition/problem.ts";
import { usageError } from "../arguments.ts";
import type { ValuesOf, flags } from "../flags.ts";
import { objectsInCluster, objectsInManifests, overlaid } from "../cluster-objects.ts";
import { judgeByPolicies } from "../judge-by-policies.ts";
import { judgeShape, kindsToJudge } from "../judge-manifest.ts";
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
  const given = sortedOut(readManifests(files));
  const base = sortedOut(readManifests(values.from));
  const before =
    source === undefined
      ? withPlannedRegistries(objectsInManifests(base.sound), base.sound)
      : await objectsInCluster({ kubeconfig: source.kubeconfig, directory: source.dir, component: "plan" });
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
function unplanned(kinds: readonly string[], source: PlanSource): readonly string[] {
  const covered = new Set<string>(registryKinds.map(({ kind }) => kind));
  if (source === undefined) for (const kind of ["ControllerConfig", "Node"]) covered.add(kind);
  return kinds.filter((kind) => !covered.has(kind));
}

/** The manifests that have the shape of their kinds, as an API server would store them, and why it refuses the others. */
function sortedOut(manifests: readonly Manifest[]): {
  readonly sound: readonly Manifest[];
  readonly refusals: ClusterForecast["refusals"];
} {
  const kinds = kindsToJudge();
  const sound: Manifest[] = [];
  const refusals: ClusterForecast["refusals"][number][] = [];
  for (const manifest of manifests) {
    const served = kinds(manifest.apiVersion, manifest.kind);
    const { stored, errors } = served === undefined ? { stored: manifest, errors: [] } : judgeShape(manifest, served);
    if (errors.length === 0) sound.push(stored);
    for (const { path, reason } of errors) refusals.push({ object: objectNameOf(manifest), path, reason });
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
