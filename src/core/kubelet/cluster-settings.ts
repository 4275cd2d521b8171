import { openshift } from "../../api/foreign/openshift.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { objects as names } from "../../api/names.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { oversizedReason, oversizedText, mostTextCharacters } from "../../ignition/held-contents.ts";
import { type TlsSecurityProfile, kubeletTlsOf } from "../certificates/tls-profile.ts";
import { baseConfigOf } from "../render/base-config-of.ts";
import { fileText } from "../render/config-file.ts";
import { type BaseReading, type KnownGates, type KubeletTls, kubeletBase } from "./kubelet-base.ts";
import { kubeletConfPaths } from "./kubelet-config.ts";
import { gateProblem } from "./kubelet-settings.ts";

/** A FeatureGate `cluster`, as far as kubelets follow it. Source: openshift/api config/v1/types_feature.go (master). */
export interface FeatureGateLike {
  readonly spec?: {
    readonly featureSet?: string | undefined;
    readonly customNoUpgrade?:
      | { readonly enabled?: readonly string[] | undefined; readonly disabled?: readonly string[] | undefined }
      | null
      | undefined;
  };
  readonly status?:
    | {
        readonly featureGates?:
          | readonly {
              readonly version?: string | undefined;
              readonly enabled?: readonly { readonly name: string }[] | undefined;
              readonly disabled?: readonly { readonly name: string }[] | undefined;
            }[]
          | undefined;
      }
    | undefined;
}

/** A config Node `cluster`. Source: openshift/api config/v1/types_node.go (master). */
export interface ConfigNodeLike {
  readonly spec?: { readonly cgroupMode?: string | undefined; readonly workerLatencyProfile?: string | undefined };
}

/** The objects of a cluster that every kubelet's configuration depends on; absent ones say nothing. */
export interface ClusterObjectsOfKubelets {
  readonly featureGate?: FeatureGateLike | undefined;
  readonly configNode?: ConfigNodeLike | undefined;
  readonly tlsProfile?: TlsSecurityProfile | null | undefined;
  /** The version that the cluster runs or is going to run, by which a FeatureGate lists its gates. */
  readonly version?: string | undefined;
}

/** Kinds of those objects; a cluster may lack each of them. */
export const clusterSettingsKinds: readonly Resource[] = [
  openshift.FeatureGate,
  openshift.ConfigNode,
  openshift.APIServer,
  openshift.ClusterVersion,
];

/** The same, with the objects that MachineConfigs are made of whole. */
export interface ObjectsOfCluster extends ClusterObjectsOfKubelets {
  readonly featureGate?: (KubeObject & FeatureGateLike) | undefined;
  readonly configNode?: (KubeObject & ConfigNodeLike) | undefined;
  /** The one that `tlsProfile` is of. */
  readonly apiServer?: KubeObject | undefined;
}

/** There is one ClusterVersion. */
const versionName = "version";

/**
 * The objects of a cluster that kubelets follow.
 *
 * @param get an object of a kind by its name; `undefined`: the cluster has none.
 */
export function objectsOfCluster(
  get: <T extends KubeObject>(resource: Resource<T>, name: string) => T | undefined,
): ObjectsOfCluster {
  const singleton = names.clusterSingleton;
  const apiServer = get(openshift.APIServer, singleton);
  return {
    featureGate: get(openshift.FeatureGate, singleton),
    configNode: get(openshift.ConfigNode, singleton),
    apiServer,
    tlsProfile: apiServer?.spec?.tlsSecurityProfile,
    version: get(openshift.ClusterVersion, versionName)?.status?.desired?.version,
  };
}

/** What they say. */
export interface ClusterSettings {
  readonly gates: KnownGates;
  readonly tls: KubeletTls;
  readonly latencyProfile: string | undefined;
  readonly cgroupMode: string | undefined;
  /** Gates of the cluster's own choice that a kubelet does not have, or not so: it would not start with them. */
  readonly gateProblems: readonly string[];
}

export function clusterSettings(objects: ClusterObjectsOfKubelets): ClusterSettings {
  const { featureGate, configNode, tlsProfile, version } = objects;
  return {
    ...gatesOf(featureGate, version),
    tls: kubeletTlsOf(tlsProfile ?? undefined),
    latencyProfile: configNode?.spec?.workerLatencyProfile,
    cgroupMode: configNode?.spec?.cgroupMode,
  };
}

/**
 * The gates that are in force. A cluster operator writes them into the status for each version; where no one does, those
 * that the spec names count, as far as a kubelet has them.
 */
function gatesOf(
  featureGate: FeatureGateLike | undefined,
  version: string | undefined,
): Pick<ClusterSettings, "gates" | "gateProblems"> {
  const lists = featureGate?.status?.featureGates ?? [];
  const list = lists.find((one) => one.version === version) ?? (lists.length === 1 ? lists[0] : undefined);
  if (list !== undefined) return { gates: namesOf(list), gateProblems: [] };
  const asked = featureGate?.spec?.customNoUpgrade ?? {};
  const judged = (names: readonly string[] = [], isOn: boolean) =>
    names.map((name) => ({ name, isOn, problem: gateProblem(name, isOn) }));
  const all = [...judged(asked.enabled, true), ...judged(asked.disabled, false)];
  const known = (isOn: boolean) =>
    all.flatMap((gate) => (gate.problem === undefined && gate.isOn === isOn ? [gate.name] : []));
  return {
    gates: { enabled: known(true), disabled: known(false) },
    gateProblems: all.flatMap(({ name, isOn, problem }) =>
      problem === undefined
        ? []
        : [
            `spec.customNoUpgrade.${isOn ? "enabled" : "disabled"}: ${name} is ${problem === "unknown" ? "no gate of" : `${problem} in`} kubelet 1.34, and is left out`,
          ],
    ),
  };
}

type Lists = NonNullable<NonNullable<FeatureGateLike["status"]>["featureGates"]>[number];
const namesOf = ({ enabled = [], disabled = [] }: Lists): KnownGates => ({
  enabled: enabled.map(({ name }) => name),
  disabled: disabled.map(({ name }) => name),
});

/**
 * What every generated kubelet.conf of a pool begins with.
 *
 * @param configOf a MachineConfig by its name.
 * @returns `undefined`: the base configuration is not there yet.
 */
export function kubeletBaseOf(
  pool: string,
  settings: ClusterSettings,
  configOf: (name: string) => MachineConfig | undefined,
): BaseReading | undefined {
  const config = baseConfigOf("kubelet", pool, configOf);
  if (config === undefined) return undefined;
  const { name } = config.metadata;
  const texts = kubeletConfPaths.map((path) => ({ path, text: fileText(config, path, mostTextCharacters) }));
  const { path, text } = texts.find((one) => one.text !== undefined) ?? {};
  if (path === undefined || text === undefined)
    return { verdict: "refused", reason: `${name} holds no ${kubeletConfPaths.join(" and no ")}` };
  if (text === oversizedText)
    return {
      verdict: "refused",
      reason: `${name}: ${path} ${oversizedReason}: shorten it, or delete ${name} to begin with the worker pool's`,
    };
  const base = kubeletBase({ ...settings, text, pool });
  return base.verdict === "read" ? { ...base, path } : base;
}
