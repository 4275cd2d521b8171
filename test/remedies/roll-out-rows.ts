import { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { openshift } from "../../src/api/foreign/openshift.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../../src/api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import {
  annotations,
  labels,
  machineConfigNodeConditions as phases,
  machineOSBuildConditions as builds,
  namespace,
  objects,
} from "../../src/api/names.ts";
import { timestampOf } from "../../src/api/schema/object.ts";
import { openshiftKinds } from "../../src/standin/cluster/openshift-kinds.ts";
import { type Harness, updatedPool } from "../support/control-plane-harness.ts";
import { type Row, type State, type Step, byItself } from "./row.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const image = (letter: string) => `registry.example.com/os@sha256:${letter.repeat(64)}`;

/** A pool at its first target, and what a row does to it. */
class Pool {
  readonly harness: Harness;
  readonly first: string;

  private constructor(harness: Harness, first: string) {
    this.harness = harness;
    this.first = first;
  }

  static async of(...machines: readonly string[]): Promise<Pool> {
    const { harness, first } = await updatedPool(machines);
    return new Pool(harness, first);
  }

  /** A MachineConfig of the pool, which makes a target. */
  async change(role = "worker", text = "1"): Promise<string> {
    await this.harness.act(() => this.harness.config(`60-${role}`, role, { "/etc/b": text }));
    await this.harness.pass(2000);
    return (await this.harness.poolStatus(role)).target;
  }

  async pool(body: object, name = "worker"): Promise<void> {
    await this.harness.act(() => this.harness.kube.patch(MachineConfigPool, { name }, merge(body)));
    await this.harness.pass(2000);
  }

  async node(name: string, body: object): Promise<void> {
    await this.harness.act(() => this.harness.kube.patch(kubernetes.Node, { name }, merge(body)));
    await this.harness.pass(2000);
  }

  async status(name: string, ready: boolean): Promise<void> {
    const lastTransitionTime = timestampOf(this.harness.kernel.clock.now());
    const conditions = [{ type: "Ready", status: ready ? "True" : "Unknown", reason: "Kubelet", lastTransitionTime }];
    await this.harness.act(() =>
      this.harness.kube.patch(kubernetes.Node, { name }, merge({ status: { conditions } }), { subresource: "status" }),
    );
    await this.harness.pass(2000);
  }

  /** Daemons take on what they were given, until nothing is given any more. */
  async finish(...machines: readonly string[]): Promise<void> {
    for (let turn = 0; turn <= machines.length; turn += 1)
      for (const name of machines) {
        const { metadata } = await this.harness.node_(name).catch(() => ({ metadata: { annotations: {} } }));
        const has: Readonly<Record<string, string>> = metadata.annotations ?? {};
        const isDone =
          has[annotations.currentConfig] === has[annotations.desiredConfig] &&
          has[annotations.currentImage] === has[annotations.desiredImage] &&
          has[annotations.state] === "Done";
        if (isDone) continue;
        await this.harness.act(() => this.harness.finish(name));
        await this.harness.pass(2000);
      }
  }

  /** What a daemon says of its update. */
  async says(name: string, type: string, status: string, reason: string, message = ""): Promise<void> {
    const lastTransitionTime = timestampOf(this.harness.kernel.clock.now());
    const conditions = [{ type, status, reason, message, lastTransitionTime }];
    await this.harness.act(() =>
      this.harness.kube.patch(MachineConfigNode, { name }, merge({ status: { conditions } }), {
        subresource: "status",
      }),
    );
    await this.harness.pass(1000);
  }

  async refuse(name: string, config: string): Promise<void> {
    const refusals = [{ config, image: "", reason: "it did not boot", at: "2030-01-01T00:00:00Z" }];
    await this.notes(name, { [annotations.refusedTargets]: JSON.stringify(refusals) });
  }

