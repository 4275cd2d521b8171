/** The folder of a one-machine cluster: where everything lies, and what it records about itself. */
export {
  type Addresses,
  addressesOf,
  type ApiServerKind,
  type HostRecord,
  type Layout,
  layoutOf,
  ports,
  readRecord,
} from "./cluster/layout.ts";
export { readClusterFile } from "./cluster/read-cluster-file.ts";
export { partOfCluster, refuseForeignFolder, refuseLinks, removeCluster } from "./cluster/protect-folder.ts";
