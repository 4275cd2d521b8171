import { arch } from "node:os";
import { resolve } from "node:path";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { hostPaths, labels } from "../../api/names.ts";
import { type Layout, addressesOf, layoutOf, ports as clusterPorts, readRecord } from "../../cluster/layout.ts";
import { registryHost } from "../../cluster/cluster-registry.ts";
import { stockKernelArguments, stockOsImage, stockOsImageAt, writeStockOs } from "../../cluster/stock-os.ts";
import {
  type EnterOptions,
  enterCluster,
  keepCertificates,
  servingCertificate,
} from "../../cluster/host/enter-cluster.ts";
import { forgetInstallation, installMachine, installedBy } from "../../cluster/host/install-machine.ts";
import { type HostOptions, runHost } from "../../cluster/host/run-host.ts";
import { runningCluster } from "../../cluster/up.ts";
import { McoError } from "../../api/errors.ts";
import { askMachine, serveControl } from "../../host/directory/control.ts";
import { directoryMachine } from "../../host/directory/directory-host.ts";
import { findIgnition } from "../../host/ignition/run-ignition.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { isNotFound } from "../../kube/kube-error.ts";
import { type Connection, readKubeconfig } from "../../kube/kubeconfig.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  downloadDocument,
  httpsListen,
  systemClock,
  systemFiles,
  systemProcesses,
  systemRandom,
} from "../../ports/node/index.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect, connectTo } from "../connect.ts";
import { ignitionPrograms } from "../ignition-programs.ts";
import { runProcess } from "../run-process.ts";
import { version } from "../version.ts";
import { imageTrees } from "../image-trees.ts";

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
const settlePatienceMs = 120_000;
/** A first boot tries again by itself; what takes longer than this is begun anew. */
const firstBootPatienceMs = 3_600_000;

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    args,
    { dir: { type: "string", default: ".mco" }, json: { type: "boolean" }, index: { type: "string" } },
    { positionals: true },
  );
  const [verb, name] = positionals;
  const layout = layoutOf(resolve(values.dir));
  switch (verb) {
    case "run":
      if (name === undefined || values.index === undefined) throw usageError("host run wants NAME --index N");
      return runMachine(layout, name, Number(values.index));
    case "list":
      return list(layout, values.json === true);
    case "add":
      if (name === undefined || !/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/.test(name))
        throw usageError("host add wants the name of a pool");
      return add(layout, name, values.json === true);
    case "fail":
    case "recover":
    case "reboot":
    case "power-cut": {
      if (name === undefined) throw usageError(`host ${verb} wants the name of a machine`);
      const record = await runningCluster(systemFiles, layout);
      if (record?.hosts.some((host) => host.name === name) === false)
        throw usageError(`there is no machine "${name}"; 'mco host list' shows them`);
      return ask(layout, `${layout.host(name)}/control.sock`, verb, `mco host ${verb}`, values.json === true);
    }
    default:
      throw usageError(verb === undefined ? "what should be done?" : `there is no verb "${verb}"`);
  }
}

const patienceMs = 10_000;

/** Adds a machine to a pool that there is. A control plane without the operator knows no pools, and takes any name. */
async function add(layout: Layout, pool: string, json: boolean): Promise<number> {
  if ((await runningCluster(systemFiles, layout)) === undefined)
    throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const { kube, close } = await connect({ kubeconfig: layout.kubeconfig, component: "host" });
  try {
    const { items } = await kube
      .list(MachineConfigPool, {}, { signal: systemClock.deadline(patienceMs).signal })
      .catch((error: unknown) => {
        if (isNotFound(error)) return { items: undefined };
        throw error;
      });
    const pools = items?.map(({ metadata }) => metadata.name);
    if (pools !== undefined && !pools.includes(pool))
      throw new McoError("MCO_POOL_ABSENT", { pool, pools: pools.join(", ") });
  } finally {
    close();
  }
  return ask(layout, `${layout.directory}/control.sock`, "add-host", pool, json);
}

