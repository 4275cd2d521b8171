import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Gives this process and all that it starts a folder of its own for state: clusters of tests are not recorded among those
 * of the user who runs them.
 */
export function useOwnState(): void {
  const folder = mkdtempSync(join(tmpdir(), "mco-state-"));
  process.env["XDG_STATE_HOME"] = folder;
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
}
