import { existsSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { McoError } from "../api/errors.ts";
import { askMachine } from "../host/directory/control.ts";
import { directoryHost, imagesInUse } from "../host/directory/directory-host.ts";
import type { Host } from "../host/host.ts";
import { rpmOstreeHost } from "../host/rpm-ostree/rpm-ostree-host.ts";
import { redactText } from "../core/text/redact.ts";
import { jsonLogger, systemClock, systemProcesses, systemRandom } from "../ports/node/index.ts";
import { imageTrees } from "./image-trees.ts";

/** Time limit for applying the image's content at the daemon's request. */
const settlePatienceMs = 120_000;

/**
 * The driver for what lies at the root mount: a machine in a folder is known by the state file beside its root file
 * system, a real one by the files of a running Linux system. Whether ostree booted that one, its driver finds out.
 */
export async function hostAt(rootMount: string): Promise<Host> {
  // A volume is a link to the machine's root file system, which is a link itself.
  const directory = [rootMount, await readlink(rootMount).catch(() => rootMount)]
    .map((path) => dirname(path))
    .find((folder) => existsSync(join(folder, "state.json")));
  if (directory !== undefined) {
    const host: Host = directoryHost({
      directory,
      settle: async () => {
        const { applyImageContent: settleMachine } = await import("../daemon/apply-image-content.ts");
        const signal = systemClock.deadline(settlePatienceMs).signal;
        const outcome = await settleMachine(
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
