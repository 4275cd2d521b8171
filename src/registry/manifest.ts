import { McoError } from "../api/errors.ts";
import { digestPattern } from "../core/images/image-reference.ts";
import { foldedName } from "../ignition/folded-name.ts";
import { repeatedField } from "../core/text/repeated-field.ts";

/** A reference to bytes: what they are, how many, and their digest. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ImageManifest {
  readonly kind: "image";
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

export interface ImageIndex {
  readonly kind: "index";
  readonly manifests: readonly (Descriptor & Platform)[];
}

interface Platform {
  readonly os: string;
  readonly architecture: string;
  /** Of the architecture; empty: not stated. */
  readonly variant: string;
}

export type Compression = "none" | "gzip" | "zstd";

export const mediaTypes = {
  ociManifest: "application/vnd.oci.image.manifest.v1+json",
  ociIndex: "application/vnd.oci.image.index.v1+json",
  ociConfig: "application/vnd.oci.image.config.v1+json",
  ociLayerGzip: "application/vnd.oci.image.layer.v1.tar+gzip",
  dockerManifest: "application/vnd.docker.distribution.manifest.v2+json",
  dockerList: "application/vnd.docker.distribution.manifest.list.v2+json",
} as const;

const manifestTypes: readonly string[] = [mediaTypes.ociManifest, mediaTypes.dockerManifest];
const indexTypes: readonly string[] = [mediaTypes.ociIndex, mediaTypes.dockerList];

export const acceptedManifests = [...manifestTypes, ...indexTypes].join(", ");

const layerTypes: Readonly<Record<string, Compression>> = {
  "application/vnd.oci.image.layer.v1.tar": "none",
  "application/vnd.oci.image.layer.v1.tar+gzip": "gzip",
  "application/vnd.oci.image.layer.v1.tar+zstd": "zstd",
  "application/vnd.docker.image.rootfs.diff.tar": "none",
  "application/vnd.docker.image.rootfs.diff.tar.gzip": "gzip",
  "application/vnd.docker.image.rootfs.diff.tar.zstd": "zstd",
};

