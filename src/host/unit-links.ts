import { type InstallLink, unitFolder } from "../core/config/install-links.ts";
import type { HostFiles } from "./host.ts";

/** Makes links; none is no write. */
export async function makeLinks(
  files: Pick<HostFiles, "write">,
  links: readonly InstallLink[],
  signal: AbortSignal,
): Promise<void> {
  if (links.length === 0) return;
  await files.write(
    links.map(({ path, target }) => ({ path, entry: { kind: "link", target } as const })),
    signal,
  );
}

/**
 * Every link below the folder of units but those that mask a unit.
 *
 * @param listTree all paths of files and links below a folder of the machine.
 */
export async function readUnitLinks(
  files: Pick<HostFiles, "read">,
  listTree: (folder: string) => Promise<readonly string[]>,
  signal: AbortSignal,
): Promise<readonly InstallLink[]> {
  const links: InstallLink[] = [];
  for (const path of await listTree(unitFolder)) {
    const entry = await files.read(path, signal);
    if (entry?.kind === "link" && entry.target !== "/dev/null") links.push({ path, target: entry.target });
  }
  return links;
}
