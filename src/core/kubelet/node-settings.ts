import type { Taint } from "../../api/foreign/kubernetes.ts";
import { nano, parseQuantity } from "../../api/schema/quantities.ts";
import { lenientKubernetesYaml } from "../text/kubernetes-yaml.ts";
import { judgeKubeletConfiguration } from "./validate-kubelet.ts";
import { kubeletSettings } from "./kubelet-settings.ts";
import { own } from "../../api/schema/own.ts";

/** Amounts of a node's resources by name, as Kubernetes writes quantities. */
export type Resources = Readonly<Record<string, string>>;

/** What a kubelet's configuration says about its Node. */
export interface NodeSettings {
  readonly maxPods: number;
  /** Taints that the Node is registered with. */
  readonly taints: readonly Taint[];
  /** What pods may not use: reservations and the thresholds of hard evictions, summed up when a capacity is known. */
  readonly withheld: readonly Resources[];
}

/** Which resource a signal of an eviction is about. */
const resourceOf: Readonly<Record<string, string>> = {
  "memory.available": "memory",
  "nodefs.available": "ephemeral-storage",
};

/**
 * What a kubelet.conf says about its Node.
 *
 * @param sizing text of the file that has the reservations for the system, where the machine has one; where it leaves them to
 * the machine, those of kubelet.conf count. @returns `undefined`: a kubelet would not start with it.
 */
export function nodeSettings(text: string, sizing = ""): NodeSettings | undefined {
  const read = lenientKubernetesYaml(text);
  if (read === undefined) return undefined;
  const { problems, decoded } = judgeKubeletConfiguration(read.value);
  if (problems.length > 0) return undefined;
  const settings = kubeletSettings(decoded);
  const evictions = Object.entries(settings.map("evictionHard")).flatMap(([signal, threshold]) => {
    const resource = own(resourceOf, signal);
    return resource === undefined ? [] : [[resource, threshold] as const];
  });
  return {
    maxPods: settings.numberOrDefault("maxPods", 110),
    taints: settings.list<Taint>("registerWithTaints") ?? [],
    withheld: [
      { ...settings.map("systemReserved"), ...reservationsIn(sizing) },
      settings.map("kubeReserved"),
      Object.fromEntries(evictions),
    ],
  };
}

/** Names of variables in the file, by resource: openshift/machine-config-operator templates/common/_base (main). */
const variables = {
  memory: "SYSTEM_RESERVED_MEMORY",
  cpu: "SYSTEM_RESERVED_CPU",
  "ephemeral-storage": "SYSTEM_RESERVED_ES",
} as const;

function reservationsIn(sizing: string): Resources {
  const values = new Map([...sizing.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]));
  if (values.get("NODE_SIZING_ENABLED") !== "false") return {};
  return Object.fromEntries(
    Object.entries(variables).flatMap(([resource, name]) => {
      const value = values.get(name) ?? "";
      return value === "" ? [] : [[resource, value]];
    }),
  );
}

/** What pods may use of a capacity: k8s.io/kubernetes pkg/kubelet/cm/node_container_manager_linux.go (v1.34). */
export function allocatableOf(capacity: Resources, { withheld }: Pick<NodeSettings, "withheld">): Resources {
  return Object.fromEntries(
    Object.entries(capacity).map(([name, whole]) => {
      const all = parseQuantity(whole) ?? 0n;
      const taken = withheld.map((amounts) => amountOf(amounts[name], all)).reduce((sum, each) => sum + each, 0n);
      return [name, taken === 0n ? whole : textOf(name, taken > all ? 0n : all - taken)];
    }),
  );
}

/** A quantity, or a percentage of the whole, in billionths. */
function amountOf(text: string | undefined, all: bigint): bigint {
  if (text === undefined) return 0n;
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent === undefined) return parseQuantity(text) ?? 0n;
  return (all * BigInt(Math.round(Number(percent) * 100))) / 10_000n;
}

const textOf = (name: string, billionths: bigint): string =>
  name === "cpu" ? `${billionths / (nano / 1000n)}m` : `${billionths / nano / 1024n}Ki`;
