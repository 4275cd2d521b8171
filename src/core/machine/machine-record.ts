import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { Originals } from "./observed-content.ts";
import type { ImagePair } from "./image-target.ts";
import type { Ledger, ImageContentRecord } from "./observed-node.ts";
import type { ContentMode } from "../config/node-config.ts";

/** A target that this machine rolled back from. */
export interface RefusedTarget {
  readonly config: string;
  readonly image: string;
  /** Present if the image was given separately from the configuration. */
  readonly content?: ContentMode;
  readonly reason: string;
  /** Another boot would not have helped; missing in a record of an earlier release. */
  readonly cause?: "BootFailed" | "SettleFailed";
  /** RFC 3339. */
  readonly at: string;
  /** It is recorded in the MachineConfigNode: removing it there clears it here. */
  readonly reported?: boolean;
}

/** The complete current configuration of the machine, so that a roll-back needs no API server. */
export interface Previous {
  readonly config: MachineConfig;
  /** The image that it boots instead of the configuration's. */
  readonly pair?: ImagePair | undefined;
  /** `false`: the machine started with it, and this is not verified yet. */
  readonly proven: boolean;
}

/** The daemon's recorded state of its machine: read once, written through, owned by one loop. */
export interface MachineDocuments {
  readonly ledger: Ledger | undefined;
  readonly previous: Previous | undefined;
  readonly originals: Originals | undefined;
  readonly refused: readonly RefusedTarget[];
  /** The result of the last application of the image's content. */
  readonly settled?: ImageContentRecord | undefined;
}

/** A target as it is stored: complete. */
export interface KeptTarget {
  readonly config: MachineConfig;
  readonly pair?: ImagePair | undefined;
}
