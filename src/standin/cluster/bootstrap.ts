import { McoError } from "../../api/errors.ts";
import { namespace } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { pointerConfig } from "../../core/join/pointer-config.ts";
import { newToken } from "../../core/join/provisioning-token.ts";
import { storedPair } from "../../kube/certificates.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Processes } from "../../ports/process.ts";
import type { Random } from "../../ports/random.ts";
import type { ClusterCredentials } from "./credentials.ts";
import { type Addresses, type HostRecord, type Layout, ports } from "./layout.ts";

export interface ClusterBootstrapOptions {
  readonly layout: Layout;
  readonly addresses: Addresses;
  readonly credentials: ClusterCredentials;
  readonly files: Files;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly random: Random;
  /** How this program is run: Node.js, its flags, the bundle. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Folders of a bootstrap, as an installer prepares them on its bootstrap machine. */
export interface BootstrapFolders {
  /** What the installer knows of the cluster: the inputs. */
  readonly manifests: string;
  /** What the operator made from them. */
  readonly operator: string;
  /** What the controller rendered, and what the bootstrap server serves. */
  readonly rendered: string;
  /** Journal lines of all programs. */
  readonly journal: string;
}

export const bootstrapFolders = ({ bootstrap }: Layout): BootstrapFolders => ({
  manifests: `${bootstrap}/manifests`,
  operator: `${bootstrap}/operator`,
  rendered: `${bootstrap}/rendered`,
  journal: `${bootstrap}/journal`,
});

/** Machines of the control plane have this pool's configuration. */
const pool = "master";
/** A machine that is killed in between still has time. */
const tokenLifeMs = 86_400_000;
const authorityName = "kube-root-ca.crt";

/**
 * Renders the first configurations before there is an API server: `mco operator bootstrap` makes the ControllerConfig
 * from the manifests, and `mco controller bootstrap` renders every pool from that.
 *
 * @param manifests what is applied to the cluster when its API server answers.
 * @throws McoError `MCO_CLUSTER_START_FAILED` if one of them refuses.
 */
export async function renderBootstrap(
  manifests: readonly KubeObject[],
  options: ClusterBootstrapOptions,
  signal: AbortSignal,
): Promise<void> {
  const { layout, files, credentials } = options;
  const folders = bootstrapFolders(layout);
  await files.makeDirectory(layout.bootstrap, { mode: 0o700 });
  // An earlier run may have been killed in the middle.
  for (const folder of [folders.manifests, folders.operator, folders.rendered]) await files.remove(folder);
  // Every namespace of the cluster will have it; an installer knows it because it made the authority.
  const authority = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: authorityName, namespace },
    data: { "ca.crt": credentials.authority.certificate },
  };
  await files.write(
    `${folders.manifests}/cluster.json`,
    JSON.stringify({ apiVersion: "v1", kind: "List", items: [...manifests, authority] }),
    { mode: 0o600 },
  );
  await runVerb("operator", { from: folders.manifests, to: folders.operator }, options, signal);
  await runVerb(
    "controller",
    { from: `${folders.operator}/bootstrap/manifests`, to: folders.rendered },
    options,
    signal,
  );
}

async function runVerb(
  component: "operator" | "controller",
  { from, to }: { readonly from: string; readonly to: string },
  { layout, processes, program: [command = "", ...leading], environment }: ClusterBootstrapOptions,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const log = `${layout.logs}/bootstrap.log`;
  const flags = ["--manifest-dir", from, "--dest-dir", to, "--journal-dir", bootstrapFolders(layout).journal];
  const child = processes.spawn(command, [...leading, component, "bootstrap", ...flags], {
    env: environment,
    logFile: log,
  });
  const end = () => child.kill("SIGKILL");
  signal.addEventListener("abort", end, { once: true });
  const { code } = await child.exited;
  signal.removeEventListener("abort", end);
  signal.throwIfAborted();
  if (code !== 0)
    throw new McoError("MCO_CLUSTER_START_FAILED", { process: `${component} bootstrap`, exitCode: code, log });
}

/**
 * Makes the certificate of the bootstrap server and the kubeconfig that it hands out.
 *
 * @returns the arguments of its process.
 */
export async function bootstrapServer({
  layout,
  addresses,
  credentials,
  files,
}: ClusterBootstrapOptions): Promise<string[]> {
  const name = "bootstrap-server";
  await storedPair(files, layout.pki, name, () =>
    credentials.authority.issue({
      commonName: name,
      usage: "server",
      hosts: [addresses.bootstrap, addresses.configServer],
    }),
  );
  const folders = bootstrapFolders(layout);
  const kubeconfig = `${layout.bootstrap}/kubeconfig`;
  await files.write(kubeconfig, machineKubeconfig(credentials), { mode: 0o600 });
  const flags = {
    address: addresses.bootstrap,
    "secure-port": String(ports.configServer),
    cert: `${layout.pki}/${name}.crt`,
    key: `${layout.pki}/${name}.key`,
    "server-basedir": folders.rendered,
    "bootstrap-kubeconfig": kubeconfig,
    "journal-dir": folders.journal,
  };
  return ["server", "bootstrap", ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value])];
}

/** Where the API server is, and its authority. Control-plane machines have credentials of their own. */
function machineKubeconfig({ serverUrl, authority }: ClusterCredentials): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "kubelet",
    clusters: [
      { name: "local", cluster: { server: serverUrl, "certificate-authority-data": btoa(authority.certificate) } },
    ],
    users: [{ name: "kubelet", user: {} }],
    contexts: [{ name: "kubelet", context: { cluster: "local", user: "kubelet" } }],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/**
 * The pointer that a machine of the control plane begins with. Its token, good for one answer, lies in the bootstrap
 * server's folder; an earlier one of the machine becomes invalid.
 */
export async function bootstrapPointer(
  { name, index }: Pick<HostRecord, "name" | "index">,
  { layout, addresses, credentials, files, clock, random }: ClusterBootstrapOptions,
): Promise<string> {
  const { text, object } = newToken(random, {
    pool,
    expiresAt: clock.now() + tokenLifeMs,
    maxUses: 1,
    node: name,
    addresses: [addresses.host(index)],
  });
  await files.write(`${bootstrapFolders(layout).rendered}/provisioning-tokens/${name}.json`, JSON.stringify(object), {
    mode: 0o600,
  });
  const server = `${addresses.configServer}:${ports.configServer}`;
  const { certificate: authorities } = credentials.authority;
  return `${JSON.stringify(pointerConfig({ server, pool, token: text, authorities }))}\n`;
}
