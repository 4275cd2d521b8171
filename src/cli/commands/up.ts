import { spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { McoError } from "../../api/errors.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { type KubeObject, conditionOf } from "../../api/schema/object.ts";
import { addressesOf, type ApiServerKind, type Layout, layoutOf, readRecord } from "../../standin/index.ts";
import {
  issuePointer,
  registerMachine,
  registryHost,
  runCluster,
  runningCluster,
  suiteImage,
  type UpOptions,
} from "../../standin/cluster.ts";
import { installManifests } from "../../operator/install-manifests.ts";
import { openshiftKinds } from "../../standin/schemas.ts";
import { stockOsImage, stockOsImageAt } from "../../standin/stock-os.ts";
import { type ClusterStatus, allPoolsUpdated } from "../../core/preview/cluster-status.ts";
import { clearSetId } from "../../host/directory/clear-set-id.ts";
import { serveControl } from "../../host/directory/control.ts";
import { forward, systemClock, systemFiles, systemProcesses } from "../../ports/node/index.ts";
import { deriveKey } from "../../standin/registry.ts";
import { applyRegistrySettings } from "../apply-registry-settings.ts";
import { applyWholeManifest, readManifests, resourcesServed } from "../manifests.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { writeBundle } from "../bundle.ts";
import { type Connected, connect } from "../connect.ts";
import { fillRegistry, hasBuildah, imageModeManifests, refusePushes } from "../image-mode.ts";
import { imageModeTour } from "../image-mode-tour.ts";
import { kubernetesBinaries, kubernetesVersion } from "../kubernetes-binaries.ts";
import { exitCodes } from "../exit-codes.ts";
import { drawStatus } from "../draw-status.ts";
import { handOver } from "../hand-over.ts";
import { runProcess } from "../run-process.ts";
import { version } from "../version.ts";
import { readClusterStatus, watchCluster } from "../watch-cluster.ts";
import { processIo, processScreen } from "../io.ts";
import { adoptFolder, checkFolderToStart, checkOwnFolder, recordFolder } from "../own-folder.ts";
import { countText } from "../../core/text/count-text.ts";

const patienceMs = 120_000;
/** etcd and kube-apiserver take some seconds, on a busy machine more. */
const apiServerPatienceMs = 90_000;

const apiServers = ["embedded", "kubernetes"] as const;

interface Values {
  readonly directory: string;
  readonly workers: number;
  readonly controlPlane: number;
  readonly apiServer: ApiServerKind;
  readonly apply: string | undefined;
  readonly operator: boolean;
  readonly imageMode: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.up);
  const apiServer = apiServers.find((kind) => kind === values["api-server"]);
  if (apiServer === undefined)
    throw usageError(`--api-server must be ${apiServers.join(" or ")}, not "${values["api-server"]}"`);
  const operator = !values["without-operator"];
  if (!operator && values.apply !== undefined)
    throw usageError("--apply needs the operator: omit --without-operator, or apply the manifests yourself");
  if (!operator && values["image-mode"]) throw usageError("--image-mode needs the operator: omit --without-operator");
  const chosen: Values = {
    directory: resolve(values.dir),
    workers: countOf(values.workers, "--workers", 0, 100),
    // Without an operator there may be no machines: only a control plane.
    controlPlane: countOf(values["control-plane"], "--control-plane", operator ? 1 : 0, 9),
    apiServer,
    apply: values.apply === undefined ? undefined : resolve(values.apply),
    operator,
    imageMode: values["image-mode"],
    json: values.json,
    quiet: values.quiet,
  };
  const layout = layoutOf(chosen.directory);
  await (values.adopt ? checkOwnFolder(layout) : checkFolderToStart(layout));
  const live = await runningCluster(systemFiles, layout);
  if (live !== undefined && values.adopt) {
    await adoptFolder(layout);
    processIo().out(`the cluster that runs in ${layout.directory} is recorded as yours\n`);
    return exitCodes.ok;
  }
  if (live !== undefined)
    throw new McoError("MCO_CLUSTER_RUNNING", { directory: layout.directory, supervisor: live.supervisor.pid });
  const earlier = await readRecord(systemFiles, layout);
  const made = earlier?.apiServer ?? "embedded";
  if (earlier !== undefined && made !== apiServer)
    throw new McoError("MCO_CLUSTER_API_SERVER", { directory: layout.directory, made, asked: apiServer });
  const binaries = apiServer === "kubernetes" ? kubernetesBinaries(process.env) : "";
  await (values.adopt ? adoptFolder(layout) : recordFolder(layout));
  if (values.detach) return detached(layout, chosen);
  return runProcess({ component: "up" }, (ports, signal) => supervise(layout, chosen, binaries, ports, signal));
}

