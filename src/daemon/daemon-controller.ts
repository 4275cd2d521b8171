import { McoError } from "../api/errors.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, hostPaths, machineConfigNodeConditions as types, nodeStates, objects } from "../api/names.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import type { Stories } from "../api/books/stories.ts";
import { isControlPlane } from "../core/pool/member-facts.ts";
import { type Because, type Consequence, describeChange, describeConsequence } from "../core/config/change.ts";
import { foreignPackages, missingExtensions, packagesOf } from "../core/machine/deployment.ts";
import { type MachineFacts, describeProblems, fitToAccounts, judgeTarget } from "../core/machine/judge-target.ts";
import {
  type ImagePair,
  contentMismatch,
  describeTarget,
  imageWishOf,
  isTargetOf,
  pairOf,
  samePair,
  sameTarget,
} from "../core/machine/image-target.ts";
import { type IrreconcilableChange, irreconcilableChanges } from "../core/config/irreconcilable-changes.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import { type NodePlan, driftOf, planNode } from "../core/machine/plan-node.ts";
import { reconcile } from "../core/config/reconcilable.ts";
import { storageOverridesOf } from "../core/render/render-for-pool.ts";
import { type PhaseReport, childReason, notRequired, phasesAtStart } from "../core/books/update-conditions.ts";
import type { Host } from "../host/host.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { KubeError, isPassing } from "../kube/kube-error.ts";
import { type Outcome, settled, stalled, waiting } from "../kube/outcome.ts";
import { adoptMachine, machineConfigAt, moveAside, servedAnnotations, tidyAfterBoot } from "./adopt-machine.ts";
import { type DaemonFacts, newDaemonFacts } from "./daemon-facts.ts";
import { documentStore } from "./machine-documents.ts";
import { type NodeReporter, nodeReporter } from "./node-reporter.ts";
import { type NodeStory, nodeStory } from "./node-story.ts";
import { digestOf, observeHost } from "./observe-host.ts";
import {
  type LocalStep,
  type Worksite,
  contentMismatchOf,
  forgetPayloads,
  performStep,
  watchedPaths,
  writeCurrent,
} from "./perform-step.ts";
import { type Wanted, readConfig, readTarget } from "../core/machine/read-config.ts";
import type { Deployment, ObservedNode } from "../core/machine/observed-node.ts";
import type { MachineDocuments, RefusedTarget } from "../core/machine/machine-record.ts";

export interface DaemonOptions {
  readonly host: Host;
  readonly nodeName: string;
  /** How long to wait for the machine to go down before it is asked again. */
  readonly rebootPatienceSeconds?: number;
  /** Where figures are kept for those who ask. */
  readonly facts?: DaemonFacts;
  /** What was told of this machine before this process. */
  readonly past?: readonly JournalLine[];
  /** Brings credentials and certificates of the machine up to date at once. */
  readonly refreshCredentials?: (context: Context) => Promise<void>;
}

/** A full look at the disk, also when nothing was heard of: watches can miss things. */
const sweepSeconds = 300;
/** How soon a machine is looked at that was just settled. */
const settledSoonSeconds = 2;
/** How soon what could not be told is told again. */
const untoldSeconds = 10;
/** How soon a machine that went back finds out that somebody wants it tried again. */
const liftedSweepSeconds = 30;
/** Drift that is there again so soon after the machine was settled is not settled again. */
const settleAgainMs = 60_000;
/** How long the operator may take to merge disruption policies before somebody is told. */
const policiesPatienceMs = 120_000;

type Change = NodePlan & { readonly verdict: "change" };

const sentence = (because: readonly Because[]) =>
  because.map(({ consequence, why }) => `${describeConsequence(consequence)} because ${why}`).join("; ");

/**
 * What concerns the daemon of its Node: not the kubelet's heartbeats, and not what it has just written itself, which
 * would undo every back-off.
 */
function concernsUs(before: Node | undefined, after: Node | undefined, reporter: NodeReporter | undefined): boolean {
  if (before === undefined || after === undefined) return true;
  if (
    JSON.stringify([before.metadata.labels, before.spec, before.metadata.deletionTimestamp]) !==
    JSON.stringify([after.metadata.labels, after.spec, after.metadata.deletionTimestamp])
  )
    return true;
  const [was, is] = [before.metadata.annotations ?? {}, after.metadata.annotations ?? {}];
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].some(
    (key) => was[key] !== is[key] && reporter?.hasWritten(key, is[key]) !== true,
  );
}

const policiesOf = (configuration: MachineConfiguration | undefined) => [
  configuration?.metadata.generation,
  configuration?.status?.observedGeneration,
  configuration?.status?.nodeDisruptionPolicyStatus,
];

/**
 * Keeps one machine on its target. Each look observes the machine, plans, and carries the plan out as far as it goes
 * now: a drain or a reboot ends the look, and the next one finds out by observing where things stand.
 */
