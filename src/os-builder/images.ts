import type { ImageStore } from "../registry/image-store.ts";
import type { ProxySettings } from "../registry/wire.ts";

/** The queries to registries. */
export type Images = Pick<ImageStore, "resolve" | "inspect" | "readFiles" | "delete" | "mayPush" | "isWorldReadable">;

/** Settings for queries to registries: texts in the format of a machine's files. */
export interface ImageAccess {
  /** Auth files. */
  readonly pull: string | undefined;
  readonly push: string | undefined;
  /** registries.conf and policy.json of the configuration. */
  readonly registries: string | undefined;
  readonly policy: string | undefined;
  /** PEM texts by host, and those for every host. */
  readonly certificates: Readonly<Record<string, readonly string[]>>;
  readonly trust: readonly string[];
  /** `amd64`, `arm64`, … */
  readonly architecture: string;
  readonly proxy?: ProxySettings | undefined;
}

export type OpenImages = (access: ImageAccess) => Images;
