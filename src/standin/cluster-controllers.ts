/** What kube-controller-manager and kube-scheduler do elsewhere: `mco cluster-controllers`. */
export { runClusterControllers } from "./cluster/controllers/run-cluster-controllers.ts";
