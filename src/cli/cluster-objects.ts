import {
  ContainerRuntimeConfig,
  ControllerConfig,
  KubeletConfig,
  type KubeObject,
  MachineConfig,
  MachineConfigPool,
  MachineConfiguration,
  MachineOSConfig,
  OSImageStream,
  PinnedImageSet,
  kubernetes,
} from "../api/index.ts";
import { labels, namespace, objects as names } from "../api/names.ts";
import { poolSelects } from "../core/config/pool-selector.ts";
import type { Resource } from "../api/schema/object.ts";
import { openshift } from "../api/foreign/openshift.ts";
import type { ConfigMap, Node } from "../api/foreign/kubernetes.ts";
import { clusterSettingsKinds, objectsOfCluster } from "../core/kubelet/cluster-settings.ts";
import type { ClusterObjects } from "../core/preview/plan-cluster.ts";
import { type SettingsObjects, planSettings } from "../core/preview/plan-settings.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { registryKinds } from "../core/runtime/registry-objects.ts";
import { withRelease } from "../core/render/release-of.ts";
import { builtInPools } from "../operator/manifests.ts";
import { isForbidden, isNotFound } from "../kube/kube-error.ts";
import { systemClock } from "../ports/node/index.ts";
import { absentError } from "./arguments.ts";
import { connect } from "./connect.ts";
import { readSoundManifests } from "./judge-manifest.ts";

const nothing: ClusterObjects = {
  pools: [],
  machineConfigs: [],
  machineConfiguration: undefined,
  controllerConfig: undefined,
  nodes: [],
};

/** The objects of a cluster that decide about its machines. */
export async function objectsInCluster(options: {
  readonly kubeconfig?: string | undefined;
  readonly directory?: string | undefined;
  readonly component: string;
}): Promise<ClusterObjects> {
  const { kube, close } = await connect(options);
  try {
    const [
      pools,
      machineConfigs,
      nodes,
      machineOSConfigs,
      pinnedImageSets,
      osImageStreams,
      machineConfiguration,
      controllerConfig,
      settings,
      buildConfig,
    ] = await Promise.all([
      kube.list(MachineConfigPool),
      kube.list(MachineConfig),
      kube.list(kubernetes.Node),
      // A kind that is not installed has no objects.
      listOf(kube, MachineOSConfig),
      listOf(kube, PinnedImageSet),
      listOf(kube, OSImageStream),
      kube.get(MachineConfiguration, { name: names.machineConfiguration }),
      kube.get(ControllerConfig, { name: names.controllerConfig }),
      settingsInCluster(kube),
      buildConfigOf(kube),
    ]);
    return {
      pools: pools.items,
      machineConfigs: machineConfigs.items,
      nodes: nodes.items,
      machineOSConfigs,
      pinnedImageSets,
      osImageStream: osImageStreams.find(({ metadata }) => metadata.name === names.clusterSingleton),
      machineConfiguration,
      controllerConfig,
      settings,
      buildConfig,
      now: systemClock.now(),
    };
  } finally {
    close();
  }
}

