import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import { type KubeObject, controlledBy } from "../../api/schema/object.ts";
import { canonical } from "../../ignition/canonical.ts";
import { type Merged, type MergedFrom, mergeIgnition } from "../../ignition/merge-ignition.ts";
import type { Problem } from "../../ignition/problem.ts";
import {
  type ClusterValues,
  type FieldOrigin,
  fieldRules,
  inMergeOrder,
  originsOfFields,
} from "../config/merge-fields.ts";
import { maxRenderedBytes, tooLargeTogether } from "./too-large-together.ts";
import type { UnknownStream } from "./os-streams.ts";
import { renderedName } from "./rendered-name.ts";
import {
  type MachineConfigInput,
  ignitionOf,
  renderErrors,
  validateMachineConfig,
} from "../config/validate-machine-config.ts";
import { yamlForHash } from "./yaml-for-hash.ts";

/** The inputs of a pool's rendered config. */
export interface RenderInputs {
  readonly pool: Pick<MachineConfigPool, "metadata"> & {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly spec?: Partial<Pick<MachineConfigPool["spec"], "osImageStream" | "configuration">>;
  };
  /** The MachineConfigs that the pool selects, in any order. */
  readonly members: readonly MachineConfigInput[];
  readonly controllerConfig: {
    readonly metadata?: Partial<ControllerConfig["metadata"]>;
    readonly spec: { readonly baseOSContainerImage?: string; readonly baseOSExtensionsContainerImage?: string };
  };
  /** Images of the pool's OS stream, where one applies; they replace the ControllerConfig's. */
  readonly stream?: { readonly name?: string; readonly osImage: string; readonly extensionsImage: string };
  /** The pool is to follow a stream that there is not. */
  readonly unknownStream?: UnknownStream;
  /**
   * The value of `generated-by-controller-version` for this version. Members with another value are outdated and make
   * the pool wait; without this field the check is skipped.
   */
  readonly generatorVersion?: string;
}

/** Why a pool cannot be rendered. */
export interface RenderRefusal {
  readonly code:
    | "NoMembers"
    | "InvalidMember"
    | "OutdatedMember"
    | "UnlabelledMember"
    | "KernelDevel"
    | "Unhashable"
    | "StreamAndImage"
    | "UnknownStream"
    | "TooLarge"
    | "PathConflict"
    | "NoContents"
    | "Irreconcilable";
  /** A sentence without a final full stop. */
  readonly reason: string;
  /** Name of the MachineConfig that has to change. */
  readonly member?: string;
  /** Field of that MachineConfig. */
  readonly path?: string;
  readonly remedy?: string;
  /** All MachineConfigs that the reason is about and their fields, where it is about what they are together. */
  readonly involves?: readonly { readonly member: string; readonly path: string }[];
}

/** A finding that does not prevent rendering. */
export interface RenderWarning {
  readonly code: "ImageOverridden" | "NearlyTooLarge" | "Conflict" | "Finding";
  readonly reason: string;
  readonly member?: string;
  /** Of a conflict: the MachineConfig whose value the member replaces. */
  readonly over?: string;
  readonly path?: string;
}

/** One member as `spec.configuration.source` lists it. */
export interface SourceReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid?: string;
}

export type RenderResult =
  | {
      readonly verdict: "rendered";
      readonly config: MachineConfig & { readonly spec: RenderedSpec };
      readonly source: readonly SourceReference[];
      /** Entries of the Ignition config, and where each came from. Computed when first read. */
      readonly origins: readonly MergedFrom[];
      /** Values of the other fields, and where each came from. Computed when first read. */
      readonly fieldOrigins: readonly FieldOrigin[];
      /** Computed when first read. */
      readonly warnings: readonly RenderWarning[];
      /** The same without findings about these members by themselves, whose contents are then not decoded. */
      warningsBeside(known: ReadonlySet<MachineConfigInput>): readonly RenderWarning[];
    }
  | { readonly verdict: "refused"; readonly refusals: readonly RenderRefusal[] };

export type RenderedSpec = Required<NonNullable<MachineConfig["spec"]>> & {
  kernelArguments: string[];
  extensions: string[];
  config: Record<string, unknown>;
};

const worthWarningBytes = (maxRenderedBytes * 4) / 5;
const tooLargeRemedy = "use fewer or smaller MachineConfigs; lists of registry mirrors are often the largest part";

const encoderLength = (text: string): number => {
  let extra = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Two-byte characters add one, three-byte ones two; a surrogate pair is four bytes of two units. `<`, `>` and `&`
    // are written as \u00XX by the reference's encoder.
    if (code >= 0x80) extra += code < 0x800 ? 1 : code >= 0xd800 && code < 0xe000 ? 1 : 2;
    else if (code === 0x3c || code === 0x3e || code === 0x26) extra += 5;
  }
  return text.length + extra;
};

