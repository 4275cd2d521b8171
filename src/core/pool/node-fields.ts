import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations, labels } from "../../api/names.ts";

/**
 * Every field of a Node that a component of the cluster reads, beside who may write it and what it decides. The table is
 * closed: {@link nodeRowsOnly} leaves out what has no row, so that no component can read it.
 */
export interface NodeField {
  /** As it stands in the object; `[key]` is a key of labels or annotations. */
  readonly field: string;
  /** Who writes it in good order. */
  readonly writer: string;
  /** What the components decide by it. */
  readonly decides: string;
  readonly trust: FieldTrust;
}

/**
 * Whether root on the machine can write the field, with its kubelet's certificate or the token of its daemon, and how far
 * it then reaches.
 */
export type FieldTrust =
  /** It cannot. */
  | { readonly forged: "no" }
  /** `registering`: only as it creates the Node. */
  | {
      readonly forged: "yes" | "registering";
      /**
       * `itself`: what happens to this machine, and its own place in the roll-out of its pool: one of `maxUnavailable`,
       * or its turn as a canary. `report`: what people read.
       */
      readonly reaches: "itself" | "report";
    }
  | {
      readonly forged: "yes" | "registering";
      readonly reaches: "others";
      /** What limits it. */ readonly bound: string;
    };

const safe: FieldTrust = { forged: "no" };
const itself: FieldTrust = { forged: "yes", reaches: "itself" };
const report: FieldTrust = { forged: "yes", reaches: "report" };
const others = (bound: string): FieldTrust => ({ forged: "yes", reaches: "others", bound });

interface Noted {
  readonly key: string;
  readonly writer: "controller" | "daemon" | "drain" | "configServer";
  readonly decides: string;
  readonly trust?: FieldTrust;
}

const writers = {
  controller: "node controller",
  daemon: "daemon",
  drain: "drain controller",
  configServer: "kubelet, from the configuration that the machine was given",
} as const;

/** NodeRestriction leaves all annotations to the kubelet, and the own-node policy leaves them to the daemon. */
const noted: readonly Noted[] = [
  {
    key: annotations.currentConfig,
    writer: "daemon",
    decides: "whether the machine has its target; which configuration is in use",
  },
  {
    key: annotations.desiredConfig,
    writer: "controller",
    decides: "whether the machine has its target; which configuration is in use",
  },
  {
    key: annotations.currentImage,
    writer: "daemon",
    decides:
      "whether the machine has its image; which image is in use; with the record of what the machine was given, whether its pool knows a base",
  },
  { key: annotations.currentOSImage, writer: "daemon", decides: "as `currentImage`" },
  {
    key: annotations.desiredImage,
    writer: "controller",
    decides: "whether the machine has its image; which image is in use",
  },
  { key: annotations.desiredOSImage, writer: "controller", decides: "as `desiredImage`" },
  { key: annotations.desiredImageContent, writer: "controller", decides: "whether its target is written again" },
  { key: annotations.state, writer: "daemon", decides: "whether the machine is updated, under way or degraded" },
  { key: annotations.reason, writer: "daemon", decides: "the text beside that", trust: report },
  {
    key: annotations.postConfigAction,
    writer: "daemon",
    decides: "whether an outage counts as a reboot",
    trust: report,
  },
  {
    key: annotations.desiredDrain,
    writer: "daemon",
    decides: "whether the machine is cordoned and drained, or put back into service",
  },
  { key: annotations.lastAppliedDrain, writer: "drain", decides: "whether that was done" },
  { key: annotations.cordonedFor, writer: "drain", decides: "whether the cordon is ours to remove" },
  { key: annotations.drainBegan, writer: "drain", decides: "when the deadline of its drain is over" },
  { key: annotations.drainSkipped, writer: "drain", decides: "when its drain is tried again" },
  { key: annotations.controlPlaneTopology, writer: "controller", decides: "whether it is written again" },
  {
    key: annotations.firstPivotConfig,
    writer: "configServer",
    decides: "which configuration is in use",
  },
  { key: annotations.joinedPool, writer: "controller", decides: "whether it is written again" },
  {
    key: annotations.pinnedImageSets,
    writer: "controller",
    decides: "whether the machine has its turn to fetch pinned images",
    trust: others(
      "it holds one of the cluster's turns for 25 minutes at most, as the controller remembers; one that begins again goes by what is written",
    ),
  },
  { key: annotations.pinnedImageSetsAnswer, writer: "daemon", decides: "whether its turn is over; which sets it has" },
];

const anyLabel = "metadata.labels[any other]";
const protectedLabel = "metadata.labels[any other that NodeRestriction keeps from kubelets]";
const labelRow = (key: string) => `metadata.labels[${key}]`;
const image =
  "no image is built for its pool while its nodes do not fit together: `ImageInputsValid` names them, and machines keep what they have. After ten minutes a standard or required pool degrades the ClusterOperator; a new version of the suite waits for required pools alone";

