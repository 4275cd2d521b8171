import { annotations, finalizers, group, labels, namespace, objects } from "../api/names.ts";
import { reportedTypes } from "../core/build/build-conditions.ts";
import { falseValues } from "../core/config/opt-in.ts";
import type { Guard } from "./admission-guard.ts";
import { conditionGuard } from "./condition-guards.ts";

/** What the builder may opt in. */
export interface OptInBounds {
  /** The cluster opts every pool in that does not say otherwise. */
  readonly defaultOptIn: boolean;
}

const quoted = (words: Iterable<string>) => `[${[...words].map((word) => `'${word}'`).join(", ")}]`;
const conditions = {
  "by-the-os-builder": `request.userInfo.username == 'system:serviceaccount:${namespace}:${objects.osBuilder}'`,
};
const mapIn = (object: string, field: string) => `has(${object}.metadata.${field}) ? ${object}.metadata.${field} : {}`;
const listIn = (object: string, field: string) => `has(${object}.metadata.${field}) ? ${object}.metadata.${field} : []`;

/** Maps of an object's metadata before and after a request, as variables. */
const metadata: Readonly<Record<string, string>> = {
  annotations: mapIn("object", "annotations"),
  annotationsBefore: `oldObject == null ? {} : (${mapIn("oldObject", "annotations")})`,
  labels: mapIn("object", "labels"),
  labelsBefore: `oldObject == null ? {} : (${mapIn("oldObject", "labels")})`,
  finalizers: listIn("object", "finalizers"),
  finalizersBefore: `oldObject == null ? [] : (${listIn("oldObject", "finalizers")})`,
  owners: listIn("object", "ownerReferences"),
  ownersBefore: `oldObject == null ? [] : (${listIn("oldObject", "ownerReferences")})`,
};

/** Of a map of the metadata nothing changes but the entries of these names; some may go, and not come. */
const keeps = (map: "annotations" | "labels", own: readonly string[], goes: readonly string[] = []) =>
  `variables.${map}.all(k, k in ${quoted(own)} || (k in variables.${map}Before && variables.${map}Before[k] == variables.${map}[k])) && variables.${map}Before.all(k, k in ${quoted([...own, ...goes])} || k in variables.${map})`;

const refused = { reason: "Forbidden" } as const;

/** What the builder notes on pools. */
const pools: Guard = {
  name: "os-builder-pools",
  rule: { apiGroup: group, resources: ["machineconfigpools"], operations: ["CREATE", "UPDATE"] },
  conditions,
  variables: metadata,
  validations: [
    {
      field: "spec",
      expression: "oldObject != null && object.spec == oldObject.spec",
      message: "the os-builder reads it, and changes none of it",
      ...refused,
    },
    {
      field: "metadata",
      expression: [
        keeps("annotations", [
          annotations.buildRetries,
          annotations.newestImageEquivalentConfig,
          annotations.optOutAfter,
          annotations.rebuildImage,
        ]),
        keeps("labels", [], [annotations.rebuildImage]),
        "variables.finalizers == variables.finalizersBefore",
        "variables.owners == variables.ownersBefore",
      ].join(" && "),
      message: "of a pool, the os-builder writes annotations about builds alone",
      ...refused,
    },
  ],
};

/** What it reports on them. */
const poolStatus = conditionGuard({
  name: "os-builder-pool-status",
  account: objects.osBuilder,
  apiGroup: group,
  resource: "machineconfigpools/status",
  types: reportedTypes,
  message: "of a pool's status, the os-builder writes its conditions about builds alone",
});

const sourceIn = (map: string) =>
  `'${annotations.optInSource}' in variables.${map} ? variables.${map}['${annotations.optInSource}'] : ''`;

