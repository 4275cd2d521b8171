import type { DaemonSet, Deployment } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import type { ComponentFacts } from "./pool-queries.ts";

const isOf = ({ metadata }: KubeObject, version: string) =>
  metadata.annotations?.[annotations.releaseImageVersion] === version;

/** Copies of a component that a Deployment keeps. `undefined`: it is not there. */
export function deploymentFacts(deployment: Deployment | undefined, version: string): ComponentFacts | undefined {
  if (deployment === undefined) return undefined;
  const { metadata, spec, status } = deployment;
  return {
    name: metadata.name,
    wanted: spec?.replicas ?? 1,
    ofThisVersion: isOf(deployment, version) ? (status?.updatedReplicas ?? 0) : 0,
    available: status?.availableReplicas ?? 0,
    observed: status?.observedGeneration !== undefined && status.observedGeneration === metadata.generation,
  };
}

/** Copies of a component that a DaemonSet keeps, one for each machine. `undefined`: it is not there. */
export function daemonSetFacts(daemonSet: DaemonSet | undefined, version: string): ComponentFacts | undefined {
  if (daemonSet === undefined) return undefined;
  const { metadata, status } = daemonSet;
  return {
    name: metadata.name,
    wanted: status?.desiredNumberScheduled ?? 0,
    ofThisVersion: isOf(daemonSet, version) ? (status?.updatedNumberScheduled ?? 0) : 0,
    available: status?.numberReady ?? 0,
    observed: status?.observedGeneration !== undefined && status.observedGeneration === metadata.generation,
  };
}
