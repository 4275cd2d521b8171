import type { HostEntry } from "./host.ts";

export function sameEntry(a: HostEntry | undefined, b: HostEntry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.kind === "link" || b.kind === "link") return a.kind === "link" && b.kind === "link" && a.target === b.target;
  if (a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid) return false;
  if (a.kind === "folder" || b.kind === "folder") return a.kind === b.kind;
  return a.contents.length === b.contents.length && a.contents.every((byte, index) => byte === b.contents[index]);
}
