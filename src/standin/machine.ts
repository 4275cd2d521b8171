/** A machine that is a folder: `mco host`. */
export { enterCluster, type EnterOptions, keepCertificates, servingCertificate } from "./cluster/host/enter-cluster.ts";
export { forgetInstallation, installedBy, installMachine } from "./cluster/host/install-machine.ts";
export { type HostOptions, runHost } from "./cluster/host/run-host.ts";
