import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { generatedConfig } from "../render/generated-config.ts";
import { cgroupArguments } from "./cgroup-arguments.ts";
import type { ClusterSettings, ObjectsOfCluster } from "./cluster-settings.ts";
import type { FieldProblem } from "./decode-go.ts";
import type { BaseReading } from "./kubelet-base.ts";
import { kubeletConfPath, kubeletConfText } from "./kubelet-config.ts";

/** Objects of the cluster that every pool's kubelets follow; absent ones make nothing. */
export interface DefaultsView {
  readonly pool: string;
  readonly objects: ObjectsOfCluster;
  readonly settings: ClusterSettings;
  readonly base: BaseReading;
  readonly generatorVersion: string;
}

export interface DefaultsDecision {
  readonly configs: readonly MachineConfig[];
  /** What is wrong, and in which object. */
  readonly problems: readonly (FieldProblem & { readonly object: KubeObject })[];
}

/** The objects that own such configs, by the config's name. */
export const defaultsOwners = (
  pool: string,
  { apiServer, configNode, featureGate }: ObjectsOfCluster,
): ReadonlyMap<string, KubeObject | undefined> =>
  new Map([
    [tlsDefaults(pool), apiServer],
    [nodeDefaults(pool), configNode],
    [gateDefaults(pool), featureGate],
  ]);

/**
 * The configs that a pool's kubelets have from the cluster's own objects: 97 from the config Node, 98 from the gates.
 * Each holds all of kubelet.conf. Where a cluster has neither, the API server's TLS profile alone makes 96.
 */
export function decideDefaults(view: DefaultsView): DefaultsDecision {
  const { pool, objects, settings, base, generatorVersion } = view;
  const { apiServer, configNode, featureGate } = objects;
  const isAlone = configNode === undefined && featureGate === undefined;
  const profile = isAlone && (objects.tlsProfile ?? undefined) !== undefined ? apiServer : undefined;
  const owners = [profile, configNode, featureGate].filter((object) => object !== undefined);
  if (base.verdict === "refused")
    return {
      configs: [],
      problems: owners.map((object) => ({ object, path: `pool ${pool}`, reason: base.reason })),
    };
  const files = [{ path: base.path ?? kubeletConfPath, mode: 0o644, text: kubeletConfText(base.config) }];
  const configs: MachineConfig[] = [];
  const problems: DefaultsDecision["problems"][number][] = [];
  if (profile !== undefined)
    configs.push(generatedConfig({ name: tlsDefaults(pool), role: pool, owner: profile, files, generatorVersion }));
  if (configNode !== undefined) {
    const cgroups = cgroupArguments(settings.cgroupMode, pool);
    if (cgroups.verdict === "refused") problems.push({ object: configNode, ...cgroups.problem });
    else {
      const { kernelArguments } = cgroups;
      const name = nodeDefaults(pool);
      configs.push(generatedConfig({ name, role: pool, owner: configNode, files, kernelArguments, generatorVersion }));
    }
  }
  if (featureGate !== undefined)
    configs.push(
      generatedConfig({ name: gateDefaults(pool), role: pool, owner: featureGate, files, generatorVersion }),
    );
  return { configs, problems };
}

/** Name of what the APIServer makes for a pool where it is the only one of them. */
export const tlsDefaults = (pool: string): string => `96-${pool}-generated-kubelet`;
/** Name of what the config Node makes for a pool. */
export const nodeDefaults = (pool: string): string => `97-${pool}-generated-kubelet`;
/** Name of what the FeatureGate makes for a pool. */
export const gateDefaults = (pool: string): string => `98-${pool}-generated-kubelet`;
/** The pool of such a name; `undefined`: it is none. */
export const poolOfDefaults = (name: string): string | undefined => /^9[678]-(.+)-generated-kubelet$/.exec(name)?.[1];
