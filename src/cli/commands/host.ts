import { arch } from "node:os";
import { resolve } from "node:path";
import { addressesOf, layoutOf, readRecord } from "../../cluster/layout.ts";
import { registryHost } from "../../cluster/cluster-registry.ts";
import { stockKernelArguments, stockOsImage, stockOsImageAt, writeStockOs } from "../../cluster/stock-os.ts";
import { runHost } from "../../cluster/host/run-host.ts";
import { runningCluster } from "../../cluster/up.ts";
import { McoError } from "../../api/errors.ts";
import { askMachine, serveControl } from "../../host/directory/control.ts";
import { directoryMachine } from "../../host/directory/directory-host.ts";
import { httpsListen, systemClock, systemFiles, systemProcesses, systemRandom } from "../../ports/node/index.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect } from "../connect.ts";
import { runProcess } from "../run-process.ts";
import { version } from "../version.ts";
import { imageTrees } from "../image-trees.ts";

/**
 * Flags of Node.js for pods. Its space for young objects grows to three times 16 MiB under a load of small answers and is
 * never given back; with 1 MiB a daemon stayed 10 MiB smaller over forty roll-outs, and no slower.
 */
const podFlags = ["--max-semi-space-size=1"];

/** Threads of Node.js each keep memory of their own that they never give back (mallopt(3)); sharing it saves another 5 MiB over forty roll-outs. */
const podAllocator = { MALLOC_ARENA_MAX: "1" };

/** How long a boot waits for settling: the kubelet is started after it, whatever comes of it. */
const settlePatienceMs = 120_000;

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { dir: { type: "string", default: ".mco" }, json: { type: "boolean" }, index: { type: "string" } }, { positionals: true });
  const [verb, name] = positionals;
  const layout = layoutOf(resolve(values.dir));
  switch (verb) {
    case "run":
      if (name === undefined || values.index === undefined) throw usageError("host run wants NAME --index N");
      return runMachine(layout, name, Number(values.index));
    case "list":
      return list(layout, values.json === true);
    case "add":
      if (name === undefined || !/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/.test(name)) throw usageError("host add wants the name of a pool");
      return ask(layout, `${layout.directory}/control.sock`, "add-host", name, values.json === true);
    case "fail":
    case "recover":
    case "reboot":
    case "power-cut": {
      if (name === undefined) throw usageError(`host ${verb} wants the name of a machine`);
      const record = await runningCluster(systemFiles, layout);
      if (record?.hosts.some((host) => host.name === name) === false) throw usageError(`there is no machine "${name}"; 'mco host list' shows them`);
      return ask(layout, `${layout.host(name)}/control.sock`, verb, `mco host ${verb}`, values.json === true);
    }
    default:
      throw usageError(verb === undefined ? "what should be done?" : `there is no verb "${verb}"`);
  }
}

const patienceMs = 10_000;

async function ask(layout: ReturnType<typeof layoutOf>, socket: string, verb: string, argument: string, json: boolean): Promise<number> {
  if ((await runningCluster(systemFiles, layout)) === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const answer = await askMachine(socket, verb, argument, systemClock.deadline(patienceMs).signal);
  process.stdout.write(json ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Host", ...(answer as object) })}\n` : `${verb}: ${JSON.stringify(answer)}\n`);
  return 0;
}

async function list(layout: ReturnType<typeof layoutOf>, json: boolean): Promise<number> {
  const record = await runningCluster(systemFiles, layout);
  if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const hosts = await Promise.all(
    record.hosts.map(async (host) => {
      const state = (await askMachine(`${layout.host(host.name)}/control.sock`, "status", "", systemClock.deadline(2000).signal).catch(() => ({ power: "unknown", bootId: "" }))) as { power: string; bootId: string };
      return { name: host.name, pool: host.pool, address: addressesOf(record.network).host(host.index), power: state.power, bootId: state.bootId };
    }),
  );
  if (json) process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "HostList", hosts })}\n`);
  else for (const host of hosts) process.stdout.write(`${host.name.padEnd(14)} ${host.pool.padEnd(10)} ${host.address.padEnd(16)} ${host.power.padEnd(10)} boot ${host.bootId.slice(0, 8)}\n`);
  return 0;
}

async function runMachine(layout: ReturnType<typeof layoutOf>, name: string, index: number): Promise<number> {
  const record = await readRecord(systemFiles, layout);
  if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const address = addressesOf(record.network).host(index);
  return runProcess({ component: "host", node: name }, async (ports, signal) => {
    const { kube, connection, close } = await connect({ kubeconfig: `${layout.pki}/host-${name}.kubeconfig`, component: "kubelet" });
    await writeStockOs(systemFiles, layout.osImages);
    const apiServer = new URL(connection.server);
    const directory = layout.host(name);
    const program = [process.execPath, ...process.execArgv, ...podFlags, layout.bundle] as const;
    const environment = {
      ...podAllocator,
      PATH: process.env["PATH"] ?? "",
      KUBERNETES_SERVICE_HOST: apiServer.hostname,
      KUBERNETES_SERVICE_PORT: apiServer.port,
      ...(process.env["MCO_LOG_LEVEL"] === undefined ? {} : { MCO_LOG_LEVEL: process.env["MCO_LOG_LEVEL"] }),
    };
    /** A process of its own, as the unit's command would be. */
    const settle = async (): Promise<void> => {
      const [command, ...words] = program;
      const { exited, kill } = systemProcesses.spawn(command, [...words, "settle", "--root-mount", `${directory}/rootfs`], { env: environment, logFile: `${directory}/settle.log`, lifeline: true });
      const limit = ports.clock.deadline(settlePatienceMs, signal);
      limit.signal.addEventListener("abort", () => kill("SIGKILL"), { once: true });
      const { code } = await exited;
      limit.cancel();
      if (code !== 0) throw new McoError("MCO_SETTLE_FAILED", { exitCode: code, log: `${directory}/settle.log` });
    };
    try {
      await runHost(
        {
          ...ports,
          random: systemRandom,
          nodeName: name,
          address,
          directory,
          kube,
          files: systemFiles,
          processes: systemProcesses,
          machine: directoryMachine({ directory, images: imageTrees(layout.osImages), settle }),
          os: { image: record.imageMode === true ? stockOsImageAt(registryHost(addressesOf(record.network))) : stockOsImage, kernelArguments: stockKernelArguments, packages: [], kernelType: "default" },
          serveControl: (handle, until) => serveControl(`${directory}/control.sock`, handle, until),
          listen: httpsListen,
          tls: {
            certificate: (await systemFiles.readText(`${layout.pki}/host-${name}.crt`)) ?? "",
            key: (await systemFiles.readText(`${layout.pki}/host-${name}.key`)) ?? "",
            clientCa: (await systemFiles.readText(`${layout.pki}/cluster-ca.crt`)) ?? "",
          },
          program,
          environment,
          version,
          architecture: arch() === "x64" ? "amd64" : arch(),
        },
        signal,
      );
    } finally {
      close();
    }
  });
}