export function daemonController(options: DaemonOptions): Controller {
  const { host, nodeName } = options;
  const facts = options.facts ?? newDaemonFacts();
  const documents = documentStore(host.ledger);
  const rebootPatienceSeconds = options.rebootPatienceSeconds ?? 120;
  let loaded: MachineDocuments | undefined;
  let reporter: NodeReporter | undefined;
  let story: NodeStory | undefined;
  let targets: MachineConfig[] = [];
  let rebootAsked: { readonly bootId: string; readonly at: number } | undefined;
  let watched: { readonly of: NodeConfig; readonly stop: () => void } | undefined;
  let add: (key: string) => void = () => undefined;
  /** The boot that this process has tidied up after; the first look of a boot tells more than later ones. */
  let tidied: string | undefined;
  let resumed: string | undefined;
  /** Images that this process has seen fetched, so that waiting for a drain does not ask for them again and again. */
  const fetched = new Set<string>();
  let policiesAwaitedSince: number | undefined;
  /** The target whose update has been told of, and the one whose last try failed. */
  let announced: string | undefined;
  /** Where the machine differs for good from a configuration; `undefined` on one that nobody served its first. */
  let compared:
    | { readonly of: MachineConfig; readonly changes: readonly IrreconcilableChange[] | undefined }
    | undefined;
  let failing: string | undefined;
  /** What the machine was settled for last, by its drift policy. */
  let settleRebootSince: number | undefined;
  let settledFor: { readonly drift: string; readonly at: number } | undefined;

  async function configNamed(name: string, context: Context): Promise<MachineConfig | undefined> {
    const known = [...targets, ...(loaded?.previous === undefined ? [] : [loaded.previous.config])].find(
      (config) => config.metadata.name === name,
    );
    if (known !== undefined) return known;
    const read = await context.kube.get(MachineConfig, { name }, { signal: context.signal });
    // A rendered configuration never changes; the last two are the ones that matter.
    if (read !== undefined) targets = [read, ...targets].slice(0, 2);
    return read;
  }

  function watchForDrift(config: NodeConfig, node: Node, context: Context): void {
    if (watched?.of === config) return;
    if (watched === undefined)
      context.events.event(node, {
        type: "Normal",
        reason: "ConfigDriftMonitorStarted",
        message: `Watching the files of ${config.name}`,
      });
    watched?.stop();
    watched = { of: config, stop: host.files.watch([...watchedPaths(config), hostPaths.force], () => add(nodeName)) };
  }

  function stopWatching(node: Node, context: Context, message: string): void {
    if (watched === undefined) return;
    watched.stop();
    watched = undefined;
    context.events.event(node, { type: "Normal", reason: "ConfigDriftMonitorStopped", message });
  }

  const tale = ({ scribe, clock }: Context) =>
    (story ??= nodeStory({ scribe, clock, nodeName, past: options.past ?? [] }));

  return {
    name: "daemon",
    watches: [
      watching({
        resource: kubernetes.Node,
        selection: { fieldSelector: `metadata.name=${nodeName}` },
        concerns: ({ key, before, after }) => (concernsUs(before, after, reporter) ? [key] : []),
      }),
      watching({
        resource: MachineConfiguration,
        concerns: ({ before, after }) =>
          JSON.stringify(policiesOf(before)) === JSON.stringify(policiesOf(after)) ? [] : [nodeName],
      }),
    ],
    owns: [
      "Node.metadata.annotations/daemon",
      "MachineConfigNode.status/daemon",
      "MachineConfigNode.metadata.annotations/daemon",
    ],
    start: (enqueue, context) => {
      add = enqueue;
      context.signal.addEventListener("abort", () => watched?.stop(), { once: true });
    },

    async reconcile(name, context): Promise<Outcome> {
      const node = context.caches.of(kubernetes.Node).get(name);
      if (node === undefined || node.metadata.deletionTimestamp !== undefined)
        return waiting("NodeAbsent", "the node is not registered yet", 30);
      reporter ??= nodeReporter({ ...context, nodeName });
      reporter.begin(node);
      facts.hasSeenNode = true;
      facts.lookingSince = context.clock.monotonic();
      try {
        const outcome = await look(node, reporter, context);
        return (await reporter.flush()) === "told" ? outcome : soonAgain(outcome);
      } catch (error) {
        // That the API server is away or busy, or does not know our rights yet, is no fault of the machine.
        if (context.signal.aborted || isPassing(error) || isRefusedToUs(error)) throw error;
        failing = announced;
        fetched.clear(); // One that was thrown away while a drain took its time would be missed for ever.
        const outcome = await degrade(node, reporter, context, failureOf(error));
        if (outcome === undefined) throw error;
        return outcome;
      } finally {
        facts.lookingSince = undefined;
      }
    },
  };

  /** @returns an outcome where trying again cannot help. */
  async function degrade(
    node: Node,
    report: NodeReporter,
    context: Context,
    { reason, message, lasting }: Failure,
  ): Promise<Outcome | undefined> {
    facts.state = nodeStates.degraded;
    facts.reason = reason;
    report.phases([{ type: types.nodeDegraded, status: "True", reason, message }]);
    if (node.metadata.annotations?.[annotations.reason] !== message.slice(0, 2000))
      context.events.event(node, { type: "Warning", reason, message });
    tale(context).degraded(reason, message);
    await report
      .annotate(node, { [annotations.state]: nodeStates.degraded, [annotations.reason]: message })
      .catch((second: unknown) => context.log.warn({ error: second }, "state not written"));
    await report.flush();
    return lasting ? stalled(reason, message) : undefined;
  }

  async function look(node: Node, report: NodeReporter, context: Context): Promise<Outcome> {
    const { signal, events } = context;
    const has = node.metadata.annotations ?? {};
    const adopted = await known(node, report, context);
    if ("kind" in adopted) return adopted;
    const status = await host.os.status(signal);
    if (rebootAsked?.bootId !== status.bootId) rebootAsked = undefined;
    if (tidied !== status.bootId) await afterBoot(adopted, node, report, context);

    if (rebootAsked !== undefined) {
      if (context.clock.monotonic() - rebootAsked.at < rebootPatienceSeconds * 1000)
        return waiting("Rebooting", "the machine is going down", rebootPatienceSeconds);
      facts.rebootFailures += 1;
      tale(context).fail(
        "PostAction/Rebooted",
        "RebootFailed",
        `the machine has not gone down within ${rebootPatienceSeconds} s of being asked to; it is asked again`,
      );
      events.event(node, {
        type: "Warning",
        reason: "RebootFailed",
        message: `${nodeName} has not gone down within ${rebootPatienceSeconds} s of being asked to; it is asked again`,
      });
    }

    const restart = awaitsRestart(adopted, status.bootId);
    if (restart !== undefined) return awaitRestart(restart, context);
    settleRebootSince = undefined;

    const forced = (await host.files.read(hostPaths.force, signal)) !== undefined;
    const refused = await refusedTargets(adopted, forced, report, context);
    const desired = has[annotations.desiredConfig];
    if (desired === undefined || desired === "")
      return waiting("NoTarget", "no configuration was chosen for this machine yet", 60);
    const wish = imageWishOf(has);
    if (wish.verdict === "refused") return hold(node, report, context, wish.reason, wish.message);
    const wanted = wish.verdict === "image" ? wish.pair : undefined;
    const wentBack = refused.find(
      ({ config, image, content }) =>
        config === desired && samePair(wanted, content === undefined ? undefined : { image, content }),
    );
    const { previous } = adopted;
    // A target that this machine went back from is not tried again: it keeps what it has until somebody decides.
    const machineConfig =
      wentBack !== undefined && previous !== undefined ? previous.config : await configNamed(desired, context);
    if (machineConfig === undefined) return waiting("TargetAbsent", `${desired} does not exist`, 15);
    const pair = wentBack !== undefined && previous !== undefined ? previous.pair : wanted;
    const isAway =
      adopted.ledger !== undefined ||
      previous?.config.metadata.name !== machineConfig.metadata.name ||
      !samePair(previous.pair, pair);
    if (wentBack === undefined && isAway) tale(context).seen(desired, previous?.config.metadata.name);
    const read = readTarget(machineConfig, pair);
    if (read.verdict === "refused") return refuse(node, report, context, desired, read.reason);
    const previousRead = previous === undefined ? undefined : readTarget(previous.config, previous.pair);
    if (previousRead?.verdict === "refused")
      throw new McoError("MCO_LEDGER_UNREADABLE", { document: "previous.json", problem: previousRead.reason });

    const onlyControlPlane = isControlPlane(node) && has[annotations.controlPlaneTopology] === "SingleReplica";
    const seen = await observeHost(
      host,
      adopted,
      {
        previous: previousRead?.wanted.config,
        target: read.wanted.config,
        inService: previous?.proven === true,
        onlyControlPlane,
        localPayload:
          (await documents.payloadImages(signal)).includes(status.booted.image) &&
          (await documents.payload(status.booted.image, signal)) !== undefined,
      },
      signal,
    );
    const target: Wanted = { machineConfig, config: fitToAccounts(read.wanted.config, seen.users) };
    const observed: ObservedNode =
      seen.previous === undefined ? seen : { ...seen, previous: fitToAccounts(seen.previous, seen.users) };
    facts.foreignPackages = foreignPackages(observed.booted.packages).length;

    const configuration = context.caches.of(MachineConfiguration).get(objects.machineConfiguration);
    if (previous !== undefined && previous.config.metadata.name !== machineConfig.metadata.name) {
      const found = reconcile(previous.config, machineConfig, { overrides: storageOverridesOf(configuration) });
      if (found.length > 0)
        return refuse(
          node,
          report,
          context,
          desired,
          found.map((each) => `${each.field}: ${each.reason}; ${each.remedy}`).join("; "),
        );
    }
    const problems = judgeTarget(observed, target.config, await machineFacts(signal));
    if (problems.length > 0) return refuse(node, report, context, desired, describeProblems(problems));
    // What it boots already says itself what it holds.
    const held = observed.payload === "image" ? "full" : "os-only";
    if (pair !== undefined && pair.image === status.booted.image && pair.content !== held)
      return hold(node, report, context, "ImageContentMismatch", contentMismatch(pair, held));

    const policies = configuration?.status?.nodeDisruptionPolicyStatus?.clusterPolicies;
    const plan = planNode(observed, target.config, policies);
    if (plan.verdict === "inSync")
      return wentBack === undefined
        ? done(node, report, context, target)
        : staysBack(node, report, context, target, wentBack);
    if (plan.verdict === "bootFails") return bootFails(plan, adopted, node, report, context, target);
    if (plan.verdict === "settleFailed") return settleFailed(plan, adopted, node, report, context, target);

    const site: Worksite = {
      host,
      documents,
      clock: context.clock,
      observed,
      target,
      originals: observed.originals,
      ledger: observed.ledger,
      refreshCredentials: () => options.refreshCredentials?.(context) ?? Promise.resolve(),
    };
    const drift = driftOf(observed);
    if (
      drift.length > 0 &&
      observed.previous !== undefined &&
      sameTarget(observed.previous, target.config) &&
      !observed.forced
    )
      return degradeForDrift(site, node, report, context, drift.map(describeChange));
    if (plan.verdict === "unsettled") return unsettled(plan, node, report, context, target);
    if (
      configuration !== undefined &&
      configuration.status?.observedGeneration !== undefined &&
      configuration.status.observedGeneration !== configuration.metadata.generation &&
      observed.ledger === undefined
    )
      return awaitPolicies(node, report, context);
    policiesAwaitedSince = undefined;
    return execute(plan, site, wentBack, node, report, context);
  }

  /** Settling has asked for a boot: nothing is done before it has come. */
  async function awaitRestart(because: string, { clock, signal }: Context): Promise<Outcome> {
    settleRebootSince ??= clock.monotonic();
    if (clock.monotonic() - settleRebootSince >= rebootPatienceSeconds * 1000) {
      facts.rebootFailures += 1;
      settleRebootSince = clock.monotonic();
      await host.os.reboot(because, signal);
    }
    return waiting("Rebooting", because, rebootPatienceSeconds);
  }

  /** Nothing is done for a target that says two things at once; whoever wrote it can mend it. */
  async function hold(
    node: Node,
    report: NodeReporter,
    context: Context,
    reason: "ConflictingImageAnnotations" | "ImageNotDigest" | "ImageContentMismatch",
    message: string,
  ): Promise<Outcome> {
    announced = undefined;
    failing = undefined;
    await report.annotate(node, drainTakenBack(node, loaded?.previous?.config.metadata.name ?? ""));
    await degrade(node, report, context, { reason, message, lasting: true });
    return stalled(reason, message);
  }

  /** What the machine is known to have; an outcome where that cannot be found out now. */
  async function known(node: Node, report: NodeReporter, context: Context): Promise<MachineDocuments | Outcome> {
    loaded ??= await documents.load(context.signal);
    const has = node.metadata.annotations ?? {};
    if (loaded.previous === undefined && loaded.ledger === undefined) {
      const adoption = await adoptMachine(host, documents, has, (name) => configNamed(name, context), context.signal);
      if (adoption.verdict === "unknown" && (await host.files.read(hostPaths.force, context.signal)) === undefined) {
        const message = `the machine is said to have ${adoption.config}, which neither its disk nor the cluster holds; bring the MachineConfig back, or create ${hostPaths.force} on the machine to apply its target over what is there`;
        await degrade(node, report, context, { reason: "CurrentConfigMissing", message, lasting: false });
        return waiting("CurrentConfigMissing", message, 60);
      }
      if (adoption.verdict === "adopted") {
        loaded = adoption.documents;
        tale(context).adopted(adoption.documents.previous?.config.metadata.name ?? "", adoption.from);
      }
    }
    // What its first boot left to be proven.
    if (loaded.previous?.proven === false && has[annotations.currentConfig] === undefined)
      tale(context).adopted(loaded.previous.config.metadata.name, "first boot");
    const served =
      has[annotations.currentConfig] === undefined ? await servedAnnotations(host, context.signal) : undefined;
    const missing = Object.fromEntries(Object.entries(served ?? {}).filter(([key]) => has[key] === undefined));
    // The disk knows better than an annotation that came back from an old backup.
    const truth = loaded.ledger === undefined ? loaded.previous?.config.metadata.name : undefined;
    await report.annotate(node, {
      ...missing,
      ...(truth === undefined || has[annotations.currentConfig] === truth
        ? {}
        : { [annotations.currentConfig]: truth }),
      ...(truth === undefined ? {} : currentImages(loaded.previous?.pair)),
    });
    return loaded;
  }

  /** The first look of a boot. */
  async function afterBoot(
    { ledger, previous }: MachineDocuments,
    node: Node,
    report: NodeReporter,
    context: Context,
  ): Promise<void> {
    const { signal, events } = context;
    const has = node.metadata.annotations ?? {};
    const { bootId, booted } = await host.os.status(signal);
    const read = previous === undefined ? undefined : readConfig(previous.config);
    await tidyAfterBoot(host, read?.verdict === "read" ? read.wanted.config : undefined, signal);
    await forgetPayloads(host, documents, false, signal);
    facts.os = await osOf(host, signal);
    const failure = await host.os.finaliseFailure(signal);
    if (has[annotations.finaliseFailure] !== failure) {
      if (failure !== undefined)
        events.event(node, {
          type: "Warning",
          reason: "FailedFinalization",
          message: `The system that was staged on ${nodeName} was not finalised at the last shutdown: ${failure}`,
        });
      await report.annotate(node, { [annotations.finaliseFailure]: failure });
    }
    const wentDown = ledger?.rebootsAsked?.includes(bootId) !== true;
    const told = tale(context);
    if (failure !== undefined && told.isOpen("PostAction/Rebooted"))
      told.fail("PostAction/Rebooted", "FinaliseFailed", `the system that was staged was not finalised: ${failure}`);
    told.booted(bootId, `boot ${bootId} of ${booted.image}`);
    if (has[annotations.postConfigAction] === "Rebooting" && wentDown) {
      report.phases([
        { type: types.rebootedNode, status: "True", reason: "Rebooted", message: "the machine has rebooted" },
      ]);
      events.event(node, { type: "Normal", reason: "Rebooted", message: `${nodeName} has rebooted` });
    }
    tidied = bootId;
  }

  async function machineFacts(signal: AbortSignal): Promise<MachineFacts> {
    const core = await host.users.lookup("core", signal);
    const folder = core === undefined ? undefined : await host.files.read(`${core.home}/.ssh`, signal);
    return {
      sshFolder: core === undefined || folder?.kind !== "folder" ? undefined : { uid: folder.uid, coreUid: core.uid },
      freeBytes: await host.files.freeBytes(signal),
    };
  }

  /**
   * What this machine went back from, less what somebody has lifted since: by the force file, or by taking it out of
   * the MachineConfigNode.
   */
  async function refusedTargets(
    { refused }: MachineDocuments,
    forced: boolean,
    report: NodeReporter,
    { signal }: Context,
  ): Promise<readonly RefusedTarget[]> {
    if (refused.length === 0 || loaded === undefined) return refused;
    if (forced || (refused.every(({ reported }) => reported === true) && !(await report.namesRefused()))) {
      await documents.storeRefused([], signal);
      await report.refused([]);
      loaded = { ...loaded, refused: [] };
    } else if (!refused.every(({ reported }) => reported === true)) {
      await report.refused(refused);
      const reported = refused.map((one) => ({ ...one, reported: true }));
      await documents.storeRefused(reported, signal);
      loaded = { ...loaded, refused: reported };
    }
    return loaded.refused;
  }

  async function execute(
    plan: Change,
    site: Worksite,
    wentBack: RefusedTarget | undefined,
    node: Node,
    report: NodeReporter,
    context: Context,
  ): Promise<Outcome> {
    const { signal, events } = context;
    const has = node.metadata.annotations ?? {};
    const { name } = site.target.config;
    const drains = plan.steps.some((step) => step.do === "drain");
    const told = tale(context);
    if (site.observed.forced)
      told.driftEnded(
        "DriftForced",
        `the configuration ${name} is applied over what is there: ${hostPaths.force} asks for it`,
      );
    // What is applied again is no new target, and yet an update of the machine.
    if (wentBack === undefined) told.seen(name, site.observed.previous?.name);
    told.goOn(name);
    const what = describeTarget(site.target.config);
    const goesOn =
      announced === what ||
      (has[annotations.state] === nodeStates.working &&
        site.observed.ledger !== undefined &&
        isTargetOf(site.observed.ledger, site.target.config));
    announced = what;
    if (!goesOn) {
      context.log.info(
        { target: name, changes: plan.changes.length, steps: plan.steps.map((step) => step.do).join(" ") },
        "update planned",
      );
      report.phases(phasesAtStart(name));
      const ignored =
        site.observed.previous === undefined && site.target.config.atBirth.ignored.length > 0
          ? `; not carried out here: ${site.target.config.atBirth.ignored.join(", ")}`
          : "";
      report.phases([
        {
          type: types.updatePrepared,
          status: "True",
          reason: types.updatePrepared,
          message: `${plan.changes.length} changes, drain ${drains ? "required" : "not required"}: ${sentence(plan.because)}${ignored}`,
        },
      ]);
      report.versions({ desired: name, images: { desired: pairOf(site.target.config)?.image } });
      if (resumed !== site.observed.bootId)
        events.event(node, {
          type: "Normal",
          reason: "BootResync",
          message: `${nodeName} has booted with something else than ${name}, which it should have`,
        });
    }
    told.end(
      "Prepared",
      "Planned",
      `${plan.changes.length} changes; ${sentence(plan.because) || "nothing has to be done"}`,
      { data: forecastOf(plan, site.observed.booted, site.target.config) },
    );
    facts.config = name;
    // What failed the last time has not come right because it is tried again.
    if (failing !== what) {
      facts.state = nodeStates.working;
      facts.reason = "";
      report.phases([{ type: types.nodeDegraded, status: "False", reason: "AsExpected", message: "" }]);
      await report.annotate(node, {
        [annotations.state]: nodeStates.working,
        [annotations.reason]: "",
        [annotations.postConfigAction]: has[annotations.postConfigAction] === undefined ? undefined : "",
      });
    }
    // After its reboot a machine needs no drain any more; the one that it had is told of.
    if (!drains && has[annotations.desiredDrain] !== `drain-${name}`) {
      report.phases([
        { type: types.cordoned, status: "False", reason: notRequired, message: "no drain is required" },
        { type: types.drained, status: "False", reason: notRequired, message: "no drain is required" },
      ]);
      told.skip("Executed/Cordoned", "NotRequired", "no drain is required");
      told.skip("Executed/Drained", "NotRequired", "no drain is required");
    }
    const changesOs = plan.steps.some((step) => step.do === "stageOs" || step.do === "prefetch");
    const lastWrite = plan.steps.findLast(isWrite);
    const lastAction = plan.steps.findLast(isAction);
    for (const step of plan.steps) {
      signal.throwIfAborted();
      if (isWrite(step)) told.begin("Executed/Files", "Writing", `files and units of ${name}`);
      if (isAction(step)) told.begin("PostAction/Service", "Acting", sentence(plan.because));
      switch (step.do) {
        case "prefetch": {
          const images = step.images.filter((image) => !fetched.has(image));
          if (images.length === 0) continue;
          report.phases([
            { type: types.imagePulledFromRegistry, status: "Unknown", reason: "Pulling", message: images.join(", ") },
          ]);
          told.begin("Executed/ImagePulled", "Pulling", images.join(", "));
          await perform(step, site, node, report, context);
          const mismatch = await contentMismatchOf(host, site.target.config, images, signal);
          if (mismatch !== undefined) {
            told.fail("Executed/ImagePulled", "PullFailed", mismatch);
            report.phases([
              {
                type: types.imagePulledFromRegistry,
                status: "False",
                reason: "ImageContentMismatch",
                message: mismatch,
              },
            ]);
            return hold(node, report, context, "ImageContentMismatch", mismatch);
          }
          for (const image of images) fetched.add(image);
          report.phases([
            { type: types.imagePulledFromRegistry, status: "True", reason: "Pulled", message: images.join(", ") },
          ]);
          told.end("Executed/ImagePulled", "Pulled", images.join(", "));
          continue;
        }
        case "drain":
          if (isDrained(node, name)) continue;
          await report.annotate(node, { [annotations.desiredDrain]: `drain-${name}` });
          if (has[annotations.desiredDrain] !== `drain-${name}`)
            events.event(node, {
              type: "Normal",
              reason: "Drain",
              message: `Draining ${nodeName} to update it to ${name}`,
            });
          told.begin("Executed/Cordoned", "DrainRequested", "the daemon asked for a drain");
          return waiting("Draining", "waiting for the drain controller", 60);
        case "openLedger":
          stopWatching(node, context, `${nodeName} is being updated to ${name}`);
          report.phases([
            holdsFiles(site.target.config) ?? {
              type: types.appliedFiles,
              status: "Unknown",
              reason: childReason(types.appliedFilesAndOS, types.appliedFiles),
              message: `writing ${name}`,
            },
            changesOs
              ? {
                  type: types.appliedOSImage,
                  status: "Unknown",
                  reason: childReason(types.appliedFilesAndOS, types.appliedOSImage),
                  message: "staging the system",
                }
              : {
                  type: types.appliedOSImage,
                  status: "False",
                  reason: notRequired,
                  message: "the system does not change",
                },
          ]);
          await perform(step, site, node, report, context);
          continue;
        case "stageOs":
          events.event(node, {
            type: "Normal",
            reason: "OSUpdateStarted",
            message: plan.changes.filter(isOfTheSystem).map(describeChange).join(", "),
          });
          told.begin("Executed/OS", "Staging", step.deployment.image, {
            data: { fromImage: site.observed.booted.image, toImage: step.deployment.image },
          });
          await perform(step, site, node, report, context);
          facts.osFailures = 0;
          events.event(node, {
            type: "Normal",
            reason: "OSUpdateStaged",
            message: `${step.deployment.image} is staged for the next boot`,
          });
          told.end("Executed/OS", "Staged", step.deployment.image, {
            data: {
              packages: step.deployment.packages.length,
              kernelArguments: step.deployment.kernelArguments.length,
              kernelType: step.deployment.kernelType,
            },
          });
          continue;
        case "reboot":
          return reboot(step, plan, site, node, report, context);
        case "settle":
          told.begin("PostAction/Settled", "Settling", "nobody has made the machine equal to what it booted yet");
          await perform(step, site, node, report, context);
          return waiting("Settling", "the machine is looked at again once it was settled", settledSoonSeconds);
        case "closeLedger":
          await expectPackages(site, signal).catch((error: unknown) => {
            told.fail("Resumed", "UpdateFailed", error instanceof Error ? error.message : String(error));
            throw error;
          });
          await perform(step, site, node, report, context);
          continue;
        default:
          await perform(step, site, node, report, context);
      }
      if (step === lastWrite)
        told.end("Executed/Files", "Written", `files and units of ${name} are on the disk`, { data: writtenBy(plan) });
      if (step === lastAction)
        told.end(
          "PostAction/Service",
          reasonOfActions(plan),
          plan.steps
            .filter(isAction)
            .map((action) => ("unit" in action ? `${action.do} ${action.unit}` : "daemon-reload"))
            .join(", "),
        );
    }
    const rebooted = site.observed.ledger !== undefined && site.observed.ledger.bootId !== site.observed.bootId;
    const { settled: record, bootId } = site.observed;
    if (rebooted && record?.bootId === bootId && record.result === "settled")
      told.end(
        "PostAction/Settled",
        "Settled",
        `${record.changed.length} of what the machine is to have were put right when it booted`,
      );
    report.phases([
      ...applied(site.target.config, changesOs || rebooted),
      {
        type: types.updatePostActionComplete,
        status: "True",
        reason: rebooted ? "Rebooted" : reasonOfActions(plan),
        message: sentence(plan.because),
      },
    ]);
    if (rebooted && site.observed.previous?.osImage !== site.target.config.osImage)
      events.event(node, {
        type: "Normal",
        reason: "OSUpgradeApplied",
        message: `${nodeName} runs ${site.observed.booted.image}`,
      });
    if (!rebooted && plan.changes.length > 0 && !plan.steps.some(isAction))
      events.event(node, {
        type: "Normal",
        reason: "SkipReboot",
        message: `${name} needed no reboot and no service action`,
      });
    if (!rebooted && lastAction === undefined)
      told.end("PostAction/Service", "None", sentence(plan.because) || "what changed takes effect by itself");
    events.event(node, { type: "Normal", reason: "NodeDone", message: `${nodeName} now has ${name}` });
    return wentBack === undefined
      ? done(node, report, context, site.target)
      : staysBack(node, report, context, site.target, wentBack);
  }

  async function reboot(
    step: LocalStep & { do: "reboot" },
    plan: Change,
    site: Worksite,
    node: Node,
    report: NodeReporter,
    context: Context,
  ): Promise<Outcome> {
    const { caches, events, kube, scribe, signal } = context;
    const { name } = site.target.config;
    // What was written since the drain took its time: somebody may have put the machine back into service meanwhile.
    const isBackInService = (now: Node) => plan.steps.some(({ do: what }) => what === "drain") && !isDrained(now, name);
    const drainFirst = () =>
      waiting("Draining", "the machine was put back into service before its reboot: it is drained again first", 1);
    if (isBackInService(caches.of(kubernetes.Node).get(nodeName) ?? node)) return drainFirst();
    events.event(node, { type: "Normal", reason: "Reboot", message: `Rebooting ${nodeName}: ${step.because}` });
    report.phases([
      ...applied(site.target.config, plan.changes.some(isOfTheSystem)),
      { type: types.updatePostActionComplete, status: "Unknown", reason: "Rebooting", message: step.because },
      { type: types.rebootedNode, status: "Unknown", reason: "Rebooting", message: step.because },
    ]);
    tale(context).begin("PostAction/Rebooted", "RebootRequested", step.because);
    await report.annotate(node, { [annotations.postConfigAction]: "Rebooting" });
    await report.flush();
    await Promise.all([scribe.settle(signal), events.settle()]);
    // A watch can be behind, as after an API server that was away: the last word is the server's own.
    if (isBackInService((await kube.get(kubernetes.Node, { name: nodeName })) ?? node)) {
      await report.annotate(node, { [annotations.postConfigAction]: "" });
      return drainFirst();
    }
    rebootAsked = { bootId: site.observed.bootId, at: context.clock.monotonic() };
    loaded = undefined;
    try {
      await perform(step, site, node, report, context);
    } catch (error) {
      rebootAsked = undefined;
      facts.rebootFailures += 1;
      throw error;
    }
    return waiting("Rebooting", "the machine is going down", rebootPatienceSeconds);
  }

  async function perform(
    step: LocalStep,
    site: Worksite,
    node: Node,
    report: NodeReporter,
    context: Context,
  ): Promise<void> {
    const { events, signal } = context;
    const { name } = site.target.config;
    // Whatever comes of it: the next look reads what is on the disk.
    if (step.do !== "prefetch") loaded = undefined;
    try {
      await performStep(step, site, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const problem = error instanceof Error ? error.message : String(error);
      report.phases(failingPhases(step, problem));
      tellFailure(tale(context), step, problem);
      if (step.do === "stageOs" || step.do === "prefetch") facts.osFailures += 1;
      if (step.do === "reload" || step.do === "daemonReload")
        events.event(node, { type: "Warning", reason: "FailedServiceReload", message: problem });
      if (step.do === "restart")
        events.event(node, { type: "Warning", reason: "FailedServiceRestart", message: problem });
      throw new McoError(
        "MCO_HOST_COMMAND_FAILED",
        { step: step.do },
        { cause: error, message: `step ${step.do} of the update to ${name} failed: ${problem}` },
      );
    }
    if (step.do === "restart")
      events.event(node, { type: "Normal", reason: "ServiceRestart", message: `Restarted ${step.unit}` });
    if (step.do === "reload")
      events.event(node, { type: "Normal", reason: "ServiceReload", message: `Reloaded ${step.unit}` });
    if (step.do === "daemonReload")
      events.event(node, {
        type: "Normal",
        reason: "ServiceReload",
        message: "The service manager has read all units again",
      });
  }

  /** Packages that were asked for can be missing after all: then the machine is not what it should be. */
  async function expectPackages(
    { target: { config }, observed: { can } }: Worksite,
    signal: AbortSignal,
  ): Promise<void> {
    if (config.extensions.length === 0 || !can.packages) return;
    const missing = missingExtensions(
      config.extensions,
      await host.os.installed(packagesOf(config.extensions), signal),
    );
    if (missing.length > 0) throw new McoError("MCO_PACKAGES_MISSING", { extensions: missing });
  }

  /**
   * Another boot would not help: the machine goes back to what it had, or stays as it is where there is nothing to go
   * back to.
   */
  async function bootFails(
    plan: NodePlan & { verdict: "bootFails" },
    { previous, refused }: MachineDocuments,
    node: Node,
    report: NodeReporter,
    context: Context,
    target: Wanted,
  ): Promise<Outcome> {
    const failure = await host.os.finaliseFailure(context.signal);
    const message = `after ${plan.tried} reboots for ${describeTarget(target.config)} the machine still boots ${describeDeployment(plan.booted, plan.wanted)}${failure === undefined ? "" : `: ${failure}`}`;
    return goBack("BootFailed", message, { previous, refused }, node, report, context, target);
  }

  /** The machine has gone back by itself, as it could not be made equal to what it booted. */
  async function settleFailed(
    { path, cause }: NodePlan & { verdict: "settleFailed" },
    documentsOfIt: Pick<MachineDocuments, "previous" | "refused">,
    node: Node,
    report: NodeReporter,
    context: Context,
    target: Wanted,
  ): Promise<Outcome> {
    const message = `the machine could not be made equal to ${describeTarget(target.config)}${path === undefined ? "" : ` at ${path}`}: ${cause}`;
    return goBack("SettleFailed", message, documentsOfIt, node, report, context, target);
  }

  async function goBack(
    reason: "BootFailed" | "SettleFailed",
    message: string,
    { previous, refused }: Pick<MachineDocuments, "previous" | "refused">,
    node: Node,
    report: NodeReporter,
    context: Context,
    target: Wanted,
  ): Promise<Outcome> {
    const { name } = target.config;
    const pair = pairOf(target.config);
    const goesBack =
      previous !== undefined && (previous.config.metadata.name !== name || !samePair(previous.pair, pair));
    if (!goesBack) {
      const whole = `${message}; there is nothing to go back to: look at the machine, then choose another configuration or create ${hostPaths.force} on it`;
      await degrade(node, report, context, { reason, message: whole, lasting: true });
      return stalled(reason, whole);
    }
    const entry = {
      config: name,
      image: target.config.osImage,
      ...(pair === undefined ? {} : { content: pair.content }),
      reason: message,
      at: new Date(context.clock.now()).toISOString(),
    };
    await documents.storeRefused(
      [...refused.filter(({ config, image }) => config !== name || image !== entry.image), entry],
      context.signal,
    );
    loaded = undefined;
    context.events.event(node, {
      type: "Warning",
      reason: "WentBack",
      message: `${nodeName} goes back to ${previous.config.metadata.name}: ${message}`,
    });
    tale(context).wentBack(name, message, reason);
    return look(node, report, context);
  }

  /** The machine runs its image and is not what that holds. */
  async function unsettled(
    { changes, path, cause }: NodePlan & { verdict: "unsettled" },
    node: Node,
    report: NodeReporter,
    context: Context,
    target: Wanted,
  ): Promise<Outcome> {
    const differing = `${changes.slice(0, 5).map(describeChange).join(", ")}${changes.length > 5 ? ` and ${changes.length - 5} more` : ""}`;
    const problem =
      cause === ""
        ? `${differing} differ from what the image brings`
        : `${path === undefined ? "" : `${path}: `}${cause}`;
    const message = `the machine is not what ${describeTarget(target.config)} is to make of it: ${problem}; look at the systemd journal of ${hostPaths.settleUnit} on the machine, or create ${hostPaths.force} on it to have it booted and settled again`;
    tale(context).fail("PostAction/Settled", "SettleFailed", message);
    await degrade(node, report, context, { reason: "SettleFailed", message, lasting: false });
    return settled(sweepSeconds);
  }

  /** The machine is well, on what it had before the target that it went back from. */
  async function staysBack(
    node: Node,
    report: NodeReporter,
    context: Context,
    has: Wanted,
    { config, content, reason }: RefusedTarget,
  ): Promise<Outcome> {
    const pair = pairOf(has.config);
    const isRevert = content === undefined && pair !== undefined;
    const message = `${config} is refused: ${reason}; the machine stays on ${has.config.name} until another configuration is chosen, the annotation ${annotations.refusedTargets} of its MachineConfigNode is removed, or ${hostPaths.force} is created on it`;
    await report.annotate(node, {
      [annotations.currentConfig]: has.config.name,
      ...currentImages(pair),
      [annotations.postConfigAction]:
        node.metadata.annotations?.[annotations.postConfigAction] === undefined ? undefined : "",
      ...drainTakenBack(node, has.config.name),
    });
    report.versions({
      desired: config,
      current: has.config.name,
      images: { desired: imageOf(node), current: pair?.image },
    });
    watchForDrift(has.config, node, context);
    tale(context).isBack(`the machine has ${has.config.name} again`);
    await degrade(node, report, context, {
      reason: isRevert ? "RevertFailed" : "TargetRefused",
      message,
      lasting: true,
    });
    return settled(liftedSweepSeconds);
  }

  async function done(node: Node, report: NodeReporter, context: Context, target: Wanted): Promise<Outcome> {
    const has = node.metadata.annotations ?? {};
    const { name } = target.config;
    const pair = pairOf(target.config);
    await moveAside(host, hostPaths.nodeAnnotations, hostPaths.nodeAnnotationsDone, context.signal);
    if (loaded?.previous?.proven === false && loaded.originals !== undefined) {
      const previous = { ...loaded.previous, proven: true };
      await writeCurrent(host, previous.config, previous.pair?.image, context.signal);
      await documents.adopt(previous, loaded.originals, context.signal);
      loaded = { ...loaded, previous };
    }
    if (loaded !== undefined && loaded.refused.length > 0) {
      await report.refused([]);
      await documents.storeRefused([], context.signal);
      loaded = { ...loaded, refused: [] };
    }
    await report.annotate(node, {
      [annotations.currentConfig]: name,
      ...currentImages(pair),
      [annotations.state]: nodeStates.done,
      [annotations.reason]: "",
      [annotations.postConfigAction]: has[annotations.postConfigAction] === undefined ? undefined : "",
      ...drainTakenBack(node, name),
    });
    const finished =
      has[annotations.state] !== nodeStates.done ||
      has[annotations.currentConfig] !== name ||
      has[annotations.currentImage] !== pair?.image;
    if (finished) report.ended(name);
    announced = undefined;
    failing = undefined;
    const { bootId } = await host.os.status(context.signal);
    tellDone(node, context, name);
    if (finished || resumed !== bootId)
      report.phases([
        { type: types.resumed, status: "True", reason: types.resumed, message: `in normal operation with ${name}` },
      ]);
    resumed = bootId;
    report.phases([
      { type: types.updated, status: "True", reason: "Updated", message: `the machine has ${name}` },
      { type: types.nodeDegraded, status: "False", reason: "AsExpected", message: "" },
    ]);
    report.versions({ desired: name, current: name, images: { desired: pair?.image, current: pair?.image } });
    if (compared?.of !== target.machineConfig) {
      const served = await machineConfigAt(host, hostPaths.servedConfig, context.signal);
      compared = {
        of: target.machineConfig,
        changes: served === undefined ? undefined : irreconcilableChanges(served, target.machineConfig),
      };
    }
    if (compared.changes !== undefined) report.irreconcilable(compared.changes);
    Object.assign(facts, {
      state: nodeStates.done,
      reason: "",
      config: name,
      driftSince: undefined,
    } satisfies Partial<DaemonFacts>);
    watchForDrift(target.config, node, context);
    return settled(sweepSeconds);
  }

  /** The machine has its target; its update is over once it is in service again. */
  function tellDone(node: Node, context: Context, name: string): void {
    const told = tale(context);
    const has = node.metadata.annotations ?? {};
    const message = `the machine has ${name}`;
    if (told.run !== undefined && told.run !== name)
      told.finish("Superseded", `${name} was chosen again before anything was done for ${told.run}`);
    told.goOn(name, { isOver: true });
    told.end("Resumed", "Resumed", `in normal operation with ${name}`);
    const drain = has[annotations.desiredDrain] ?? "";
    const isAway = drain.startsWith("drain-") || (drain !== "" && drain !== has[annotations.lastAppliedDrain]);
    if (isAway)
      told.begin(
        "Complete/Uncordoned",
        "UncordonRequested",
        "the daemon asked for the machine to be put back into service",
      );
    else told.finish("Succeeded", message);
    told.recovered(message);
    told.driftEnded("DriftGone", `the files of ${name} are as they were applied`);
    told.validated(message, has[annotations.currentConfig] === undefined);
  }

  async function refuse(
    node: Node,
    report: NodeReporter,
    context: Context,
    desired: string,
    reason: string,
  ): Promise<Outcome> {
    const message = `${desired} cannot be applied: ${reason}`;
    if (node.metadata.annotations?.[annotations.reason] !== message.slice(0, 2000))
      context.events.event(node, { type: "Warning", reason: "FailedToReconcile", message });
    tale(context).fail("Prepared", "Irreconcilable", message);
    tale(context).degraded("Irreconcilable", message);
    announced = undefined;
    failing = undefined;
    facts.state = nodeStates.unreconcilable;
    facts.reason = "Unreconcilable";
    report.phases([
      { type: types.updatePrepared, status: "Unknown", reason: "UpdatePreparedFailed", message },
      { type: types.nodeDegraded, status: "True", reason: "Unreconcilable", message },
    ]);
    // Nothing was touched: a drain that was asked for is taken back.
    await report.annotate(node, {
      [annotations.state]: nodeStates.unreconcilable,
      [annotations.reason]: message,
      ...drainTakenBack(node, desired),
    });
    return stalled("Unreconcilable", message);
  }

  async function degradeForDrift(
    site: Worksite,
    node: Node,
    report: NodeReporter,
    context: Context,
    drift: readonly string[],
  ): Promise<Outcome> {
    const asks =
      node.metadata.annotations?.[annotations.driftPolicy] === "settle" && site.target.config.imageContent === "full";
    const { clock } = context;
    if (asks && (settledFor?.drift !== drift.join() || clock.monotonic() - settledFor.at > settleAgainMs)) {
      settledFor = { drift: drift.join(), at: clock.monotonic() };
      tale(context).drifted(
        `config drift: ${drift.slice(0, 5).join(", ")}; the machine is settled, as its drift policy says`,
      );
      await perform({ do: "settle" }, site, node, report, context);
      return waiting("Settling", "the machine is looked at again once it was settled", settledSoonSeconds);
    }
    const shown = drift.slice(0, 5).join(", ");
    const message = `config drift: ${shown}${drift.length > 5 ? ` and ${drift.length - 5} more` : ""} differ from what was applied; undo the change, or create ${hostPaths.force} on the machine to apply the configuration again`;
    const { bootId } = await host.os.status(context.signal);
    if (node.metadata.annotations?.[annotations.reason] !== message)
      context.events.event(node, {
        type: "Warning",
        reason: resumed === bootId ? "ConfigDriftDetected" : "OnDiskStateValidationFailed",
        message,
      });
    tale(context).drifted(message);
    announced = undefined;
    Object.assign(facts, {
      state: nodeStates.degraded,
      reason: "ConfigDrift",
      driftSince: facts.driftSince ?? context.clock.now(),
    } satisfies Partial<DaemonFacts>);
    report.phases([{ type: types.nodeDegraded, status: "True", reason: "ConfigDrift", message }]);
    // Nothing goes on until somebody decides: a drain that was asked for is taken back.
    await report.annotate(node, {
      [annotations.state]: nodeStates.degraded,
      [annotations.reason]: message,
      ...drainTakenBack(node, loaded?.previous?.config.metadata.name ?? ""),
    });
    const previous =
      loaded?.previous === undefined ? undefined : readTarget(loaded.previous.config, loaded.previous.pair);
    if (previous?.verdict === "read") watchForDrift(previous.wanted.config, node, context);
    return settled(sweepSeconds);
  }

  /** Policies that somebody has just written are not merged yet: what they would spare or ask for is not known. */
  async function awaitPolicies(node: Node, report: NodeReporter, context: Context): Promise<Outcome> {
    const message = `MachineConfiguration/${objects.machineConfiguration} has changed and the operator has not merged its disruption policies yet; nothing is done before it has`;
    if (policiesAwaitedSince === undefined) tale(context).note("Prepared", "PoliciesNotMerged", message);
    const since = (policiesAwaitedSince ??= context.clock.monotonic());
    report.phases([{ type: types.updatePrepared, status: "Unknown", reason: "PoliciesNotMerged", message }]);
    if (context.clock.monotonic() - since > policiesPatienceMs)
      await degrade(node, report, context, { reason: "PoliciesNotMerged", message, lasting: false });
    return waiting("PoliciesNotMerged", message, 30);
  }
}

/** Both spellings, always together; gone where there is no image. */
const currentImages = (pair: ImagePair | undefined) => ({
  [annotations.currentImage]: pair?.image,
  [annotations.currentOSImage]: pair?.image,
});

const imageOf = (node: Node) =>
  node.metadata.annotations?.[annotations.desiredImage] ?? node.metadata.annotations?.[annotations.desiredOSImage];

/** Why the machine is about to boot once more, where settling wants it to. */
function awaitsRestart({ settled: record, ledger }: MachineDocuments, bootId: string): string | undefined {
  if (record?.bootId !== bootId) return undefined;
  if (record.result === "rebooting")
    return "what settling changed has to be read by what runs already: the machine boots once more";
  return record.result === "failed" && ledger?.failed !== undefined
    ? "the machine could not be settled: it boots what it had before"
    : undefined;
}

/** What is said of the files of a machine whose image brings them. */
const holdsFiles = ({ imageContent }: NodeConfig): PhaseReport | undefined =>
  imageContent === "full"
    ? { type: types.appliedFiles, status: "False", reason: notRequired, message: "the image brings files and units" }
    : undefined;

/** The pool counts a machine once its MachineConfigNode says what it has. */
function soonAgain(outcome: Outcome): Outcome {
  if (outcome.kind === "stalled") return waiting(outcome.reason, outcome.message, untoldSeconds);
  return { ...outcome, lookAgainAfterSeconds: Math.min(outcome.lookAgainAfterSeconds ?? untoldSeconds, untoldSeconds) };
}

interface Failure {
  readonly reason: Stories["node"]["Degraded"]["Failed"][number];
  readonly message: string;
  /** Only somebody's help or a new target can change it. */
  readonly lasting: boolean;
}

function failureOf(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  const codes = [...causesOf(error)].map(({ code }) => code);
  if (codes.includes("MCO_LEDGER_NEWER")) return { reason: "WrittenByNewerVersion", message, lasting: true };
  if (codes.some((code) => code.startsWith("MCO_IMAGE_") || code === "MCO_HOST_IMAGE_UNKNOWN"))
    return { reason: "ImagePullFailed", message, lasting: false };
  if (codes.includes("MCO_SERVICE_FAILED")) return { reason: "ServiceFailed", message, lasting: false };
  return { reason: "UpdateFailed", message, lasting: false };
}

/** An API server that has just started refuses what it has not read the rights for yet. */
const isRefusedToUs = (error: unknown) =>
  error instanceof KubeError && (error.httpStatus === 401 || error.httpStatus === 403);

function* causesOf(error: unknown): Generator<McoError> {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof McoError) yield at;
}

