import type { ClusterPolicies, MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { cleanPath } from "../../ignition/clean-path.ts";
import { type Because, type Change, type Consequence, describeChange, sameConsequence } from "./change.ts";
import { parseRegistriesConf } from "../images/registries-conf.ts";

export type FilePolicy = NonNullable<ClusterPolicies["files"]>[number];
export type UnitPolicy = NonNullable<ClusterPolicies["units"]>[number];
export type PolicyAction = FilePolicy["actions"][number];
/** The user's policies: a `MachineConfiguration`'s `spec.nodeDisruptionPolicy`. */
export type UserPolicies = NonNullable<NonNullable<MachineConfiguration["spec"]>["nodeDisruptionPolicy"]>;
/** The defaults, overlaid with the user's policies. */
export interface EffectivePolicies {
  readonly files: readonly FilePolicy[];
  readonly units: readonly UnitPolicy[];
  readonly sshkey: { readonly actions: readonly PolicyAction[] };
}

export const registriesConf = "/etc/containers/registries.conf";

const none: PolicyAction[] = [{ type: "None" }];
const daemonReload: PolicyAction = { type: "DaemonReload" };
const reload = (serviceName: string): PolicyAction => ({ type: "Reload", reload: { serviceName } });
const restart = (serviceName: string): PolicyAction => ({ type: "Restart", restart: { serviceName } });
const caTrust = "coreos-update-ca-trust.service";
const localRegistry = "iri-registry.service";

/**
 * The policies without any of the user's. Source: openshift/machine-config-operator pkg/apihelpers/apihelpers.go
 * (main).
 */
export const defaultPolicies: EffectivePolicies = {
  files: [
    { path: "/var/lib/kubelet/config.json", actions: none },
    { path: "/etc/machine-config-daemon/no-reboot/containers-gpg.pub", actions: [reload("crio.service")] },
    { path: "/etc/containers/policy.json", actions: [reload("crio.service")] },
    { path: registriesConf, actions: [{ type: "Special" }] },
    { path: "/etc/containers/registries.d", actions: [reload("crio.service")] },
    { path: "/etc/crio/policies", actions: [reload("crio.service")] },
    { path: "/etc/nmstate/openshift", actions: none },
    {
      path: "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
      actions: [restart(caTrust), restart("crio.service")],
    },
    { path: "/etc/kubernetes/credential-providers", actions: [restart("kubelet.service")] },
    {
      path: "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
      actions: [daemonReload, restart("kubelet.service")],
    },
    { path: "/etc/iri-registry", actions: [restart(localRegistry)] },
    { path: "/usr/local/bin/load-registry-image.sh", actions: [restart(localRegistry)] },
    { path: "/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", actions: [restart(caTrust)] },
  ],
  units: [{ name: localRegistry, actions: [daemonReload, restart(localRegistry)] }],
  sshkey: { actions: none },
};

/**
 * The effective policies, as `status.nodeDisruptionPolicyStatus.clusterPolicies` publishes them: a user's entry
 * replaces the default of the same path or unit in its place, others follow; SSH keys are replaced when the user names
 * any action.
 */
export function mergePolicies(user: UserPolicies | undefined): EffectivePolicies {
  const over = <T>(defaults: readonly T[], own: readonly T[], keyOf: (policy: T) => string): readonly T[] => {
    const merged = [...defaults];
    for (const policy of own) {
      const place = defaults.findIndex((one) => keyOf(one) === keyOf(policy));
      if (place >= 0) merged[place] = policy;
      else merged.push(policy);
    }
    return merged;
  };
  const keyActions = user?.sshkey?.actions ?? [];
  return {
    files: over<FilePolicy>(defaultPolicies.files, user?.files ?? [], ({ path }) => path),
    units: over<UnitPolicy>(defaultPolicies.units, user?.units ?? [], ({ name }) => name),
    sshkey: keyActions.length > 0 ? { actions: keyActions } : defaultPolicies.sshkey,
  };
}

/**
 * The policy for a path: its own or that of a parent folder; the longest path wins, the first among equals. `/` matches
 * nothing; a policy with a trailing slash matches only paths below it.
 */
export function filePolicyFor(path: string, policies: readonly FilePolicy[]): FilePolicy | undefined {
  let best: FilePolicy | undefined;
  for (const policy of policies) {
    const covers = policy.path === path || isBelow(path, policy.path);
    if (covers && policy.path.length > (best?.path.length ?? 0)) best = policy;
  }
  return best;
}

const isBelow = (path: string, folder: string): boolean => cleanPath(path).startsWith(`${cleanPath(folder)}/`);

/** Whether any policy can ask for this; a change without a policy asks for a reboot. */
export const policiesAsk = (policies: EffectivePolicies | ClusterPolicies, wanted: Consequence): boolean =>
  wanted.kind === "reboot" ||
  [...(policies.files ?? []), ...(policies.units ?? []), ...(policies.sshkey === undefined ? [] : [policies.sshkey])]
    .flatMap(({ actions }) => actions)
    .some((action) =>
      consequencesOfAction(action, "", {}).some(({ consequence }) => sameConsequence(consequence, wanted)),
    );

/** The units that policies reload or restart. */
export const unitsActedOn = (policies: EffectivePolicies | ClusterPolicies | undefined): readonly string[] => [
  ...new Set(
    [
      ...(policies?.files ?? []),
      ...(policies?.units ?? []),
      ...(policies?.sshkey === undefined ? [] : [policies.sshkey]),
    ]
      .flatMap(({ actions }) => actions)
      .flatMap(({ reload: reloaded, restart: restarted }) => [
        ...(reloaded === undefined ? [] : [reloaded.serviceName]),
        ...(restarted === undefined ? [] : [restarted.serviceName]),
      ]),
  ),
];

/** Whether a machine without this unit does the same in another way. */
export const takesAbsentUnit = (unit: string): boolean => unit === caTrust;

/** What an update requires of a machine. */
export interface Consequences {
  /**
   * In the order of execution, each once: drain, daemon-reload, reloads, restarts, or a reboot that covers all.
   */
  readonly actions: readonly Consequence[];
  /** One entry for each required consequence, including those that another one covers. */
  readonly because: readonly Because[];
}

/** Facts that policies need besides the changes. */
export interface PolicyContext {
  /**
   * The two texts of registries.conf, when that file changed: some changes of it need no drain. `undefined`: no such
   * file.
   */
  readonly registries?: { readonly before: string | undefined; readonly after: string | undefined };
}

/**
 * The consequences of changes under node disruption policies.
 *
 * Every matching rule is listed, also those that a reboot covers. Changes without a policy reboot the machine; kernel,
 * OS image, extensions and FIPS always do. Without changes the result is empty.
 */
export function consequencesOf(
  changes: readonly Change[],
  policies: EffectivePolicies | ClusterPolicies | undefined,
  context: PolicyContext = {},
): Consequences {
  const asks: { readonly consequence: Consequence; readonly changes: Set<Change>; readonly whys: Set<string> }[] = [];
  const ask = (change: Change, consequence: Consequence, why: string) => {
    const known = asks.find((one) => sameConsequence(one.consequence, consequence));
    if (known === undefined) asks.push({ consequence, changes: new Set([change]), whys: new Set([why]) });
    else if (!known.changes.has(change)) {
      known.changes.add(change);
      known.whys.add(why);
    }
  };
  for (const change of changes) {
    for (const { consequence, why } of asked(change, policies, context)) ask(change, consequence, why);
  }
  const because = asks.map(({ consequence, changes: all, whys }): Because => ({
    consequence,
    changes: [...all],
    why: [...whys].join("; "),
  }));
  return { actions: inOrder(because.map(({ consequence }) => consequence)), because };
}

function asked(
  change: Change,
  policies: EffectivePolicies | ClusterPolicies | undefined,
  context: PolicyContext,
): readonly { readonly consequence: Consequence; readonly why: string }[] {
  const reboot = (why: string) => [{ consequence: { kind: "reboot" } as const, why }];
  switch (change.kind) {
    case "file": {
      const policy = filePolicyFor(change.path, policies?.files ?? []);
      if (policy === undefined) return reboot(`${change.path} has no disruption policy`);
      return policy.actions.flatMap((action) =>
        consequencesOfAction(action, `the policy for ${policy.path} covers ${change.path}`, context),
      );
    }
    case "unit": {
      const policy = policies?.units?.find(({ name }) => name === change.name);
      if (policy === undefined) return reboot(`${describeChange(change)} has no disruption policy`);
      return policy.actions.flatMap((action) =>
        consequencesOfAction(action, `the policy for unit ${policy.name}`, context),
      );
    }
    case "sshKeys":
    case "password":
      if (policies?.sshkey === undefined) return reboot(`${describeChange(change)} have no disruption policy`);
      return policies.sshkey.actions.flatMap((action) =>
        consequencesOfAction(action, "the policy for SSH keys and passwords", context),
      );
    case "kernelArguments":
    case "osImage":
    case "extensions":
    case "kernelType":
    case "fips":
      return reboot(`${describeChange(change)} changed, which takes effect at boot`);
    case "storage":
      return [{ consequence: { kind: "none" }, why: `running machines do not follow changes of ${change.section}` }];
  }
}

function consequencesOfAction(
  action: PolicyAction,
  why: string,
  { registries }: PolicyContext,
): readonly { readonly consequence: Consequence; readonly why: string }[] {
  switch (action.type) {
    case "None":
      return [{ consequence: { kind: "none" }, why }];
    case "Drain":
      return [{ consequence: { kind: "drain" }, why }];
    case "DaemonReload":
      return [{ consequence: { kind: "daemonReload" }, why }];
    case "Reload":
      return [{ consequence: { kind: "reload", unit: action.reload?.serviceName ?? "" }, why }];
    case "Restart":
      return [{ consequence: { kind: "restart", unit: action.restart?.serviceName ?? "" }, why }];
    case "Reboot":
      return [{ consequence: { kind: "reboot" }, why }];
    case "Special": {
      const reloaded = { consequence: { kind: "reload", unit: "crio.service" } as const, why };
      const drain: RegistriesDrain =
        registries === undefined
          ? { verdict: "drain", why: "the change of registries.conf could not be looked at" }
          : registriesDrain(registries.before, registries.after);
      return drain.verdict === "safe"
        ? [reloaded]
        : [{ consequence: { kind: "drain" }, why: `${why}, and ${drain.why}` }, reloaded];
    }
  }
}

const rank: Readonly<Record<Consequence["kind"], number>> = {
  none: 0,
  drain: 1,
  daemonReload: 2,
  reload: 3,
  restart: 4,
  reboot: 5,
};

/**
 * Each once, in the order in which they must happen; a reboot replaces all others, and `none` disappears beside
 * others.
 */
function inOrder(consequences: readonly Consequence[]): readonly Consequence[] {
  if (consequences.some(({ kind }) => kind === "reboot")) return [{ kind: "reboot" }];
  const acting = consequences.filter(({ kind }) => kind !== "none");
  if (acting.length === 0) return consequences.length === 0 ? [] : [{ kind: "none" }];
  const once = acting.filter((one, i) => acting.findIndex((other) => sameConsequence(one, other)) === i);
  // A restart reads the same files as a reload.
  const needed = once.filter(
    (one) => one.kind !== "reload" || !once.some((other) => other.kind === "restart" && other.unit === one.unit),
  );
  return needed.toSorted((a, b) => rank[a.kind] - rank[b.kind]);
}

/** Whether a change of registries.conf requires a drain. */
export type RegistriesDrain = { readonly verdict: "safe" } | { readonly verdict: "drain"; readonly why: string };

/**
 * Decides whether image names of running pods may resolve differently: then the machine must be drained before the
 * container runtime reads the file again. `undefined`: the file is absent, which counts as empty.
 * Source of the rule: openshift/machine-config-operator pkg/daemon/drain.go (main).
 */
export function registriesDrain(before: string | undefined, after: string | undefined): RegistriesDrain {
  const old = parseRegistriesConf(before ?? "");
  const next = parseRegistriesConf(after ?? "");
  const drain = (why: string): RegistriesDrain => ({ verdict: "drain", why });
  if (old === undefined || next === undefined) return drain("registries.conf cannot be read");
  if (old.unqualifiedSearch.some((registry, i) => next.unqualifiedSearch[i] !== registry))
    return drain("the search order of short image names changes");
  for (const [scope] of old.registries)
    if (!next.registries.has(scope)) return drain(`the registry ${scope} is taken away`);
  for (const [scope, registry] of next.registries) {
    const known = old.registries.get(scope);
    if (known === undefined) {
      const byDigest =
        registry.mirrors.length === 0
          ? registry.mirrorByDigestOnly
          : registry.mirrors.every(({ pullFromMirror }) => pullFromMirror === "digest-only");
      if (!byDigest) return drain(`the registry ${scope} is new and not for digests only`);
      continue;
    }
    for (const field of ["prefix", "location"] as const)
      if (known[field] !== registry[field]) return drain(`the registry ${scope} changes its ${field}`);
    if (known.blocked !== registry.blocked)
      return drain(`the registry ${scope} is ${registry.blocked ? "blocked" : "no longer blocked"}`);
    if (known.insecure !== registry.insecure)
      return drain(`the registry ${scope} is ${registry.insecure ? "insecure" : "no longer insecure"}`);
    const mirrors = new Set(registry.mirrors.map(({ location }) => location));
    const lost = known.mirrors.find(({ location }) => !mirrors.has(location));
    if (lost !== undefined) return drain(`the registry ${scope} loses its mirror ${lost.location}`);
    // Of two with one location, the first counts.
    const knownMirrors = new Map(known.mirrors.toReversed().map((mirror) => [mirror.location, mirror]));
    for (const mirror of registry.mirrors) {
      const earlier = knownMirrors.get(mirror.location);
      if (earlier === undefined && mirror.pullFromMirror !== "digest-only" && !registry.mirrorByDigestOnly)
        return drain(`the registry ${scope} gets the mirror ${mirror.location}, which is not for digests only`);
      if (
        earlier !== undefined &&
        earlier.pullFromMirror !== mirror.pullFromMirror &&
        mirror.pullFromMirror !== "digest-only"
      )
        return drain(`the mirror ${mirror.location} is no longer for digests only`);
    }
  }
  return { verdict: "safe" };
}
