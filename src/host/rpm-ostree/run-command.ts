import { type ErrorCode, McoError } from "../../api/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Processes, RunResult } from "../../ports/process.ts";

/**
 * How long a command may take before it is killed. The reference has no limit for any of these (pkg/daemon/update.go
 * (main)).
 */
export const deadlinesMs = {
  /** Answers from what is known: status, show, rpm -q. */
  query: 60_000,
  /** One question to a registry. */
  inspect: 60_000,
  /**
   * A change of units: systemd itself gives up on a start after 90 s (systemd-system.conf(5), DefaultTimeoutStartSec).
   */
  unit: 300_000,
  /** A transaction of rpm-ostree: resolves packages and writes a deployment. */
  transaction: 1_800_000,
  /** Gigabytes over a slow line. */
  pull: 3_600_000,
} as const;

export interface CommandOptions {
  readonly kind: keyof typeof deadlinesMs;
  /** For what must not stand on a command line. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface HostCommands {
  /**
   * Runs a program of the machine to its end, whatever that is. Rejects when it does not end in time, or cannot be
   * started.
   */
  run(words: readonly string[], options: CommandOptions): Promise<RunResult>;
  /** The same for one that must succeed. @returns what it printed. */
  must(words: readonly string[], options: CommandOptions): Promise<string>;
}

/**
 * What the reference's daemon calls itself towards rpm-ostreed, and words that tools print in, whatever the pod says.
 */
const environment = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
  RPMOSTREE_CLIENT_ID: "machine-config-operator",
};

/**
 * Programs of a machine whose root file system lies at `root`, by chroot(1): what rpm-ostree, systemctl and journalctl
 * need of the host are sockets and files below it, and unlike entering the namespaces of process 1 it works in a pod
 * that does not see the host's processes.
 */
export function hostCommands({
  processes,
  clock,
  root,
}: {
  readonly processes: Processes;
  readonly clock: Clock;
  readonly root: string;
}): HostCommands {
  async function run(
    words: readonly string[],
    { kind, input, environment: more, signal }: CommandOptions,
  ): Promise<RunResult> {
    const [command = "", ...args] = root === "/" ? words : ["chroot", root, ...words];
    const deadline = clock.deadline(deadlinesMs[kind], signal);
    try {
      return await processes.run(command, args, {
        env: { ...environment, ...more },
        group: true,
        signal: deadline.signal,
        ...(input === undefined ? {} : { input }),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw new McoError(
        "MCO_HOST_COMMAND_FAILED",
        {
          command: named(words),
          problem: deadline.signal.aborted ? `it did not end within ${deadlinesMs[kind]} ms` : "it could not be run",
          retryable: deadline.signal.aborted,
        },
        { cause: error },
      );
    } finally {
      deadline.cancel();
    }
  }
  return {
    run,
    async must(words, options) {
      const result = await run(words, options);
      if (result.code !== 0) throw commandFailure(words, result);
      return result.stdout;
    },
  };
}

const named = (words: readonly string[]) => words.join(" ").slice(0, 300);

/**
 * rpm-ostree does one thing at a time, and says so (coreos/rpm-ostree src/daemon/rpmostreed-transaction.cxx (main)).
 */
const isBusy = (stderr: string) => /transaction in progress/i.test(stderr);

export function commandFailure(
  words: readonly string[],
  result: RunResult,
  code: ErrorCode = "MCO_HOST_COMMAND_FAILED",
  facts: Readonly<Record<string, unknown>> = {},
): McoError {
  return new McoError(code, {
    command: named(words),
    exitCode: result.code,
    ...(result.signal === undefined ? {} : { killedBy: result.signal }),
    stderrTail: redacted(result.stderr.trim()).slice(-tailLength),
    retryable: isBusy(result.stderr),
    ...facts,
  });
}

const tailLength = 2048;

/** What tools print of credentials, should they: in addresses, headers, JSON, and password hashes (crypt(5)). */
export const redacted = (text: string): string =>
  text
    // A password may hold an @: up to the last one before the path.
    .replaceAll(/(:\/\/)[^/\s]+@/g, "$1***@")
    .replaceAll(
      /\b(authorization|password|passwd|token|identitytoken|auth)(["']?\s*[:=]\s*["']?)((basic|bearer)\s+)?[^\s"',]+/gi,
      "$1$2***",
    )
    .replaceAll(/\$(?:\d[a-z]?|y|gy|2[abxy])\$[^\s:]+/g, "***");
