import {
  ClusterOperator,
  ContainerRuntimeConfig,
  ControllerConfig,
  JoinPlace,
  KubeletConfig,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineOSBuild,
  MachineOSConfig,
  MachineStateBook,
  MachineStateChapter,
  MachineStateJournal,
  OSImageStream,
  PinnedImageSet,
  ProvisioningToken,
  definedResources,
  kubernetes,
} from "../../api/index.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { InternalReleaseImage } from "../../api/kinds/internal-release-image.ts";
import { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { NodeBinding } from "../../api/kinds/node-binding.ts";
import { journals, namespace, objects } from "../../api/names.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { type Facts, etcdPods, factsOf } from "../../core/pool/pool-queries.ts";
import {
  explainControllerConfig,
  explainMachineConfiguration,
  explainSettingsObject,
} from "../../core/operator/explain-settings.ts";
import type { BuildRowObjects } from "../../core/build/build-rows.ts";
import { configNodeWords, explainClusterSetting } from "../../core/preview/explain-cluster-settings.ts";
import { explainCredentials } from "../../core/preview/explain-credentials.ts";
import { explainBook, explainChapter, explainJournal } from "../../core/preview/explain-books.ts";
import { explainMachineOSBuild, explainMachineOSConfig } from "../../core/preview/explain-image-kinds.ts";
import { explainInternalReleaseImage } from "../../core/preview/explain-internal-release-image.ts";
import {
  explainJoinPlace,
  explainNodeBinding,
  explainProvisioningToken,
} from "../../core/preview/explain-joining-kinds.ts";
import { explainOSImageStream } from "../../core/preview/explain-os-image-stream.ts";
import { explainPinnedImageSet } from "../../core/preview/explain-pinned-images.ts";
import { explainClusterOperator, explainMachineConfig, explainNode, explainPool } from "../../core/preview/explain.ts";
import { explainRegistryObject } from "../../core/preview/explain-registries.ts";
import { type Explanation, explanationText } from "../../core/preview/explanation.ts";
import type { ReadChapter } from "../../core/books/book-text.ts";
import { joinedNode, judgeJoins, servedMachines } from "../../core/books/judge-joins.ts";
import { type Past, noPast, pastOf } from "../../core/books/past.ts";
import { readBook } from "../../core/books/read-book.ts";
import { type ConfigRetention, retentionOf } from "../../core/pool/retained-configs.ts";
import type { KubeClient, Selection } from "../../kube/kube-client.ts";
import { isForbidden, isNotFound } from "../../kube/kube-error.ts";
import type { Clock } from "../../ports/clock.ts";
import { systemClock } from "../../ports/node/index.ts";
import { didYouMean, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { listOf, settingsInCluster } from "../cluster-objects.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Io, processIo } from "../io.ts";
import { readPast, readStoredBooks } from "../read-stored-books.ts";
import { registryKinds } from "../../core/runtime/registry-objects.ts";
import { readRegistryObjects } from "../registry-objects.ts";

/** Kinds with an explanation that rests on more than their own object, with every name of them. */
const kinds = {
  pool: ["pool", ...wordsOf(MachineConfigPool)],
  node: ["node", "no", "nodes", ...wordsOf(MachineConfigNode), "mcn"],
  clusteroperator: wordsOf(ClusterOperator),
  mc: wordsOf(MachineConfig),
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Every other kind that is installed, and how an object of it is explained. */
const objectKinds = [
  objectKind(MachineOSConfig, (config, { images, facts }) => explainMachineOSConfig(config, images, facts.now)),
  objectKind(MachineOSBuild, (build, { images, facts }) => explainMachineOSBuild(build, images, facts.now)),
  objectKind(ControllerConfig, (config, { facts }) => explainControllerConfig(config, facts.now)),
  objectKind(KubeletConfig, (config, { facts }) => explainSettingsObject(config, facts.now)),
  objectKind(ContainerRuntimeConfig, (config, { facts }) => explainSettingsObject(config, facts.now)),
  objectKind(PinnedImageSet, (set, { facts }) => explainPinnedImageSet(set, facts)),
  objectKind(OSImageStream, (stream, { facts }) => explainOSImageStream(stream, facts)),
  objectKind(MachineConfiguration, (configuration, { facts }) => explainMachineConfiguration(configuration, facts)),
  objectKind(ProvisioningToken, (token, { facts }) => explainProvisioningToken(token, facts)),
  objectKind(JoinPlace, (place, { facts }) => explainJoinPlace(place, facts)),
  objectKind(NodeBinding, (binding, { facts }) => explainNodeBinding(binding, facts)),
  objectKind(MachineStateBook, (book, { facts }) => explainBook(book, facts.now)),
  objectKind(MachineStateChapter, (chapter, { facts }) => explainChapter(chapter, facts.now)),
  objectKind(MachineStateJournal, (journal, { facts }) => explainJournal(journal, facts.now)),
  objectKind(openshift.CRIOCredentialProviderConfig, (config, { facts }) => explainCredentials(config, facts.now)),
  ...[openshift.FeatureGate, openshift.APIServer].map((resource) => settingKind(resource, foreignWords(resource))),
  settingKind(openshift.ConfigNode, configNodeWords),
  internalReleaseImageKind(),
  ...registryKinds.map((resource) => registryKind(resource)),
] as const;
type ObjectKind = (typeof objectKinds)[number];

/** The names of a kind that `kubectl` takes. */
function wordsOf({ singular, plural, crd }: (typeof definedResources)[number]): readonly string[] {
  const { shortNames = [] } = crd().spec["names"] as { readonly shortNames?: readonly string[] };
  return [singular, plural, ...shortNames];
}

/** The names of a kind of others. */
function foreignWords({ kind, plural }: Resource): readonly string[] {
  return [kind.toLowerCase(), plural];
}

/** How one kind is read and explained. */
function objectKind<T extends KubeObject>(
  resource: Resource<T>,
  explainObject: (object: T, known: Known) => Explanation,
): {
  readonly resource: Resource<T>;
  readonly words: readonly string[];
  /** `undefined`: there is no such object. */
  read(kube: KubeClient, name: string): Promise<((known: Known) => Explanation) | undefined>;
} {
  return {
    resource,
    words: definedResources.some(({ kind }) => kind === resource.kind)
      ? definedResources.flatMap((one) => (one.kind === resource.kind ? wordsOf(one) : []))
      : foreignWords(resource),
    async read(kube, name) {
      const object = await kube.get(resource, { name });
      return object === undefined ? undefined : (known) => explainObject(object, known);
    },
  };
}

/** How an object about registries is read and explained: all of its kind and of the related ones decide together. */
function registryKind(resource: Resource): ReturnType<typeof objectKind> {
  return {
    resource,
    words: foreignWords(resource),
    async read(kube, name) {
      const [own = "", namespace] = name.split("/").toReversed();
      const object = await kube.get(resource, { name: own, ...(namespace === undefined ? {} : { namespace }) });
      if (object === undefined) return undefined;
      const [objects_, pools, machineConfigs, controllerConfig] = await Promise.all([
        readRegistryObjects(kube),
        kube.list(MachineConfigPool),
        kube.list(MachineConfig),
        kube.get(ControllerConfig, { name: objects.controllerConfig }),
      ]);
      const around = { pools: pools.items, machineConfigs: machineConfigs.items, controllerConfig };
      return ({ facts }) => explainRegistryObject(object, objects_, around, facts.now);
    },
  };
}

/** How an object of the cluster that every kubelet follows is read and explained. */
function settingKind(resource: Resource, words: readonly string[]): ReturnType<typeof objectKind> {
  return {
    resource,
    words,
    async read(kube, name) {
      const object = await kube.get(resource, { name });
      if (object === undefined) return undefined;
      const [{ cluster }, pools, machineConfigs] = await Promise.all([
        settingsInCluster(kube),
        kube.list(MachineConfigPool),
        kube.list(MachineConfig),
      ]);
      const around = { pools: pools.items, machineConfigs: machineConfigs.items };
      const same = [cluster.featureGate, cluster.configNode, cluster.apiServer].find(
        (one) => one?.kind === object.kind && one.metadata.uid === object.metadata.uid,
      );
      return ({ facts }) => explainClusterSetting(same ?? object, cluster, around, facts.now);
    },
  };
}

/** How a bundle of releases is read and explained: by what the cluster runs. */
function internalReleaseImageKind(): ReturnType<typeof objectKind> {
  const resource = InternalReleaseImage;
  return {
    resource,
    words: wordsOf(resource),
    async read(kube, name) {
      const object = await kube.get(resource, { name });
      if (object === undefined) return undefined;
      const [version] = await listOf(kube, openshift.ClusterVersion);
      return ({ facts }) => explainInternalReleaseImage(object, version, facts.now);
    },
  };
}

export interface ExplainSubject {
  readonly kind: keyof typeof kinds | ObjectKind;
  readonly name: string;
}

const forms = `pool/NAME, node/NAME, mc/NAME, clusteroperator/${objects.clusterOperator}, or the kind and name of any other object of the suite, of a mirror set, an image policy (imagepolicy/NAMESPACE/NAME), image/cluster, criocredentialproviderconfig/cluster, internalreleaseimage/cluster, featuregate/cluster, apiserver/cluster or nodes.config/cluster`;
/** The only object of a kind, which needs no name. */
const onlyNames = new Map<string, string>([
  ...kinds.clusteroperator.map((word) => [word, objects.clusterOperator] as const),
  ...wordsOf(MachineConfiguration).map((word) => [word, objects.machineConfiguration] as const),
  ...foreignWords(openshift.CRIOCredentialProviderConfig).map((word) => [word, objects.clusterSingleton] as const),
]);

/** `pool/worker` → what it is about; a usage error for anything that cannot be explained. */
export function subjectOf(text: string): ExplainSubject {
  const only = onlyNames.get(text.toLowerCase());
  const [first = "", name = "", ...more] = only === undefined ? text.split("/") : [text, only];
  const word = first.toLowerCase();
  const kind = kindNamed(word);
  const isNamespaced = kind !== undefined && typeof kind !== "string" && kind.resource.namespaced;
  if (kind === undefined || name === "" || more.length !== (isNamespaced ? 1 : 0))
    throw usageError(
      `"${text}" is nothing that can be explained${kind === undefined ? didYouMean(word, allWords()) : ""}: write ${forms}`,
    );
  return { kind, name: [name, ...more].join("/") };
}

/** The kind of a word, which may have the kind's group behind it, or the beginning of that, as `kubectl` prints and takes it. */
function kindNamed(word: string): keyof typeof kinds | ObjectKind | undefined {
  const known =
    (Object.keys(kinds) as (keyof typeof kinds)[]).find((each) => kinds[each].includes(word)) ??
    objectKinds.find(({ words }) => words.includes(word));
  const dot = word.indexOf(".");
  if (known !== undefined || dot === -1) return known;
  const [name, group] = [word.slice(0, dot), word.slice(dot + 1)];
  const hasGroup = (resource: Resource) => `${resource.group}.`.startsWith(`${group}.`);
  return (
    grouped.find(({ resource }) => wordsOf(resource).includes(name) && hasGroup(resource))?.kind ??
    objectKinds.find(({ words, resource }) => words.includes(name) && hasGroup(resource))
  );
}

/** The kinds of {@link kinds} that have a group. */
const grouped = [
  { kind: "pool", resource: MachineConfigPool },
  { kind: "node", resource: MachineConfigNode },
  { kind: "clusteroperator", resource: ClusterOperator },
  { kind: "mc", resource: MachineConfig },
] as const;

/** Every word that names a kind. */
const allWords = (): readonly string[] => [
  ...Object.values(kinds).flat(),
  ...objectKinds.flatMap(({ words }) => words),
];

/** `pool worker`, as kubectl takes it, is `pool/worker`. */
function inPairs(words: readonly string[]): readonly string[] {
  const [first, second] = words;
  const isPair = words.length === 2 && first !== undefined && second !== undefined && !second.includes("/");
  return isPair && kindNamed(first.toLowerCase()) !== undefined && !onlyNames.has(first.toLowerCase())
    ? [`${first}/${second}`]
    : words;
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.explain, { positionals: true });
  if (positionals.length === 0) throw usageError(`say what to explain: ${forms}`);
  const subjects = inPairs(positionals).map(subjectOf);
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory: values.dir, component: "explain" });
  try {
    return await explainSubjects(kube, processIo(), subjects, { json: values.json });
  } finally {
    close();
  }
}