  async notes(name: string, changes: Readonly<Record<string, string | null>>): Promise<void> {
    await this.harness.act(() =>
      this.harness.kube.patch(MachineConfigNode, { name }, merge({ metadata: { annotations: changes } })),
    );
    await this.harness.pass(2000);
  }

  /** Machines of the control plane, with the first target of their pool. */
  async controlPlane(...machines: readonly string[]): Promise<void> {
    const { harness } = this;
    await harness.act(() => harness.config("50-master", "master", { "/etc/a": "1" }));
    await harness.pass(3000);
    const { target } = await harness.poolStatus("master");
    for (const name of machines)
      await harness.act(() =>
        harness.node(name, "master", {
          [annotations.currentConfig]: target,
          [annotations.desiredConfig]: target,
          [annotations.state]: "Done",
        }),
      );
    await harness.pass(3000);
  }

  /** In place of the os-builder: the image of the pool's target is built and published. */
  async publish(letter: string, pool = "worker", source?: string): Promise<void> {
    const { harness } = this;
    const { target } = await harness.poolStatus(pool);
    const name = `${pool}-${letter}`;
    const spec = { renderedImagePushSpec: "registry.example.com/os:x" };
    await harness.act(async () => {
      if ((await harness.kube.get(MachineOSConfig, { name: pool })) === undefined)
        await harness.kube.create(MachineOSConfig, {
          apiVersion: MachineOSConfig.apiVersion,
          kind: MachineOSConfig.kind,
          metadata: {
            name: pool,
            annotations: source === undefined ? {} : { [annotations.optInSource]: source },
          },
          spec: {
            ...spec,
            machineConfigPool: { name: pool },
            imageBuilder: { imageBuilderType: "Job" },
            renderedImagePushSecret: { name: "push" },
          },
        });
      await harness.kube.create(MachineOSBuild, {
        apiVersion: MachineOSBuild.apiVersion,
        kind: MachineOSBuild.kind,
        metadata: { name, annotations: { [annotations.keyInputs]: JSON.stringify({ base: `sha256:${letter}` }) } },
        spec: { ...spec, machineConfig: { name: target }, machineOSConfig: { name: pool } },
      });
      const lastTransitionTime = timestampOf(harness.kernel.clock.now());
      const conditions = [{ type: builds.succeeded, status: "True", reason: "Ready", message: "", lastTransitionTime }];
      await harness.kube.patch(
        MachineOSBuild,
        { name },
        merge({ status: { conditions, digestedImagePushSpec: image(letter) } }),
        { subresource: "status" },
      );
      const machineOSBuild = { group: "machineconfiguration.openshift.io", resource: "machineosbuilds", name };
      await harness.kube.patch(
        MachineOSConfig,
        { name: pool },
        merge({ status: { currentImagePullSpec: image(letter), machineOSBuild } }),
        { subresource: "status" },
      );
    });
    await harness.pass(2000);
  }

