import { McoError } from "../api/errors.ts";
import { annotations, hostPaths, nodeStates } from "../api/names.ts";
import { type PhaseSpan, sectionsOfPhases } from "../core/books/update-conditions.ts";
import { irreconcilableChanges } from "../core/config/irreconcilable-changes.ts";
import { foreignPackages } from "../core/machine/deployment.ts";
import { isDrainedForDaemon } from "../core/machine/drain-requests.ts";
import { pairOf } from "../core/machine/image-target.ts";
import type { MachineDocuments } from "../core/machine/machine-record.ts";
import type {
  DonePlan,
  MachineView,
  PassCase,
  PassPlan,
  Preparation,
  StayBackPlan,
} from "../core/machine/pass-plan.ts";
import type { Wanted } from "../core/machine/read-config.ts";
import type { Host } from "../host/host.ts";
import { type Outcome, done, stalled, waiting } from "../kube/outcome.ts";
import { machineConfigAt, moveAside, tidyAfterBoot } from "./adopt-machine.ts";
import type { NodeJournal } from "./node-journal-types.ts";
import { observeMachine, observeMore } from "./observe-machine.ts";
import type { PassContext } from "./pass-context.ts";
import { forgetPayloads, writeCurrent } from "./perform-step.ts";
import { applyContentAgain, performUpdate } from "./perform-update.ts";
import { reportDegraded } from "./report-degraded.ts";
import { diskNotAsApplied, driftFound, driftGone, driftLeft, machineDegraded, machineRecovered } from "./reports.ts";
import { contentNotApplied, rebootOverdue, stagedNotFinalised } from "./step-reports.ts";
import {
  operationResumed,
  policiesAwaited,
  targetIrreconcilable,
  uncordonRequested,
  updateSucceeded,
  updateSuperseded,
  wayBackOvertaken,
  wentBackTo,
} from "./update-reports.ts";
import { watchForDrift } from "./watch-drift.ts";

/** The daemon looks at the whole disk this often: watches can miss things. */
const sweepSeconds = 300;
/** How soon a machine that is not brought to its target any more notices that it is to be tried again. */
const retrySweepSeconds = 30;

/** The end of a pass, or the view on which it decides again. */
export type Performed = Outcome | MachineView;

/** Carries one decision out. There is no `default`: a case that is missing here does not compile. */
export async function performPass(plan: PassPlan, view: MachineView, pass: PassContext): Promise<Performed> {
  switch (plan.case) {
    case "observe":
      return observe(plan, view, pass);
    case "adopt":
      return adopt(plan, view, pass);
    case "currentConfigMissing":
      await reportDegraded({ reason: "CurrentConfigMissing", message: plan.message, lasting: false }, pass);
      return waiting("CurrentConfigMissing", plan.message, 60);
    case "correctAnnotations":
      return correctAnnotations(plan, view, pass);
    case "tidyAfterBoot":
      return tidy(plan, view, pass);
    case "awaitReboot":
      return waiting("Rebooting", plan.message, plan.seconds);
    case "reportOverdueReboot":
      return reportOverdueReboot(plan, view, pass);
    case "awaitRestart":
      return awaitRestart(plan, pass);
    case "forgetRefusals":
      return forgetRefusals(view, pass);
    case "reportRefusals":
      return reportRefusals(plan, view, pass);
    case "noTarget":
      return waiting("NoTarget", plan.message, 60);
    case "hold":
      return hold(plan, pass);
    case "targetAbsent":
      return waiting("TargetAbsent", plan.message, 15);
    case "noticeTarget":
      // Its Node says so, too: that was corrected before.
      pass.journal.seen(plan.target, {
        from: plan.from,
        reached: view.documents.ledger === undefined ? plan.from : undefined,
      });
      return prepared("noticeTarget", view);
    case "refuse":
      return refuse(plan, pass);
    case "previousUnreadable":
      throw new McoError("MCO_LEDGER_UNREADABLE", { document: "previous.json", problem: plan.problem });
    case "goBack":
      return goBack(plan, pass);
    case "nothingToGoBackTo":
      await reportDegraded({ reason: plan.reason, message: plan.message, lasting: false }, pass);
      return done(retrySweepSeconds);
    case "healDrift":
      return healDrift(plan, pass);
    case "reportDrift":
      return reportDrift(plan, pass);
    case "reportUnapplied":
      pass.journal.report(contentNotApplied(plan.message));
      await reportDegraded({ reason: "SettleFailed", message: plan.message, lasting: false }, pass);
      return done(sweepSeconds);
    case "reportUndone":
      await reportDegraded({ reason: "BootUndoes", message: plan.message, lasting: false }, pass);
      return done(retrySweepSeconds);
    case "awaitPolicies":
      return awaitPolicies(plan, pass);
    case "done":
      return reportDone(plan, view, pass);
    case "stayBack":
      return stayBack(plan, pass);
    case "update":
      return update(plan, view, pass);
  }
}

