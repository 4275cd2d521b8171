import { McoError } from "../../api/errors.ts";
import { isDnsName } from "../../api/schema/schema.ts";
import type { Files } from "../../ports/files.ts";
import { readClusterFile } from "./read-cluster-file.ts";

/** Paths and process names of a one-machine cluster. */
export interface Layout {
  readonly directory: string;
  readonly kubeconfig: string;
  readonly record: string;
  /** A random text that the register of the user has as well: it makes a folder another one than each copy. */
  readonly identity: string;
  readonly store: string;
  readonly pki: string;
  /** PEM: authorities that pods trust, as ConfigMap `kube-root-ca.crt`. */
  readonly trustedAuthorities: string;
  readonly bundle: string;
  readonly logs: string;
  readonly osImages: string;
  /** The contents of the cluster's registry, if it has one. */
  readonly registry: string;
  /** Inputs, results and journal of the bootstrap. */
  readonly bootstrap: string;
  /** The folders of all hosts. */
  readonly hosts: string;
  host(name: string): string;
}

export function layoutOf(directory: string): Layout {
  return {
    directory,
    kubeconfig: `${directory}/kubeconfig`,
    record: `${directory}/cluster.json`,
    identity: `${directory}/folder-id`,
    store: `${directory}/store.db`,
    pki: `${directory}/pki`,
    trustedAuthorities: `${directory}/pki/ca.crt`,
    bundle: `${directory}/bin/mco.mjs`,
    logs: `${directory}/logs`,
    osImages: `${directory}/os`,
    registry: `${directory}/registry`,
    bootstrap: `${directory}/bootstrap`,
    hosts: `${directory}/hosts`,
    host: (name) => `${directory}/hosts/${name}`,
  };
}

/** Each cluster has a /24 of the loopback range to itself, so that well-known ports never clash. */
export interface Addresses {
  /** `127.a.b`. */
  readonly network: string;
  readonly apiServer: string;
  readonly registry: string;
  readonly configServer: string;
  /** The bootstrap server, before there is a config server. */
  readonly bootstrap: string;
  host(index: number): string;
}

export const ports = {
  apiServer: 6443,
  registry: 5000,
  registryProcess: 5001,
  configServer: 22623,
  kubelet: 10250,
} as const;

export function addressesOf(network: string): Addresses {
  return {
    network,
    apiServer: `${network}.1`,
    registry: `${network}.2`,
    configServer: `${network}.3`,
    bootstrap: `${network}.4`,
    host: (index) => `${network}.${10 + index}`,
  };
}

/** The n-th choice of network for a directory: spread by a hash, never 127.0.x, where other programs live. */
export function networkFor(directory: string, attempt: number): string {
  let hash = 2166136261;
  for (const character of `${directory}#${attempt}`) hash = Math.imul(hash ^ character.charCodeAt(0), 16777619) >>> 0;
  return `127.${1 + (hash % 254)}.${(hash >>> 8) % 256}`;
}

/** Our own API server and controllers, or Kubernetes' own programs. */
export type ApiServerKind = "embedded" | "kubernetes";

/** The content of `cluster.json`: enough to find and end the cluster, and no secrets. */
export interface ClusterRecord {
  readonly v: 1;
  readonly version: string;
  /** The API server program; absent in records of 0.1.0, which had only the embedded server. */
  readonly apiServer?: ApiServerKind;
  readonly network: string;
  /** The cluster has its own registry, and its machines boot the stock OS from there. */
  readonly registry?: true;
  /**
   * `running`: the machines of the control plane do not all have their first configuration yet, or the bootstrap's
   * journal is not in the cluster; absent: the cluster was not bootstrapped.
   */
  readonly bootstrap?: "running" | "done";
  /** No image is unpacked with set-user-ID files; absent in records of releases that did so. */
  readonly withoutSetId?: true;
  /** The supervisor; `startTime` distinguishes it from another process that reuses its id. */
  readonly supervisor: { readonly pid: number; readonly startTime: string };
  readonly processes: readonly { readonly name: string; readonly pid: number; readonly startTime: string }[];
  readonly hosts: readonly HostRecord[];
  /** What the last start put back of the user's changes, each as a sentence; absent: nothing. */
  readonly notices?: readonly string[];
}

/** Bytes of a record: each machine takes some hundred. */
const mostRecordBytes = 4 * 1024 * 1024;

/**
 * The record of a folder, whether its cluster runs or not.
 *
 * @throws McoError `MCO_CLUSTER_FILE_UNREADABLE`
 */
export async function readRecord(
  files: Pick<Files, "readFrom" | "stat">,
  layout: Layout,
): Promise<ClusterRecord | undefined> {
  const text = await readClusterFile(files, layout.record, mostRecordBytes);
  if (text === undefined) return undefined;
  const record = recordIn(text);
  if (record === undefined)
    throw new McoError("MCO_CLUSTER_FILE_UNREADABLE", { path: layout.record, problem: "it is no record of a cluster" });
  return record;
}

/** The text may be another file's, so that nothing quotes it. */
function recordIn(text: string): ClusterRecord | undefined {
  try {
    const record = JSON.parse(text) as ClusterRecord;
    const { network, supervisor, processes, hosts }: Partial<ClusterRecord> = record;
    const isRecord =
      typeof network === "string" &&
      /^127\.\d{1,3}\.\d{1,3}$/.test(network) &&
      isProcess(supervisor) &&
      Array.isArray(processes) &&
      processes.every(isProcess) &&
      Array.isArray(hosts) &&
      hosts.every(isHost);
    return isRecord ? record : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Signals go to it: negative numbers would be groups of processes, and a process is known by its start as well. 0 without a
 * start is the supervisor of a cluster that has ended.
 */
function isProcess(value: unknown): boolean {
  const { pid, startTime } = (value ?? {}) as Partial<ClusterRecord["supervisor"]>;
  if (typeof pid !== "number" || !Number.isInteger(pid) || pid < 0 || typeof startTime !== "string") return false;
  return pid === 0 ? startTime === "" : /^\d*$/.test(startTime);
}

/** Its name is a folder's. */
function isHost(value: unknown): boolean {
  const { name, index } = (value ?? {}) as Partial<HostRecord>;
  return typeof name === "string" && isDnsName(name) && Number.isInteger(index);
}

export interface HostRecord {
  readonly name: string;
  readonly pool: string;
  readonly index: number;
  /** It began empty, with a pointer to the config server alone; the others were born with credentials and a Node. */
  readonly joins?: true;
  /** It has its first configuration from the bootstrap server. */
  readonly bootstraps?: true;
}

/** Common name under which the API server asks kubelets for logs. */
export const kubeletClientName = "kube-apiserver-kubelet-client";
