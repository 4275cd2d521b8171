import { kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { ContainerRuntimeConfig } from "../api/kinds/container-runtime-config.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { clusterSettingsKinds, objectsOfCluster } from "../core/kubelet/cluster-settings.ts";
import { trimMachineConfig, trimNode } from "../core/pool/trim.ts";
import type { ClusterObjects } from "../core/preview/plan-cluster.ts";
import { imageConfigName, releaseImageOf } from "../core/runtime/registry-objects.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { WatchCache } from "../kube/watch-cache.ts";
import type { Ports } from "../ports/index.ts";
import type { Logger } from "../ports/logger.ts";
import type { ParentThread } from "../ports/threads.ts";
import { answerReview } from "./admission-handler.ts";
import type { PlannerMessage, ReviewMessage } from "./plan-queue.ts";

type PlannerPorts = Pick<Ports, "clock" | "random" | "log">;

/** Watches the inputs of a plan. @returns the cluster, once everything is read. */
function clusterFacts(
  kube: KubeClient,
  { clock, random, log }: PlannerPorts,
  signal: AbortSignal,
): () => ClusterObjects | undefined {
  const ports = { kube, clock, random, log };
  const running: Promise<void>[] = [];
  const watch = <T extends KubeObject>(
    resource: Resource<T>,
    how: Pick<ConstructorParameters<typeof WatchCache<T>>[0], "keep" | "optional" | "selection"> = {},
  ): WatchCache<T> => {
    const cache = new WatchCache<T>({ ...ports, resource, ...how });
    running.push(cache.synced);
    void cache.run(signal);
    return cache;
  };
  const pools = watch(MachineConfigPool);
  const machineConfigs = watch(MachineConfig, { keep: trimMachineConfig });
  const machineConfigurations = watch(MachineConfiguration);
  const controllerConfigs = watch(ControllerConfig);
  const nodes = watch(kubernetes.Node, { keep: trimNode });
  const machineOSConfigs = watch(MachineOSConfig);
  const buildConfigs = watch(kubernetes.ConfigMap, {
    selection: { namespace, fieldSelector: `metadata.name=${objects.buildConfig}` },
  });
  const osImageStreams = watch(OSImageStream, { optional: true });
  const kubeletConfigs = watch(KubeletConfig);
  const containerRuntimeConfigs = watch(ContainerRuntimeConfig);
  const credentials = watch(openshift.CRIOCredentialProviderConfig, { optional: true });
  const images = watch(openshift.Image, { optional: true });
  const digestMirrorSets = watch(openshift.ImageDigestMirrorSet, { optional: true });
  const contentSourcePolicies = watch(openshift.ImageContentSourcePolicy, { optional: true });
  const tagMirrorSets = watch(openshift.ImageTagMirrorSet, { optional: true });
  const clusterImagePolicies = watch(openshift.ClusterImagePolicy, { optional: true });
  const imagePolicies = watch(openshift.ImagePolicy, { optional: true });
  const ofCluster = new Map(
    clusterSettingsKinds.map((resource) => [resource.kind, watch(resource, { optional: true })] as const),
  );
  const remaining = <T extends KubeObject>(list: readonly T[]) =>
    list.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const read = { everything: false };
  void Promise.all(running).then(() => (read.everything = true));
  return () =>
    read.everything
      ? {
          pools: pools.list(),
          machineConfigs: remaining(machineConfigs.list()),
          machineConfiguration: machineConfigurations.get(objects.machineConfiguration),
          controllerConfig: controllerConfigs.get(objects.controllerConfig),
          nodes: nodes.list(),
          machineOSConfigs: machineOSConfigs.list(),
          buildConfig: buildConfigs.get(`${namespace}/${objects.buildConfig}`)?.data,
          now: clock.now(),
          osImageStream: osImageStreams.get(objects.clusterSingleton),
          settings: {
            kubeletConfigs: remaining(kubeletConfigs.list()),
            containerRuntimeConfigs: remaining(containerRuntimeConfigs.list()),
            credentials: credentials.get(objects.clusterSingleton),
            cluster: objectsOfCluster(
              <T extends KubeObject>({ kind }: Resource<T>, name: string) =>
                ofCluster.get(kind)?.get(name) as T | undefined,
            ),
          },
          registries: {
            image: images.get(imageConfigName),
            digestMirrorSets: remaining(digestMirrorSets.list()),
            contentSourcePolicies: remaining(contentSourcePolicies.list()),
            tagMirrorSets: remaining(tagMirrorSets.list()),
            clusterImagePolicies: remaining(clusterImagePolicies.list()),
            imagePolicies: remaining(imagePolicies.list()),
            releaseImage: releaseImageOf(ofCluster.get(openshift.ClusterVersion.kind)?.list() ?? []),
          },
        }
      : undefined;
}

/** The cluster with its MachineConfigs as they are stored now; without them if they cannot be read: nothing is refused. */
async function currentMembers(
  kube: KubeClient,
  facts: () => ClusterObjects | undefined,
  log: Logger,
  signal: AbortSignal,
): Promise<ClusterObjects | undefined> {
  try {
    const { items } = await kube.list(MachineConfig, {}, { signal, keep: trimMachineConfig });
    const before = facts();
    const machineConfigs = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return before === undefined ? undefined : { ...before, machineConfigs };
  } catch (error) {
    log.warn({ error }, "the MachineConfigs could not be read for a review");
    return undefined;
  }
}

/**
 * Judges and plans reviews, in its own thread. Verdicts need no cluster: the planner gives them from the start, and
 * adds a plan once it has read the cluster.
 *
 * @param kube absent: answers carry no plan, and nothing is watched.
 */
export function runAdmissionPlanner(
  parent: ParentThread,
  kube: KubeClient | undefined,
  ports: PlannerPorts,
  signal: AbortSignal,
): void {
  const facts = kube === undefined ? undefined : clusterFacts(kube, ports, signal);
  const log = ports.log.child({ controller: "admission" });
  const answer = async (body: ReviewMessage["body"]) => {
    let isStale = false;
    const onRefusedTogether = () => (isStale = true);
    const response = answerReview(body, { log, onRefusedTogether, ...(facts === undefined ? {} : { facts }) });
    if (!isStale || kube === undefined || facts === undefined) return response;
    // The object that stands in the way may have changed a moment ago, in the same `kubectl apply`.
    const current = await currentMembers(kube, facts, log, signal);
    return answerReview(body, { log, facts: () => current });
  };
  parent.listen((message) => {
    const { id, body } = message as ReviewMessage;
    void answer(body).then((response) => parent.send({ is: "answer", id, response } satisfies PlannerMessage));
  });
  parent.send({ is: "ready" } satisfies PlannerMessage);
}
