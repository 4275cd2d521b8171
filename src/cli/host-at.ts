import { existsSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { McoError } from "../api/errors.ts";
import { askMachine } from "../host/directory/control.ts";
import { directoryHost, imagesInUse } from "../host/directory/directory-host.ts";
import { directoryPodImages, podImageFolder } from "../host/directory/pod-images.ts";
import type { Host } from "../host/host.ts";
import type { PodImages } from "../host/pod-images.ts";
import { rpmOstreePodImages } from "../host/rpm-ostree/pod-images.ts";
import { rpmOstreeHost } from "../host/rpm-ostree/rpm-ostree-host.ts";
import { redactText } from "../core/text/redact.ts";
import { jsonLogger, systemClock, systemProcesses, systemRandom } from "../ports/node/index.ts";
import { imageFolder } from "./image-folder.ts";
import { imageTrees } from "./image-trees.ts";

/** The folder of a machine in a folder; `undefined` for a real one. */
async function machineFolder(rootMount: string): Promise<string | undefined> {
  // A volume is a link to the machine's root file system, which is a link itself.
  return [rootMount, await readlink(rootMount).catch(() => rootMount)]
    .map((path) => dirname(path))
    .find((folder) => existsSync(join(folder, "state.json")));
}

/** The images of pods on the machine at the root mount, whose files `host` writes. */
export async function podImagesAt(rootMount: string, host: Host): Promise<PodImages> {
  const directory = await machineFolder(rootMount);
  return directory === undefined
    ? rpmOstreePodImages({
        root: rootMount,
        processes: systemProcesses,
        clock: systemClock,
        architecture: process.arch,
        files: host.files,
      })
    : directoryPodImages({ directory, folder: imageFolder(podImageFolder(directory)) });
}

/** Time limit for applying the image's content at the daemon's request. */
const applyPatienceMs = 120_000;

/**
 * The driver for the system at the root mount: a machine in a folder is known by the state file beside its root file
 * system, a real one by the files of a running Linux system. The driver of a real machine finds out whether ostree
 * booted it.
 */
export async function hostAt(rootMount: string): Promise<Host> {
  const directory = await machineFolder(rootMount);
  if (directory !== undefined) {
    const host: Host = directoryHost({
      directory,
      clock: systemClock,
      applyImageContent: async () => {
        const { applyImageContent: applyContent } = await import("../daemon/apply-image-content.ts");
        const signal = systemClock.deadline(applyPatienceMs).signal;
        const outcome = await applyContent(
          {
            host,
            clock: systemClock,
            random: systemRandom,
            log: jsonLogger({ component: "settle", level: () => "info", pretty: false, redact: redactText }),
          },
          signal,
        );
        if (outcome.verdict === "failed")
          throw new McoError("MCO_SETTLE_FAILED", { path: outcome.path, cause: outcome.cause });
      },
      images: imageTrees(join(directory, "..", "..", "os"), { inUse: () => imagesInUse(dirname(directory)) }),
      requestReboot: async (because, signal) =>
        void (await askMachine(join(directory, "control.sock"), "reboot", because, signal)),
    });
    return host;
  }
  if (
    !existsSync(join(rootMount, "usr/lib/os-release")) ||
    !existsSync(join(rootMount, "proc/sys/kernel/random/boot_id"))
  )
    throw new McoError("MCO_HOST_COMMAND_FAILED", {
      rootMount,
      problem: "this is not a machine that any driver knows",
    });
  return rpmOstreeHost({
    root: rootMount,
    processes: systemProcesses,
    clock: systemClock,
    random: systemRandom,
    architecture: process.arch,
  });
}