/**
 * Merges a pool's MachineConfigs into its rendered config, or returns why it cannot.
 *
 * Pure and repeatable: the same members give the same name, byte for byte the reference's. Members that were rendered
 * before are not parsed again as long as their objects are the same. The name is not decided before the contents: it is
 * their hash, its YAML takes two thirds of the time and more, and merging a tenth. The caller compares the contents with
 * those that are stored by that name.
 * Source of the rules: openshift/machine-config-operator pkg/controller/{render,common} (main).
 */
export function renderPool(inputs: RenderInputs): RenderResult {
  const members = inMergeOrder(inputs.members);
  const tooLarge = tooLargeTogether(members);
  if (tooLarge !== undefined)
    return { verdict: "refused", refusals: [{ code: "TooLarge", ...tooLarge, remedy: tooLargeRemedy }] };
  const refusals = [...refusalsOfMembers(members, inputs)];
  if (refusals.length > 0) return { verdict: "refused", refusals };

  const parts = mergedParts(members, inputs);
  const { spec, merged, cluster } = parts;
  const refused = (refusal: RenderRefusal): RenderResult => ({ verdict: "refused", refusals: [refusal] });
  const kernel = kernelConflict(members, parts);
  if (kernel !== undefined) return refused(kernel);
  const name = renderedName(inputs.pool.metadata.name, spec);
  if (name.verdict === "refused")
    return refused({ code: "Unhashable", reason: name.reason, ...culpritOfText(members) });
  const stream = streamConflict(inputs, parts);
  if (stream !== undefined) return refused(stream);
  const config = renderedObject(name.name, inputs, parts);
  const sizeBytes = encoderLength(JSON.stringify(config));
  if (sizeBytes > maxRenderedBytes) {
    return refused({
      code: "TooLarge",
      reason: `the rendered config would have ${sizeBytes} bytes of JSON, and the API server's store takes ${maxRenderedBytes}`,
      ...largestMember(members),
      remedy: tooLargeRemedy,
    });
  }

  const warningsBeside = (known: ReadonlySet<MachineConfigInput>) => [
    ...warningsOf({
      members,
      merged,
      overriddenBy: overrides(parts) ? parts.imageBy : undefined,
      stream: inputs.stream?.name,
      sizeBytes,
    }),
    ...findingsOf(members.filter((member) => !known.has(member))),
  ];
  let warnings: readonly RenderWarning[] | undefined;
  let fieldOrigins: readonly FieldOrigin[] | undefined;
  return {
    verdict: "rendered",
    config,
    source: members.map(({ metadata }) => ({
      apiVersion: "machineconfiguration.openshift.io/v1",
      kind: "MachineConfig",
      name: metadata.name,
      ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
    })),
    get origins() {
      return merged.origins;
    },
    get fieldOrigins() {
      fieldOrigins ??= originsOfFields(members, cluster);
      return fieldOrigins;
    },
    get warnings() {
      warnings ??= warningsBeside(new Set());
      return warnings;
    },
    warningsBeside,
  };
}

/** The merged members, and those of them that decide the image and the kernel. */
interface MergedParts {
  readonly spec: RenderedSpec;
  readonly merged: Merged;
  readonly cluster: ClusterValues;
  readonly imageBy: MachineConfigInput | undefined;
  readonly kernelBy: MachineConfigInput | undefined;
}

/** The merged Ignition configs of a pool's members, given in merge order; invalid ones contribute nothing. */
export const mergeMembers = (members: readonly MachineConfigInput[]): Merged =>
  mergeIgnition(
    members.map((member) => {
      const ignition = ignitionOf(member);
      return { name: member.metadata.name, config: ignition?.verdict === "valid" ? ignition.config : undefined };
    }),
  );

function mergedParts(
  members: readonly MachineConfigInput[],
  { controllerConfig, stream }: Pick<RenderInputs, "controllerConfig" | "stream">,
): MergedParts {
  const merged = mergeMembers(members);
  const cluster: ClusterValues = {
    osImageURL: stream?.osImage ?? controllerConfig.spec.baseOSContainerImage ?? "",
    baseOSExtensionsContainerImage:
      stream?.extensionsImage ?? controllerConfig.spec.baseOSExtensionsContainerImage ?? "",
  };
  const osImage = fieldRules.osImageURL.merge(members, cluster);
  const kernel = fieldRules.kernelType.merge(members);
  const spec: RenderedSpec = {
    osImageURL: osImage.value,
    baseOSExtensionsContainerImage: fieldRules.baseOSExtensionsContainerImage.merge(members, cluster).value,
    config: canonical(merged.config) as unknown as Record<string, unknown>,
    kernelArguments: fieldRules.kernelArguments.merge(members, cluster).value,
    extensions: fieldRules.extensions.merge(members, cluster).value,
    fips: fieldRules.fips.merge(members).value,
    kernelType: kernel.value,
  };
  return { spec, merged, cluster, imageBy: osImage.by, kernelBy: kernel.by };
}

