import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { IgnitionConfig } from "../../ignition/types.ts";
import { sourcesOf } from "../config/changed-sources.ts";
import { inMergeOrder } from "../config/merge-fields.ts";
import { describeConflict, pathClaims, pathConflicts, type PathClaim } from "../config/path-conflicts.ts";
import {
  type StorageOverride,
  irreconcilableBetween,
  overrideFor,
  sectionsThatDiffer,
} from "../config/reconcilable.ts";
import { type MachineConfigInput, ignitionOf } from "../config/validate-machine-config.ts";
import { listText } from "../text/list-text.ts";
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
 * Why no machine can have what members are merged into, although each of them can be had by itself: paths that exclude
 * each other, and files without contents. The reference renders the former, and each machine drains into a write that
 * fails; a pool that has no config yet would render the latter, and Ignition would refuse it.
 */
function refusalsOf(inOrder: readonly MachineConfigInput[], merged: IgnitionConfig): readonly RenderRefusal[] {
  return [...conflictsIn(merged, inOrder), ...bareFilesIn(merged, inOrder)];
}

function conflictsIn(merged: IgnitionConfig, inOrder: readonly MachineConfigInput[]): readonly RenderRefusal[] {
  const conflicts = pathConflicts(pathClaims(merged));
  if (conflicts.length === 0) return [];
  const claimants = claimantsOf(inOrder);
  return conflicts.map((conflict): RenderRefusal => {
    const sides = [conflict.first, conflict.second].map((claim) => ({
      claim,
      ...(claimants.get(claimKey(claim)) ?? { path: `spec.config.${claim.field}`, order: -1 }),
    }));
    const nameOf = (claim: PathClaim) => {
      const side = sides.find((one) => one.claim === claim);
      return `${side?.member ?? "the pool"} (${side?.path ?? ""})`;
    };
    // The member that comes later brings what does not go with the earlier one.
    const [culprit] = sides.toSorted((a, b) => b.order - a.order || (a.claim === conflict.second ? -1 : 1));
    return {
      code: "PathConflict",
      ...describeConflict(conflict, nameOf),
      ...(culprit?.member === undefined ? {} : { member: culprit.member, path: culprit.path }),
      involves: sides.flatMap(({ member, path }) => (member === undefined ? [] : [{ member, path }])),
    };
  });
}

/** Who makes a claim: a member and its field there. */
interface Claimant {
  readonly member?: string;
  readonly path: string;
  /** The member's place in the order of merging. */
  readonly order: number;
}

/** What merging knows a claim by. */
const claimKey = ({ kind, name }: PathClaim) => `${kind} ${name}`;

/** The member that a merged claim is from, the last one that makes it, and its first field there. */
function claimantsOf(inOrder: readonly MachineConfigInput[]): ReadonlyMap<string, Claimant> {
  const claimants = new Map<string, Claimant>();
  for (const [order, member] of inOrder.entries()) {
    const ignition = ignitionOf(member);
    if (ignition?.verdict !== "valid") continue;
    for (const claim of pathClaims(ignition.config).toReversed())
      claimants.set(claimKey(claim), { member: member.metadata.name, path: `spec.config.${claim.field}`, order });
  }
  return claimants;
}

/** Files that are to be written, and of which no member gives the contents. */
function bareFilesIn(merged: IgnitionConfig, inOrder: readonly MachineConfigInput[]): readonly RenderRefusal[] {
  const bare = (merged.storage?.files ?? []).filter(
    ({ contents, overwrite }) => overwrite === true && (contents?.source ?? "") === "",
  );
  if (bare.length === 0) return [];
  const named = new Map(inOrder.flatMap(filesNamedBy));
  return bare.map(({ path, append }): RenderRefusal => {
    const owner = named.get(path);
    return {
      code: "NoContents",
      reason: `${owner === undefined ? "" : `${owner.member}: `}${path} has ${(append ?? []).length > 0 ? "something to append, and no contents" : "no contents"} in any MachineConfig of the pool`,
      remedy: "give contents.source, the whole file as a data URL (data:, for an empty file)",
      ...(owner === undefined ? {} : { ...owner, involves: [owner] }),
    };
  });
}

/** The files that a member names, each with its field. */
function filesNamedBy(
  member: MachineConfigInput,
): readonly (readonly [file: string, { readonly member: string; readonly path: string }])[] {
  const ignition = ignitionOf(member);
  const files = ignition?.verdict === "valid" ? (ignition.config.storage?.files ?? []) : [];
  return files.map(({ path }, index) => [
    path,
    { member: member.metadata.name, path: `spec.config.storage.files[${index}]` },
  ]);
}

