import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { McoError } from "../api/errors.ts";
import type { KubeClient, WarningListener } from "../kube/kube-client.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import {
  type Connection,
  type Impersonated,
  inClusterConnection,
  readKubeconfig,
  serviceAccountFolder,
} from "../kube/kubeconfig.ts";
import { httpsTransport } from "../kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../ports/node/index.ts";
import { readClusterFile } from "../standin/index.ts";
import { usageError } from "./arguments.ts";
import { globalFlags } from "./global-flags.ts";
import { kubeconfigHere } from "./own-folder.ts";
import { isKubectlPlugin } from "./program-names.ts";
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

/**
 * Connects to the API server that the command line names, or else to that of $KUBECONFIG, of the pod's own account, of the
 * cluster in the current folder, or of kubectl's default kubeconfig. As kubectl's plug-in, the program takes the default
 * kubeconfig before the cluster in the folder. `--context`, `--as`, `--as-group` and `--as-uid` apply.
 */
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
  const { context, impersonate } = globalFlags();
  const named =
    kubeconfig !== undefined
      ? [kubeconfig]
      : directory === undefined
        ? (process.env["KUBECONFIG"] ?? "").split(":").filter((path) => path !== "")
        : [];
  if (named.length === 0 && directory === undefined && existsSync(podPath(`${serviceAccountFolder}/token`))) {
    if (context !== undefined)
      throw usageError(
        `there is no context ${context}: this pod has its service account and no kubeconfig; name one with --kubeconfig`,
      );
    const acts = impersonatedInPod(impersonate);
    const reread = async () => ({
      ...(await inClusterConnection(systemFiles, process.env, podPath(serviceAccountFolder))),
      ...acts,
    });
    return connectTo(await reread(), { component, onWarning, reread });
  }
  const users = directory === undefined && named.length === 0 ? userKubeconfig() : undefined;
  const chosen = users === undefined ? named : [users];
  const paths =
    chosen.length > 0 ? chosen : [directory === undefined ? await kubeconfigHere() : join(directory, "kubeconfig")];
  const read = async (inContext?: string) => {
    if (chosen.length > 0) return readKubeconfig(systemFiles, paths, inContext, impersonate);
    const connection = await readKubeconfig(onlyThese(paths), paths, inContext, impersonate);
    const problem = unlikeMade(connection);
    if (problem !== undefined) refuseUnnamed(paths.join(":"), problem);
    return connection;
  };
  const connection = await read(context);
  return connectTo(connection, { component, onWarning, reread: () => read(connection.context) });
}

/** Whom the command line acts as, where no kubeconfig says more. */
function impersonatedInPod({ user, ...more }: Partial<Impersonated>): Pick<Connection, "impersonate"> {
  if (user !== undefined) return { impersonate: { user, ...more } };
  if (Object.keys(more).length > 0) throw usageError("--as-group and --as-uid need --as as well");
  return {};
}

/** kubectl's default kubeconfig, if it exists. A cluster in the current folder comes first, except for kubectl's plug-in. */
function userKubeconfig(): string | undefined {
  const path = join(homedir(), ".kube", "config");
  return (isKubectlPlugin(process.env["MCO_CALLED_AS"] ?? process.argv[1] ?? "") || !existsSync(".mco")) &&
    existsSync(path)
    ? path
    : undefined;
}

/** Bytes of a kubeconfig in the folder of a cluster. */
const mostKubeconfigBytes = 1024 * 1024;

/** Reads these files, and none that they name. */
const onlyThese = (paths: readonly string[]): Pick<typeof systemFiles, "readText"> => ({
  readText: (path) =>
    paths.includes(path)
      ? readClusterFile(systemFiles, path, mostKubeconfigBytes)
      : refuseUnnamed(paths.join(":"), aFile(path)),
});

const aFile = (path: string) => `it takes credentials or an authority from a file (${path})`;

/**
 * What differs from a kubeconfig that `mco up` writes: its credentials are inline, and its server is on this machine. The
 * author of a folder, such as a repository that somebody cloned, would else choose a file or a program of the user, and whom
 * the result is sent to.
 */
function unlikeMade({ server, exec, tokenFile }: Connection): string | undefined {
  if (exec !== undefined) return `it runs the credential plug-in ${exec.command}`;
  if (tokenFile !== undefined) return aFile(tokenFile);
  return /^https:\/\/127(?:\.\d{1,3}){3}(?::\d+)?$/.test(server)
    ? undefined
    : `its server ${server} is not one that mco up starts on this machine`;
}

function refuseUnnamed(path: string, problem: string): never {
  throw new McoError("MCO_KUBECONFIG_INVALID", {
    path,
    problem: `${problem}, and nobody named this kubeconfig; name it with --kubeconfig to use it`,
  });
}