/** Prints the state of each subject. @returns the exit code. */
export async function explainSubjects(
  kube: KubeClient,
  io: Io,
  subjects: readonly ExplainSubject[],
  { json = false, clock = systemClock }: { readonly json?: boolean; readonly clock?: Pick<Clock, "now"> },
): Promise<number> {
  const known = await readCluster(kube, clock.now());
  const explanations: Explanation[] = [];
  let missing = false;
  for (const subject of subjects) {
    const explanation = await explain(kube, known, subject);
    if (explanation !== undefined) explanations.push(explanation);
    else {
      missing = true;
      io.err(`mco explain: there is no ${titleOf(subject)} "${subject.name}"${nearest(known.facts, subject)}\n`);
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
  readonly binding: NodeBinding | undefined;
}

async function readBefore(
  kube: KubeClient,
  facts: Facts,
  { kind, name }: Pick<ExplainSubject, "kind" | "name">,
): Promise<Before> {
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
    const joins = judgeJoins(served, nodes, facts.now);
    const overdue = joins.filter(({ is }) => is === "overdue");
    const booted = joins.filter(({ ignition }) => ignition !== undefined);
    return {
      ...pastOf(
        pool,
        updates.map(({ spec }) => spec),
        readBook(own, `pool/${pool}`, facts.now).chapters,
      ),
      ...(overdue.length === 0 ? {} : { overdue }),
      ...(booted.length === 0 ? {} : { booted }),
    };
  };
  const chaptersOfNode = async () =>
    membership === undefined
      ? []
      : readBook(await readStoredBooks(kube, `node/${name}`), `node/${name}`, facts.now).chapters;
  const [past, chapters, binding] = await Promise.all([pastOfPool(), chaptersOfNode(), readBinding(kube, name)]);
  return { past, chapters, binding };
}

/** A user who may not read what names are bound to is explained the rest. */
async function readBinding(kube: KubeClient, name: string): Promise<NodeBinding | undefined> {
  try {
    return await kube.get(NodeBinding, { name });
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return undefined;
    throw error;
  }
}

/** @returns `undefined`: there is no such object. */
async function explain(kube: KubeClient, known: Known, subject: ExplainSubject): Promise<Explanation | undefined> {
  const { facts, operators, retention } = known;
  const { kind, name } = subject;
  switch (kind) {
    case "pool":
      return explainPool(facts, name, (await readBefore(kube, facts, subject)).past);
    case "node":
      return explainNode(facts, name, await readBefore(kube, facts, subject));
    case "mc":
      return explainMachineConfig(facts, name, retention(name));
    case "clusteroperator": {
      const operator = operators.find(({ metadata }) => metadata.name === name);
      return operator === undefined ? undefined : explainClusterOperator(facts, operator);
    }
    default: {
      try {
        return (await kind.read(kube, name))?.(known);
      } catch (error) {
        // The kind is not installed, and so no object of it.
        if (isNotFound(error)) return undefined;
        throw error;
      }
    }
  }
}

const titleOf = ({ kind }: ExplainSubject) => (typeof kind === "string" ? kind : kind.resource.kind);

/** What there is instead. */
function nearest(facts: Facts, { kind }: ExplainSubject): string {
  const names = kind === "pool" ? facts.members.pools().map(({ metadata }) => metadata.name) : [];
  return names.length === 0 ? "" : `; there are ${names.sort().join(", ")}`;
}

/** The objects read from a cluster. */
interface Known {
  readonly facts: Facts;
  readonly images: BuildRowObjects;
  readonly operators: readonly ClusterOperator[];
  /** Why a rendered config is kept. */
  readonly retention: (config: string) => ConfigRetention | undefined;
}

/** Kinds that a reader of pools and machines need not be allowed to read. */
const mayBeForbidden: ReadonlySet<string> = new Set(["Pod", "MachineConfiguration", "ControllerConfig"]);

/** Everything that explanations rest on. @param now milliseconds since the epoch. */
export async function readCluster(kube: KubeClient, now: number = systemClock.now()): Promise<Known> {
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
    controllerConfigs,
    ...membersOfEtcd
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
    list(ControllerConfig),
    ...etcdPods.map(({ namespace: where, labelSelector }) => pods(where, labelSelector)),
  ]);
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
        etcdPods: membersOfEtcd.flat(),
        controllerConfig: controllerConfigs.find(({ metadata }) => metadata.name === objects.controllerConfig),
      },
      now,
    ),
    images: { pools, configs: machineOSConfigs, builds: machineOSBuilds },
    operators,
    retention,
  };
}
