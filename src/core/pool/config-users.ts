import { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";

/** One kind of object that uses rendered configs, for an admission policy with these objects as parameters. */
export interface PolicyOfUsers {
  /** Of the policy. */
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** For people, before the name of the object. */
  readonly label: string;
  /** How the object uses a config → whether it uses `oldObject` so, in the language of policies. */
  readonly uses: Readonly<Record<string, string>>;
}

const deleted = "oldObject.metadata.name";

/** Whether a field names the config; every field on the way may be absent. */
function names(path: string): string {
  const fields = path.split(".");
  const present = fields.slice(1).map((_, index) => `has(${fields.slice(0, index + 2).join(".")})`);
  return [...present, `${path} == ${deleted}`].join(" && ");
}

const noted = (key: string) => `has(params.metadata.annotations) && '${key}' in params.metadata.annotations`;
const annotated = (key: string) => `${noted(key)} && params.metadata.annotations['${key}'] == ${deleted}`;
/** Lists in annotations are JSON, and the names of rendered configs need no escapes there. */
const listed = (key: string) =>
  `${noted(key)} && params.metadata.annotations['${key}'].contains('"' + ${deleted} + '"')`;

/**
 * The uses of {@link usesOfPool} and the functions beside it, as the API server decides them; a test compares the two. A
 * machine without a MachineConfigNode names its configs in the annotations of its Node.
 */
export const policiesOfUsers: readonly PolicyOfUsers[] = [
  {
    name: "rendered-config-in-use-by-pool",
    apiVersion: MachineConfigPool.apiVersion,
    kind: MachineConfigPool.kind,
    label: "pool",
    uses: {
      target: names("params.spec.configuration.name"),
      status: names("params.status.configuration.name"),
      quarantined: listed(annotations.quarantined),
    },
  },
  {
    name: "rendered-config-in-use-by-node",
    apiVersion: "v1",
    kind: "Node",
    label: "node",
    uses: {
      currentConfig: annotated(annotations.currentConfig),
      desiredConfig: annotated(annotations.desiredConfig),
      firstPivotConfig: annotated(annotations.firstPivotConfig),
    },
  },
  {
    name: "rendered-config-in-use-by-machine",
    apiVersion: MachineConfigNode.apiVersion,
    kind: MachineConfigNode.kind,
    label: MachineConfigNode.kind,
    uses: {
      spec: names("params.spec.configVersion.desired"),
      status: `(${names("params.status.configVersion.desired")}) || (${names("params.status.configVersion.current")})`,
      refused: listed(annotations.refusedTargets),
    },
  },
  {
    name: "rendered-config-in-use-by-build",
    apiVersion: MachineOSBuild.apiVersion,
    kind: MachineOSBuild.kind,
    label: MachineOSBuild.kind,
    uses: { spec: names("params.spec.machineConfig.name") },
  },
];
