import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { fieldManagers } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { builtInPools } from "../manifests.ts";
import { type OperatorTask, type TaskContext, taskDone } from "../operator-task.ts";
import { watchPools } from "../operator-watches.ts";

interface BuiltInPool {
  readonly manifest: KubeObject;
  readonly existing: MachineConfigPool | undefined;
}

type Step =
  | { readonly do: "create"; readonly manifest: KubeObject }
  | { readonly do: "label"; readonly name: string; readonly labels: Readonly<Record<string, string>> };

/** The pools that every cluster has, and their labels: everything else of them belongs to the administrator. */
export const machineConfigPools: OperatorTask<readonly BuiltInPool[], readonly Step[]> = {
  name: "MachineConfigPools",
  watches: [watchPools],

  observe: ({ caches }) =>
    builtInPools().map((manifest) => ({
      manifest,
      existing: caches.of(MachineConfigPool).get(manifest.metadata.name),
    })),

  decide: (pools) =>
    pools.flatMap(({ manifest, existing }): readonly Step[] => {
      if (existing === undefined) return [{ do: "create", manifest }];
      const missing = Object.entries(manifest.metadata.labels ?? {}).filter(
        ([key, value]) => existing.metadata.labels?.[key] !== value,
      );
      return missing.length === 0
        ? []
        : [{ do: "label", name: manifest.metadata.name, labels: Object.fromEntries(missing) }];
    }),

  async perform(steps, context) {
    for (const step of steps) await performStep(step, context);
    return taskDone;
  },
};

async function performStep(step: Step, { kube, signal }: TaskContext): Promise<void> {
  const owner = fieldManagers.operator;
  switch (step.do) {
    case "create": {
      const { name } = step.manifest.metadata;
      // Created, not applied: its spec belongs to the administrator from now on. The cache may be late.
      if ((await kube.get(MachineConfigPool, { name }, { signal })) === undefined)
        await kube.create(MachineConfigPool, step.manifest as MachineConfigPool, { owner, signal });
      return;
    }
    case "label":
      await kube.patch(
        MachineConfigPool,
        { name: step.name },
        { type: "merge", body: { metadata: { labels: step.labels } } },
        { owner, signal },
      );
      return;
  }
}
