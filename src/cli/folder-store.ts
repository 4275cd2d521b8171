import { join } from "node:path";
import { systemFiles } from "../ports/node/index.ts";
import type { LineStore } from "../ports/journal.ts";

/** Keeps lines in one file of a folder, even if others write to the folder. */
export const lineFolder = (folder: string, component: string): LineStore => ({
  async append(boot, lines) {
    await systemFiles.makeDirectory(folder);
    await systemFiles.append(join(folder, `${component}-${boot}.jsonl`), lines.map((line) => `${line}\n`).join(""), {
      mode: 0o600,
    });
  },
});
