import { arch } from "node:os";
import { McoError } from "../api/errors.ts";
import { hostPaths, labels } from "../api/names.ts";
import { registryHost } from "../standin/cluster.ts";
import {
  enterCluster,
  type EnterOptions,
  forgetInstallation,
  type HostOptions,
  installMachine,
  keepCertificates,
  runHost,
  servingCertificate,
} from "../standin/machine.ts";
import { addressesOf, type Layout, ports as clusterPorts, readRecord } from "../standin/index.ts";
import { stockKernelArguments, stockOsImage, stockOsImageAt, writeStockOs } from "../standin/stock-os.ts";
import { askMachine, serveControl } from "../host/directory/control.ts";
import { directoryMachine } from "../host/directory/directory-host.ts";
import { machineFiles } from "../host/directory/machine-files.ts";
import { machineMounts, resolveInRoot } from "../host/directory/root-folder.ts";
import type { ObservedDeployment } from "../host/host.ts";
import { findIgnition } from "../host/ignition/run-ignition.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { type Connection, readKubeconfig } from "../kube/kubeconfig.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type { Ports } from "../ports/index.ts";
import { downloadDocument, httpsListen, systemFiles, systemProcesses, systemRandom } from "../ports/node/index.ts";
import { connect, connectTo } from "./connect.ts";
import { ignitionPrograms } from "./ignition-programs.ts";
import { imageTrees } from "./image-trees.ts";
import { runProcess } from "./run-process.ts";
import { version } from "./version.ts";

/**
 * Flags of Node.js for pods. Its space for young objects grows to three times 16 MiB under a load of small answers and
 * is never given back; with 1 MiB a daemon stayed 10 MiB smaller over forty roll-outs, and no slower.
 */
const podFlags = ["--max-semi-space-size=1"];

/**
 * Threads of Node.js each keep memory of their own that they never give back (mallopt(3)); sharing it saves another 5
 * MiB over forty roll-outs.
 */
const podAllocator = { MALLOC_ARENA_MAX: "1" };

/** How long a boot waits for the image's content to be applied; the kubelet starts afterwards, whatever the result. */
const imageContentPatienceMs = 120_000;
/** A first boot retries on its own; one that takes longer than this is started again. */
const firstBootPatienceMs = 3_600_000;

/** A machine of the cluster, and what its process was started with. */
interface MachineParts {
  readonly layout: Layout;
  readonly name: string;
  readonly address: string;
  /** The machine's folder. */
  readonly directory: string;
  /** PEM: the authority of those who may read logs. */
  readonly clientCa: string;
  readonly machine: ReturnType<typeof directoryMachine>;
  readonly os: ObservedDeployment;
  readonly ports: Ports;
  /** Aborts when the process is asked to end. */
  readonly signal: AbortSignal;
}

/**
 * Runs a machine of the cluster in this process, until the process is asked to end. Above 60 lines: it only chooses and
 * hands over the parts.
 */
export async function runMachine(layout: Layout, name: string, index: number): Promise<number> {
  const record = await readRecord(systemFiles, layout);
  if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const addresses = addressesOf(record.network);
  const address = addresses.host(index);
  const host = record.hosts.find((other) => other.name === name);
  return runProcess({ component: "host", node: name }, async (ports, signal) => {
    await writeStockOs(systemFiles, layout.osImages);
    const directory = layout.host(name);
    const program = [process.execPath, ...process.execArgv, ...podFlags, layout.bundle] as const;
    const environment = environmentOf(
      host?.joins === true
        ? `https://${addresses.apiServer}:${clusterPorts.apiServer}`
        : (await readKubeconfig(systemFiles, ownKubeconfig(layout, name))).server,
    );
    const oneshots = new Oneshots({ directory, program, environment, clock: ports.clock });
    const machine = directoryMachine({
      directory,
      images: imageTrees(layout.osImages),
      applyImageContent: () => oneshots.applyImageContent(signal),
    });
    const os: ObservedDeployment = {
      image: record.registry === true ? stockOsImageAt(registryHost(addresses)) : stockOsImage,
      kernelArguments: stockKernelArguments,
      packages: [],
      kernelType: "default",
    };
    const clientCa = (await systemFiles.readText(`${layout.pki}/cluster-ca.crt`)) ?? "";
    const parts: MachineParts = { layout, name, address, directory, clientCa, machine, os, ports, signal };
    const entry =
      host?.joins === true ? new JoiningMachine(parts) : new ProvisionedMachine(parts, host?.bootstraps === true);
    try {
      await runHost(
        {
          ...ports,
          random: systemRandom,
          nodeName: name,
          address,
          directory,
          files: systemFiles,
          processes: systemProcesses,
          machine,
          install: (report, until) => entry.install(report, until),
          enter: (report, until) => entry.enter(report, until),
          serving: (kube, until) => entry.serving(kube, until),
          beforeKubelet: (until) => oneshots.completeFirstBoot(until),
          taints: host?.pool === "master" ? [{ key: labels.masterRole, effect: "NoSchedule" }] : [],
          serveControl: (handle, until) => serveControl(`${directory}/control.sock`, handle, until),
          listen: httpsListen,
          locate: {
            below: (root, path) => resolveInRoot(root, path, {}, true),
            onMachine: (path) => resolveInRoot(`${directory}/rootfs`, path, machineMounts(directory), true),
          },
          program,
          environment,
          version,
          architecture: arch() === "x64" ? "amd64" : arch(),
        },
        signal,
      );
    } finally {
      await entry.close();
    }
  });
}

