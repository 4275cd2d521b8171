import { type CertificateSigningRequest, kubernetes } from "../api/foreign/kubernetes.ts";
import { type Machine, openshift } from "../api/foreign/openshift.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { machineNamespace, nodeIdentity } from "../api/names.ts";
import { absentFields, boundSpec, spentPlace } from "../core/join/join-changes.ts";
import type { BudgetVerdict, JoinCase, JoinDecision, JoinPass } from "../core/join/join-decision.ts";
import type { MachineOfNode } from "../core/join/judge-csr.ts";
import { isSentByHolder } from "../core/join/node-request.ts";
import type { DecisionMeter } from "../core/metrics/decision-meter.ts";
import type { Context } from "../kube/controller.ts";
import { isAlreadyExists, isConflict, isForbidden, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import { type JoinMemory, bindingOf } from "./join-memory.ts";
import { budgetedRequest } from "./join-watches.ts";
import { awaitsApprovalByHand, linesOfCertificates, readFacts } from "./observe-join.ts";
import { reportApproved, reportDenied, reportWaiting } from "./report-join.ts";

/** A waiting machine is checked again at this interval, for changes that no watch reports. */
const reconcileAfterSeconds = 60;
/** After another writer was first: the request is judged again with what the watch brings of its write. */
const againSeconds = 1;
/** How long one list of Machines is used. */
const machinesMs = 5000;

/** The means of one pass over a certificate request. */
export interface JoinActs {
  /** Name of the request. */
  readonly name: string;
  readonly memory: JoinMemory;
  readonly decisions: DecisionMeter;
  readonly context: Context;
}

/** The end of a pass, or what it has found out and done when it decides again. */
export type JoinPerformed = Outcome | JoinPass;

/** Carries one decision out. There is no `default`: a case that is missing here does not compile. */
export async function performJoin(decision: JoinDecision, pass: JoinPass, acts: JoinActs): Promise<JoinPerformed> {
  const { name, memory, context } = acts;
  switch (decision.do) {
    case "takeTurn":
      return { ...pass, turn: takeTurn(requestOf(pass), memory, context) };
    case "takeRecordTurn":
      return { ...pass, recordTurn: takeRecordTurn(requestOf(pass), memory, context) };
    case "findApprovals":
      return { ...pass, awaitsApprovalByHand: awaitsApprovalByHand(requestOf(pass), memory, context) };
    case "readFacts":
      return { ...pass, facts: readFacts(requestOf(pass), memory, context) };
    case "listMachines":
      return { ...pass, machines: await machinesOfNode(decision.node, memory, context) };
    case "followCertificates":
      return { ...pass, lines: linesOfCertificates(decision.binding, context) };
    case "spendPlace":
      return (await spendPlace(decision, context)) ? { ...pass, isPlaceSpent: true } : done(againSeconds);
    case "bindName":
      return (await bindName(decision, memory, context)) ? { ...pass, isBound: true } : done(againSeconds);
    case "noteAdmission":
      memory.byHand.add(name);
      return pass;
    case "rest":
      return done(decision.seconds);
    case "approve":
    case "deny":
      return decide(decision, acts);
    case "wait":
      return wait(decision, acts);
    case "recordCertificate":
      return recordCertificate(decision, acts);
  }
}

function requestOf({ request }: JoinPass): CertificateSigningRequest {
  if (request === undefined) throw new Error("bug: a pass goes on about a request that there is not");
  return request;
}

/** Takes a turn of the machine that has the name, or of everybody else who uses it. */
function takeTurn(request: CertificateSigningRequest, memory: JoinMemory, context: Context): BudgetVerdict {
  const name = request.spec.username?.slice(nodeIdentity.userPrefix.length) ?? "";
  const isOfHolder = isSentByHolder(request, bindingOf(name, memory, context));
  return memory.budget.take({ ...budgetedRequest(request), isOfHolder }, context.clock.monotonic());
}

/** Takes a turn to follow the certificates of a name: an approver beside the suite may grant a node thousands. */
const takeRecordTurn = (request: CertificateSigningRequest, { budget }: JoinMemory, { clock }: Context) =>
  budget.takeRecord(budgetedRequest(request), clock.monotonic());

async function machinesOfNode(node: string, memory: JoinMemory, context: Context): Promise<readonly MachineOfNode[]> {
  return (await listMachines(memory, context))
    .filter(({ status }) => status?.nodeRef?.name === node)
    .map(({ metadata, status }) => ({
      name: metadata.name,
      addresses: (status?.addresses ?? []).flatMap(({ address }) => address ?? []),
    }));
}

/** All Machines. Requests that wait share one answer: a node may have made thousands. */
async function listMachines(memory: JoinMemory, { kube, clock, signal }: Context): Promise<readonly Machine[]> {
  const now = clock.monotonic();
  if (memory.machines !== undefined && now - memory.machines.at < machinesMs) return memory.machines.items;
  const found = await kube
    .list(openshift.Machine, { namespace: machineNamespace }, { signal })
    .catch((error: unknown) => {
      // Not every cluster has that API, and rights may be those of an earlier version.
      if (isNotFound(error) || isForbidden(error)) return undefined;
      throw error;
    });
  const items = found?.items ?? [];
  memory.machines = { at: now, items };
  return items;
}

/**
 * Notes in the place which machine it lets in, before the name is bound and the request is approved: a place that has a
 * machine lets in no other one, whatever becomes of the Node and the binding. A process that ends after this write goes on
 * from it. @returns `false`: another writer was first.
 */
async function spendPlace(
  { place, machine, publicKey }: JoinCase<"spendPlace">,
  { kube, clock, signal }: Context,
): Promise<boolean> {
  const { name, resourceVersion } = place.metadata;
  const status = spentPlace({ machine, publicKey }, clock.now());
  try {
    await kube.patch(
      JoinPlace,
      { name },
      { type: "merge", body: { metadata: { resourceVersion }, status } },
      { subresource: "status", signal },
    );
    return true;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return false;
  }
}

/**
 * Binds the name to the key of a request before its approval: the next request for the same name is refused, even if
 * this process ends before it approves. @returns `false`: another writer was first; it must be judged again.
 */
async function bindName(
  { request, facts }: JoinCase<"bindName">,
  { bound, granted }: JoinMemory,
  { kube, clock, signal }: Context,
): Promise<boolean> {
  const { name, binding } = facts;
  const spec = boundSpec(request, facts, clock.now());
  const metadata = { name, ...(binding === undefined ? {} : { resourceVersion: binding.metadata.resourceVersion }) };
  const object = { apiVersion: NodeBinding.apiVersion, kind: NodeBinding.kind, metadata, spec } as NodeBinding;
  granted.add(request.metadata.name);
  try {
    const written =
      binding === undefined
        ? await kube.create(NodeBinding, object, { signal })
        : await kube.patch(
            NodeBinding,
            { name },
            { type: "merge", body: { metadata, spec: { ...absentFields, ...spec } } },
            { signal },
          );
    bound.set(name, { binding: written, at: clock.monotonic() });
    return true;
  } catch (error) {
    if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) throw error;
    bound.delete(name);
    granted.delete(request.metadata.name);
    return false;
  }
}

