import { pushAll } from "../../api/schema/push-all.ts";
import { base64OfText } from "../text/base64-of-text.ts";
import { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { ConfigMap, Secret } from "../../api/foreign/kubernetes.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, configGroup, namespace, objects } from "../../api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { baseConfigs } from "../render/base-configs.ts";
import {
  type ClusterSources,
  type SourceKind,
  controllerConfigOf,
  sourceKinds,
} from "../render/controller-config-of.ts";
import { objectsOfCluster } from "../kubelet/cluster-settings.ts";
import { type PlannedSettings, type SettingsObjects, planSettings } from "../preview/plan-settings.ts";
import { poolSelects } from "../config/pool-selector.ts";
import { problemsOfPool } from "../pool/judge-pool.ts";
import { type AroundRegistries, type PlannedRegistries, planRegistries } from "../preview/plan-registries.ts";
import { problemOf } from "../runtime/decide-registries.ts";
import { isRegistryObject, noRegistries, objectNameOf, withRegistryManifests } from "../runtime/registry-objects.ts";
import { isOpenShiftInFolder, openshiftNamespaces } from "../render/openshift-inputs.ts";
import { pullSecretKey, pullSecretOf } from "../render/pull-secret.ts";
import { releaseOf } from "../render/release-of.ts";
import { renderForPool } from "../render/render-for-pool.ts";
import { defined } from "../../api/schema/defined.ts";

/** An object and where it was read, for messages. */
export interface BootstrapInput {
  readonly object: KubeObject;
  readonly place: string;
}

export interface BootstrapProblem {
  /** Where the object was read; empty where something is missing. */
  readonly place: string;
  readonly path: string;
  /** A sentence without a final full stop. */
  readonly reason: string;
  readonly remedy?: string;
}

/** A manifest and the path that it is written to, below the destination. */
export interface BootstrapFile {
  readonly path: string;
  readonly object: KubeObject;
}

export type Bootstrapped =
  | { readonly verdict: "made"; readonly files: readonly BootstrapFile[]; readonly notes: readonly string[] }
  | { readonly verdict: "refused"; readonly problems: readonly BootstrapProblem[] };

export interface BootstrapOptions {
  readonly version: string;
  readonly generatorVersion: string;
  /** Image of the suite; also the release's, unless another is named. */
  readonly image: string;
  readonly releaseImage?: string;
  /** The pools that every cluster has. */
  readonly builtInPools: readonly KubeObject[];
}

const idOf = (object: KubeObject) => `${object.kind} ${keyOf(object)}`;
const byName = (a: KubeObject, b: KubeObject) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0);

/**
 * One object for each name, whatever the order in which they were read: equal ones count once, and a built-in pool
 * gives way to the administrator's.
 */
function distinct(
  inputs: readonly BootstrapInput[],
  builtInPools: readonly KubeObject[],
): { readonly objects: ReadonlyMap<string, BootstrapInput>; readonly problems: readonly BootstrapProblem[] } {
  const found = new Map<string, BootstrapInput[]>();
  for (const input of inputs) {
    const id = idOf(input.object);
    const same = found.get(id) ?? [];
    if (!same.some(({ object }) => equalValues(object, input.object))) same.push(input);
    found.set(id, same);
  }
  const problems: BootstrapProblem[] = [];
  const kept = new Map<string, BootstrapInput>();
  for (const [id, same] of found) {
    const builtIn = builtInPools.find((pool) => idOf(pool) === id) as MachineConfigPool | undefined;
    const own =
      builtIn === undefined || same.length === 1
        ? same
        : same.filter(({ object }) => !equalValues((object as MachineConfigPool).spec, builtIn.spec));
    const [first, second] = own.length === 0 ? same : own;
    if (first !== undefined) kept.set(id, first);
    if (own.length > 1 && second !== undefined && first !== undefined) {
      const [one, other] = [first.place, second.place].sort();
      problems.push({
        place: other ?? "",
        path: "metadata.name",
        reason: `${id} stands in ${one} too, with other contents, and only one of the two can count`,
        remedy: "take one of them out",
      });
    }
  }
  return { objects: kept, problems };
}