type IsOfType = (value: unknown) => boolean;
const isText: IsOfType = (value) => typeof value === "string";
const isTexts: IsOfType = (value) => Array.isArray(value) && value.every((text) => text === null || isText(text));
const isNotes: IsOfType = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(isText);
const isBase64: IsOfType = (value) =>
  typeof value === "string" && /^(?:[\w+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?$/.test(value) && !value.includes("_");

/**
 * Fields that this suite does not read, and the types that Go's reader wants of them (opencontainers/image-spec specs-go/v1,
 * v1.1): container engines refuse the whole document for one of another type.
 */
const unread = {
  manifest: { annotations: isNotes, artifactType: isText },
  descriptor: { urls: isTexts, data: isBase64, artifactType: isText },
  platform: { "os.version": isText, "os.features": isTexts },
} as const;

const manifestFields = ["schemaVersion", "mediaType", "config", "layers", "manifests", "subject"];
const descriptorFields = ["mediaType", "digest", "size", "annotations", "platform"];
const platformFields = ["os", "architecture", "variant"];

/** Bounds on what an image may ask of a machine. */
export const imageLimits = {
  manifestBytes: 4 * 1024 * 1024,
  configBytes: 4 * 1024 * 1024,
  layers: 512,
  manifestsOfIndex: 1024,
  /** Of all layers together, as they are sent. */
  totalBytes: 16 * 1024 ** 3,
} as const;

export const invalidImage = (problem: string, facts: Readonly<Record<string, unknown>> = {}) =>
  new McoError("MCO_IMAGE_INVALID", { problem, ...facts, retryable: false });

/**
 * Reads a manifest or an index. The document's own media type takes precedence, then the type that it was sent as, then
 * its shape.
 *
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export function parseManifest(bytes: Uint8Array, sentAs?: string): ImageManifest | ImageIndex {
  const document = structOf(
    parseJson(bytes, "the manifest", { isUnambiguous: true }),
    "the manifest",
    manifestFields,
    unread.manifest,
  );
  const sent = sentAs?.split(";")[0]?.trim();
  const own =
    document["mediaType"] ??
    (sent !== undefined && [...manifestTypes, ...indexTypes].includes(sent) ? sent : undefined);
  const mediaType = own ?? (document["manifests"] !== undefined ? mediaTypes.ociIndex : mediaTypes.ociManifest);
  if (document["schemaVersion"] !== 2)
    throw invalidImage(
      document["schemaVersion"] === 1
        ? "its manifest is of schema version 1, which is not supported"
        : "its manifest has no schema version 2",
    );
  // A document that is both could be read as two different images.
  if (document["manifests"] !== undefined && (document["layers"] !== undefined || document["config"] !== undefined))
    throw invalidImage("its manifest is an index and an image at once");
  if ((document["subject"] ?? undefined) !== undefined) descriptorOf(document["subject"], "the subject");
  if (typeof mediaType === "string" && indexTypes.includes(mediaType)) return indexOf(document);
  if (typeof mediaType !== "string" || !manifestTypes.includes(mediaType))
    throw invalidImage("its manifest is of a media type that is not supported", {
      mediaType: typeof mediaType === "string" ? mediaType.slice(0, 256) : typeof mediaType,
    });
  const config = descriptorOf(document["config"], "config");
  const layers = listOf(document["layers"], "layers", imageLimits.layers).map((layer, i) =>
    descriptorOf(layer, `layer ${i + 1}`),
  );
  if (config.sizeBytes > imageLimits.configBytes)
    throw invalidImage("its config is too large", { sizeBytes: config.sizeBytes, limitBytes: imageLimits.configBytes });
  return { kind: "image", config, layers };
}

/** The layers of an operating system image with the compression of each. @throws McoError `MCO_IMAGE_INVALID` */
export function layersOf(manifest: ImageManifest): readonly (Descriptor & { readonly compression: Compression })[] {
  const total = manifest.layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (total > imageLimits.totalBytes)
    throw invalidImage("its layers are too large together", { sizeBytes: total, limitBytes: imageLimits.totalBytes });
  return manifest.layers.map((layer) => {
    const compression = Object.hasOwn(layerTypes, layer.mediaType) ? layerTypes[layer.mediaType] : undefined;
    if (compression === undefined)
      throw invalidImage("a layer is of a media type that is not supported", {
        mediaType: layer.mediaType.slice(0, 256),
      });
    return { ...layer, compression };
  });
}

/** Variants of each architecture that its machines run (containers/image internal/pkg/platform, v5). */
const variants: Readonly<Record<string, readonly string[]>> = { amd64: [""], arm64: ["", "v8"] };

/**
 * The manifest of an index for a Linux machine of this architecture (`amd64`, `arm64`). Which one of several a container
 * engine takes depends on its version, so that several are refused.
 *
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export function manifestFor(index: ImageIndex, architecture: string): Descriptor {
  const fitting = index.manifests.filter(
    ({ os, architecture: of, variant }) =>
      os === "linux" && of === architecture && (variants[architecture] ?? [""]).includes(variant),
  );
  const [found] = fitting;
  if (new Set(fitting.map(({ digest }) => digest)).size > 1)
    throw invalidImage("its index has several manifests for this machine", {
      architecture,
      digests: fitting.map(({ digest }) => digest).slice(0, 20),
    });
  if (found === undefined)
    throw invalidImage("its index has no manifest for this machine", {
      architecture,
      has: index.manifests.map((manifest) => platformText(manifest).slice(0, 64)).slice(0, 20),
    });
  return found;
}

const platformText = ({ os, architecture, variant }: Platform): string =>
  `${os}/${architecture}${variant === "" ? "" : `/${variant}`}`;

const configFields = ["architecture", "os", "variant", "created", "author", "config", "rootfs", "history"];

/** An image that is made from another one keeps its config: machines have to read there what this suite reads. */
const configIn = (bytes: Uint8Array): Readonly<Record<string, unknown>> =>
  structOf(parseJson(bytes, "the config", { isUnambiguous: true }), "the config", configFields, {});

/** Digests of the layers as they are when unpacked, in order. @throws McoError `MCO_IMAGE_INVALID` */
export function diffIdsOf(config: Uint8Array): readonly string[] {
  const rootfs = structOf(configIn(config)["rootfs"], "the config's rootfs", ["type", "diff_ids"], {});
  return listOf(rootfs["diff_ids"], "diff_ids", imageLimits.layers).map((digest) => {
    if (typeof digest !== "string" || !digestPattern.test(digest))
      throw invalidImage("its config has a diff id that is no sha256 digest");
    return digest;
  });
}

/**
 * The contents of an image's config: its architecture (empty: not stated), when it was made, in milliseconds since the
 * epoch (0: not stated), and its labels. @throws McoError `MCO_IMAGE_INVALID`
 */
export function manifestFacts(config: Uint8Array): {
  readonly architecture: string;
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
} {
  const { architecture, created, config: settings } = configIn(config);
  const at = typeof created === "string" ? Date.parse(created) : NaN;
  const labels = structOf(settings ?? {}, "the config's settings", ["Labels"], {})["Labels"];
  return {
    architecture: typeof architecture === "string" ? architecture : "",
    created: Number.isNaN(at) ? 0 : at,
    labels: Object.fromEntries(
      Object.entries(objectOf(labels ?? {}, "the labels")).flatMap(([name, value]) =>
        typeof value === "string" ? [[name, value]] : [],
      ),
    ),
  };
}

function indexOf(document: Readonly<Record<string, unknown>>): ImageIndex {
  const manifests = listOf(document["manifests"], "manifests", imageLimits.manifestsOfIndex).map((entry, i) => {
    const descriptor = descriptorOf(entry, `manifest ${i + 1}`);
    return { ...descriptor, ...platformOf((entry as { readonly platform?: unknown }).platform) };
  });
  return { kind: "index", manifests: manifests.filter(({ mediaType }) => manifestTypes.includes(mediaType)) };
}

/** A platform that is not stated has empty fields. */
function platformOf(platform: unknown): Platform {
  const fields = structOf(platform ?? {}, "platform", platformFields, unread.platform);
  const text = (name: string): string => {
    const value = fields[name] ?? "";
    if (typeof value !== "string") throw invalidImage("a platform of its index is not made of texts");
    return value;
  };
  return { os: text("os"), architecture: text("architecture"), variant: text("variant") };
}

function descriptorOf(value: unknown, what: string): Descriptor {
  const { mediaType, digest, size, annotations, platform } = structOf(value, what, descriptorFields, unread.descriptor);
  platformOf(platform);
  if (
    typeof mediaType !== "string" ||
    typeof digest !== "string" ||
    typeof size !== "number" ||
    !Number.isSafeInteger(size) ||
    size < 0
  )
    throw invalidImage(`${what} of its manifest has no media type, digest and size`);
  if (!digestPattern.test(digest)) throw invalidImage(`${what} of its manifest has a digest that is not sha256`);
  const notes =
    annotations === undefined
      ? {}
      : Object.fromEntries(
          Object.entries(objectOf(annotations, `annotations of ${what}`)).map(([name, text]) => {
            if (typeof text !== "string") throw invalidImage(`an annotation of ${what} is no text`);
            return [name, text];
          }),
        );
  return { mediaType, digest, sizeBytes: size, annotations: notes };
}

/** Whether an escape stands for one half of a surrogate pair, which Go replaces and JavaScript keeps. */
function hasHalfCharacter(text: string): boolean {
  // A manifest may be backslashes alone: many at once, and no list of them.
  const escapes =
    /(?:\\\\){1,64}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([dD][89a-fA-F][0-9a-fA-F]{2})/g;
  for (const [, half] of text.matchAll(escapes)) if (half !== undefined) return true;
  return false;
}

function parseJson(bytes: Uint8Array, what: string, { isUnambiguous = false } = {}): unknown {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw new McoError("MCO_IMAGE_INVALID", { problem: `${what} is not JSON`, retryable: false }, { cause });
  }
  if (isUnambiguous && hasHalfCharacter(text)) throw invalidImage(`${what} has half a character in a text`);
  const repeated = isUnambiguous ? repeatedField(text) : undefined;
  if (repeated !== undefined) throw invalidImage(`${what} has a field twice`, { field: repeated.slice(0, 64) });
  return value;
}

/**
 * An object with fields that are read, and others of which the type is judged. Container engines read fields without regard to case (encoding/json of Go), so that a
 * second spelling of one would show them another image.
 */
function structOf(
  value: unknown,
  what: string,
  read: readonly string[],
  others: Readonly<Record<string, IsOfType>>,
): Readonly<Record<string, unknown>> {
  const object = objectOf(value, what);
  const known = [...read, ...Object.keys(others)];
  const folded = new Set(known.map(foldedName));
  const other = Object.keys(object).find((name) => !known.includes(name) && folded.has(foldedName(name)));
  if (other !== undefined) throw invalidImage(`${what} has a field in another spelling`, { field: other.slice(0, 64) });
  for (const [name, isOfType] of Object.entries(others)) {
    const field = object[name] ?? undefined;
    if (field !== undefined && !isOfType(field))
      throw invalidImage(`${what} has a field of another type`, { field: name });
  }
  return object;
}

function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidImage(`${what} is no object`);
  return value as Readonly<Record<string, unknown>>;
}

function listOf(value: unknown, what: string, limit: number): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidImage(`${what} of its manifest is no list`);
  if (value.length > limit)
    throw invalidImage(`${what} of its manifest has too many entries`, { entries: value.length, limit });
  return value;
}
