import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import { decidePass } from "../core/machine/decide-pass.ts";
import type { Host } from "../host/host.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { type Outcome, waiting } from "../kube/outcome.ts";
import type { ConfigReader } from "./delivered-configs.ts";
import { concernsDaemon, samePolicies } from "./concerns-daemon.ts";
import { type DaemonFacts, newDaemonFacts } from "./daemon-facts.ts";
import { newDaemonMemory, remember } from "./daemon-memory.ts";
import { documentStore } from "./machine-documents.ts";
import { bootsIn } from "./machine-books.ts";
import { type NodeReporter, nodeReporter } from "./node-reporter.ts";
import { nodeJournal } from "./node-journal.ts";
import type { NodeJournal } from "./node-journal-types.ts";
import { observeMachine } from "./observe-machine.ts";
import type { PassContext } from "./pass-context.ts";
import { performPass } from "./perform-pass.ts";
import { afterFailure } from "./report-degraded.ts";

export interface DaemonOptions {
  readonly host: Host;
  readonly nodeName: string;
  /** Where the configurations of this machine come from. */
  readonly configs: ConfigReader;
  /** How long to wait for the machine to go down before the reboot is requested again. */
  readonly rebootPatienceSeconds?: number;
  /** Where metrics are kept for the listener. */
  readonly facts?: DaemonFacts;
  /** What earlier processes reported of this machine. */
  readonly past?: readonly JournalLine[];
  /** Updates credentials and certificates of the machine at once. */
  readonly refreshCredentials?: (context: Context) => Promise<void>;
}

/** Delay before a failed report is retried. */
const unreportedSeconds = 10;

/**
 * Keeps one machine on its target. Each pass observes the machine, decides, and carries the decision out as far as
 * possible now. A drain or a reboot ends the pass; the next pass observes how far the machine has come.
 */
export function daemonController(options: DaemonOptions): Controller {
  const { host, nodeName, past = [] } = options;
  const facts = options.facts ?? newDaemonFacts();
  facts.boots = bootsIn(past);
  const documents = documentStore(host.ledger);
  const memory = newDaemonMemory();
  /** Made in the first pass, which provides their writers. */
  let voices: { readonly reporter: NodeReporter; readonly journal: NodeJournal } | undefined;
  let wake: () => void = () => undefined;

  function voicesIn(context: Context) {
    const reporter = nodeReporter({ ...context, nodeName });
    return { reporter, journal: nodeJournal({ ...context, phases: reporter.phases, nodeName, past }) };
  }

  function passOn(node: Node, context: Context): PassContext {
    voices ??= voicesIn(context);
    return {
      host,
      nodeName,
      configs: options.configs,
      documents,
      memory,
      facts,
      rebootPatienceSeconds: options.rebootPatienceSeconds ?? 120,
      refreshCredentials: () => options.refreshCredentials?.(context) ?? Promise.resolve(),
      wake,
      node,
      ...voices,
      context,
    };
  }

  return {
    name: "daemon",
    watches: [
      watching({
        resource: kubernetes.Node,
        selection: { fieldSelector: `metadata.name=${nodeName}` },
        concerns: ({ key, before, after }) => (concernsDaemon(before, after, voices?.reporter) ? [key] : []),
      }),
      watching({
        resource: MachineConfiguration,
        concerns: ({ before, after }) => (samePolicies(before, after) ? [] : [nodeName]),
      }),
    ],
    owns: [
      "Node.metadata.annotations/daemon",
      "MachineConfigNode.status/daemon",
      "MachineConfigNode.metadata.annotations/daemon",
    ],
    start: (enqueue, context) => {
      wake = () => enqueue(nodeName);
      context.signal.addEventListener("abort", () => memory.watched?.stop(), { once: true });
    },

    async reconcile(name, context): Promise<Outcome> {
      const node = context.caches.of(kubernetes.Node).get(name);
      if (node === undefined || node.metadata.deletionTimestamp !== undefined)
        return waiting("NodeAbsent", "the node is not registered yet", 30);
      return reconcileNode(passOn(node, context));
    },
  };
}

/** One pass with its report: the outcome stands only once the MachineConfigNode shows it. */
async function reconcileNode(pass: PassContext): Promise<Outcome> {
  const { facts, reporter, node, context } = pass;
  reporter.begin(node);
  facts.hasSeenNode = true;
  facts.lookingSince = context.clock.monotonic();
  try {
    const outcome = await runPass(pass);
    return (await reporter.flush()) === "reported" ? outcome : soonAgain(outcome);
  } catch (error) {
    const outcome = await afterFailure(error, pass);
    if (outcome === undefined) throw error;
    return outcome;
  } finally {
    facts.lookingSince = undefined;
  }
}

/**
 * Decides until a decision ends the pass: preparations, and further observations that a decision asks for, lead to
 * another decision.
 */
async function runPass(pass: PassContext): Promise<Outcome> {
  let view = await observeMachine(pass);
  for (;;) {
    const plan = decidePass(view, pass.memory);
    remember(plan, pass.memory);
    const performed = await performPass(plan, view, pass);
    if ("kind" in performed) return performed;
    view = performed;
  }
}

/** The pool counts a machine once its MachineConfigNode reports its configuration. */
function soonAgain(outcome: Outcome): Outcome {
  if (outcome.kind === "stalled") return waiting(outcome.reason, outcome.message, unreportedSeconds);
  const seconds = Math.min(outcome.reconcileAfterSeconds ?? unreportedSeconds, unreportedSeconds);
  return { ...outcome, reconcileAfterSeconds: seconds };
}
