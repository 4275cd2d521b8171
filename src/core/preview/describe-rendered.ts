import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { blame, type Blame } from "./blame.ts";
import { describeChange } from "../config/change.ts";
import { type ConfigChange, diffConfigs } from "../config/diff-configs.ts";
import { maskText } from "../text/mask-secrets.ts";
import type { RenderResult } from "../render/render-pool.ts";
import { listText } from "../text/list-text.ts";

type Rendered = Extract<RenderResult, { verdict: "rendered" }>;

/** Changes that are listed; the others are counted. */
const mostChanges = 6;
/** Entries of one change whose member is looked for: each look goes through the whole configuration. */
const mostBlamed = 20;

/**
 * The difference between a rendered config and the previous one, and the responsible member: one line for events and
 * the books, without contents and values.
 */
export function describeRendered(before: Pick<MachineConfig, "metadata" | "spec">, result: Rendered): string {
  const changes = diffConfigs(before, result.config);
  if (changes.length === 0) return "nothing that machines would notice: members say the same in another form";
  const shown = changes
    .slice(0, mostChanges)
    .map((change) => `${signOf(change)}${maskText(describeChange(change))} (${whoChanged(change, result)})`);
  return listText(shown, mostChanges, changes.length);
}

const signOf = (change: ConfigChange) => ("op" in change ? { create: "+", update: "~", delete: "-" }[change.op] : "~");

function whoChanged(change: ConfigChange, result: Rendered): string {
  const found = decidedBy(change, result);
  const names = [...new Set(found.map(({ from }) => (from === "cluster" ? "the cluster" : from)))];
  if (names.length > 0) return names.join(", ");
  return "op" in change && change.op !== "delete" ? "merged" : "no member says it any more";
}

function newOnes(to: readonly string[], from: readonly string[]): readonly string[] {
  const known = new Set(from);
  return [...new Set(to)].filter((entry) => !known.has(entry)).slice(0, mostBlamed);
}

function decidedBy(change: ConfigChange, result: Rendered): readonly Blame[] {
  const fields = (field: string) => blame(result, { about: "field", field });
  switch (change.kind) {
    case "file":
      return blame(result, { about: "path", path: change.path });
    case "unit":
      return blame(result, { about: "unit", name: change.name });
    case "sshKeys":
    case "password":
      return blame(result, { about: "user", name: change.user });
    case "kernelArguments":
      return newOnes(change.to, change.from).flatMap((argument) =>
        blame(result, { about: "kernelArgument", argument }),
      );
    case "osImage":
      return fields("osImageURL");
    case "extensions":
      return fields("extensions").filter(({ name }) => !change.from.includes(name));
    case "kernelType":
    case "fips":
      return fields(change.kind);
    case "storage":
      return change.names.slice(0, mostBlamed).flatMap((path) => blame(result, { about: "path", path }));
  }
}