const ownKubeconfig = (layout: Layout, name: string): string => `${layout.pki}/host-${name}.kubeconfig`;

/** The environment of pods: they reach the API server where their machine does. */
function environmentOf(server: string): Readonly<Record<string, string>> {
  const apiServer = new URL(server);
  return {
    ...podAllocator,
    PATH: process.env["PATH"] ?? "",
    KUBERNETES_SERVICE_HOST: apiServer.hostname,
    KUBERNETES_SERVICE_PORT: apiServer.port,
    ...(process.env["MCO_LOG_LEVEL"] === undefined ? {} : { MCO_LOG_LEVEL: process.env["MCO_LOG_LEVEL"] }),
  };
}

interface OneshotOptions {
  readonly directory: string;
  readonly program: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

/** Oneshots of the machine: each is its own process, like the unit's command. */
class Oneshots {
  readonly #options: OneshotOptions;

  constructor(options: OneshotOptions) {
    this.#options = options;
  }

  /** Applies the content of the booted image to the machine. */
  async applyImageContent(until: AbortSignal): Promise<void> {
    const code = await this.#run(["settle"], "settle.log", imageContentPatienceMs, until);
    if (code !== 0)
      throw new McoError("MCO_SETTLE_FAILED", { exitCode: code, log: `${this.#options.directory}/settle.log` });
  }

  /** Before the kubelet starts, completes the installation: image, kernel arguments, packages. */
  async completeFirstBoot(until: AbortSignal): Promise<void> {
    const { directory, clock } = this.#options;
    if (!(await machineFiles(directory).has(hostPaths.encapsulated))) return;
    const code = await this.#run(
      ["daemon", "firstboot-complete-machineconfig"],
      "firstboot.log",
      firstBootPatienceMs,
      untilLater(clock, until),
    );
    // It may end because it has the machine reboot.
    if (code !== 0 && !until.aborted)
      throw new McoError("MCO_HOST_COMMAND_FAILED", {
        command: "firstboot-complete-machineconfig",
        exitCode: code,
        log: `${directory}/firstboot.log`,
      });
  }

  /** @returns the exit code; `undefined` if a signal ended it. */
  async #run(
    words: readonly string[],
    log: string,
    patienceMs: number,
    until: AbortSignal,
  ): Promise<number | undefined> {
    const { directory, program, environment, clock } = this.#options;
    const [command, ...leading] = program;
    const { exited, kill } = systemProcesses.spawn(
      command,
      [...leading, ...words, "--root-mount", `${directory}/rootfs`],
      { env: environment, logFile: `${directory}/${log}`, lifeline: true },
    );
    const limit = clock.deadline(patienceMs, until);
    limit.signal.addEventListener("abort", () => kill("SIGKILL"), { once: true });
    const { code } = await exited;
    limit.cancel();
    return code;
  }
}

/** How a machine comes into being and into the cluster. */
interface ClusterEntry extends Pick<HostOptions, "install" | "enter" | "serving"> {
  /** Ends the processes beside the machine, and closes its connections. */
  close(): Promise<void>;
}

