import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { fieldsNotHeld, knownFields } from "../config/held-fields.ts";

/** What a MachineConfig belongs to, as an object sees it that makes MachineConfigs. */
export type Holder = "nothing" | "this" | "another";

const controllerOf = (config: MachineConfig) =>
  config.metadata.ownerReferences?.find(({ controller }) => controller === true);

/**
 * Whose a MachineConfig is, as an object sees it whose name it would have. One that the installation or the reference
 * made for the object is its own: it has no owner, and nothing but what these put into such a MachineConfig. Its annotation
 * alone proves nothing, since everybody who makes MachineConfigs writes annotations.
 *
 * @param config `undefined`: there is none of that name. @param wanted what the object would write there, if that is known.
 */
export function configHolder(
  config: MachineConfig | undefined,
  object: KubeObject,
  wanted?: Pick<MachineConfig, "spec">,
): Holder {
  if (config === undefined) return "nothing";
  const owner = controllerOf(config);
  if (owner === undefined)
    return config.metadata.annotations?.[annotations.generatedByController] !== undefined &&
      (hasFilesAlone(config) || (wanted !== undefined && fieldsNotHeld(config, wanted).length === 0))
      ? "this"
      : "another";
  return isController(config, object) ? "this" : "another";
}

/**
 * Whether an object controls a MachineConfig. An object of the same name that is another one, made after the owner was
 * deleted, does not. Objects in files have no uid yet.
 */
export function isController(config: MachineConfig, { kind, metadata: { name, uid } }: KubeObject): boolean {
  const owner = controllerOf(config);
  return owner?.kind === kind && owner.name === name && (uid === undefined || owner.uid === uid);
}

/** Whether a MachineConfig has whole files and nothing else: the form of those that the reference generates. */
export function hasFilesAlone({ spec }: Pick<MachineConfig, "spec">): boolean {
  const { config, ...fields } = knownFields(spec);
  const { ignition, storage, ...sections } = config as Readonly<Record<string, unknown>>;
  const { version: _, ...settings } = (ignition ?? {}) as Readonly<Record<string, unknown>>;
  const { files: __, ...others } = (storage ?? {}) as Readonly<Record<string, unknown>>;
  return [fields, sections, settings, others].every(isEmpty);
}

/** Programs in Go write fields without a value as null, "", false, or as lists and objects of these. */
const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === "" ||
  value === false ||
  (typeof value === "object" && Object.values(value).every(isEmpty));

/** Names of the MachineConfigs that an object controls. */
export const heldBy = ({ metadata: { uid } }: KubeObject, configs: readonly MachineConfig[]): readonly string[] =>
  configs.flatMap((config) => (uid !== undefined && controllerOf(config)?.uid === uid ? [config.metadata.name] : []));
