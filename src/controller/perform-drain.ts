import type { Node } from "../api/foreign/kubernetes.ts";
import { beginChange, confirmChange, cordonChange, skipChange, uncordonChange } from "../core/pool/drain-changes.ts";
import type { DrainCase, DrainDecision, DrainPass } from "../core/pool/drain-decision.ts";
import { drainBegan, drainStep } from "../core/pool/drain-step.ts";
import type { Context } from "../kube/controller.ts";
import { type Outcome, done, stalled, waiting } from "../kube/outcome.ts";
import { type DrainWatches, restDrain, watchDrain, currentBudgets } from "./drain-watches.ts";
import { deletePod, evictEach, foresee, namespacesOf, podsOn } from "./evict-pods.ts";
import { reportDrainEnd, reportProgress } from "./report-drain.ts";
import { updateNode } from "./update-node.ts";
import {
  cordonFound,
  drainBegun,
  drainForecast,
  drainGivenUp,
  drainHeld,
  nodeCordoned,
  nodeDrained,
  nodeUncordoned,
} from "./reports.ts";

/** What one pass over the drain request of a node acts with. */
export interface DrainActs {
  readonly name: string;
  readonly watches: DrainWatches;
  readonly context: Context;
}

/** The end of a pass, or what it has found out and done when it decides again. */
export type DrainPerformed = Outcome | DrainPass;

/**
 * Carries one decision out. There is no `default`: a case that is missing here does not compile. A change of a node that
 * requests something else by now is not made, and ends the pass: the watch delivers the other request.
 */
export async function performDrain(decision: DrainDecision, pass: DrainPass, acts: DrainActs): Promise<DrainPerformed> {
  const { name, watches, context } = acts;
  switch (decision.do) {
    case "foresee":
      restDrain(name, watches);
      return { ...pass, forecast: { found: await foresee(name, context) } };
    case "listPods":
      return listPods(decision, pass, acts);
    case "evict":
      return evict(decision, pass, acts);
    case "readBudgets":
      return readBudgets(decision, pass, acts);
    case "cordon":
      return cordon(decision, pass, acts);
    case "watch":
      watchDrain(name, decision.byBudgets, watches);
      return { ...pass, isWatched: true };
    case "begin":
      return begin(decision, pass, acts);
    case "force":
      return force(decision, pass, acts);
    case "rest":
      restDrain(name, watches);
      return done();
    case "refuse":
      restDrain(name, watches);
      return stalled("UnknownRequest", decision.because);
    case "uncordon":
      return uncordon(nodeOf(pass), acts);
    case "confirm":
      return confirm(decision, nodeOf(pass), acts);
    case "skip":
      return skip(decision, nodeOf(pass), acts);
    case "wait":
      return wait(decision, nodeOf(pass), acts);
  }
}

function nodeOf({ node }: DrainPass): Node {
  if (node === undefined) throw new Error("bug: a drain was decided for a node that there is not");
  return node;
}

async function listPods(
  { startedAt, first }: DrainCase<"listPods">,
  pass: DrainPass,
  { name, watches, context }: DrainActs,
): Promise<DrainPass> {
  const seen = first === undefined ? watches.pods.objects(name) : undefined;
  const from = seen === undefined ? "server" : "watch";
  return { ...pass, round: { startedAt, first, from, pods: seen ?? (await podsOn(name, context)) } };
}

async function evict({ pods }: DrainCase<"evict">, pass: DrainPass, { context }: DrainActs): Promise<DrainPass> {
  const answers = await evictEach(pods, context, { dryRun: false });
  return { ...pass, ...(pass.round === undefined ? {} : { round: { ...pass.round, answers } }) };
}

async function readBudgets(
  { of, askedAt }: DrainCase<"readBudgets">,
  pass: DrainPass,
  { watches, context }: DrainActs,
): Promise<DrainPass> {
  return {
    ...pass,
    budgets: { askedAt, known: await currentBudgets(namespacesOf(of), watches, context) },
  };
}

async function cordon(
  { pods, foreseen, warning }: DrainCase<"cordon">,
  pass: DrainPass,
  { context }: DrainActs,
): Promise<DrainPerformed> {
  const { kube, clock, report } = context;
  const node = nodeOf(pass);
  if (warning !== undefined) report(drainForecast(node, warning));
  const written = await updateNode(kube, node, (object) => cordonChange(object, { now: clock.now(), pods }), context);
  if (written === undefined || drainStep(written.object).do !== "evict") return done();
  report(nodeCordoned(written.object, written.decision.again));
  report(drainBegun(written.object, { pods, foreseen }));
  return { ...pass, node: written.object };
}

async function begin({ pods }: DrainCase<"begin">, pass: DrainPass, { context }: DrainActs): Promise<DrainPerformed> {
  const { kube, clock } = context;
  const written = await updateNode(
    kube,
    nodeOf(pass),
    (object) => beginChange(object, { now: clock.now(), pods }),
    context,
  );
  if (written?.decision === "begins") {
    context.report(cordonFound(written.object));
    context.report(drainBegun(written.object, { pods, foreseen: undefined }));
  }
  const began = written === undefined ? undefined : drainBegan(written.object);
  return began === undefined ? done() : { ...pass, began };
}

async function force(
  { pods, verdict }: DrainCase<"force">,
  pass: DrainPass,
  { context }: DrainActs,
): Promise<DrainPass> {
  for (const { pod, message } of pods) {
    context.report(drainHeld(nodeOf(pass), { reason: "DrainForced", message }));
    await deletePod(pod, context);
  }
  return { ...pass, forced: verdict };
}

async function skip(
  { because, request, again, why }: DrainCase<"skip">,
  node: Node,
  { name, watches, context }: DrainActs,
): Promise<Outcome> {
  const { kube, clock } = context;
  const written = await updateNode(
    kube,
    node,
    (object) => skipChange(object, { now: clock.now(), request, again, why }),
    context,
  );
  restDrain(name, watches);
  if (written?.decision === "skipped") await reportDrainEnd(name, drainGivenUp(node, request, because), context);
  return done();
}

async function confirm(
  { request }: DrainCase<"confirm">,
  node: Node,
  { name, watches, context }: DrainActs,
): Promise<Outcome> {
  const written = await updateNode(context.kube, node, (object) => confirmChange(object, request), context);
  restDrain(name, watches);
  if (written?.decision === "confirmed") await reportDrainEnd(name, nodeDrained(name, request), context);
  return done();
}

async function uncordon(node: Node, { name, watches, context }: DrainActs): Promise<Outcome> {
  restDrain(name, watches);
  const written = await updateNode(context.kube, node, uncordonChange, context);
  if (written?.decision !== undefined) await reportDrainEnd(name, nodeUncordoned(node, written.decision), context);
  return done();
}

async function wait(decision: DrainCase<"wait">, node: Node, { name, watches, context }: DrainActs): Promise<Outcome> {
  const { because: message, reason, report, memory, counts, seconds } = decision;
  watches.memories.set(name, memory);
  if (report !== undefined) context.report(drainHeld(node, report));
  if (decision.writesProgress) await reportProgress(name, { reason, message }, context);
  context.log.debug({ node: name, ...counts }, "draining");
  return waiting("Draining", message, seconds);
}
