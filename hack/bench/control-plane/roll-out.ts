import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Node, kubernetes } from "../../../src/api/index.ts";
import { MachineConfig } from "../../../src/api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../../src/api/kinds/machine-config-pool.ts";
import { writeBundle } from "../../../src/cli/bundle.ts";
import { connect } from "../../../src/cli/connect.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { testAuthority } from "../../../test/support/test-pki.ts";
import {
  fill,
  install,
  introduce,
  machineConfig,
  machineName,
  pool,
  writeKubeconfig,
  writeServerFiles,
} from "./cluster.ts";
import type { Counts } from "./count-requests.ts";

export interface ControlPlaneMetrics {
  readonly machines: number;
  readonly podsPerMachine: number;
  /** From sending the MachineConfig until the pool says that every machine has it. */
  readonly rollOutSeconds: number;
  /** The same writes to the same server by one client, 16 at a time, without watches. */
  readonly baselineSeconds: number;
  /**
   * Resident memory of the controller in MiB (VmRSS, VmHWM of proc(5)): ten seconds after the machines have joined, the
   * most of all, at the end.
   */
  readonly controllerBefore: number;
  readonly controllerPeak: number;
  readonly controllerAfter: number;
  /** Processor seconds during the roll-out. */
  readonly cpuSeconds: { readonly controller: number; readonly apiServer: number; readonly machines: number };
  /** Per machine, over the roll-out. */
  readonly requests: readonly {
    readonly writer: string;
    readonly verb: string;
    readonly kind: string;
    readonly perMachine: number;
    readonly bytesPerMachine: number;
  }[];
}

class Child {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly gone: Promise<number | null>;

  constructor(args: readonly string[], log: number) {
    this.#process = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], {
      stdio: ["pipe", "pipe", log],
    });
    this.gone = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.stdout === null) throw new Error("no output");
    this.#lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** The next line as JSON. */
  async hear<T>(): Promise<T> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`a child ended with ${await this.gone}`);
    return JSON.parse(value) as T;
  }

  ask<T>(): Promise<T> {
    this.#process.stdin?.write("\n");
    return this.hear<T>();
  }

  async end(signal?: "SIGTERM"): Promise<void> {
    if (signal === undefined) this.#process.stdin?.end();
    else this.#process.kill(signal);
    await this.gone;
  }
}

/** VmRSS or VmHWM in MiB. */
const memoryOf = (pid: number, key: "VmRSS" | "VmHWM") =>
  Math.round(
    Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024,
  );

