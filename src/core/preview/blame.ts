import { hostPaths } from "../../api/names.ts";
import type { MergedFrom } from "../../ignition/merge-ignition.ts";
import type { FieldOrigin } from "../config/merge-fields.ts";
import { splitKernelArguments } from "../config/node-config.ts";
import type { RenderResult } from "../render/render-pool.ts";

/** A question about a rendered config. */
export type BlameQuestion =
  | { readonly about: "path"; readonly path: string }
  | { readonly about: "unit"; readonly name: string }
  | { readonly about: "kernelArgument"; readonly argument: string }
  | { readonly about: "user"; readonly name: string }
  /** `osImageURL`, `kernelType`, `fips`, `extensions`, … */
  | { readonly about: "field"; readonly field: string };

/** The origin of one entry of a rendered config. */
export interface Blame {
  /** `file`, `unit`, `dropin`, `sshKey`, `kernelArgument`, `osImageURL`, … */
  readonly kind: string;
  readonly name: string;
  /** The member that decided last, or "cluster". */
  readonly from: string;
  /** Every member that names it, in merge order. */
  readonly contributors: readonly string[];
  /** Field by field, the member whose value counts. */
  readonly fields: Readonly<Record<string, string>>;
  /** The members whose value was overridden. */
  readonly overrode: readonly { readonly member: string; readonly field: string; readonly by: string }[];
}

type Rendered = Extract<RenderResult, { verdict: "rendered" }>;

const unitFolder = "/etc/systemd/system/";

/** The members that contribute the entry; empty if the config does not contain it. */
export function blame(
  { fieldOrigins, origins }: Pick<Rendered, "fieldOrigins" | "origins">,
  question: BlameQuestion,
): readonly Blame[] {
  switch (question.about) {
    case "path": {
      const { path } = question;
      const unit = /^([^/]+?)(?:\.d\/([^/]+))?$/.exec(
        path.startsWith(unitFolder) ? path.slice(unitFolder.length) : "/",
      );
      return origins.filter(
        ({ kind, name }) =>
          ((kind === "file" || kind === "directory" || kind === "link") && name === path) ||
          // Paths that the config names only by a unit or an account.
          (unit !== null &&
            (unit[2] === undefined
              ? kind === "unit" && name === unit[1]
              : kind === "dropin" && name === `${unit[1] ?? ""}/${unit[2]}`)) ||
          (path === hostPaths.sshKeys && kind === "sshKey"),
      );
    }
    case "unit":
      return origins.filter(
        ({ kind, name }) =>
          (kind === "unit" && name === question.name) || (kind === "dropin" && name.startsWith(`${question.name}/`)),
      );
    case "user":
      return origins.filter(
        ({ kind, name }) =>
          (kind === "user" && name === question.name) || (kind === "sshKey" && name.startsWith(`${question.name}: `)),
      );
    case "kernelArgument": {
      const { argument } = question;
      const isMeant = (word: string) => word === argument || word.startsWith(`${argument}=`);
      const ignition: readonly MergedFrom[] = origins.filter(
        ({ kind, name }) => kind === "kernelArgument" && isMeant(name),
      );
      return [
        ...fieldOrigins
          .filter(
            ({ field, value }) =>
              field === "kernelArguments" && (value === argument || splitKernelArguments(value).some(isMeant)),
          )
          .map(ofField),
        ...ignition,
      ];
    }
    case "field":
      return fieldOrigins.filter(({ field }) => field === question.field).map(ofField);
  }
}

function ofField({ field, from, overrode, value }: FieldOrigin): Blame {
  return {
    kind: field === "kernelArguments" ? "kernelArgument" : field === "extensions" ? "extension" : field,
    name: value,
    from,
    contributors: [...overrode.map(({ member }) => member), ...(from === "cluster" ? [] : [from])],
    fields: { [field]: from },
    overrode: overrode.map(({ member, value: text }) => ({ member, field: `${field} ${text}`, by: from })),
  };
}
