import type { ImagePolicy } from "../../api/foreign/openshift.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { fieldManagers, labels, objects as names } from "../../api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../../api/schema/object.ts";
import { isCurrent } from "../../core/render/generated-config.ts";
import { registriesConditionField, registriesStatus } from "../../core/pool/registries-condition.ts";
import { trimMachineConfig } from "../../core/pool/trim.ts";
import {
  type RegistriesDecision,
  type RegistriesWarning,
  decideRegistries,
  differByTenants,
  policiesToRead,
  type PolicyFindings,
  policyStatuses,
  poolOfRegistries,
  problemOf,
  problemsText,
} from "../../core/runtime/decide-registries.ts";
import type { ObjectProblem } from "../../core/runtime/merge-mirrors.ts";
import { type RegistriesBase, isRegistriesBase, registriesBase } from "../../core/runtime/registries-base.ts";
import { registriesConfigName } from "../../core/runtime/registries-config.ts";
import {
  type RegistryObjects,
  allObjects,
  imageConfigName,
  objectNameOf,
  registryKinds,
  releaseImageOf,
  trimPolicy,
  trimRegistryObject,
} from "../../core/runtime/registry-objects.ts";
import { definesPlaces } from "../../core/runtime/taken-places.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../../kube/controller.ts";
import { updateObject } from "../../kube/kube-client.ts";
import { isInvalid } from "../../kube/kube-error.ts";
import { type Outcome, done, stalled, waiting } from "../../kube/outcome.ts";
import type { ObjectChange } from "../../kube/watch-cache.ts";
import { type BucketLimits, SourceBuckets } from "../../ports/source-buckets.ts";
import { writeGenerated } from "./generated-configs.ts";
import { writeConditions } from "./write-conditions.ts";
import { registriesRecovered, registriesRefused, registriesNoticed } from "../reports.ts";

const waitSeconds = 30;

/**
 * How often the policies of namespaces alone change the machines of a pool: each change is a roll-out, and tenants can
 * change theirs without end.
 */
const tenantChanges: BucketLimits = { burst: 6, perSecond: 1 / 600, sources: 1000 };

/** Problems that are told of a pool; a message holds no more of them. */
const mostTold = 100;

/** What was last told, so that each Event and each line is written once. */
interface RegistriesMemory {
  /** Object → pool → its problems there: pools may have other bases. */
  readonly told: Map<string, Map<string, string>>;
  /** Pool → why nothing is written for it. */
  readonly refused: Map<string, string>;
  /** Pool → what is wrong with objects on its machines; a policy has one status for all pools. */
  readonly found: Map<string, PolicyFindings>;
  /** By pool: changes that policies of namespaces alone cause. */
  readonly tenantChanges: SourceBuckets;
  /** Large policies of namespaces that had room lately, by key. */
  readonly read: Map<string, ImagePolicy>;
}

/** Far more than have room in the pools of a cluster. */
const mostRead = 128;