const ofKind = <T extends KubeObject>(
  found: ReadonlyMap<string, BootstrapInput>,
  kind: string,
): readonly { readonly object: T; readonly place: string }[] =>
  [...found.values()]
    .flatMap(({ object, place }) => (object.kind === kind ? [{ object: object as T, place }] : []))
    .sort((a, b) => byName(a.object, b.object));

const byPath = (files: readonly BootstrapFile[]) => files.toSorted((a, b) => (a.path < b.path ? -1 : 1));

/**
 * What the operator gives the very first machines, from the objects that an installer has: ControllerConfig and pools.
 * The same functions make them on the cluster afterwards.
 */
export function bootstrapOperator(
  inputs: readonly BootstrapInput[],
  { version, image, releaseImage, builtInPools }: BootstrapOptions,
): Bootstrapped {
  const { objects: found, problems } = distinct(inputs, builtInPools);
  if (problems.length > 0) return { verdict: "refused", problems };
  const read = bootstrapSources(found, { version, image, ...defined({ releaseImage }) });
  if (read.verdict === "refused") return read;
  const made = controllerConfigOf(read.sources, undefined);
  if (made.verdict === "waiting")
    return {
      verdict: "refused",
      problems: [
        {
          place: "",
          path: "",
          reason: `the cluster would be ${made.message}`,
          remedy: "add the missing objects to the folder: nothing is added later",
        },
      ],
    };
  if (made.problems.length > 0)
    return {
      verdict: "refused",
      problems: made.problems.map((reason) => ({
        place: "",
        path: "",
        reason,
        remedy: "correct it in the folder: there is nothing older to keep",
      })),
    };

  const controllerConfig: KubeObject = {
    apiVersion: ControllerConfig.apiVersion,
    kind: ControllerConfig.kind,
    metadata: {
      name: objects.controllerConfig,
      annotations: { [annotations.generatedByVersion]: version, [annotations.releaseImageVersion]: version },
    },
    spec: made.spec,
  } as KubeObject;
  const secret = pullSecretIn(found, made)?.object;
  const files: BootstrapFile[] = [
    { path: "bootstrap/manifests/machineconfigcontroller-controllerconfig.yaml", object: controllerConfig },
    ...builtInPools.map((pool) => ({
      path: `bootstrap/manifests/${pool.metadata.name}.machineconfigpool.yaml`,
      object: pool,
    })),
    ...(secret === undefined
      ? []
      : [{ path: "bootstrap/manifests/machineconfigcontroller-pull-secret.yaml", object: secret }]),
  ];
  return { verdict: "made", files: byPath(files), notes: [] };
}

/** What the ControllerConfig is made from, where no cluster exists yet. */
function bootstrapSources(
  found: ReadonlyMap<string, BootstrapInput>,
  { version, image, releaseImage }: Pick<BootstrapOptions, "version" | "image" | "releaseImage">,
):
  | { readonly verdict: "read"; readonly sources: ClusterSources }
  | { readonly verdict: "refused"; readonly problems: readonly BootstrapProblem[] } {
  const maps = new Map(
    ofKind<ConfigMap>(found, "ConfigMap").map(({ object, place }) => [keyOf(object), { object, place }]),
  );
  const osImages = maps.get(`${namespace}/${objects.osImageConfigMap}`);
  const release = releaseOf(osImages?.object.data, version, undefined);
  if (release.verdict !== "known")
    return {
      verdict: "refused",
      problems: [
        {
          place: osImages?.place ?? "",
          path: osImages === undefined ? "" : "data",
          reason: release.message,
          remedy: `put the ConfigMap ${namespace}/${objects.osImageConfigMap} of release ${version} into the folder, with baseOSContainerImage`,
        },
      ],
    };
  const clusterObject = (kind: SourceKind) =>
    ofKind<KubeObject>(found, kind).find(
      ({ object }) => object.metadata.name === "cluster" && object.apiVersion.startsWith(`${configGroup}/`),
    )?.object;
  const present: Partial<Record<SourceKind, KubeObject | undefined>> = Object.fromEntries(
    sourceKinds.map((kind) => [kind, clusterObject(kind)]),
  );
  return {
    verdict: "read",
    sources: {
      kinds: new Set(sourceKinds.filter((kind) => present[kind] !== undefined)),
      infrastructure: present.Infrastructure,
      isInstallers: [...found.values()].some(({ object }) => object.metadata.namespace === openshiftNamespaces.config),
      network: present.Network,
      dns: present.DNS,
      proxy: present.Proxy,
      image: present.Image,
      dnsServiceAddresses: [],
      configMaps: new Map([...maps].map(([key, { object }]) => [key, object])),
      // Machines have nothing yet.
      bringUp: true,
      release: release.images,
      suiteImage: image,
      releaseImage: releaseImage ?? image,
    },
  };
}

