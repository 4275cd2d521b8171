import type { Problem } from "../../ignition/problem.ts";
import { nearestOf } from "../text/nearest.ts";
import { type PolicyAction, type UserPolicies, takesAbsentUnit } from "./disruption-policy.ts";
import { type FilledPlaces, bringsUnit, masks } from "./node-config.ts";
import { readUnitName } from "./unit-name.ts";

/** Services that node OSes commonly ship. For others, an administrator gets a warning that the OS may make needless. */
const ofEveryOs: ReadonlySet<string> = new Set(
  [
    "NetworkManager auditd chronyd containerd crio dbus-broker dnsmasq docker firewalld getty gssproxy ipsec irqbalance",
    "iscsid kdump kubelet logrotate multipathd nftables nmstate openvswitch ostree-remount ovs-vswitchd ovsdb-server",
    "podman polkit rpc-statd rpcbind rpm-ostreed rsyslog selinux-autorelabel sshd sssd systemd-journald systemd-logind",
    "systemd-modules-load systemd-networkd systemd-resolved systemd-sysctl systemd-sysusers systemd-timesyncd",
    "systemd-tmpfiles-setup systemd-udevd systemd-update-done tuned udisks2 usbguard zincati",
    "machine-config-daemon machine-config-daemon-firstboot iri-registry",
  ].flatMap((line) => line.split(" ").map((name) => `${name}.service`)),
);

/** Why systemd cannot restart or reload a service of a disruption policy, for certain or probably. */
export interface ServiceProblem {
  readonly service: string;
  readonly reason: string;
  readonly remedy: string;
}

/**
 * What is wrong with a service that a disruption policy acts on, on machines that have one of these configurations.
 * `undefined`: one of them brings it, or the OS is known to.
 *
 * @param where the configurations, in words: `pool worker`
 */
export function problemOfService(
  service: string,
  configs: readonly FilledPlaces[],
  where: string,
): ServiceProblem | undefined {
  const read = readUnitName(service);
  if (read === undefined)
    return {
      service,
      reason: `${service} is no name of a unit`,
      remedy: "write the name with its suffix, such as .service",
    };
  if (read.kind === "template")
    return {
      service,
      reason: `${service} is a template, which systemd neither restarts nor reloads`,
      remedy: `name an instance of it, such as ${read.prefix}@a.${read.type}`,
    };
  if (configs.some((config) => bringsUnit(config, service))) return undefined;
  if (configs.length > 0 && configs.every((config) => masks(config, service)))
    return {
      service,
      reason: `${where} masks ${service}, and systemd neither restarts nor reloads a masked unit`,
      remedy: "take away the mask, or the action",
    };
  if (ofEveryOs.has(service) || takesAbsentUnit(service)) return undefined;
  const meant = nearestOf(service, unitsKnown(configs));
  return {
    service,
    reason: `no MachineConfig of ${where} brings ${service}: unless the OS image does, the action fails and the machine is degraded`,
    remedy:
      meant === undefined
        ? "correct the name, bring the unit by a MachineConfig, or take away the action"
        : `did you mean ${meant}?`,
  };
}

/** Units that the machines may have: those of the configurations, and of every OS. */
function* unitsKnown(configs: readonly FilledPlaces[]): Generator<string> {
  for (const { entries } of configs)
    for (const { origin } of entries.values()) if (origin.kind === "unit") yield origin.name;
  yield* ofEveryOs;
}

/** The service that an action reloads or restarts, with the field that names it. */
function serviceOf(action: PolicyAction): readonly [field: string, service: string] | undefined {
  if (action.restart !== undefined) return ["restart.serviceName", action.restart.serviceName];
  return action.reload === undefined ? undefined : ["reload.serviceName", action.reload.serviceName];
}

/** Services of an administrator's disruption policies that machines probably do not have, by the fields that name them. */
export function problemsOfServices(
  policies: UserPolicies | undefined,
  configs: readonly FilledPlaces[],
  where: string,
): readonly (Problem & ServiceProblem)[] {
  const lists = [
    ...(policies?.files ?? []).map(({ actions }, index) => [`files[${index}]`, actions] as const),
    ...(policies?.units ?? []).map(({ actions }, index) => [`units[${index}]`, actions] as const),
    ...(policies?.sshkey === undefined ? [] : [["sshkey", policies.sshkey.actions] as const]),
  ];
  return lists.flatMap(([list, actions]) =>
    actions.flatMap((action, index): readonly (Problem & ServiceProblem)[] => {
      const named = serviceOf(action);
      const problem = named === undefined ? undefined : problemOfService(named[1], configs, where);
      if (named === undefined || problem === undefined) return [];
      return [
        { severity: "warning", path: `spec.nodeDisruptionPolicy.${list}.actions[${index}].${named[0]}`, ...problem },
      ];
    }),
  );
}
