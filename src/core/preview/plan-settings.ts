import { pushAll } from "../../api/schema/push-all.ts";
import type { CredentialProviderConfig } from "../../api/foreign/openshift.ts";
import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, settingsConditions } from "../../api/names.ts";
import { type ObjectsOfCluster, clusterSettings, kubeletBaseOf } from "../kubelet/cluster-settings.ts";
import { decideDefaults, tlsDefaults } from "../kubelet/decide-defaults.ts";
import type { SettingsDecision, SettingsObject, SettingsView } from "../kubelet/decide-generated.ts";
import { decideKubeletConfig } from "../kubelet/decide-kubelet-config.ts";
import { heldBy, configHolder } from "../kubelet/held-configs.ts";
import { runtimeInputsOf } from "../runtime/base-texts.ts";
import { decideCredentials, skippedText } from "../runtime/decide-credentials.ts";
import { decideRuntimeConfig } from "../runtime/decide-runtime-config.ts";

/** Objects from which controllers make MachineConfigs. */
export interface SettingsObjects {
  readonly kubeletConfigs: readonly KubeletConfig[];
  readonly containerRuntimeConfigs: readonly ContainerRuntimeConfig[];
  /** The cluster's own objects, where it has them. */
  readonly cluster: ObjectsOfCluster;
  /** The CRIOCredentialProviderConfig `cluster`, where the cluster has it. */
  readonly credentials?: CredentialProviderConfig | undefined;
}

/** What they are made with. */
interface Around {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly settings?: SettingsObjects;
}

export interface PlannedSettings {
  /** All MachineConfigs, with those that the controllers would make. */
  readonly machineConfigs: readonly MachineConfig[];
  readonly refusals: readonly { readonly object: string; readonly path: string; readonly reason: string }[];
  readonly warnings: readonly string[];
}

const none: SettingsObjects = { kubeletConfigs: [], containerRuntimeConfigs: [], cluster: {} };

/** The MachineConfigs that the controllers would make of changed objects with settings. */
export function planSettings(before: Around, after: Around): PlannedSettings {
  const [had, has] = [before.settings ?? none, after.settings ?? none];
  if (had === has) return { machineConfigs: after.machineConfigs, refusals: [], warnings: [] };
  const change = new Change(after);
  const isClusterSame = JSON.stringify(had.cluster) === JSON.stringify(has.cluster);
  if (!isClusterSame) change.defaults(has);
  change.kind(had.kubeletConfigs, has.kubeletConfigs, isClusterSame, (view, configOf) =>
    kubeletDecision(view, has, configOf),
  );
  change.kind(had.containerRuntimeConfigs, has.containerRuntimeConfigs, isClusterSame, (view, configOf) =>
    runtimeDecision(view, has, configOf),
  );
  if (has.credentials !== had.credentials || (has.credentials !== undefined && !isClusterSame))
    change.credentials(had.credentials, has);
  return change.result();
}

type ConfigOf = (name: string) => MachineConfig | undefined;
type View<T extends SettingsObject> = Omit<SettingsView<T>, "kind" | "filesOf" | "decides">;

/** What the controller would decide about a KubeletConfig. */
function kubeletDecision(view: View<KubeletConfig>, { cluster }: SettingsObjects, configOf: ConfigOf) {
  const settings = clusterSettings(cluster);
  return decideKubeletConfig({
    ...view,
    baseOf: (pool) =>
      kubeletBaseOf(pool, settings, configOf) ?? {
        verdict: "refused",
        reason: "has no base configuration among these objects: add the MachineConfig 01-worker-kubelet",
      },
  });
}

/** What the controller would decide about a ContainerRuntimeConfig. */
function runtimeDecision(view: View<ContainerRuntimeConfig>, { cluster }: SettingsObjects, configOf: ConfigOf) {
  const { gates } = clusterSettings(cluster);
  return decideRuntimeConfig({
    ...view,
    inputsOf: (pool) => runtimeInputsOf(pool, gates, configOf),
  });
}

/** The MachineConfigs while they are being changed. */
class Change {
  readonly #configs: Map<string, MachineConfig>;
  readonly #pools: readonly MachineConfigPool[];
  readonly #refusals: PlannedSettings["refusals"][number][] = [];
  readonly #warnings: string[] = [];
  readonly #generatorVersion: string;

  constructor({ machineConfigs, pools }: Around) {
    this.#configs = new Map(machineConfigs.map((config) => [config.metadata.name, config]));
    this.#pools = pools;
    this.#generatorVersion =
      this.#configs.get("01-worker-kubelet")?.metadata.annotations?.[annotations.generatedByController] ?? "";
  }