/** A drain counts while the node is still out of service: somebody may have uncordoned it since. */
function isDrained(node: Node, target: string): boolean {
  const has = node.metadata.annotations ?? {};
  const request = `drain-${target}`;
  return (
    has[annotations.desiredDrain] === request &&
    has[annotations.lastAppliedDrain] === request &&
    node.spec?.unschedulable === true
  );
}

/** Asks for the machine to be put back into service, where a drain was asked for. */
const drainTakenBack = ({ metadata }: Node, config: string): Readonly<Record<string, string>> =>
  metadata.annotations?.[annotations.desiredDrain]?.startsWith("drain-") === true
    ? { [annotations.desiredDrain]: `uncordon-${config}` }
    : {};

const isOfTheSystem = ({ kind }: Change["changes"][number]) =>
  kind === "osImage" || kind === "kernelArguments" || kind === "extensions" || kind === "kernelType";
/** What the machine boots, as far as it is not what it should boot. */
function describeDeployment(booted: Deployment, wanted: Deployment): string {
  if (booted.image !== wanted.image) return `${booted.image} in place of ${wanted.image}`;
  return `without ${[...wanted.kernelArguments, ...wanted.packages, wanted.kernelType].filter((word) => ![...booted.kernelArguments, ...booted.packages, booted.kernelType].includes(word)).join(", ") || "what was staged"}`;
}