type BootstrapSecret = Secret & { readonly stringData?: Readonly<Record<string, string>> };

/** Where the pull secret lies, as the ControllerConfig says. */
const pullSecretPlace = (controllerConfig: Pick<ControllerConfig, "spec">) =>
  pullSecretKey(isOpenShiftInFolder(controllerConfig));

const pullSecretIn = (
  found: ReadonlyMap<string, BootstrapInput>,
  controllerConfig: Pick<ControllerConfig, "spec">,
): Placed<BootstrapSecret> | undefined => {
  const key = keyOf({ metadata: pullSecretPlace(controllerConfig) });
  return ofKind<BootstrapSecret>(found, "Secret").find(({ object }) => keyOf(object) === key);
};

/** An object and where it was read. */
interface Placed<T> {
  readonly object: T;
  readonly place: string;
}

/**
 * Renders every pool of a folder of manifests, without an API server: with the functions, and so to the names and
 * bytes, of the controllers on the cluster. Members that are generated are not written: the cluster makes them again
 * itself.
 */
export function bootstrapController(
  inputs: readonly BootstrapInput[],
  { version, generatorVersion, builtInPools, releaseImage }: BootstrapOptions,
): Bootstrapped {
  const { objects: found, problems: duplicates } = distinct(inputs, builtInPools);
  const settings = ofKind<ControllerConfig>(found, "ControllerConfig").find(
    ({ object }) => object.metadata.name === objects.controllerConfig,
  );
  const pools = ofKind<MachineConfigPool>(found, "MachineConfigPool");
  const problems = [...duplicates, ...settingsProblems(settings, version), ...poolProblems(pools)];
  if (settings === undefined) return { verdict: "refused", problems };

  const controllerConfig = generatedBy(settings.object, version);
  const secret = pullSecretIn(found, controllerConfig);
  const judged = pullSecretOf(secret === undefined ? undefined : asStored(secret.object));
  if (judged.verdict === "refused")
    problems.push({
      place: secret?.place ?? "",
      path: "data",
      reason: `the Secret ${keyOf({ metadata: pullSecretPlace(controllerConfig) })} cannot be used: ${judged.problem}`,
    });
  const pullSecret = judged.verdict === "read" ? judged.text : undefined;
  const base = baseConfigs({ controllerConfig, pullSecret, generatorVersion });
  const written = ofKind<MachineConfig>(found, "MachineConfig");
  pushAll(problems, nameProblems(written, base));

  // The built-in pools come with the operator, whether the folder names them or not.
  const added = (builtInPools as readonly MachineConfigPool[])
    .filter((builtIn) => !pools.some(({ object }) => object.metadata.name === builtIn.metadata.name))
    .map((object) => ({ object, place: "" }));
  const registries = bootstrapRegistries(found, releaseImage, {
    pools: [...pools, ...added].map(({ object }) => object),
    machineConfigs: [...base, ...written.map(({ object }) => object)],
    controllerConfig,
  });
  pushAll(problems, registries.problems);
  const generated = bootstrapSettings(found, version, {
    pools: [...pools, ...added].map(({ object }) => object),
    machineConfigs: registries.machineConfigs,
  });
  pushAll(problems, generated.problems);
  const members = generated.machineConfigs;
  const rendered = [...pools, ...added]
    .sort((a, b) => byName(a.object, b.object))
    .map((pool) => renderedPool(pool, { members, written, controllerConfig, generatorVersion }));
  pushAll(
    problems,
    rendered.flatMap((pool) => pool.problems),
  );
  if (problems.length > 0) return { verdict: "refused", problems: sorted(problems) };
  const files: BootstrapFile[] = [
    ...rendered.flatMap((pool) => pool.files),
    { path: `controller-config/${objects.controllerConfig}.yaml`, object: controllerConfig },
  ];
  const notes = [...registries.warnings, ...generated.warnings, ...rendered.flatMap((pool) => pool.notes)];
  return { verdict: "made", files: byPath(files), notes: [...new Set(notes)].sort() };
}

