import type { Node } from "../api/foreign/kubernetes.ts";
import type { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations } from "../api/names.ts";
import type { NodeReporter } from "./node-reporter.ts";

/** Another controller's: an update does not depend on them. */
const ofPinnedImages: ReadonlySet<string> = new Set([annotations.pinnedImageSets, annotations.pinnedImageSetsAnswer]);

/**
 * Whether a change of the Node concerns the daemon: not the kubelet's heartbeats, and not the daemon's own last write,
 * which would reset every back-off.
 */
export function concernsDaemon(
  before: Node | undefined,
  after: Node | undefined,
  reporter: NodeReporter | undefined,
): boolean {
  if (before === undefined || after === undefined) return true;
  const partsOf = ({ metadata, spec }: Node) => JSON.stringify([metadata.labels, spec, metadata.deletionTimestamp]);
  if (partsOf(before) !== partsOf(after)) return true;
  const [was, is] = [before.metadata.annotations ?? {}, after.metadata.annotations ?? {}];
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].some(
    (key) => !ofPinnedImages.has(key) && was[key] !== is[key] && reporter?.hasWritten(key, is[key]) !== true,
  );
}

const policiesOf = (configuration: MachineConfiguration | undefined) => [
  configuration?.metadata.generation,
  configuration?.status?.observedGeneration,
  configuration?.status?.nodeDisruptionPolicyStatus,
];

/** Whether the inputs of disruption policies are unchanged. */
export const samePolicies = (
  before: MachineConfiguration | undefined,
  after: MachineConfiguration | undefined,
): boolean => JSON.stringify(policiesOf(before)) === JSON.stringify(policiesOf(after));
