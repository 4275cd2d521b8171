import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { decodeContents, textOf } from "../../ignition/data-url.ts";
import { heldText, mostStoredTextBytes, oversizedText } from "../../ignition/held-contents.ts";
import type { Resource } from "../../ignition/types.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";

type Config = Pick<MachineConfig, "spec"> | undefined;

/** The contents of the last file of a path. */
function contentsAt(config: Config, path: string): Resource | undefined {
  const ignition = config === undefined ? undefined : ignitionOf(config);
  if (ignition?.verdict !== "valid") return undefined;
  return ignition.config.storage?.files?.findLast((one) => one.path === path)?.contents;
}

/**
 * The text of a file that a MachineConfig holds itself, to be parsed; `undefined`: it holds no such file, or no text.
 * `oversizedText` stands for one with more characters.
 */
export function fileText(config: Config, path: string, mostCharacters: number): string | undefined {
  const contents = contentsAt(config, path);
  if (contents === undefined) return undefined;
  const held = heldText(contents, mostCharacters);
  if (held.verdict === "text") return held.text;
  return held.because === "tooLarge" ? oversizedText : undefined;
}

/** The whole text of such a file, to be written again as it is: none is longer than what an object holds. */
export function wholeFileText(config: Config, path: string): string | undefined {
  const contents = contentsAt(config, path);
  const decoded = contents === undefined ? undefined : decodeContents(contents, { maxBytes: mostStoredTextBytes });
  return decoded?.verdict === "decoded" ? textOf(decoded.bytes) : undefined;
}
