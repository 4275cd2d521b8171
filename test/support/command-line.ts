import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, vi } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";

/** What a command line printed, and its exit code or the code of the error that ended it. */
export interface CommandOutput {
  readonly code: number | string;
  readonly out: string;
  readonly err: string;
}

/** Commands run in this process, and a folder of each test's own that is gone after it. */
export function commandLine(prefix: string): {
  readonly folder: string;
  mco(name: string, ...args: string[]): Promise<CommandOutput>;
} {
  let folder = "";
  let written = { out: "", err: "" };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), prefix));
    written = { out: "", err: "" };
    vi.spyOn(process.stdout, "write").mockImplementation((text) => ((written.out += String(text)), true));
    vi.spyOn(process.stderr, "write").mockImplementation((text) => ((written.err += String(text)), true));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    async mco(name, ...args) {
      written = { out: "", err: "" };
      const command = commands[name];
      if (command === undefined) throw new Error(name);
      const { run } = await command.load();
      const code = await run(args).catch((error: unknown) => String((error as { code?: string }).code));
      return { code, ...written };
    },
  };
}

/** The spec of a MachineConfig with files. */
export const filesSpec = (contents: Readonly<Record<string, string>>, mode = 0o644) => ({
  config: {
    ignition: { version: "3.4.0" },
    storage: {
      files: Object.entries(contents).map(([path, text]) => ({
        path,
        mode,
        contents: { source: encodeDataUrl(text) },
      })),
    },
  },
});
