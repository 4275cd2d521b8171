import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { objects } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { kubernetesYaml } from "../core/text/kubernetes-yaml.ts";
import type { Clock } from "../ports/clock.ts";
import type { FileStat, Files } from "../ports/files.ts";
import type { Logger } from "../ports/logger.ts";
import type { ConfigSource, PoolLookup, TokenStore } from "./config-source.ts";

export interface FolderSourceOptions {
  readonly files: Pick<Files, "readText" | "stat" | "list" | "readLink">;
  readonly clock: Clock;
  readonly log: Logger;
  /** As `mco controller bootstrap` writes it. */
  readonly folder: string;
  /** File that machines are given as their kubeconfig, as it is. */
  readonly kubeconfig: string;
  /** Host of a registry → file below the folder. */
  readonly certificates: ReadonlyMap<string, string>;
}

/** Pools whose machines there are before there is a cluster. */
const bootstrapPools = ["arbiter", "master"] as const;
/** How often the folder is read. */
const lookMs = 2000;
const tokenFolder = "provisioning-tokens";

interface Read {
  readonly stamp: string;
  readonly text: string | undefined;
}

interface Parsed<T> {
  readonly text: string;
  readonly object: T | undefined;
}

/**
 * A folder of manifests in place of a cluster, for the first machines of the cluster. It is read at intervals, and only
 * changed files are read; requests use memory alone.
 */
export class FolderSource implements ConfigSource, TokenStore {
  readonly mode = "bootstrap";
  readonly #options: FolderSourceOptions;
  readonly #read = new Map<string, Read>();
  readonly #parsed = new Map<string, Parsed<unknown>>();
  readonly #listeners = new Set<() => void>();
  /** Uses of tokens; without a cluster they are counted here only. */
  readonly #uses = new Map<string, NonNullable<ProvisioningToken["status"]>>();
  #tokenFiles: readonly string[] = [];
  #isRead = false;
  /** Counts what has changed. */
  #serial = 0;

  constructor(options: FolderSourceOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        await this.look();
      } catch (error) {
        log.warn({ error, folder: this.#options.folder }, "the folder cannot be read");
      }
      await clock.sleep(lookMs, signal).catch(() => undefined);
    }
  }