/** Whether a member replaces the cluster's OS image. */
const overrides = ({ spec, cluster }: MergedParts): boolean => spec.osImageURL !== cluster.osImageURL;

function kernelConflict(
  members: readonly MachineConfigInput[],
  { spec, kernelBy }: MergedParts,
): RenderRefusal | undefined {
  if (kernelBy === undefined || !spec.extensions.includes("kernel-devel")) return undefined;
  const by = members.find((member) => member.spec?.extensions?.includes("kernel-devel"));
  return {
    code: "KernelDevel",
    reason: `the extension kernel-devel does not go with the kernel type ${spec.kernelType} of ${kernelBy.metadata.name}`,
    ...(by === undefined ? {} : { member: by.metadata.name }),
    path: "spec.extensions",
    remedy: "take one of the two away",
  };
}

function streamConflict({ pool }: RenderInputs, parts: MergedParts): RenderRefusal | undefined {
  const { imageBy } = parts;
  const streamName = pool.spec?.osImageStream?.name ?? "";
  if (!overrides(parts) || streamName === "") return undefined;
  return {
    code: "StreamAndImage",
    reason: `the pool follows the OS image stream ${streamName}, and ${imageBy?.metadata.name ?? "a member"} sets an osImageURL of its own`,
    ...(imageBy === undefined ? {} : { member: imageBy.metadata.name }),
    path: "spec.osImageURL",
    remedy: "take spec.osImageStream off the pool, or osImageURL off the MachineConfig",
  };
}

const refusalOfStream = (pool: string, { name, from, streams }: UnknownStream): RenderRefusal => ({
  code: "UnknownStream",
  path: "spec.osImageStream.name",
  reason: `the pool ${from === "worker" ? "worker, which this one follows," : pool} names the OS image stream ${name}, and ${streams.length === 0 ? "the cluster has no streams" : `the streams are ${streams.join(", ")}`}`,
  remedy: `name one of the streams in spec.osImageStream of the pool ${from === "worker" ? "worker" : pool}, or take the field away`,
});

function renderedObject(
  name: string,
  { controllerConfig, generatorVersion, pool }: RenderInputs,
  parts: MergedParts,
): MachineConfig & { readonly spec: RenderedSpec } {
  const owner: KubeObject = {
    apiVersion: pool.apiVersion ?? "machineconfiguration.openshift.io/v1",
    kind: pool.kind ?? "MachineConfigPool",
    metadata: pool.metadata,
  };
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: {
      name,
      annotations: {
        [annotations.generatedByController]: generatorVersion ?? "",
        [annotations.releaseImageVersion]:
          controllerConfig.metadata?.annotations?.[annotations.releaseImageVersion] ?? "",
        ...(overrides(parts) ? { [annotations.osImageURLOverridden]: "true" } : {}),
      },
      ownerReferences: [controlledBy(owner)],
    },
    spec: parts.spec,
  };
}

function* refusalsOfMembers(
  members: readonly MachineConfigInput[],
  { generatorVersion, pool, unknownStream }: RenderInputs,
): Generator<RenderRefusal> {
  if (unknownStream !== undefined) yield refusalOfStream(pool.metadata.name, unknownStream);
  if (members.length === 0)
    yield {
      code: "NoMembers",
      reason: `the pool ${pool.metadata.name} selects no MachineConfig`,
      remedy: "label MachineConfigs with the role that the pool selects",
    };
  for (const member of members) {
    const { annotations: notes, labels: marks, name } = member.metadata;
    const version = notes?.[annotations.generatedByController] ?? "";
    if (generatorVersion !== undefined && version !== "" && version !== generatorVersion) {
      yield {
        code: "OutdatedMember",
        member: name,
        reason: `${name} was generated by version ${version} of the controller and not yet by ${generatorVersion}`,
        remedy: "it is regenerated by itself",
      };
    }
    for (const { path, reason, remedy, severity } of errorsOf(member)) {
      if (severity === "error")
        yield {
          code: "InvalidMember",
          member: name,
          path,
          reason: `${name}: ${path === "" ? "" : `${path} `}${reason}`,
          ...(remedy === undefined ? {} : { remedy }),
        };
    }
    if (marks === undefined || marks === null)
      yield {
        code: "UnlabelledMember",
        member: name,
        path: "metadata.labels",
        reason: `${name} has no labels`,
        remedy: `label it with ${labels.role}`,
      };
  }
}

const judged = new WeakMap<object, readonly Problem[]>();