/** MachineConfigs with those that mirror sets, image policies and the Image config of the folder make. */
function bootstrapRegistries(
  found: ReadonlyMap<string, BootstrapInput>,
  releaseImage: string | undefined,
  around: AroundRegistries,
): Pick<PlannedRegistries, "machineConfigs" | "warnings"> & { readonly problems: readonly BootstrapProblem[] } {
  const given = [...found.values()].filter(({ object }) => isRegistryObject(object));
  if (given.length === 0) return { machineConfigs: around.machineConfigs, warnings: [], problems: [] };
  const objects_ = withRegistryManifests(given.map(({ object }) => object));
  const planned = planRegistries({ before: noRegistries, after: { ...objects_, releaseImage } }, around);
  const placeOf = (name: string) => given.find(({ object }) => objectNameOf(object) === name)?.place ?? "";
  return {
    machineConfigs: planned.machineConfigs,
    warnings: [...planned.leftOut.map(problemOf), ...planned.warnings],
    problems: planned.refusals.map(({ object, path, reason, remedy }) => ({
      place: placeOf(object),
      path,
      reason: `${object}: ${reason}`,
      ...defined({ remedy }),
    })),
  };
}

/**
 * MachineConfigs with those that the kubelets' and the container engines' settings of the folder make: KubeletConfigs,
 * ContainerRuntimeConfigs, the CRIOCredentialProviderConfig, and the cluster's own objects.
 */
function bootstrapSettings(
  found: ReadonlyMap<string, BootstrapInput>,
  version: string,
  around: Pick<AroundRegistries, "pools" | "machineConfigs">,
): PlannedSettings & { readonly problems: readonly BootstrapProblem[] } {
  const placed = <T extends KubeObject>({ kind, apiVersion }: Resource<T>) =>
    ofKind<T>(found, kind).filter(({ object }) => object.apiVersion === apiVersion);
  const all = <T extends KubeObject>(resource: Resource<T>) => placed(resource).map(({ object }) => object);
  const named = <T extends KubeObject>(resource: Resource<T>, name: string) =>
    all(resource).find(({ metadata }) => metadata.name === name);
  const settings: SettingsObjects = {
    kubeletConfigs: all(KubeletConfig),
    containerRuntimeConfigs: all(ContainerRuntimeConfig),
    credentials: named(openshift.CRIOCredentialProviderConfig, objects.clusterSingleton),
    // The cluster is going to run this release, whether its ClusterVersion is there yet.
    cluster: { ...objectsOfCluster(named), version },
  };
  const planned = planSettings(around, { ...around, settings });
  const placeOf = (name: string) =>
    [...found.values()].find(({ object }) => objectNameOf(object) === name)?.place ?? "";
  return {
    ...planned,
    problems: planned.refusals.map(({ object, path, reason }) => ({
      place: placeOf(object),
      path,
      reason: `${object}: ${reason}`,
    })),
  };
}