/** Starts the same cluster in its own session, and returns when the cluster is in the requested state. */
async function detached(layout: Layout, chosen: Values): Promise<number> {
  const began = systemClock.monotonic();
  mkdirSync(layout.logs, { recursive: true, mode: 0o711 });
  const log = openSync(`${layout.logs}/up.log`, "a");
  const script = process.argv[1] ?? "";
  // This process applies the manifests.
  const words = [
    "--dir",
    chosen.directory,
    "--workers",
    String(chosen.workers),
    "--control-plane",
    String(chosen.controlPlane),
    "--api-server",
    chosen.apiServer,
    ...(chosen.operator ? [] : ["--without-operator"]),
    ...(chosen.imageMode ? ["--image-mode"] : []),
    "--quiet",
  ];
  const child = spawn(process.execPath, [...process.execArgv, script, "up", ...words], {
    detached: true,
    stdio: ["ignore", log, log],
  });
  const ended = new AbortController();
  child.once("exit", () => ended.abort(new McoError("MCO_CLUSTER_START_FAILED", { log: `${layout.logs}/up.log` })));
  child.unref();
  while (
    (await systemFiles.readText(layout.kubeconfig)) === undefined ||
    (await runningCluster(systemFiles, layout)) === undefined
  ) {
    ended.signal.throwIfAborted();
    if (systemClock.monotonic() - began > patienceMs)
      throw new McoError("MCO_CLUSTER_START_FAILED", { log: `${layout.logs}/up.log` });
    await systemClock.sleep(50);
  }
  await bringUp(layout, chosen, { began, signal: ended.signal, draw: false });
  const notices = await noticesOfStart(layout, ended.signal);
  if (chosen.json) await printRecord(layout, began);
  else {
    for (const notice of notices) processIo().out(`${notice}\n`);
    processIo().out(`the cluster is up after ${seconds(began)}: export KUBECONFIG=${layout.kubeconfig}\n`);
  }
  return 0;
}

/** What the start of a cluster put back, once that is over: its processes are recorded then. */
async function noticesOfStart(layout: Layout, signal: AbortSignal): Promise<readonly string[]> {
  const began = systemClock.monotonic();
  for (;;) {
    const record = await runningCluster(systemFiles, layout);
    if (record !== undefined && record.processes.length > 0) return record.notices ?? [];
    if (systemClock.monotonic() - began > patienceMs)
      throw new McoError("MCO_CLUSTER_START_FAILED", { log: `${layout.logs}/up.log` });
    await systemClock.sleep(50, signal);
  }
}

const canvas = processScreen();

function print(chosen: Values, line: string): void {
  if (!chosen.json && !chosen.quiet) processIo().out(`${line}\n`);
}

