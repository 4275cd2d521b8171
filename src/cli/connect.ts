import { existsSync } from "node:fs";
import { join } from "node:path";
import { McoError } from "../api/errors.ts";
import type { KubeClient, WarningListener } from "../kube/kube-client.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import { type Connection, inClusterConnection, readKubeconfig, serviceAccountFolder } from "../kube/kubeconfig.ts";
import { httpsTransport } from "../kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../ports/node/index.ts";
import { kubeconfigHere } from "./own-folder.ts";
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
  const isNamed = named !== undefined && named !== "";
  const path = isNamed ? named : directory === undefined ? await kubeconfigHere() : join(directory, "kubeconfig");
  const read = async (context?: string) => {
    const connection = await readKubeconfig(systemFiles, path, context);
    if (!isNamed && connection.exec !== undefined) refusePlugin(path, connection.exec.command);
    return connection;
  };
  const connection = await read();
  return connectTo(connection, { component, onWarning, reread: () => read(connection.context) });
}

/** The kubeconfig of a cluster's folder has none: a plug-in there is a program that somebody else chose. */
function refusePlugin(path: string, command: string): never {
  throw new McoError("MCO_KUBECONFIG_INVALID", {
    path,
    problem: `it runs the credential plug-in ${command}, and nobody named this kubeconfig; name it with --kubeconfig to have that done`,
  });
}
