import { resolve } from "node:path";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { addressesOf, type HostRecord, type Layout, layoutOf } from "../../standin/index.ts";
import { installedBy } from "../../standin/machine.ts";
import { runningCluster } from "../../standin/cluster.ts";
import { McoError } from "../../api/errors.ts";
import { askMachine } from "../../host/directory/control.ts";
import { isNotFound } from "../../kube/kube-error.ts";
import { systemClock, systemFiles } from "../../ports/node/index.ts";
import { absentError, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { connect } from "../connect.ts";
import { runMachine } from "../run-machine.ts";
import { exitCodes } from "../exit-codes.ts";
import { processIo } from "../io.ts";
import { checkOwnFolder, checkRecordedFolder } from "../own-folder.ts";

const verbs = "list, add, fail, recover, reboot or power-cut";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.host, { positionals: true });
  const [verb, name] = positionals;
  const layout = layoutOf(resolve(values.dir));
  // The supervisor starts the machines of the folder that it checked.
  await (verb === "run" ? checkOwnFolder(layout) : checkRecordedFolder(layout));
  switch (verb) {
    case "run":
      if (name === undefined || values.index === undefined)
        throw usageError("run needs a machine name and an index: mco host run NAME --index N");
      return runMachine(layout, name, Number(values.index));
    case "list":
      return list(layout, values.json);
    case "add":
      if (name === undefined || !/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/.test(name))
        throw usageError("add needs the name of a pool: mco host add POOL");
      return add(layout, name, values.json);
    case "fail":
    case "recover":
    case "reboot":
    case "power-cut": {
      if (name === undefined) throw usageError(`${verb} needs the name of a machine: mco host ${verb} NAME`);
      const record = await runningCluster(systemFiles, layout);
      if (record?.hosts.some((host) => host.name === name) === false)
        throw absentError(`machine "${name}" does not exist; 'mco host list' shows all machines`);
      const socket = `${layout.host(name)}/control.sock`;
      const answer = (await ask(layout, socket, verb, `mco host ${verb}`)) as { readonly accepted: boolean };
      const text = answer.accepted
        ? `machine ${name} ${happens[verb](name)}\n`
        : `machine ${name} does not take it in its state: mco host list\n`;
      processIo().out(values.json ? hostJson(answer) : text);
      return answer.accepted ? exitCodes.ok : exitCodes.failed;
    }
    default:
      throw usageError(verb === undefined ? `name a verb: ${verbs}` : `unknown verb "${verb}"; use ${verbs}`);
  }
}

const patienceMs = 10_000;

/** What becomes of a machine that takes a request. */
const happens = {
  fail: (name: string) => `is off; mco host recover ${name} starts it`,
  recover: () => "starts, unless it is on",
  reboot: () => "reboots",
  "power-cut": () => "loses its power, and gets it back",
} as const;

/** Adds a machine to a pool that there is. A control plane without the operator knows no pools, and takes any name. */
async function add(layout: Layout, pool: string, json: boolean): Promise<number> {
  if ((await runningCluster(systemFiles, layout)) === undefined)
    throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  const { kube, close } = await connect({ directory: layout.directory, component: "host" });
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
  const host = (await ask(layout, `${layout.directory}/control.sock`, "add-host", pool)) as HostRecord;
  processIo().out(json ? hostJson(host) : addedText(host));
  return exitCodes.ok;
}

const hostJson = (answer: object) => `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Host", ...answer })}\n`;

/** What people read of a new machine. */
export const addedText = ({ name, pool, joins }: HostRecord): string =>
  joins === true
    ? `machine ${name} starts empty, and joins pool ${pool}: kubectl get nodes,csr --watch\n`
    : `machine ${name} of pool ${pool} starts: kubectl get nodes --watch\n`;

/** The answer of a socket of the cluster; throws MCO_CLUSTER_ABSENT while the cluster does not run. */
async function ask(
  layout: ReturnType<typeof layoutOf>,
  socket: string,
  verb: string,
  argument: string,
): Promise<unknown> {
  if ((await runningCluster(systemFiles, layout)) === undefined)
    throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  return askMachine(socket, verb, argument, systemClock.deadline(patienceMs).signal);
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
  if (json) processIo().out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "HostList", hosts })}\n`);
  else
    for (const host of hosts)
      processIo().out(
        `${host.name.padEnd(14)} ${host.pool.padEnd(10)} ${host.address.padEnd(16)} ${host.power.padEnd(10)} boot ${host.bootId.slice(0, 8)}${host.state === undefined ? "" : `  ${host.state}${(host.reason ?? "") === "" ? "" : `: ${host.reason}`}`}\n`,
      );
  return 0;
}
