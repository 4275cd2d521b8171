import { canonicalJson } from "../text/canonical-json.ts";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { deliveryOf } from "../config/image-content.ts";
import type { NodeConfig, ContentMode } from "../config/node-config.ts";
import type { KeyComponents } from "../config/key-components.ts";

/** Increase it whenever equal inputs yield a different image than before. */
export const recipeVersion = "1";

/** Everything that determines an image's content. */
export interface KeyInputs {
  readonly mode: ContentMode;
  /** The number of requested rebuilds. */
  readonly serial: number;
  /** `amd64`, `arm64`, … */
  readonly architecture: string;
  /** Host and path. */
  readonly repository: string;
  /** `sha256:…` of the base image. */
  readonly base: string;
  /** `sha256:…`; absent where the configuration names none. */
  readonly extensionsImage?: string;
  readonly extensions: readonly string[];
  readonly kernelType: string;
  /** Custom steps; absent without any. */
  readonly custom?: {
    /** Normalised. */
    readonly text: string;
    /** Digest of the files in its context; absent without any. */
    readonly context?: string;
    /** They build on the stage that contains the configuration. */
    readonly seesConfiguration: boolean;
  };
  /** Digests of other content that steps see; absent: none. */
  readonly trust?: string;
  readonly repos?: string;
  readonly gpg?: string;
  /** Of {@link buildVisible}. */
  readonly visible: string;
  /** Of all content that a machine gets on its disk. */
  readonly content: string;
}

export interface ContentKey {
  /** 32 hexadecimal digits. Equal keys: equal images. */
  readonly key: string;
  /** The same of the image without its configuration on top. */
  readonly parentKey: string;
  readonly components: KeyComponents;
}

const keyCharacters = 32;

export const sha256Hex = (data: string | Uint8Array): string =>
  bytesToHex(sha256(typeof data === "string" ? utf8ToBytes(data) : data));

/** The key of an image. It contains only inputs that can change the image. */
export function contentKey(inputs: KeyInputs): ContentKey {
  const { mode, custom } = inputs;
  const installs = inputs.extensions.length > 0 || inputs.kernelType !== "default";
  const runsSteps = installs || custom !== undefined;
  const parent = {
    base: inputs.base,
    ext: installs ? (inputs.extensionsImage ?? null) : null,
    kernelType: inputs.kernelType,
    extensions: [...new Set(inputs.extensions)].sort().join(","),
    user: custom === undefined ? null : sha256Hex(canonicalJson([custom.text, custom.context ?? null])),
    trust: runsSteps ? (inputs.trust ?? null) : null,
    repos: runsSteps ? (inputs.repos ?? null) : null,
    gpg: runsSteps ? (inputs.gpg ?? null) : null,
    visible: custom === undefined ? null : inputs.visible,
    below: mode === "full" && custom?.seesConfiguration === true ? inputs.content : null,
  };
  const common = { recipe: recipeVersion, serial: inputs.serial, arch: inputs.architecture };
  const content = mode === "full" ? inputs.content : null;
  const short = (text: string) => sha256Hex(text).slice(0, keyCharacters);
  return {
    key: short(canonicalJson({ ...common, mode, repository: inputs.repository, parent, content })),
    parentKey: short(canonicalJson({ ...common, parent })),
    components: { ...common, mode, repository: inputs.repository, ...parent, content },
  };
}

/** The display name of a component. */
const componentNames: Readonly<Record<string, string>> = {
  recipe: "the builder's recipe",
  serial: "a rebuild that was asked for",
  arch: "the architecture",
  mode: "the content mode",
  repository: "the repository",
  base: "the base image",
  ext: "the extensions image",
  kernelType: "the kernel",
  extensions: "the extensions",
  user: "the custom Containerfile or its context",
  trust: "the trust bundle",
  repos: "the ConfigMap with repositories",
  gpg: "the Secret with package keys",
  visible: "repositories, keys or certificates of the configuration, which steps see",
  below: "files that custom steps stand on",
  content: "files, units or accounts",
};

export interface KeyDifference {
  readonly component: string;
  /** For people. */
  readonly says: string;
  readonly before: string | number | null;
  readonly after: string | number | null;
}

/** Why two keys differ, component by component. */
export function keyDifferences(before: KeyComponents, after: KeyComponents): readonly KeyDifference[] {
  return Object.keys(componentNames).flatMap((component) => {
    const [was, is] = [before[component] ?? null, after[component] ?? null];
    return was === is ? [] : [{ component, says: componentNames[component] ?? component, before: was, after: is }];
  });
}

const ofWhole: ReadonlySet<string> = new Set(["recipe", "mode", "serial", "arch", "repository", "content"]);

/** Components as a build keeps them, those of the parent image under `parent`. */
export function printComponents(components: KeyComponents): string {
  const parts = Object.entries(components);
  return canonicalJson({
    ...Object.fromEntries(parts.filter(([name]) => ofWhole.has(name))),
    parent: Object.fromEntries(parts.filter(([name]) => !ofWhole.has(name))),
  });
}

/** Folders of a configuration that build steps see. */
const visibleFolders = [
  "/etc/yum.repos.d/",
  "/etc/pki/rpm-gpg/",
  "/etc/pki/ca-trust/source/anchors/",
  "/etc/dnf/",
  "/etc/rhsm/",
  "/etc/containers/",
] as const;

export interface VisibleFile {
  readonly path: string;
  readonly contents: Uint8Array;
  readonly mode: number;
  readonly digest: string;
}

/** Files of a configuration that build steps see, sorted by path: users deliver package repositories this way. */
export function buildVisible(config: NodeConfig): readonly VisibleFile[] {
  return [...config.entries]
    .flatMap(([path, entry]) =>
      entry.kind === "file" && deliveryOf(path) === "image" && visibleFolders.some((folder) => path.startsWith(folder))
        ? [{ path, contents: entry.contents, mode: entry.mode, digest: entry.digest }]
        : [],
    )
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

export const digestOfVisible = (files: readonly VisibleFile[]): string =>
  sha256Hex(canonicalJson(files.map(({ path, digest, mode }) => [path, digest, mode])));

/** Digest of a ConfigMap's or Secret's data, whatever the order of its keys. */
export const digestOfData = (data: Readonly<Record<string, string>> | undefined): string | undefined =>
  data === undefined || Object.keys(data).length === 0 ? undefined : sha256Hex(canonicalJson(data));

/** Name of the build of a key, and the tag of its image. */
export const buildName = (machineOSConfig: string, key: string): string => `${machineOSConfig}-${key}`;

/** Name of a further build of the same key: for another configuration, or a repetition. `generation` counts from 0. */
export const repeatName = (machineOSConfig: string, key: string, rendered: string, generation: number): string =>
  `${buildName(machineOSConfig, key)}-${sha256Hex(canonicalJson([rendered, generation])).slice(0, 6)}`;

/** The longest value of a label. */
const labelLimit = 63;

/** A name as a label value: a name that is too long is truncated and stays unique. */
export const labelValue = (name: string): string =>
  name.length <= labelLimit ? name : `${name.slice(0, labelLimit - 13)}-${sha256Hex(name).slice(0, 12)}`;
