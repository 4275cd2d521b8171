/** The processes of a one-machine cluster, its credentials and its registry: `mco up`, `down` and `status`. */
export { type ClusterRegistry, registryHost } from "./cluster/cluster-registry.ts";
export { clusterAuthority, clusterAuthorityPair } from "./cluster/credentials.ts";
export { suiteImage } from "./cluster/host/pod-worker.ts";
export { issuePointer } from "./cluster/issue-pointer.ts";
export { registerMachine } from "./cluster/machine-node.ts";
export { runCluster, runningCluster, startTimeOf, type UpOptions } from "./cluster/up.ts";