async function supervise(
  layout: Layout,
  chosen: Values,
  binaries: string,
  ports: Parameters<Parameters<typeof runProcess>[1]>[0],
  signal: AbortSignal,
): Promise<void> {
  const began = systemClock.monotonic();
  mkdirSync(layout.logs, { recursive: true, mode: 0o711 });
  print(
    chosen,
    `starting a cluster in ${layout.directory}: ${chosen.controlPlane} control-plane and ${chosen.workers} worker machines${chosen.apiServer === "kubernetes" ? `, on Kubernetes ${kubernetesVersion}` : ""}`,
  );
  const bundle = await writeBundle(`${layout.directory}/bin`);
  const stopping = new AbortController();
  signal.addEventListener("abort", () => stopping.abort(signal.reason), { once: true });
  let failure: unknown;
  let admin: Connected | undefined;
  const asAdmin = async (): Promise<KubeClient> =>
    (admin ??= await connect({ kubeconfig: layout.kubeconfig, component: "up" })).kube;

  /** Draws the progress for a watching user; a detached cluster only runs. */
  async function follow(): Promise<void> {
    if (chosen.quiet) return;
    await bringUp(layout, chosen, { began, signal: stopping.signal, draw: !chosen.json });
    if (chosen.json) await printRecord(layout, began);
    else
      print(
        chosen,
        `\n  export KUBECONFIG=${layout.kubeconfig}\n  kubectl get mcp,mc,nodes,pods -A\n  bin/mco status --watch\n\nCtrl-C ends the cluster.`,
      );
  }
  try {
    await runCluster(
      {
        ...ports,
        layout,
        apiServer: chosen.apiServer === "kubernetes" ? { kind: "kubernetes", binaries } : { kind: "embedded" },
        workers: chosen.workers,
        controlPlane: chosen.controlPlane,
        registry: chosen.operator,
        bootstraps: chosen.operator,
        files: systemFiles,
        processes: systemProcesses,
        program: [process.execPath, "--disable-warning=ExperimentalWarning", bundle],
        environment: Object.fromEntries(
          ["PATH", "HOME", "XDG_CACHE_HOME", "MCO_IGNITION_BINARIES", "MCO_LOG_LEVEL"].flatMap((name) =>
            process.env[name] === undefined ? [] : [[name, process.env[name]]],
          ),
        ),
        version,
        pid: process.pid,
        portIsFree,
        forward,
        clearSetId: process.geteuid?.() === 0 ? clearSetId : undefined,
        serveControl: (handle, until) => serveControl(`${layout.directory}/control.sock`, handle, until),
        afterRegistry: fillRegistry,
        afterApiServer: async (_credentials, registry, addresses, until) => {
          const kube = await asAdmin();
          await untilReady(kube, layout, chosen, until);
          if (!chosen.operator) return [];
          await applyAll(kube, [...openshiftKinds, ...suiteManifests(registry, addresses)], until);
          return registry === undefined
            ? []
            : applyRegistrySettings({ kube, owner: "mco-up", registry, deriveKey, signal: until });
        },
        deriveKey,
        installed,
        handOver: async (folder, until) => {
          await handOver({ ...ports, kube: await asAdmin(), folder }, until);
        },
        registerMachine: async (host, until) => registerMachine(await asAdmin(), host, until),
        issuePointer: async (host, until) => {
          const record = await readRecord(systemFiles, layout);
          if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
          return issuePointer(
            await asAdmin(),
            host,
            {
              ...ports,
              address: addressesOf(record.network).configServer,
              hostAddress: addressesOf(record.network).host(host.index),
            },
            until,
          );
        },
        onProgress: (line) => print(chosen, `  ${line}`),
      },
      stopping.signal,
      () =>
        void follow().catch((error: unknown) => {
          if (stopping.signal.aborted) return;
          failure = error;
          stopping.abort(error);
        }),
    );
  } finally {
    admin?.close();
  }
  if (failure !== undefined) throw failure;
}

/** The suite, with what it needs in this cluster. */
const suiteManifests: UpOptions["installed"] = (registry, addresses) =>
  installManifests({
    image: suiteImage(version),
    osImage: registry === undefined ? stockOsImage : stockOsImageAt(registry.host),
    version,
    arguments: ["--config-server-address", addresses.configServer],
  });

/** What an administrator applies to a new cluster: the suite, and the settings of the cluster's registry. */
const installed: UpOptions["installed"] = (registry, addresses) => [
  ...suiteManifests(registry, addresses),
  ...(registry === undefined ? [] : imageModeManifests(registry)),
];

/**
 * Waits until the cluster is in the requested state, applies the given manifests, and waits until they have rolled out.
 */
async function bringUp(
  layout: Layout,
  chosen: Values,
  { began, signal, draw }: { readonly began: number; readonly signal: AbortSignal; readonly draw: boolean },
): Promise<void> {
  const show = draw ? (status: ClusterStatus) => canvas.draw(drawStatus(status, canvas)) : undefined;
  const { kube, close } = await connect({ kubeconfig: layout.kubeconfig, component: "up" });
  try {
    if (!chosen.operator) {
      await untilReady(kube, layout, chosen, signal);
      return await waitReady(kube, layout, chosen, signal);
    }
    await waitUpdated(kube, layout, chosen, signal, show);
    if (draw) print(chosen, `\nthe cluster is up after ${seconds(began)}`);
    if (chosen.imageMode && draw)
      await imageModeTour(
        {
          kube,
          clock: systemClock,
          print: (line) => print(chosen, line),
          registry: await registryOfCluster(layout),
          refusePushes: (refusal) => Promise.resolve(refusePushes(layout, refusal)),
          hasBuildah: hasBuildah(process.env),
        },
        signal,
      );
    if (chosen.apply === undefined) return;
    const manifests = readManifests([chosen.apply]);
    await applyAll(kube, manifests, signal);
    const rollOut = systemClock.monotonic();
    if (draw)
      print(chosen, `applied ${countText(manifests.length, "manifest")} of ${chosen.apply}; they roll out now\n`);
    await waitUpdated(kube, layout, chosen, signal, show, true);
    if (draw) print(chosen, `\nall pools are updated, ${seconds(rollOut)} after the examples were applied`);
  } finally {
    close();
  }
}

