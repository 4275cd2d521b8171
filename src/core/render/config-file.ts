import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { decodeContents, textOf } from "../../ignition/data-url.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";

/** The text of a file that a MachineConfig holds itself; `undefined`: it holds no such file, or no text. */
export function fileText(config: Pick<MachineConfig, "spec"> | undefined, path: string): string | undefined {
  if (config === undefined) return undefined;
  const ignition = ignitionOf(config);
  if (ignition?.verdict !== "valid") return undefined;
  const file = ignition.config.storage?.files?.findLast((one) => one.path === path);
  const contents = file?.contents === undefined ? undefined : decodeContents(file.contents);
  return contents?.verdict === "decoded" ? textOf(contents.bytes) : undefined;
}