/** `data` of the ConfigMap on-cluster-build-config; `undefined`: there is none, or the user may not read it. */
export async function buildConfigOf(kube: KubeClient): Promise<ConfigMap["data"]> {
  try {
    return (await kube.get(kubernetes.ConfigMap, { name: names.buildConfig, namespace }))?.data;
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

/** The objects of a kind; none where the kind is not installed. */
export async function listOf<T extends KubeObject>(kube: KubeClient, resource: Resource<T>): Promise<readonly T[]> {
  try {
    return (await kube.list(resource)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** What controllers make MachineConfigs of. */
export async function settingsInCluster(kube: KubeClient): Promise<SettingsObjects> {
  const [kubeletConfigs, containerRuntimeConfigs, credentials, ...ofCluster] = await Promise.all([
    listOf(kube, KubeletConfig),
    listOf(kube, ContainerRuntimeConfig),
    listOf(kube, openshift.CRIOCredentialProviderConfig),
    ...clusterSettingsKinds.map((resource) => listOf(kube, resource)),
  ]);
  const byKind = new Map(clusterSettingsKinds.map(({ kind }, i) => [kind, ofCluster[i] ?? []]));
  return {
    kubeletConfigs,
    containerRuntimeConfigs,
    credentials: credentials.find(({ metadata }) => metadata.name === names.clusterSingleton),
    cluster: objectsOfCluster(
      <T extends KubeObject>({ kind }: Resource<T>, name: string) =>
        byKind.get(kind)?.find(({ metadata }) => metadata.name === name) as T | undefined,
    ),
  };
}

/**
 * The same from manifests, without a cluster. If they name no pool, the built-in pools count as far as some
 * MachineConfig selects them.
 */
export function objectsInManifests(manifests: readonly KubeObject[]): ClusterObjects {
  const { after } = overlaid(nothing, manifests, []);
  const found = new Set(after.pools.map(({ metadata }) => metadata.name));
  const builtIn = (builtInPools() as readonly MachineConfigPool[]).filter(
    ({ metadata, spec }) =>
      !found.has(metadata.name) &&
      [...after.machineConfigs, ...(after.pinnedImageSets ?? [])].some((object) =>
        poolSelects(spec.machineConfigSelector, object.metadata.labels),
      ),
  );
  const pools = [...after.pools, ...builtIn];
  return {
    ...after,
    now: systemClock.now(),
    pools,
    // What the controllers of a cluster would have made of them.
    machineConfigs: planSettings(nothing, { ...after, pools }).machineConfigs,
    controllerConfig: named<ControllerConfig>([], manifests, ControllerConfig).find(
      ({ metadata }) => metadata.name === names.controllerConfig,
    ),
    nodes: named<Node>([], manifests, kubernetes.Node),
  };
}

/** The objects of files where some are named, else the cluster's. */
export async function objectsFrom(
  values: {
    readonly filename: readonly string[];
    readonly dir?: string | undefined;
    readonly kubeconfig?: string | undefined;
  },
  component: string,
): Promise<ClusterObjects> {
  if (values.filename.length > 0) return objectsInManifests(readSoundManifests(values.filename));
  return objectsInCluster({ kubeconfig: values.kubeconfig, directory: values.dir, component });
}

/** Kinds from which controllers make MachineConfigs. */
const settingsKinds = [
  KubeletConfig,
  ContainerRuntimeConfig,
  openshift.FeatureGate,
  openshift.ConfigNode,
  openshift.APIServer,
  openshift.CRIOCredentialProviderConfig,
];
const planned = [
  MachineConfig,
  MachineConfigPool,
  MachineConfiguration,
  MachineOSConfig,
  PinnedImageSet,
  OSImageStream,
  ...settingsKinds,
];
export const isOneOf =
  (kinds: readonly Pick<KubeObject, "apiVersion" | "kind">[]) =>
  ({ apiVersion, kind }: KubeObject): boolean =>
    kinds.some((one) => one.kind === kind && one.apiVersion === apiVersion);
/** Whether an object is of a kind that decides in a plan of machines. */
export const isPlanned = isOneOf(planned);

const known = [...planned, ...registryKinds, ControllerConfig, kubernetes.Node, kubernetes.ConfigMap];

/** A kind as messages name it: one with the name of a kind that is known here, and of another group or version, with both. */
export const kindText = ({ apiVersion, kind }: KubeObject): string =>
  known.some((one) => one.kind === kind && one.apiVersion !== apiVersion) ? `${kind} of ${apiVersion}` : kind;

/** The objects of the planned kinds, as far as they were read. */
export function plannedObjects(objects: ClusterObjects): readonly KubeObject[] {
  const { settings } = objects;
  const found: readonly (KubeObject | undefined)[] = [
    ...objects.pools,
    ...objects.machineConfigs,
    ...(objects.machineOSConfigs ?? []),
    ...(objects.pinnedImageSets ?? []),
    objects.osImageStream,
    objects.machineConfiguration,
    ...(settings?.kubeletConfigs ?? []),
    ...(settings?.containerRuntimeConfigs ?? []),
    settings?.credentials,
    settings?.cluster.featureGate,
    settings?.cluster.configNode,
    settings?.cluster.apiServer,
  ];
  return found.filter((object) => object !== undefined);
}

/** Objects of a kind with the manifests of that kind applied. */
function named<T extends KubeObject>(
  list: readonly T[],
  manifests: readonly KubeObject[],
  resource: Resource<T>,
): readonly T[] {
  const changed = new Map(
    manifests.filter(isOneOf([resource])).map((manifest) => [manifest.metadata.name, manifest as T]),
  );
  // The server keeps metadata that a manifest does not set, and fills in the fields that only it knows.
  const merged = list.map((object) => {
    const change = changed.get(object.metadata.name);
    changed.delete(object.metadata.name);
    return change === undefined
      ? object
      : {
          ...change,
          ...statusOf(object),
          metadata: {
            ...object.metadata,
            ...change.metadata,
            labels: { ...object.metadata.labels, ...change.metadata.labels },
          },
        };
  });
  return [...merged, ...changed.values()];
}

/** The status of an object, which another endpoint writes than that for manifests. */
const statusOf = (object: KubeObject): object =>
  "status" in object && object.status !== undefined ? { status: object.status } : {};

/** The streams once a manifest names another default; its status, where it has one, is only for a cluster without any. */
function changedStreams(
  before: OSImageStream | undefined,
  manifests: readonly KubeObject[],
): OSImageStream | undefined {
  const [after] = named(before === undefined ? [] : [before], manifests, OSImageStream);
  if (after === undefined) return undefined;
  const status = before?.status ?? after.status;
  if (status === undefined) return after;
  const { defaultStream } = after.spec;
  const isThere = status.availableStreams.some(({ name }) => name === defaultStream);
  return { ...after, status: { ...status, defaultStream: isThere ? defaultStream : status.defaultStream } };
}

/**
 * The objects as they would be once manifests were applied and some MachineConfigs deleted, and those that play no
 * part in that.
 */
export function overlaid(
  before: ClusterObjects,
  manifests: readonly KubeObject[],
  deleted: readonly string[],
): { readonly after: ClusterObjects; readonly ignored: readonly KubeObject[] } {
  for (const name of deleted)
    if (!before.machineConfigs.some((config) => config.metadata.name === name))
      throw absentError(`there is no MachineConfig "${name}" to delete`);
  const configurations = named(
    before.machineConfiguration === undefined ? [] : [before.machineConfiguration],
    manifests,
    MachineConfiguration,
  );
  return {
    after: {
      ...before,
      // Defaults that the server fills in.
      pools: named(before.pools, manifests, MachineConfigPool).map((pool) => ({
        ...pool,
        spec: (pool.spec as MachineConfigPool["spec"] | undefined) ?? {},
      })),
      machineConfigs: named(before.machineConfigs, manifests, MachineConfig).filter(
        (config) => !deleted.includes(config.metadata.name),
      ),
      machineOSConfigs: named(before.machineOSConfigs ?? [], manifests, MachineOSConfig),
      buildConfig: (manifests.findLast(isBuildConfig) as ConfigMap | undefined)?.data ?? before.buildConfig,
      settings: changedSettings(before.settings, manifests),
      pinnedImageSets: named(before.pinnedImageSets ?? [], manifests, PinnedImageSet),
      osImageStream: changedStreams(before.osImageStream, manifests),
      machineConfiguration: configurations.find(({ metadata }) => metadata.name === names.machineConfiguration),
      controllerConfig:
        before.controllerConfig === undefined
          ? undefined
          : manifests
              .filter(isRelease)
              .reduce<ControllerConfig>(
                (config, manifest) => withRelease(config, (manifest as ConfigMap).data),
                before.controllerConfig,
              ),
    },
    ignored: manifests.filter((manifest) => !isPlanned(manifest) && !isRelease(manifest) && !isBuildConfig(manifest)),
  };
}

/** The same objects where no manifest is one of them. */
function changedSettings(
  before: SettingsObjects = { kubeletConfigs: [], containerRuntimeConfigs: [], cluster: {} },
  manifests: readonly KubeObject[],
): SettingsObjects {
  const own = manifests.filter(isOneOf(settingsKinds));
  if (own.length === 0) return before;
  const only = <T extends KubeObject>(known: T | undefined, resource: Resource<T>) =>
    named(known === undefined ? [] : [known], own, resource).find(
      ({ metadata }) => metadata.name === names.clusterSingleton,
    );
  const { cluster } = before;
  const apiServer = only(undefined, openshift.APIServer);
  return {
    kubeletConfigs: named(before.kubeletConfigs, own, KubeletConfig),
    containerRuntimeConfigs: named(before.containerRuntimeConfigs, own, ContainerRuntimeConfig),
    credentials: only(before.credentials, openshift.CRIOCredentialProviderConfig),
    cluster: {
      ...cluster,
      featureGate: only(cluster.featureGate, openshift.FeatureGate),
      configNode: only(cluster.configNode, openshift.ConfigNode),
      ...(apiServer === undefined ? {} : { apiServer, tlsProfile: apiServer.spec?.tlsSecurityProfile }),
    },
  };
}

const isOwnMap =
  (name: string) =>
  ({ apiVersion, kind, metadata }: KubeObject): boolean =>
    apiVersion === kubernetes.ConfigMap.apiVersion &&
    kind === kubernetes.ConfigMap.kind &&
    metadata.name === name &&
    metadata.namespace === namespace;

/** The ConfigMap in which a release names the OS image of all machines. */
const isRelease = isOwnMap(names.osImageConfigMap);

/** The ConfigMap with the settings of image builds. */
const isBuildConfig = isOwnMap(names.buildConfig);

/** The requested pools; all pools if none is named. */
export function requestedPools(objects: ClusterObjects, asked: readonly string[]): readonly MachineConfigPool[] {
  if (asked.length === 0) return objects.pools;
  return asked.map((name) => {
    const pool = objects.pools.find(({ metadata }) => metadata.name === name);
    if (pool === undefined)
      throw absentError(
        `there is no pool "${name}"; there ${objects.pools.length === 0 ? "is none" : `are ${objects.pools.map(({ metadata }) => metadata.name).join(", ")}`}. Pools select MachineConfigs by the label ${labels.role}`,
      );
    return pool;
  });
}
