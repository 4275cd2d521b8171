import { spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { McoError } from "../../api/errors.ts";
import { type Layout, type ClusterRecord, layoutOf } from "../../cluster/layout.ts";
import { installManifests } from "../../cluster/install-manifests.ts";
import { stockOsImage } from "../../cluster/stock-os.ts";
import { suiteImage } from "../../cluster/host/pod-worker.ts";
import { runCluster, runningCluster } from "../../cluster/up.ts";
import { type ClusterStatus, isSettled } from "../../core/cluster-status.ts";
import { serveControl } from "../../host/directory/control.ts";
import { systemClock, systemFiles, systemProcesses } from "../../ports/node/index.ts";
import { applyManifest, readManifests, resourcesServed } from "../manifests.ts";
import { countOf, readArguments } from "../arguments.ts";
import { writeBundle } from "../bundle.ts";
import { connect } from "../connect.ts";
import { drawStatus, painter } from "../draw-status.ts";
import { runProcess } from "../run-process.ts";
import { version } from "../version.ts";
import { lookAtCluster, watchCluster } from "../watch-cluster.ts";

const patienceMs = 120_000;

interface Values {
  readonly directory: string;
  readonly workers: number;
  readonly controlPlane: number;
  readonly apply: string | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, {
    dir: { type: "string", default: ".mco" },
    workers: { type: "string", default: "3" },
    "control-plane": { type: "string", default: "1" },
    apply: { type: "string" },
    detach: { type: "boolean", short: "d" },
    json: { type: "boolean" },
    quiet: { type: "boolean" },
  });
  const chosen: Values = {
    directory: resolve(values.dir),
    workers: countOf(values.workers, "--workers", 0, 100),
    controlPlane: countOf(values["control-plane"], "--control-plane", 1, 9),
    apply: values.apply === undefined ? undefined : resolve(values.apply),
    json: values.json === true,
    quiet: values.quiet === true,
  };
  const layout = layoutOf(chosen.directory);
  const live = await runningCluster(systemFiles, layout);
  if (live !== undefined) throw new McoError("MCO_CLUSTER_RUNNING", { directory: layout.directory, supervisor: live.supervisor.pid });
  if (values.detach === true) return detached(layout, chosen, args);
  return runProcess({ component: "up" }, (ports, signal) => supervise(layout, chosen, ports, signal));
}

/** Starts the same command without --detach in a session of its own, and waits until its cluster is settled. */
async function detached(layout: Layout, chosen: Values, args: readonly string[]): Promise<number> {
  mkdirSync(layout.logs, { recursive: true });
  const log = openSync(`${layout.logs}/up.log`, "a");
  const script = process.argv[1] ?? "";
  const child = spawn(process.execPath, [...process.execArgv, script, "up", ...args.filter((word) => word !== "--detach" && word !== "-d" && word !== "--json"), "--quiet"], { detached: true, stdio: ["ignore", log, log] });
  const ended = new AbortController();
  child.once("exit", () => ended.abort(new McoError("MCO_CLUSTER_START_FAILED", { log: `${layout.logs}/up.log` })));
  child.unref();
  await untilSettled(layout, chosen, ended.signal);
  return 0;
}

const canvas = painter(process.stdout);

function tell(chosen: Values, line: string): void {
  if (!chosen.json && !chosen.quiet) process.stdout.write(`${line}\n`);
}

async function supervise(layout: Layout, chosen: Values, ports: Parameters<Parameters<typeof runProcess>[1]>[0], signal: AbortSignal): Promise<void> {
  const began = systemClock.monotonic();
  mkdirSync(layout.logs, { recursive: true });
  tell(chosen, `starting a cluster in ${layout.directory}: ${chosen.controlPlane} control-plane and ${chosen.workers} worker machines`);
  const bundle = await writeBundle(`${layout.directory}/bin`);
  const stopping = new AbortController();
  signal.addEventListener("abort", () => stopping.abort(signal.reason), { once: true });
  let failure: unknown;
  const cluster = runCluster(
    {
      ...ports,
      layout,
      workers: chosen.workers,
      controlPlane: chosen.controlPlane,
      files: systemFiles,
      processes: systemProcesses,
      program: [process.execPath, "--disable-warning=ExperimentalWarning", bundle],
      environment: Object.fromEntries(["PATH", "HOME", "MCO_LOG_LEVEL"].flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))),
      version,
      pid: process.pid,
      portIsFree,
      serveControl: (handle, until) => serveControl(`${layout.directory}/control.sock`, handle, until),
      afterApiServer: (_credentials, until) => installOperator(layout, until),
      onProgress: (line) => tell(chosen, `  ${line}`),
    },
    stopping.signal,
    (record) => void follow(record).catch((error: unknown) => {
      if (stopping.signal.aborted) return;
      failure = error;
      stopping.abort(error);
    }),
  );

  async function follow(_record: ClusterRecord): Promise<void> {
    if (chosen.quiet) {
      await applyWhenSettled(layout, chosen, stopping.signal, undefined);
      return;
    }
    await applyWhenSettled(layout, chosen, stopping.signal, began);
  }
  await cluster;
  if (failure !== undefined) throw failure;
}