async function recordCertificate(
  { binding, changes }: JoinCase<"recordCertificate">,
  { name: request, memory: { bound, recorded }, context: { kube, clock, signal } }: JoinActs,
): Promise<Outcome> {
  const { name, resourceVersion, uid = "" } = binding.metadata;
  try {
    if (changes !== undefined) {
      const written = await kube.patch(
        NodeBinding,
        { name },
        { type: "merge", body: { metadata: { resourceVersion }, spec: changes } },
        { signal },
      );
      if (bound.has(name)) bound.set(name, { binding: written, at: clock.monotonic() });
    }
    recorded.set(request, uid);
    return done();
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    bound.delete(name);
    return done(againSeconds);
  }
}

function wait(decision: JoinCase<"wait">, { name, memory, decisions, context }: JoinActs): Outcome {
  const { reason, because, isNews } = decision;
  if (isNews) {
    decisions.decided("wait", reason);
    reportWaiting(decision, context);
  }
  memory.reported.set(name, because);
  return waiting(reason, because, reconcileAfterSeconds);
}

async function decide(
  decision: JoinCase<"approve"> | JoinCase<"deny">,
  { decisions, context }: JoinActs,
): Promise<Outcome> {
  const { request, reason, because: message } = decision;
  const type = decision.do === "approve" ? "Approved" : "Denied";
  const isDecided = await addCondition(request, { type, status: "True", reason, message }, context);
  if (!isDecided) return done();
  if (decision.do === "approve") reportApproved(decision, context);
  else reportDenied(decision, context);
  decisions.decided(decision.do, reason);
  return done();
}

/** @returns `false`: another writer was first. */
async function addCondition(
  request: CertificateSigningRequest,
  condition: {
    readonly type: "Approved" | "Denied";
    readonly status: "True";
    readonly reason: string;
    readonly message: string;
  },
  { kube, signal }: Context,
): Promise<boolean> {
  const { name, resourceVersion } = request.metadata;
  const conditions = [...(request.status?.conditions ?? []), condition];
  try {
    await kube.patch(
      kubernetes.CertificateSigningRequest,
      { name },
      { type: "merge", body: { metadata: { resourceVersion }, status: { conditions } } },
      { subresource: "approval", signal },
    );
    return true;
  } catch (error) {
    // Another writer has changed or removed it: the watch reports it and leads to a new pass.
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return false;
  }
}