async function registryOfCluster(layout: Layout): Promise<string> {
  const record = await readRecord(systemFiles, layout);
  if (record === undefined) throw new McoError("MCO_CLUSTER_ABSENT", { directory: layout.directory });
  return registryHost(addressesOf(record.network));
}

async function printRecord(layout: Layout, began: number): Promise<void> {
  const record = await readRecord(systemFiles, layout);
  processIo().out(
    `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Up", directory: layout.directory, kubeconfig: layout.kubeconfig, apiServer: record?.apiServer, network: record?.network, hosts: record?.hosts, notices: record?.notices ?? [], seconds: (systemClock.monotonic() - began) / 1000 })}\n`,
  );
}

const seconds = (since: number) => `${((systemClock.monotonic() - since) / 1000).toFixed(1)} s`;

/** A change that was just applied takes this long at most until its pools show it. */
const noticeMs = 3000;

/**
 * Waits until every machine has its pool's target; with `changed`, only once the pools have seen the applied manifests.
 */
async function waitUpdated(
  kube: KubeClient,
  layout: Layout,
  chosen: Values,
  signal: AbortSignal,
  show: ((status: ClusterStatus) => void) | undefined,
  changed = false,
): Promise<void> {
  const expected = chosen.workers + chosen.controlPlane;
  const began = systemClock.monotonic();
  let noticed = !changed;
  const patience = systemClock.deadline(patienceMs + 60_000 * expected, signal);
  let done = false;
  try {
    await watchCluster(
      kube,
      (status) => {
        show?.(status);
        if (!allPoolsUpdated(status, expected)) noticed = true;
        else if (noticed || systemClock.monotonic() - began > noticeMs) {
          done = true;
          return "stop";
        }
        return undefined;
      },
      patience.signal,
    );
    // If nothing changed at all, no event arrives: check once more when the time has passed.
    if (!done && !signal.aborted && allPoolsUpdated(await readClusterStatus(kube), expected)) done = true;
  } finally {
    patience.cancel();
  }
  signal.throwIfAborted();
  if (!done)
    throw new McoError("MCO_CLUSTER_START_FAILED", {
      problem: "the machines did not settle in time",
      logs: layout.logs,
      hint: `KUBECONFIG=${layout.kubeconfig} kubectl get mcp,nodes,pods -A`,
    });
}

/** Waits until every machine reports itself ready. */
async function waitReady(kube: KubeClient, layout: Layout, chosen: Values, signal: AbortSignal): Promise<void> {
  const expected = chosen.workers + chosen.controlPlane;
  const began = systemClock.monotonic();
  for (;;) {
    const { items } = await kube.list(kubernetes.Node, {}, { signal });
    if (items.filter((node) => conditionOf(node.status?.conditions, "Ready")?.status === "True").length >= expected)
      return;
    if (systemClock.monotonic() - began > patienceMs)
      throw new McoError("MCO_CLUSTER_START_FAILED", {
        problem: "the machines did not become ready in time",
        logs: layout.logs,
      });
    await systemClock.sleep(100, signal);
  }
}

/** Waits until the API server is ready. */
async function untilReady(kube: KubeClient, layout: Layout, chosen: Values, signal: AbortSignal): Promise<void> {
  const began = systemClock.monotonic();
  for (;;) {
    signal.throwIfAborted();
    try {
      await kube.request({ method: "GET", target: "/readyz", headers: {} }, { signal });
      return;
    } catch (error) {
      const log = `${layout.logs}/${chosen.apiServer === "kubernetes" ? "kube-apiserver" : "apiserver"}.log`;
      if (systemClock.monotonic() - began > apiServerPatienceMs)
        throw new McoError("MCO_CLUSTER_START_FAILED", { process: "apiserver", log }, { cause: error });
      await systemClock.sleep(50, signal);
    }
  }
}

async function applyAll(kube: KubeClient, manifests: readonly KubeObject[], signal: AbortSignal): Promise<void> {
  const served = await resourcesServed(kube);
  for (const manifest of manifests) {
    signal.throwIfAborted();
    await applyWholeManifest(kube, served, manifest, "mco-up");
  }
}

function portIsFree(host: string, port: number): Promise<boolean> {
  return new Promise((answer) => {
    const probe = createServer();
    probe.once("error", () => answer(false));
    probe.listen(port, host, () => probe.close(() => answer(true)));
  });
}
