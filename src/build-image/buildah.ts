import type { Clock } from "../ports/clock.ts";
import type { Processes } from "../ports/process.ts";

export interface BuildahOptions {
  readonly processes: Processes;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string>>;
  readonly print: (line: string) => void;
}

export interface BuildahRun {
  /** 0 to 255; a signal counts as 128 and its number, as in a shell. */
  readonly exitCode: number;
  /** The end of what it printed. */
  readonly text: string;
}

/** Where a store of buildah lies, and how. */
export interface BuildahStore {
  readonly folder: string;
  readonly driver: "overlay" | "vfs";
}

/** How long it has to put its working containers away. */
const stopGraceMs = 4000;
/** Of what it prints that is kept for telling a failure. */
const keptCharacters = 65_536;
const maxLineCharacters = 16_384;
const signalNumbers: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

/**
 * Without a mount of the store itself, which would outlive the build and keep its folder from being removed
 * (containers-storage.conf(5)).
 */
export const storeArguments = ({ folder, driver }: BuildahStore): readonly string[] => [
  "--root",
  `${folder}/root`,
  "--runroot",
  `${folder}/run`,
  "--storage-driver",
  driver,
  ...(driver === "overlay" ? ["--storage-opt", "overlay.skip_mount_home=true"] : []),
];

/**
 * Runs buildah to its end, by argument vector. It stays in our process group, so killing the whole group kills its
 * steps too. On termination, buildah is signalled first and has some seconds to clean up.
 *
 * @param onLine receives each line before it is printed.
 */
export async function runBuildah(
  args: readonly string[],
  { processes, clock, environment, print }: BuildahOptions,
  signal: AbortSignal,
  onLine: (line: string) => void = () => undefined,
): Promise<BuildahRun> {
  signal.throwIfAborted();
  let text = "";
  let line = "";
  const told = (whole: string) => {
    onLine(whole);
    print(whole);
  };
  const child = processes.spawn("buildah", args, {
    env: environment,
    onOutput: (part) => {
      text = `${text}${part}`.slice(-keptCharacters);
      const lines = `${line}${part}`.split("\n");
      line = (lines.pop() ?? "").slice(-maxLineCharacters);
      for (const whole of lines) told(whole.slice(0, maxLineCharacters));
    },
  });
  let patience: { cancel(): void } | undefined;
  const onAbort = () => {
    child.kill("SIGTERM");
    const deadline = clock.deadline(stopGraceMs);
    deadline.signal.addEventListener("abort", () => child.kill("SIGKILL"), { once: true });
    patience = deadline;
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const { code, signal: killedBy } = await child.exited;
    signal.throwIfAborted();
    if (line !== "") told(line);
    return { exitCode: code ?? 128 + (signalNumbers[killedBy ?? ""] ?? 9), text };
  } finally {
    patience?.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}

/** `1.28.2` as numbers; undefined where there is no buildah. */
export async function buildahVersion(
  options: BuildahOptions,
  signal: AbortSignal,
): Promise<readonly [major: number, minor: number] | undefined> {
  try {
    const { text } = await runBuildah(["--version"], options, signal);
    const [, major, minor] = /buildah version (\d+)\.(\d+)/.exec(text) ?? [];
    return major === undefined ? undefined : [Number(major), Number(minor)];
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

const isAtLeast = ([major, minor]: readonly [number, number], [wantedMajor, wantedMinor]: readonly [number, number]) =>
  major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);

/** Here-documents came with this one. */
export const readsHeredocs = (version: readonly [number, number]): boolean => isAtLeast(version, [1, 33]);

/** How everything in an image gets one age, whenever it is made. */
export const timeArguments = (version: readonly [number, number], epoch: number): readonly string[] =>
  isAtLeast(version, [1, 41])
    ? ["--source-date-epoch", String(epoch), "--rewrite-timestamp"]
    : ["--timestamp", String(epoch)];

const stepLine = /^(?:\[\d+\/\d+\] )?STEP \d+\/\d+: (\S+)\s*(.*)$/;

/**
 * Follows buildah's progress messages through the instructions of the Containerfile, in their order: buildah leaves out
 * unneeded stages, and shows names of stages as images.
 *
 * @returns gives the step of a line, or `undefined` for one that begins no instruction.
 */
export function stepFollower(
  steps: readonly { readonly instruction: string; readonly step: string }[],
): (line: string) => string | undefined {
  const plain = (text: string) => text.replaceAll(/[\s\\]+/g, " ").trim();
  let at = 0;
  return (line) => {
    const [, name, rest = ""] = stepLine.exec(line) ?? [];
    if (name === undefined) return undefined;
    const isIt = ({ instruction }: { readonly instruction: string }) =>
      name === "FROM" ? instruction.startsWith("FROM ") : plain(instruction) === plain(`${name} ${rest}`);
    const found = steps.findIndex((step, index) => index >= at && isIt(step));
    if (found < 0) return steps[at]?.step;
    at = found + 1;
    return steps[found]?.step;
  };
}
