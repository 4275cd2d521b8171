import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";

/** What a MachineConfig belongs to, as an object sees it that makes MachineConfigs. */
export type Holder = "nothing" | "this" | "another";

const controllerOf = (config: MachineConfig) =>
  config.metadata.ownerReferences?.find(({ controller }) => controller === true);

/**
 * Whose a MachineConfig is, as an object sees it whose name it would have. One that the installation or the reference
 * made for the object is its own.
 *
 * @param config `undefined`: there is none of that name.
 */
export function configHolder(config: MachineConfig | undefined, object: KubeObject): Holder {
  if (config === undefined) return "nothing";
  const owner = controllerOf(config);
  if (owner === undefined)
    return config.metadata.annotations?.[annotations.generatedByController] === undefined ? "another" : "this";
  return owner.kind === object.kind && owner.name === object.metadata.name ? "this" : "another";
}

/** Names of the MachineConfigs that an object controls. */
export const heldBy = ({ metadata: { uid } }: KubeObject, configs: readonly MachineConfig[]): readonly string[] =>
  configs.flatMap((config) => (uid !== undefined && controllerOf(config)?.uid === uid ? [config.metadata.name] : []));
