import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { ConfigMap, Secret } from "../../api/foreign/kubernetes.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, configGroup, namespace, objects } from "../../api/names.ts";
import { type KubeObject, keyOf, selectorMatches } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { baseConfigs, textOfBase64 } from "../render/base-configs.ts";
import {
  type ClusterSources,
  type SourceKind,
  controllerConfigOf,
  sourceKinds,
} from "../render/controller-config-of.ts";
import { problemsOfPool } from "../preview/judge-admission.ts";
import { releaseOf } from "../render/release-of.ts";
import { renderForPool } from "../render/render-for-pool.ts";

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
  /** Image of the suite; the release's too, where nobody names another. */
  readonly image: string;
  readonly releaseImage?: string;
  /** The pools that every cluster has. */
  readonly builtInPools: readonly KubeObject[];
}

const pullSecretKey = "openshift-config/pull-secret";
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

  const cluster = <T extends KubeObject>(kind: SourceKind) =>
    ofKind<T>(found, kind).find(
      ({ object }) => object.metadata.name === "cluster" && object.apiVersion.startsWith(`${configGroup}/`),
    )?.object;
  const present: Partial<Record<SourceKind, KubeObject | undefined>> = Object.fromEntries(
    sourceKinds.map((kind) => [kind, cluster(kind)]),
  );
  const made = controllerConfigOf(
    {
      kinds: new Set(sourceKinds.filter((kind) => present[kind] !== undefined)),
      infrastructure: present.Infrastructure,
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
    } satisfies ClusterSources,
    undefined,
  );
  if (made.verdict === "waiting")
    return {
      verdict: "refused",
      problems: [
        {
          place: "",
          path: "",
          reason: `the cluster would be ${made.message}`,
          remedy: "put what is missing into the folder: nothing comes later here",
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
        remedy: "mend it in the folder: there is nothing older to keep",
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
  const secret = ofKind<Secret>(found, "Secret").find(({ object }) => keyOf(object) === pullSecretKey)?.object;
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
  return { verdict: "made", files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)), notes: [] };
}

/**
 * Renders every pool of a folder of manifests, without an API server: with the functions, and so to the names and
 * bytes, of the controllers on the cluster. Members that are generated are not written: the cluster makes them again
 * itself.
 */
export function bootstrapController(
  inputs: readonly BootstrapInput[],
  { version, generatorVersion, builtInPools }: BootstrapOptions,
): Bootstrapped {
  const { objects: found, problems: duplicates } = distinct(inputs, builtInPools);
  const problems: BootstrapProblem[] = [...duplicates];
  const settings = ofKind<ControllerConfig>(found, "ControllerConfig").find(
    ({ object }) => object.metadata.name === objects.controllerConfig,
  );
  if (settings === undefined)
    problems.push({
      place: "",
      path: "",
      reason: `the folder holds no ControllerConfig ${objects.controllerConfig}`,
      remedy: "make one with `mco operator bootstrap`",
    });
  const by = settings?.object.metadata.annotations?.[annotations.generatedByVersion] ?? version;
  if (settings !== undefined && by !== version) {
    problems.push({
      place: settings.place,
      path: `metadata.annotations[${annotations.generatedByVersion}]`,
      reason: `the ControllerConfig is of version ${by}, and this controller is ${version}: the cluster would not render from it`,
      remedy: `make it with \`mco operator bootstrap\` of version ${version}`,
    });
  }
  const pools = ofKind<MachineConfigPool>(found, "MachineConfigPool");
  // Those that every cluster has come with the operator, whether the folder names them or not.
  const added = (builtInPools as readonly MachineConfigPool[])
    .filter((builtIn) => !pools.some(({ object }) => object.metadata.name === builtIn.metadata.name))
    .map((object) => ({ object, place: "" }));
  for (const { object, place } of pools)
    problems.push(
      ...problemsOfPool(object).flatMap(({ severity, path, reason, remedy }) =>
        severity === "error"
          ? [{ place, path, reason: `${idOf(object)}: ${reason}`, ...(remedy === undefined ? {} : { remedy }) }]
          : [],
      ),
    );

  const written = ofKind<MachineConfig>(found, "MachineConfig");
  const secret = ofKind<Secret & { readonly stringData?: Readonly<Record<string, string>> }>(found, "Secret").find(
    ({ object }) => keyOf(object) === pullSecretKey,
  )?.object;
  const encoded = secret?.data?.[".dockerconfigjson"];
  if (settings === undefined) return { verdict: "refused", problems };
  const controllerConfig: ControllerConfig = {
    ...settings.object,
    metadata: {
      ...settings.object.metadata,
      annotations: { ...settings.object.metadata.annotations, [annotations.generatedByVersion]: version },
    },
  };
  const base = baseConfigs({
    controllerConfig,
    pullSecret:
      secret?.stringData?.[".dockerconfigjson"] ?? (encoded === undefined ? undefined : textOfBase64(encoded)),
    generatorVersion,
  });
  for (const { object, place } of written) {
    if (base.some(({ metadata }) => metadata.name === object.metadata.name))
      problems.push({
        place,
        path: "metadata.name",
        reason: `the cluster makes the MachineConfig ${object.metadata.name} itself`,
        remedy: "give yours another name",
      });
  }

  const members = [...base, ...written.map(({ object }) => object)];
  const files: BootstrapFile[] = [];
  const notes: string[] = [];
  for (const { object: pool, place } of [...pools, ...added].sort((a, b) => byName(a.object, b.object))) {
    const own = members.filter((config) => selectorMatches(pool.spec.machineConfigSelector, config.metadata.labels));
    const result = renderForPool({ pool, members: own, controllerConfig, generatorVersion }, undefined);
    if (result.verdict === "refused") {
      for (const { member, path, reason, remedy } of result.refusals) {
        problems.push({
          place: written.find(({ object }) => object.metadata.name === member)?.place ?? place,
          path: path ?? "",
          reason: `pool ${pool.metadata.name}: ${reason}`,
          ...(remedy === undefined ? {} : { remedy }),
        });
      }
      continue;
    }
    notes.push(...result.warnings.map(({ reason }) => `pool ${pool.metadata.name}: ${reason}`));
    // Who owns it only the cluster knows; its controller says so when it comes.
    const { ownerReferences: _, ...metadata } = result.config.metadata;
    const config = { ...result.config, metadata };
    const configuration = { name: metadata.name, source: result.source.map(({ uid: __, ...reference }) => reference) };
    files.push({ path: `machine-configs/${metadata.name}.yaml`, object: config });
    files.push({
      path: `machine-pools/${pool.metadata.name}.yaml`,
      object: {
        ...pool,
        spec: { ...pool.spec, configuration },
        status: { ...pool.status, configuration },
      } as KubeObject,
    });
  }
  if (problems.length > 0) return { verdict: "refused", problems: sorted(problems) };
  files.push({ path: `controller-config/${objects.controllerConfig}.yaml`, object: controllerConfig });
  return {
    verdict: "made",
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    notes: [...new Set(notes)].sort(),
  };
}

/** The same list whatever the order in which files were read; the same finding of two pools stands for each. */
const sorted = (problems: readonly BootstrapProblem[]) =>
  problems.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
