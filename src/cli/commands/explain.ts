import {
  ClusterOperator,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineOSBuild,
  MachineOSConfig,
  kubernetes,
} from "../../api/index.ts";
import { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { journals, namespace, objects } from "../../api/names.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { type Facts, factsOf } from "../../core/pool/pool-queries.ts";
import {
  type Explanation,
  explainClusterOperator,
  explainMachineConfig,
  explainNode,
  explainPool,
  explanationText,
} from "../../core/preview/explain.ts";
import type { ReadChapter } from "../../core/books/book-text.ts";
import { joinedNode, judgeJoins, servedMachines } from "../../core/books/judge-joins.ts";
import { type Past, noPast, pastOf } from "../../core/books/past.ts";
import { readBook } from "../../core/books/read-book.ts";
import { type Retention, retentionOf } from "../../core/pool/retained-configs.ts";
import type { KubeClient, Selection } from "../../kube/kube-client.ts";
import { isForbidden, isNotFound } from "../../kube/kube-error.ts";
import { systemClock } from "../../ports/node/index.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Io, processIo } from "../io.ts";
import { readPast, readStoredBooks } from "../read-stored-books.ts";

/** Every word that a kind may be asked by → how its objects are explained. */
const kinds = {
  pool: ["pool", "mcp", "machineconfigpool", "machineconfigpools"],
  node: ["node", "no", "nodes", "machineconfignode", "mcn"],
  clusteroperator: ["clusteroperator", "co", "clusteroperators"],
  mc: ["mc", "machineconfig", "machineconfigs"],
} as const;
type Kind = keyof typeof kinds;

interface Subject {
  readonly kind: Kind;
  readonly name: string;
}

/** `pool/worker` → what it is about; a usage error for anything that cannot be explained. */
export function subjectOf(text: string): Subject {
  const [word = "", name = "", ...more] =
    text.toLowerCase() === "clusteroperator" || text.toLowerCase() === "co"
      ? [text, objects.clusterOperator]
      : text.split("/");
  const kind = (Object.keys(kinds) as Kind[]).find((each) =>
    (kinds[each] as readonly string[]).includes(word.toLowerCase()),
  );
  if (kind === undefined || name === "" || more.length > 0)
    throw usageError(
      `"${text}" is nothing that can be explained: write pool/NAME, node/NAME, mc/NAME or clusteroperator/${objects.clusterOperator}`,
    );
  return { kind, name };
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    args,
    { dir: { type: "string" }, kubeconfig: { type: "string" }, json: { type: "boolean" } },
    { positionals: true },
  );
  if (positionals.length === 0)
    throw usageError(
      `say what to explain: pool/NAME, node/NAME, mc/NAME or clusteroperator/${objects.clusterOperator}`,
    );
  const subjects = positionals.map(subjectOf);
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory: values.dir, component: "explain" });
  try {
    return await explainSubjects(kube, processIo(), subjects, { json: values.json === true });
  } finally {
    close();
  }
}

/** Prints what is going on with each subject. @returns the exit code. */
export async function explainSubjects(
  kube: KubeClient,
  io: Io,
  subjects: readonly Subject[],
  { json = false }: { readonly json?: boolean },
): Promise<number> {
  const { facts, operators, retention } = await readCluster(kube);
  const explanations: Explanation[] = [];
  let missing = false;
  for (const subject of subjects) {
    const explanation = explain({ facts, operators, retention }, subject, await readBefore(kube, facts, subject));
    if (explanation !== undefined) explanations.push(explanation);
    else {
      missing = true;
      io.err(`mco explain: there is no ${subject.kind} "${subject.name}"${nearest(facts, subject)}\n`);
    }
  }
  if (json) io.out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Explanation", explanations })}\n`);
  else io.out(explanations.map(explanationText).join("\n"));
  return missing ? exitCodes.failed : exitCodes.ok;
}

/** The past, from chapters and journals; nothing if there are neither. */
interface Before {
  readonly past: Past;
  readonly chapters: readonly ReadChapter[];
}