function settingsProblems(
  settings: Placed<ControllerConfig> | undefined,
  version: string,
): readonly BootstrapProblem[] {
  if (settings === undefined)
    return [
      {
        place: "",
        path: "",
        reason: `the folder holds no ControllerConfig ${objects.controllerConfig}`,
        remedy: "make one with `mco operator bootstrap`",
      },
    ];
  const by = settings.object.metadata.annotations?.[annotations.generatedByVersion] ?? version;
  if (by === version) return [];
  return [
    {
      place: settings.place,
      path: `metadata.annotations[${annotations.generatedByVersion}]`,
      reason: `the ControllerConfig is of version ${by}, and this controller is ${version}: the cluster would not render from it`,
      remedy: `make it with \`mco operator bootstrap\` of version ${version}`,
    },
  ];
}

const poolProblems = (pools: readonly Placed<MachineConfigPool>[]): readonly BootstrapProblem[] =>
  pools.flatMap(({ object, place }) =>
    problemsOfPool(object).flatMap(({ severity, path, reason, remedy }) =>
      severity === "error" ? [{ place, path, reason: `${idOf(object)}: ${reason}`, ...defined({ remedy }) }] : [],
    ),
  );

/** MachineConfigs of the folder with a name that the cluster gives to one of its own. */
const nameProblems = (
  written: readonly Placed<MachineConfig>[],
  base: readonly MachineConfig[],
): readonly BootstrapProblem[] =>
  written
    .filter(({ object }) => base.some(({ metadata }) => metadata.name === object.metadata.name))
    .map(({ object, place }) => ({
      place,
      path: "metadata.name",
      reason: `the cluster makes the MachineConfig ${object.metadata.name} itself`,
      remedy: "give yours another name",
    }));

const generatedBy = (config: ControllerConfig, version: string): ControllerConfig => ({
  ...config,
  metadata: {
    ...config.metadata,
    annotations: { ...config.metadata.annotations, [annotations.generatedByVersion]: version },
  },
});

/** A manifest may have its text as it is. */
const asStored = ({ stringData = {}, data, ...rest }: BootstrapSecret): Secret => ({
  ...rest,
  data: {
    ...data,
    ...Object.fromEntries(Object.entries(stringData).map(([key, text]) => [key, base64OfText(text)])),
  },
});

interface RenderedPool {
  readonly files: readonly BootstrapFile[];
  readonly notes: readonly string[];
  readonly problems: readonly BootstrapProblem[];
}

function renderedPool(
  { object: pool, place }: Placed<MachineConfigPool>,
  {
    members,
    written,
    controllerConfig,
    generatorVersion,
  }: {
    readonly members: readonly MachineConfig[];
    readonly written: readonly Placed<MachineConfig>[];
    readonly controllerConfig: ControllerConfig;
    readonly generatorVersion: string;
  },
): RenderedPool {
  const own = members.filter((config) => poolSelects(pool.spec.machineConfigSelector, config.metadata.labels));
  const result = renderForPool({ pool, members: own, controllerConfig, generatorVersion }, undefined);
  if (result.verdict === "refused")
    return {
      files: [],
      notes: [],
      problems: result.refusals.map(({ member, path, reason, remedy }) => ({
        place: written.find(({ object }) => object.metadata.name === member)?.place ?? place,
        path: path ?? "",
        reason: `pool ${pool.metadata.name}: ${reason}`,
        ...defined({ remedy }),
      })),
    };
  // Only the cluster knows the owner; its controller adds it.
  const { ownerReferences: _, ...metadata } = result.config.metadata;
  const configuration = { name: metadata.name, source: result.source.map(({ uid: __, ...reference }) => reference) };
  const pointing = {
    ...pool,
    spec: { ...pool.spec, configuration },
    status: { ...pool.status, configuration },
  } as KubeObject;
  return {
    files: [
      { path: `machine-configs/${metadata.name}.yaml`, object: { ...result.config, metadata } },
      { path: `machine-pools/${pool.metadata.name}.yaml`, object: pointing },
    ],
    notes: result.warnings.map(({ reason }) => `pool ${pool.metadata.name}: ${reason}`),
    problems: [],
  };
}

/** The same list whatever the order in which files were read; the same finding of two pools stands for each. */
const sorted = (problems: readonly BootstrapProblem[]) =>
  problems.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
