import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { type ImagePair, samePair, withImage } from "./image-target.ts";
import { certificatePaths } from "../certificates/machine-certificates.ts";
import { type NodeConfig, nodeConfigOf } from "../config/node-config.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";

/** A configuration as an object, and as this machine applies it. */
export interface Wanted {
  readonly machineConfig: MachineConfig;
  readonly config: NodeConfig;
}

export type ReadConfig =
  | { readonly verdict: "read"; readonly wanted: Wanted }
  | { readonly verdict: "refused"; readonly reason: string };

/** Decoded configurations by object, so that a pass over an unchanged machine parses nothing. */
const decoded = new WeakMap<MachineConfig, ReadConfig>();
/** The same with an image, the last one that each was read with. */
const decodedWith = new WeakMap<MachineConfig, { readonly pair: ImagePair; readonly result: ReadConfig }>();

/** A configuration as applied by a machine that boots this image instead of the configuration's. */
export function readTarget(machineConfig: MachineConfig, pair: ImagePair | undefined): ReadConfig {
  const plain = readConfig(machineConfig);
  if (pair === undefined || plain.verdict === "refused") return plain;
  const known = decodedWith.get(machineConfig);
  if (known !== undefined && samePair(known.pair, pair)) return known.result;
  const result: ReadConfig = {
    verdict: "read",
    wanted: { machineConfig, config: withImage(plain.wanted.config, pair) },
  };
  decodedWith.set(machineConfig, { pair, result });
  return result;
}

export function readConfig(machineConfig: MachineConfig): ReadConfig {
  const known = decoded.get(machineConfig);
  if (known !== undefined) return known;
  const result = ((): ReadConfig => {
    const ignition = ignitionOf(machineConfig);
    if (ignition?.verdict === "invalid") {
      const [problem] = ignition.problems;
      return {
        verdict: "refused",
        reason: `${machineConfig.metadata.name}: spec.config${problem?.path === "" ? "" : `.${problem?.path}`}: ${problem?.reason}`,
      };
    }
    const config = nodeConfigOf(machineConfig, ignition?.config);
    if (config.verdict === "refused") return { verdict: "refused", reason: `${config.path}: ${config.reason}` };
    // Certificates that are renewed separately are as old in a configuration as the configuration itself.
    const entries = new Map([...config.config.entries].filter(([path]) => !certificatePaths.has(path)));
    return {
      verdict: "read",
      wanted: {
        machineConfig,
        config: entries.size === config.config.entries.size ? config.config : { ...config.config, entries },
      },
    };
  })();
  decoded.set(machineConfig, result);
  return result;
}
