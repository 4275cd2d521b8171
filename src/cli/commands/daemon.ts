import { readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { existsSync } from "node:fs";
import { McoError } from "../../api/errors.ts";
import { daemonController } from "../../daemon/daemon-controller.ts";
import { askMachine } from "../../host/directory/control.ts";
import { directoryHost } from "../../host/directory/directory-host.ts";
import type { Host } from "../../host/host.ts";
import { runControllers } from "../../kube/controller.ts";
import { readArguments, usageError } from "../arguments.ts";
import { podPath } from "../connect.ts";
import { imageTrees } from "../image-trees.ts";
import { runComponent } from "../run-process.ts";

/** The driver for what lies at the root mount: a machine in a folder is known by the state file beside its root file system. */
async function hostAt(rootMount: string): Promise<Host> {
  const root = await readlink(rootMount).catch(() => rootMount);
  const directory = dirname(root);
  if (!existsSync(join(directory, "state.json"))) throw new McoError("MCO_HOST_COMMAND_FAILED", { rootMount, problem: "this is not a machine that any driver knows" });
  return directoryHost({
    directory,
    images: imageTrees(join(directory, "..", "..", "os")),
    requestReboot: async (because, signal) => void (await askMachine(join(directory, "control.sock"), "reboot", because, signal)),
  });
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { "node-name": { type: "string" }, "root-mount": { type: "string", default: "/rootfs" }, kubeconfig: { type: "string" } }, { positionals: true });
  if (positionals[0] !== "start") throw usageError("the daemon knows one verb: start");
  const nodeName = values["node-name"] ?? process.env["NODE_NAME"];
  if (nodeName === undefined || nodeName === "") throw usageError("--node-name or NODE_NAME is required");
  return runComponent({ component: "daemon", node: nodeName, kubeconfig: values.kubeconfig, reporter: "machineconfigdaemon" }, async (ports, signal) => {
    const host = await hostAt(podPath(values["root-mount"]));
    await runControllers([daemonController({ host, nodeName })], { ...ports, coalesceMs: 50 }, signal);
  });
}
