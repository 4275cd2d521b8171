import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MachineConfigPool, type Node, kubernetes, names } from "../../src/api/index.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { type ApiServerKind, type ClusterRecord, addressesOf, ports } from "../../src/standin/cluster/layout.ts";
import { stockOsImageAt } from "../../src/standin/cluster/stock-os.ts";
import { connect } from "../../src/cli/connect.ts";
import type { ObservedDeployment } from "../../src/host/host.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { isExpired } from "../../src/kube/kube-error.ts";
import { hasKubernetes } from "./kubernetes/control-plane.ts";
import type { Sink } from "./canary.ts";
import { searchCluster } from "./canary-sinks.ts";
import { type McoUp, mcoUp } from "./mco-up.ts";
import { notWithin } from "./not-within.ts";
import { type Planted, plantCanaries } from "./plant-canaries.ts";
import { ClusterAgreement } from "./watch-agreement.ts";
import { keepRightsUsed } from "./kubernetes/rights-used.ts";

const root = join(import.meta.dirname, "../..");

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(
  program: string,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly input?: string; readonly timeoutMs?: number } = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...args], {
      cwd: root,
      env: { ...process.env, ...options.env },
      stdio: "pipe",
      timeout: options.timeoutMs ?? 480_000,
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? 137, stdout, stderr }));
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
  });
}

export interface ClusterOptions {
  readonly workers: number;
  readonly controlPlane?: number;
  /** `false`: machines only, for tests that install the operator themselves. */
  readonly operator?: boolean;
  /** Puts something into the cluster's folder before it starts: credentials that are there already are used. */
  readonly prepare?: (directory: string) => Promise<void>;
}

/** The API server of this run: the scenarios are the same on both. */
export const apiServer: ApiServerKind = process.env["MCO_TEST_API_SERVER"] === "kubernetes" ? "kubernetes" : "embedded";

/** `false` where the run's API server is not available: its scenarios are then skipped, by name. */
export const hasApiServer = apiServer === "embedded" || hasKubernetes;

/** `false` where there is no kubectl on the path. */
export const hasKubectl = (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, "kubectl")));

/** Commands whose output is a secret: a token, a pointer with one, a whole configuration. */
const printsSecrets = (verb: string, [what]: readonly string[]): boolean =>
  verb === "render" || (verb === "token" && what === "create");

/** A whole cluster of real processes, made by `mco up` in a folder of its own. */
export class TestCluster {
  readonly directory: string;
  readonly kubeconfig: string;
  readonly kube: KubeClient;
  readonly secondsToUp: number;
  readonly #up: McoUp;
  readonly #close: () => void;
  readonly #printed: Sink[] = [];
  #planted: Planted | undefined;
  #refusalsAreExpected = false;
  readonly #agreement: ClusterAgreement;

  private constructor(up: McoUp, connected: Awaited<ReturnType<typeof connect>>) {
    this.directory = up.directory;
    this.kubeconfig = join(up.directory, "kubeconfig");
    this.kube = connected.kube;
    this.#agreement = new ClusterAgreement(connected.kube);
    this.#close = () => connected.close();
    this.#up = up;
    this.secondsToUp = up.secondsToUp;
  }