/** User and system time in seconds. Source: proc(5), fields 14 and 15 of `/proc/pid/stat`, in ticks of 10 ms. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function untilUpdated(
  kube: KubeClient,
  machines: number,
  before: string,
  patienceSeconds: number,
  tell: (line: string) => void,
): Promise<string> {
  const began = performance.now();
  let said = 0;
  for (;;) {
    const object = await kube.get(MachineConfigPool, { name: pool });
    const target = object?.spec.configuration?.name ?? "";
    if (
      target !== "" &&
      target !== before &&
      object?.status?.configuration?.name === target &&
      object.status.updatedMachineCount === machines
    )
      return target;
    const seconds = (performance.now() - began) / 1000;
    if (seconds > patienceSeconds) throw new Error(`after ${patienceSeconds} s: ${JSON.stringify(object?.status)}`);
    if (seconds - said > 10) {
      said = seconds;
      tell(`  after ${seconds.toFixed(0)} s ${object?.status?.updatedMachineCount ?? 0} of ${machines}`);
    }
    await pause(100);
  }
}

/** Sends `count` writes of a size, some at a time. */
async function writesAlone(kube: KubeClient, machines: number, each: number, bytes: number): Promise<number> {
  const began = performance.now();
  const numbers = Array.from({ length: machines * each }, (_, index) => index);
  const text = "x".repeat(bytes);
  const lane = async () => {
    for (let index = numbers.shift(); index !== undefined; index = numbers.shift())
      await kube.patch<Node>(
        kubernetes.Node,
        { name: machineName(index % machines) },
        { type: "merge", body: { metadata: { annotations: { "example.com/bench": `${index} ${text}` } } } },
      );
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  return (performance.now() - began) / 1000;
}

export interface ControlPlaneRuns {
  readonly runs: readonly ControlPlaneMetrics[];
}

export interface RollOutOptions {
  readonly machines: number;
  readonly podsPerMachine: number;
  /** Folder for processor profiles of all processes. */
  readonly profile?: string;
}

/** A changed file with reboot reaches every machine of a pool, a tenth of them at a time. */
export async function measureRollOut(
  { machines, podsPerMachine, profile }: RollOutOptions,
  tell: (line: string) => void,
): Promise<ControlPlaneMetrics> {
  const folder = mkdtempSync(join(tmpdir(), "mco-bench-"));
  const children: Child[] = [];
  const log = openSync(join(folder, "log"), "w");
  const start = (args: readonly string[]) => {
    const child = new Child(args, log);
    children.unshift(child);
    return child;
  };
  const here = (file: string) => join(import.meta.dirname, file);
  try {
    const profiled = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
    const authority = await testAuthority();
    await writeServerFiles(folder, authority);
    const server = start([...profiled, here("server-process.ts"), folder]);
    const { url } = await server.hear<{ url: string }>();
    const kubeconfig = await writeKubeconfig(folder, url, authority);
    const { kube } = await connect({ kubeconfig, component: "bench" });
    await install(kube);
    const bundle = await writeBundle(join(folder, "bin"));
    await fill(kube, machines, podsPerMachine);
    const hosts = start([...profiled, here("machines-process.ts"), kubeconfig, String(machines)]);
    await hosts.hear();
    await introduce(kube);
    tell(`${machines} machines run`);
    const controller = start([...profiled, bundle, "controller", "start", "--kubeconfig", kubeconfig]);
    const patience = 120 + machines;
    const first = await untilUpdated(kube, machines, "", patience, tell);
    tell("every machine has joined");
    await pause(10_000);
    const controllerBefore = memoryOf(controller.pid, "VmRSS");
    await server.ask<Counts>();
    const cpu = () => ({
      controller: cpuSecondsOf(controller.pid),
      apiServer: cpuSecondsOf(server.pid),
      machines: cpuSecondsOf(hosts.pid),
    });
    const before = cpu();
    const began = performance.now();
    await kube.create(MachineConfig, machineConfig("60-worker-bench", { "/etc/bench/changed": "changed" }));
    await untilUpdated(kube, machines, first, patience, tell);
    const rollOutSeconds = (performance.now() - began) / 1000;
    const after = cpu();
    // What is still being told belongs to it.
    await pause(3000);
    const counts = await server.ask<Counts>();
    const controllerPeak = memoryOf(controller.pid, "VmHWM");
    const controllerAfter = memoryOf(controller.pid, "VmRSS");
    tell(
      `rolled out in ${rollOutSeconds.toFixed(1)} s; controller ${controllerBefore} MiB before, ${controllerAfter} MiB after, ${controllerPeak} MiB at most`,
    );
    await controller.end("SIGTERM");
    await hosts.end();
    const written = counts
      .filter(({ verb }) => verb === "write")
      .reduce((sum, one) => ({ requests: sum.requests + one.requests, bytes: sum.bytes + one.bytes }), {
        requests: 0,
        bytes: 0,
      });
    const baselineSeconds = await writesAlone(
      kube,
      machines,
      Math.round(written.requests / machines),
      Math.round(written.bytes / written.requests),
    );
    tell(`the same number of writes alone: ${baselineSeconds.toFixed(1)} s`);
    const round = (value: number) => Math.round(value * 100) / 100;
    return {
      machines,
      podsPerMachine,
      rollOutSeconds: round(rollOutSeconds),
      baselineSeconds: round(baselineSeconds),
      controllerBefore,
      controllerPeak,
      controllerAfter,
      cpuSeconds: {
        controller: round(after.controller - before.controller),
        apiServer: round(after.apiServer - before.apiServer),
        machines: round(after.machines - before.machines),
      },
      requests: counts
        .filter(({ writer }) => writer !== "mco-bench")
        .map(({ writer, verb, kind, requests, bytes }) => ({
          writer,
          verb,
          kind,
          perMachine: round(requests / machines),
          bytesPerMachine: Math.round(bytes / machines),
        })),
    };
  } finally {
    for (const child of children) await child.end();
    closeSync(log);
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function measureControlPlane(
  sizes: readonly number[],
  podsPerMachine: number,
  tell: (line: string) => void,
  profile?: string,
): Promise<ControlPlaneRuns> {
  const runs: ControlPlaneMetrics[] = [];
  for (const machines of sizes)
    runs.push(await measureRollOut({ machines, podsPerMachine, ...(profile === undefined ? {} : { profile }) }, tell));
  return { runs };
}
