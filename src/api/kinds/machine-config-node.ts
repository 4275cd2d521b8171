import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { imageByDigest } from "../schema/image-names.ts";
import { conditionList, dnsName, int32, int64, listMap, neverFalls } from "../schema/schema.ts";
import { releaseStatuses } from "./internal-release-image.ts";

const wide = (name: string, condition: string) =>
  ({
    name,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${condition}")].status`,
    description: `Status of the condition ${condition}.`,
    priority: 1,
  }) as const;

/**
 * Source: openshift/api machineconfiguration/v1/types_machineconfignode.go (master). The reference also lets no
 * generation fall: there, a set that is created again can be reported only after its entry was removed. Here it can.
 */
const pinnedSetRules = [
  {
    rule: "!has(self.desiredGeneration) || !has(self.currentGeneration) || self.desiredGeneration >= self.currentGeneration",
    message: "currentGeneration is not later than desiredGeneration",
  },
  {
    rule: "!has(self.desiredGeneration) || !has(self.lastFailedGeneration) || self.desiredGeneration >= self.lastFailedGeneration",
    message: "lastFailedGeneration is not later than desiredGeneration",
  },
  {
    rule: "!has(self.lastFailedGeneration) || has(self.lastFailedGenerationError)",
    message: "a lastFailedGeneration has its lastFailedGenerationError",
  },
];

export const MachineConfigNode = defineResource({
  kind: "MachineConfigNode",
  plural: "machineconfignodes",
  version: "v1",
  scope: "Cluster",
  description: "Where one node is in its update: target, current configuration, and one condition for each phase.",
  spec: Type.Object({
    node: Type.Object({ name: dnsName() }),
    pool: Type.Object({ name: dnsName() }),
    configVersion: Type.Object({ desired: dnsName() }),
    configImage: Type.Optional(Type.Object({ desiredImage: imageByDigest() })),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(int64({ minimum: 1, ...neverFalls("observedGeneration") })),
    configVersion: Type.Optional(
      Type.Object({
        desired: dnsName(),
        current: Type.Optional(dnsName()),
      }),
    ),
    configImage: Type.Optional(
      Type.Object(
        { currentImage: Type.Optional(imageByDigest()), desiredImage: Type.Optional(imageByDigest()) },
        { minProperties: 1 },
      ),
    ),
    conditions: Type.Optional(conditionList({ maxItems: 20 })),
    pinnedImageSets: Type.Optional(
      listMap(
        ["name"],
        Type.Object(
          {
            name: dnsName(),
            currentGeneration: Type.Optional(int32({ minimum: 1 })),
            desiredGeneration: Type.Optional(int32({ minimum: 1 })),
            lastFailedGeneration: Type.Optional(int32({ minimum: 1 })),
            lastFailedGenerationError: Type.Optional(Type.String({ maxLength: 32768 })),
          },
          { "x-kubernetes-validations": pinnedSetRules },
        ),
        { maxItems: 100 },
      ),
    ),
    irreconcilableChanges: Type.Optional(
      listMap(
        ["fieldPath"],
        Type.Object({
          fieldPath: Type.String({
            minLength: 1,
            maxLength: 70,
            "x-kubernetes-validations": [
              { rule: "self.startsWith('spec.')", message: "must begin with spec." },
              {
                rule: "self.matches('^[a-zA-Z0-9.\\\\[\\\\]]+$')",
                message: "must be made of letters, digits, dots and brackets",
              },
            ],
          }),
          diff: Type.String({ minLength: 1, maxLength: 4096 }),
        }),
        { minItems: 1, maxItems: 32 },
      ),
    ),
    internalReleaseImage: Type.Optional(
      Type.Object(
        { releases: releaseStatuses(imageByDigest("An image of the release on this machine, by its digest.")) },
        { description: "The releases that this machine serves from its own registry." },
      ),
    ),
  }),
  rules: [
    { rule: "self.metadata.name == self.spec.node.name", message: "a MachineConfigNode carries the name of its node" },
  ],
  columns: [
    { name: "PoolName", type: "string", jsonPath: ".spec.pool.name", description: "Pool that the node belongs to." },
    {
      name: "DesiredConfig",
      type: "string",
      jsonPath: ".spec.configVersion.desired",
      description: "Rendered configuration that the node should have.",
    },
    {
      name: "CurrentConfig",
      type: "string",
      jsonPath: ".status.configVersion.current",
      description: "Rendered configuration that the node has.",
    },
    {
      name: "Updated",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Updated")].status',
      description: "Whether the node has its desired configuration.",
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
    wide("UpdatePrepared", "UpdatePrepared"),
    wide("UpdateExecuted", "UpdateExecuted"),
    wide("UpdatePostActionComplete", "UpdatePostActionComplete"),
    wide("UpdateComplete", "UpdateComplete"),
    wide("Resumed", "Resumed"),
    wide("UpdatedFilesAndOS", "AppliedFilesAndOS"),
    wide("CordonedNode", "Cordoned"),
    wide("DrainedNode", "Drained"),
    wide("RebootedNode", "RebootedNode"),
    wide("UncordonedNode", "Uncordoned"),
    {
      name: "Phase",
      type: "string",
      jsonPath: '.status.conditions[?(@.status=="Unknown")].type',
      description: "The phase that is under way; empty: none. `mco status` has the words.",
      priority: 1,
    },
    {
      name: "Since",
      type: "date",
      jsonPath: '.status.conditions[?(@.status=="Unknown")].lastTransitionTime',
      description: "Since when.",
      priority: 1,
    },
  ],
});
export type MachineConfigNode = ResourceOf<typeof MachineConfigNode>;
