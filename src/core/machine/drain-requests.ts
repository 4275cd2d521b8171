import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";

/** What a daemon asks the drain controller for, and for which configuration. */
export interface DrainRequest {
  readonly verb: "drain" | "uncordon";
  readonly config: string;
}

/** Takes a machine out of service for a configuration; the drain controller answers with the same text. */
export const drainRequest = (config: string): string => `drain-${config}`;

/** Puts a machine back into service; the drain controller answers with the same text. */
export const uncordonRequest = (config: string): string => `uncordon-${config}`;

/** Reads a request or an answer; `undefined` where the text is neither. */
export function parseDrainRequest(text: string | undefined): DrainRequest | undefined {
  const verb = text?.split("-", 1)[0];
  return text !== undefined && (verb === "drain" || verb === "uncordon")
    ? { verb, config: text.slice(verb.length + 1) }
    : undefined;
}

/** A drain counts while the node is still out of service: an administrator may have uncordoned it since. */
export function isDrainedFor(node: Pick<Node, "metadata" | "spec">, config: string): boolean {
  const has = node.metadata.annotations ?? {};
  const request = drainRequest(config);
  return (
    has[annotations.desiredDrain] === request &&
    has[annotations.lastAppliedDrain] === request &&
    node.spec?.unschedulable === true
  );
}

/** The annotation that asks for the machine to be put back into service; empty where no drain was asked for. */
export const drainTakenBack = (
  has: Readonly<Record<string, string>>,
  config: string,
): Readonly<Record<string, string>> =>
  parseDrainRequest(has[annotations.desiredDrain])?.verb === "drain"
    ? { [annotations.desiredDrain]: uncordonRequest(config) }
    : {};

/** Whether the machine is out of service for its daemon, or not yet back: an uncordon waits for its answer. */
export function isOutOfService(has: Readonly<Record<string, string>>): boolean {
  const request = has[annotations.desiredDrain] ?? "";
  return (
    parseDrainRequest(request)?.verb === "drain" || (request !== "" && request !== has[annotations.lastAppliedDrain])
  );
}
