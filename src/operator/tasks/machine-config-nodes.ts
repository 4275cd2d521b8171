import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { fieldManagers, notYetSet } from "../../api/names.ts";
import { isOfNode } from "../../core/config/given-configs.ts";
import { unlessNotFound } from "../../kube/kube-error.ts";
import { type OperatorTask, type TaskContext, taskDone } from "../operator-task.ts";
import { watchMachines, watchPools } from "../operator-watches.ts";

interface View {
  /** Nodes that have no MachineConfigNode, and the pool of those that are in one. */
  readonly without: readonly { readonly name: string; readonly uid: string; readonly pool: string | undefined }[];
  /** Those whose nodes are gone, or have been followed by others of the same name. */
  readonly orphans: readonly MachineConfigNode[];
}

type Step =
  | { readonly do: "create"; readonly name: string; readonly uid: string; readonly pool: string }
  | { readonly do: "delete"; readonly orphan: MachineConfigNode };

/**
 * One MachineConfigNode for each node, from its registration on; they are removed with their nodes by owner reference.
 */
export const machineConfigNodes: OperatorTask<View, readonly Step[]> = {
  name: "MachineConfigNodes",
  watches: [watchPools, watchMachines],

  observe: ({ memory: { cluster } }) => ({
    without: [...cluster.withoutMachineConfigNode].flatMap((name) => {
      const known = cluster.node(name);
      if (known === undefined) return [];
      const { membership, node } = known;
      return [
        { name, uid: node.metadata.uid ?? "", pool: membership.verdict === "member" ? membership.pool : undefined },
      ];
    }),
    orphans: cluster.machineConfigNodesWithoutNode(),
  }),

  decide: ({ without, orphans }) => [
    ...without.flatMap(({ name, uid, pool }) =>
      pool === undefined ? [] : [{ do: "create", name, uid, pool } as const],
    ),
    ...orphans.map((orphan) => ({ do: "delete", orphan }) as const),
  ],

  async perform(steps, context) {
    for (const step of steps) await performStep(step, context);
    return taskDone;
  },
};

/** Caches may be late: each step is checked against the API server before it is taken. */
async function performStep(step: Step, { kube, signal }: TaskContext): Promise<void> {
  switch (step.do) {
    case "create": {
      const { name, uid, pool } = step;
      if ((await kube.get(MachineConfigNode, { name }, { signal })) !== undefined) return;
      await kube.create(
        MachineConfigNode,
        {
          apiVersion: MachineConfigNode.apiVersion,
          kind: MachineConfigNode.kind,
          metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }] },
          spec: { node: { name }, pool: { name: pool }, configVersion: { desired: notYetSet } },
        },
        { owner: fieldManagers.operator, signal },
      );
      return;
    }
    case "delete": {
      const { name, uid } = step.orphan.metadata;
      const node = await kube.get(kubernetes.Node, { name }, { signal });
      if (node !== undefined && isOfNode(step.orphan, node.metadata.uid)) return;
      await unlessNotFound(kube.delete(MachineConfigNode, { name }, { signal, ...(uid === undefined ? {} : { uid }) }));
      return;
    }
  }
}