/** The errors of a member, judged once per object. */
function errorsOf(member: MachineConfigInput): readonly Problem[] {
  if (member.spec === undefined) return [];
  const known = judged.get(member.spec);
  if (known !== undefined) return known;
  const errors = errorsFrom(member);
  judged.set(member.spec, errors);
  return errors;
}

/** The errors of rendering, looked for only where there may be some. */
function errorsFrom(member: MachineConfigInput): readonly Problem[] {
  const ignition = ignitionOf(member);
  const isClean =
    ignition?.verdict !== "invalid" &&
    (member.spec?.extensions ?? []).length === 0 &&
    (member.spec?.kernelType ?? "") === "";
  return isClean ? [] : renderErrors(member);
}

/** The part of a member's spec that is rendered: without unknown fields, which may nest without limit. */
function readPart(member: MachineConfigInput): object {
  const ignition = ignitionOf(member);
  return { ...member.spec, config: ignition?.verdict === "valid" ? ignition.config : {} };
}

/** The first member with a text that cannot be hashed. */
function culpritOfText(members: readonly MachineConfigInput[]): { readonly member?: string } {
  const culprit = members.find((member) => yamlForHash(readPart(member)).verdict === "refused");
  return culprit === undefined ? {} : { member: culprit.metadata.name };
}

function largestMember(members: readonly MachineConfigInput[]): { readonly member?: string } {
  const sizes = members.map((member) => ({
    member: member.metadata.name,
    size: JSON.stringify(readPart(member)).length,
  }));
  const largest = sizes.toSorted((a, b) => b.size - a.size)[0];
  return largest === undefined ? {} : { member: largest.member };
}

/** The warnings about what the members are together. */
function warningsOf({
  members,
  merged,
  overriddenBy,
  stream,
  sizeBytes,
}: {
  readonly members: readonly MachineConfigInput[];
  readonly merged: { readonly origins: readonly MergedFrom[] };
  readonly overriddenBy: MachineConfigInput | undefined;
  readonly stream: string | undefined;
  readonly sizeBytes: number;
}): readonly RenderWarning[] {
  const warnings: RenderWarning[] = [];
  if (overriddenBy !== undefined) {
    const { name } = overriddenBy.metadata;
    const image = overriddenBy.spec?.osImageURL ?? "";
    warnings.push({
      code: "ImageOverridden",
      member: name,
      path: "spec.osImageURL",
      reason: `${name} replaces the ${stream === undefined ? "cluster's OS image" : `image of the OS image stream ${stream}`} with ${image}`,
    });
  }
  if (sizeBytes > worthWarningBytes) {
    warnings.push({
      code: "NearlyTooLarge",
      reason: `the rendered config has ${sizeBytes} of at most ${maxRenderedBytes} bytes`,
    });
  }
  const generated = new Set(
    members.flatMap(({ metadata }) =>
      metadata.annotations?.[annotations.generatedByController] === undefined ? [] : [metadata.name],
    ),
  );
  for (const { kind, name, overrode } of merged.origins) {
    for (const { by, field, member } of overrode) {
      const named = kind === "dropin" ? `the drop-in ${name}` : kind === "unit" ? `the unit ${name}` : name;
      if (field === "kind")
        warnings.push({
          code: "Conflict",
          member: by,
          over: member,
          reason: `${by} makes ${name} a ${kind}, which ${member} makes something else`,
        });
      // What controllers generate is made from what it replaces.
      else if (
        field === "contents" &&
        (kind === "file" || kind === "unit" || kind === "dropin") &&
        !(generated.has(by) && generated.has(member))
      )
        warnings.push({
          code: "Conflict",
          member: by,
          over: member,
          reason: `${by} replaces the contents that ${member} gives ${named}`,
        });
    }
  }
  const kernels = members.filter(({ spec }) => spec?.kernelType === "realtime" || spec?.kernelType === "64k-pages");
  const chosen = kernels.at(-1);
  const other = kernels.findLast(({ spec }) => spec?.kernelType !== chosen?.spec?.kernelType);
  if (chosen !== undefined && other !== undefined)
    warnings.push({
      code: "Conflict",
      member: chosen.metadata.name,
      over: other.metadata.name,
      path: "spec.kernelType",
      reason: `${chosen.metadata.name} replaces the kernel type ${other.spec?.kernelType} of ${other.metadata.name} with ${chosen.spec?.kernelType}`,
    });
  return warnings;
}

/** The warnings of validation about each member by itself. */
function findingsOf(members: readonly MachineConfigInput[]): readonly RenderWarning[] {
  return members.flatMap((member) =>
    validateMachineConfig(member).flatMap(({ path, reason, severity }): readonly RenderWarning[] => {
      const { name } = member.metadata;
      return severity === "warning"
        ? [{ code: "Finding", member: name, path, reason: `${name}: ${path} ${reason}` }]
        : [];
    }),
  );
}
