import type { FieldProblem } from "./decode-go.ts";

/** Pools whose machines get the cluster's cgroup mode; custom pools have it from `worker`. */
const withArguments: ReadonlySet<string> = new Set(["master", "worker", "arbiter"]);

export type CgroupArguments =
  | { readonly verdict: "arguments"; readonly kernelArguments: readonly string[] }
  | { readonly verdict: "refused"; readonly problem: FieldProblem };

/** The kernel arguments of a pool for `spec.cgroupMode` of the config Node `cluster`: cgroup v2 is the only mode. */
export function cgroupArguments(mode: string | undefined, pool: string): CgroupArguments {
  if (!withArguments.has(pool)) return { verdict: "arguments", kernelArguments: [] };
  if (mode !== undefined && mode !== "" && mode !== "v2")
    return {
      verdict: "refused",
      problem: { path: "spec.cgroupMode", reason: "must be v2 or empty: this kubelet runs on cgroup v2 only" },
    };
  return { verdict: "arguments", kernelArguments: ["systemd.unified_cgroup_hierarchy=1", 'cgroup_no_v1="all"'] };
}
