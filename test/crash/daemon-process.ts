/**
 * A daemon as a process of its own, on a machine in a folder: `daemon-process URL DIRECTORY NODE IMAGES`. It ends with
 * its standard input.
 */
import { join } from "node:path";
import { daemonController } from "../../src/daemon/daemon-controller.ts";
import { openNodeJournal } from "../../src/daemon/machine-books.ts";
import { askMachine } from "../../src/host/directory/control.ts";
import { directoryHost } from "../../src/host/directory/directory-host.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { jsonLogger, systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { treePath } from "./subjects.ts";
import { clusterConfigs } from "../support/cluster-configs.ts";

const [server = "", directory = "", nodeName = "", images = ""] = process.argv.slice(2);
const ending = new AbortController();
process.stdin.once("close", () => process.exit(0)).resume();

const log = jsonLogger({ component: "daemon", node: nodeName, level: "info", pretty: false });
const ports = { clock: systemClock, random: systemRandom, log };
const transport = httpsTransport({
  connection: { server },
  clock: systemClock,
  files: systemFiles,
  processes: systemProcesses,
  environment: {},
});
const kube = createKubeClient({
  transport: transport.exchange,
  clock: systemClock,
  random: systemRandom,
  userAgent: "daemon",
});
const events = createEventRecorder({ ...ports, kube, component: "machineconfigdaemon", host: nodeName });
const host = directoryHost({
  directory,
  images: { treeOf: async (image) => treePath(images, image), fetch: async () => undefined },
  requestReboot: async (because, signal) =>
    void (await askMachine(join(directory, "control.sock"), "reboot", because, signal)),
});
const { journal, past } = await openNodeJournal({ ...ports, host, nodeName, kube }, ending.signal);
await runControllers(
  [daemonController({ host, nodeName, configs: clusterConfigs, past })],
  { ...ports, journal, kube, events, coalesceMs: 5 },
  ending.signal,
);
