import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { McoError } from "../api/errors.ts";
import { annotations, nodeStates, objects } from "../api/names.ts";
import type { PhaseReport } from "../core/books/update-conditions.ts";
import { describeConsequence, sameConsequence } from "../core/config/change.ts";
import { holdPlan } from "../core/machine/decide-pass.ts";
import { missingExtensions, packagesOf } from "../core/machine/deployment.ts";
import { isAction, isSystemChange, isWrite } from "../core/machine/describe-plan.ts";
import { drainRequest, isDrainedFor } from "../core/machine/drain-requests.ts";
import { pairOf } from "../core/machine/image-target.ts";
import type { ObservedNode } from "../core/machine/observed-node.ts";
import type { MachineView, PassCase, UpdatePlan } from "../core/machine/pass-plan.ts";
import type { Step } from "../core/machine/plan-node.ts";
import type { Wanted } from "../core/machine/read-config.ts";
import { unitsThatAreNotThere } from "../core/machine/unit-gap.ts";
import { describeDropped } from "../core/machine/unpaid-debts.ts";
import { type Outcome, waiting } from "../kube/outcome.ts";
import type { PassContext } from "./pass-context.ts";
import { type LocalStep, type StepContext, contentMismatchOf, performStep } from "./perform-step.ts";
import { phasesApplied, phasesApplying } from "./phase-reports.ts";
import { driftForced } from "./reports.ts";
import {
  actionFailed,
  actionsBegun,
  actionsComplete,
  actionsDone,
  contentSettled,
  debtDropped,
  filesWritten,
  imageMismatched,
  imagesPulled,
  newSystemRuns,
  noActionNeeded,
  originalsNotKept,
  packagesMissing,
  pullBegun,
  rebootRequested,
  rebootSkipped,
  settlingBegun,
  stagingBegun,
  stepFailed,
  systemStaged,
  unitReloaded,
  unitRestarted,
  unitsRead,
  unitsSkipped,
  writingBegun,
} from "./step-reports.ts";
import {
  bootResynced,
  cordonUnneeded,
  drainRequested,
  drainUnneeded,
  updateDone,
  updatePlanned,
} from "./update-reports.ts";
import { stopWatching } from "./watch-drift.ts";

/** How soon a machine is observed again after its image's content was applied again. */
const appliedSoonSeconds = 2;

/** How an update continues after a pass. */
export type Updated =
  | { readonly verdict: "complete" }
  /** A drain, a reboot or applying the image's content ends the pass. */
  | { readonly verdict: "waiting"; readonly outcome: Outcome }
  /** The fetched image does not match the target. */
  | { readonly verdict: "held"; readonly plan: PassCase<"hold"> };

/** What ends an update's pass before its last step. */
type Ended = Exclude<Updated, { readonly verdict: "complete" }> | undefined;

/** One update as it is carried out. */
interface Update extends PassContext {
  readonly plan: UpdatePlan;
  readonly view: MachineView;
  readonly site: StepContext;
  readonly name: string;
}

const wait = (outcome: Outcome): Ended => ({ verdict: "waiting", outcome });

/** Carries out the steps of an update, as far as possible now. */
export async function performUpdate(plan: UpdatePlan, view: MachineView, pass: PassContext): Promise<Updated> {
  const update: Update = { ...pass, plan, view, site: siteOf(plan, pass), name: plan.target.config.name };
  await beginUpdate(update);
  const { journal, name, context } = update;
  const [firstWrite, lastWrite] = [plan.steps.find(isWrite), plan.steps.findLast(isWrite)];
  const lastAction = plan.steps.findLast(isAction);
  for (const step of plan.steps) {
    context.signal.throwIfAborted();
    if (isWrite(step)) {
      journal.report(writingBegun(name));
      // A daemon that is killed next finds the files as they should be, and would not know that it wrote them.
      if (step === firstWrite) await context.journal.kept?.();
    }
    if (isAction(step)) journal.report(actionsBegun(plan.plan));
    const ended = await performReported(step, update);
    if (ended !== undefined) return ended;
    if (step === lastWrite) journal.report(filesWritten(name, plan.plan));
    if (step === lastAction) journal.report(actionsDone(plan.plan));
  }
  endUpdate(update);
  return { verdict: "complete" };
}

