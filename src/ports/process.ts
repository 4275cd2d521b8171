export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** File that stdout and stderr are appended to; absent: they are thrown away. */
  readonly logFile?: string;
  /** Told what it writes to stdout and stderr, as it comes; in place of a file. */
  readonly onOutput?: (text: string) => void;
  /** `true`: a pipe is held open as file descriptor 3, so that the child can tell when we are gone. */
  readonly lifeline?: boolean;
  /** `true`: the child leads a process group of its own, and signals reach the whole group. */
  readonly group?: boolean;
}

export interface Exit {
  /** `undefined` when a signal ended it. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
}

export interface Child {
  readonly pid: number;
  /** Resolves when the process has ended, however it ended, and all that it wrote was told. */
  readonly exited: Promise<Exit>;
  /** Signalling what has ended is not an error. */
  kill(signal: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
}

export interface RunResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Starting programs. */
export interface Processes {
  spawn(command: string, args: readonly string[], options?: SpawnOptions): Child;
  /** Runs to its end with bounded output (1 MiB each); aborting kills it. */
  run(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { readonly input?: string; readonly signal: AbortSignal },
  ): Promise<RunResult>;
}