const byLabel: readonly NodeField[] = [
  ...[labels.masterRole, labels.controlPlaneRole, labels.arbiterRole, labels.workerRole].map((key) => ({
    field: labelRow(key),
    writer: "administrator, join controller",
    decides: "the pool of the machine, and so what it may read; whether it is one of the control plane",
    trust: safe,
  })),
  {
    field: protectedLabel,
    writer: "administrator, join controller",
    decides: "the pool of the machine, where a pool selects by it",
    trust: safe,
  },
  {
    field: labelRow(labels.arch),
    writer: "kubelet",
    decides: "what the image of its pool is built for, and whether builds may run on the control plane",
    trust: others(image),
  },
  {
    field: labelRow(labels.os),
    writer: "kubelet",
    decides: "that a machine with Windows belongs to no pool",
    trust: itself,
  },
  {
    field: labelRow("node.openshift.io/os_id"),
    writer: "kubelet",
    decides: "whether its operating system is one of images",
    trust: others(image),
  },
  {
    field: labelRow(labels.zone),
    writer: "kubelet, cloud controller",
    decides: "the order of the machines, and whose turn it is where a pool updates one zone at a time",
    trust: others("a machine that is away holds up the other zones of such a pool alone, and as long as it is away"),
  },
  {
    field: anyLabel,
    writer: "administrator",
    decides: "the pool of the machine, where a pool selects by it, and so what the machine may read",
    trust: itself,
  },
];

/** Conditions of which anything is read. */
const conditions: readonly { readonly type: string; readonly decides: string }[] = [
  { type: "Ready", decides: "whether the machine is in service, and since when; that its kubelet was heard from once" },
  { type: "DiskPressure", decides: "whether the machine is in service" },
  { type: "NetworkUnavailable", decides: "whether the machine is in service" },
];

export const nodeFields: readonly NodeField[] = [
  {
    field: "metadata.name",
    writer: "kubelet",
    decides: "which machine it is: the name of its certificate, which NodeRestriction demands",
    trust: safe,
  },
  ...["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"].map((field) => ({
    field: `metadata.${field}`,
    writer: "API server",
    decides: "which Node of that name it is, and since when",
    trust: safe,
  })),
  ...byLabel,
  ...noted.map(({ key, writer, decides, trust = itself }) => ({
    field: `metadata.annotations[${key}]`,
    writer: writers[writer],
    decides,
    trust,
  })),
  {
    field: "spec.unschedulable",
    writer: "administrator, drain controller",
    decides: "whether the machine is in service",
    trust: itself,
  },
  {
    field: "spec.taints",
    writer: "node controller, others",
    decides: "which taints of ours it lacks, or has too many; since when it is out of service",
    trust: { forged: "registering", reaches: "itself" },
  },
  ...conditions.map(({ type, decides }) => ({
    field: `status.conditions[${type}]`,
    writer: "kubelet, node lifecycle controller",
    decides,
    trust: itself,
  })),
  {
    field: "status.addresses",
    writer: "kubelet, cloud controller",
    decides:
      "whether a requested name or address belongs to another machine; on the control plane, under which addresses components serve; which machine was given a configuration",
    trust: others(
      "a claim takes from nobody what the suite recorded of it, denies nothing, and adds no name or address to a machine's own certificate",
    ),
  },
];

const notedKeys: ReadonlySet<string> = new Set(noted.map(({ key }) => key));
const conditionTypes: ReadonlySet<string> = new Set(conditions.map(({ type }) => type));
const labelFields: ReadonlySet<string> = new Set(byLabel.map(({ field }) => field));

/**
 * Labels of Kubernetes' own that a kubelet may set on its Node; kubernetes/kubernetes
 * staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go (v1.34).
 */
const kubeletLabels = [
  /^kubernetes\.io\/(hostname|os|arch)$/,
  /^beta\.kubernetes\.io\/(os|arch|instance-type)$/,
  /^node\.kubernetes\.io\/instance-type$/,
  /^(failure-domain\.beta|topology)\.kubernetes\.io\/(zone|region)$/,
  /^([^/]*\.)?(kubelet|node)\.kubernetes\.io\//,
];

/** Whether NodeRestriction lets a kubelet change a label of its Node. */
export const kubeletMaySet = (label: string): boolean =>
  !/^([^/]*\.)?(kubernetes|k8s)\.io\//.test(label) || kubeletLabels.some((own) => own.test(label));

/** The row of a label: its own, or that of all others of its kind. */
export function fieldOfLabel(key: string): string {
  const own = labelRow(key);
  return labelFields.has(own) ? own : kubeletMaySet(key) ? anyLabel : protectedLabel;
}

type Conditions = NonNullable<NonNullable<Node["status"]>["conditions"]>;

/** The part of a Node that has rows. Heartbeats, which change without end, are no part of a condition. */
export function nodeRowsOnly({ apiVersion, kind, metadata, spec, status }: Node): Node {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, annotations: notes } = metadata;
  const { unschedulable, taints } = spec ?? {};
  const kept = notes === undefined ? [] : Object.entries(notes).filter(([key]) => notedKeys.has(key));
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      // Pools select by any label: each has a row.
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
      ...(notes === undefined ? {} : { annotations: Object.fromEntries(kept) }),
    },
    spec: { ...(unschedulable === undefined ? {} : { unschedulable }), ...(taints === undefined ? {} : { taints }) },
    status: {
      ...(status?.addresses === undefined ? {} : { addresses: shortAddresses(status.addresses) }),
      conditions: (status?.conditions ?? []).filter(({ type }) => conditionTypes.has(type)).map(withoutHeartbeat),
    },
  } as Node;
}

/** A machine has a few, and its kubelet can report tens of thousands, with which every request for a certificate is compared. */
const mostAddresses = 64;
const longestAddress = 253;

const shortAddresses = (addresses: NonNullable<NonNullable<Node["status"]>["addresses"]>) =>
  addresses
    .slice(0, mostAddresses)
    .filter(({ type, address }) => type.length <= longestAddress && address.length <= longestAddress);

function withoutHeartbeat(condition: Conditions[number]): Conditions[number] {
  const { lastHeartbeatTime: _, ...kept }: Conditions[number] & { readonly lastHeartbeatTime?: unknown } = condition;
  return kept as Conditions[number];
}
