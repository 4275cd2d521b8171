import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { fileText } from "../render/config-file.ts";
import { generatedFiles } from "../render/generated-config.ts";
import { readLookaside } from "./lookaside-files.ts";
import { isNamespacePolicy, namespaceOfPolicy, sigstorePath } from "./registries-config.ts";
import type { PoliciesInForce } from "./uncertain-places.ts";

/**
 * The policies of namespaces that the machines of a pool have.
 *
 * @param present the MachineConfig with the pool's registries, as the controller wrote it.
 */
export function policiesInForce(present: MachineConfig): PoliciesInForce {
  const paths = generatedFiles(present).map(({ path }) => path);
  return {
    scopes: new Map(
      paths
        .filter(isNamespacePolicy)
        .map((path) => [namespaceOfPolicy(path), scopesIn(fileText(present, path))] as const),
    ),
    places: new Set(readLookaside(fileText(present, sigstorePath) ?? "").places),
  };
}

/** The scopes of the transport `docker` in a policy.json; none where somebody else has written another text. */
function scopesIn(text: string | undefined): ReadonlySet<string> {
  try {
    const policy = JSON.parse(text ?? "{}") as { readonly transports?: { readonly docker?: object } } | null;
    return new Set(Object.keys(policy?.transports?.docker ?? {}));
  } catch {
    return new Set();
  }
}
