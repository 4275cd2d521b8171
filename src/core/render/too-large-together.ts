import type { MachineConfigInput } from "../config/validate-machine-config.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** Bytes of JSON that etcd takes in one request by default. */
export const maxRenderedBytes = 1_572_864;

/**
 * Characters of the MachineConfigs that are merged into one. Later ones may replace what earlier ones bring, so that
 * they may have several times what the API server's store takes of the result.
 */
export const mostMerged = 4 * maxRenderedBytes;

const mostNamed = 3;

/** Members that are too large to be merged: why, and the largest of them. */
export interface TooLargeTogether {
  readonly reason: string;
  readonly member: string;
}

/**
 * Why the MachineConfigs of a pool are not merged: they are too large together. They are measured before any of them is
 * parsed, each once for its object.
 */
export function tooLargeTogether(members: readonly MachineConfigInput[]): TooLargeTogether | undefined {
  const total = members.reduce((sum, member) => sum + sizeOf(member), 0);
  if (total <= mostMerged) return undefined;
  const largest = members.toSorted((a, b) => sizeOf(b) - sizeOf(a));
  const names = largest.slice(0, mostNamed).map((member) => `${member.metadata.name} with ${sizeOf(member)}`);
  return {
    reason: `the MachineConfigs of the pool have ${total} characters of JSON together, of which ${mostMerged} are merged, and the API server's store takes ${maxRenderedBytes} bytes of the rendered config: the largest are ${names.join(", ")}`,
    member: largest[0]?.metadata.name ?? "",
  };
}

const measured = readOncePerObject(charactersOf);

/** About how many characters of JSON a member has to be merged. */
const sizeOf = ({ spec }: MachineConfigInput): number => (spec === undefined ? 0 : measured(spec));

/** About how many characters of JSON a value has, however deep it nests. No text is made of it. */
function charactersOf(value: object): number {
  let characters = 0;
  const left: unknown[] = [value];
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    if (typeof part === "string") characters += part.length + 2;
    else if (typeof part !== "object" || part === null) characters += (JSON.stringify(part) ?? "").length;
    else if (Array.isArray(part)) {
      characters += part.length + 1;
      for (const item of part as readonly unknown[]) left.push(item ?? null);
    } else {
      characters += 2;
      for (const [key, item] of Object.entries(part)) {
        characters += key.length + 4;
        left.push(item ?? null);
      }
    }
  }
  return characters;
}
