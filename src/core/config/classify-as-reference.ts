import { pushAll } from "../../api/schema/push-all.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { folderOf } from "../../ignition/clean-path.ts";
import { readIgnition } from "../../ignition/parse-ignition.ts";
import type { Problem } from "../../ignition/problem.ts";
import { type PolicyAction, type UserPolicies, filePolicyFor, mergePolicies } from "./disruption-policy.ts";
import { reconcile } from "./reconcilable.ts";

type Config = Pick<MachineConfig, "metadata" | "spec">;

/** What the reference would report and do about a change: for adoption of a live cluster, and for comparison. */
export interface ReferenceClassification {
  readonly os: boolean;
  readonly kernelArguments: boolean;
  readonly fips: boolean;
  readonly passwd: boolean;
  readonly files: boolean;
  readonly units: boolean;
  readonly kernelType: boolean;
  readonly extensions: boolean;
  /** Sorted. */
  readonly changedPaths: readonly string[];
  /** Sorted. */
  readonly changedUnits: readonly string[];
  readonly isReconcilable: boolean;
  /** Where no node disruption policy exists: "none", "reload crio", "restart crio" or "reboot". */
  readonly legacyAction: LegacyAction;
  /** Under the policies: in order of paths, then units, then keys; nothing deduplicated. */
  readonly policyActions: readonly PolicyAction[];
}

export type LegacyAction = "none" | "reload crio" | "restart crio" | "reboot";

export type ReferenceResult =
  | { readonly verdict: "classified"; readonly classification: ReferenceClassification }
  | { readonly verdict: "refused"; readonly problems: readonly Problem[] };

/**
 * Compares two configs the way the reference does: spelling counts (order of lists, compression, form of data URLs), so
 * this finds changes where `diffConfigs` finds none. Plans never use it.
 * Source of the rules: openshift/machine-config-operator pkg/daemon/update.go (main).
 */
export function classifyAsReference(from: Config, to: Config, policy?: UserPolicies): ReferenceResult {
  const [before, after] = [readIgnition(from.spec?.config), readIgnition(to.spec?.config)];
  if (before.verdict === "invalid") return { verdict: "refused", problems: before.problems };
  if (after.verdict === "invalid") return { verdict: "refused", problems: after.problems };
  const [old, next] = [before.config, after.config];
  const [a, b] = [from.spec ?? {}, to.spec ?? {}];
  const changedPaths = changedKeys(old.storage?.files ?? [], next.storage?.files ?? [], ({ path }) => path);
  const changedUnits = changedKeys(old.systemd?.units ?? [], next.systemd?.units ?? [], ({ name }) => name);
  const differs = {
    os: (a.osImageURL ?? "") !== (b.osImageURL ?? ""),
    kernelArguments: !equalValues(a.kernelArguments ?? [], b.kernelArguments ?? []),
    fips: (a.fips ?? false) !== (b.fips ?? false),
    passwd: !equalValues(old.passwd, next.passwd),
    files: !equalValues(old.storage?.files, next.storage?.files),
    units: !equalValues(old.systemd?.units, next.systemd?.units),
    kernelType: canonicalKernel(a.kernelType) !== canonicalKernel(b.kernelType),
    extensions: !equalValues(a.extensions ?? [], b.extensions ?? []),
  };
  const boots = differs.os || differs.kernelArguments || differs.fips || differs.kernelType || differs.extensions;
  return {
    verdict: "classified",
    classification: {
      ...differs,
      changedPaths,
      changedUnits,
      isReconcilable: reconcile(from, to).every(({ rule }) => rule === "ours"),
      legacyAction: boots || differs.units ? "reboot" : legacyActionOf(changedPaths),
      policyActions: boots
        ? [{ type: "Reboot" }]
        : !differs.files && !differs.units && !differs.passwd
          ? [{ type: "None" }]
          : actionsUnder(policy, changedPaths, changedUnits, differs.passwd),
    },
  };
}

const canonicalKernel = (type: string | undefined): string =>
  type === "realtime" || type === "64k-pages" ? type : "default";

/** Keys of entries that are in one list only or differ, the last of duplicates counting. */
function changedKeys<T>(before: readonly T[], after: readonly T[], keyOf: (item: T) => string): readonly string[] {
  const old = new Map(before.map((item) => [keyOf(item), item]));
  const next = new Map(after.map((item) => [keyOf(item), item]));
  const changed = [...new Set([...old.keys(), ...next.keys()])].filter(
    (key) => !old.has(key) || !next.has(key) || !equalValues(old.get(key), next.get(key)),
  );
  return changed.toSorted((x, y) => (x < y ? -1 : x > y ? 1 : 0));
}

const quietPaths = new Set(["/etc/kubernetes/kubelet-ca.crt", "/var/lib/kubelet/config.json"]);
const reloadPaths = new Set([
  "/etc/containers/registries.conf",
  "/etc/machine-config-daemon/no-reboot/containers-gpg.pub",
  "/etc/containers/policy.json",
]);
const restartPath = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt";

/** The action for changed files under the rules from before disruption policies. */
export function legacyActionOf(paths: readonly string[]): LegacyAction {
  let action: LegacyAction = "none";
  for (const path of paths) {
    if (quietPaths.has(path)) continue;
    if (reloadPaths.has(path) || folderOf(path) === "/etc/containers/registries.d")
      action = action === "restart crio" ? action : "reload crio";
    else if (path === restartPath) action = "restart crio";
    else if (folderOf(path) !== "/etc/nmstate/openshift") return "reboot";
  }
  return action;
}

function actionsUnder(
  user: UserPolicies | undefined,
  paths: readonly string[],
  units: readonly string[],
  passwd: boolean,
): readonly PolicyAction[] {
  const policies = mergePolicies(user);
  const actions: PolicyAction[] = [];
  for (const path of paths) {
    const policy = filePolicyFor(path, policies.files);
    if (policy === undefined) return [{ type: "Reboot" }];
    pushAll(actions, policy.actions);
  }
  for (const name of units) {
    const policy = policies.units.find((one) => one.name === name);
    if (policy === undefined) return [{ type: "Reboot" }];
    pushAll(actions, policy.actions);
  }
  if (passwd) pushAll(actions, policies.sshkey.actions);
  if (actions.some(({ type }) => type === "Reboot")) return [{ type: "Reboot" }];
  if (!actions.some(({ type }) => type === "None")) return actions;
  const acting = actions.filter(({ type }) => type !== "None");
  return acting.length > 0 ? acting : [{ type: "None" }];
}
