import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { isRecord } from "../../ignition/shape.ts";
import { mostStoredTextBytes } from "../../ignition/held-contents.ts";
import { fileText } from "../render/config-file.ts";
import { generatedFiles } from "../render/generated-config.ts";
import { readLookaside } from "./lookaside-files.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";
import { isNamespacePolicy, namespaceOfPolicy, sigstorePath } from "./registries-config.ts";
import type { PoliciesInForce } from "./uncertain-places.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** The policies of namespaces that machines of a pool have, or the file that keeps them from being known. */
export type InForceReading =
  | { readonly verdict: "read"; readonly inForce: PoliciesInForce }
  | { readonly verdict: "unread"; readonly problem: ObjectProblem };

/**
 * Reads the policies of namespaces that the machines of a pool have, once per object: a pool keeps its own for as long as any
 * place is uncertain. A file that cannot be read never counts as one without policies.
 *
 * @param present the MachineConfig with the pool's registries, as the controller wrote it.
 */
export const policiesInForce = readOncePerObject(readInForce);

function readInForce(present: MachineConfig): InForceReading {
  const scopes = new Map<string, ReadonlySet<string>>();
  let places: readonly string[] = [];
  for (const { path } of generatedFiles(present)) {
    if (!isNamespacePolicy(path) && path !== sigstorePath) continue;
    const text = fileText(present, path, mostStoredTextBytes);
    const names = text === undefined ? undefined : path === sigstorePath ? placesIn(text) : scopesIn(text);
    if (names === undefined) return { verdict: "unread", problem: unreadFile(present, path) };
    if (path === sigstorePath) places = names;
    else scopes.set(namespaceOfPolicy(path), new Set(names));
  }
  return { verdict: "read", inForce: { scopes, places: new Set(places) } };
}

const unreadFile = ({ metadata }: MachineConfig, path: string): ObjectProblem => ({
  object: `MachineConfig/${metadata.name}`,
  path,
  reason:
    "is not as it was written, so that the policies of namespaces that machines have are not known; they keep all their registries while MachineConfigs bring files of /etc/containers/registries.d that are not read",
  remedy: `correct those files, or take ${path} out of the MachineConfig: machines then have no policy of it until those are corrected`,
});

const placesIn = (text: string): readonly string[] | undefined => {
  const { places, uncertain, fault } = readLookaside(text);
  return uncertain === undefined && fault === undefined ? places : undefined;
};

/** The scopes of the transport `docker` in a policy.json. */
function scopesIn(text: string): readonly string[] | undefined {
  try {
    const policy: unknown = JSON.parse(text);
    const transports = isRecord(policy) ? (policy["transports"] ?? {}) : undefined;
    const docker = isRecord(transports) ? (transports["docker"] ?? {}) : undefined;
    return isRecord(docker) ? Object.keys(docker) : undefined;
  } catch {
    return undefined;
  }
}
