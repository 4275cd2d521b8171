import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import { type KubeObject, controlledBy } from "../../api/schema/object.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { ignitionVersion } from "../../ignition/types.ts";
import { fieldsNotHeld } from "../config/held-fields.ts";

/** A file of a MachineConfig that this suite generates. */
export interface GeneratedFile {
  readonly path: string;
  readonly mode: number;
  readonly text: string;
}

/** Additions to a unit of the OS. */
export interface GeneratedUnit {
  readonly name: string;
  readonly dropins: readonly { readonly name: string; readonly contents: string }[];
}

export interface GeneratedConfig {
  readonly name: string;
  /** The pool, or the role, whose machines get it. */
  readonly role: string;
  /** The object that it is made from; it is deleted with it. */
  readonly owner: KubeObject;
  readonly files: readonly GeneratedFile[];
  readonly units?: readonly GeneratedUnit[];
  readonly kernelArguments?: readonly string[];
  readonly generatorVersion: string;
}

/** A MachineConfig of whole files, and drop-ins of units. Equal inputs give equal bytes. */
export function generatedConfig(given: GeneratedConfig): MachineConfig {
  const { name, role, owner, files, units = [], kernelArguments = [], generatorVersion } = given;
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: {
      name,
      labels: { [labels.role]: role },
      annotations: { [annotations.generatedByController]: generatorVersion },
      ownerReferences: [controlledBy(owner)],
    },
    spec: {
      config: {
        ignition: { version: ignitionVersion },
        storage: {
          files: files
            .toSorted((a, b) => (a.path < b.path ? -1 : 1))
            .map(({ path, mode, text }) => ({
              path,
              mode,
              overwrite: true,
              contents: { source: encodeDataUrl(text) },
            })),
        },
        ...(units.length === 0 ? {} : { systemd: { units: [...units] } }),
      },
      ...(kernelArguments.length === 0 ? {} : { kernelArguments: [...kernelArguments] }),
    },
  };
}

/** The files of a MachineConfig that was made by {@link generatedConfig}, with their contents as they stand there. */
export const generatedFiles = ({ spec }: MachineConfig): readonly { readonly path: string }[] =>
  (spec?.config as { readonly storage?: { readonly files?: readonly { readonly path: string }[] } } | undefined)
    ?.storage?.files ?? [];

/** Whether an object contains everything that is desired; what others added to it does not matter. */
export function isCurrent(has: MachineConfig | undefined, wanted: MachineConfig): boolean {
  if (has === undefined || has.metadata.deletionTimestamp !== undefined) return false;
  const covers = (of: Record<string, string> | undefined, by: Record<string, string> | undefined) =>
    Object.entries(of ?? {}).every(([key, value]) => by?.[key] === value);
  return (
    fieldsNotHeld(has, wanted).length === 0 &&
    covers(wanted.metadata.labels, has.metadata.labels) &&
    covers(wanted.metadata.annotations, has.metadata.annotations) &&
    (wanted.metadata.ownerReferences ?? []).every(
      ({ uid }) => has.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true,
    )
  );
}
