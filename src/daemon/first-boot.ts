import { hostPaths } from "../api/names.ts";
import { createReport } from "../kube/report.ts";
import { describeChange } from "../core/config/change.ts";
import { firstFive } from "../core/machine/describe-plan.ts";
import { describeProblems, fitToAccounts, judgeTarget } from "../core/machine/judge-target.ts";
import { desiredImageOf } from "../core/machine/image-target.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import type { MachineDocuments, Previous } from "../core/machine/machine-record.ts";
import { osReleasePath, parseOsRelease } from "../core/preview/os-image-demands.ts";
import { clipText } from "../core/text/clip-text.ts";
import { printableLine } from "../core/text/printable.ts";
import { type NodePlan, planNode } from "../core/machine/plan-node.ts";
import type { Host } from "../host/host.ts";
import type { Ports } from "../ports/index.ts";
import { machineConfigAt, moveAside, originalsOf, servedAnnotations } from "./adopt-machine.ts";
import { type DocumentStore, documentStore } from "./machine-documents.ts";
import { observeHost } from "./observe-host.ts";
import { type LocalStep, type StepContext, contentMismatchOf, performStep } from "./perform-step.ts";
import { readTarget } from "../core/machine/read-config.ts";
import {
  firstBootFailed,
  firstBootGivenUp,
  firstConfigRead,
  firstRebootRequested,
  firstRebootSkipped,
  firstStagingBegun,
  firstSystemStaged,
} from "./reports.ts";

/** Between two tries of a first boot that does not complete. */
const retryMs = 60_000;

export type FirstBoot =
  /** Nothing (more) to do: units that wait for the first boot may start. */
  | { readonly verdict: "complete" }
  /** The machine reboots into its desired system. */
  | { readonly verdict: "rebooting"; readonly because: string }
  /** A retry would not help now; the daemon reports it once the machine has joined. */
  | { readonly verdict: "givenUp"; readonly reason: string };

export type FirstBootOptions = {
  readonly host: Host;
  /** Path of the MachineConfig that the machine was started with. */
  readonly file: string;
  /** Called before the given image is staged. */
  readonly beforeStaging?: () => Promise<void>;
} & Pick<Ports, "clock" | "log" | "journal">;

/**
 * Does what Ignition cannot before the kubelet starts: OS image, kernel arguments, kernel type, packages. Needs no API
 * server. The daemon later reads the result from the documents, and proves it.
 */
export async function completeFirstBoot(options: FirstBootOptions, signal: AbortSignal): Promise<FirstBoot> {
  const { host, file, log } = options;
  const encapsulated = await machineConfigAt(host, file, signal);
  if (encapsulated === undefined) {
    log.info({ file }, "there is no MachineConfig for a first boot: nothing to do");
    return { verdict: "complete" };
  }
  // The encapsulated one lacks what Ignition did; the served one is complete.
  const served = await machineConfigAt(host, hostPaths.servedConfig, signal);
  const machineConfig = served?.metadata.name === encapsulated.metadata.name ? served : encapsulated;
  const desired = desiredImageOf((await servedAnnotations(host, signal)) ?? {});
  if (desired.verdict === "refused") return giveUp(desired.message, options, signal);
  const pair = desired.verdict === "image" ? desired.pair : undefined;
  const read = readTarget(machineConfig, pair);
  if (read.verdict === "refused") return giveUp(read.reason, options, signal);
  const bootImage = await bootImageOf(host, signal);
  createReport(options)(firstConfigRead(machineConfig.metadata.name, bootImage));

  const documents = documentStore(host.ledger);
  const known = await adoptStart(
    { config: machineConfig, pair, proven: false },
    read.wanted.config,
    documents,
    options,
    signal,
  );
  const seen = await observeHost(
    host,
    known,
    { previous: read.wanted.config, target: read.wanted.config, inService: false, onlyControlPlane: false },
    signal,
  );
  const config = fitToAccounts(read.wanted.config, seen.users);
  const observed = { ...seen, previous: config };
  const freeBytes = await host.files.freeBytes(signal);
  const problems = judgeTarget(observed, config, { sshFolder: undefined, freeBytes });
  if (problems.length > 0) return giveUp(describeProblems(problems), options, signal);
  const plan = planNode(observed, config, undefined);
  const site: StepContext = {
    host,
    documents,
    clock: options.clock,
    observed,
    target: { machineConfig, config },
    originals: observed.originals,
    ledger: observed.ledger,
    refreshCredentials: options.beforeStaging,
  };
  return performPlan(plan, site, options, signal);
}

