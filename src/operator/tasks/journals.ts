import { MachineStateJournal } from "../../api/books/machine-state-journal.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { fieldManagers, journals as names, namespace } from "../../api/names.ts";
import { type KubeObject, type OwnerReference, longestObjectName } from "../../api/schema/object.ts";
import { metadataListType, pathOf } from "../../kube/kube-client.ts";
import { isAlreadyExists } from "../../kube/kube-error.ts";
import { reapplyMs } from "../apply-manifest.ts";
import { ownNamespaceObject } from "../cluster-sources.ts";
import { type OperatorTask, type TaskContext, taskDone } from "../operator-task.ts";
import { watchMachines, watchNamespace, watchPools } from "../operator-watches.ts";

interface View {
  /** Names of the journals that exist. */
  readonly known: ReadonlySet<string>;
  /** Of the suite's namespace. */
  readonly namespaceUid: string | undefined;
  /** Nodes that may have no journal, and the uid of those that are in a pool. */
  readonly nodes: readonly { readonly name: string; readonly uid: string | undefined }[];
}

interface Decision {
  readonly create: readonly { readonly name: string; readonly owners: readonly OwnerReference[] }[];
  /** Nodes that were checked; one that no pool selected has no journal yet. */
  readonly nodes: readonly { readonly name: string; readonly isMember: boolean }[];
}

/**
 * A journal for each component, and one for each node that has a MachineConfigNode; the latter are removed with their
 * nodes by owner reference. Their lines are not read: a cluster's journals are large.
 */
export const journalsTask: OperatorTask<View, Decision> = {
  name: "Journals",
  watches: [watchNamespace, watchPools, watchMachines],

  async observe(context) {
    const { caches, memory } = context;
    await listAgain(context);
    return {
      known: memory.journals.known,
      namespaceUid: caches.of(kubernetes.Namespace, ownNamespaceObject).get(namespace)?.metadata.uid,
      nodes: [...memory.journals.wanted].map((name) => {
        const known = memory.cluster.node(name);
        return { name, uid: known?.membership.verdict === "member" ? (known.node.metadata.uid ?? "") : undefined };
      }),
    };
  },

  decide({ known, namespaceUid: uid, nodes }) {
    const ofNamespace = uid === undefined ? [] : [{ apiVersion: "v1", kind: "Namespace", name: namespace, uid }];
    const wanted = [
      ...[names.operator, names.controller, names.server, names.osBuilder].map((name) => ({
        name,
        owners: ofNamespace,
      })),
      ...nodes.flatMap((node) =>
        node.uid === undefined
          ? []
          : [
              {
                name: `${names.nodePrefix}${node.name}`,
                owners: [{ apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid }],
              },
            ],
      ),
    ];
    return {
      // A node's name may be as long as an object's: its book goes without what its own machine reports.
      create: wanted.filter(({ name }) => name.length <= longestObjectName && !known.has(name)),
      nodes: nodes.map(({ name, uid: ofNode }) => ({ name, isMember: ofNode !== undefined })),
    };
  },

  async perform({ create, nodes }, context) {
    const { memory } = context;
    for (const { name, owners } of create) {
      await createJournal(name, owners, context);
      memory.journals.known.add(name);
    }
    // A node that a pool selects later is checked then, or with the next list.
    for (const { name, isMember } of nodes)
      if (isMember || memory.cluster.node(name)?.membership.verdict !== "member") memory.journals.wanted.delete(name);
    return taskDone;
  },
};

/** Lists the journals' names now and then; nodes of pools may have lost theirs since the last list. */
async function listAgain({ kube, clock, signal, memory: { cluster, journals: seen } }: TaskContext): Promise<void> {
  if (seen.listedAt !== undefined && clock.monotonic() - seen.listedAt < reapplyMs) return;
  const { items } = (await kube.request(
    { method: "GET", target: pathOf(MachineStateJournal, {}), headers: { accept: metadataListType } },
    { signal },
  )) as { readonly items: readonly Pick<KubeObject, "metadata">[] | null };
  seen.known.clear();
  // Kubernetes writes null for an empty list.
  for (const { metadata } of items ?? []) seen.known.add(metadata.name);
  seen.listedAt = clock.monotonic();
  for (const { metadata } of cluster.pools())
    for (const { name } of cluster.members(metadata.name).all()) seen.wanted.add(name);
}

async function createJournal(
  name: string,
  owners: readonly OwnerReference[],
  { kube, signal }: TaskContext,
): Promise<void> {
  const { apiVersion, kind } = MachineStateJournal;
  try {
    await kube.create(
      MachineStateJournal,
      { apiVersion, kind, metadata: { name, ownerReferences: [...owners] }, spec: { lines: [], last: [] } },
      { owner: fieldManagers.operator, signal },
    );
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
