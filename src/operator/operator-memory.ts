import { ClusterMembers } from "../core/pool/cluster-members.ts";
import type { Changing } from "../core/operator/decide-authorities.ts";
import type { ConfigServerAccess } from "../core/join/config-server.ts";

/**
 * What the operator remembers between two passes. A process that restarts, or leads again, starts with an empty memory.
 */
export interface OperatorMemory {
  /** Every machine by pool, kept from single changes. */
  readonly cluster: ClusterMembers;
  /** Milliseconds since the epoch; of the process's clock once the controller has started. */
  now: () => number;
  /** Manifests by `Kind/key`, as they were last applied, and when (monotonic). */
  readonly applied: Map<string, { readonly text: string; readonly at: number }>;
  /** Tasks that the API server has kept from ending, and since when (monotonic). */
  readonly heldUp: Map<string, number>;
  /** Tasks that were reported as failing. */
  readonly failing: Set<string>;
  readonly journals: {
    /** Names of the journals that exist, as far as the operator knows. */
    readonly known: Set<string>;
    /** Nodes that may have no journal. */
    readonly wanted: Set<string>;
    /** When the journals were last listed (monotonic). */
    listedAt: number | undefined;
  };
  /** Authorities of the API server that machines do not have yet, and since when they are the same (monotonic). */
  changingAuthorities: Changing | undefined;
  /** This pass hands other authorities to machines than they had. */
  isHandingOver: boolean;
  /** Inputs that were last reported as lying where none is read. */
  misplaced: string;
  /** Since when the builder is deployed though no pool boots images (monotonic). */
  builderUnwantedSince: number | undefined;
  /** The copies of Secrets for builds as they were last made, and when (monotonic). */
  credentials: { readonly text: string; readonly at: number } | undefined;
  /** When the roles and bindings were last read and found current (monotonic); `undefined`: they are read again. */
  rightsCurrentSince: number | undefined;
  /** Whether the cluster had a machine API then. */
  hadMachineApi: boolean;
  /** User data of the installer that trusts these authorities, by the name of its Secret, and when it was read (monotonic). */
  readonly installedUserData: Map<string, { readonly authorities: string; readonly at: number }>;
  /** Since when the API server refuses to show roles, by the monotonic clock. */
  rightsRefusedSince: number | undefined;
  /** The approver of renewals of nodes beside the suite, and when the API server was asked for it (monotonic). */
  otherApprover: { readonly text: string | undefined; readonly askedAt: number } | undefined;
  /** The NetworkPolicy of earlier versions, which allows all outgoing traffic, is gone. */
  isRetiredNetworkPolicyGone: boolean;
  /** The policies of an earlier release are gone. */
  areRetiredPoliciesGone: boolean;
  /** What the log last reported of the config server. */
  readonly configServerLog: { access: ConfigServerAccess | undefined; tlsNotes: string };
  /** The reports about the upgrade to this version in the cluster's book. */
  readonly reported: { upgradeBegan: boolean; arrival: boolean };
}

export const operatorMemory = (): OperatorMemory => ({
  cluster: new ClusterMembers(),
  now: () => 0,
  applied: new Map(),
  heldUp: new Map(),
  failing: new Set(),
  journals: { known: new Set(), wanted: new Set(), listedAt: undefined },
  changingAuthorities: undefined,
  isHandingOver: false,
  misplaced: "",
  builderUnwantedSince: undefined,
  credentials: undefined,
  rightsCurrentSince: undefined,
  hadMachineApi: false,
  installedUserData: new Map(),
  rightsRefusedSince: undefined,
  otherApprover: undefined,
  isRetiredNetworkPolicyGone: false,
  areRetiredPoliciesGone: false,
  configServerLog: { access: undefined, tlsNotes: "" },
  reported: { upgradeBegan: false, arrival: false },
});