  /** Reads what has changed since the last pass. */
  async look(): Promise<void> {
    const { folder, kubeconfig, certificates, files } = this.#options;
    let changed = false;
    const take = async (path: string) => {
      if (await this.#take(path)) changed = true;
    };
    this.#tokenFiles = (await files.list(`${folder}/${tokenFolder}`))
      .filter((name) => /\.(ya?ml|json)$/.test(name))
      .map((name) => `${folder}/${tokenFolder}/${name}`);
    const paths = [
      kubeconfig,
      settingsIn(folder),
      ...[...certificates.values()].map((file) => `${folder}/${file}`),
      ...bootstrapPools.map((pool) => poolIn(folder, pool)),
      ...this.#tokenFiles,
    ];
    for (const path of paths) await take(path);
    for (const pool of bootstrapPools) {
      const name = this.#object(poolIn(folder, pool), MachineConfigPool)?.status?.configuration?.name;
      if (name !== undefined && isName(name)) {
        paths.push(configIn(folder, name));
        await take(configIn(folder, name));
      }
    }
    for (const path of this.#read.keys()) {
      if (paths.includes(path)) continue;
      this.#read.delete(path);
      this.#parsed.delete(path);
    }
    if (!changed && this.#isRead) return;
    this.#isRead = true;
    this.#serial += 1;
    for (const listener of this.#listeners) listener();
  }

  missing(): readonly string[] {
    return this.#isRead ? [] : ["folder"];
  }

  pools(): readonly string[] {
    return bootstrapPools.filter((pool) => this.#read.get(poolIn(this.#options.folder, pool))?.text !== undefined);
  }

  pool(name: string): PoolLookup {
    const { folder, kubeconfig, certificates } = this.#options;
    if (!this.#isRead) return notReady("NotReadYet", "the folder has not been read yet");
    if (!this.pools().includes(name)) return { verdict: "absent" };
    const pool = this.#object(poolIn(folder, name), MachineConfigPool);
    if (pool === undefined) return notReady("Unreadable", `machine-pools/${name}.yaml is no MachineConfigPool`);
    const config = pool.status?.configuration?.name ?? "";
    if (!isName(config))
      return notReady("NotRendered", `machine-pools/${name}.yaml names no configuration in its status`);
    const machineConfig = this.#object(configIn(folder, config), MachineConfig);
    if (machineConfig === undefined)
      return notReady("ConfigMissing", `there is no MachineConfig in machine-configs/${config}.yaml`);
    const controllerConfig = this.#object(settingsIn(folder), ControllerConfig);
    if (controllerConfig === undefined)
      return notReady(
        "NoControllerConfig",
        `there is no ControllerConfig in controller-config/${objects.controllerConfig}.yaml`,
      );
    const text = this.#read.get(kubeconfig)?.text;
    if (text === undefined) return notReady("NoCredential", "the kubeconfig for machines that join is not there yet");
    const registryCertificates = new Map<string, string>();
    for (const [host, file] of certificates) {
      const pem = this.#read.get(`${folder}/${file}`)?.text;
      if (pem === undefined) return notReady("NoAuthorities", `the certificate for ${host} is not in ${file}`);
      registryCertificates.set(host, pem);
    }
    return {
      verdict: "snapshot",
      snapshot: {
        config,
        because: "the bootstrap rendered it",
        version: String(this.#serial),
        inputs: {
          machineConfig,
          controllerConfig,
          image: undefined,
          kubeconfig: text,
          registryCertificates,
          mode: "bootstrap",
        },
      },
    };
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  token(id: string): ProvisioningToken | undefined {
    for (const path of this.#tokenFiles) {
      const token = this.#object(path, ProvisioningToken);
      if (token?.metadata.name !== id) continue;
      const status = this.#uses.get(id) ?? token.status;
      return { ...token, ...(status === undefined ? {} : { status }) };
    }
    return undefined;
  }

  lookUp(id: string): Promise<ProvisioningToken | undefined> {
    return Promise.resolve(this.token(id));
  }

  reread(id: string): Promise<ProvisioningToken | undefined> {
    return Promise.resolve(this.token(id));
  }

  store(
    token: ProvisioningToken,
    status: NonNullable<ProvisioningToken["status"]>,
  ): Promise<ProvisioningToken | "conflict" | "gone"> {
    const { name } = token.metadata;
    if (this.token(name) === undefined) return Promise.resolve("gone");
    this.#uses.set(name, status);
    return Promise.resolve({ ...token, status });
  }

  /** @returns whether it is another now. */
  async #take(path: string): Promise<boolean> {
    const { files } = this.#options;
    const stamp = stampOf(await files.stat(path), await files.readLink(path).catch(() => undefined));
    const before = this.#read.get(path);
    // The target of a link may change while the link stays: read it each time.
    if (before?.stamp === stamp && !stamp.startsWith("symlink")) return false;
    const text = await files.readText(path);
    this.#read.set(path, { stamp, text });
    return before === undefined ? text !== undefined : before.text !== text;
  }

  #object<T extends KubeObject>(path: string, kind: Resource<T>): T | undefined {
    const text = this.#read.get(path)?.text;
    if (text === undefined) return undefined;
    const known = this.#parsed.get(path) as Parsed<T> | undefined;
    if (known?.text === text) return known.object;
    const document = kubernetesYaml(text);
    const value: unknown = document.errors.length > 0 ? undefined : document.toJS({ maxAliasCount: 100 });
    const object = isOf(kind, value) ? value : undefined;
    if (object === undefined) this.#options.log.warn({ path }, "a manifest cannot be read");
    this.#parsed.set(path, { text, object });
    return object;
  }
}

/** The kind, with the parts that every kind has; the folder's other half is of our own making. */
function isOf<T extends KubeObject>(kind: Resource<T>, value: unknown): value is T {
  if (!isRecord(value) || !isRecord(value["metadata"]) || !isRecord(value["spec"])) return false;
  return (
    value["kind"] === kind.kind &&
    value["apiVersion"] === kind.apiVersion &&
    typeof value["metadata"]["name"] === "string"
  );
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const poolIn = (folder: string, name: string) => `${folder}/machine-pools/${name}.yaml`;
const configIn = (folder: string, name: string) => `${folder}/machine-configs/${name}.yaml`;
const settingsIn = (folder: string) => `${folder}/controller-config/${objects.controllerConfig}.yaml`;
/** A possible name of an object, which therefore never leads out of the folder. */
const isName = (name: string) => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name);
const stampOf = (stat: FileStat | undefined, link: string | undefined) =>
  stat === undefined ? "absent" : `${stat.kind} ${stat.sizeBytes} ${stat.modifiedMs} ${link ?? ""}`;
const notReady = (reason: string, message: string): PoolLookup => ({ verdict: "notReady", reason, message });
