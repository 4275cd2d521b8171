import type { MachineConfig, MachineConfigSpec } from "../../api/kinds/machine-config.ts";
import { equalValues } from "../../ignition/canonical.ts";

/** Fields that another writer may leave out, or write as null. */
const emptySpec: Required<NonNullable<MachineConfigSpec>> = {
  baseOSExtensionsContainerImage: "",
  config: {},
  extensions: [],
  fips: false,
  kernelArguments: [],
  kernelType: "",
  osImageURL: "",
};

const isKnown = (field: string): field is keyof typeof emptySpec => Object.hasOwn(emptySpec, field);

/**
 * All fields of a spec that this release knows, however its writer writes those without a value. A later definition of
 * MachineConfig may have others, and give them a default; no machine of this release reads them.
 */
export const knownFields = (spec: MachineConfigSpec): Required<NonNullable<MachineConfigSpec>> => ({
  ...emptySpec,
  ...Object.fromEntries(
    Object.entries(spec ?? {}).filter(([field, value]) => isKnown(field) && value !== null && value !== undefined),
  ),
});

/**
 * The fields of a spec that a MachineConfig does not hold as they were written; none: it holds that. Within a field everything
 * counts, also what was added: each section of an Ignition config changes machines.
 */
export function fieldsNotHeld(
  has: Pick<MachineConfig, "spec">,
  wanted: Pick<MachineConfig, "spec">,
): readonly string[] {
  const [held, written] = [knownFields(has.spec), knownFields(wanted.spec)];
  return Object.keys(written)
    .filter(isKnown)
    .filter((field) => !equalValues(held[field], written[field]))
    .map((field) => `spec.${field}`)
    .toSorted();
}
