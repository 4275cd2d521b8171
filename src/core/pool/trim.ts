import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import { lastWriter } from "../config/changed-sources.ts";
import { kubeletVerdict } from "./member-facts.ts";

/**
 * Of a node what decisions read: not its images, volumes and heartbeats, which are most of its size. Every watch of
 * nodes in one process keeps this.
 */
export function trimNode({ apiVersion, kind, metadata, spec, status }: Node): Node {
  const { managedFields: _, ...kept } = metadata as Node["metadata"] & { readonly managedFields?: unknown };
  const { unschedulable, taints } = spec ?? {};
  return {
    apiVersion,
    kind,
    metadata: kept,
    spec: { ...(unschedulable === undefined ? {} : { unschedulable }), ...(taints === undefined ? {} : { taints }) },
    status: {
      ...(status?.addresses === undefined ? {} : { addresses: status.addresses }),
      conditions: (status?.conditions ?? []).map(
        ({
          lastHeartbeatTime: __,
          ...condition
        }: { readonly lastHeartbeatTime?: string } & NonNullable<NonNullable<Node["status"]>["conditions"]>[number]) =>
          condition,
      ),
    },
  };
}

/**
 * Of a MachineConfig everything, but of who wrote its fields only who did last. Every watch of MachineConfigs in one
 * process keeps this.
 */
export function trimMachineConfig(config: MachineConfig): MachineConfig {
  const writer = lastWriter(config);
  const { managedFields: _, ...metadata } = config.metadata;
  return {
    ...config,
    metadata:
      writer === undefined
        ? metadata
        : {
            ...metadata,
            managedFields: [
              {
                ...(writer.manager === undefined ? {} : { manager: writer.manager }),
                ...(writer.time === undefined ? {} : { time: writer.time }),
              },
            ],
          },
  };
}

/**
 * Of a build what its pool's target follows from: not its excerpts and texts, which are most of its size. Every watch
 * of builds in one process keeps this.
 */
export function trimBuild(build: MachineOSBuild): MachineOSBuild {
  const { managedFields: _, annotations: notes, ...metadata } = build.metadata;
  const {
    [annotations.renderedContainerfile]: __,
    [annotations.buildFailure]: ___,
    [annotations.imageFacts]: ____,
    ...kept
  } = notes ?? {};
  return { ...build, metadata: { ...metadata, ...(notes === undefined ? {} : { annotations: kept }) } };
}

/** What of a node anything is decided by: not the kubelet's heartbeats. Equal values need no new look. */
export const relevantOfNode = ({ metadata, spec, status }: Node): readonly unknown[] => [
  metadata.uid,
  metadata.labels,
  metadata.annotations,
  metadata.deletionTimestamp,
  spec?.unschedulable,
  spec?.taints,
  kubeletVerdict({ status: status ?? {} }),
];

/** What of a MachineConfigNode anything is decided by. */
export const relevantOfMachineConfigNode = ({ metadata, spec, status }: MachineConfigNode): readonly unknown[] => [
  spec,
  status?.conditions,
  status?.configVersion,
  status?.configImage,
  metadata.annotations,
];

/** Of a pod where it runs and whether it is ready. */
export function trimReadiness({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { containers: [], ...(spec?.nodeName === undefined ? {} : { nodeName: spec.nodeName }) },
    status: {
      ...(status?.phase === undefined ? {} : { phase: status.phase }),
      conditions: (status?.conditions ?? []).filter(({ type }) => type === "Ready"),
    },
  };
}
