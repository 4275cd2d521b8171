import { isRecord } from "../../ignition/shape.ts";

/** Reads a JSON document that one program wrote for another, maybe of another version: an object with `v: 1`. */
export function readVersionOne(
  text: string,
): { readonly read: Readonly<Record<string, unknown>> } | { readonly problem: string } {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return { problem: "it is no JSON" };
  }
  if (!isRecord(read)) return { problem: "it is no object" };
  if (read["v"] !== 1)
    return { problem: `it has version ${JSON.stringify(read["v"])}, and this program reads version 1` };
  return { read };
}