/** Applies the image's content now, as at boot. */
export async function applyContentAgain(
  { target, observed }: PassCase<"healDrift">,
  pass: PassContext,
): Promise<Outcome> {
  await perform({ do: "settle" }, siteOf({ target, observed }, pass), pass);
  return waiting("Settling", "the machine is looked at again once it was settled", appliedSoonSeconds);
}

const siteOf = (
  { target, observed }: { readonly target: Wanted; readonly observed: ObservedNode },
  { host, documents, context, refreshCredentials }: PassContext,
): StepContext => ({
  host,
  documents,
  clock: context.clock,
  observed,
  target,
  originals: observed.originals,
  ledger: observed.ledger,
  refreshCredentials,
});

/** Reports the coming steps. */
async function beginUpdate(update: Update): Promise<void> {
  const { plan, site, name, memory, facts, reporter, node, journal } = update;
  if (plan.observed.forced) journal.report(driftForced(name));
  // Applying content again is no new target, but still an update of the machine.
  const { previous: { name: from } = {}, ledger } = plan.observed;
  if (plan.isNewTarget) journal.seen(name, { from, reached: ledger === undefined ? from : undefined });
  journal.goOn(name);
  memory.announced = plan.what;
  announce(update);
  journal.report(updatePlanned(plan));
  facts.config = name;
  if (!plan.isRetry) {
    facts.state = nodeStates.working;
    facts.reason = "";
    const acted = node.metadata.annotations?.[annotations.postConfigAction];
    await reporter.annotate(node, {
      [annotations.state]: nodeStates.working,
      [annotations.reason]: "",
      [annotations.postConfigAction]: acted === undefined ? undefined : "",
    });
  }
  noteNotKept(update);
  // An update that goes on after a reboot has said it before.
  const skipped = plan.observed.ledger === undefined ? unitsThatAreNotThere(plan.observed, site.target.config) : [];
  if (skipped.length > 0) journal.report(unitsSkipped(skipped));
  for (const dropped of describeDropped(plan.plan.dropped)) journal.report(debtDropped(dropped));
  if (!plan.skipsDrain) return;
  journal.report(cordonUnneeded());
  journal.report(drainUnneeded());
}

/**
 * Names the paths whose original is not kept: those that an earlier daemon recorded for this update before it was killed, too,
 * and those that a boot or taking the machine over found.
 */
function noteNotKept({ site: { originals }, journal }: Update): void {
  const notKept = originals.notKept ?? [];
  if (notKept.length > 0) journal.report(originalsNotKept(notKept));
}

/** A resumed update is not announced again. */
function announce({ plan, name, reporter, node, context }: Update): void {
  if (plan.announcement === undefined) return;
  const { changes, steps } = plan.plan;
  context.log.info(
    { target: name, changes: changes.length, steps: steps.map((step) => step.do).join(" ") },
    "update planned",
  );
  reporter.versions({ desired: name, images: { desired: pairOf(plan.target.config)?.image } });
  if (plan.announcement.isBootResync) context.report(bootResynced(node, name));
}

