import { hostPaths } from "../api/names.ts";
import type { Host } from "../host/host.ts";
import type { Logger } from "../ports/logger.ts";

/**
 * Has root alone reach the caches of image builds: they hold set-user-ID files of images, which on the machine belong to
 * its own root, and a kubelet makes their folder for everybody. Containers have them mounted, and need no way to them. A
 * machine on which that fails is updated all the same.
 */
export async function closeBuildCaches(host: Host, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await host.files.makeFolder(hostPaths.buildCaches, { mode: 0o700, uid: 0, gid: 0 }, signal);
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ error, folder: hostPaths.buildCaches }, "users of the machine may reach the caches of image builds");
  }
}