/** MachineOSConfigs: it opts pools in where their switch, or the cluster's, says so, and notes its work on all of them. */
const machineOSConfigs = ({ defaultOptIn }: OptInBounds): Guard => ({
  name: "os-builder-machine-os-configs",
  rule: { apiGroup: group, resources: ["machineosconfigs"], operations: ["CREATE", "UPDATE"] },
  conditions,
  variables: { ...metadata, source: sourceIn("annotations"), sourceBefore: sourceIn("annotationsBefore") },
  validations: [
    {
      field: "metadata.annotations",
      expression: `oldObject != null && variables.source == variables.sourceBefore || (variables.source in ${quoted(["PoolLabel", ...(defaultOptIn ? ["ClusterDefault"] : [])])} && (oldObject == null || variables.sourceBefore != ''))`,
      message: `the os-builder opts in pools that have ${annotations.layeringEnabled}${defaultOptIn ? ", and those that the cluster's default opts in" : ""}, and marks what it makes for them with ${annotations.optInSource}`,
      ...refused,
    },
    {
      field: "spec",
      expression:
        "oldObject == null || object.spec == oldObject.spec || (variables.sourceBefore != '' && object.spec.machineConfigPool == oldObject.spec.machineConfigPool)",
      message:
        "the os-builder changes the spec of a MachineOSConfig that it made itself alone, and never the pool that it is for",
      ...refused,
    },
    {
      field: "metadata",
      expression: [
        keeps(
          "annotations",
          [
            annotations.optInSource,
            annotations.currentMachineOSBuild,
            annotations.imageContent,
            annotations.rebuild,
            annotations.rebuildActive,
            annotations.rebuildSerial,
          ],
          [annotations.preBuiltImage],
        ),
        keeps("labels", []),
        ...(["finalizers", "finalizersBefore"] as const).map(
          (list, index) =>
            `variables.${list}.all(f, f == '${finalizers.osBuildCleanup}' || f in variables.${index === 0 ? "finalizersBefore" : "finalizers"})`,
        ),
        "(variables.owners == variables.ownersBefore || (variables.source != '' && variables.owners.all(o, o.kind == 'MachineConfigPool' && o.name == object.metadata.name)))",
      ].join(" && "),
      message: "of a MachineOSConfig, the os-builder writes annotations about builds and its finalizer alone",
      ...refused,
    },
  ],
});

/** Whether the pool itself says what a MachineOSConfig for its switch is made for. */
const optIn: Guard = {
  name: "os-builder-opt-in",
  rule: { apiGroup: group, resources: ["machineosconfigs"], operations: ["CREATE", "UPDATE"] },
  params: { apiVersion: `${group}/v1`, kind: "MachineConfigPool" },
  conditions,
  variables: {
    ...metadata,
    source: sourceIn("annotations"),
    sourceBefore: sourceIn("annotationsBefore"),
    says: (["annotations", "labels"] as const)
      .map(
        (map) =>
          `(has(params.metadata.${map}) && '${annotations.layeringEnabled}' in params.metadata.${map} ? [params.metadata.${map}['${annotations.layeringEnabled}']] : [])`,
      )
      .join(" + "),
  },
  validations: [
    {
      expression: `params.metadata.name != object.spec.machineConfigPool.name || variables.source == '' || variables.source == variables.sourceBefore || (!variables.says.exists(v, v in ${quoted(falseValues)}) && (variables.source != 'PoolLabel' || size(variables.says) > 0))`,
      message: `the pool is not opted in by ${annotations.layeringEnabled}`,
      ...refused,
    },
  ],
};

/** What it may delete where its rights know no difference. */
const deletions: readonly Guard[] = [
  {
    name: "os-builder-deletions",
    rule: { apiGroup: group, resources: ["machineosconfigs"], operations: ["DELETE"] },
    conditions,
    validations: [
      {
        expression: `has(oldObject.metadata.annotations) && '${annotations.optInSource}' in oldObject.metadata.annotations`,
        message: "the os-builder deletes MachineOSConfigs that it made itself alone",
        ...refused,
      },
    ],
  },
  {
    name: "os-builder-config-maps",
    rule: { apiGroup: "", resources: ["configmaps"], operations: ["DELETE"], inNamespace: namespace },
    conditions,
    validations: [
      {
        expression: `oldObject.metadata.name.startsWith('digest-') && has(oldObject.metadata.labels) && '${labels.onClusterLayering}' in oldObject.metadata.labels`,
        message: `of the ConfigMaps of ${namespace}, the os-builder deletes the digests that the reference's builder left`,
        ...refused,
      },
    ],
  },
];

const none: OptInBounds = { defaultOptIn: false };

/**
 * What the builder's rights allow and its work does not need: RBAC knows neither fields nor the annotations that say whose
 * an object is. Without them, a builder that is taken over would choose the machines and the configuration of every pool,
 * and opt in one that nobody opted in.
 */
export const builderGuards = (bounds: OptInBounds): readonly Guard[] => [
  pools,
  poolStatus,
  machineOSConfigs(bounds),
  optIn,
  ...deletions,
];

/** Names of the policies. */
export const builderGuardNames: readonly string[] = builderGuards(none).map(({ name }) => name);
