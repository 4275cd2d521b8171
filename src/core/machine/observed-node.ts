import type { KernelType, NodeConfig, ContentMode } from "../config/node-config.ts";
import type { Change, Consequence } from "../config/change.ts";
import type { ObservedContent } from "./observed-content.ts";

/** One operating system that a machine can boot. */
export interface ObservedDeployment {
  /** Pullspec of the OS image. */
  readonly image: string;
  readonly kernelArguments: readonly string[];
  /**
   * Packages requested on top of the image, sorted: those of extensions, and those layered by hand. Not those of the
   * kernel type.
   */
  readonly packages: readonly string[];
  readonly kernelType: KernelType;
}

/** What a machine can change in its operating system. Anything else is refused before the machine changes anything. */
export interface OsAbilities {
  /** `false`: something else manages the machine's OS. */
  readonly images: boolean;
  readonly kernelArguments: boolean;
  readonly packages: boolean;
  readonly kernelTypes: readonly KernelType[];
}

/** A consequence that the machine is owed, and the changes that ask for it. */
export interface Debt {
  readonly consequence: Consequence;
  readonly changes: readonly Change[];
}

/** The daemon's ledger of unfinished work: written before the first change, closed last. */
export interface Ledger {
  readonly v: 1;
  /** Name of the rendered config that the update targets. */
  readonly target: string;
  /** The image that the update targets, if it differs from the configuration's, and its content. */
  readonly image?: string;
  readonly content?: ContentMode;
  /** The system that the next boot should start, if it is another one. */
  readonly deployment?: ObservedDeployment;
  /** Boot in which the debts arose; another boot has paid them. */
  readonly bootId: string;
  readonly owes: readonly Consequence[];
  /** Why each of them is owed; absent in a ledger of an earlier release. */
  readonly debts?: readonly Debt[];
  /** What was done already for this target in this boot. */
  readonly paid?: readonly Consequence[];
  /** Users whose passwords unfinished updates may have set; absent: none. */
  readonly passwords?: readonly string[];
  /** RFC 3339. */
  readonly openedAt: string;
  /** Boots in which a reboot was requested, so that a machine that does not take its target does not reboot forever. */
  readonly rebootsAsked?: readonly string[];
  /** Why applying the content of the booted image failed: the machine was rolled back to its previous system. */
  readonly failed?: { readonly path?: string; readonly cause: string };
}

/** The observed state of a machine, never the state that we assume we wrote. */
export interface ObservedNode extends ObservedContent {
  readonly bootId: string;
  readonly booted: ObservedDeployment;
  readonly staged: ObservedDeployment | undefined;
  readonly can: OsAbilities;
  /** Whether the kernel runs in FIPS mode; `undefined` where it does not say. */
  readonly fips: boolean | undefined;
  readonly ledger: Ledger | undefined;
  /** Names in the target of one entry of this machine, by way of links above it. */
  readonly twice: readonly (readonly string[])[];
  /**
   * The configuration that was last verified on the machine, or that it started with; `undefined` if there is neither.
   */
  readonly previous: NodeConfig | undefined;
  /** The machine has been in service with our configuration, so it is drained before a disruption. */
  readonly inService: boolean;
  /** The force file requests a complete re-application. */
  readonly forced: boolean;
  /** The only control-plane machine: its pods have nowhere to go. */
  readonly onlyControlPlane: boolean;
  /** Where the running system finds its content at boot; absent: the daemon writes it. */
  readonly payload?: "image" | "local" | undefined;
  /** The result of the last application of the image's content. */
  readonly settled?: ImageContentRecord | undefined;
}

/** The result of applying the image's content, for the daemon and for the next boot. */
export interface ImageContentRecord {
  readonly v: 1;
  readonly bootId: string;
  /** The booted system. */
  readonly deployment: ObservedDeployment;
  /** sha256 of the payload, hex; absent if none could be read. */
  readonly payload?: string;
  /** Paths and unit names that were changed in this boot, or are about to be. */
  readonly changed: readonly string[];
  /** `settling`: running or interrupted; `rebooting`: programs that had already started need a reboot to read it. */
  readonly result: "settling" | "settled" | "rebooting" | "failed";
  /** Boot in which a reboot of this deployment was requested. */
  readonly rebootAskedIn?: string;
  /** What running programs have not read yet: nothing is restarted for it once the boot is over. */
  readonly owed?: readonly string[];
  /** Where it failed, and why. */
  readonly path?: string;
  readonly cause?: string;
}
