/**
 * Machines of the control-plane measurement: `machines-process.ts KUBECONFIG COUNT`. Memory hosts without any work of
 * their own, each with the daemon's own code and a kubelet that says when the machine goes down and comes up. A line is
 * printed once all run; ends when its standard input does.
 */
import { createInterface } from "node:readline";
import { type Node, kubernetes } from "../../../src/api/foreign/kubernetes.ts";
import { connect } from "../../../src/cli/connect.ts";
import { daemonController } from "../../../src/daemon/daemon-controller.ts";
import { memoryHost } from "../../../test/support/hosts/memory-host.ts";
import { runControllers } from "../../../src/kube/controller.ts";
import { createEventRecorder } from "../../../src/kube/event-recorder.ts";
import { jsonLogger, systemClock, systemRandom } from "../../../src/ports/node/index.ts";
import { memoryJournal } from "../../../src/ports/journal.ts";
import { machineName, osImage } from "./cluster.ts";
import { clusterConfigs } from "../../../test/support/cluster-configs.ts";

const [kubeconfig = "", count = ""] = process.argv.slice(2);
const daemons = await connect({ kubeconfig, component: "daemon" });
const kubelets = await connect({ kubeconfig, component: "kubelet" });
const log = jsonLogger({ component: "daemons", level: "warn", pretty: false });
const images = {
  [osImage]: {
    etc: { "/etc/chrony.conf": "vendor" },
    usr: { "/usr/lib/systemd/system/crio.service": "[Install]\nWantedBy=multi-user.target\n" },
  },
};

async function report(name: string, bootID: string, ready: boolean): Promise<void> {
  const now = new Date().toISOString();
  const condition = (type: string, status: string, reason: string) => ({
    type,
    status,
    reason,
    message: "",
    lastTransitionTime: now,
    lastHeartbeatTime: now,
  });
  const conditions = [
    condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    condition("Ready", ready ? "True" : "False", ready ? "KubeletReady" : "KubeletNotReady"),
  ];
  await kubelets.kube.patch(
    kubernetes.Node,
    { name },
    { type: "merge", body: { status: { conditions, nodeInfo: { bootID } } } },
    { subresource: "status", owner: "kubelet" },
  );
}

function machine(name: string): void {
  let process = new AbortController();
  const host = memoryHost({
    images,
    image: osImage,
    random: systemRandom,
    onReboot: () => void reboot().catch((error: unknown) => log.error({ error, name }, "cannot reboot")),
  });

  function startDaemon(): void {
    process = new AbortController();
    const { kube } = daemons;
    const ports = { clock: systemClock, random: systemRandom, log, journal: memoryJournal(20) };
    const events = createEventRecorder({ ...ports, kube, component: "machineconfigdaemon", host: name });
    void runControllers(
      [daemonController({ host, nodeName: name, configs: clusterConfigs })],
      { ...ports, kube: kube.within(process.signal), events, coalesceMs: 50 },
      process.signal,
    ).catch((error: unknown) => log.error({ error, name }, "a daemon ended"));
  }

  async function reboot(): Promise<void> {
    process.abort(new Error("the machine goes down"));
    await report(name, (await host.os.status(new AbortController().signal)).bootId, false);
    const { bootId } = await host.boot({ orderly: true });
    await report(name, bootId, true);
    startDaemon();
  }

  startDaemon();
}

async function join(index: number): Promise<void> {
  const name = machineName(index);
  const node: Node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node-role.kubernetes.io/worker": "",
        "topology.kubernetes.io/zone": `zone-${index % 3}`,
      },
    },
    spec: {},
  };
  await kubelets.kube.create(kubernetes.Node, node);
  await report(name, "first", true);
}

const numbers = Array.from({ length: Number(count) }, (_, index) => index);
/** A few at a time: a thousand handshakes at once only wait for each other. */
const lane = async () => {
  for (let index = numbers.shift(); index !== undefined; index = numbers.shift()) {
    await join(index);
    machine(machineName(index));
  }
};
await Promise.all(Array.from({ length: 16 }, lane));
process.stdout.write(`${JSON.stringify({ running: Number(count) })}\n`);
for await (const _ of createInterface(process.stdin)) process.stdout.write("{}\n");
process.exit(0);
