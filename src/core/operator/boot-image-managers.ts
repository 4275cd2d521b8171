import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { MachineSet } from "../../api/foreign/openshift.ts";
import { type LabelSelector, selectorMatches } from "../../api/schema/object.ts";
import { type BootImagePlatform, bootImagePlatforms } from "./boot-image-stream.ts";

type Managers = NonNullable<NonNullable<MachineConfiguration["spec"]["managedBootImages"]>["machineManagers"]>;
type Manager = Managers[number];

/** The machine API of a cluster, as far as boot images go. */
export interface MachineApi {
  /** As Infrastructure names it. */
  readonly platform: string | undefined;
  readonly hasMachineSets: boolean;
}

export const noMachineApi: MachineApi = { platform: undefined, hasMachineSets: false };

const isMachineSets = ({ resource }: Manager): boolean => resource === "machinesets";
const machineSets = (selection: Manager["selection"]): Manager => ({
  resource: "machinesets",
  apiGroup: "machine.openshift.io",
  selection,
});

/** The platform, if boot images of its MachineSets follow the release. */
export const bootImagePlatform = ({ platform, hasMachineSets }: MachineApi): BootImagePlatform | undefined =>
  hasMachineSets ? bootImagePlatforms.find((one) => one === platform) : undefined;

/**
 * Which machine sets get the boot images of the release. The administrator's word counts; without one, the MachineSets of
 * platforms that can be managed do: openshift/machine-config-operator pkg/operator/sync.go (main).
 *
 * @returns `managers` for the status, and those that are asked for in vain.
 */
export function effectiveManagers(
  asked: readonly Manager[] | undefined,
  api: MachineApi,
): { readonly managers: Manager[]; readonly unsupported: readonly Manager[] } {
  const canManage = bootImagePlatform(api) !== undefined;
  const wanted = (asked ?? []).filter(({ selection }) => selection.mode !== "None");
  const none = machineSets({ mode: "None" });
  const written = asked?.find(isMachineSets);
  // An empty list takes everything out.
  const byDefault = asked !== undefined && asked.length === 0 ? none : machineSets({ mode: "All" });
  return {
    managers: [canManage ? (written ?? byDefault) : none],
    unsupported: wanted.filter((manager) => !canManage || !isMachineSets(manager)),
  };
}

/** Whether the MachineSets of a cluster begin to be managed now, though the administrator says nothing about them. */
export function optsInByDefault({ spec, status }: MachineConfiguration, api: MachineApi): boolean {
  const asked = spec.managedBootImages?.machineManagers;
  const before = status?.managedBootImagesStatus?.machineManagers?.find(isMachineSets)?.selection.mode ?? "None";
  return (
    before === "None" &&
    asked?.find(isMachineSets) === undefined &&
    effectiveManagers(asked, api).managers.some(({ selection }) => selection.mode === "All")
  );
}

/** Whether the status selects a MachineSet. */
export function isManaged({ metadata }: MachineSet, managers: readonly Manager[] | undefined): boolean {
  const selection = managers?.find(isMachineSets)?.selection;
  switch (selection?.mode) {
    case "All":
      return true;
    case "Partial":
      return selectorMatches(selection.partial?.machineResourceSelector as LabelSelector | undefined, metadata.labels);
    default:
      return false;
  }
}