/** Carries one step out, with its reports before and after. */
async function performReported(step: Step, update: Update): Promise<Ended> {
  const { plan, name, site, reporter, node, journal, context } = update;
  switch (step.do) {
    case "prefetch":
      return prefetch(step, update);
    case "drain":
      return drain(update);
    case "openLedger":
      stopWatching(update, name);
      reporter.phases(phasesApplying(plan.target.config, { files: plan.steps.some(isWrite), os: plan.changesOs }));
      await perform(step, site, update);
      noteNotKept(update);
      return undefined;
    case "stageOs":
      return stage(step, update);
    case "reboot":
      return reboot(step, update);
    case "settle":
      journal.report(settlingBegun());
      await perform(step, site, update);
      return wait(waiting("Settling", "the machine is looked at again once it was settled", appliedSoonSeconds));
    case "closeLedger":
      await expectPackages(site, context.signal).catch((error: unknown) => {
        journal.report(packagesMissing(error instanceof Error ? error.message : String(error)));
        throw error;
      });
      return perform(step, site, update);
    case "reload":
    case "restart":
      await perform(step, site, update);
      context.report((step.do === "restart" ? unitRestarted : unitReloaded)(node, step.unit));
      return undefined;
    case "daemonReload":
      await perform(step, site, update);
      context.report(unitsRead(node));
      return undefined;
    case "refreshCredentials":
    case "keepPayload":
    case "discardStaged":
    case "dropPayload":
    case "makeFolder":
    case "writeEntries":
    case "restoreEntries":
    case "relinkUnits":
    case "enableUnit":
    case "disableUnit":
    case "presetUnit":
    case "setPassword":
      return perform(step, site, update);
  }
}

async function prefetch(step: Step & { do: "prefetch" }, update: Update): Promise<Ended> {
  const { host, plan, view, site, memory, journal, context } = update;
  journal.report(pullBegun(step.images));
  await perform(step, site, update);
  const mismatch = await contentMismatchOf(host, plan.target.config, step.images, context.signal);
  if (mismatch !== undefined) {
    journal.report(imageMismatched(mismatch));
    return { verdict: "held", plan: holdPlan(view, "ImageContentMismatch", mismatch) };
  }
  for (const image of step.images) memory.fetchedImages.add(image);
  journal.report(imagesPulled(step.images));
  return undefined;
}

async function drain({ name, reporter, node, journal }: Update): Promise<Ended> {
  const request = drainRequest(name);
  await reporter.annotate(node, { [annotations.desiredDrain]: request });
  const isNews = node.metadata.annotations?.[annotations.desiredDrain] !== request;
  journal.report(drainRequested(node, name, isNews));
  return wait(waiting("Draining", "waiting for the drain controller", 60));
}

async function stage(step: Step & { do: "stageOs" }, update: Update): Promise<Ended> {
  const { plan, site, facts, node, journal, context } = update;
  const { deployment } = step;
  journal.report(stagingBegun(node, plan.plan, { from: plan.observed.booted.image, to: deployment.image }));
  // As with files: a daemon that is killed next finds it staged, and would not know that it staged it.
  await context.journal.kept?.();
  await perform(step, site, update);
  facts.osFailures = 0;
  journal.report(systemStaged(node, deployment));
  return undefined;
}

/**
 * Everything must be durable and reported before the machine goes down. Writing took time since the drain: the machine
 * may have been put back into service meanwhile, so this is checked here, last.
 */
async function reboot(step: Step & { do: "reboot" }, update: Update): Promise<Ended> {
  const { plan, name, nodeName, site, memory, facts, reporter, node, context } = update;
  const { caches, events, kube, signal } = context;
  const isBackInService = (now: Node) => plan.drains && !isDrainedFor(now, name);
  const drainFirst = wait(
    waiting("Draining", "the machine was put back into service before its reboot: it is drained again first", 1),
  );
  if (isBackInService(caches.of(kubernetes.Node).get(nodeName) ?? node)) return drainFirst;
  const written = phasesWritten(update, plan.plan.changes.some(isSystemChange));
  update.journal.report(rebootRequested(node, step.because, written));
  await reporter.annotate(node, { [annotations.postConfigAction]: "Rebooting" });
  await reporter.flush();
  await Promise.all([context.journal.flush(signal), events.flush()]);
  // A watch can lag, for example after the API server was unavailable: ask the server itself.
  if (isBackInService((await kube.get(kubernetes.Node, { name: nodeName })) ?? node)) {
    await reporter.annotate(node, { [annotations.postConfigAction]: "" });
    return drainFirst;
  }
  memory.rebootAsked = { bootId: plan.observed.bootId, at: context.clock.monotonic() };
  memory.documents = undefined;
  try {
    await perform(step, site, update);
  } catch (error) {
    memory.rebootAsked = undefined;
    facts.rebootFailures += 1;
    throw error;
  }
  return wait(waiting("Rebooting", "the machine is going down", update.rebootPatienceSeconds));
}

