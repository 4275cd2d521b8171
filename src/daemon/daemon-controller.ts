import { McoError } from "../api/errors.ts";
import { MachineConfig } from "../api/machine-config.ts";
import { MachineConfiguration } from "../api/machine-configuration.ts";
import { type Node, kubernetes } from "../api/kubernetes.ts";
import { annotations, hostPaths, labels, machineConfigNodeConditions as types, nodeStates, objects } from "../api/names.ts";
import { type Because, describeChange, describeConsequence } from "../core/change.ts";
import { type NodeConfig, nodeConfigOf } from "../core/node-config.ts";
import { type NodePlan, type Originals, driftOf, planNode } from "../core/plan-node.ts";
import { reconcile } from "../core/reconcilable.ts";
import { childReason, notRequired, phasesAtEnd, phasesAtStart } from "../core/update-conditions.ts";
import { ignitionOf } from "../core/validate-machine-config.ts";
import type { Host } from "../host/host.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { isPassing } from "../kube/kube-error.ts";
import { type Outcome, settled, stalled, waiting } from "../kube/outcome.ts";
import { type MachineDocuments, documentStore } from "./machine-documents.ts";
import { type NodeReporter, nodeReporter } from "./node-reporter.ts";
import { encodeBase64 } from "../ignition/data-url.ts";
import { digestOf, noOriginals, observeHost } from "./observe-host.ts";
import { type LocalStep, type Worksite, performStep, unknownOwners, watchedPaths } from "./perform-step.ts";

export interface DaemonOptions {
  readonly host: Host;
  readonly nodeName: string;
  /** How long to wait for the machine to go down before it is asked again. */
  readonly rebootPatienceSeconds?: number;
}

/** A full look at the disk, also when nothing was heard of: watches can miss things. */
const sweepSeconds = 300;

interface Wanted {
  readonly machineConfig: MachineConfig;
  readonly config: NodeConfig;
}

type Read = { readonly verdict: "read"; readonly wanted: Wanted } | { readonly verdict: "refused"; readonly reason: string };

/** Decoded configurations by object, so that a look at an unchanged machine parses nothing. */
const decoded = new WeakMap<MachineConfig, Read>();

function readConfig(machineConfig: MachineConfig): Read {
  const known = decoded.get(machineConfig);
  if (known !== undefined) return known;
  const result = ((): Read => {
    const ignition = ignitionOf(machineConfig);
    if (ignition?.verdict === "invalid") {
      const [problem] = ignition.problems;
      return { verdict: "refused", reason: `${machineConfig.metadata.name}: spec.config${problem?.path === "" ? "" : `.${problem?.path}`}: ${problem?.reason}` };
    }
    const config = nodeConfigOf(machineConfig, ignition?.config);
    if (config.verdict === "refused") return { verdict: "refused", reason: `${config.path}: ${config.reason}` };
    return { verdict: "read", wanted: { machineConfig, config: config.config } };
  })();
  decoded.set(machineConfig, result);
  return result;
}

const sentence = (because: readonly Because[]) => because.map(({ consequence, why }) => `${describeConsequence(consequence)} because ${why}`).join("; ");

/** What concerns the daemon of its Node: not the kubelet's heartbeats. */
function concernsUs(before: Node | undefined, after: Node | undefined): boolean {
  if (before === undefined || after === undefined) return true;
  return JSON.stringify([before.metadata.annotations, before.metadata.labels, before.spec]) !== JSON.stringify([after.metadata.annotations, after.metadata.labels, after.spec]);
}

/**
 * Keeps one machine on its target. Each look observes the machine, plans, and carries the plan out as far as it goes
 * now: a drain or a reboot ends the look, and the next one finds out by observing where things stand.
 */