  /** A pod that a budget holds on a machine whose daemon asks for its drain. */
  async held(name: string, target: string): Promise<void> {
    const { kube } = this.harness;
    const pod = { name: "web-1", namespace: "default" };
    const budget = { name: "keep-web", namespace: "default" };
    const controller = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "1", controller: true };
    await this.harness.act(async () => {
      await kube.create(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { ...pod, labels: { app: "web" }, ownerReferences: [controller] },
        spec: { nodeName: name, terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: "x" }] },
      });
      const running = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
      await kube.patch(kubernetes.Pod, pod, merge({ status: running }), { subresource: "status" });
      await kube.create(kubernetes.PodDisruptionBudget, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: budget,
        spec: { selector: { matchLabels: { app: "web" } }, minAvailable: 1 },
      });
      const full = { observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 };
      await kube.patch(kubernetes.PodDisruptionBudget, budget, merge({ status: { ...full, disruptionsAllowed: 0 } }), {
        subresource: "status",
      });
    });
    await this.node(name, {
      metadata: { annotations: { [annotations.state]: "Working", [annotations.desiredDrain]: `drain-${target}` } },
    });
  }

  /** The budget goes, so that the pods can; the drain ends, and the daemon does the rest. */
  async letGo(name: string, target: string): Promise<void> {
    await this.harness.act(() =>
      this.harness.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }),
    );
    await this.harness.pass(400_000);
    await this.finish(name);
    await this.node(name, { metadata: { annotations: { [annotations.desiredDrain]: `uncordon-${target}` } } });
  }

  /** The ClusterOperator, which no operator keeps here. */
  async clusterOperator(): Promise<void> {
    const { apiVersion, kind } = ClusterOperator;
    const metadata = { name: objects.clusterOperator };
    await this.harness.act(() => this.harness.kube.create(ClusterOperator, { apiVersion, kind, metadata, spec: {} }));
  }

  async daemonPod(
    name: string,
    ready: boolean,
    where: { namespace: string; labels: Record<string, string> },
  ): Promise<void> {
    const pod = { name: `pod-${name}`, namespace: where.namespace };
    const { kube } = this.harness;
    await this.harness.act(async () => {
      if ((await kube.get(kubernetes.Pod, pod)) === undefined) {
        await kube.apply(kubernetes.Namespace, { metadata: { name: where.namespace } }, { owner: "test" });
        await kube.create(kubernetes.Pod, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { ...pod, labels: where.labels },
          spec: { nodeName: name, containers: [{ name: "c", image: "x" }] },
        });
      }
      const lastTransitionTime = timestampOf(this.harness.kernel.clock.now());
      const conditions = [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime }];
      await kube.patch(kubernetes.Pod, pod, merge({ status: { phase: "Running", conditions } }), {
        subresource: "status",
      });
    });
    await this.harness.pass(2000);
  }
}

const daemons = { namespace, labels: { "k8s-app": objects.daemon } };
const etcd = { namespace: "kube-system", labels: { component: "etcd" } };
const cordon = (is: boolean) => ({ spec: { unschedulable: is ? true : null } });
const canary = (count: string) => ({ metadata: { annotations: { [annotations.rolloutCanary]: count } } });
/** What a daemon reports while it carries an update out. */
const working = { metadata: { annotations: { [annotations.state]: "Working" } } };

const state = (
  of: Pool,
  subject: string,
  says: readonly Step[],
  remedy: State["remedy"],
  more: Partial<State> = {},
): State => ({
  harness: of.harness,
  subject,
  says,
  remedy,
  ...more,
});