async function readBefore(kube: KubeClient, facts: Facts, { kind, name }: Subject): Promise<Before> {
  const membership = kind === "node" ? facts.members.node(name)?.membership : undefined;
  const pool =
    kind === "pool" && facts.members.pool(name) !== undefined
      ? name
      : membership?.verdict === "member"
        ? membership.pool
        : undefined;
  const pastOfPool = async (): Promise<Past> => {
    if (pool === undefined) return noPast;
    const machines = [...facts.members.members(pool).all()].map((member) => member.name).sort();
    const { own, updates } = await readPast(kube, pool, machines);
    const nodes = machines
      .flatMap((machine) => facts.members.node(machine)?.node ?? [])
      .map((node) => joinedNode(node, pool));
    const served = servedMachines(
      own.journals.filter(({ metadata }) => metadata.name === journals.server).flatMap(({ spec }) => spec.lines),
    ).filter((machine) => machine.pool === pool);
    const overdue = judgeJoins(served, nodes, facts.now).filter(({ is }) => is === "overdue");
    return {
      ...pastOf(
        pool,
        updates.map(({ spec }) => spec),
        readBook(own, `pool/${pool}`, facts.now).chapters,
      ),
      ...(overdue.length === 0 ? {} : { overdue }),
    };
  };
  const chaptersOfNode = async () =>
    membership === undefined
      ? []
      : readBook(await readStoredBooks(kube, `node/${name}`), `node/${name}`, facts.now).chapters;
  const [past, chapters] = await Promise.all([pastOfPool(), chaptersOfNode()]);
  return { past, chapters };
}

function explain(
  { facts, operators, retention }: Known,
  { kind, name }: Subject,
  before: Before,
): Explanation | undefined {
  switch (kind) {
    case "pool":
      return explainPool(facts, name, before.past);
    case "node":
      return explainNode(facts, name, before);
    case "mc":
      return explainMachineConfig(facts, name, retention(name));
    case "clusteroperator": {
      const operator = operators.find(({ metadata }) => metadata.name === name);
      return operator === undefined ? undefined : explainClusterOperator(facts, operator);
    }
  }
}

/** What there is instead. */
function nearest(facts: Facts, { kind }: Subject): string {
  const names = kind === "pool" ? facts.members.pools().map(({ metadata }) => metadata.name) : [];
  return names.length === 0 ? "" : `; there are ${names.sort().join(", ")}`;
}

/** What was read of a cluster. */
interface Known {
  readonly facts: Facts;
  readonly operators: readonly ClusterOperator[];
  /** Why a rendered config is kept. */
  readonly retention: (config: string) => Retention | undefined;
}

/** Kinds that a reader of pools and machines need not be allowed to read. */
const mayBeForbidden: ReadonlySet<string> = new Set(["Pod", "MachineConfiguration"]);

/** Everything that explanations rest on. */
export async function readCluster(kube: KubeClient): Promise<Known> {
  // A kind that is not installed, or that the user may not read, contributes nothing; the explanation uses the others.
  const list = async <T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection = {},
  ): Promise<readonly T[]> => {
    try {
      return (await kube.list(resource, selection)).items;
    } catch (error) {
      if (isNotFound(error) || (mayBeForbidden.has(resource.kind) && isForbidden(error))) return [];
      throw error;
    }
  };
  const pods = (inNamespace: string, labelSelector: string) =>
    list(kubernetes.Pod, { namespace: inNamespace, labelSelector });
  const [
    pools,
    nodes,
    machineConfigNodes,
    machineConfigs,
    machineConfigurations,
    machineOSConfigs,
    machineOSBuilds,
    operators,
    daemonPods,
    operatorPods,
    ...etcdPods
  ] = await Promise.all([
    list(MachineConfigPool),
    list(kubernetes.Node),
    list(MachineConfigNode),
    list(MachineConfig),
    list(MachineConfiguration),
    list(MachineOSConfig),
    list(MachineOSBuild),
    list(ClusterOperator),
    pods(namespace, `k8s-app=${objects.daemon}`),
    pods(namespace, `k8s-app=${objects.operator}`),
    pods("openshift-etcd", "app=etcd"),
    pods("kube-system", "component=etcd"),
  ]);
  const now = systemClock.now();
  const retention = (config: string) => retentionOf(config, { pools, nodes, machineConfigNodes, machineConfigs }, now);
  return {
    facts: factsOf(
      {
        pools,
        nodes,
        machineConfigNodes,
        machineConfigs,
        machineConfiguration: machineConfigurations.find(
          ({ metadata }) => metadata.name === objects.machineConfiguration,
        ),
        machineOSConfigs,
        machineOSBuilds,
        daemonPods,
        operatorPods,
        etcdPods: etcdPods.flat(),
      },
      now,
    ),
    operators,
    retention,
  };
}
