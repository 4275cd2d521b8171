import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";

/** A daemon's request to the drain controller, and its configuration. */
export interface DrainRequest {
  readonly verb: "drain" | "uncordon";
  readonly config: string;
}

/** Takes a machine out of service for a configuration; the drain controller answers with the same text. */
export const drainRequest = (config: string): string => `drain-${config}`;

/** Puts a machine back into service; the drain controller answers with the same text. */
export const uncordonRequest = (config: string): string => `uncordon-${config}`;

/** Reads a request or an answer; `undefined` if the text is neither. */
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

/** The annotation that requests an uncordon; empty if no drain was requested. */
export const withdrawnDrain = (
  has: Readonly<Record<string, string>>,
  config: string,
): Readonly<Record<string, string>> =>
  parseDrainRequest(has[annotations.desiredDrain])?.verb === "drain"
    ? { [annotations.desiredDrain]: uncordonRequest(config) }
    : {};

/** Whether the machine is drained for its daemon, or its uncordon is not answered yet. */
export function isDrainedForDaemon(has: Readonly<Record<string, string>>): boolean {
  const request = has[annotations.desiredDrain];
  const verb = parseDrainRequest(request)?.verb;
  return verb === "drain" || (verb === "uncordon" && request !== has[annotations.lastAppliedDrain]);
}
