import { nearestOf } from "../text/nearest.ts";
import { type Decoding, shortJson } from "./decode-go.ts";
import type { GoStruct, GoType } from "./kubelet-fields.ts";

/** A field of an object with settings that changes nothing on machines. */
export interface LostField {
  readonly path: string;
  /** The rest of a sentence that begins with the path. */
  readonly reason: string;
  /** What to write instead. */
  readonly remedy: string;
}

/** `spec.kubeletConfig.maxpods is no field of kubelet 1.34, which ignores it: write maxPods` */
export const lostFieldText = ({ path, reason, remedy }: LostField): string => `${path} ${reason}: ${remedy}`;

/** To find a similar name costs more than to name a field: only the first ones are compared with the known names. */
const mostCompared = 20;

/**
 * Fields that a kubelet does not know, each with the name that its author most likely meant, and how many more there are.
 *
 * @param decoding with the paths of the fields in a value of the type.
 * @param prefix of the paths in the object: `spec.kubeletConfig.`
 */
export function unknownFields(
  { unknown, moreUnknown }: Pick<Decoding, "unknown" | "moreUnknown">,
  type: GoStruct,
  prefix: string,
): readonly LostField[] {
  const fields = unknown.map((path, i) => {
    const meant = i < mostCompared ? meantName(path, type) : undefined;
    return {
      path: `${prefix}${path}`,
      reason: "is no field of kubelet 1.34, which ignores it",
      remedy: meant === undefined ? "take it out" : `write ${meant}`,
    };
  });
  if (moreUnknown === 0) return fields;
  return [
    ...fields,
    { path: prefix.slice(0, -1), reason: `has ${moreUnknown} more unknown fields`, remedy: "take them out" },
  ];
}

/** The known name that an unknown one most likely stands for, in any case of its letters. */
function meantName(path: string, type: GoStruct): string | undefined {
  const steps = path.split(".");
  const name = (steps.at(-1) ?? "").toLowerCase();
  const byLowerCase = new Map(Object.keys(structAt(steps.slice(0, -1), type)).map((one) => [one.toLowerCase(), one]));
  const nearest = byLowerCase.has(name) ? name : nearestOf(name, byLowerCase.keys());
  return nearest === undefined ? undefined : byLowerCase.get(nearest);
}

/** The members of the struct that steps as `vmodule[0]` lead to. */
function structAt(steps: readonly string[], type: GoStruct): GoStruct["struct"] {
  let at: GoType | undefined = type;
  for (const step of steps) {
    at = typeof at === "object" && "struct" in at ? at.struct[step.replace(/\[\d+\]$/, "")] : undefined;
    if (typeof at === "object" && "list" in at) at = at.list;
  }
  return typeof at === "object" && "struct" in at ? at.struct : {};
}

/**
 * A value that is empty and does not replace the base's, which is not.
 *
 * @param over the empty value.
 */
export const emptyField = (path: string, over: unknown, base: unknown): LostField => ({
  path,
  reason: `changes nothing: ${shortJson(over)} does not replace ${shortJson(base)} of the base`,
  remedy: over === false ? "take it out; no KubeletConfig turns it off" : "take it out, or give it another value",
});