/** Why machines wait for their target. */
export const waitRows: readonly Row[] = [
  {
    reasons: ["wait/Paused", "blocker/Paused", "place/NeedsUpdate"],
    title: "a machine of a paused pool",
    async make() {
      const of = await Pool.of("w0");
      await of.pool({ spec: { paused: true } });
      await of.change();
      return state(of, "node/w0", ["set spec.paused of the pool to false"], async () => {
        await of.pool({ spec: { paused: false } });
        await of.finish("w0");
      });
    },
  },
  {
    reasons: ["wait/BudgetUsed"],
    title: "a machine behind one that somebody cordoned",
    async make() {
      const of = await Pool.of("w0", "w1");
      await of.node("w0", cordon(true));
      await of.change();
      await of.finish("w0");
      return state(of, "node/w1", ["kubectl uncordon w0"], async () => {
        await of.node("w0", cordon(false));
        await of.finish("w1");
      });
    },
  },
  {
    reasons: ["wait/MachineExcluded"],
    title: "a machine that went back from its target",
    async make() {
      const of = await Pool.of("w0", "w1");
      const target = await of.change();
      await of.refuse("w1", target);
      await of.finish("w0");
      return state(
        of,
        "pool/worker",
        [`kubectl annotate machineconfignode w1 ${annotations.refusedTargets}-`],
        async () => {
          await of.notes("w1", { [annotations.refusedTargets]: null });
          await of.finish("w1");
        },
      );
    },
  },
  {
    reasons: ["wait/TargetQuarantined", "blocker/TargetQuarantined"],
    title: "a pool whose only machine went back from the target",
    async make() {
      const of = await Pool.of("w0");
      const target = await of.change();
      await of.refuse("w0", target);
      await of.harness.act(() => of.harness.annotate("w0", { [annotations.desiredConfig]: of.first }));
      await of.harness.pass(3000);
      return state(of, "pool/worker", [annotations.quarantined], async () => {
        await of.pool({ metadata: { annotations: { [annotations.quarantined]: null } } });
        await of.finish("w0");
      });
    },
  },
  {
    reasons: ["wait/ControlPlaneBusy"],
    title: "a machine of the control plane behind another one",
    async make() {
      const of = await Pool.of();
      await of.controlPlane("m0", "m1");
      await of.change("master");
      return state(of, "node/m1", [byItself("it continues when m0 is done")], () => of.finish("m0", "m1"));
    },
  },
  {
    reasons: ["wait/ControlPlaneAway"],
    title: "a machine of the control plane while another one is out of service",
    async make() {
      const of = await Pool.of();
      await of.controlPlane("m0", "m1");
      await of.node("m0", cordon(true));
      await of.change("master");
      await of.finish("m0");
      return state(of, "node/m1", ["repair m0, or put it back into service"], async () => {
        await of.node("m0", cordon(false));
        await of.finish("m1");
      });
    },
  },
  {
    reasons: ["wait/EtcdUnhealthy"],
    title: "a machine of the control plane while a member of etcd is not ready",
    isLong: true,
    async make() {
      const of = await Pool.of();
      await of.controlPlane("m0", "m1");
      await of.daemonPod("m0", false, etcd);
      await of.change("master");
      await of.finish("m0");
      return state(of, "node/m1", ["see the etcd pod on m0"], async () => {
        await of.daemonPod("m0", true, etcd);
        await of.finish("m1");
      });
    },
  },
  {
    reasons: ["wait/ZoneBusy"],
    title: "a machine of another zone",
    async make() {
      const of = await Pool.of("w0", "w1");
      await of.node("w0", { metadata: { labels: { [labels.zone]: "a" } } });
      await of.node("w1", { metadata: { labels: { [labels.zone]: "b" } } });
      await of.pool({
        metadata: { annotations: { [annotations.oneZoneAtATime]: "true" } },
        spec: { maxUnavailable: 2 },
      });
      await of.change();
      return state(of, "node/w1", [byItself(annotations.oneZoneAtATime)], async () => {
        await of.pool({ metadata: { annotations: { [annotations.oneZoneAtATime]: null } } });
        await of.finish("w0", "w1");
      });
    },
  },
  {
    reasons: ["wait/DrainSkipped"],
    title: "a machine whose drain was given up for now",
    async make() {
      const of = await Pool.of("w0");
      await of.pool({
        metadata: {
          annotations: { [annotations.drainDeadlineSeconds]: "60", [annotations.drainAfterDeadline]: "skip" },
        },
      });
      const target = await of.change();
      await of.held("w0", target);
      await of.harness.pass(70_000);
      return state(of, "node/w0", ["remove the obstacle that held the drain"], () => of.letGo("w0", target));
    },
  },
  {
    reasons: ["place/Executing"],
    title: "a machine whose pods a disruption budget holds",
    async make() {
      const of = await Pool.of("w0");
      const target = await of.change();
      await of.held("w0", target);
      await of.harness.pass(20_000);
      return state(of, "node/w0", ["change the disruption budget that holds them"], () => of.letGo("w0", target));
    },
  },
  {
    reasons: ["wait/Canary"],
    title: "machines behind the one that goes first with a new image",
    async make() {
      const of = await Pool.of("w0", "w1");
      await of.pool({ ...canary("1"), spec: { maxUnavailable: 2 } });
      await of.publish("a");
      return state(of, "node/w1", [byItself(annotations.rolloutCanary)], async () => {
        await of.pool(canary("0"));
        await of.finish("w0", "w1");
      });
    },
  },
  {
    reasons: ["wait/CanaryFailed", "blocker/CanaryFailed"],
    title: "machines behind one that went first and failed",
    isLong: true,
    async make() {
      const of = await Pool.of("w0", "w1");
      await of.pool({ ...canary("1"), spec: { maxUnavailable: 2 } });
      await of.publish("a");
      await of.node("w0", { metadata: { annotations: { [annotations.state]: "Degraded" } } });
      return state(of, "node/w1", ["mco explain node/w0", "a new target starts over"], async () => {
        await of.change();
        await of.publish("b");
        await of.pool(canary("0"));
        await of.finish("w0", "w1");
      });
    },
  },
  {
    reasons: ["wait/WorkersFirst"],
    title: "the control plane while the first images go to the workers",
    async make() {
      const of = await Pool.of("w0");
      await of.controlPlane("m0");
      await of.publish("a", "worker", "ClusterDefault");
      await of.publish("c", "master", "ClusterDefault");
      return state(of, "node/m0", [byItself("pausing that pool lets this one go on")], async () => {
        await of.pool({ spec: { paused: true } });
        await of.finish("m0");
      });
    },
  },
];