/** Longer names of systems are cut. */
const longestSystem = 120;

/** The system of the boot image, as it calls itself. */
async function bootImageOf(host: Host, signal: AbortSignal): Promise<string | undefined> {
  const file = await host.files.read(osReleasePath, signal);
  if (file?.kind !== "file") return undefined;
  const release = parseOsRelease(new TextDecoder().decode(file.contents));
  const name = release["PRETTY_NAME"] ?? release["NAME"];
  return name === undefined || name === "" ? undefined : clipText(printableLine(name), longestSystem);
}

/** Records the configuration that the machine started with, unless it is recorded already. */
async function adoptStart(
  previous: Previous,
  config: NodeConfig,
  documents: DocumentStore,
  { host }: FirstBootOptions,
  signal: AbortSignal,
): Promise<MachineDocuments> {
  const known = await documents.load(signal);
  if (known.previous !== undefined) return known;
  const originals = await originalsOf(host, config, signal);
  await documents.adopt(previous, originals, signal);
  return { ...known, previous, originals };
}

async function performPlan(
  plan: NodePlan,
  site: StepContext,
  options: FirstBootOptions,
  signal: AbortSignal,
): Promise<FirstBoot> {
  switch (plan.verdict) {
    case "bootFails":
      return giveUp(`after ${plan.tried} reboots the machine still boots ${plan.booted.image}`, options, signal);
    case "bootUndoes":
      return giveUp(
        `after ${plan.tried} reboots, ${firstFive(plan.changes.map(describeChange))} differ again: each boot undoes them`,
        options,
        signal,
      );
    case "unsettled":
    case "settleFailed":
      return giveUp(
        `the machine is not what its image should make of it: ${plan.path ?? ""} ${plan.cause}`,
        options,
        signal,
      );
    case "inSync":
      await finish(options, signal);
      createReport(options)(firstRebootSkipped());
      return { verdict: "complete" };
    case "change":
      for (const step of plan.steps) {
        signal.throwIfAborted();
        const ended = step.do === "drain" ? undefined : await performReported(step, site, options, signal);
        if (ended !== undefined) return ended;
      }
      await finish(options, signal);
      return { verdict: "complete" };
  }
}

/** @returns the end of the first boot, if this step ends it. */
async function performReported(
  step: LocalStep,
  site: StepContext,
  options: FirstBootOptions,
  signal: AbortSignal,
): Promise<FirstBoot | undefined> {
  options.log.info({ step: step.do }, "first boot");
  const report = createReport(options);
  // Remove the marker before the reboot: from here on the ledger records the remaining steps.
  if (step.do === "reboot") await finish(options, signal);
  if (step.do === "stageOs") report(firstStagingBegun(step.deployment.image));
  await performStep(step, site, signal);
  if (step.do === "prefetch") {
    const mismatch = await contentMismatchOf(site.host, site.target.config, step.images, signal);
    if (mismatch !== undefined) return giveUp(mismatch, options, signal);
  }
  if (step.do === "stageOs") report(firstSystemStaged(step.deployment, site.observed.booted));
  if (step.do !== "reboot") return undefined;
  report(firstRebootRequested(step.because));
  await options.journal.flush(signal);
  return { verdict: "rebooting", because: step.because };
}

/** Units that wait for the first boot may start, at the next boot as well. */
async function finish({ host, file }: FirstBootOptions, signal: AbortSignal): Promise<void> {
  if (file === hostPaths.encapsulated)
    await moveAside(host, hostPaths.encapsulated, hostPaths.encapsulatedDone, signal);
}

async function giveUp(reason: string, options: FirstBootOptions, signal: AbortSignal): Promise<FirstBoot> {
  createReport(options)(firstBootGivenUp(reason));
  await finish(options, signal);
  return { verdict: "givenUp", reason };
}

/** Runs {@link completeFirstBoot} until it completes: nothing else can retry it on a machine that has not joined. */
export async function keepCompletingFirstBoot(options: FirstBootOptions, signal: AbortSignal): Promise<FirstBoot> {
  let reported = "";
  for (;;) {
    try {
      return await completeFirstBoot(options, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const message = error instanceof Error ? error.message : String(error);
      // Log a repeated failure once; the log shows it to an administrator who waits for the machine.
      if (message !== reported) createReport(options)(firstBootFailed(message));
      reported = message;
      options.log.error({ error }, "the first boot is not complete; trying again in a minute");
      await options.clock.sleep(retryMs, signal);
    }
  }
}
