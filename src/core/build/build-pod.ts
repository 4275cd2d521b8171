import { hostPaths } from "../../api/names.ts";
import type { BuildIsolation } from "./build-settings.ts";

/**
 * The most that the pod of a build may have. The builder makes its Jobs of this, and the API server refuses others: the
 * operator's policy of the namespace of builds is made of it, too.
 */

/** Folder of a node below which each pool has a folder with the layers of its earlier builds. */
export const buildCacheFolder = `${hostPaths.buildCaches}/cache`;

/** Capabilities of the containers that run buildah, by how the pod is kept from its machine. */
export const buildCapabilities: Readonly<Record<BuildIsolation, readonly string[]>> = {
  userNamespace: [
    "SYS_ADMIN",
    // Those of a step (containers/common pkg/config, main).
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
  ],
  hostUsers: ["SETUID", "SETGID"],
};
