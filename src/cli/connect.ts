import { existsSync } from "node:fs";
import { join } from "node:path";
import type { KubeClient, WarningListener } from "../kube/kube-client.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import { type Connection, inClusterConnection, readKubeconfig, serviceAccountFolder } from "../kube/kubeconfig.ts";
import { httpsTransport } from "../kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses } from "../ports/node/index.ts";
import { version } from "./version.ts";

export interface Connected {
  readonly kube: KubeClient;
  readonly connection: Connection;
  close(): void;
}

/** Absolute paths of volumes lie below the pod's own root where pods have no mount namespace. */
export function podPath(path: string): string {
  const root = process.env["MCO_POD_ROOT"];
  return root === undefined ? path : join(root, path);
}

export function connectTo(connection: Connection, component: string, onWarning?: WarningListener): Connected {
  const transport = httpsTransport({ connection, clock: systemClock, files: systemFiles, processes: systemProcesses, environment: process.env });
  const kube = createKubeClient({ transport: transport.exchange, clock: systemClock, userAgent: `mco-${component}/${version}`, ...(onWarning === undefined ? {} : { onWarning }) });
  return { kube, connection, close: () => transport.close() };
}

/** Where a command finds its API server: what it was told, $KUBECONFIG, the pod's own account, the cluster in the folder. */
export async function connect(options: { readonly kubeconfig?: string | undefined; readonly directory?: string | undefined; readonly component: string; readonly onWarning?: WarningListener }): Promise<Connected> {
  const named = options.kubeconfig ?? (options.directory === undefined ? process.env["KUBECONFIG"] : undefined);
  const local = join(options.directory ?? ".mco", "kubeconfig");
  if (named !== undefined && named !== "") return connectTo(await readKubeconfig(systemFiles, named), options.component, options.onWarning);
  if (options.directory === undefined && existsSync(podPath(`${serviceAccountFolder}/token`))) return connectTo(await inClusterConnection(systemFiles, process.env, podPath(serviceAccountFolder)), options.component, options.onWarning);
  return connectTo(await readKubeconfig(systemFiles, local), options.component, options.onWarning);
}
