import type { InstallLink } from "../core/config/install-links.ts";
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
