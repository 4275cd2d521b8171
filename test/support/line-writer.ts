import type { JournalLine } from "../../src/api/books/journal-line.ts";
import type { BookKind, JournalEntry } from "../../src/api/books/report-table.ts";
import { type WriterIdentity, type LineNumber, lineOf, numberAfter } from "../../src/core/books/journal.ts";

/** 2026-01-02T10:00:00Z */
export const morning = Date.UTC(2026, 0, 2, 10);

/** Writes lines as a process would, with a clock that the test moves. */
export class LineWriter {
  readonly lines: JournalLine[] = [];
  readonly #writer: WriterIdentity;
  #boot: string;
  #number: LineNumber = { seq: 0 };
  /** How many milliseconds the wall clock is ahead. */
  skewMs = 0;
  #bootedAt = morning - 3_600_000;

  constructor(component: string, instance: string, boot = "boot-1") {
    this.#writer = { component, instance, ...(component === "daemon" ? { node: instance } : {}), version: "1.0.0" };
    this.#boot = boot;
  }

  /** Boots the machine again, so many seconds after ten. */
  reboot(boot: string, seconds: number): void {
    this.#boot = boot;
    this.#number = { seq: 0 };
    this.#bootedAt = morning + seconds * 1000;
  }

  /** Writes a line so many seconds after ten. */
  at(
    seconds: number,
    line: Omit<Extract<JournalEntry, { book: JournalEntry["book"] }>, "level" | "message"> & {
      level?: JournalEntry["level"];
      message?: string;
    },
  ): JournalLine {
    const whole = { level: "boundary", message: "", ...line } as JournalEntry;
    this.#number = numberAfter(this.#number, whole.level);
    const at = morning + seconds * 1000;
    const made = lineOf(whole, {
      writer: this.#writer,
      boot: this.#boot,
      number: this.#number,
      at: at + this.skewMs,
      mono: at - this.#bootedAt,
    });
    this.lines.push(made);
    return made;
  }
}

/**
 * A whole update of worker-0 with drain and reboot: the lines of the node controller, the drain controller and the
 * daemon.
 */
export function reportedUpdate(
  options: {
    readonly run?: string;
    readonly startSeconds?: number;
    readonly daemon?: LineWriter;
    readonly controller?: LineWriter;
    readonly boot?: string;
  } = {},
): { readonly daemon: LineWriter; readonly controller: LineWriter; readonly lines: readonly JournalLine[] } {
  const {
    run = "rendered-worker-b",
    startSeconds = 0,
    daemon = new LineWriter("daemon", "worker-0"),
    controller = new LineWriter("controller", "machine-config-controller-x", "pod-1"),
    boot = "boot-2",
  } = options;
  const already = [daemon.lines.length, controller.lines.length] as const;
  const here = { book: "node/worker-0", chapter: "Update", run } as const;
  const t = (seconds: number) => startSeconds + seconds;
  controller.at(t(0), {
    ...here,
    path: "Requested",
    mark: "begin",
    reason: "TargetSet",
    message: `worker-0 gets ${run}`,
    data: {
      from: "rendered-worker-a",
      to: run,
      pool: "worker",
      cause: "MachineConfig 99-worker-ssh changed",
      by: "kubectl-client-side-apply",
    },
  });
  daemon.at(t(1), { ...here, path: "Requested", mark: "end", reason: "TargetSeen", message: "seen" });
  daemon.at(t(1), { ...here, path: "Prepared", mark: "begin", reason: "Checking", message: "checking" });
  daemon.at(t(2), {
    ...here,
    path: "Prepared",
    mark: "end",
    reason: "Planned",
    message: "1 file; drain and reboot",
    data: { files: 1, reboot: true },
  });
  daemon.at(t(2), {
    ...here,
    path: "Executed/Cordoned",
    mark: "begin",
    reason: "DrainRequested",
    message: "asked for a drain",
  });
  controller.at(t(3), {
    ...here,
    path: "Executed/Cordoned",
    mark: "end",
    reason: "Cordoned",
    message: "worker-0 takes no new pods",
  });
  controller.at(t(3), {
    ...here,
    path: "Executed/Drained",
    mark: "begin",
    reason: "Draining",
    message: "3 pods have to leave",
  });
  controller.at(t(20), {
    ...here,
    path: "Executed/Drained",
    mark: "note",
    reason: "PodsBlocked",
    message: "default/web-1 is held by the budget default/web",
  });
  controller.at(t(63), {
    ...here,
    path: "Executed/Drained",
    mark: "end",
    reason: "Drained",
    message: "all pods have left",
    data: { pods: 3 },
  });
  daemon.at(t(64), { ...here, path: "Executed/Files", mark: "begin", reason: "Writing", message: "1 file" });
  daemon.at(t(65), {
    ...here,
    path: "Executed/Files",
    mark: "end",
    reason: "Written",
    message: "1 file",
    data: { files: 1 },
  });
  daemon.at(t(65), {
    ...here,
    path: "PostAction/Rebooted",
    mark: "begin",
    reason: "RebootRequested",
    message: "/etc/ssh/sshd_config changed",
  });
  daemon.reboot(boot, t(100));
  daemon.at(t(121), { ...here, path: "PostAction/Rebooted", mark: "end", reason: "Rebooted", message: `boot ${boot}` });
  daemon.at(t(122), { ...here, path: "Resumed", mark: "end", reason: "Resumed", message: "in normal operation" });
  daemon.at(t(122), {
    ...here,
    path: "Complete/Uncordoned",
    mark: "begin",
    reason: "UncordonRequested",
    message: "asked to be put back",
  });
  controller.at(t(123), {
    ...here,
    path: "Complete/Uncordoned",
    mark: "end",
    reason: "Uncordoned",
    message: "back in service",
  });
  daemon.at(t(124), { ...here, path: "Updated", mark: "end", reason: "Succeeded", message: `the machine has ${run}` });
  return { daemon, controller, lines: [...daemon.lines.slice(already[0]), ...controller.lines.slice(already[1])] };
}

/** A book of each kind, for tests that go over all of them. */
export const bookOf: { readonly [B in BookKind]: string } = {
  node: "node/worker-0",
  pool: "pool/worker",
  build: "build/b",
  cluster: "cluster",
};
