import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const script = join(import.meta.dirname, "../../hack/monitoring");

/** The folder with Prometheus' programs; `undefined`: `hack/monitoring build` has not brought them. */
export function prometheusFolder(): string | undefined {
  const { status, stdout } = spawnSync(script, ["path"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

/** Runs one of them: its exit code, and all that it printed. */
export async function askPrometheusTool(
  program: string,
  words: readonly string[],
  input = "",
): Promise<{ readonly code: number; readonly text: string }> {
  const folder = prometheusFolder();
  if (folder === undefined) throw new Error("hack/monitoring build has not brought the programs");
  const running = promisify(execFile)(join(folder, program), [...words]);
  running.child.stdin?.end(input);
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, text: `${stdout}${stderr}` }),
    (error: { readonly code?: number; readonly stdout?: string; readonly stderr?: string }) => ({
      code: error.code ?? 1,
      text: `${error.stdout ?? ""}${error.stderr ?? ""}`,
    }),
  );
}