const prepared = (what: Preparation, view: MachineView): MachineView => ({
  ...view,
  prepared: new Set([...view.prepared, what]),
});

/** The documents as just written. */
function withDocuments(documents: MachineDocuments, view: MachineView, { memory }: PassContext): MachineView {
  memory.documents = documents;
  return { ...view, documents };
}

async function observe({ what }: PassCase<"observe">, view: MachineView, pass: PassContext): Promise<MachineView> {
  const more = await observeMore(what, view, pass);
  if (what.read === "machine") pass.facts.foreignPackages = foreignPackages(view.os.booted.packages).length;
  return more;
}

async function adopt(plan: PassCase<"adopt">, view: MachineView, pass: PassContext): Promise<MachineView> {
  const { previous, originals, from } = plan;
  await pass.documents.adopt(previous, originals, pass.context.signal);
  pass.journal.adopted(previous.config.metadata.name, from);
  const documents = { ledger: undefined, previous, originals, refused: [] };
  return withDocuments(documents, prepared("adopt", view), pass);
}

async function correctAnnotations(
  plan: PassCase<"correctAnnotations">,
  view: MachineView,
  { reporter, node, journal }: PassContext,
): Promise<MachineView> {
  if (plan.startedWith !== undefined) journal.adopted(plan.startedWith, "first boot");
  await reporter.annotate(node, plan.annotations);
  return prepared("correctAnnotations", view);
}

async function tidy(plan: PassCase<"tidyAfterBoot">, view: MachineView, pass: PassContext): Promise<MachineView> {
  const { host, documents, facts, memory, node, reporter, journal, context } = pass;
  const { signal } = context;
  const { config, failure } = plan;
  const { bootId, booted } = view.os;
  await tidyAfterBoot(host, config, signal);
  await forgetPayloads(host, documents, false, signal);
  facts.os = await releaseOf(host, signal);
  if (!facts.boots.has(bootId)) facts.boots = new Map([...facts.boots, [bootId, context.clock.now()]]);
  if (failure !== undefined) journal.report(stagedNotFinalised(failure, plan.isNewFailure ? node : undefined));
  if (plan.isNewFailure) await reporter.annotate(node, { [annotations.finaliseFailure]: failure });
  journal.booted(bootId, booted.image, plan.hasRebooted ? node : undefined);
  memory.tidiedBoot = bootId;
  return view;
}

/** Name and version of the operating system, for the metrics. */
async function releaseOf(host: Host, signal: AbortSignal): Promise<{ name: string; version: string } | undefined> {
  const file =
    (await host.files.read("/etc/os-release", signal)) ?? (await host.files.read("/usr/lib/os-release", signal));
  if (file?.kind !== "file") return undefined;
  const text = new TextDecoder().decode(file.contents);
  const value = (key: string) => new RegExp(`^${key}="?([^"\\n]*)"?$`, "m").exec(text)?.[1] ?? "";
  return { name: value("ID"), version: value("VERSION_ID") };
}

function reportOverdueReboot(
  { problem }: PassCase<"reportOverdueReboot">,
  view: MachineView,
  { facts, node, journal }: PassContext,
): MachineView {
  facts.rebootFailures += 1;
  journal.report(rebootOverdue(node, problem));
  return prepared("reportOverdueReboot", view);
}

async function awaitRestart(
  { because, since, asksAgain, seconds }: PassCase<"awaitRestart">,
  { host, facts, memory, context: { clock, signal } }: PassContext,
): Promise<Outcome> {
  memory.restartAwaitedSince = since;
  if (asksAgain) {
    facts.rebootFailures += 1;
    memory.restartAwaitedSince = clock.monotonic();
    await host.os.reboot(because, signal);
  }
  return waiting("Rebooting", because, seconds);
}

async function forgetRefusals(view: MachineView, pass: PassContext): Promise<MachineView> {
  // The annotation first: a machine that has no refusals of its own does not look whether its object names some.
  await pass.reporter.refused([]);
  await pass.documents.storeRefused([], pass.context.signal);
  return withDocuments({ ...view.documents, refused: [] }, view, pass);
}

