import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { Decoded, FieldProblem } from "./decode-go.ts";

const controlPlane = new Set(["master", "arbiter"]);

/**
 * Why a KubeletConfig may not set a field, whatever its value is to a kubelet: the cluster or the OS owns the setting.
 * Source of the list: openshift/machine-config-operator pkg/controller/kubelet-config/helpers.go (main).
 *
 * @param own its `kubeletConfig`, decoded.
 * @param pools names of the pools that it selects.
 */
export function forbiddenFields(
  { spec }: Pick<KubeletConfig, "spec">,
  own: Decoded,
  pools: readonly string[],
): readonly FieldProblem[] {
  const raw = (spec.kubeletConfig ?? {}) as Decoded;
  const path = (name: string) => `spec.kubeletConfig.${name}`;
  const owned = (name: string, owner: string): readonly FieldProblem[] =>
    isEmpty(own[name]) ? [] : [{ path: path(name), reason: `must not be set: ${owner}` }];
  const swap = (own["memorySwap"] as Decoded | undefined)?.["swapBehavior"];
  const [cgroup, system] = [own["systemReservedCgroup"], own["systemCgroups"]];
  const staticPods = raw["staticPodPath"];
  const masters = pools.filter((pool) => controlPlane.has(pool));
  return [
    ...owned("cgroupDriver", "the container runtime and the kubelet must agree on it"),
    ...owned("clusterDNS", "the cluster's own DNS decides it"),
    ...owned("clusterDomain", "the cluster's own DNS decides it"),
    ...owned("featureGates", "the FeatureGate cluster decides it"),
    ...(own["failSwapOn"] === undefined
      ? []
      : [{ path: path("failSwapOn"), reason: "must not be set: the role of the pool decides it" }]),
    ...(isEmpty(swap) ? [] : [{ path: path("memorySwap.swapBehavior"), reason: "must not be set: pods may not swap" }]),
    ...(staticPods !== undefined && masters.length > 0
      ? [
          {
            path: path("staticPodPath"),
            reason: `must not be set for ${masters.join(" and ")}: its own pods lie there`,
          },
        ]
      : !isEmpty(own["staticPodPath"])
        ? [{ path: path("staticPodPath"), reason: 'must be absent or "", which keeps the base\'s' }]
        : []),
    ...(!isEmpty(cgroup) && !isEmpty(system) && cgroup !== system
      ? [{ path: path("systemReservedCgroup"), reason: `must equal systemCgroups, ${String(system)}` }]
      : []),
    ...(spec.autoSizingReserved === true && !isEmpty(own["systemReserved"])
      ? [{ path: "spec.autoSizingReserved", reason: "must not be true together with kubeletConfig.systemReserved" }]
      : []),
    ...(spec.logLevel !== undefined && (spec.logLevel < 0 || spec.logLevel > 10)
      ? [{ path: "spec.logLevel", reason: "must be between 0 and 10" }]
      : []),
  ];
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === "" ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0);
