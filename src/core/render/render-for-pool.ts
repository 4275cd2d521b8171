import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { inMergeOrder } from "../config/merge-fields.ts";
import { type StorageOverride, irreconcilableBetween } from "../config/reconcilable.ts";
import { type RenderRefusal, type RenderInputs, type RenderResult, renderPool } from "./render-pool.ts";

const storageOverrides = ["Disks", "FileSystems", "Raid"] as const;

/** Changes of storage that the administrator allows although running machines will not follow. */
export function storageOverridesOf(
  configuration: Pick<MachineConfiguration, "spec"> | undefined,
): readonly StorageOverride[] {
  const allowed: unknown = configuration?.spec.irreconcilableValidationOverrides?.["storage"];
  return Array.isArray(allowed) ? storageOverrides.filter((one) => allowed.includes(one)) : [];
}

/**
 * Renders a pool as `renderPool` does, and refuses changes that machines with the pool's current config cannot follow:
 * exactly those that the reference refuses while it renders, with the member to blame. The pool then keeps its current
 * config. Changes that only this suite refuses are left to the daemon, which reports them before it drains.
 *
 * `current`: the config that the pool points to; absent for a pool that has none yet.
 * Source: openshift/machine-config-operator pkg/controller/render/render_controller.go (main).
 */
export function renderForPool(
  inputs: RenderInputs,
  current: Pick<MachineConfig, "metadata" | "spec"> | undefined,
  overrides: readonly StorageOverride[] = [],
): RenderResult {
  const result = renderPool(inputs);
  if (result.verdict === "refused" || current === undefined) return result;
  const found = irreconcilableBetween(current, result.config, overrides).filter(({ rule }) => rule === "reference");
  if (found.length === 0) return result;
  const refusals = found.map(({ field, reason, remedy }): RenderRefusal => {
    const member = ownerOfFile(result, field) ?? culpritOf(inputs, current, overrides, field, reason);
    return {
      code: "Irreconcilable",
      reason: `${member === undefined ? "" : `${member}: `}${reason}`,
      path: field,
      remedy,
      ...(member === undefined ? {} : { member }),
    };
  });
  return { verdict: "refused", refusals };
}

/** The member that brings the file of a finding. */
function ownerOfFile(
  { config, origins }: Extract<RenderResult, { verdict: "rendered" }>,
  field: string,
): string | undefined {
  const index = /^spec\.config\.storage\.files\[(\d+)\]/.exec(field)?.[1];
  const files = (config.spec.config["storage"] as { readonly files?: readonly { readonly path: string }[] } | undefined)
    ?.files;
  const path = index === undefined ? undefined : files?.[Number(index)]?.path;
  return path === undefined ? undefined : origins.find(({ kind, name }) => kind === "file" && name === path)?.from;
}

/** The first member that brings the same finding by itself; none if a deleted member caused it. */
function culpritOf(
  inputs: RenderInputs,
  current: Pick<MachineConfig, "metadata" | "spec">,
  overrides: readonly StorageOverride[],
  field: string,
  reason: string,
): string | undefined {
  const section = sectionOf(field);
  const brings = (member: RenderInputs["members"][number]) =>
    irreconcilableBetween(current, member, overrides).some(
      (one) => sectionOf(one.field) === section && (one.reason === reason || section === field),
    );
  return inMergeOrder(inputs.members).find((member) => mentions(member, section) && brings(member))?.metadata.name;
}

/** The field without list indexes, which differ between a member and the whole. */
const sectionOf = (field: string) => field.replace(/\[\d+\].*$/, "");

function mentions(member: RenderInputs["members"][number], section: string): boolean {
  let value: unknown = member;
  for (const name of section.split("."))
    value =
      typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
  return value !== undefined && value !== null;
}