async function reportRefusals(
  { refused }: PassCase<"reportRefusals">,
  view: MachineView,
  pass: PassContext,
): Promise<MachineView> {
  await pass.reporter.refused(refused);
  const reported = refused.map((one) => ({ ...one, reported: true }));
  await pass.documents.storeRefused(reported, pass.context.signal);
  return withDocuments({ ...view.documents, refused: reported }, prepared("reportRefusals", view), pass);
}

async function hold({ reason, message, annotations: notes }: PassCase<"hold">, pass: PassContext): Promise<Outcome> {
  forgetUpdate(pass);
  await pass.reporter.annotate(pass.node, notes);
  await reportDegraded({ reason, message, lasting: true }, pass);
  return stalled(reason, message);
}

/** No update is under way, and none has failed. */
function forgetUpdate({ memory }: PassContext): void {
  memory.announced = undefined;
  memory.failing = undefined;
}

async function refuse(plan: PassCase<"refuse">, pass: PassContext): Promise<Outcome> {
  const { facts, reporter, node, journal } = pass;
  const { message } = plan;
  const isNews = node.metadata.annotations?.[annotations.reason] !== message.slice(0, 2000);
  journal.report(targetIrreconcilable(message, isNews ? node : undefined));
  // The Event of the section reports it.
  journal.report(machineDegraded("Irreconcilable", message, undefined));
  forgetUpdate(pass);
  facts.state = nodeStates.unreconcilable;
  facts.reason = "Unreconcilable";
  await reporter.annotate(node, plan.annotations);
  // The obstacle may be on the machine, where an administrator can remove it.
  return done(retrySweepSeconds);
}

/** The machine decides again, with the target among those that it went back from. */
async function goBack(plan: PassCase<"goBack">, pass: PassContext): Promise<MachineView> {
  const { node, journal, context } = pass;
  const at = new Date(context.clock.now()).toISOString();
  await pass.documents.storeRefused([...plan.others, { ...plan.entry, at }], context.signal);
  pass.memory.documents = undefined;
  journal.wentBack(plan.entry.config, { to: plan.to, message: plan.message, reason: plan.reason, about: node });
  return observeMachine(pass);
}

async function healDrift(plan: PassCase<"healDrift">, pass: PassContext): Promise<Outcome> {
  pass.memory.healedDrift = { drift: plan.drift, at: pass.context.clock.monotonic() };
  pass.journal.report(driftFound(plan.message));
  return applyContentAgain(plan, pass);
}

async function reportDrift(plan: PassCase<"reportDrift">, pass: PassContext): Promise<Outcome> {
  const { facts, memory, reporter, node, journal, context } = pass;
  const { message } = plan;
  const isNews = node.metadata.annotations?.[annotations.reason] !== message;
  const isOfThisBoot = plan.event === "ConfigDriftDetected";
  if (isNews && !isOfThisBoot) context.report(diskNotAsApplied(node, message));
  journal.report(driftLeft(message, isNews && isOfThisBoot ? node : undefined));
  memory.announced = undefined;
  facts.state = nodeStates.degraded;
  facts.reason = "ConfigDrift";
  facts.driftSince ??= context.clock.now();
  await reporter.annotate(node, plan.annotations);
  if (plan.watch !== undefined) watchForDrift(plan.watch, pass);
  return done(sweepSeconds);
}

async function awaitPolicies(plan: PassCase<"awaitPolicies">, pass: PassContext): Promise<Outcome> {
  const { message } = plan;
  pass.journal.report(policiesAwaited(message, plan.isFirst));
  pass.memory.policiesAwaitedSince = plan.since;
  if (plan.isOverdue) await reportDegraded({ reason: "PoliciesNotMerged", message, lasting: false }, pass);
  return waiting("PoliciesNotMerged", message, 30);
}

async function update(plan: PassCase<"update">, view: MachineView, pass: PassContext): Promise<Outcome> {
  pass.memory.policiesAwaitedSince = undefined;
  if (plan.ending.after.case === "stayBack") tellWayBack(plan.ending.after, pass);
  const ended = await performUpdate(plan, view, pass);
  if (ended.verdict === "waiting") return ended.outcome;
  if (ended.verdict === "held") return hold(ended.plan, pass);
  const { after } = plan.ending;
  return after.case === "done" ? reportDone(after, view, pass) : stayBack(after, pass);
}

/** A daemon that ended between recording the refusal and telling of it leaves that to the next. */
const tellWayBack = ({ refused, target }: StayBackPlan, { journal }: PassContext): void =>
  journal.wentBack(refused.config, {
    to: target.config.name,
    message: refused.reason,
    reason: refused.cause ?? "BootFailed",
  });