/** Writes the registries, mirrors and signature policies of the cluster for the machines of the built-in pools. */
export function registriesController({ generatorVersion }: { readonly generatorVersion: string }): Controller {
  const memory: RegistriesMemory = {
    told: new Map(),
    refused: new Map(),
    found: new Map(),
    tenantChanges: new SourceBuckets(tenantChanges),
    read: new Map(),
  };
  return {
    name: "registries",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }, caches) => {
          // What a pool selects may be on machines that get the registries of another one.
          if (!equalValues(before?.spec.machineConfigSelector, after?.spec.machineConfigSelector))
            return [...new Set([...builtInPools(caches), ...(after === undefined ? [] : [key])])];
          return equalValues(before?.metadata.labels, after?.metadata.labels) ? [] : [key];
        },
      }),
      watching({
        resource: MachineConfig,
        keep: trimMachineConfig,
        concerns: ({ key, before, after }, caches) => {
          if (isRegistriesBase(key) || definesPlaces(before) || definesPlaces(after))
            return equalValues(said(before), said(after)) ? [] : builtInPools(caches);
          const pool = poolOfRegistries(key);
          return pool === undefined ? [] : [pool];
        },
      }),
      watching({
        resource: ControllerConfig,
        concerns: ({ before, after }, caches) =>
          before === undefined && after !== undefined ? builtInPools(caches) : [],
      }),
      ...registryKinds.map((resource) =>
        watching<KubeObject>({
          resource,
          keep: trimRegistryObject,
          optional: true,
          concerns: (change, caches) => concerned(change, caches),
        }),
      ),
      watching({
        resource: openshift.ClusterVersion,
        optional: true,
        concerns: ({ before, after }, caches) =>
          before?.status?.desired?.image === after?.status?.desired?.image ? [] : builtInPools(caches),
      }),
    ],
    owns: ["MachineConfig/registries", registriesConditionField, "ClusterImagePolicy.status", "ImagePolicy.status"],

    async reconcile(pool, context): Promise<Outcome> {
      const { caches } = context;
      const known = caches.of(MachineConfigPool).get(pool);
      if (known === undefined || known.metadata.deletionTimestamp !== undefined || !isBuiltIn(known)) {
        memory.found.set(pool, nothingFound);
        return done();
      }
      const configOf = (name: string) => caches.of(MachineConfig).get(name);
      const base = registriesBase(pool, configOf, {
        pools: caches.of(MachineConfigPool).list(),
        configs: caches.of(MachineConfig).list(),
      });
      const owner = caches.of(ControllerConfig).get(names.controllerConfig);
      if (base === undefined || owner === undefined) {
        memory.found.set(pool, nothingFound);
        return waiting("BaseConfigMissing", `the base configuration of the pool ${pool} is not there yet`, waitSeconds);
      }
      const objects = await withLargePolicies(observeObjects(caches), base, memory, context);
      const present = configOf(registriesConfigName(pool));
      const decision = decideRegistries({ pool, objects, base, present, owner, generatorVersion });
      return perform(decision, known, objects, memory, context);
    },
  };
}

/** What a MachineConfig says, and which pools select it. */
const said = (config: MachineConfig | undefined) => [config?.spec, config?.metadata.labels];

const isBuiltIn = ({ metadata }: MachineConfigPool): boolean => metadata.labels?.[labels.builtInPool] !== undefined;

const builtInPools = (caches: Caches): readonly string[] =>
  caches
    .of(MachineConfigPool)
    .list()
    .filter(isBuiltIn)
    .map(({ metadata }) => metadata.name);

/** Only what people wrote matters: the status of a policy is the controller's own. */
function concerned({ before, after }: ObjectChange<KubeObject>, caches: Caches): readonly string[] {
  const written = (object: (KubeObject & { readonly spec?: unknown; readonly room?: number }) | undefined) =>
    object === undefined
      ? undefined
      : [object.metadata.uid, object.spec, ...(object.room === undefined ? [] : [object.metadata.generation])];
  return equalValues(written(before), written(after)) ? [] : builtInPools(caches);
}

const observeObjects = (caches: Caches): RegistryObjects => ({
  image: caches.of(openshift.Image).get(imageConfigName),
  digestMirrorSets: caches.of(openshift.ImageDigestMirrorSet).list(),
  contentSourcePolicies: caches.of(openshift.ImageContentSourcePolicy).list(),
  tagMirrorSets: caches.of(openshift.ImageTagMirrorSet).list(),
  clusterImagePolicies: caches.of(openshift.ClusterImagePolicy).list(),
  imagePolicies: caches.of(openshift.ImagePolicy).list(),
  releaseImage: releaseImageOf(caches.of(openshift.ClusterVersion).list()),
});

/** Whether two policies say the same: their status may differ. */
const isSameVersion = (one: ImagePolicy | undefined, { metadata }: ImagePolicy): one is ImagePolicy =>
  one?.metadata.uid === metadata.uid && one?.metadata.generation === metadata.generation;