async function osOf(
  host: Host,
  signal: AbortSignal,
): Promise<{ readonly name: string; readonly version: string } | undefined> {
  const file =
    (await host.files.read("/etc/os-release", signal)) ?? (await host.files.read("/usr/lib/os-release", signal));
  if (file?.kind !== "file") return undefined;
  const value = (key: string) =>
    new RegExp(`^${key}="?([^"\\n]*)"?$`, "m").exec(new TextDecoder().decode(file.contents))?.[1] ?? "";
  return { name: value("ID"), version: value("VERSION_ID") };
}

const isAction = (step: { readonly do: string }) =>
  (["daemonReload", "reload", "restart"] satisfies Consequence["kind"][]).some((kind) => kind === step.do);

const isWrite = (step: { readonly do: string }) =>
  (
    [
      "makeFolder",
      "writeEntries",
      "restoreEntries",
      "enableUnit",
      "disableUnit",
      "presetUnit",
      "setPassword",
    ] satisfies LocalStep["do"][]
  ).some((kind) => kind === step.do);

/** Says of the section that a step belongs to that it failed. */
function tellFailure(told: NodeStory, step: LocalStep, problem: string): void {
  if (step.do === "prefetch") told.fail("Executed/ImagePulled", "PullFailed", problem);
  else if (step.do === "stageOs" || step.do === "discardStaged") told.fail("Executed/OS", "StageFailed", problem);
  else if (step.do === "reboot") told.fail("PostAction/Rebooted", "RebootFailed", problem);
  else if (isWrite(step)) told.fail("Executed/Files", "WriteFailed", problem);
  else if (isAction(step)) told.fail("PostAction/Service", "ServiceFailed", problem);
  // Before anything was written, or when all was.
  else told.fail(step.do === "openLedger" ? "Executed/Files" : "Resumed", "UpdateFailed", problem);
}

