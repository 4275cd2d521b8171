import { md5 } from "@noble/hashes/legacy.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import type { MachineConfigSpec } from "../../api/kinds/machine-config.ts";
import { yamlForHash } from "./yaml-for-hash.ts";

/** Must never change. Source: openshift/machine-config-operator pkg/controller/render/hash.go (main). */
const salt = Uint8Array.from([
  16, 124, 206, 228, 139, 56, 175, 175, 79, 229, 134, 118, 157, 154, 211, 110, 25, 93, 47, 253, 172, 106, 37, 7, 174,
  13, 160, 185, 110, 17, 87, 52, 219, 131, 12, 206, 218, 141, 116, 135, 188, 181, 192, 151, 233, 62, 126, 165, 64, 83,
  179, 119, 15, 168, 208, 197, 146, 107, 58, 227, 133, 188, 238, 26, 33, 26, 235, 202, 32, 173, 31, 234, 41, 144, 148,
  79, 6, 206, 23, 22,
]);
const salted = md5.create().update(salt);

export type RenderedName =
  | { readonly verdict: "named"; readonly name: string }
  | { readonly verdict: "refused"; readonly reason: string };

/**
 * The name of a rendered config: the pool's name and a hash of the merged spec, nothing else. Equal specs give equal
 * names on every cluster and in every release.
 */
export function renderedName(pool: string, spec: Required<MachineConfigSpec>): RenderedName {
  const yaml = yamlForHash(spec);
  if (yaml.verdict === "refused") return yaml;
  const digest: Uint8Array = salted.clone().update(utf8ToBytes(yaml.text)).digest();
  return {
    verdict: "named",
    name: `rendered-${pool}-${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`,
  };
}
