import type { JoinPlace } from "../api/kinds/join-place.ts";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import type { ServedInputs } from "../core/join/served-config.ts";

/**
 * Everything that the answers to the machines of one pool are made from, as it is now. Never changed; a later one is
 * another.
 */
export interface PoolSnapshot {
  readonly config: string;
  /** Why this configuration and no other. */
  readonly because: string;
  /** The same text for the same inputs. */
  readonly version: string;
  readonly inputs: ServedInputs;
  /** Text in the kubeconfig that each answer replaces by a credential of its own; absent: its credential is for all. */
  readonly placeholder?: string;
}

export type PoolLookup =
  | { readonly verdict: "snapshot"; readonly snapshot: PoolSnapshot }
  /** There is no such pool, or none that is served here. */
  | { readonly verdict: "absent" }
  | { readonly verdict: "notReady"; readonly reason: string; readonly message: string };

/** The source of configurations: the cluster, or a folder before there is one. */
export interface ConfigSource {
  readonly mode: "cluster" | "bootstrap";
  /** What has not been read yet; empty once everything has. */
  missing(): readonly string[];
  /** Pools that are served. */
  pools(): readonly string[];
  pool(name: string): PoolLookup;
  /** Called when the view of some pool may have changed. Returns a function that stops it. */
  onChange(listener: () => void): () => void;
}

/** A credential by which one machine asks for its first certificate. */
export interface JoinCredential {
  readonly token: string;
  /** As the API server records it with requests that are sent with it: `JTI=<uuid>`. */
  readonly id: string;
}

/** Where the room for new nodes is kept; see JoinPlace. */
export interface PlaceStore {
  /** A credential of the pool's account that nobody else has. */
  mint(pool: string): Promise<JoinCredential>;
  add(place: JoinPlace["spec"]): Promise<void>;
}

/** Where the configurations of machines in service are looked up. */
export interface MachineStore {
  machineConfigNode(name: string, signal: AbortSignal): Promise<MachineConfigNode | undefined>;
  machineConfig(name: string, signal: AbortSignal): Promise<MachineConfig | undefined>;
  machineConfigPool(name: string): MachineConfigPool | undefined;
}

/** Where provisioning tokens are kept. */
export interface TokenStore {
  token(id: string): ProvisioningToken | undefined;
  /** Asks the authoritative source, with a rate limit: rejects above it, since no answer would be true. */
  lookUp(id: string): Promise<ProvisioningToken | undefined>;
  /**
   * Stores the status of a token that is still as it was read. `conflict`: it is not, and has to be read again with
   * `reread`; `gone`: it was revoked.
   */
  store(
    token: ProvisioningToken,
    status: NonNullable<ProvisioningToken["status"]>,
  ): Promise<ProvisioningToken | "conflict" | "gone">;
  reread(id: string): Promise<ProvisioningToken | undefined>;
}
