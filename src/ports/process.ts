export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** File to which stdout and stderr are appended; absent: they are discarded. */
  readonly logFile?: string;
  /** Receives stdout and stderr as they arrive, instead of a file. */
  readonly onOutput?: (text: string) => void;
  /** `true`: holds a pipe open as file descriptor 3, so that the child notices when this process exits. */
  readonly lifeline?: boolean;
  /** `true`: the child leads its own process group, and signals reach the whole group. */
  readonly group?: boolean;
}

export interface Exit {
  /** `undefined` when a signal ended it. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
}

export interface Child {
  readonly pid: number;
  /** Resolves when the process has ended, for any reason, and all of its output was delivered. */
  readonly exited: Promise<Exit>;
  /** Signalling a process that has ended is not an error. */
  kill(signal: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
}

export interface RunResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Starting programs. */
export interface Processes {
  spawn(command: string, args: readonly string[], options?: SpawnOptions): Child;
  /** Runs a program to its end with bounded output (1 MiB each); aborting kills it. */
  run(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { readonly input?: string; readonly signal: AbortSignal },
  ): Promise<RunResult>;
}
