import type { Namespace, Service, Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { PinnedImageSet } from "../../api/kinds/pinned-image-set.ts";
import { annotations } from "../../api/names.ts";
import { lastWriter } from "../config/changed-sources.ts";
import { kubeletVerdict, memberAnnotations } from "./member-facts.ts";
import { isMirror, mirrorAnnotation, nodeOwners } from "./mirror-pods.ts";
import { nodeRowsOnly } from "./node-fields.ts";

/**
 * Trims a node to what decisions read, by the table of node-fields.ts: images, volumes and heartbeats, which are most of
 * its size, are no part of it. Every watch of nodes in one process uses this.
 */
export const trimNode = nodeRowsOnly;

/**
 * Keeps a MachineConfig except for its managed fields, reduced to the last writer. Every watch of MachineConfigs in one
 * process uses this.
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
 * Trims a build to what the target of its pool depends on: drops excerpts and texts, which are most of its size. Every
 * watch of builds in one process uses this.
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

/**
 * Trims a set of pinned images to what decides which pools have it: the machines read the images themselves. Every watch
 * of sets in one process uses this.
 */
export function trimPinnedImageSet(set: PinnedImageSet): PinnedImageSet {
  const { managedFields: _, ...metadata } = set.metadata;
  return { ...set, metadata, spec: { pinnedImages: [] } };
}

/** The parts of a node that decisions depend on, without heartbeats. Equal values need no new reconcile. */
export const relevantOfNode = ({ metadata, spec, status }: Node): readonly unknown[] => [
  metadata.uid,
  metadata.labels,
  metadata.annotations,
  metadata.deletionTimestamp,
  spec?.unschedulable,
  spec?.taints,
  kubeletVerdict({ status: status ?? {} }),
];

/**
 * As {@link relevantOfNode}, for whom a node is a member of its pool and nothing else. Root on a machine writes other
 * annotations of its Node for nothing.
 */
export const relevantOfMember = (node: Node): readonly unknown[] => {
  const { annotations: notes = {}, ...metadata } = node.metadata;
  return relevantOfNode({
    ...node,
    metadata: {
      ...metadata,
      annotations: Object.fromEntries(memberAnnotations.flatMap((key) => (key in notes ? [[key, notes[key]]] : []))),
    },
  } as Node);
};

/** The parts of a MachineConfigNode that decisions depend on. */
export const relevantOfMachineConfigNode = ({ metadata, spec, status }: MachineConfigNode): readonly unknown[] => [
  spec,
  status?.conditions,
  status?.configVersion,
  status?.configImage,
  metadata.annotations,
  metadata.ownerReferences,
];

/** Trims a pod to its node and its readiness. */
export function trimReadiness({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(isMirror({ metadata })
        ? { annotations: { [mirrorAnnotation]: "true" }, ownerReferences: nodeOwners({ metadata }).slice(0, 1) }
        : {}),
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

/** A namespace as far as its name matters. */
export function trimNamespace({ apiVersion, kind, metadata }: Namespace): Namespace {
  const { name, uid, resourceVersion, creationTimestamp } = metadata;
  return { apiVersion, kind, metadata: { name, uid, resourceVersion, creationTimestamp } } as Namespace;
}

/** Addresses of one Service that its author, or what provides load balancers, writes: it has a few, and room for thousands. */
const mostExternal = 64;

/** A Service as far as its name, age and addresses matter. */
export function trimService({ apiVersion, kind, metadata, spec, status }: Service): Service {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const { clusterIP, clusterIPs, externalIPs } = spec ?? {};
  const ingress = status?.loadBalancer?.ingress?.slice(0, mostExternal).map(({ ip, hostname }) => ({
    ...(ip === undefined ? {} : { ip }),
    ...(hostname === undefined ? {} : { hostname }),
  }));
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: {
      ...(clusterIP === undefined ? {} : { clusterIP }),
      ...(clusterIPs === undefined ? {} : { clusterIPs }),
      ...(externalIPs === undefined ? {} : { externalIPs: externalIPs.slice(0, mostExternal) }),
    },
    ...(ingress === undefined ? {} : { status: { loadBalancer: { ingress } } }),
  } as Service;
}