/** Installs an empty machine as the config server describes it that its pointer names. */
async function installByPointer(
  { layout, name, directory, machine, os, ports }: MachineParts,
  ...[report, until]: Parameters<HostOptions["install"]>
): Promise<void> {
  // Ignition begins by changing the owners of files, which only root may do.
  const isRoot = process.geteuid?.() === 0;
  const tools = { files: systemFiles, processes: systemProcesses };
  const ignition = isRoot ? await findIgnition(ignitionPrograms(process.env), tools, until) : undefined;
  await installMachine(
    {
      ...ports,
      ...tools,
      random: systemRandom,
      directory,
      machine,
      os,
      download: downloadDocument,
      ignition,
      version,
      newPointer: (limit) => askForPointer(layout, name, limit),
    },
    report,
    until,
  );
}

/** A machine that begins with credentials, and with the configuration of the bootstrap or with none. */
class ProvisionedMachine implements ClusterEntry {
  readonly #parts: MachineParts;
  readonly #bootstraps: boolean;
  readonly #open: (() => void)[] = [];

  constructor(parts: MachineParts, bootstraps: boolean) {
    this.#parts = parts;
    this.#bootstraps = bootstraps;
  }

  install(...[report, until]: Parameters<HostOptions["install"]>): Promise<void> {
    const { machine, os } = this.#parts;
    return this.#bootstraps ? installByPointer(this.#parts, report, until) : machine.provision(os);
  }

  async enter(..._: Parameters<HostOptions["enter"]>): Promise<KubeClient> {
    const { layout, name } = this.#parts;
    const { kube, close } = await connect({ kubeconfig: ownKubeconfig(layout, name), component: "kubelet" });
    this.#open.push(close);
    return kube;
  }

  async serving(..._: Parameters<HostOptions["serving"]>): ReturnType<HostOptions["serving"]> {
    const { layout, name, clientCa } = this.#parts;
    return {
      certificate: (await systemFiles.readText(`${layout.pki}/host-${name}.crt`)) ?? "",
      key: (await systemFiles.readText(`${layout.pki}/host-${name}.key`)) ?? "",
      clientCa,
    };
  }

  async close(): Promise<void> {
    for (const close of this.#open) close();
  }
}

/** A machine that starts with only a pointer. */
class JoiningMachine implements ClusterEntry {
  readonly #parts: MachineParts;
  readonly #enterOptions: EnterOptions & { readonly random: Random };
  readonly #open: (() => void)[] = [];
  /** Keeps the machine's certificates current once it has entered. */
  #certificates: Promise<void> | undefined;

  constructor(parts: MachineParts) {
    this.#parts = parts;
    this.#enterOptions = {
      ...parts.ports,
      nodeName: parts.name,
      address: parts.address,
      files: machineFiles(parts.directory),
      connect: (connection, reread) => this.#connect(connection, reread),
      clientCa: parts.clientCa,
      random: systemRandom,
    };
  }

  install(...[report, until]: Parameters<HostOptions["install"]>): Promise<void> {
    return installByPointer(this.#parts, report, until);
  }

  async enter(...[report, until]: Parameters<HostOptions["enter"]>): Promise<KubeClient | "lost"> {
    const entered = await enterCluster(this.#enterOptions, report, until);
    if (entered === "lost") await forgetInstallation(systemFiles, this.#parts.directory);
    else this.#certificates = keepCertificates({ ...this.#enterOptions, kube: entered }, this.#parts.signal);
    return entered;
  }

  serving(...[kube, until]: Parameters<HostOptions["serving"]>): ReturnType<HostOptions["serving"]> {
    return servingCertificate({ ...this.#enterOptions, kube }, until);
  }

  async close(): Promise<void> {
    await this.#certificates;
    for (const close of this.#open) close();
  }

  #connect(connection: Connection, reread?: () => Promise<Connection>): KubeClient {
    const { kube, close } = connectTo(connection, {
      component: "kubelet",
      ...(reread === undefined ? {} : { reread }),
    });
    this.#open.push(close);
    return kube;
  }
}

/** The supervisor alone may make tokens. */
async function askForPointer(layout: Layout, name: string, signal: AbortSignal): Promise<void> {
  const { issued } = (await askMachine(`${layout.directory}/control.sock`, "issue-pointer", name, signal)) as {
    readonly issued?: boolean;
  };
  if (issued !== true) throw new McoError("MCO_IGNITION_FETCH_FAILED", { reason: "the cluster has no config server" });
}

/** The requester of a reboot has this long to report what it did. */
const lastWordsMs = 10_000;

/** Aborts a while after `signal`. */
function untilLater(clock: Clock, signal: AbortSignal): AbortSignal {
  const later = new AbortController();
  signal.addEventListener("abort", () => clock.after(lastWordsMs, () => later.abort(signal.reason)), { once: true });
  return later.signal;
}
