import type { KubeObject } from "./contract.ts";

/**
 * Events are one kind with two spellings: v1 (stored) and events.k8s.io/v1. Pairs of v1 field and events.k8s.io/v1
 * field: `k8s.io/kubernetes pkg/apis/events/v1/conversion.go (master)`.
 */
const spellings: readonly (readonly [core: string, events: string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

/**
 * The same event, spelled as `apiVersion` does; other kinds only get the other apiVersion. Shares its parts with
 * `object`.
 */
export function inVersion(object: KubeObject, apiVersion: string): KubeObject {
  if (object.apiVersion === apiVersion) return object;
  const { apiVersion: from, kind, metadata, ...rest } = object;
  if (kind !== "Event" || (from !== "v1" && apiVersion !== "v1")) return { apiVersion, kind, metadata, ...rest };
  const renamed: Record<string, unknown> = {};
  const names = new Map(spellings.map(([core, events]) => (apiVersion === "v1" ? [events, core] : [core, events])));
  for (const [field, value] of Object.entries(rest)) renamed[names.get(field) ?? field] = value;
  return { apiVersion, kind, metadata, ...renamed };
}
