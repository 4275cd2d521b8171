import type { ClusterPolicies } from "../api/machine-configuration.ts";
import type { Because, Change, Consequence } from "./change.ts";

type Action = NonNullable<ClusterPolicies["files"]>[number]["actions"][number];

function consequencesOfActions(actions: readonly Action[]): readonly Consequence[] {
  return actions.flatMap((action): Consequence[] => {
    switch (action.type) {
      case "Reboot":
        return [{ kind: "reboot" }];
      case "Drain":
        return [{ kind: "drain" }];
      case "Reload":
        return [{ kind: "reload", unit: action.reload?.serviceName ?? "" }];
      case "Restart":
        return [{ kind: "restart", unit: action.restart?.serviceName ?? "" }];
      case "DaemonReload":
        return [{ kind: "daemonReload" }];
      case "None":
        return [{ kind: "none" }];
      case "Special":
        return [{ kind: "drain" }, { kind: "reload", unit: "crio.service" }];
    }
  });
}

/** The most specific policy for a path: its own, or of the closest folder above it. */
export function policyForPath(path: string, policies: ClusterPolicies): NonNullable<ClusterPolicies["files"]>[number] | undefined {
  let best: NonNullable<ClusterPolicies["files"]>[number] | undefined;
  for (const policy of policies.files ?? []) {
    const matches = path === policy.path || path.startsWith(policy.path.endsWith("/") ? policy.path : `${policy.path}/`);
    if (matches && policy.path !== "/" && policy.path.length > (best?.path.length ?? 0)) best = policy;
  }
  return best;
}

/** What changes ask for under the cluster's node disruption policies; a change that no policy names reboots. */
export function consequencesOf(changes: readonly Change[], policies: ClusterPolicies | undefined): readonly Because[] {
  return changes.flatMap((change): Because[] => {
    const because = (consequences: readonly Consequence[], why: string): Because[] => consequences.map((consequence) => ({ consequence, changes: [change], why }));
    switch (change.kind) {
      case "file": {
        const policy = policies === undefined ? undefined : policyForPath(change.path, policies);
        if (policy === undefined) return because([{ kind: "reboot" }], "no node disruption policy names it");
        return because(consequencesOfActions(policy.actions), `of the node disruption policy for ${policy.path}`);
      }
      case "unit": {
        const policy = policies?.units?.find(({ name }) => name === change.name);
        if (policy === undefined) return because([{ kind: "reboot" }], "no node disruption policy names the unit");
        return because(consequencesOfActions(policy.actions), `of the node disruption policy for unit ${policy.name}`);
      }
      case "sshKeys":
      case "password": {
        const actions = policies?.sshkey?.actions;
        if (actions === undefined) return because([{ kind: "reboot" }], "no node disruption policy names SSH keys");
        return because(consequencesOfActions(actions), "of the node disruption policy for SSH keys");
      }
      case "kernelArguments":
      case "osImage":
      case "extensions":
      case "kernelType":
      case "fips":
        return because([{ kind: "reboot" }], "it takes effect at boot");
    }
  });
}
