import { bytesToHex } from "@noble/hashes/utils.js";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import { type ChosenServed, chooseServed } from "../core/join/choose-served.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { machineOSConfigOf } from "../core/config/opt-in.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isConflict, isNotFound } from "../kube/kube-error.ts";
import { WatchCache, type WatchCacheOptions } from "../kube/watch-cache.ts";
import { WatchesOnDemand } from "../kube/watches-on-demand.ts";
import type { Ports } from "../ports/index.ts";
import type {
  ConfigSource,
  JoinCredential,
  MachineStore,
  PlaceStore,
  PoolLookup,
  PoolSnapshot,
  TokenStore,
} from "./config-source.ts";
import { mintCredential } from "./join-credential.ts";
import { joiningKubeconfig } from "./kubeconfig-text.ts";

export interface ClusterSourceOptions extends Pick<Ports, "clock" | "random" | "log"> {
  readonly kube: KubeClient;
  /** Where machines reach the API server. */
  readonly apiServerUrl: string;
  /** This process's own authorities of the API server, for use while the cluster publishes none. PEM. */
  readonly fallbackCa: string | undefined;
  readonly signal: AbortSignal;
}

/** Configurations that are held at once: two for each pool while it changes. */
const mostConfigs = 1000;
/** Rate limit for looking up tokens by name that are not in the cache: guessing must not load the API server. */
const lookUpsPerSecond = 5;

const caKey = "ca-bundle.crt";
type Serve = Extract<ChosenServed, { readonly verdict: "serve" }>;

/**
 * The cluster's own objects, by watches: every answer rests on their current state. The cache holds only rendered
 * configurations that some pool serves.
 */
export class ClusterSource implements ConfigSource, TokenStore, PlaceStore, MachineStore {
  readonly mode = "cluster";
  readonly #options: ClusterSourceOptions;
  readonly #pools: WatchCache<MachineConfigPool>;
  readonly #settings: WatchCache<ControllerConfig>;
  readonly #osConfigs: WatchCache<MachineOSConfig>;
  readonly #builds: WatchCache<MachineOSBuild>;
  readonly #maps: WatchCache<ConfigMap>;
  readonly #buildConfig: WatchCache<ConfigMap>;
  readonly #tokens: WatchCache<ProvisioningToken>;
  readonly #configs: WatchesOnDemand<MachineConfig>;
  /** Whoever writes configurations cannot know it: it stands for nothing else than a credential. */
  readonly #placeholder: string;
  readonly #listeners = new Set<() => void>();
  /** Caches without their first list. */
  readonly #missing = new Set<WatchCache<never>>();
  /** What a pool serves for as long as its next configuration is being read. */
  readonly #served = new Map<string, Serve>();
  readonly #open = new Set<string>();
  readonly #snapshots = new Map<string, PoolSnapshot>();
  /** Names of all pools, in order: each request needs them, also of those who show no credential. */
  #poolNames: readonly string[] | undefined;
  #lookUps = { second: 0, count: 0 };

