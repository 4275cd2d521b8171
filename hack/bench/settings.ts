import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { Summary } from "./statistics.ts";

export interface SettingsMetrics {
  readonly rows: readonly SettingsRow[];
}

/** One case, in a process of its own, fifty times. */
export interface SettingsRow {
  readonly what: string;
  /** Of processors, in all threads: what else the machine does counts little. */
  readonly milliseconds: Summary;
  /** Most memory that the process ever had, MiB. */
  readonly peak: number;
}

const program = join(import.meta.dirname, "decide-settings.ts");
const answer = (...args: readonly string[]): unknown =>
  JSON.parse(execFileSync(process.execPath, [program, ...args], { encoding: "utf8" }));

/** What objects with settings cost: from the object to the files of machines. */
export function measureSettings(): SettingsMetrics {
  const names = answer() as readonly string[];
  return { rows: names.map((what) => ({ what, ...(answer(what) as Omit<SettingsRow, "what">) })) };
}
