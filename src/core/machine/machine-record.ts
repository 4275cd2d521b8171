import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { Originals } from "./content-gap.ts";
import type { ImagePair } from "./image-target.ts";
import type { Ledger, ImageContentRecord } from "./observed-node.ts";
import type { ContentMode } from "../config/node-config.ts";

/** A target that this machine rolled back from. */
export interface RefusedTarget {
  readonly config: string;
  readonly image: string;
  /** Present where the image was given apart from the configuration. */
  readonly content?: ContentMode;
  readonly reason: string;
  /** RFC 3339. */
  readonly at: string;
  /** It stands in the MachineConfigNode: then somebody who takes it away there lifts it here. */
  readonly reported?: boolean;
}

/** The complete current configuration of the machine, so that a roll-back needs no API server. */
export interface Previous {
  readonly config: MachineConfig;
  /** The image that it boots in place of the configuration's. */
  readonly pair?: ImagePair | undefined;
  /** `false`: it started with it, and nobody has seen yet that it came up so. */
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

/** A target as it is kept: whole. */
export interface KeptTarget {
  readonly config: MachineConfig;
  readonly pair?: ImagePair | undefined;
}
