import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import { asRead } from "./as-read.ts";
import { type PoolFiles, type SettingsDecision, type SettingsView, decideSettings } from "./decide-generated.ts";
import type { FieldProblem } from "./decode-go.ts";
import type { BaseReading } from "./kubelet-base.ts";
import { type ReadKubeletConfig, decodeKubeletConfig, kubeletFiles } from "./kubelet-config.ts";
import { kubeletConfiguration } from "./kubelet-fields.ts";
import { gateProblem } from "./kubelet-settings.ts";
import { problemsOfRead } from "./validate-kubelet.ts";

/** Everything that decides what a KubeletConfig makes. */
export interface KubeletConfigView extends Omit<SettingsView<KubeletConfig>, "kind" | "filesOf" | "decides"> {
  /** What every generated kubelet.conf of a pool begins with. */
  baseOf(pool: string): BaseReading;
}

/** What to do about a KubeletConfig. */
export const decideKubeletConfig = (view: KubeletConfigView): SettingsDecision =>
  decideSettings({
    ...view,
    kind: "kubelet",
    decides: "kubelet.conf",
    filesOf: (pool, selected) => kubeletFilesOf(view.object, view.baseOf(pool), { pool, selected }),
  });

/**
 * What a KubeletConfig writes in one pool, if a kubelet would start with it.
 *
 * @param own the object's settings, where the caller has decoded them already.
 */
export function kubeletFilesOf(
  object: Pick<KubeletConfig, "spec">,
  base: BaseReading,
  {
    pool,
    selected,
    own = decodeKubeletConfig(object),
  }: { readonly pool: string; readonly selected: readonly string[]; readonly own?: ReadKubeletConfig },
): PoolFiles {
  if (base.verdict === "refused")
    return { verdict: "refused", problems: [{ path: `pool ${pool}`, reason: base.reason }] };
  const made = kubeletFiles(object, base.config, selected, base.path, own);
  if (made.verdict === "refused") return { ...made, problems: [...made.problems, ...own.ofLists] };
  const { featureGates, ...config } = made.config;
  // The gates are the cluster's own. A kubelet that is built for it knows more of them than the upstream one.
  const known = Object.entries((featureGates ?? {}) as Readonly<Record<string, boolean>>).filter(
    ([name, isOn]) => gateProblem(name, isOn) === undefined,
  );
  const problems = problemsOfRead(asRead({ ...config, featureGates: Object.fromEntries(known) }, kubeletConfiguration));
  if (problems.length + own.ofLists.length > 0)
    return { verdict: "refused", problems: [...problems.map(inObject), ...own.ofLists] };
  return { verdict: "files", files: made.files, withoutEffect: made.withoutEffect };
}

/** A rule of the kubelet about the merged file, said of the object that changed it. */
const inObject = (problem: FieldProblem): FieldProblem => ({ ...problem, path: `spec.kubeletConfig.${problem.path}` });