async function applyWhenSettled(layout: Layout, chosen: Values, signal: AbortSignal, began: number | undefined): Promise<void> {
  const show = began === undefined ? undefined : (status: ClusterStatus) => (chosen.json ? undefined : canvas.draw(drawStatus(status, canvas)));
  await waitSettled(layout, chosen, signal, show);
  if (began !== undefined) tell(chosen, `\nthe cluster is up after ${seconds(began)}`);
  if (chosen.apply !== undefined) {
    const { kube, close } = await connect({ kubeconfig: layout.kubeconfig, component: "up" });
    const manifests = await readManifests([chosen.apply]);
    const served = await resourcesServed(kube);
    for (const manifest of manifests) await applyManifest(kube, served, manifest, "mco-up");
    close();
    const rollOut = systemClock.monotonic();
    tell(chosen, `applied ${manifests.length} manifests of ${chosen.apply}; they roll out now\n`);
    if (began !== undefined) await waitSettled(layout, chosen, signal, show, true);
    if (began !== undefined) tell(chosen, `\nall pools are updated, ${seconds(rollOut)} after the examples were applied`);
  }
  if (began === undefined) return;
  if (chosen.json) {
    const record = JSON.parse((await systemFiles.readText(layout.record)) ?? "{}") as ClusterRecord;
    process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Up", directory: layout.directory, kubeconfig: layout.kubeconfig, network: record.network, hosts: record.hosts, seconds: (systemClock.monotonic() - began) / 1000 })}\n`);
  } else {
    tell(chosen, `\n  export KUBECONFIG=${layout.kubeconfig}\n  kubectl get mcp,mc,nodes,pods -A\n  bin/mco status --watch\n\nCtrl-C ends the cluster.`);
  }
}

const seconds = (since: number) => `${((systemClock.monotonic() - since) / 1000).toFixed(1)} s`;

async function untilSettled(layout: Layout, chosen: Values, signal: AbortSignal): Promise<void> {
  const began = systemClock.monotonic();
  while ((await systemFiles.readText(layout.kubeconfig)) === undefined || (await runningCluster(systemFiles, layout)) === undefined) {
    signal.throwIfAborted();
    if (systemClock.monotonic() - began > patienceMs) throw new McoError("MCO_CLUSTER_START_FAILED", { log: `${layout.logs}/up.log` });
    await systemClock.sleep(50);
  }
  await waitSettled(layout, chosen, signal, undefined);
  if (chosen.apply !== undefined) {
    const { kube, close } = await connect({ kubeconfig: layout.kubeconfig, component: "up" });
    const manifests = await readManifests([chosen.apply]);
    const served = await resourcesServed(kube);
    for (const manifest of manifests) await applyManifest(kube, served, manifest, "mco-up");
    close();
    await waitSettled(layout, chosen, signal, undefined, true);
  }
  const record = JSON.parse((await systemFiles.readText(layout.record)) ?? "{}") as ClusterRecord;
  const took = (systemClock.monotonic() - began) / 1000;
  if (chosen.json) process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Up", directory: layout.directory, kubeconfig: layout.kubeconfig, network: record.network, hosts: record.hosts, seconds: took })}\n`);
  else process.stdout.write(`the cluster is up after ${took.toFixed(1)} s: export KUBECONFIG=${layout.kubeconfig}\n`);
}

/** A change that was just applied takes this long at most until its pools show it. */
const noticeMs = 3000;

/** Waits until every machine has what its pool wants; with `changed`, only once the pools have noticed what was just applied. */
async function waitSettled(layout: Layout, chosen: Values, signal: AbortSignal, show: ((status: ClusterStatus) => void) | undefined, changed = false): Promise<void> {
  const expected = chosen.workers + chosen.controlPlane;
  const { kube, close } = await connect({ kubeconfig: layout.kubeconfig, component: "up" });
  const began = systemClock.monotonic();
  let noticed = !changed;
  const patience = systemClock.deadline(patienceMs + 60_000 * expected, signal);
  let done = false;
  try {
    await watchCluster(
      kube,
      (status) => {
        show?.(status);
        if (!isSettled(status, expected)) noticed = true;
        else if (noticed || systemClock.monotonic() - began > noticeMs) {
          done = true;
          return "stop";
        }
        return undefined;
      },
      patience.signal,
    );
    // Nothing may have changed at all, and then nobody tells: look once more when the time for it has passed.
    if (!done && !signal.aborted && isSettled(await lookAtCluster(kube), expected)) done = true;
  } finally {
    patience.cancel();
    close();
  }
  signal.throwIfAborted();
  if (!done) throw new McoError("MCO_CLUSTER_START_FAILED", { problem: "the machines did not settle in time", logs: layout.logs, hint: `KUBECONFIG=${layout.kubeconfig} kubectl get mcp,nodes,pods -A` });
}

/** Waits for the API server and applies what the operator needs to start. */
async function installOperator(layout: Layout, signal: AbortSignal): Promise<void> {
  const { kube, close } = await connect({ kubeconfig: layout.kubeconfig, component: "up" });
  try {
    const began = systemClock.monotonic();
    for (;;) {
      signal.throwIfAborted();
      try {
        const served = await resourcesServed(kube);
        for (const manifest of installManifests({ image: suiteImage(version), osImage: stockOsImage, version })) await applyManifest(kube, served, manifest, "mco-up");
        return;
      } catch (error) {
        if (systemClock.monotonic() - began > 30_000) throw new McoError("MCO_CLUSTER_START_FAILED", { process: "apiserver", log: `${layout.logs}/apiserver.log` }, { cause: error });
        await systemClock.sleep(50, signal);
      }
    }
  } finally {
    close();
  }
}

function portIsFree(host: string, port: number): Promise<boolean> {
  return new Promise((answer) => {
    const probe = createServer();
    probe.once("error", () => answer(false));
    probe.listen(port, host, () => probe.close(() => answer(true)));
  });
}