/** The phase that a step failed in: it goes on to be under way, and says what stands in its way. */
function failingPhases(step: LocalStep, problem: string): readonly PhaseReport[] {
  if (step.do === "prefetch")
    return [{ type: types.imagePulledFromRegistry, status: "False", reason: "PullFailed", message: problem }];
  const failed = (parent: string, child: string): PhaseReport => ({
    type: child,
    status: "Unknown",
    reason: `${childReason(parent, child)}Failed`,
    message: `${problem}; it is tried again with growing delays`,
  });
  if (step.do === "stageOs" || step.do === "discardStaged")
    return [failed(types.appliedFilesAndOS, types.appliedOSImage)];
  if (step.do === "reboot") return [failed("", types.rebootedNode)];
  if (isAction(step)) return [failed("", types.updatePostActionComplete)];
  return isWrite(step) || step.do === "openLedger" ? [failed(types.appliedFilesAndOS, types.appliedFiles)] : [];
}

/** What a plan comes to, for those who read the story. Counts only: what is in the files is nobody's business. */
function forecastOf(
  plan: Change,
  booted: Deployment,
  target: NodeConfig,
): Readonly<Record<string, string | number | boolean>> {
  const of = (...kinds: readonly Change["changes"][number]["kind"][]) =>
    plan.changes.filter(({ kind }) => kinds.includes(kind)).length;
  const args = plan.changes.flatMap((change) => (change.kind === "kernelArguments" ? [change] : []));
  const added = args.flatMap(({ from, to }) => to.filter((word) => !from.includes(word))).length;
  const removed = args.flatMap(({ from, to }) => from.filter((word) => !to.includes(word))).length;
  return {
    files: of("file", "sshKeys", "password"),
    units: of("unit"),
    ...(added + removed === 0 ? {} : { kernelArguments: `+${added} -${removed}` }),
    ...(of("extensions") === 0 ? {} : { extensions: target.extensions.join(" ") }),
    ...(of("kernelType") === 0 ? {} : { kernelType: target.kernelType }),
    ...(of("osImage") === 0 ? {} : { fromImage: booted.image, toImage: target.osImage }),
    drain: plan.steps.some((step) => step.do === "drain"),
    reboot: plan.steps.some((step) => step.do === "reboot"),
    actions: plan.because.map(({ consequence }) => describeConsequence(consequence)).join(", "),
  };
}

