import type { NodeConfig, ShippedUnits } from "../config/node-config.ts";

/** The entry at a path of a machine, as far as a plan needs it. */
export type ObservedEntry =
  | {
      readonly kind: "file";
      readonly digest: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** The file is a kubeconfig: a program of the machine reaches the cluster by it. */
      readonly isKubeconfig?: boolean;
    }
  | { readonly kind: "link"; readonly target: string }
  | {
      readonly kind: "folder";
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** A file is to be here, and the folder goes away with what earlier configurations brought into it. */
      readonly goesAway?: boolean;
    };

/**
 * The state before this suite first managed each item, so that removal can restore it; also the list of managed items.
 */
export interface Originals {
  /** Path → the original entry (contents base64), or `null` if there was none. */
  readonly paths: Readonly<Record<string, OriginalEntry | null>>;
  /** Paths whose original entry was too large to be kept, or could not be read: they count as paths without one. */
  readonly notKept?: readonly string[];
  /**
   * Paths without an original entry where the system itself ships one: our image hides it, or it was too large to be recorded.
   */
  readonly hidden?: readonly string[];
  /** Unit → its original enablement. */
  readonly enablement: Readonly<Record<string, string>>;
  /** Unit → its original links, as path → target; missing for a unit that an earlier release recorded. */
  readonly links?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** User → original password hash, `null` for none. */
  readonly passwords: Readonly<Record<string, string | null>>;
  /** Kernel arguments from provisioning. */
  readonly kernelArguments: readonly string[];
  /** Kernel arguments that our updates may have added since the last finished one. */
  readonly ownKernelArguments: readonly string[];
}

export type OriginalEntry = {
  /** The OS shipped this entry: another OS restores what it ships itself. */
  readonly shipped?: true;
} & (
  | {
      readonly kind: "file";
      readonly contents: string;
      readonly digest: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
    }
  | { readonly kind: "link"; readonly target: string }
);

/** The observed content of a machine: files, units and accounts, and their recorded originals. */
export interface ObservedContent {
  /** Every path in the previous config, the target or the originals; absent paths are missing. */
  readonly entries: ReadonlyMap<string, ObservedEntry>;
  readonly enablement: ReadonlyMap<string, string>;
  /** Links below the folder of units, as path → target; absent if unknown. */
  readonly links?: ReadonlyMap<string, string>;
  /** Absent if unknown. */
  readonly shippedUnits?: ShippedUnits;
  /**
   * Links that the OS ships below the folder of units: of those units that it ships and that are recorded as absent, and
   * where an earlier release may have made links that it did not record.
   */
  readonly shippedLinks?: ReadonlyMap<string, string>;
  readonly passwords: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
  readonly originals: Originals;
  /** The previous configuration of the machine; `undefined` if unknown. */
  readonly previous: NodeConfig | undefined;
}
