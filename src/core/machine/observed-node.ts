import type { KernelType, NodeConfig, ContentMode } from "../config/node-config.ts";
import type { Consequence } from "../config/change.ts";
import type { ObservedContent } from "./content-gap.ts";

/** One operating system that a machine can boot. */
export interface Deployment {
  /** Pullspec of the OS image. */
  readonly image: string;
  readonly kernelArguments: readonly string[];
  /**
   * Packages asked for on top of the image, sorted: extensions', and what somebody layered by hand. Not those of the
   * kernel type.
   */
  readonly packages: readonly string[];
  readonly kernelType: KernelType;
}

/** What of an operating system a machine can change. What it cannot is refused before anything is touched. */
export interface OsAbilities {
  /** `false`: a machine whose OS somebody else keeps. */
  readonly images: boolean;
  readonly kernelArguments: boolean;
  readonly packages: boolean;
  readonly kernelTypes: readonly KernelType[];
}

/** The daemon's ledger of unfinished work: written before the first change, closed last. */
export interface Ledger {
  readonly v: 1;
  /** Rendered name that the update goes to. */
  readonly target: string;
  /** The image that it goes to, where that is another one than the configuration names, and what it holds. */
  readonly image?: string;
  readonly content?: ContentMode;
  /** The system that the next boot should start, if it is another one. */
  readonly deployment?: Deployment;
  /** Boot in which the debts were made; another boot has paid them. */
  readonly bootId: string;
  readonly owes: readonly Consequence[];
  /** RFC 3339. */
  readonly openedAt: string;
  /** Boots in which a reboot was requested, so that a machine that does not take its target does not reboot forever. */
  readonly rebootsAsked?: readonly string[];
  /**
   * Why the machine could not be made equal to what it had booted: it was sent back to the system that it had before.
   */
  readonly failed?: { readonly path?: string; readonly cause: string };
}

/** The observed state of a machine, never the state that we assume we wrote. */
export interface ObservedNode extends ObservedContent {
  readonly bootId: string;
  readonly booted: Deployment;
  readonly staged: Deployment | undefined;
  readonly can: OsAbilities;
  /** Whether the kernel runs in FIPS mode; `undefined` where it does not say. */
  readonly fips: boolean | undefined;
  readonly ledger: Ledger | undefined;
  /** The configuration that the machine was last verified to have, or started with; `undefined` if there is neither. */
  readonly previous: NodeConfig | undefined;
  /** The machine has been in service with our configuration, so it is drained before a disruption. */
  readonly inService: boolean;
  /** The force file requests a complete re-application. */
  readonly forced: boolean;
  /** The only control-plane machine: its pods have nowhere to go. */
  readonly onlyControlPlane: boolean;
  /** Where the system that runs finds at boot what the machine is to have; absent: the daemon writes it. */
  readonly payload?: "image" | "local" | undefined;
  /** The result of the last application of the image's content. */
  readonly settled?: ImageContentRecord | undefined;
}

/** The result of applying the image's content, for the daemon and for the next boot. */
export interface ImageContentRecord {
  readonly v: 1;
  readonly bootId: string;
  /** What was booted. */
  readonly deployment: Deployment;
  /** sha256 of the payload, hex; absent where none could be read. */
  readonly payload?: string;
  /** Paths, and units by their name, that were changed in this boot, or are about to be. */
  readonly changed: readonly string[];
  /** `settling`: under way, or killed in the middle; `rebooting`: what had started already is to read it. */
  readonly result: "settling" | "settled" | "rebooting" | "failed";
  /** Boot in which a reboot of this deployment was asked for. */
  readonly rebootAskedIn?: string;
  /** What something that runs has still to read: nothing is restarted for it once the boot is over. */
  readonly owed?: readonly string[];
  /** Where it failed, and why. */
  readonly path?: string;
  readonly cause?: string;
}
