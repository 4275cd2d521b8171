import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { Decoded, FieldProblem } from "./decode-go.ts";
import { hasMembers } from "./map-items.ts";

const controlPlane = new Set(["master", "arbiter"]);

/**
 * Why a KubeletConfig may not set a field, whatever its value is to a kubelet: the cluster or the OS owns the setting.
 * Source of the list: openshift/machine-config-operator pkg/controller/kubelet-config/helpers.go (main).
 *
 * @param read its `kubeletConfig`, decoded.
 * @param pools names of the pools that it selects.
 */
export function forbiddenFields(
  { spec }: Pick<KubeletConfig, "spec">,
  read: { readonly value: Decoded; readonly hasGates: boolean },
  pools: readonly string[],
): readonly FieldProblem[] {
  const { value: own, hasGates } = read;
  const raw = (spec.kubeletConfig ?? {}) as Decoded;
  const path = (name: string) => `spec.kubeletConfig.${name}`;
  const owned = (name: string, owner: string): readonly FieldProblem[] =>
    isEmptyValue(own[name]) ? [] : [{ path: path(name), reason: `must not be set: ${owner}` }];
  const swap = (own["memorySwap"] as Decoded | undefined)?.["swapBehavior"];
  const [cgroup, system] = [own["systemReservedCgroup"], own["systemCgroups"]];
  const staticPods = raw["staticPodPath"];
  const masters = pools.filter((pool) => controlPlane.has(pool));
  return [
    ...owned("cgroupDriver", "the container runtime and the kubelet must agree on it"),
    ...owned("clusterDNS", "the cluster's own DNS decides it"),
    ...owned("clusterDomain", "the cluster's own DNS decides it"),
    ...(!hasGates
      ? []
      : [{ path: path("featureGates"), reason: "must not be set: the FeatureGate cluster decides it" }]),
    ...(own["failSwapOn"] === undefined
      ? []
      : [{ path: path("failSwapOn"), reason: "must not be set: the role of the pool decides it" }]),
    ...(isEmptyValue(swap)
      ? []
      : [{ path: path("memorySwap.swapBehavior"), reason: "must not be set: pods may not swap" }]),
    ...(staticPods !== undefined && masters.length > 0
      ? [
          {
            path: path("staticPodPath"),
            reason: `must not be set for ${masters.join(" and ")}: its own pods lie there`,
          },
        ]
      : !isEmptyValue(own["staticPodPath"])
        ? [{ path: path("staticPodPath"), reason: 'must be absent or "", which keeps the base\'s' }]
        : []),
    ...(!isEmptyValue(cgroup) && !isEmptyValue(system) && cgroup !== system
      ? [{ path: path("systemReservedCgroup"), reason: `must equal systemCgroups, ${String(system)}` }]
      : []),
    ...(spec.autoSizingReserved === true && !isEmptyValue(own["systemReserved"])
      ? [{ path: "spec.autoSizingReserved", reason: "must not be true together with kubeletConfig.systemReserved" }]
      : []),
    ...(spec.logLevel !== undefined && (spec.logLevel < 0 || spec.logLevel > 10)
      ? [{ path: "spec.logLevel", reason: "must be between 0 and 10" }]
      : []),
  ];
}

/** Whether a field of a KubeletConfig says nothing. */
export const isEmptyValue = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === "" ||
  (Array.isArray(value) ? value.length === 0 : typeof value === "object" && !hasMembers(value));