/** Reads the large policies that have room. */
async function withLargePolicies(
  objects: RegistryObjects,
  base: RegistriesBase,
  { read }: Pick<RegistriesMemory, "read">,
  context: Context,
): Promise<RegistryObjects> {
  const { kube, signal } = context;
  const unread = policiesToRead({ objects, base });
  if (unread.length === 0) return objects;
  const found = new Map<string, ImagePolicy | undefined>();
  if (read.size > mostRead) read.clear();
  for (const { room: _, ...known } of unread) {
    const { name, namespace = "" } = known.metadata;
    const key = keyOf(known);
    const before = read.get(key);
    // One, by the right to list them.
    const only = { namespace, fieldSelector: `metadata.name=${name}` };
    const policy = isSameVersion(before, known)
      ? before
      : (await kube.list(openshift.ImagePolicy, only, { signal })).items.map(trimPolicy)[0];
    if (policy !== undefined) read.set(key, policy);
    found.set(key, isSameVersion(policy, known) ? { ...policy, ...known } : policy);
  }
  const imagePolicies = objects.imagePolicies.flatMap((known) =>
    found.has(keyOf(known)) ? (found.get(keyOf(known)) ?? []) : known,
  );
  // What was read may be newer, and leave room for others.
  return withLargePolicies({ ...objects, imagePolicies }, base, { read }, context);
}

async function perform(
  decision: RegistriesDecision,
  pool: MachineConfigPool,
  objects: RegistryObjects,
  memory: RegistriesMemory,
  context: Context,
): Promise<Outcome> {
  const { name } = pool.metadata;
  switch (decision.do) {
    case "nothing":
      memory.found.set(name, nothingFound);
      return done();
    case "write": {
      const wait = tenantWait(decision.config, name, memory, context);
      if (wait > 0) return done(wait);
      memory.found.set(name, { problems: decision.leftOut, isWritten: true });
      // The name is this controller's, and was the reference's: its installation wrote it without any mark.
      await writeGenerated(decision.config, fieldManagers.registries, context);
      await writePolicyStatuses(objects, memory, context);
      const found = [...decision.leftOut.map(asRefused), ...decision.warnings.map(asWarned)];
      tellObjects(objects, { pool: name, problems: found }, memory, context);
      reportRecovered(name, memory, context);
      await writeCondition(pool, undefined, context);
      return done();
    }
    case "refuse": {
      const { problems, kept } = decision;
      memory.found.set(name, { problems, isWritten: false });
      if (kept !== undefined) await writeGenerated(kept, fieldManagers.registries, context);
      await writePolicyStatuses(objects, memory, context);
      tellObjects(objects, { pool: name, problems: problems.map(asRefused) }, memory, context);
      const message = problems.slice(0, mostTold).map(problemOf).join("; ");
      reportRefused(name, message, memory, context);
      await writeCondition(pool, message, context);
      return stalled("RegistriesRefused", message);
    }
  }
}

/** Seconds until what tenants changed may be written; 0: now, or something else changes, too. */
function tenantWait(wanted: MachineConfig, pool: string, memory: RegistriesMemory, context: Context): number {
  const { caches, clock, log } = context;
  const has = caches.of(MachineConfig).get(wanted.metadata.name);
  if (has === undefined || isCurrent(has, wanted) || !differByTenants(has, wanted)) return 0;
  const wait = memory.tenantChanges.take(pool, clock.monotonic());
  if (wait > 0) log.info({ pool, waitSeconds: wait }, "image policies of namespaces change often; machines wait");
  return wait;
}

const nothingFound: PolicyFindings = { problems: [], isWritten: true };

/** What is wrong on machines of any pool, first what keeps everything from them; `undefined`: a pool is not decided yet. */
function foundOnAll({ found }: Pick<RegistriesMemory, "found">, caches: Caches): PolicyFindings | undefined {
  const pools = builtInPools(caches);
  for (const pool of found.keys()) if (!pools.includes(pool)) found.delete(pool);
  if (!pools.every((pool) => found.has(pool))) return undefined;
  const all = [...found.values()].toSorted((one, other) => Number(one.isWritten) - Number(other.isWritten));
  const problems = all.flatMap((one) => one.problems);
  return {
    problems: [...new Map(problems.map((problem) => [problemOf(problem), problem])).values()],
    isWritten: all.every(({ isWritten }) => isWritten),
  };
}