  constructor(options: ClusterSourceOptions) {
    this.#options = options;
    const { kube, clock, random, log, signal } = options;
    const cache = <T extends KubeObject>(more: Omit<WatchCacheOptions<T>, "kube" | "clock" | "random" | "log">) =>
      new WatchCache<T>({ kube, clock, random, log, ...more });
    const named = (name: string) => ({ fieldSelector: `metadata.name=${name}` });
    this.#pools = cache({ resource: MachineConfigPool });
    this.#pools.onChange(() => (this.#poolNames = undefined));
    this.#settings = cache({ resource: ControllerConfig, selection: named(objects.controllerConfig) });
    this.#osConfigs = cache({ resource: MachineOSConfig });
    this.#builds = cache({ resource: MachineOSBuild, indexes: { config: ({ spec }) => [spec.machineOSConfig.name] } });
    this.#maps = cache({ resource: kubernetes.ConfigMap, selection: { namespace, ...named(objects.kubeconfigData) } });
    this.#buildConfig = cache({
      resource: kubernetes.ConfigMap,
      selection: { namespace, ...named(objects.buildConfig) },
    });
    this.#tokens = cache({ resource: ProvisioningToken });
    const onChange = () => this.#changed();
    this.#configs = new WatchesOnDemand({
      kube,
      resource: MachineConfig,
      clock,
      random,
      log,
      most: mostConfigs,
      onChange,
      signal,
    });
    this.#placeholder = `credential-${bytesToHex(random.bytes(24))}`;
  }

  /** Reads, and follows what changes, until the signal aborts. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    const watched: readonly WatchCache<never>[] = [
      this.#pools,
      this.#settings,
      this.#osConfigs,
      this.#builds,
      this.#maps,
      this.#buildConfig,
    ] as unknown as readonly WatchCache<never>[];
    for (const cache of [...watched, this.#tokens as unknown as WatchCache<never>]) {
      this.#missing.add(cache);
      void cache.synced.then(() => {
        this.#missing.delete(cache);
        this.#changed();
      });
    }
    for (const cache of watched) cache.onChange(() => this.#changed());
    await Promise.all([...watched, this.#tokens as unknown as WatchCache<never>].map((cache) => cache.run(signal)));
  }

  missing(): readonly string[] {
    return [...new Set([...this.#missing].map(({ resource }) => resource.kind))].sort();
  }

  pools(): readonly string[] {
    this.#poolNames ??= this.#pools
      .list()
      .map(({ metadata }) => metadata.name)
      .sort();
    return this.#poolNames;
  }

  pool(name: string): PoolLookup {
    if (this.#missing.size > 0) return notReady("NotReadYet", `not read yet: ${this.missing().join(", ")}`);
    const pool = this.#pools.get(name);
    if (pool === undefined) return { verdict: "absent" };
    const controllerConfig = this.#settings.get(objects.controllerConfig);
    if (controllerConfig === undefined)
      return notReady("NoControllerConfig", `there is no ControllerConfig ${objects.controllerConfig} yet`);
    const wanted = this.#choose(pool);
    if (wanted.verdict === "notReady") return wanted;
    const choice = this.#configs.objects(wanted.config) === undefined ? (this.#served.get(name) ?? wanted) : wanted;
    const read = this.#configs.objects(choice.config);
    if (read === undefined) return notReady("NotReadYet", `not read yet: MachineConfig ${choice.config}`);
    const [machineConfig] = read;
    if (machineConfig === undefined) return notReady("ConfigMissing", `there is no MachineConfig ${choice.config}`);
    const ca = this.#ca();
    if (ca === undefined)
      return notReady(
        "NoAuthorities",
        `the ConfigMap ${namespace}/${objects.kubeconfigData} does not say which authorities vouch for the API server`,
      );
    const { image } = choice;
    const version = [
      versionOf(machineConfig),
      versionOf(controllerConfig),
      image?.image,
      image?.content,
      ca.version,
    ].join(" ");
    const known = this.#snapshots.get(name);
    if (known?.version === version) return { verdict: "snapshot", snapshot: known };
    const placeholder = this.#placeholder;
    const kubeconfig = joiningKubeconfig({ server: this.#options.apiServerUrl, ca: ca.pem, token: placeholder });
    const snapshot: PoolSnapshot = {
      config: choice.config,
      because: choice.because,
      version,
      placeholder,
      inputs: { machineConfig, controllerConfig, image, kubeconfig, registryCertificates: new Map(), mode: "cluster" },
    };
    this.#snapshots.set(name, snapshot);
    return { verdict: "snapshot", snapshot };
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  token(id: string): ProvisioningToken | undefined {
    return this.#tokens.get(id);
  }

  lookUp(id: string): Promise<ProvisioningToken | undefined> {
    const second = Math.floor(this.#options.clock.monotonic() / 1000);
    if (this.#lookUps.second !== second) this.#lookUps = { second, count: 0 };
    this.#lookUps.count += 1;
    return this.#lookUps.count > lookUpsPerSecond
      ? Promise.reject(new Error(`more than ${lookUpsPerSecond} unknown tokens in a second`))
      : this.reread(id);
  }

  reread(id: string): Promise<ProvisioningToken | undefined> {
    return this.#options.kube.get(ProvisioningToken, { name: id }, { signal: this.#options.signal });
  }

  machineConfigNode(name: string, signal: AbortSignal): Promise<MachineConfigNode | undefined> {
    return this.#options.kube.get(MachineConfigNode, { name }, { signal });
  }

  machineConfig(name: string, signal: AbortSignal): Promise<MachineConfig | undefined> {
    return this.#options.kube.get(MachineConfig, { name }, { signal });
  }

  machineConfigPool(name: string): MachineConfigPool | undefined {
    return this.#pools.get(name);
  }

  mint(pool: string): Promise<JoinCredential> {
    return mintCredential(this.#options.kube, pool, this.#options.signal);
  }

  async add(spec: JoinPlace["spec"]): Promise<void> {
    const { kube, random, signal } = this.#options;
    const name = `${spec.pool.slice(0, 40).replace(/[-.]+$/, "")}-${bytesToHex(random.bytes(8))}`;
    const place = { apiVersion: JoinPlace.apiVersion, kind: JoinPlace.kind, metadata: { name }, spec };
    await kube.create(JoinPlace, place, { signal });
  }

  async store(
    token: ProvisioningToken,
    status: NonNullable<ProvisioningToken["status"]>,
  ): Promise<ProvisioningToken | "conflict" | "gone"> {
    const { name, resourceVersion } = token.metadata;
    try {
      return await this.#options.kube.patch(
        ProvisioningToken,
        { name },
        {
          type: "json",
          operations: [
            { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
            { op: "add", path: "/status", value: status },
          ],
        },
        { subresource: "status", signal: this.#options.signal },
      );
    } catch (error) {
      if (isNotFound(error)) return "gone";
      if (isConflict(error)) return "conflict";
      throw error;
    }
  }

  #choose(pool: MachineConfigPool): ChosenServed {
    const config = machineOSConfigOf(pool.metadata.name, this.#osConfigs.list());
    return chooseServed(pool, {
      config,
      builds: config === undefined ? [] : this.#builds.byIndex("config", config.metadata.name),
      graceMs: buildSettings(this.#buildConfig.get(`${namespace}/${objects.buildConfig}`)?.data).optOutGraceMs,
      now: this.#options.clock.now(),
    });
  }

  /** Reads the configurations that pools serve now; the previous ones stay until the new ones are read. */
  #changed(): void {
    if (this.#missing.size > 0) return;
    const pools = this.#pools.list();
    const needed = new Set<string>();
    for (const pool of pools) {
      const choice = this.#choose(pool);
      if (choice.verdict === "notReady") {
        this.#served.delete(pool.metadata.name);
        continue;
      }
      needed.add(choice.config);
      if (!this.#open.has(choice.config)) {
        this.#open.add(choice.config);
        this.#configs.open(choice.config, { fieldSelector: `metadata.name=${choice.config}` });
      }
      if (this.#configs.objects(choice.config) !== undefined) this.#served.set(pool.metadata.name, choice);
      else needed.add(this.#served.get(pool.metadata.name)?.config ?? choice.config);
    }
    for (const config of this.#open) {
      if (needed.has(config)) continue;
      this.#open.delete(config);
      this.#configs.close(config);
    }
    for (const held of [this.#served, this.#snapshots])
      for (const name of held.keys()) if (this.#pools.get(name) === undefined) held.delete(name);
    for (const listener of this.#listeners) listener();
  }

  #ca(): { readonly pem: string; readonly version: string } | undefined {
    const map = this.#maps.get(`${namespace}/${objects.kubeconfigData}`);
    const encoded = map?.binaryData?.[caKey];
    const pem = map?.data?.[caKey] ?? (encoded === undefined ? undefined : textOfBase64(encoded));
    if (pem !== undefined && pem !== "" && map !== undefined) return { pem, version: versionOf(map) };
    const { fallbackCa } = this.#options;
    return fallbackCa === undefined || fallbackCa === "" ? undefined : { pem: fallbackCa, version: "own" };
  }
}

const versionOf = ({ metadata }: KubeObject) =>
  `${metadata.name}/${metadata.uid ?? ""}/${metadata.resourceVersion ?? ""}`;
const notReady = (reason: string, message: string): PoolLookup => ({ verdict: "notReady", reason, message });
