import { existsSync } from "node:fs";
import { join } from "node:path";
import type { KubeClient, WarningListener } from "../kube/kube-client.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import { type Connection, inClusterConnection, readKubeconfig, serviceAccountFolder } from "../kube/kubeconfig.ts";
import { httpsTransport } from "../kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../ports/node/index.ts";
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

export interface ConnectToOptions {
  readonly component: string;
  readonly onWarning?: WarningListener | undefined;
  /** Reads the connection again from its source, since it may be replaced while a process runs. */
  readonly reread?: () => Promise<Connection>;
}

export function connectTo(connection: Connection, { component, onWarning, reread }: ConnectToOptions): Connected {
  const transport = httpsTransport({
    connection,
    reread,
    clock: systemClock,
    files: systemFiles,
    processes: systemProcesses,
    environment: process.env,
  });
  const kube = createKubeClient({
    transport: transport.exchange,
    clock: systemClock,
    random: systemRandom,
    userAgent: `mco-${component}/${version}`,
    ...(onWarning === undefined ? {} : { onWarning }),
  });
  return { kube, connection, close: () => transport.close() };
}

/** How a command finds its API server: its flags, $KUBECONFIG, the pod's own account, the cluster in the folder. */
export async function connect({
  kubeconfig,
  directory,
  component,
  onWarning,
}: {
  readonly kubeconfig?: string | undefined;
  readonly directory?: string | undefined;
  readonly component: string;
  readonly onWarning?: WarningListener;
}): Promise<Connected> {
  const named = kubeconfig ?? (directory === undefined ? process.env["KUBECONFIG"] : undefined);
  if (
    (named === undefined || named === "") &&
    directory === undefined &&
    existsSync(podPath(`${serviceAccountFolder}/token`))
  ) {
    const reread = () => inClusterConnection(systemFiles, process.env, podPath(serviceAccountFolder));
    return connectTo(await reread(), { component, onWarning, reread });
  }
  const path = named === undefined || named === "" ? join(directory ?? ".mco", "kubeconfig") : named;
  const connection = await readKubeconfig(systemFiles, path);
  return connectTo(connection, {
    component,
    onWarning,
    reread: () => readKubeconfig(systemFiles, path, connection.context),
  });
}
