import { machineNamespace } from "../../api/names.ts";
import { type KubeObject, keyOf } from "../../api/schema/object.ts";
import { listText } from "../text/list-text.ts";
import { equalValues } from "../../ignition/canonical.ts";

/** A role or binding that the suite needs, beside the one that the cluster has. */
export interface Right {
  readonly needed: KubeObject;
  /** `refused`: the operator may not read it. */
  readonly found: KubeObject | "absent" | "refused";
}

export type RightsDecision =
  | { readonly verdict: "current" }
  /** An administrator has to apply what `install/` carries: the operator may write no roles. */
  | { readonly verdict: "outdated"; readonly message: string }
  /** The API server refuses to show some, as one does for a moment that has just been started. */
  | { readonly verdict: "unreadable"; readonly message: string };

/** Files of `install/` that bring the rights, with the namespaces that they lie in. */
const filesOfSuite = ["namespace.yaml", "rights.yaml"] as const;
/** For clusters with the machine API, whose namespace is not the suite's. */
const fileOfMachineApi = "machine-api.yaml";
const remedyBy = (files: readonly string[]) =>
  `an administrator corrects it with: kubectl apply ${files.map((file) => `-f install/${file}`).join(" ")}`;

/** What an administrator does where rights differ. */
export const rightsRemedy = remedyBy(filesOfSuite);
/** What an administrator does where the operator lacks its rights in the namespace of the machine API. */
export const machineApiRemedy = remedyBy([fileOfMachineApi]);

/** More names add nothing: the remedy is the same for all of them. */
const mostNamed = 5;

/**
 * Compares the cluster's roles and bindings with those that this version needs. Rights beyond what is needed are
 * outdated too: a component keeps none that it had in an earlier version.
 */
export function decideRights(rights: readonly Right[]): RightsDecision {
  const wrong = rights.flatMap(({ needed, found }) => {
    const how = howItDiffers(needed, found);
    return how === undefined ? [] : [{ needed, text: `${needed.kind} ${keyOf(needed)} ${how}` }];
  });
  if (wrong.length === 0) return { verdict: "current" };
  const isOfMachineApi = ({ needed }: Pick<Right, "needed">) => needed.metadata.namespace === machineNamespace;
  const files = [
    ...(wrong.every(isOfMachineApi) ? [] : filesOfSuite),
    ...(wrong.some(isOfMachineApi) ? [fileOfMachineApi] : []),
  ];
  const isUnread = rights.every(
    ({ needed, found }) => found === "refused" || (found !== "absent" && equalValues(grantOf(needed), grantOf(found))),
  );
  return {
    verdict: isUnread ? "unreadable" : "outdated",
    message: `the rights of the suite are not those of this version (${listText(
      wrong.map(({ text }) => text),
      mostNamed,
    )}); ${remedyBy(files)}`,
  };
}

function howItDiffers(needed: KubeObject, found: Right["found"]): string | undefined {
  if (found === "absent") return "is missing";
  if (found === "refused") return "may not be read";
  return equalValues(grantOf(needed), grantOf(found)) ? undefined : "differs";
}

/** The part of a role or binding that says who may do what. */
function grantOf(object: KubeObject): readonly unknown[] {
  const { rules, aggregationRule, roleRef, subjects } = object as KubeObject & Readonly<Record<string, unknown>>;
  return [rules ?? [], aggregationRule, roleRef, subjects ?? []];
}
