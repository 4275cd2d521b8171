import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "golden");

/** The output of a session on a real kube-apiserver; `""` if it was never recorded. */
export function goldenText(session: string): string {
  try {
    return readFileSync(join(folder, `${session}.txt`), "utf8");
  } catch {
    return "";
  }
}

/** `RECORD=1` writes the real server's output, to be reviewed like any change. */
export const recording = process.env["RECORD"] === "1";

export function record(session: string, text: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${session}.txt`), text);
}