  static async start({ workers, controlPlane = 1, operator = true, prepare }: ClusterOptions): Promise<TestCluster> {
    const up = await mcoUp(
      "mco-cluster-",
      [
        "--api-server",
        apiServer,
        "--workers",
        String(workers),
        "--control-plane",
        String(controlPlane),
        ...(operator ? [] : ["--without-operator"]),
      ],
      prepare,
    );
    const cluster = new TestCluster(
      up,
      await connect({ kubeconfig: join(up.directory, "kubeconfig"), component: "test" }),
    );
    if (!operator) return cluster;
    try {
      await cluster.plantCanaries();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /**
   * Gives the machines secrets, which no sink may show when the scenario ends. A cluster with an operator begins with
   * them; scenarios that install the suite themselves call this once it runs.
   */
  async plantCanaries(): Promise<void> {
    this.#planted = await plantCanaries(this);
  }

  /** What commands of this scenario printed, but for those that are asked for secrets. */
  get printed(): readonly Sink[] {
    return this.#printed;
  }

  /** The secrets that are found where they do not belong, as sentences. */
  leaks(): Promise<readonly string[]> {
    if (this.#planted === undefined) throw new Error("this scenario has planted no secrets: call plantCanaries()");
    return searchCluster(this, this.#planted);
  }

  /**
   * What said different things of one subject for longer than it may, at a moment of this scenario, and what still does
   * so now, as sentences.
   */
  disagreements(): Promise<readonly string[]> {
    return this.#agreement.end();
  }

  /** Stops the cluster and removes its folder. */
  async stop(): Promise<void> {
    this.#agreement.stop();
    this.#close();
    await this.#up.end();
    keepRightsUsed(this.directory, { refusals: !this.#refusalsAreExpected });
    this.#up.remove();
  }

  /** For scenarios that withdraw rights: refusals in this cluster are not faults of the components. */
  refusalsAreExpected(): void {
    this.#refusalsAreExpected = true;
  }

  kubectl(
    args: readonly string[],
    options: { readonly input?: string; readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number } = {},
  ): Promise<CommandResult> {
    return run("kubectl", args, {
      ...options,
      env: { KUBECONFIG: this.kubeconfig, HOME: this.directory, ...options.env },
    });
  }

  /** A command that knows no cluster. */
  offline(...args: readonly string[]): Promise<CommandResult> {
    return run(join(root, "bin/mco"), args, { env: { HOME: this.directory } });
  }

  async mco(args: readonly string[], options: { readonly input?: string } = {}): Promise<CommandResult> {
    const [verb = "", ...rest] = args;
    const result = await run(join(root, "bin/mco"), [verb, ...rest, "--dir", this.directory], options);
    if (!printsSecrets(verb, rest))
      this.#printed.push({ where: `the output of mco ${args.join(" ")}`, text: `${result.stdout}\n${result.stderr}` });
    return result;
  }

  record(): ClusterRecord {
    return JSON.parse(readFileSync(join(this.directory, "cluster.json"), "utf8")) as ClusterRecord;
  }

  /** The stock OS by the name that its machines were given: that in the cluster's registry. */
  get stockOsImage(): string {
    return stockOsImageAt(`${addressesOf(this.record().network).registry}:${ports.registry}`);
  }

  /** Process ids whose command line has all of `words` and this cluster's folder. */
  async processes(...words: readonly string[]): Promise<readonly number[]> {
    const { stdout } = await run("ps", ["-eo", "pid=,args="]);
    return stdout
      .split("\n")
      .filter((line) => line.includes(`${this.directory}/`) && words.every((word) => line.includes(` ${word}`)))
      .map((line) => Number.parseInt(line.trim(), 10));
  }

  /** Kills what serves the API, and returns how many processes that were. */
  killApiServer(signal: NodeJS.Signals): Promise<number> {
    return this.kill(signal, apiServer === "kubernetes" ? "--etcd-servers" : "apiserver");
  }

  async kill(signal: NodeJS.Signals, ...words: readonly string[]): Promise<number> {
    const found = await this.processes(...words);
    for (const pid of found) process.kill(pid, signal);
    return found.length;
  }

  /** Text of a file on a machine; `undefined` if the file does not exist. */
  hostFile(node: string, path: string): string | undefined {
    const host = join(this.directory, "hosts", node);
    try {
      return readFileSync(
        path.startsWith("/var/")
          ? join(host, "sysroot", path)
          : path.startsWith("/run/")
            ? join(host, "sysroot", path)
            : join(host, "rootfs", path),
        "utf8",
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  writeHostFile(node: string, path: string, text: string): void {
    const host = join(this.directory, "hosts", node);
    writeFileSync(path.startsWith("/run/") ? join(host, "sysroot", path) : join(host, "rootfs", path), text);
  }

  machineState(node: string): { bootId: string; deployments: Record<string, ObservedDeployment>; booted: string } {
    return JSON.parse(readFileSync(join(this.directory, "hosts", node, "state.json"), "utf8")) as ReturnType<
      TestCluster["machineState"]
    >;
  }

  /** Watches, without polling, until the object is as wanted and resolves with it; fails with its last state. */
  async until<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    is: (object: T) => boolean,
    what: string,
    options: { readonly namespace?: string; readonly seconds?: number } = {},
  ): Promise<T> {
    const seconds = options.seconds ?? 300;
    const signal = AbortSignal.timeout(seconds * 1000);
    let last: T | undefined;
    while (!signal.aborted) {
      try {
        const selection = {
          fieldSelector: `metadata.name=${name}`,
          ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
        };
        const list = await this.kube.list(resource, selection, { signal });
        last = list.items[0];
        if (last !== undefined && is(last)) return last;
        for await (const event of this.kube.watch(
          resource,
          selection,
          { resourceVersion: list.resourceVersion, timeoutSeconds: seconds },
          signal,
        )) {
          if (event.type === "BOOKMARK") continue;
          last = event.type === "DELETED" ? undefined : event.object;
          if (last !== undefined && is(last)) return last;
        }
      } catch (error) {
        // The API server may be gone for a short time; some scenarios kill it.
        if (!signal.aborted && !isExpired(error)) await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
    const pods = resource.kind === "DaemonSet" || resource.kind === "Deployment" ? await this.#unready(options) : [];
    // A Node's annotations come after all its conditions.
    throw notWithin(seconds, [what, ...pods].join("; "), last, 4000);
  }

  /** The pods of a namespace that are not ready, and why. */
  async #unready({ namespace }: { readonly namespace?: string }): Promise<readonly string[]> {
    const selection = namespace === undefined ? {} : { namespace };
    const { items } = await this.kube.list(kubernetes.Pod, selection, { signal: AbortSignal.timeout(10_000) });
    return items.flatMap(({ metadata, spec, status }) => {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      if (ready?.status === "True") return [];
      const states = status?.containerStatuses?.map(({ state, restartCount }) => [restartCount, state]) ?? [];
      return [
        `${metadata.name} on ${spec?.nodeName ?? "no node"}: ${JSON.stringify([ready, metadata.deletionTimestamp, states])}`,
      ];
    });
  }

  untilNode(name: string, is: (node: Node) => boolean, what: string, seconds?: number): Promise<Node> {
    return this.until(kubernetes.Node, name, is, what, seconds === undefined ? {} : { seconds });
  }

  /** Waits until a pool has a target that differs from `before` and every machine has it and is in service. */
  async untilRolledOut(pool: string, before: string, seconds = 420): Promise<string> {
    const done = await this.until(
      MachineConfigPool,
      pool,
      ({ spec, status, metadata }) => {
        const target = spec.configuration?.name ?? "";
        const updated = (status?.conditions ?? []).find(({ type }) => type === "Updated")?.status === "True";
        return (
          target !== before &&
          target !== "" &&
          updated &&
          status?.configuration?.name === target &&
          status.observedGeneration === metadata.generation
        );
      },
      `pool ${pool} rolled out`,
      { seconds },
    );
    const target = done.spec.configuration?.name ?? "";
    const nodes = await this.kube.list(kubernetes.Node);
    for (const node of nodes.items) {
      if (node.metadata.labels?.[`node-role.kubernetes.io/${pool}`] === undefined) continue;
      await this.untilNode(
        node.metadata.name,
        (now) => annotation(now, names.annotations.currentConfig) === target && now.spec?.unschedulable !== true,
        `${node.metadata.name} is in service on ${target}`,
      );
    }
    return target;
  }

  async target(pool: string): Promise<string> {
    return (await this.kube.get(MachineConfigPool, { name: pool }))?.spec.configuration?.name ?? "";
  }
}

export const annotation = (object: KubeObject, key: string): string => object.metadata.annotations?.[key] ?? "";

/** A MachineConfig with files, as a manifest. */
export function machineConfig(
  name: string,
  files: Readonly<Record<string, string>>,
  options: {
    readonly role?: string;
    readonly more?: Readonly<Record<string, unknown>>;
    readonly config?: Readonly<Record<string, unknown>>;
  } = {},
) {
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name, labels: { [names.labels.role]: options.role ?? "worker" } },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 0o644,
            overwrite: true,
            contents: { source: `data:,${encodeURIComponent(text)}` },
          })),
        },
        ...options.config,
      },
      ...options.more,
    },
  };
}