/** Pools as a whole, and the places of machines that wait for nothing. */
export const poolRows: readonly Row[] = [
  {
    reasons: ["blocker/NotRendered"],
    title: "a pool that selects no MachineConfig",
    async make() {
      const of = await Pool.of();
      await of.harness.act(() => of.harness.pool("infra"));
      await of.harness.pass(3000);
      return state(
        of,
        "pool/infra",
        ["see the condition RenderDegraded", "correct, label, delete or make again"],
        async () => {
          await of.change("infra");
        },
      );
    },
  },
  {
    reasons: ["blocker/RenderRefused", "upgrade/RenderRefused", "kind/MachineConfigPool"],
    title: "a pool with a MachineConfig that cannot be rendered",
    async make() {
      const of = await Pool.of("w0");
      const broken = { config: { ignition: { version: "9.9.9" } } };
      await of.harness.act(() => of.harness.config("70-bad", "worker", {}, broken));
      await of.harness.pass(3000);
      return state(of, "pool/worker", ["correct, label, delete or make again what the message names"], async () => {
        await of.harness.act(() => of.harness.kube.delete(MachineConfig, { name: "70-bad" }));
        await of.harness.pass(3000);
      });
    },
  },
  {
    reasons: ["kind/MachineConfigPool"],
    title: "a pool whose registries cannot be written",
    isLong: true,
    async make() {
      const of = await Pool.of("w0");
      const { harness } = of;
      const { ImageDigestMirrorSet: sets } = openshift;
      const put = async (name: string, more: object) => {
        const spec = {
          imageDigestMirrors: [{ source: "quay.io/team", mirrors: ["mirror.example.com/team"], ...more }],
        };
        const { apiVersion, kind } = sets;
        await harness.act(() => harness.kube.create(sets, { apiVersion, kind, metadata: { name }, spec }));
      };
      await harness.act(async () => {
        for (const definition of openshiftKinds)
          await harness.kube.create(kubernetes.CustomResourceDefinition, definition);
      });
      await of.pool({ metadata: { labels: { [labels.builtInPool]: "" } } });
      await put("one", {});
      await put("other", { mirrorSourcePolicy: "NeverContactSource" });
      // The controllers ask seldom for kinds that were not there when they started.
      await harness.pass(300_000);
      const text = "correct the object and field under Registries are not written";
      return state(of, "pool/worker", [text], async () => {
        await harness.act(() => harness.kube.delete(sets, { name: "other" }));
        await harness.pass(5000);
        await of.harness.act(() => of.harness.finish("w0"));
        await harness.pass(5000);
      });
    },
  },
  {
    reasons: ["kind/MachineConfig"],
    title: "the MachineConfig that cannot be rendered",
    isLong: true,
    async make() {
      const of = await Pool.of("w0");
      const broken = { config: { ignition: { version: "9.9.9" } } };
      await of.harness.act(() => of.harness.config("70-bad", "worker", {}, broken));
      await of.harness.pass(3000);
      return state(of, "mc/70-bad", ["pool worker cannot be rendered with it: mco explain pool/worker"], async () => {
        await of.harness.act(() =>
          of.harness.config("70-bad", "worker", {}, { config: { ignition: { version: "3.4.0" } } }),
        );
        await of.harness.pass(3000);
        await of.finish("w0");
      });
    },
  },
  {
    reasons: ["kind/MachineConfig"],
    title: "a MachineConfig that no pool takes",
    async make() {
      const of = await Pool.of("w0");
      await of.harness.act(() => of.harness.config("80-lost", "nobody", { "/etc/c": "1" }));
      return state(of, "mc/80-lost", [labels.role], async () => {
        await of.harness.act(() =>
          of.harness.kube.patch(
            MachineConfig,
            { name: "80-lost" },
            merge({ metadata: { labels: { [labels.role]: "worker" } } }),
          ),
        );
        await of.harness.pass(3000);
        await of.finish("w0");
      });
    },
  },
  {
    reasons: ["blocker/Irreconcilable"],
    title: "a pool whose target running machines cannot follow",
    async make() {
      const of = await Pool.of("w0");
      const storage = { luks: [{ name: "data", device: "/dev/sdb" }] };
      const locked = { config: { ignition: { version: "3.4.0" }, storage } };
      await of.harness.act(() => of.harness.config("70-luks", "worker", {}, locked));
      await of.harness.pass(3000);
      return state(of, "pool/worker", ["take the change back, or replace the machines"], async () => {
        await of.harness.act(() => of.harness.kube.delete(MachineConfig, { name: "70-luks" }));
        await of.harness.pass(3000);
        await of.finish("w0");
      });
    },
  },
  {
    reasons: ["upgrade/PausedPool"],
    title: "an upgrade behind a paused pool that it needs",
    async make() {
      const of = await Pool.of("w0");
      await of.clusterOperator();
      const { requiredForUpgrade } = labels;
      await of.pool({ metadata: { labels: { [requiredForUpgrade]: "" } }, spec: { paused: true } });
      return state(of, "co", ["set spec.paused of the pool to false"], () => of.pool({ spec: { paused: false } }));
    },
  },
  {
    reasons: ["upgrade/DegradedPool"],
    title: "an upgrade behind a machine that failed",
    async make() {
      const of = await Pool.of("w0");
      await of.clusterOperator();
      await of.harness.act(() => of.harness.annotate("w0", { [annotations.state]: "Degraded" }));
      return state(of, "co", ["mco explain node/w0"], () => of.finish("w0"));
    },
  },
  {
    reasons: ["place/Unmanaged", "kind/MachineConfigNode"],
    title: "a machine in no pool",
    async make() {
      const of = await Pool.of("w0");
      await of.node("w0", { metadata: { labels: { [labels.workerRole]: null } } });
      return state(of, "machineconfignode/w0", [`kubectl label node w0 ${labels.workerRole}=`], () =>
        of.node("w0", { metadata: { labels: { [labels.workerRole]: "" } } }),
      );
    },
  },
  {
    reasons: ["place/Unmanaged"],
    title: "a machine that two custom pools select",
    isLong: true,
    async make() {
      const of = await Pool.of("w0");
      for (const name of ["one", "two"])
        await of.harness.act(() => of.harness.pool(name, { nodeSelector: { matchLabels: { [name]: "" } } }));
      await of.node("w0", { metadata: { labels: { one: "", two: "" } } });
      return state(of, "node/w0", ["take a label away that only one of"], () =>
        of.node("w0", { metadata: { labels: { one: null, two: null } } }),
      );
    },
  },
  {
    reasons: ["place/Joining"],
    title: "a machine that has nothing yet",
    async make() {
      const of = await Pool.of();
      await of.harness.act(() => of.harness.node("w0", "worker"));
      await of.harness.pass(2000);
      await of.harness.act(() => of.harness.annotate("w0", { [annotations.desiredConfig]: null }));
      return state(
        of,
        "node/w0",
        [byItself("its daemon takes on what the machine has, or its first target")],
        async () => {
          await of.harness.pass(3000);
          await of.finish("w0");
        },
      );
    },
  },
  ...(
    [
      ["Preparing", working, undefined],
      ["PostAction", { metadata: { annotations: { [annotations.postConfigAction]: "Rebooting" } } }, undefined],
      ["Resuming", working, [phases.rebootedNode, "True", "Rebooted"]],
      ["Completing", { metadata: { annotations: { [annotations.desiredDrain]: "uncordon-x" } } }, undefined],
    ] as const
  ).map(([place, body, said]): Row => ({
    reasons: [`place/${place}`],
    title: `a machine in its update: ${place}`,
    ...(place === "Resuming" ? {} : { isLong: true }),
    async make() {
      const of = await Pool.of("w0");
      await of.change();
      if (place === "Completing") await of.finish("w0");
      if (said !== undefined) await of.says("w0", ...said);
      // As its daemon does; the drain controller answers the end of a drain at once.
      await of.harness.act(() => of.harness.kube.patch(kubernetes.Node, { name: "w0" }, merge(body)));
      return state(of, "node/w0", [byItself("it continues on its own")], async () => {
        await of.harness.act(() => of.harness.annotate("w0", { [annotations.postConfigAction]: null }));
        await of.finish("w0");
        await of.harness.pass(3000);
      });
    },
  })),
  {
    reasons: ["place/Lost", "kind/MachineConfigNode"],
    title: "a machine whose kubelet does not report",
    async make() {
      const of = await Pool.of("w0");
      await of.status("w0", false);
      return state(
        of,
        "node/w0",
        ["kubectl delete node w0"],
        () => of.harness.act(() => of.harness.kube.delete(kubernetes.Node, { name: "w0" })),
        { isGone: true },
      );
    },
  },
  {
    reasons: ["place/Silent"],
    title: "a machine whose daemon is not ready",
    async make() {
      const of = await Pool.of("w0");
      await of.daemonPod("w0", false, daemons);
      await of.harness.pass(600_000);
      const command = `kubectl get pods -n ${namespace} -o wide --field-selector spec.nodeName=w0`;
      return state(of, "node/w0", [command], () => of.daemonPod("w0", true, daemons));
    },
  },
  {
    reasons: ["place/Leaving"],
    title: "a Node that is being deleted",
    async make() {
      const of = await Pool.of("w0");
      await of.node("w0", { metadata: { finalizers: ["example.com/keep"] } });
      await of.harness.act(() => of.harness.kube.delete(kubernetes.Node, { name: "w0" }));
      return state(
        of,
        "node/w0",
        [byItself("those who hold it by a finalizer let it go")],
        () => of.node("w0", { metadata: { finalizers: null } }),
        { isGone: true },
      );
    },
  },
  {
    reasons: ["place/Degraded"],
    title: "a machine that says no more than that it failed",
    async make() {
      const of = await Pool.of("w0");
      await of.harness.act(() => of.harness.annotate("w0", { [annotations.state]: "Degraded" }));
      return state(of, "pool/worker", ["repair w0: mco explain node/w0"], () => of.finish("w0"));
    },
  },
];
