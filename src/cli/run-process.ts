import { Socket } from "node:net";
import { hostname } from "node:os";
import { type EventRecorder, createEventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { componentSending, createJournalWriter } from "../kube/journal-writer.ts";
import { type BufferedJournal, createBufferedJournal } from "../kube/buffered-journal.ts";
import { fieldManagers } from "../api/names.ts";
import { printableLine } from "../core/text/printable.ts";
import { redactText } from "../core/text/redact.ts";
import { memoryJournal } from "../ports/journal.ts";
import type { Ports } from "../ports/index.ts";
import { connect } from "./connect.ts";
import { jsonLogger, systemClock, systemRandom } from "../ports/node/index.ts";
import { version } from "./version.ts";

export interface ProcessOptions {
  readonly component: string;
  readonly node?: string;
}

/** Unique for each start of a process: the identity that leases carry. */
export const processIdentity = (component: string): string =>
  `${process.env["HOSTNAME"] ?? hostname()}_${component}_${systemRandom.uuid()}`;

/** The log level of this process: the one it was started with, until another one is requested. */
let logLevel: "info" | "debug" = process.env["MCO_LOG_LEVEL"] === "debug" ? "debug" : "info";

/**
 * Changes what this process writes into its log from now on. One that was started with `MCO_LOG_LEVEL=debug` stays at
 * that.
 */
export function setLogLevel(level: "info" | "debug"): void {
  logLevel = process.env["MCO_LOG_LEVEL"] === "debug" ? "debug" : level;
}

/**
 * Runs a long-lived process: gives it its ports, and aborts its signal on TERM, INT, or when the process that started
 * it is gone (the other end of its lifeline pipe). A second signal ends it at once.
 *
 * @returns the exit code.
 */
export async function runProcess(
  options: ProcessOptions,
  run: (ports: Ports, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const toTerminal = process.stderr.isTTY;
  // As JSON a control character is escaped already; a readable line is text on a terminal.
  const redact = toTerminal ? (text: string) => printableLine(redactText(text)) : redactText;
  const log = jsonLogger({ ...options, level: () => logLevel, pretty: toTerminal, redact });
  const stopping = new AbortController();
  const stop = (why: string) => {
    if (stopping.signal.aborted) process.exit(1);
    log.info({ why }, "stopping");
    stopping.abort(new Error(why));
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  const lifeline = process.env["MCO_LIFELINE"];
  if (lifeline !== undefined) {
    const socket = new Socket({ fd: Number(lifeline), readable: true, writable: false });
    socket.on("error", () => undefined);
    socket.once("close", () => stop("the parent process has ended"));
    socket.resume();
  }
  process.on("uncaughtException", (error) => {
    log.error({ error, stack: error.stack }, "a bug ended the process");
    process.exit(70);
  });
  process.on("unhandledRejection", (error) => {
    log.error({ error, stack: error instanceof Error ? error.stack : undefined }, "a bug ended the process");
    process.exit(70);
  });
  try {
    await run({ clock: systemClock, random: systemRandom, log, journal: memoryJournal() }, stopping.signal);
    return 0;
  } catch (error) {
    if (stopping.signal.aborted) return 0;
    log.error({ error }, "ended by a failure");
    return 1;
  }
}

/**
 * The journal of a process in a pod. A restarted container keeps its pod's name and uid but loses its memory: each
 * start counts as a boot of its own, so that no number is ever given twice.
 */
function componentJournal(
  component: string,
  sender: string,
  { kube, clock, random, log }: Ports & { readonly kube: KubeClient },
): BufferedJournal {
  const writer = { component, instance: process.env["POD_NAME"] ?? hostname(), version };
  return createBufferedJournal({
    clock,
    log,
    writer,
    boot: random.uuid(),
    sender: createJournalWriter({
      kube,
      clock,
      random,
      log,
      name: sender,
      owner: fieldManagers.journal,
      rules: componentSending,
    }),
  });
}

export interface ComponentOptions extends ProcessOptions {
  readonly kubeconfig: string | undefined;
  /** The source of its events. */
  readonly reporter: string;
  /** Name of the MachineStateJournal for journal lines of this process; a process without a journal has none. */
  readonly journalName?: string;
}

/** Runs a process that lives by the API server: connected, and with its last events written before it ends. */
export function runComponent(
  options: ComponentOptions,
  run: (
    ports: Ports & {
      readonly kube: KubeClient;
      readonly events: EventRecorder;
      /** URL of the API server. */ readonly apiServer: string;
    },
    signal: AbortSignal,
  ) => Promise<void>,
): Promise<number> {
  const { component, node, kubeconfig, reporter, journalName: sender } = options;
  return runProcess({ component, ...(node === undefined ? {} : { node }) }, async (ports, signal) => {
    const { kube, connection, close } = await connect({ kubeconfig, component });
    const events = createEventRecorder({
      ...ports,
      kube,
      component: reporter,
      ...(node === undefined ? {} : { host: node }),
    });
    const journal = sender === undefined ? ports.journal : componentJournal(component, sender, { ...ports, kube });
    try {
      await run({ ...ports, journal, kube, events, apiServer: connection.server }, signal);
    } finally {
      await Promise.all([events.flush(), journal.flush()]);
      close();
    }
  });
}