/**
 * Renders a pool as `renderPool` does, and refuses what no machine can have, and changes that machines with the pool's
 * current config cannot follow: those that the reference refuses while it renders, with the member to blame. The pool
 * then keeps its current config. Other changes that only this suite refuses are left to the daemon, which reports them
 * before it drains.
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
  if (result.verdict === "refused") return result;
  const unholdable = refusalsOf(inMergeOrder(inputs.members), result.config.spec.config as unknown as IgnitionConfig);
  if (unholdable.length > 0) return { verdict: "refused", refusals: unholdable };
  if (current === undefined) return result;
  const found = irreconcilableBetween(current, result.config, overrides).filter(({ rule }) => rule === "reference");
  if (found.length === 0) return result;
  const fileOwner = fileOwners(result, inputs.members);
  const refusals = found.map(({ field, reason, remedy }): RenderRefusal => {
    const file = fileAt(result.config, field);
    const owner = file === undefined ? undefined : fileOwner(file.path);
    const member = owner?.member ?? culpritOf(inputs, current, overrides, field, reason);
    const own = owner?.field;
    const gone = member === undefined ? membersGone(inputs) : [];
    if (gone.length > 0) return withoutThem(gone, { field, reason });
    return {
      code: "Irreconcilable",
      reason: `${member === undefined ? "" : `${member}: `}${aboutFile(reason, file?.path, result.config.metadata.name)}`,
      path: own === undefined ? field : `${own}${file?.rest ?? ""}`,
      remedy,
      ...(member === undefined ? {} : { member }),
    };
  });
  return { verdict: "refused", refusals };
}

/** MachineConfigs that the pool's current config was merged from, and that the pool no longer selects. */
function membersGone({ pool, members }: RenderInputs): readonly string[] {
  const there = new Set(members.map(({ metadata }) => metadata.name));
  return sourcesOf(pool.spec?.configuration).filter((name) => !there.has(name));
}

/** That machines cannot follow because MachineConfigs are gone, and what to do. */
function withoutThem(
  gone: readonly string[],
  { field, reason }: { readonly field: string; readonly reason: string },
): RenderRefusal {
  const names = listText(gone, mostGone);
  const override = overrideFor(field);
  return {
    code: "Irreconcilable",
    reason: `${reason}: machines were set up with ${names}, which the pool no longer has`,
    path: field,
    remedy: `make ${names} again as it was${override === undefined ? "" : `, or allow the change by the override ${override} of MachineConfiguration/cluster: machines that run keep what they have`}`,
  };
}
const mostGone = 5;

type Rendered = Extract<RenderResult, { verdict: "rendered" }>;

/** The file that a field of the rendered config is about, and what follows in the field. */
function fileAt(
  config: Rendered["config"],
  field: string,
): { readonly path: string; readonly rest: string } | undefined {
  const [, index, rest = ""] = /^spec\.config\.storage\.files\[(\d+)\](.*)$/.exec(field) ?? [];
  const { storage } = config.spec.config as unknown as IgnitionConfig;
  const path = index === undefined ? undefined : storage?.files?.[Number(index)]?.path;
  return path === undefined ? undefined : { path, rest };
}

/** The member that brings a file, and its field there. */
interface FileOwner {
  readonly member: string;
  readonly field: string | undefined;
}

/** Who brings each file of a rendered config. What is looked up is read once, and not for each file. */
function fileOwners({ origins }: Rendered, members: RenderInputs["members"]): (path: string) => FileOwner | undefined {
  const owners = new Map(origins.flatMap(({ kind, name, from }) => (kind === "file" ? [[name, from] as const] : [])));
  const byName = new Map(members.map((member) => [member.metadata.name, member]));
  const fieldsOf = new Map<string, ReadonlyMap<string, { readonly path: string }>>();
  const fieldsBy = (name: string) => {
    const member = byName.get(name);
    const fields = fieldsOf.get(name) ?? new Map(member === undefined ? [] : filesNamedBy(member));
    fieldsOf.set(name, fields);
    return fields;
  };
  return (path) => {
    const member = owners.get(path);
    return member === undefined ? undefined : { member, field: fieldsBy(member).get(path)?.path };
  };
}

/** A reason that names the file instead of the rendered config, which nobody wrote. */
function aboutFile(reason: string, path: string | undefined, rendered: string): string {
  const bare = reason.startsWith(`${rendered}: `) ? reason.slice(rendered.length + 2) : reason;
  return path === undefined || bare.includes(path) ? bare : `${path}: ${bare}`;
}

/**
 * The first member that brings the same finding by itself; none if a deleted member caused it. No contents are read: no
 * finding of the reference is about them.
 */
function culpritOf(
  inputs: RenderInputs,
  current: Pick<MachineConfig, "metadata" | "spec">,
  overrides: readonly StorageOverride[],
  field: string,
  reason: string,
): string | undefined {
  const section = sectionOf(field);
  const brings = (member: RenderInputs["members"][number]) =>
    sectionsThatDiffer(current, member, overrides).some(
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
