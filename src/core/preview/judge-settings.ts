import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { Problem } from "../../ignition/problem.ts";
import { kubeletTlsOf } from "../certificates/tls-profile.ts";
import type { FieldProblem } from "../kubelet/decode-go.ts";
import type { PoolFiles } from "../kubelet/decide-generated.ts";
import { decodeKubeletConfig } from "../kubelet/kubelet-config.ts";
import { kubeletFilesOf } from "../kubelet/decide-kubelet-config.ts";
import { kubeletBase } from "../kubelet/kubelet-base.ts";
import { selectPools } from "../kubelet/select-pools.ts";
import { type BaseRole, kubeletDefaults } from "../render/base-configs.ts";
import { ownStorageConf } from "../runtime/base-texts.ts";
import { containerRuntimes, runtimeFiles } from "../runtime/container-runtime-config.ts";

/** An address that any kubelet takes; the cluster's own is no matter of the object. */
const someDns = "172.30.0.10";

/**
 * The problems of a KubeletConfig by itself: errors are those for which a kubelet would not start on the base
 * configuration of this suite. A cluster's own base may bring more, which the object's conditions tell.
 */
export function problemsOfKubeletConfig(object: Pick<KubeletConfig, "spec">): readonly Problem[] {
  const own = decodeKubeletConfig(object);
  const filesOn = (role: BaseRole): PoolFiles => {
    const base = kubeletBase({
      text: JSON.stringify(kubeletDefaults(role, someDns)),
      tls: kubeletTlsOf(undefined),
      gates: {},
      latencyProfile: undefined,
      pool: role,
    });
    return kubeletFilesOf(object, base, { pool: role, selected: [], own });
  };
  // What only one of the roles refuses depends on the pool.
  const onWorkers = filesOn("worker");
  const result = onWorkers.verdict === "refused" ? filesOn("master") : onWorkers;
  return [...problemsOfFiles(result), ...problemsOfSelector(object.spec)];
}

/** The problems of a ContainerRuntimeConfig by itself. */
export function problemsOfRuntimeConfig(object: Pick<ContainerRuntimeConfig, "spec">): readonly Problem[] {
  // Whether the additional stores count is a gate of the cluster.
  const result = runtimeFiles(object, { storage: ownStorageConf, hasStores: true });
  return [...problemsOfFiles(result), ...problemsOfRuntime(object.spec), ...problemsOfSelector(object.spec)];
}

/** Which runtimes an OS image has depends on its release; a plan reads the image, the object alone cannot. */
function problemsOfRuntime({ containerRuntimeConfig }: Partial<ContainerRuntimeConfig["spec"]>): readonly Problem[] {
  const chosen = containerRuntimeConfig?.defaultRuntime ?? "";
  if (!containerRuntimes.includes(chosen)) return [];
  return [
    {
      severity: "warning",
      path: "spec.containerRuntimeConfig.defaultRuntime",
      reason: `starts containers by ${chosen} only: on an OS image without it, also that of a later release, none starts`,
      remedy: "compare it with the OS images of its pools by mco plan -f, or leave the choice to the image",
    },
  ];
}

const problemsOfFiles = (result: PoolFiles): readonly Problem[] =>
  result.verdict === "refused"
    ? result.problems.map(asError)
    : result.withoutEffect.map(({ path, reason, remedy }) => ({ severity: "warning", path, reason, remedy }));

const asError = (problem: FieldProblem): Problem => ({ severity: "error", ...problem });

/** A wrong selector is refused; one that selects nothing yet may do so later. */
function problemsOfSelector({
  machineConfigPoolSelector: selector,
}: Pick<KubeletConfig["spec"], "machineConfigPoolSelector">): readonly Problem[] {
  const selection = selectPools(selector, []);
  if (selection.verdict === "selected") return [];
  const { path, reason } = selection.problem;
  if (path.includes("matchExpressions")) return [{ severity: "error", path, reason }];
  const isEmpty = Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions ?? []).length === 0;
  return isEmpty ? [{ severity: "warning", path, reason }] : [];
}