/** Requested packages can be missing in spite of success: then the machine does not have its desired state. */
async function expectPackages(
  { host, target: { config }, observed: { can } }: StepContext,
  signal: AbortSignal,
): Promise<void> {
  if (config.extensions.length === 0 || !can.packages) return;
  const missing = missingExtensions(config.extensions, await host.os.installed(packagesOf(config.extensions), signal));
  if (missing.length > 0) throw new McoError("MCO_PACKAGES_MISSING", { extensions: missing });
}

/**
 * What this run has written, maybe before a reboot. Of a way back the journal keeps no sections: without a write of its
 * own, this daemon does not know, and the report of the one before it stands.
 */
function phasesWritten({ plan, journal }: Update, os: boolean): readonly PhaseReport[] {
  const writes = plan.steps.some(isWrite);
  if (plan.ending.after.case === "stayBack" && !writes && !os) return [];
  return phasesApplied(plan.target.config, {
    files: writes || journal.spanOf("Executed/Files").from !== undefined,
    os,
  });
}

/** Reports the finished steps. */
function endUpdate(update: Update): void {
  const { plan, name, reporter, node, journal } = update;
  const { report } = update.context;
  const { hasRebooted, putRight, runsNewSystem, skipsReboot } = plan.ending;
  if (putRight !== undefined) journal.report(contentSettled(putRight));
  reporter.phases([
    ...phasesWritten(update, plan.changesOs || journal.spanOf("Executed/OS").from !== undefined),
    actionsComplete(plan.plan, hasRebooted),
  ]);
  if (runsNewSystem) report(newSystemRuns(node, plan.observed.booted.image));
  if (skipsReboot) report(rebootSkipped(node, name));
  if (!hasRebooted && !plan.steps.some(isAction)) journal.report(noActionNeeded(plan.plan));
  // The update is over only once the machine is back in service.
  report(updateDone(node, name));
}

/** Carries one step out, and reports where and why it failed. */
async function perform(
  step: LocalStep,
  site: StepContext,
  pass: PassContext & { readonly plan?: UpdatePlan },
): Promise<undefined> {
  const { memory, facts, node, journal, context } = pass;
  // Whatever the outcome: the next pass reads the disk again.
  if (step.do !== "prefetch") memory.documents = undefined;
  try {
    await performStep(step, site, context.signal);
  } catch (error) {
    if (context.signal.aborted) throw error;
    const problem = `${error instanceof Error ? error.message : String(error)}${askedBy(step, pass.plan)}`;
    journal.report(stepFailed(step, problem));
    if (step.do === "stageOs" || step.do === "prefetch") facts.osFailures += 1;
    if (isAction(step)) context.report(actionFailed(node, step, problem));
    throw new McoError(
      "MCO_HOST_COMMAND_FAILED",
      { step: step.do },
      { cause: error, message: `step ${step.do} of the update to ${site.target.config.name} failed: ${problem}` },
    );
  }
}

/** Why a service is acted on: names the policy, whose entry may have to be corrected. */
function askedBy(step: LocalStep, plan: UpdatePlan | undefined): string {
  if (plan === undefined || (step.do !== "reload" && step.do !== "restart")) return "";
  const asks = { kind: step.do, unit: step.unit } as const;
  const why = plan.plan.because.find(({ consequence }) => sameConsequence(consequence, asks))?.why;
  return why === undefined
    ? ""
    : `; ${describeConsequence(asks)} is asked for by nodeDisruptionPolicy of MachineConfiguration/${objects.machineConfiguration}: ${why}`;
}
