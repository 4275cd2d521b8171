import { type InstallLink, namesOfLink, unitFolder } from "../core/config/install-links.ts";
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

/** Links by the units that they name, kept while links are made and removed. */
export class LinksByUnit {
  readonly #byPath = new Map<string, InstallLink>();
  readonly #byUnit = new Map<string, Map<string, InstallLink>>();

  constructor(links: readonly InstallLink[]) {
    for (const link of links) this.put(link);
  }

  /** Notes a link that was made, instead of what was at its path. */
  put(link: InstallLink): void {
    this.#remove(link.path);
    this.#byPath.set(link.path, link);
    for (const unit of namesOfLink(link)) {
      const links = this.#byUnit.get(unit) ?? new Map<string, InstallLink>();
      this.#byUnit.set(unit, links.set(link.path, link));
    }
  }

  /** Forgets the links that name one of these units. @returns what it forgot. */
  take(units: readonly string[]): readonly InstallLink[] {
    return units.flatMap((unit) => {
      const links = [...(this.#byUnit.get(unit)?.values() ?? [])];
      for (const { path } of links) this.#remove(path);
      return links;
    });
  }

  #remove(path: string): void {
    const link = this.#byPath.get(path);
    this.#byPath.delete(path);
    for (const unit of link === undefined ? [] : namesOfLink(link)) this.#byUnit.get(unit)?.delete(path);
  }
}
