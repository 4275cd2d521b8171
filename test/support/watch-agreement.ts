import {
  ClusterOperator,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  MachineOSBuild,
  MachineOSConfig,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { readStoredBooks } from "../../src/cli/read-stored-books.ts";
import { readBook } from "../../src/core/books/read-book.ts";
import type { KubeClient, Selection } from "../../src/kube/kube-client.ts";
import { isNotFound } from "../../src/kube/kube-error.ts";
import { type AgreementSnapshot, AgreementWatch, contradictionsIn, describeDisagreement, rules } from "./agreement.ts";
import { snapshotOf } from "./agreement-snapshot.ts";

/** Between two samples of a real cluster, in milliseconds. */
const everyMs = 5000;
/**
 * How long a cluster may take at the end of a scenario until everything in it says the same: books alone wait for 15 seconds
 * without a late line, and a shared machine takes several times as long as a calm one.
 */
const endMs = 300_000;

/** Everything that users see of a cluster, by one read; `undefined`: the suite is not installed yet. */
export async function readAgreement(kube: KubeClient): Promise<AgreementSnapshot | undefined> {
  const list = async <T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection = {},
  ): Promise<readonly T[]> => {
    try {
      return (await kube.list(resource, selection)).items;
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  };
  const [pools, nodes, machineConfigNodes, machineConfigs, configurations, operators, configs, builds, pods, stored] =
    await Promise.all([
      list(MachineConfigPool),
      list(kubernetes.Node),
      list(MachineConfigNode),
      list(MachineConfig),
      list(MachineConfiguration),
      list(ClusterOperator),
      list(MachineOSConfig),
      list(MachineOSBuild),
      list(kubernetes.Pod, { namespace: names.namespace, labelSelector: `k8s-app=${names.objects.daemon}` }),
      readStoredBooks(kube),
    ]);
  const clusterOperator = operators.find(({ metadata }) => metadata.name === names.objects.clusterOperator);
  if (clusterOperator === undefined) return undefined;
  const now = Date.now();
  const books = [
    ...pools.map(({ metadata }) => `pool/${metadata.name}`),
    ...nodes.map(({ metadata }) => `node/${metadata.name}`),
  ];
  const snapshot = snapshotOf({
    now,
    pools,
    nodes,
    machineConfigNodes,
    machineConfigs,
    machineConfiguration: configurations.find(({ metadata }) => metadata.name === names.objects.machineConfiguration),
    machineOSConfigs: configs,
    machineOSBuilds: builds,
    daemonPods: pods,
    chapters: new Map(books.map((book) => [book, readBook(stored, book, now).chapters])),
    clusterOperator,
  });
  return snapshot;
}

/** Compares everything that users see of a scenario's cluster, every few seconds and at its end. */
export class ClusterAgreement {
  readonly watch = new AgreementWatch();
  readonly #kube: KubeClient;
  readonly #found: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sampling: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(kube: KubeClient) {
    this.#kube = kube;
    this.#again();
  }

  #again(): void {
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      this.#sampling = this.#sample().finally(() => this.#again());
    }, everyMs);
    this.#timer.unref();
  }

  /** @returns what contradicts each other now; `undefined`: the cluster could not be read. */
  async #sample(): Promise<readonly string[] | undefined> {
    try {
      const snapshot = await readAgreement(this.#kube);
      if (snapshot === undefined) return [];
      this.#found.push(...this.watch.sample(snapshot).map(describeDisagreement));
      return contradictionsIn(snapshot).map(
        ({ rule, subject, one, other }) =>
          `${rule}: ${subject}: ${rules[rule].pair[0]} (${one}), ${rules[rule].pair[1]} (${other})`,
      );
    } catch {
      // Some scenarios kill the API server: what cannot be read contradicts nothing.
      return undefined;
    }
  }

  /** Ends the comparison. @returns what disagreed for too long, and what still does, as sentences. */
  async end(): Promise<readonly string[]> {
    this.stop();
    await this.#sampling;
    const until = performance.now() + endMs;
    for (;;) {
      const left = await this.#sample();
      if (left?.length === 0 || performance.now() > until)
        return [...this.#found, ...(left ?? ["the cluster could not be read at the end"])];
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}
