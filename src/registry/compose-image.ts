import { diffIdsOf, invalidImage, mediaTypes, parseManifest } from "./manifest.ts";
import { digestOf, type Repository } from "./registry-client.ts";
import { own } from "../api/schema/own.ts";

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** An image as it is pushed: its new parts, and those from its parent. */
export interface ComposedImage {
  readonly manifest: Blob;
  readonly config: Blob;
  readonly layer: Blob | undefined;
  /** Layers of the parent. */
  readonly kept: readonly ParentLayer[];
}

/** Each form of manifest has its own name for a layer. */
const layerTypeOf: Readonly<Record<string, string>> = {
  [mediaTypes.ociManifest]: mediaTypes.ociLayerGzip,
  [mediaTypes.dockerManifest]: "application/vnd.docker.image.rootfs.diff.tar.gzip",
};
const configTypeOf: Readonly<Record<string, string>> = {
  [mediaTypes.ociManifest]: mediaTypes.ociConfig,
  [mediaTypes.dockerManifest]: "application/vnd.docker.container.image.v1+json",
};

type Json = Readonly<Record<string, unknown>>;

/**
 * Reads an image as what others are made from.
 *
 * @param source where the bytes of a layer are.
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export function parentFrom(
  manifestBytes: Uint8Array,
  configBytes: Uint8Array,
  source: (digest: string) => Pick<ParentLayer, "repository" | "open">,
): ParentImage {
  const manifest = parseManifest(manifestBytes);
  if (manifest.kind === "index") throw invalidImage("an index is no image to build on");
  const raw = JSON.parse(new TextDecoder().decode(manifestBytes)) as {
    readonly mediaType?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly layers: readonly ParentLayer["descriptor"][];
  };
  const diffIds = diffIdsOf(configBytes);
  if (diffIds.length !== raw.layers.length)
    throw invalidImage("its config speaks of another number of layers than its manifest", {
      layers: raw.layers.length,
      diffIds: diffIds.length,
    });
  return {
    mediaType: raw.mediaType ?? mediaTypes.ociManifest,
    ...(raw.annotations === undefined ? {} : { annotations: raw.annotations }),
    config: JSON.parse(new TextDecoder().decode(configBytes)) as Json,
    layers: raw.layers.map(({ mediaType, digest, size, annotations }, i) => ({
      descriptor: { mediaType, digest, size, ...(annotations === undefined ? {} : { annotations }) },
      diffId: diffIds[i] ?? "",
      ...source(digest),
    })),
  };
}

/**
 * Composes an image from a parent and an addition. It depends on neither the time nor the machine, and the layer of an
 * earlier addition is removed: the image of A with B in place of C is the image of A with B.
 *
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export function composeImage(
  parent: ParentImage,
  { dropTopLayer, layer, labels, createdSeconds }: Addition,
): ComposedImage {
  const configType = own(configTypeOf, parent.mediaType);
  const layerType = own(layerTypeOf, parent.mediaType);
  if (configType === undefined || layerType === undefined)
    throw invalidImage("its manifest is of a form that nothing can be laid on", {
      mediaType: parent.mediaType.slice(0, 256),
    });
  if (dropTopLayer && parent.layers.length === 0) throw invalidImage("it has no layer that could be left out");
  const kept = dropTopLayer ? parent.layers.slice(0, -1) : parent.layers;
  const created = new Date(createdSeconds * 1000).toISOString().replace(".000Z", "Z");
  const added =
    layer === undefined ? undefined : { mediaType: layerType, digest: digestOf(layer.bytes), bytes: layer.bytes };

  const settings = objectIn(parent.config["config"]);
  const history = listIn(parent.config["history"]);
  const config = jsonOf(configType, {
    ...parent.config,
    created,
    config: { ...settings, Labels: sorted({ ...objectIn(settings["Labels"]), ...labels }) },
    rootfs: {
      type: "layers",
      diff_ids: [...kept.map(({ diffId }) => diffId), ...(layer === undefined ? [] : [layer.diffId])],
    },
    history: [
      ...(dropTopLayer ? withoutTop(history) : history),
      ...(layer === undefined ? [] : [{ created, created_by: "machine configuration" }]),
    ],
  });
  const manifest = jsonOf(parent.mediaType, {
    schemaVersion: 2,
    mediaType: parent.mediaType,
    config: described(config),
    layers: [...kept.map(({ descriptor }) => descriptor), ...(added === undefined ? [] : [described(added)])],
    ...(parent.annotations === undefined ? {} : { annotations: parent.annotations }),
  });
  return { manifest, config, layer: added, kept };
}

/** Removes the last entry that describes a layer, and those after it. */
function withoutTop(history: readonly unknown[]): readonly unknown[] {
  const top = history.findLastIndex((entry) => objectIn(entry)["empty_layer"] !== true);
  return top < 0 ? history : history.slice(0, top);
}

const objectIn = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const sorted = (record: Json): Json => Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
const jsonOf = (mediaType: string, value: object): Blob => {
  const bytes = Buffer.from(JSON.stringify(value), "utf8");
  return { mediaType, digest: digestOf(bytes), bytes };
};
const described = ({ mediaType, digest, bytes }: Blob) => ({ mediaType, digest, size: bytes.length });

/** A layer of an image that others are made from, with where its bytes are. */
export interface ParentLayer {
  /** As the manifest has it. */
  readonly descriptor: {
    readonly mediaType: string;
    readonly digest: string;
    readonly size: number;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly diffId: string;
  /** Where a registry may find it by itself; absent for one that is only here. */
  readonly repository?: Repository;
  open(signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** An image that another one is made from: in a registry, or on this machine. */
export interface ParentImage {
  /** Of its manifest. */
  readonly mediaType: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Its configuration as it is. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly layers: readonly ParentLayer[];
}

/** The addition to a parent image, and the destination of the result. */
export interface Addition {
  /** Its top layer is left out: an older configuration. */
  readonly dropTopLayer: boolean;
  readonly layer?: { readonly bytes: Uint8Array; readonly diffId: string };
  readonly labels: Readonly<Record<string, string>>;
  /** Host and path. */
  readonly repository: string;
  readonly tag: string;
  /** Seconds since the epoch: the age of the image. */
  readonly createdSeconds: number;
}
