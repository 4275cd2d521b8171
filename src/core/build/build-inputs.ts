import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import { type ContainerfileReading, renderContainerfile } from "./build-containerfile.ts";
import {
  type ContentKey,
  type VisibleFile,
  buildVisible,
  contentKey,
  digestOfData,
  digestOfVisible,
  sha256Hex,
} from "./build-key.ts";
import { rebuildSerial } from "./build-rebuild.ts";
import { contentDigest } from "../config/image-content.ts";
import { parseImageReference, repositoryOf } from "../images/image-reference.ts";
import { type NodeConfig, nodeConfigOf, type ContentMode } from "../config/node-config.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";

/** What an image is made from, with every name resolved and every object read. */
export interface BuildSources {
  readonly rendered: MachineConfig;
  readonly config: MachineOSConfig;
  readonly mode: ContentMode;
  readonly architecture: string;
  /** Pullspec by digest of the configuration's OS image. */
  readonly base: string;
  /** The same of its extensions image; absent where it names none, or nothing is taken from it. */
  readonly extensionsImage?: string;
  /** The custom Containerfile; absent without any. */
  readonly custom: ContainerfileReading | undefined;
  /** Of the ConfigMap that brings files for custom steps. */
  readonly context?: Readonly<Record<string, string>>;
  /** PEM */
  readonly trust?: string;
  readonly repos?: Readonly<Record<string, string>>;
  readonly gpg?: Readonly<Record<string, string>>;
}

export type BuildInputs =
  | { readonly verdict: "refused"; readonly reason: string }
  | {
      readonly verdict: "inputs";
      readonly content: NodeConfig;
      readonly key: ContentKey;
      /** Host and path. */
      readonly repository: string;
      readonly runsSteps: boolean;
      /** No packages, no other kernel and no custom steps: the base image is the parent. */
      readonly isBaseParent: boolean;
      readonly seesConfiguration: boolean;
      /**
       * Files of the configuration that the steps see. None without custom steps: packages come from the extensions image,
       * and a pool with other package sources may take the image.
       */
      readonly visible: readonly VisibleFile[];
      /** The Containerfile of the parent image; absent if the base image is the parent. */
      readonly containerfile: string | undefined;
    };

const decoded = new WeakMap<MachineConfig, ReturnType<typeof nodeConfigOf>>();

/** A rendered configuration as machines apply it; decoded once for each object. */
export function readRendered(
  rendered: MachineConfig,
):
  | { readonly verdict: "read"; readonly config: NodeConfig }
  | { readonly verdict: "refused"; readonly reason: string } {
  const ignition = ignitionOf(rendered);
  if (ignition?.verdict === "invalid") {
    const [problem] = ignition.problems;
    return {
      verdict: "refused",
      reason: `${rendered.metadata.name}: spec.config${problem?.path === "" ? "" : `.${problem?.path}`}: ${problem?.reason}`,
    };
  }
  const result = decoded.get(rendered) ?? nodeConfigOf(rendered, ignition?.config);
  decoded.set(rendered, result);
  return result.verdict === "refused"
    ? { verdict: "refused", reason: `${rendered.metadata.name}: ${result.path}: ${result.reason}` }
    : { verdict: "read", config: result.config };
}

const digestIn = (pullspec: string | undefined): string | undefined =>
  pullspec === undefined ? undefined : pullspec.slice(pullspec.indexOf("@") + 1);

/** Whether the image adds packages or another kernel. */
export const installsPackages = ({ extensions, kernelType }: Pick<NodeConfig, "extensions" | "kernelType">): boolean =>
  extensions.length > 0 || kernelType !== "default";

/** The key of the pool's desired image, and its inputs. The controllers and `mco build plan` share this function. */
export function buildInputs(sources: BuildSources): BuildInputs {
  const read = readRendered(sources.rendered);
  if (read.verdict === "refused") return read;
  const reference = parseImageReference(sources.config.spec.renderedImagePushSpec);
  if (reference.verdict === "refused")
    return { verdict: "refused", reason: `spec.renderedImagePushSpec: ${reference.problem}` };
  const { config: content } = read;
  if (sources.custom?.verdict === "refused")
    return {
      verdict: "refused",
      reason: `the custom Containerfile, line ${sources.custom.line}: ${sources.custom.problem}`,
    };
  // Inputs that change nothing count as absent.
  const custom = sources.custom?.isEmpty === true ? undefined : sources.custom;
  const installs = installsPackages(content);
  const seesConfiguration = sources.mode === "full" && custom?.foundation === "configs";
  const repository = repositoryOf(reference.reference);
  const [context, repos, gpg] = [digestOfData(sources.context), digestOfData(sources.repos), digestOfData(sources.gpg)];
  const extensions = digestIn(sources.extensionsImage);
  const visible = custom === undefined ? [] : buildVisible(content);
  const key = contentKey({
    mode: sources.mode,
    serial: rebuildSerial(sources.config),
    architecture: sources.architecture,
    repository,
    base: digestIn(sources.base) ?? "",
    ...(extensions === undefined ? {} : { extensionsImage: extensions }),
    extensions: content.extensions,
    kernelType: content.kernelType,
    ...(custom === undefined
      ? {}
      : { custom: { text: custom.text, ...(context === undefined ? {} : { context }), seesConfiguration } }),
    ...(sources.trust === undefined || sources.trust.trim() === "" ? {} : { trust: sha256Hex(sources.trust) }),
    ...(repos === undefined ? {} : { repos }),
    ...(gpg === undefined ? {} : { gpg }),
    visible: digestOfVisible(visible),
    content: contentDigest(content),
  });
  const runsSteps = installs || custom !== undefined;
  const containerfile = runsSteps
    ? renderContainerfile({
        base: sources.base,
        ...(sources.extensionsImage === undefined ? {} : { extensionsImage: sources.extensionsImage }),
        extensions: content.extensions,
        kernelType: content.kernelType,
        ...(custom === undefined ? {} : { custom: custom.text }),
        configsHoldConfiguration: seesConfiguration,
        hasTrust: sources.trust !== undefined && sources.trust.trim() !== "",
      })
    : undefined;
  return {
    verdict: "inputs",
    content,
    key,
    repository,
    runsSteps,
    isBaseParent: !runsSteps,
    seesConfiguration,
    visible,
    containerfile,
  };
}

/** The ConfigMap with files for custom steps that the MachineOSConfig names. */
export const contextConfigMapOf = ({ metadata }: Pick<MachineOSConfig, "metadata">): string | undefined =>
  metadata.annotations?.[annotations.buildContext];
