import { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { pullSecretKey } from "../../src/core/render/pull-secret.ts";
import { type Node, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { annotations, labels, namespace, notYetSet, objects } from "../../src/api/names.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { type ControllerOptions, runController } from "../../src/controller/run-controller.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { inProcessCluster } from "../simulation/in-process-cluster.ts";
import { Kernel } from "../simulation/kernel.ts";
import { VirtualHarness } from "./virtual-harness.ts";

export const version = "1.0.0";

/** A cluster in virtual time whose machines change only when a test changes them. */
export class Harness extends VirtualHarness {
  /** The journal lines of the controllers, from which books are made. */
  readonly journal = memoryJournal();
  /** Intercepts requests of the controllers to the API server. */
  intercept: (handler: HttpHandler) => HttpHandler = (handler) => handler;

  static async make(): Promise<Harness> {
    const kernel = new Kernel(7);
    const harness = new Harness(kernel, await kernel.complete(inProcessCluster(kernel), 60_000));
    const { kube } = harness;
    await harness.act(async () => {
      await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
      for (const name of ["master", "worker"]) await harness.pool(name);
      await kube.create(ControllerConfig, {
        apiVersion: ControllerConfig.apiVersion,
        kind: "ControllerConfig",
        metadata: { name: objects.controllerConfig, annotations: { [annotations.generatedByVersion]: version } },
        spec: {
          clusterDNSIP: "10.0.0.10",
          cloudProviderConfig: "",
          kubeAPIServerServingCAData: "",
          rootCAData: "",
          cloudProviderCAData: null,
          additionalTrustBundle: btoa("-- a bundle --\n"),
          images: {},
          baseOSContainerImage: "os@sha256:0",
          releaseImage: "r",
          proxy: null,
          infra: null,
          dns: null,
          ipFamilies: "IPv4",
        },
      });
    });
    return harness;
  }

  /** Makes it a cluster of OpenShift's: its operators keep the namespaces that are called after it. */
  ofOpenShift() {
    const apiVersion = "config.openshift.io/v1";
    const infra = { apiVersion, kind: "Infrastructure", metadata: { name: "cluster" }, spec: {}, status: {} };
    return this.#settings({ infra, pullSecret: { kind: "Secret", ...pullSecretKey(true) } });
  }

  /** Gives it a ControllerConfig as versions wrote it that read OpenShift's namespaces on every cluster. */
  ofEarlierVersion() {
    return this.#settings({ pullSecret: { kind: "Secret", ...pullSecretKey(true) } });
  }

  #settings(spec: object) {
    return this.kube.patch(ControllerConfig, { name: objects.controllerConfig }, { type: "merge", body: { spec } });
  }

  pool(name: string, more: object = {}) {
    return this.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name, labels: { [`${labels.poolPrefix}${name}`]: "" } },
      spec: {
        machineConfigSelector: { matchLabels: { [labels.role]: name } },
        nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
        ...more,
      },
    });
  }

  config(name: string, role: string, files: Readonly<Record<string, string>>, more: object = {}) {
    return this.kube.apply(
      MachineConfig,
      {
        metadata: { name, labels: { [labels.role]: role } },
        spec: {
          config: {
            ignition: { version: "3.4.0" },
            storage: {
              files: Object.entries(files).map(([path, text]) => ({
                path,
                mode: 0o644,
                contents: { source: encodeDataUrl(text) },
              })),
            },
          },
          ...more,
        },
      },
      { owner: "people" },
    );
  }

  async node(name: string, role: string, has: Readonly<Record<string, string>> = {}) {
    const nodeLabels = {
      [`node-role.kubernetes.io/${role}`]: "",
      ...(role === "master" ? { [labels.controlPlaneRole]: "" } : {}),
    };
    const made = await this.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: nodeLabels, annotations: { ...has } },
      spec: {},
    });
    // The operator does the same.
    await this.kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: MachineConfigNode.kind,
      metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: made.metadata.uid ?? "" }] },
      spec: { node: { name }, pool: { name: role }, configVersion: { desired: notYetSet } },
    });
    await this.kube.patch(
      kubernetes.Node,
      { name },
      { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
      { subresource: "status" },
    );
    // A new node is tainted as not ready; the node controller, which would remove the taint, does not run here.
    await this.kube.patch(kubernetes.Node, { name }, { type: "merge", body: { spec: { taints: null } } });
  }

  annotate(name: string, changes: Readonly<Record<string, string | null>>, spec?: object) {
    return this.kube.patch(
      kubernetes.Node,
      { name },
      { type: "merge", body: { metadata: { annotations: changes }, ...(spec === undefined ? {} : { spec }) } },
    );
  }

  /** What a daemon writes when its machine has its target. */
  async finish(name: string) {
    const node = await this.kube.get(kubernetes.Node, { name });
    const has = node?.metadata.annotations ?? {};
    const image = has[annotations.desiredImage] ?? null;
    await this.annotate(name, {
      [annotations.currentConfig]: has[annotations.desiredConfig] ?? "",
      [annotations.currentImage]: image,
      [annotations.currentOSImage]: image,
      [annotations.state]: "Done",
    });
  }

  /** Starts the controllers; a second start is a second process, which leads once the first is stopped. */
  start(
    identity = "test",
    more: Partial<Pick<ControllerOptions, "admission" | "images" | "architecture">> = {},
  ): AbortController {
    const stopping = new AbortController();
    const kube = this.cluster.client((request, signal) => this.intercept(this.cluster.transport)(request, signal));
    const ports = { clock: this.kernel.clock, random: this.kernel.random, log: silentLogger, journal: this.journal };
    const events = createEventRecorder({ ...ports, kube, component: "machineconfigcontroller" });
    void runController({ ...ports, kube, events, identity, version, ...more }, stopping.signal);
    return stopping;
  }

  async desired(role: string): Promise<Record<string, string>> {
    const { items } = await this.act(() =>
      this.kube.list(kubernetes.Node, { labelSelector: `node-role.kubernetes.io/${role}` }),
    );
    return Object.fromEntries(
      items.map((node) => [node.metadata.name, node.metadata.annotations?.[annotations.desiredConfig] ?? ""]),
    );
  }

  async poolStatus(name: string) {
    const pool = await this.act(() => this.kube.get(MachineConfigPool, { name }));
    const conditions = pool?.status?.conditions as
      | { type: string; status: string; reason: string; message: string }[]
      | undefined;
    return { pool, target: pool?.spec.configuration?.name ?? "", of: (type: string) => conditionOf(conditions, type) };
  }

  async node_(name: string): Promise<Node> {
    const node = await this.act(() => this.kube.get(kubernetes.Node, { name }));
    if (node === undefined) throw new Error(name);
    return node;
  }

  async events(reason: string): Promise<string[]> {
    const { items } = await this.act(() => this.kube.list(kubernetes.Event));
    return items.filter((event) => event.reason === reason).map(({ message }) => message ?? "");
  }
}

/** A worker pool with machines that have its first configuration. */
export async function updatedPool(
  machines: readonly string[],
  more: Parameters<Harness["start"]>[1] = {},
): Promise<{ harness: Harness; first: string; process: AbortController }> {
  const harness = await Harness.make();
  await harness.act(() => harness.config("50-worker", "worker", { "/etc/a": "1" }));
  const process = harness.start("test", more);
  await harness.pass(5000);
  const { target: first } = await harness.poolStatus("worker");
  for (const name of machines)
    await harness.act(() =>
      harness.node(name, "worker", {
        [annotations.currentConfig]: first,
        [annotations.desiredConfig]: first,
        [annotations.state]: "Done",
      }),
    );
  await harness.pass(3000);
  return { harness, first, process };
}