async function ask(
  layout: ReturnType<typeof layoutOf>,
  socket: string,
  verb: string,
  argument: string,
  json: boolean,
): Promise<number> {
  if ((await runningCluster(systemFiles, layout)) === undefined)
    throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const answer = await askMachine(socket, verb, argument, systemClock.deadline(patienceMs).signal);
  process.stdout.write(
    json
      ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Host", ...(answer as object) })}\n`
      : `${verb}: ${JSON.stringify(answer)}\n`,
  );
  return 0;
}

/** A machine's answer; `state` and `reason` while it joins the cluster. */
interface MachineStatus {
  readonly power: string;
  readonly bootId: string;
  readonly state?: string;
  readonly reason?: string;
}

async function list(layout: ReturnType<typeof layoutOf>, json: boolean): Promise<number> {
  const record = await runningCluster(systemFiles, layout);
  if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const hosts = await Promise.all(
    record.hosts.map(async (host) => {
      const { power, bootId, state, reason } = (await askMachine(
        `${layout.host(host.name)}/control.sock`,
        "status",
        "",
        systemClock.deadline(2000).signal,
      ).catch(() => ({ power: "unknown", bootId: "" }))) as MachineStatus;
      const by = await installedBy(systemFiles, layout.host(host.name));
      return {
        name: host.name,
        pool: host.pool,
        address: addressesOf(record.network).host(host.index),
        power,
        bootId,
        ...(state === undefined ? {} : { state, reason }),
        ...(by === undefined ? {} : { installedBy: by }),
      };
    }),
  );
  if (json) process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "HostList", hosts })}\n`);
  else
    for (const host of hosts)
      process.stdout.write(
        `${host.name.padEnd(14)} ${host.pool.padEnd(10)} ${host.address.padEnd(16)} ${host.power.padEnd(10)} boot ${host.bootId.slice(0, 8)}${host.state === undefined ? "" : `  ${host.state}${(host.reason ?? "") === "" ? "" : `: ${host.reason}`}`}\n`,
      );
  return 0;
}

async function runMachine(layout: ReturnType<typeof layoutOf>, name: string, index: number): Promise<number> {
  const record = await readRecord(systemFiles, layout);
  if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const addresses = addressesOf(record.network);
  const address = addresses.host(index);
  const host = record.hosts.find((other) => other.name === name);
  return runProcess({ component: "host", node: name }, async (ports, signal) => {
    await writeStockOs(systemFiles, layout.osImages);
    const directory = layout.host(name);
    const program = [process.execPath, ...process.execArgv, ...podFlags, layout.bundle] as const;
    const ownKubeconfig = `${layout.pki}/host-${name}.kubeconfig`;
    // Pods reach the API server where their machine does.
    const apiServer = new URL(
      host?.joins === true
        ? `https://${addresses.apiServer}:${clusterPorts.apiServer}`
        : (await readKubeconfig(systemFiles, ownKubeconfig)).server,
    );
    const environment = {
      ...podAllocator,
      PATH: process.env["PATH"] ?? "",
      KUBERNETES_SERVICE_HOST: apiServer.hostname,
      KUBERNETES_SERVICE_PORT: apiServer.port,
      ...(process.env["MCO_LOG_LEVEL"] === undefined ? {} : { MCO_LOG_LEVEL: process.env["MCO_LOG_LEVEL"] }),
    };
    /** A oneshot of the machine: a process of its own, as the unit's command would be. */
    const oneshot = async (
      words: readonly string[],
      log: string,
      patience: number,
      until: AbortSignal,
    ): Promise<number | undefined> => {
      const [command, ...leading] = program;
      const { exited, kill } = systemProcesses.spawn(
        command,
        [...leading, ...words, "--root-mount", `${directory}/rootfs`],
        { env: environment, logFile: `${directory}/${log}`, lifeline: true },
      );
      const limit = ports.clock.deadline(patience, until);
      limit.signal.addEventListener("abort", () => kill("SIGKILL"), { once: true });
      const { code } = await exited;
      limit.cancel();
      return code;
    };
    const settle = async (): Promise<void> => {
      const code = await oneshot(["settle"], "settle.log", settlePatienceMs, signal);
      if (code !== 0) throw new McoError("MCO_SETTLE_FAILED", { exitCode: code, log: `${directory}/settle.log` });
    };
    /**
     * Before the kubelet starts, what the machine was installed with is completed: image, kernel arguments, packages.
     */
    const beforeKubelet = async (until: AbortSignal): Promise<void> => {
      if ((await systemFiles.stat(`${directory}/rootfs${hostPaths.encapsulated}`)) === undefined) return;
      const code = await oneshot(
        ["daemon", "firstboot-complete-machineconfig"],
        "firstboot.log",
        firstBootPatienceMs,
        untilLater(ports.clock, until),
      );
      // It may end because it has the machine reboot.
      if (code !== 0 && !until.aborted)
        throw new McoError("MCO_HOST_COMMAND_FAILED", {
          command: "firstboot-complete-machineconfig",
          exitCode: code,
          log: `${directory}/firstboot.log`,
        });
    };
    const machine = directoryMachine({ directory, images: imageTrees(layout.osImages), settle });
    const os = {
      image: record.imageMode === true ? stockOsImageAt(registryHost(addresses)) : stockOsImage,
      kernelArguments: stockKernelArguments,
      packages: [],
      kernelType: "default",
    } as const;
    const clientCa = (await systemFiles.readText(`${layout.pki}/cluster-ca.crt`)) ?? "";
    const open: (() => void)[] = [];
    let keeping: Promise<void> | undefined;
    const connected = (connection: Connection, reread?: () => Promise<Connection>): KubeClient => {
      const { kube, close } = connectTo(connection, {
        component: "kubelet",
        ...(reread === undefined ? {} : { reread }),
      });
      open.push(close);
      return kube;
    };

    /** A machine that was born with credentials. */
    const born: Pick<HostOptions, "install" | "enter" | "serving"> = {
      install: () => machine.provision(os),
      async enter() {
        const { kube, close } = await connect({ kubeconfig: ownKubeconfig, component: "kubelet" });
        open.push(close);
        return kube;
      },
      serving: async () => ({
        certificate: (await systemFiles.readText(`${layout.pki}/host-${name}.crt`)) ?? "",
        key: (await systemFiles.readText(`${layout.pki}/host-${name}.key`)) ?? "",
        clientCa,
      }),
    };
    const enterOptions = {
      ...ports,
      nodeName: name,
      address,
      files: filesOfMachine(directory),
      connect: connected,
      clientCa,
    };
    /** A machine that began with a pointer alone. */
    const joining: typeof born = {
      async install(tell, until) {
        // Giving files away is what it does first.
        const ignition =
          process.geteuid?.() === 0
            ? await findIgnition(
                ignitionPrograms(process.env),
                { files: systemFiles, processes: systemProcesses },
                until,
              )
            : undefined;
        await installMachine(
          {
            ...ports,
            random: systemRandom,
            directory,
            machine,
            os,
            files: systemFiles,
            processes: systemProcesses,
            download: downloadDocument,
            ignition,
            version,
            newPointer: (limit) => askForPointer(layout, name, limit),
          },
          tell,
          until,
        );
      },
      async enter(tell, until) {
        const entered = await enterCluster({ ...enterOptions, random: systemRandom }, tell, until);
        if (entered === "lost") await forgetInstallation(systemFiles, directory);
        else keeping = keepCertificates({ ...enterOptions, random: systemRandom, kube: entered }, signal);
        return entered;
      },
      serving: (kube, until) => servingCertificate({ ...enterOptions, random: systemRandom, kube }, until),
    };
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
          ...(host?.joins === true ? joining : born),
          beforeKubelet,
          taints: host?.pool === "master" ? [{ key: labels.masterRole, effect: "NoSchedule" }] : [],
          serveControl: (handle, until) => serveControl(`${directory}/control.sock`, handle, until),
          listen: httpsListen,
          program,
          environment,
          version,
          architecture: arch() === "x64" ? "amd64" : arch(),
        },
        signal,
      );
    } finally {
      await keeping;
      for (const close of open) close();
    }
  });
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

/** The files of a machine in a folder, by the machine's own paths. */
function filesOfMachine(directory: string): EnterOptions["files"] {
  const at = (path: string) =>
    path.startsWith("/var/") ? `${directory}/sysroot${path}` : `${directory}/rootfs${path}`;
  return {
    readText: (path) => systemFiles.readText(at(path)),
    write: (path, contents, how) => systemFiles.write(at(path), contents, how),
    remove: (path) => systemFiles.remove(at(path)),
  };
}
