import { basename } from "node:path";
import * as fs from "node:fs/promises";
import { isAbsent, orUndefined } from "../../ports/absent-file.ts";
import { type DiskHold, heldInside } from "./held-disk.ts";
import { readRegular } from "./read-regular.ts";

/**
 * Auth files in the order in which they count (spec of the reference: /run/ostree/auth.json leads to the merged pull
 * secret when that is valid, else to the kubelet's; openshift/machine-config-operator pkg/daemon/update.go (main)).
 */
export const authFiles = [
  "/run/ostree/auth.json",
  "/etc/mco/internal-registry-pull-secret.json",
  "/var/lib/kubelet/config.json",
] as const;

const isJson = (text: string): boolean => {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
};

/**
 * What a machine says about pulling images. `locate` follows links to their end, inside of the machine; what it found is read
 * as `hold` holds it, so that a link that comes after that leads nowhere.
 */
export async function pullSettings(locate: (path: string) => Promise<string>, hold: DiskHold): Promise<PullSettings> {
  const file = async (path: string): Promise<string | undefined> => {
    const real = await locate(path);
    try {
      const { contents } = await hold(real, (at) => readRegular(at, { name: real }));
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(contents);
    } catch (error) {
      if (isAbsent(error) || (error as NodeJS.ErrnoException).code === "ELOOP") return undefined;
      throw error;
    }
  };
  let auth: string | undefined;
  for (const path of authFiles) {
    const text = auth === undefined ? await file(path) : undefined;
    if (text !== undefined && isJson(text)) auth = text;
  }
  return {
    policy: await file("/etc/containers/policy.json"),
    auth,
    registries: await file("/etc/containers/registries.conf"),
    async certificates(host) {
      const folder = `/etc/docker/certs.d/${basename(host)}`;
      const names = (await orUndefined(heldInside(hold)(await locate(folder), (at) => fs.readdir(at)))) ?? [];
      const texts = await Promise.all(
        names
          .filter((name) => name.endsWith(".crt"))
          .sort()
          .map((name) => file(`${folder}/${name}`)),
      );
      return texts.filter((text) => text !== undefined);
    },
    file,
  };
}

/** What a machine says about pulling images: the texts of its own files, `undefined` where it has none. */
export interface PullSettings {
  /** `/etc/containers/policy.json` */
  readonly policy: string | undefined;
  /** The merged auth file: `/run/ostree/auth.json`, else `/var/lib/kubelet/config.json`. */
  readonly auth: string | undefined;
  /** `/etc/containers/registries.conf` */
  readonly registries: string | undefined;
  /** PEM texts of `/etc/docker/certs.d/<host>/*.crt`. */
  certificates(host: string): Promise<readonly string[]>;
  /** Text of another file that one of these names, such as a key of policy.json; `undefined` when it cannot be read. */
  file(path: string): Promise<string | undefined>;
}