  readonly #configOf: ConfigOf = (name) => this.#configs.get(name);

  /** What the cluster's own objects make for every pool. */
  defaults({ cluster }: SettingsObjects): void {
    const settings = clusterSettings(cluster);
    for (const pool of this.#pools.map(({ metadata }) => metadata.name)) {
      const base = kubeletBaseOf(pool, settings, this.#configOf);
      if (base === undefined) continue;
      const generatorVersion = this.#generatorVersion;
      const made = decideDefaults({ pool, objects: cluster, settings, base, generatorVersion });
      const [name, { apiServer }] = [tlsDefaults(pool), cluster];
      if (
        base.verdict === "read" &&
        apiServer !== undefined &&
        configHolder(this.#configs.get(name), apiServer) === "this"
      )
        this.#configs.delete(name);
      for (const config of made.configs) this.#configs.set(config.metadata.name, config);
      for (const { object, path, reason } of made.problems)
        this.#refusals.push({ object: `${object.kind}/${object.metadata.name}`, path, reason });
    }
    pushAll(
      this.#warnings,
      settings.gateProblems.map((text) => `FeatureGate/cluster: ${text}`),
    );
  }

  /** What kubelets get of the CRIOCredentialProviderConfig; nothing once it is gone. */
  credentials(had: CredentialProviderConfig | undefined, { credentials: object, cluster }: SettingsObjects): void {
    const machineConfigs = [...this.#configs.values()];
    if (object === undefined) {
      for (const name of had === undefined ? [] : heldBy(had, machineConfigs)) this.#configs.delete(name);
      return;
    }
    const decision = decideCredentials({
      object,
      pools: this.#pools,
      machineConfigs,
      gates: clusterSettings(cluster).gates,
      generatorVersion: this.#generatorVersion,
      now: 0,
    });
    const id = `${object.kind}/${object.metadata.name}`;
    switch (decision.do) {
      case "wait":
        this.#warnings.push(`${id}: the base configuration of pool ${decision.pool} is not among these objects`);
        return;
      case "refuse":
        pushAll(
          this.#refusals,
          decision.problems.map(({ path, reason }) => ({ object: id, path, reason })),
        );
        return;
      case "write":
        for (const name of decision.stale) this.#configs.delete(name);
        for (const config of decision.configs) this.#configs.set(config.metadata.name, config);
        if (decision.skipped.length > 0) this.#warnings.push(`${id}: ${skippedText(decision.skipped)}`);
    }
  }

  /** What the changed objects of a kind make, and that the deleted ones make nothing any more. */
  kind<T extends SettingsObject>(
    had: readonly T[],
    has: readonly T[],
    areInputsSame: boolean,
    decide: (view: View<T>, configOf: ConfigOf) => SettingsDecision,
  ): void {
    const known = new Map(had.map((object) => [object.metadata.name, object]));
    const remaining = new Set(has.map(({ metadata }) => metadata.name));
    for (const object of had)
      if (!remaining.has(object.metadata.name))
        for (const name of heldBy(object, [...this.#configs.values()])) this.#configs.delete(name);
    for (const object of has)
      if (!areInputsSame || known.get(object.metadata.name) !== object)
        this.#take(
          object,
          decide(this.#view(object, has), (name) => this.#configOf(name)),
        );
  }

  #view<T extends SettingsObject>(object: T, all: readonly T[]): View<T> {
    return {
      object,
      others: all.filter((one) => one !== object),
      pools: this.#pools,
      holderOf: (name) => configHolder(this.#configs.get(name), object),
      held: heldBy(object, [...this.#configs.values()]),
      // The plan says it of every generated MachineConfig that it changes.
      overriddenOf: () => [],
      generatorVersion: this.#generatorVersion,
      now: 0,
    };
  }

  #take(object: SettingsObject, decision: SettingsDecision): void {
    const id = `${object.kind}/${object.metadata.name}`;
    if (decision.do === "refuse")
      pushAll(
        this.#refusals,
        decision.problems.map(({ path, reason }) => ({ object: id, path, reason })),
      );
    if (decision.do !== "apply") return;
    for (const name of decision.stale) this.#configs.delete(name);
    for (const config of decision.configs) this.#configs.set(config.metadata.name, config);
    const effective = decision.status.conditions?.find(({ type }) => type === settingsConditions.effective);
    if (effective?.status === "False") this.#warnings.push(`${id}: ${effective.message ?? ""}`);
  }

  result(): PlannedSettings {
    return { machineConfigs: [...this.#configs.values()], refusals: this.#refusals, warnings: this.#warnings };
  }
}
