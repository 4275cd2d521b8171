import { type ErrorCode, McoError, errorCodes } from "../../src/api/errors.ts";
import { type Node, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { annotations, hostPaths, labels, objects } from "../../src/api/names.ts";
import { timestampOf } from "../../src/api/schema/object.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import type { Host } from "../../src/host/host.ts";
import { factsOf } from "../../src/core/pool/pool-queries.ts";
import { explainNode } from "../../src/core/preview/explain.ts";
import { ImageHarness, desiredImage, imageNumber, imageOf, stock } from "../support/image-harness.ts";
import { type Content, MachineHarness } from "../support/machine-harness.ts";
import type { Row, State, TextRow } from "./row.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const one: Content = { files: { "/etc/app.conf": "one" } };
const two: Content = { files: { "/etc/app.conf": "two" } };
const otherSystem: Content = { ...two, spec: { osImageURL: "os@sha256:2" } };
const policies = {
  files: [{ path: "/etc/reload", actions: [{ type: "Reload" as const, reload: { serviceName: "crio.service" } }] }],
};
const node = "node/worker-0";
const tryAgain = `kubectl annotate machineconfignode worker-0 ${annotations.refusedTargets}-`;
const takeBack = "or take the MachineConfig back that brought it";

/** The kubelet of the harness's machine reports. */
async function kubelet(harness: MachineHarness): Promise<void> {
  const lastTransitionTime = timestampOf(harness.kernel.clock.now());
  const conditions = [{ type: "Ready", status: "True", lastTransitionTime }];
  await harness.act(() =>
    harness.kube.patch(kubernetes.Node, { name: harness.name }, merge({ status: { conditions } }), {
      subresource: "status",
    }),
  );
}

/** A machine in service with its first configuration. */
async function inService(content: Content = one): Promise<MachineHarness> {
  const harness = await MachineHarness.make({ policies });
  await kubelet(harness);
  await harness.updatedTo("rendered-1", content);
  return harness;
}

/** The daemon starts again, with what a row makes of its machine. */
function restart(harness: MachineHarness, tamper: (host: Host) => Host): void {
  harness.tamper = tamper;
  harness.kill();
  harness.start();
}

/** Gives the machine its second configuration, and waits until it is degraded. */
async function degraded(harness: MachineHarness, content: Content = two): Promise<void> {
  await harness.config("rendered-2", content);
  await harness.desire("rendered-2");
  await harness.untilState("Degraded");
}

const state = (
  harness: MachineHarness,
  says: readonly string[],
  remedy: State["remedy"],
  more: Partial<State> = {},
): State => ({
  harness,
  subject: node,
  says,
  remedy,
  ...more,
});

/** No staged system is finalised while this holds. */
const notFinalised =
  (harness: MachineHarness, while_: () => boolean) =>
  (host: Host): Host => ({
    ...host,
    os: {
      ...host.os,
      stage: async (...args) => {
        if (while_()) await harness.host.failToFinalise?.("error: the disk is broken");
        await host.os.stage(...args);
      },
    },
  });

const untry = (harness: MachineHarness) =>
  harness.act(() =>
    harness.kube.patch(
      MachineConfigNode,
      { name: harness.name },
      merge({ metadata: { annotations: { [annotations.refusedTargets]: null } } }),
    ),
  );

/** A machine that boots an image of its configuration. */
async function inImageMode(): Promise<ImageHarness> {
  const made = await ImageHarness.make();
  await kubelet(made.harness);
  await made.harness.updatedTo("rendered-1", one);
  await made.roll("rendered-1i", one, 1);
  await made.untilHas("rendered-1i", 1);
  return made;
}

/** An image that the annotations of the Node name wrongly, and the reason that the daemon reports. */
const misnamed = (
  reason: "ConflictingImageAnnotations" | "ImageNotDigest" | "ImageContentMismatch",
  says: string,
  named: Readonly<Record<string, string | null>>,
): Row => ({
  reasons: [`degraded/${reason}`],
  title: `a machine whose image is named wrongly: ${reason}`,
  ...(reason === "ImageNotDigest" ? {} : { isLong: true }),
  async make() {
    const made = await ImageHarness.make();
    const { harness } = made;
    await kubelet(harness);
    await harness.updatedTo("rendered-1", one);
    made.images[imageNumber(2)] = imageOf(two, "full");
    await harness.config("rendered-2", two);
    await harness.annotate({ [annotations.desiredConfig]: "rendered-2", ...named });
    await harness.untilState("Degraded");
    await harness.pass(60_000);
    return state(harness, [says], async () => {
      await made.give("rendered-2", 2);
      await made.untilHas("rendered-2", 2);
    });
  },
});

/** What a daemon reports of a machine that cannot go on. */
export const machineRows: readonly Row[] = [
  {
    reasons: ["degraded/UpdateFailed"],
    title: "a machine whose disk takes no file",
    async make() {
      const harness = await inService();
      restart(harness, (host) => ({
        ...host,
        files: {
          ...host.files,
          write: (writes, until) =>
            writes.some(({ path }) => path === "/etc/app.conf")
              ? Promise.reject(new Error("no space left on device"))
              : host.files.write(writes, until),
        },
      }));
      await degraded(harness);
      return state(harness, ["a new target is tried at once", takeBack], async () => {
        await harness.desire("rendered-1");
        await harness.untilDone("rendered-1");
      });
    },
  },
  {
    reasons: ["degraded/ServiceFailed"],
    title: "a machine with a service that does not reload",
    async make() {
      const harness = await inService();
      let breaks = true;
      restart(harness, (host) => ({
        ...host,
        units: {
          ...host.units,
          reload: (name, until) =>
            breaks ? Promise.reject(new McoError("MCO_SERVICE_FAILED", { name })) : host.units.reload(name, until),
        },
      }));
      await degraded(harness, { files: { ...one.files, "/etc/reload": "two" } });
      return state(harness, ["read the service's log on the machine (journalctl -u NAME)", takeBack], async () => {
        // What the log says is corrected on the machine: the daemon tries again by itself.
        breaks = false;
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/ConfigNotDelivered"],
    title: "a machine that no config server gives its target",
    async make() {
      const harness = await inService();
      const { configs } = harness;
      harness.configs = (config) => Promise.reject(new McoError("MCO_CONFIG_NOT_DELIVERED", { config }));
      await degraded(harness);
      return state(harness, ["Look at the pods of machine-config-server"], async () => {
        harness.configs = configs;
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/ImagePullFailed"],
    title: "a machine that cannot fetch its image",
    async make() {
      const harness = await inService();
      let away = true;
      restart(harness, (host) => ({
        ...host,
        os: {
          ...host.os,
          prefetch: async (image, until) => {
            if (away) throw new McoError("MCO_IMAGE_UNREACHABLE", { image, retryable: true });
            await host.os.prefetch(image, until);
          },
        },
      }));
      await degraded(harness, otherSystem);
      return state(harness, ["the registry, the pull secret, or the network", takeBack], async () => {
        away = false;
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/TargetRefused"],
    title: "a machine that went back from its target",
    async make() {
      const harness = await inService();
      let breaks = true;
      restart(
        harness,
        notFinalised(harness, () => breaks),
      );
      await degraded(harness, otherSystem);
      await harness.pass(300_000);
      return state(harness, [tryAgain, takeBack], async () => {
        breaks = false;
        await untry(harness);
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/BootFailed"],
    title: "a machine without a former system that does not boot its target",
    async make() {
      const harness = await MachineHarness.make();
      await kubelet(harness);
      await harness.config("rendered-1", otherSystem);
      let breaks = true;
      harness.tamper = notFinalised(harness, () => breaks);
      await harness.desire("rendered-1");
      harness.start();
      await harness.untilState("Degraded");
      return state(harness, ["look at the machine's console", takeBack], async () => {
        breaks = false;
        await harness.config("rendered-2", two);
        await harness.desire("rendered-2");
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/BootUndoes"],
    title: "a machine that writes a file of its target again at each boot",
    async make() {
      const harness = await inService();
      harness.atBoot = () => harness.put("/etc/app.conf", "of a service");
      await degraded(harness);
      return state(harness, ["Find what writes these paths", "mco blame PATH", takeBack], async () => {
        harness.atBoot = () => Promise.resolve();
        await harness.put(hostPaths.force, "");
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/SettleFailed"],
    title: "a machine whose image is not what it should be",
    async make() {
      const made = await ImageHarness.make();
      const { harness } = made;
      await kubelet(harness);
      await harness.updatedTo("rendered-1", one);
      await made.roll("rendered-2", two, 2);
      made.images[imageNumber(2)] = imageOf({ files: { "/etc/app.conf": "something else" } }, "full");
      restart(harness, (host) => host);
      await harness.untilState("Degraded");
      await harness.pass(60_000);
      return state(harness, ["the systemd journal of machine-config-settle"], async () => {
        made.images[imageNumber(3)] = imageOf(two, "full");
        await made.give("rendered-2", 3);
        await made.untilHas("rendered-2", 3);
      });
    },
  },
  {
    reasons: ["degraded/RevertFailed"],
    title: "a machine that could not be brought back to the stock system",
    isLong: true,
    async make() {
      const made = await inImageMode();
      const { harness } = made;
      await harness.config("rendered-2", two);
      let breaks = true;
      harness.contentHost = (host) => ({
        ...host,
        files: {
          ...host.files,
          write: async (writes, until) => {
            const { booted } = await host.os.status(until);
            if (breaks && booted.image === stock && writes.some(({ path }) => path === "/etc/app.conf"))
              throw new Error("no space left");
            await host.files.write(writes, until);
          },
        },
      });
      await made.give("rendered-2", undefined);
      await harness.untilState("Degraded");
      await harness.pass(300_000);
      return state(harness, [tryAgain], async () => {
        breaks = false;
        await untry(harness);
        await made.untilHas("rendered-2", undefined);
      });
    },
  },
  misnamed("ConflictingImageAnnotations", "Make desiredImage and desiredOSimage equal", {
    ...desiredImage(imageNumber(2)),
    [annotations.desiredOSImage]: imageNumber(1),
  }),
  misnamed("ImageNotDigest", "Name the image as repository@sha256:…", desiredImage("registry.example/pool:latest")),
  misnamed(
    "ImageContentMismatch",
    "correct the annotation desiredImageContent",
    desiredImage(imageNumber(2), "os-only"),
  ),
  {
    reasons: ["degraded/CurrentConfigMissing"],
    title: "a machine whose configuration is nowhere",
    async make() {
      const harness = await MachineHarness.make();
      await kubelet(harness);
      await harness.config("rendered-2", two);
      await harness.annotate({
        [annotations.currentConfig]: "rendered-1",
        [annotations.desiredConfig]: "rendered-2",
        [annotations.state]: "Done",
      });
      harness.start();
      await harness.untilState("Degraded");
      return state(harness, ["Bring the MachineConfig back"], async () => {
        await harness.config("rendered-1", {});
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/CurrentConfigMissing"],
    title: "a machine whose configuration is nowhere, by force",
    isLong: true,
    async make() {
      const harness = await MachineHarness.make();
      await kubelet(harness);
      await harness.config("rendered-2", two);
      await harness.annotate({
        [annotations.currentConfig]: "rendered-1",
        [annotations.desiredConfig]: "rendered-2",
        [annotations.state]: "Done",
      });
      harness.start();
      await harness.untilState("Degraded");
      return state(harness, [`create ${hostPaths.force} on the machine`], async () => {
        await harness.put(hostPaths.force, "");
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/WrittenByNewerVersion"],
    title: "a machine that a newer daemon has written to",
    async make() {
      const harness = await MachineHarness.make();
      await kubelet(harness);
      await harness.config("rendered-1", one);
      await harness.host.ledger.write("ledger.json", JSON.stringify({ v: 3 }), new AbortController().signal);
      await harness.desire("rendered-1");
      harness.start();
      await harness.untilState("Degraded");
      // There is no newer version to run.
      return state(harness, ["Bring the daemon to that version, or newer"], "outside");
    },
  },
  {
    reasons: ["degraded/PoliciesNotMerged"],
    title: "a machine that waits for policies which no operator has merged",
    async make() {
      const harness = await inService();
      const key = { name: objects.machineConfiguration };
      const more = { files: [{ path: "/etc/app.conf", actions: [{ type: "None" as const }] }] };
      await harness.act(() =>
        harness.kube.patch(MachineConfiguration, key, merge({ spec: { nodeDisruptionPolicy: more } })),
      );
      await degraded(harness);
      return state(harness, ["mco explain co/machine-config"], async () => {
        await harness.act(async () => {
          const { generation } = (await harness.kube.get(MachineConfiguration, key))?.metadata ?? {};
          const status = {
            observedGeneration: generation,
            nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(more) },
          };
          await harness.kube.patch(MachineConfiguration, key, merge({ status }), { subresource: "status" });
        });
        await harness.untilDone("rendered-2");
      });
    },
  },
  {
    reasons: ["degraded/Irreconcilable", "place/Unreconcilable"],
    title: "a machine that cannot follow its target",
    async make() {
      const harness = await inService();
      await harness.config("rendered-2", {
        ignition: { storage: { disks: [{ device: "/dev/sda", wipeTable: true }] } },
      });
      await harness.desire("rendered-2");
      await harness.untilState("Unreconcilable");
      return state(harness, ["or take the change back, or replace the machine with a new one"], async () => {
        await harness.desire("rendered-1");
        await harness.untilDone("rendered-1");
      });
    },
  },
  {
    reasons: ["degraded/ConfigDrift", "place/Degraded"],
    title: "a machine with a file that somebody changed, and changes back",
    async make() {
      const harness = await inService();
      await harness.put("/etc/app.conf", "somebody's");
      restart(harness, (host) => host);
      await harness.untilState("Degraded");
      return state(harness, ["Undo the change on the machine"], async () => {
        await harness.put("/etc/app.conf", "one");
        await harness.untilDone("rendered-1");
      });
    },
  },
  {
    reasons: ["degraded/ConfigDrift"],
    title: "a machine with a file that somebody changed, by force",
    isLong: true,
    async make() {
      const harness = await inService();
      await harness.put("/etc/app.conf", "somebody's");
      restart(harness, (host) => host);
      await harness.untilState("Degraded");
      return state(harness, [`create ${hostPaths.force} on it`], async () => {
        await harness.put(hostPaths.force, "");
        await harness.untilDone("rendered-1");
      });
    },
  },
];

/** A machine whose daemon reports a failure by its code. */
function failedWith(code: ErrorCode) {
  const spec = {
    machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
    nodeSelector: { matchLabels: { [labels.workerRole]: "" } },
  };
  const { message } = new McoError(code, { path: "/etc/x" });
  const failed: Node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "worker-0",
      labels: { [labels.workerRole]: "" },
      annotations: { [annotations.state]: "Degraded", [annotations.reason]: message },
    },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
  const pools = [
    { apiVersion: MachineConfigPool.apiVersion, kind: "MachineConfigPool", metadata: { name: "worker" }, spec },
  ];
  const facts = factsOf({ pools: pools as MachineConfigPool[], nodes: [failed], machineConfigNodes: [] }, 0);
  const explanation = explainNode(facts, "worker-0");
  if (explanation === undefined) throw new Error("there is no such node");
  return explanation;
}

/** Most codes end a command of people, which prints the same remedy; what ends them lies outside of the cluster. */
export const codeTexts: readonly TextRow[] = (Object.keys(errorCodes) as ErrorCode[]).map((code) => ({
  reasons: [`code/${code}`],
  title: code,
  explain: () => failedWith(code),
  says: [errorCodes[code].remedy],
}));
