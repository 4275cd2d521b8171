import {
  ControllerConfig,
  type KubeObject,
  MachineConfig,
  MachineConfigPool,
  MachineConfiguration,
  MachineOSConfig,
  kubernetes,
} from "../api/index.ts";
import { labels, namespace, objects as names } from "../api/names.ts";
import { selectorMatches } from "../api/schema/object.ts";
import type { ConfigMap, Node } from "../api/foreign/kubernetes.ts";
import type { ClusterObjects } from "../core/preview/plan-cluster.ts";
import { withRelease } from "../core/render/release-of.ts";
import { builtInPools } from "../operator/manifests.ts";
import { isNotFound } from "../kube/kube-error.ts";
import { usageError } from "./arguments.ts";
import { connect } from "./connect.ts";
import { readManifests } from "./manifests.ts";

/** Options of every command that reads a cluster or a folder in its place. */
export const sourceOptions = {
  filename: { type: "string", short: "f", multiple: true },
  dir: { type: "string" },
  kubeconfig: { type: "string" },
} as const;

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
    const [pools, machineConfigs, nodes, machineOSConfigs, machineConfiguration, controllerConfig] = await Promise.all([
      kube.list(MachineConfigPool),
      kube.list(MachineConfig),
      kube.list(kubernetes.Node),
      kube.list(MachineOSConfig).catch((error: unknown) => {
        // A kind that is not installed: no pool boots images.
        if (isNotFound(error)) return { items: [] };
        throw error;
      }),
      kube.get(MachineConfiguration, { name: names.machineConfiguration }),
      kube.get(ControllerConfig, { name: names.controllerConfig }),
    ]);
    return {
      pools: pools.items,
      machineConfigs: machineConfigs.items,
      nodes: nodes.items,
      machineOSConfigs: machineOSConfigs.items,
      machineConfiguration,
      controllerConfig,
    };
  } finally {
    close();
  }
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
      after.machineConfigs.some((config) => selectorMatches(spec.machineConfigSelector, config.metadata.labels)),
  );
  return {
    ...after,
    pools: [...after.pools, ...builtIn],
    controllerConfig: named<ControllerConfig>([], manifests, "ControllerConfig").find(
      ({ metadata }) => metadata.name === names.controllerConfig,
    ),
    nodes: named<Node>([], manifests, "Node"),
  };
}

/** The objects of files where some are named, else the cluster's. */
export async function objectsFrom(
  values: {
    readonly filename?: readonly string[] | undefined;
    readonly dir?: string | undefined;
    readonly kubeconfig?: string | undefined;
  },
  component: string,
): Promise<ClusterObjects> {
  if (values.filename !== undefined && values.filename.length > 0)
    return objectsInManifests(readManifests(values.filename));
  return objectsInCluster({ kubeconfig: values.kubeconfig, directory: values.dir, component });
}

const planned = ["MachineConfig", "MachineConfigPool", "MachineConfiguration", "MachineOSConfig"];

/** Objects of a kind with the manifests of that kind applied. */
function named<T extends KubeObject>(list: readonly T[], manifests: readonly KubeObject[], kind: string): readonly T[] {
  const changed = new Map(
    manifests.filter((manifest) => manifest.kind === kind).map((manifest) => [manifest.metadata.name, manifest as T]),
  );
  // The server keeps what a manifest does not say of metadata, and fills in what only it knows.
  const merged = list.map((object) => {
    const change = changed.get(object.metadata.name);
    changed.delete(object.metadata.name);
    return change === undefined
      ? object
      : {
          ...change,
          metadata: {
            ...object.metadata,
            ...change.metadata,
            labels: { ...object.metadata.labels, ...change.metadata.labels },
          },
        };
  });
  return [...merged, ...changed.values()];
}

/**
 * The objects as they would be once manifests were applied and some MachineConfigs deleted, and the kinds that play no
 * part in that.
 */
export function overlaid(
  before: ClusterObjects,
  manifests: readonly KubeObject[],
  deleted: readonly string[],
): { readonly after: ClusterObjects; readonly ignored: readonly string[] } {
  for (const name of deleted)
    if (!before.machineConfigs.some((config) => config.metadata.name === name))
      throw usageError(`there is no MachineConfig "${name}" to delete`);
  const configurations = named(
    before.machineConfiguration === undefined ? [] : [before.machineConfiguration],
    manifests,
    "MachineConfiguration",
  );
  return {
    after: {
      ...before,
      // Defaults that the server fills in.
      pools: named(before.pools, manifests, "MachineConfigPool").map((pool) => ({
        ...pool,
        spec: (pool.spec as MachineConfigPool["spec"] | undefined) ?? {},
      })),
      machineConfigs: named(before.machineConfigs, manifests, "MachineConfig").filter(
        (config) => !deleted.includes(config.metadata.name),
      ),
      machineOSConfigs: named(before.machineOSConfigs ?? [], manifests, "MachineOSConfig"),
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
    ignored: [
      ...new Set(
        manifests
          .filter((manifest) => !planned.includes(manifest.kind) && !isRelease(manifest))
          .map(({ kind }) => kind),
      ),
    ],
  };
}

/** The ConfigMap in which a release names the OS image of all machines. */
const isRelease = ({ kind, metadata }: KubeObject) =>
  kind === "ConfigMap" && metadata.name === names.osImageConfigMap && metadata.namespace === namespace;

/** The pools that were asked for; all of them when none was. */
export function poolsAsked(objects: ClusterObjects, asked: readonly string[]): readonly MachineConfigPool[] {
  if (asked.length === 0) return objects.pools;
  return asked.map((name) => {
    const pool = objects.pools.find(({ metadata }) => metadata.name === name);
    if (pool === undefined)
      throw usageError(
        `there is no pool "${name}"; there ${objects.pools.length === 0 ? "is none" : `are ${objects.pools.map(({ metadata }) => metadata.name).join(", ")}`}. Pools select MachineConfigs by the label ${labels.role}`,
      );
    return pool;
  });
}