export function daemonController(options: DaemonOptions): Controller {
  const { host, nodeName } = options;
  const documents = documentStore(host.ledger);
  const field = `metadata.name=${nodeName}`;
  let loaded: MachineDocuments | undefined;
  let reporter: NodeReporter | undefined;
  let targets: MachineConfig[] = [];
  let rebootAsked: { readonly bootId: string; readonly at: number } | undefined;
  let watched: { readonly of: NodeConfig; readonly stop: () => void } | undefined;
  let add: (key: string) => void = () => undefined;
  let lastBootId: string | undefined;

  async function targetNamed(name: string, context: Context): Promise<MachineConfig | undefined> {
    const known = targets.find((config) => config.metadata.name === name);
    if (known !== undefined) return known;
    const fetched = await context.kube.get(MachineConfig, { name }, { signal: context.signal });
    // A rendered configuration never changes; the last two are the ones that matter.
    if (fetched !== undefined) targets = [fetched, ...targets].slice(0, 2);
    return fetched;
  }

  function watchForDrift(config: NodeConfig): void {
    if (watched?.of === config) return;
    watched?.stop();
    watched = { of: config, stop: host.files.watch([...watchedPaths(config), hostPaths.force], () => add(nodeName)) };
  }

  /** What the machine has, for the first look of a daemon that finds a machine which another one kept before. */
  async function documentsOf(node: Node, context: Context): Promise<MachineDocuments> {
    loaded ??= await documents.load(context.signal);
    const current = node.metadata.annotations?.[annotations.currentConfig];
    if (loaded.previous !== undefined || loaded.ledger !== undefined || current === undefined || current === "") return loaded;
    const adopted = await targetNamed(current, context);
    const read = adopted === undefined ? undefined : readConfig(adopted);
    if (adopted === undefined || read?.verdict !== "read") return loaded;
    // What was there before that daemon is not known: what the OS ships stands in for it.
    const status = await host.os.status(context.signal);
    const paths: Record<string, Originals["paths"][string]> = {};
    for (const path of read.wanted.config.entries.keys()) {
      const vendor = await host.files.vendor(path, context.signal);
      const seen = vendor?.kind === "file" ? { ...vendor, digest: digestOf(vendor.contents), contents: encodeBase64(vendor.contents) } : undefined;
      paths[path] = seen ?? (vendor?.kind === "link" ? vendor : null);
    }
    loaded = { ...loaded, previous: adopted, originals: { ...noOriginals(status.booted.kernelArguments), paths } };
    return loaded;
  }

  return {
    name: "daemon",
    watches: [
      watching({ resource: kubernetes.Node, selection: { fieldSelector: field }, concerns: ({ key, before, after }) => (concernsUs(before, after) ? [key] : []) }),
      watching({
        resource: MachineConfiguration,
        concerns: ({ before, after }) => (JSON.stringify(before?.status?.nodeDisruptionPolicyStatus) === JSON.stringify(after?.status?.nodeDisruptionPolicyStatus) ? [] : [nodeName]),
      }),
    ],
    owns: ["Node.metadata.annotations/daemon", "MachineConfigNode.status/daemon"],
    start: (enqueue, context) => {
      add = enqueue;
      context.signal.addEventListener("abort", () => watched?.stop(), { once: true });
    },

    async reconcile(name, context): Promise<Outcome> {
      const node = context.caches.of(kubernetes.Node).get(name);
      if (node === undefined) return waiting("NodeAbsent", "the node is not registered yet", 30);
      reporter ??= nodeReporter({ ...context, nodeName });
      reporter.begin(node);
      try {
        const outcome = await look(node, reporter, context);
        await reporter.flush();
        return outcome;
      } catch (error) {
        // That the API server is away or busy is no fault of the machine, and could not be told either.
        if (context.signal.aborted || isPassing(error)) throw error;
        const message = error instanceof Error ? error.message : String(error);
        const newer = error instanceof McoError && error.code === "MCO_LEDGER_NEWER";
        reporter.phases([{ type: types.nodeDegraded, status: "True", reason: newer ? "WrittenByNewerVersion" : "UpdateFailed", message }]);
        context.events.event(node, { type: "Warning", reason: newer ? "WrittenByNewerVersion" : "UpdateFailed", message });
        context.scribe.line({ book: `node/${nodeName}`, chapter: "Degraded", path: "Failed", mark: "fail", level: "boundary", reason: newer ? "WrittenByNewerVersion" : "UpdateFailed", message });
        await reporter.annotate(node, { [annotations.state]: nodeStates.degraded, [annotations.reason]: message }).catch((second: unknown) => context.log.warn({ error: second }, "state not written"));
        await reporter.flush();
        if (newer) return stalled("WrittenByNewerVersion", message);
        throw error;
      }
    },
  };

  async function look(node: Node, report: NodeReporter, context: Context): Promise<Outcome> {
    const { signal, events } = context;
    const has = node.metadata.annotations ?? {};
    const desired = has[annotations.desiredConfig];
    const known = await documentsOf(node, context);
    if (desired === undefined || desired === "") return waiting("NoTarget", "no configuration was chosen for this machine yet", 60);

    const machineConfig = await targetNamed(desired, context);
    if (machineConfig === undefined) return waiting("TargetAbsent", `${desired} does not exist`, 15);
    const target = readConfig(machineConfig);
    if (target.verdict === "refused") return refuse(node, report, context, desired, target.reason);
    const previousRead = known.previous === undefined ? undefined : readConfig(known.previous);
    if (previousRead?.verdict === "refused") throw new McoError("MCO_HOST_COMMAND_FAILED", { problem: "the stored previous configuration cannot be read", reason: previousRead.reason });
    const previous = previousRead?.wanted;

    const isControlPlane = node.metadata.labels?.[labels.masterRole] !== undefined || node.metadata.labels?.[labels.controlPlaneRole] !== undefined;
    const onlyControlPlane = isControlPlane && has[annotations.controlPlaneTopology] === "SingleReplica";
    const observed = await observeHost(host, known, { previous: previous?.config, target: target.wanted.config, onlyControlPlane }, signal);
    if (lastBootId !== undefined && lastBootId !== observed.bootId) rebootAsked = undefined;
    lastBootId = observed.bootId;

    if (rebootAsked !== undefined && rebootAsked.bootId === observed.bootId) {
      const patienceMs = (options.rebootPatienceSeconds ?? 120) * 1000;
      if (context.clock.monotonic() - rebootAsked.at < patienceMs) return waiting("Rebooting", "the machine is going down", options.rebootPatienceSeconds ?? 120);
    }

    if (previous !== undefined && previous.config.name !== desired) {
      const found = reconcile(previous.machineConfig, machineConfig);
      if (found.length > 0) return refuse(node, report, context, desired, found.map((each) => `${each.field}: ${each.reason}; ${each.remedy}`).join("; "));
    }
    const owners = unknownOwners(observed, target.wanted.config);
    if (owners.length > 0) return refuse(node, report, context, desired, owners.map(({ path, owner }) => `${path} is to belong to ${owner}, which this machine does not have`).join("; "));

    if (has[annotations.postConfigAction] === "Rebooting") {
      report.phases([{ type: types.rebootedNode, status: "True", reason: "Rebooted", message: "the machine has rebooted" }]);
      events.event(node, { type: "Normal", reason: "Rebooted", message: `${nodeName} has rebooted` });
    }

    const policies = context.caches.of(MachineConfiguration).get(objects.machineConfiguration)?.status?.nodeDisruptionPolicyStatus?.clusterPolicies;
    const plan = planNode(observed, target.wanted.config, policies);
    if (plan.verdict === "inSync") return done(node, report, context, target.wanted);

    const drift = driftOf(observed);
    if (drift.length > 0 && previous?.config.name === desired && !observed.forced) return degradeForDrift(node, report, context, drift.map(describeChange));
    return execute(plan, { host, documents, clock: context.clock, observed, target: target.wanted, originals: observed.originals }, node, report, context);
  }

  async function execute(plan: NodePlan & { verdict: "change" }, site: Worksite, node: Node, report: NodeReporter, context: Context): Promise<Outcome> {
    const { signal, events, scribe, log } = context;
    const has = node.metadata.annotations ?? {};
    const { name } = site.target.config;
    const story = { book: `node/${nodeName}`, chapter: "Update", run: name } as const;
    const starts = has[annotations.state] !== nodeStates.working || site.observed.ledger === undefined;
    if (starts && has[annotations.state] !== nodeStates.working) {
      log.info({ target: name, changes: plan.changes.length, steps: plan.steps.map((step) => step.do).join(" ") }, "update planned");
      report.phases(phasesAtStart(name));
      report.phases([{ type: types.updatePrepared, status: "True", reason: types.updatePrepared, message: `${plan.changes.length} changes: ${sentence(plan.because)}` }]);
      report.versions({ desired: name });
      scribe.line({ ...story, path: "Prepared", mark: "end", level: "boundary", reason: "Planned", message: sentence(plan.because), data: { changes: plan.changes.length } });
    }
    report.phases([{ type: types.nodeDegraded, status: "False", reason: "AsExpected", message: "" }]);
    await report.annotate(node, { [annotations.state]: nodeStates.working, [annotations.reason]: "", [annotations.postConfigAction]: has[annotations.postConfigAction] === undefined ? undefined : "" });

    if (!plan.steps.some((step) => step.do === "drain")) {
      report.phases([
        { type: types.cordoned, status: "False", reason: notRequired, message: "no drain is required" },
        { type: types.drained, status: "False", reason: notRequired, message: "no drain is required" },
      ]);
    }
    for (const step of plan.steps) {
      signal.throwIfAborted();
      if (step.do === "drain") {
        if (isDrained(node, name)) continue;
        await report.annotate(node, { [annotations.desiredDrain]: `drain-${name}` });
        if (has[annotations.desiredDrain] !== `drain-${name}`) {
          events.event(node, { type: "Normal", reason: "Drain", message: `Draining ${nodeName} to update it to ${name}` });
          scribe.line({ ...story, path: "Executed/Drained", mark: "begin", level: "boundary", reason: "DrainRequested", message: "asked for a drain" });
        }
        return waiting("Draining", "waiting for the drain controller", 60);
      }
      if (step.do === "reboot") {
        events.event(node, { type: "Normal", reason: "Reboot", message: `Rebooting ${nodeName}: ${step.because}` });
        report.phases([
          { type: types.appliedFilesAndOS, status: "True", reason: childReason(types.updateExecuted, types.appliedFilesAndOS), message: `${name} is on the disk` },
          { type: types.updatePostActionComplete, status: "Unknown", reason: "Rebooting", message: step.because },
          { type: types.rebootedNode, status: "Unknown", reason: "Rebooting", message: step.because },
        ]);
        scribe.line({ ...story, path: "PostAction/Rebooted", mark: "begin", level: "boundary", reason: "RebootRequested", message: step.because });
        await report.annotate(node, { [annotations.postConfigAction]: "Rebooting" });
        await report.flush();
        await Promise.all([scribe.settle(signal), events.settle()]);
        rebootAsked = { bootId: site.observed.bootId, at: context.clock.monotonic() };
        await host.os.reboot(`update to ${name}: ${step.because}`, signal);
        return waiting("Rebooting", "the machine is going down", options.rebootPatienceSeconds ?? 120);
      }
      await perform(step, site, node, context);
    }
    loaded = undefined; // The documents have changed; the next look reads what is on the disk.
    const rebooted = site.observed.ledger !== undefined && site.observed.ledger.bootId !== site.observed.bootId;
    report.phases([
      { type: types.appliedFilesAndOS, status: "True", reason: childReason(types.updateExecuted, types.appliedFilesAndOS), message: `${name} is on the disk` },
      { type: types.updatePostActionComplete, status: "True", reason: rebooted ? "Rebooted" : reasonOfActions(plan), message: sentence(plan.because) },
    ]);
    scribe.line({ ...story, path: "Updated", mark: "end", level: "boundary", reason: "Succeeded", message: `the machine has ${name}` });
    events.event(node, { type: "Normal", reason: "NodeDone", message: `${nodeName} now has ${name}` });
    return done(node, report, context, site.target);
  }

  async function perform(step: LocalStep, site: Worksite, node: Node, context: Context): Promise<void> {
    try {
      await performStep(step, site, context.signal);
    } catch (error) {
      if (context.signal.aborted) throw error;
      loaded = undefined;
      throw new McoError("MCO_HOST_COMMAND_FAILED", { step: step.do }, { cause: error, message: `step ${step.do} of the update to ${site.target.config.name} failed: ${error instanceof Error ? error.message : String(error)}` });
    }
    if (step.do === "openLedger") loaded = undefined;
    if (step.do === "restart") context.events.event(node, { type: "Normal", reason: "ServiceRestart", message: `Restarted ${step.unit}` });
    if (step.do === "reload") context.events.event(node, { type: "Normal", reason: "ServiceReload", message: `Reloaded ${step.unit}` });
  }

  async function done(node: Node, report: NodeReporter, context: Context, target: Wanted): Promise<Outcome> {
    const has = node.metadata.annotations ?? {};
    const { name } = target.config;
    const drained = has[annotations.desiredDrain]?.startsWith("drain-") === true;
    await report.annotate(node, {
      [annotations.currentConfig]: name,
      [annotations.state]: nodeStates.done,
      [annotations.reason]: "",
      [annotations.postConfigAction]: has[annotations.postConfigAction] === undefined ? undefined : "",
      ...(drained ? { [annotations.desiredDrain]: `uncordon-${name}` } : {}),
    });
    const finished = has[annotations.state] !== nodeStates.done || has[annotations.currentConfig] !== name;
    if (finished) report.phases(phasesAtEnd(name));
    report.phases([
      { type: types.updated, status: "True", reason: "Updated", message: `the machine has ${name}` },
      { type: types.nodeDegraded, status: "False", reason: "AsExpected", message: "" },
    ]);
    report.versions({ desired: name, current: name });
    watchForDrift(target.config);
    return settled(sweepSeconds);
  }

  async function refuse(node: Node, report: NodeReporter, context: Context, desired: string, reason: string): Promise<Outcome> {
    const message = `${desired} cannot be applied: ${reason}`;
    if (node.metadata.annotations?.[annotations.reason] !== message.slice(0, 2000)) {
      context.events.event(node, { type: "Warning", reason: "FailedToReconcile", message });
      context.scribe.line({ book: `node/${nodeName}`, chapter: "Update", run: desired, path: "Prepared", mark: "fail", level: "boundary", reason: "Irreconcilable", message });
    }
    report.phases([
      { type: types.updatePrepared, status: "Unknown", reason: "UpdatePreparedFailed", message },
      { type: types.nodeDegraded, status: "True", reason: "Unreconcilable", message },
    ]);
    // Nothing was touched: a drain that was asked for is taken back.
    const drained = node.metadata.annotations?.[annotations.desiredDrain]?.startsWith("drain-") === true;
    await report.annotate(node, { [annotations.state]: nodeStates.unreconcilable, [annotations.reason]: message, ...(drained ? { [annotations.desiredDrain]: `uncordon-${desired}` } : {}) });
    return stalled("Unreconcilable", message);
  }

  async function degradeForDrift(node: Node, report: NodeReporter, context: Context, drift: readonly string[]): Promise<Outcome> {
    const shown = drift.slice(0, 5).join(", ");
    const message = `config drift: ${shown}${drift.length > 5 ? ` and ${drift.length - 5} more` : ""} differ from what was applied; undo the change, or create /run/machine-config-daemon-force on the machine to apply the configuration again`;
    if (node.metadata.annotations?.[annotations.reason] !== message) {
      context.events.event(node, { type: "Warning", reason: "ConfigDriftDetected", message });
      context.scribe.line({ book: `node/${nodeName}`, chapter: "Drift", path: "Detected", mark: "begin", level: "boundary", reason: "ConfigDrift", message });
    }
    report.phases([{ type: types.nodeDegraded, status: "True", reason: "ConfigDrift", message }]);
    await report.annotate(node, { [annotations.state]: nodeStates.degraded, [annotations.reason]: message });
    return settled(sweepSeconds);
  }
}

/** A drain counts while the node is still out of service: somebody may have uncordoned it since. */
function isDrained(node: Node, target: string): boolean {
  const has = node.metadata.annotations ?? {};
  const request = `drain-${target}`;
  return has[annotations.desiredDrain] === request && has[annotations.lastAppliedDrain] === request && node.spec?.unschedulable === true;
}

function reasonOfActions(plan: NodePlan & { verdict: "change" }): string {
  if (plan.steps.some((step) => step.do === "restart")) return "ServiceRestarted";
  if (plan.steps.some((step) => step.do === "reload")) return "ServiceReloaded";
  return plan.steps.some((step) => step.do === "daemonReload") ? "DaemonReloaded" : "None";
}