/** Paths and units that a plan writes: how many, and the first of them. */
function writtenBy(plan: Change): Readonly<Record<string, string | number>> {
  const names = plan.steps.flatMap((step) =>
    "paths" in step && step.do !== "openLedger"
      ? step.paths
      : step.do === "makeFolder"
        ? [step.path]
        : isWrite(step) && "unit" in step
          ? [step.unit]
          : [],
  );
  const distinct = [...new Set(names)].sort();
  return {
    count: distinct.length,
    paths: distinct.slice(0, 50).join(" "),
    digest: digestOf(new TextEncoder().encode(distinct.join("\n"))).slice(0, 16),
  };
}

const applied = (config: NodeConfig, changesOs: boolean) => [
  holdsFiles(config) ??
    ({
      type: types.appliedFiles,
      status: "True",
      reason: childReason(types.appliedFilesAndOS, types.appliedFiles),
      message: `${config.name} is on the disk`,
    } as const),
  changesOs
    ? ({
        type: types.appliedOSImage,
        status: "True",
        reason: childReason(types.appliedFilesAndOS, types.appliedOSImage),
        message: "the system is staged or runs",
      } as const)
    : ({
        type: types.appliedOSImage,
        status: "False",
        reason: notRequired,
        message: "the system does not change",
      } as const),
];

function reasonOfActions(plan: Change): "ServiceRestarted" | "ServiceReloaded" | "DaemonReloaded" | "None" {
  if (plan.steps.some((step) => step.do === "restart")) return "ServiceRestarted";
  if (plan.steps.some((step) => step.do === "reload")) return "ServiceReloaded";
  return plan.steps.some((step) => step.do === "daemonReload") ? "DaemonReloaded" : "None";
}