async function stayBack(plan: StayBackPlan, pass: PassContext): Promise<Outcome> {
  const { reporter, node, journal } = pass;
  const { config } = plan.target;
  if (journal.run === plan.refused.config) tellWayBack(plan, pass);
  await reporter.annotate(node, plan.annotations);
  // The way back is an update too, and ends here.
  reporter.ended(config.name, spansOfPhases(journal), false);
  reporter.versions({
    desired: plan.refused.config,
    current: config.name,
    images: { desired: plan.desiredImage, current: pairOf(config)?.image },
  });
  watchForDrift(config, pass);
  journal.report(wentBackTo(config.name));
  await reportDegraded({ reason: plan.reason, message: plan.message, lasting: true }, pass);
  return done(retrySweepSeconds);
}

/** When the phases began and ended, by condition type, as far as the daemon's journal has them. */
const spansOfPhases = (journal: NodeJournal): ReadonlyMap<string, PhaseSpan> =>
  new Map(
    sectionsOfPhases.flatMap(({ path, type }) => {
      const span = journal.spanOf(path);
      return span.from === undefined ? [] : [[type, span] as const];
    }),
  );

async function reportDone(plan: DonePlan, view: MachineView, pass: PassContext): Promise<Outcome> {
  const { facts, memory, reporter, node } = pass;
  const { name } = plan.target.config;
  await putDocumentsInOrder(plan, view, pass);
  await reporter.annotate(node, plan.annotations);
  reporter.ended(name, spansOfPhases(pass.journal), plan.isNews);
  forgetUpdate(pass);
  recordDone(plan, pass);
  memory.resumedBoot = view.os.bootId;
  const image = pairOf(plan.target.config)?.image;
  reporter.versions({ desired: name, current: name, images: { desired: image, current: image } });
  await reportIrreconcilable(plan.target, pass);
  facts.state = nodeStates.done;
  facts.reason = "";
  facts.config = name;
  facts.driftSince = undefined;
  watchForDrift(plan.target.config, pass);
  return done(sweepSeconds);
}

/**
 * The machine no longer needs what it was served; its initial configuration is proven; no target is refused any more.
 */
async function putDocumentsInOrder(plan: DonePlan, { documents }: MachineView, pass: PassContext): Promise<void> {
  const { host, memory, reporter, context } = pass;
  const { signal } = context;
  const { proves } = plan;
  await moveAside(host, hostPaths.nodeAnnotations, hostPaths.nodeAnnotationsDone, signal);
  if (proves !== undefined && documents.originals !== undefined) {
    await writeCurrent(host, proves.config, proves.pair?.image, signal);
    await pass.documents.adopt(proves, documents.originals, signal);
    memory.documents = { ...documents, previous: proves };
  }
  if (plan.forgetsRefusals) {
    await reporter.refused([]);
    await pass.documents.storeRefused([], signal);
    memory.documents = { ...(memory.documents ?? documents), refused: [] };
  }
}

/** The machine has its target; its update is over once it is back in service. */
function recordDone(plan: DonePlan, { node: { metadata }, journal }: PassContext): void {
  const { name } = plan.target.config;
  const has = metadata.annotations ?? {};
  if (journal.run !== undefined && journal.run !== name) journal.report(updateSuperseded(name, journal.run));
  journal.goOn(name, { isOver: true });
  journal.report(operationResumed(name, plan.isNews || plan.isFirstOfBoot));
  journal.report(isDrainedForDaemon(has) ? uncordonRequested() : updateSucceeded(name));
  // Another target may come while the machine goes back from one.
  journal.report(wayBackOvertaken(name));
  journal.report(machineRecovered(name));
  journal.report(driftGone(name));
  journal.validated(name, { uid: metadata.uid ?? "", isNew: has[annotations.currentConfig] === undefined });
}

/** Where the machine differs permanently from its configuration: in content that only newly started machines follow. */
async function reportIrreconcilable(
  { machineConfig }: Wanted,
  { host, memory, reporter, context }: PassContext,
): Promise<void> {
  if (memory.compared?.of !== machineConfig) {
    const served = await machineConfigAt(host, hostPaths.servedConfig, context.signal);
    memory.compared = {
      of: machineConfig,
      changes: served === undefined ? undefined : irreconcilableChanges(served, machineConfig),
    };
  }
  if (memory.compared.changes !== undefined) reporter.irreconcilable(memory.compared.changes);
}
