import { constants, accessSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { McoError } from "../api/errors.ts";

/** The version of Kubernetes whose programs are used; `hack/control-plane/go.mod` names the same. */
export const kubernetesVersion = "v1.34.4";

export const kubernetesPrograms = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubectl",
] as const;

/** Where `hack/kubernetes build` puts the programs, outside of every source tree. */
export function kubernetesFolder(environment: Readonly<Record<string, string | undefined>>): string {
  const named = environment["MCO_KUBERNETES_BINARIES"];
  if (named !== undefined && named !== "") return named;
  const cache = environment["XDG_CACHE_HOME"];
  return join(
    cache === undefined || cache === "" ? join(homedir(), ".cache") : cache,
    "machine-config-operator",
    `kubernetes-${kubernetesVersion}-${process.platform}-${process.arch}`,
  );
}

/** Names of programs that a folder lacks. */
export function missingPrograms(folder: string): readonly string[] {
  return kubernetesPrograms.filter((name) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return false;
    } catch {
      return true;
    }
  });
}

/**
 * The folder with Kubernetes' own programs.
 *
 * @throws McoError `MCO_KUBERNETES_ABSENT` when one is missing.
 */
export function kubernetesBinaries(environment: Readonly<Record<string, string | undefined>>): string {
  const folder = kubernetesFolder(environment);
  const missing = missingPrograms(folder);
  if (missing.length > 0)
    throw new McoError("MCO_KUBERNETES_ABSENT", { folder, missing: missing.join(", "), version: kubernetesVersion });
  return folder;
}