/** Says in every image policy whether the machines of all pools get it, and if not, why. */
async function writePolicyStatuses(
  objects: RegistryObjects,
  memory: Pick<RegistriesMemory, "found">,
  context: Context,
): Promise<void> {
  const found = foundOnAll(memory, context.caches);
  if (found === undefined) return;
  const kinds: readonly (readonly [Resource<ImagePolicy>, readonly ImagePolicy[]])[] = [
    [openshift.ClusterImagePolicy, objects.clusterImagePolicies],
    [openshift.ImagePolicy, objects.imagePolicies],
  ];
  const conditionsOf = policyStatuses(objects, found);
  for (const [resource, policies] of kinds)
    for (const cached of policies) await writePolicyStatus(resource, cached, conditionsOf, context);
}

async function writePolicyStatus(
  resource: Resource<ImagePolicy>,
  cached: ImagePolicy,
  conditionsOf: ReturnType<typeof policyStatuses>,
  context: Context,
): Promise<void> {
  const { clock, log } = context;
  const conditions = (policy: ImagePolicy) => conditionsOf(policy, clock.now());
  try {
    await writeConditions(resource, cached, conditions, fieldManagers.registries, context);
  } catch (error) {
    if (!isInvalid(error)) throw error;
    // What the API server refuses of one policy holds up no other one.
    log.warn({ policy: keyOf(cached), error }, "the conditions of an image policy are refused");
  }
}

/** A problem, and the Event that tells it. */
interface Told extends ObjectProblem {
  readonly notice: "RegistriesRefused" | "ReleaseAtRisk" | "RegistriesNotAsWritten";
}
const asRefused = (problem: ObjectProblem): Told => ({ ...problem, notice: "RegistriesRefused" });
const asWarned = (warning: RegistriesWarning): Told => ({
  ...warning,
  notice: warning.concerns === "release" ? "ReleaseAtRisk" : "RegistriesNotAsWritten",
});

/** An Event on each object that is named, unless the last one for the pool, or for another pool, said the same. */
function tellObjects(
  objects: RegistryObjects,
  { pool, problems }: { readonly pool: string; readonly problems: readonly Told[] },
  { told }: RegistriesMemory,
  { report }: Pick<Context, "report">,
): void {
  const byObject = Map.groupBy(problems, ({ object }) => object);
  for (const [name, ofPools] of told) {
    if (!byObject.has(name)) ofPools.delete(pool);
    if (ofPools.size === 0) told.delete(name);
  }
  for (const object of allObjects(objects)) {
    const name = objectNameOf(object);
    const own = byObject.get(name);
    const [first] = own ?? [];
    if (own === undefined || first === undefined) continue;
    const message = problemsText(own);
    const ofPools = told.get(name) ?? new Map<string, string>();
    const isNew = ![...ofPools.values()].includes(message);
    told.set(name, ofPools.set(pool, message));
    if (isNew) report(registriesNoticed(object, first.notice, message));
  }
}

function reportRefused(
  pool: string,
  message: string,
  { refused }: RegistriesMemory,
  { report }: Pick<Context, "report">,
): void {
  if (refused.get(pool) === message) return;
  refused.set(pool, message);
  report(registriesRefused(pool, message));
}

function reportRecovered(pool: string, { refused }: RegistriesMemory, { report }: Pick<Context, "report">): void {
  if (refused.delete(pool)) report(registriesRecovered(pool));
}

/**
 * Degrades the pool, or ends that.
 *
 * @param problem why nothing is written; `undefined`: it is.
 */
async function writeCondition(
  pool: MachineConfigPool,
  problem: string | undefined,
  { kube, clock, signal }: Context,
): Promise<void> {
  const wanted = (object: MachineConfigPool) => {
    const status = registriesStatus(object, problem, clock.now());
    return status === undefined ? undefined : { status };
  };
  await updateObject(kube, MachineConfigPool, pool.metadata, wanted, {
    subresource: "status",
    owner: fieldManagers.registries,
    cached: pool,
    signal,
  });
}
