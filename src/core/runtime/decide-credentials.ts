import type { CredentialProviderConfig } from "../../api/foreign/openshift.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { credentialConditions as types, labels } from "../../api/names.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import type { Condition } from "../../api/schema/object.ts";
import type { FieldProblem } from "../kubelet/decode-go.ts";
import { heldBy, configHolder } from "../kubelet/held-configs.ts";
import type { KnownGates } from "../kubelet/kubelet-base.ts";
import { baseConfigOf, baseFileText } from "../render/base-config-of.ts";
import { generatedConfig } from "../render/generated-config.ts";
import {
  type ProviderFile,
  type SkippedImage,
  matchImageProblems,
  platformProviderPaths,
  providerFiles,
  tokenGate,
} from "./credential-providers.ts";

/** The MachineConfig that says to the kubelets of a pool for which images they ask CRI-O for credentials. */
export const credentialsConfigName = (pool: string): string => `97-${pool}-generated-credentialproviderconfig`;
/** Whether a MachineConfig has such a name. */
export const isCredentialsConfig = (name: string): boolean => /^97-.+-generated-credentialproviderconfig$/.test(name);

/** Everything that decides what the object makes. */
export interface CredentialsView {
  readonly object: CredentialProviderConfig;
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly gates: KnownGates;
  readonly generatorVersion: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type CredentialsDecision =
  /** The base configuration of this pool is not there yet. */
  | { readonly do: "wait"; readonly pool: string }
  /** Machines keep what they have. */
  | { readonly do: "refuse"; readonly problems: readonly FieldProblem[]; readonly conditions: readonly Condition[] }
  | {
      readonly do: "write";
      readonly configs: readonly MachineConfig[];
      /** MachineConfigs of pools that are not built in any more. */
      readonly stale: readonly string[];
      readonly skipped: readonly SkippedImage[];
      readonly conditions: readonly Condition[];
    };

/** What the object makes for the built-in pools; custom pools get it by the label of `worker`. */
export function decideCredentials(view: CredentialsView): CredentialsDecision {
  const { object, machineConfigs, gates, generatorVersion } = view;
  const images = object.spec?.matchImages ?? [];
  const invalid = matchImageProblems(images);
  if (invalid.length > 0) return refused(view, types.validationFailed, invalid);
  if (images.length > 0 && gates.disabled?.includes(tokenGate) === true)
    return refused(view, types.renderingFailed, [
      { path: `FeatureGate/cluster ${tokenGate}`, reason: "is off, and a kubelet would not start with this provider" },
    ]);
  const byName = new Map(machineConfigs.map((config) => [config.metadata.name, config]));
  const configOf = (name: string) => byName.get(name);
  const pools = view.pools.filter(({ metadata }) => metadata.labels?.[labels.builtInPool] !== undefined);
  const configs: MachineConfig[] = [];
  const skipped = new Map<string, SkippedImage>();
  for (const { metadata } of pools) {
    const pool = metadata.name;
    if (baseConfigOf("files", pool, configOf) === undefined) return { do: "wait", pool };
    const made = providerFiles(images, platformFile(pool, configOf));
    if (made.verdict === "refused")
      return refused(view, types.renderingFailed, [{ path: `pool ${pool}`, reason: made.reason }]);
    const name = credentialsConfigName(pool);
    if (configHolder(configOf(name), object) === "another")
      return refused(view, types.renderingFailed, [
        {
          path: `pool ${pool}`,
          reason: `has the MachineConfig ${name}, which another writer made: rename or delete it`,
        },
      ]);
    for (const one of made.skipped) skipped.set(one.image, one);
    configs.push(generatedConfig({ name, role: pool, owner: object, files: made.files, generatorVersion }));
  }
  const wanted = configs.map(({ metadata }) => metadata.name);
  const left = [...skipped.values()];
  return {
    do: "write",
    configs,
    stale: heldBy(object, machineConfigs).filter((name) => !wanted.includes(name)),
    skipped: left,
    conditions: statusOf(
      view,
      left.length === 0
        ? [types.validated, "True", "Succeeded", "all match images are valid"]
        : [types.validated, "False", types.partiallyApplied, skippedText(left)],
      wanted.length === 0
        ? [types.rendered, "False", types.renderingFailed, "the cluster has no built-in pool"]
        : [types.rendered, "True", types.renderingSucceeded, `written as ${wanted.join(", ")}`],
    ),
  };
}

/** The platform's own file of providers, where a pool's base configuration has one. */
function platformFile(pool: string, configOf: (name: string) => MachineConfig | undefined): ProviderFile | undefined {
  for (const path of platformProviderPaths) {
    const text = baseFileText(path, pool, configOf, ["files", "kubelet"]);
    if (text !== undefined) return { path, text };
  }
  return undefined;
}

/** Which images are left out, and why. */
export const skippedText = (skipped: readonly SkippedImage[]): string =>
  `${skipped
    .map(({ image, index, provider, pattern }) => `spec.matchImages[${index}] ${image}: ${provider} answers ${pattern}`)
    .join("; ")}; take ${skipped.length === 1 ? "it" : "them"} out of the list, or name what lies outside`;

type Said = readonly [type: string, status: "True" | "False", reason: string, message: string];

function refused(view: CredentialsView, reason: string, problems: readonly FieldProblem[]): CredentialsDecision {
  const message = problems.map(({ path, reason: why }) => `${path} ${why}`).join("; ");
  const isInvalid = reason === types.validationFailed;
  return {
    do: "refuse",
    problems,
    conditions: statusOf(
      view,
      isInvalid
        ? [types.validated, "False", reason, message]
        : [types.validated, "True", "Succeeded", "all match images are valid"],
      [
        types.rendered,
        "False",
        types.renderingFailed,
        isInvalid ? "machines keep what they have until the match images are valid" : message,
      ],
    ),
  };
}

const statusOf = ({ object, now }: CredentialsView, ...said: readonly Said[]): readonly Condition[] => {
  const { generation } = object.metadata;
  return said.reduce<readonly Condition[]>(
    (list, [type, status, reason, message]) =>
      setCondition<Condition>(
        list,
        { type, status, reason, message, ...(generation === undefined ? {} : { observedGeneration: generation }) },
        now,
      ),
    object.status?.conditions ?? [],
  );
};
