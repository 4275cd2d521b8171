import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import { signers } from "../../api/names.ts";
import { defined } from "../../api/schema/defined.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { certificateIn, withCertificate, withFormerCertificate } from "./certificate-holder.ts";
import type { JoinCase, JoinDecision, JoinView, RequestFacts, RequestMemory } from "./join-decision.ts";
import { type CsrVerdict, judgeCsr } from "./judge-csr.ts";
import { kubeletRequestProblem } from "./kubelet-request.ts";
import { isApproved, isByHand, isOpen, issuedIn, listedOwner, noLines, ownerOfIssued } from "./node-request.ts";

/** The queue comes to a request that was approved by hand within this time. */
const byHandSeconds = 1;

const rest = (because: string): JoinDecision => ({ do: "rest", because });

/**
 * Decides what a pass over a certificate request does next. An open request is judged when its requester has a turn; before
 * a client certificate is approved, the place of the machine is spent and the name is bound. After an approval the
 * certificate is recorded, and an approval by hand binds the name as well. A case that looks up or prepares something is
 * followed by another decision on the updated view.
 */
export function decideJoin(view: JoinView, memory: RequestMemory): JoinDecision {
  const { request } = view;
  if (request === undefined) return rest("there is no such request any more");
  if (request.metadata.deletionTimestamp !== undefined) return rest("the request is being deleted");
  if (isApproved(request)) return decideApproved(view, memory, request);
  return isOpen(request) ? decideOpen(view, memory, request) : rest("the request was denied, or it failed");
}

function decideOpen(view: JoinView, memory: RequestMemory, request: CertificateSigningRequest): JoinDecision {
  const { turn, awaitsApprovalByHand, facts } = view;
  if (turn === undefined)
    return { do: "takeTurn", because: "the requests of one requester are judged at a bounded rate" };
  if (turn.verdict === "abandoned") return rest("its requester waits for newer requests only");
  if (turn.verdict === "later")
    return { do: "rest", because: "its requester has used its turns", seconds: turn.afterSeconds };
  if (awaitsApprovalByHand === undefined) return { do: "findApprovals", because: "the request has a turn" };
  if (awaitsApprovalByHand)
    return {
      do: "rest",
      because: "its name may go to another request, which was approved by hand",
      seconds: byHandSeconds,
    };
  if (facts === undefined) return { do: "readFacts", because: "no other request comes first" };
  return decideVerdict(view, memory, { request, facts });
}

interface ObservedRequest {
  readonly request: CertificateSigningRequest;
  readonly facts: RequestFacts;
}

function decideVerdict(view: JoinView, { reported }: RequestMemory, { request, facts }: ObservedRequest): JoinDecision {
  const { machines = facts.csr.machines } = view;
  const verdict = judgeCsr({ ...facts.csr, machines });
  switch (verdict.verdict) {
    case "leave":
      return rest("the suite does not decide requests like this one");
    case "deny":
      return { do: "deny", because: verdict.message, reason: verdict.reason, request };
    case "approve":
      return decideApproval(view, verdict, { request, facts });
    case "wait":
      if (verdict.reason === "AddressUnknown" && view.machines === undefined)
        return {
          do: "listMachines",
          because: "the machine API may know the address",
          node: facts.name,
        };
      return {
        do: "wait",
        because: verdict.message,
        reason: verdict.reason,
        request,
        isNews: reported !== verdict.message,
      };
  }
}

function decideApproval(
  view: JoinView,
  { reason, message }: Exclude<CsrVerdict, { readonly verdict: "leave" }>,
  observed: ObservedRequest,
): JoinDecision {
  const { request } = observed;
  const isClient = request.spec.signerName === signers.kubeletClient;
  const binds = isClient ? decideBinding(view, observed) : undefined;
  return binds ?? { do: "approve", because: message, reason, request };
}

/**
 * The place is spent before the name is bound, and the name is bound before the request is approved: a process that ends in
 * between goes on from there. `undefined`: both are done.
 */
function decideBinding(view: JoinView, { request, facts }: ObservedRequest): JoinDecision | undefined {
  const { place, publicKey } = facts.csr;
  if (place.verdict === "free" && place.place.status?.machine === undefined && view.isPlaceSpent !== true)
    return {
      do: "spendPlace",
      because: "a place that has a machine lets in no other one",
      place: place.place,
      machine: facts.name,
      publicKey,
    };
  if (view.isBound !== true) return { do: "bindName", because: "a bound name goes to no other key", request, facts };
  return undefined;
}

/**
 * The record of the certificate follows an approval. An administrator who approves the request of a joining machine
 * by hand admits it as if its configuration did, so that its name is bound as well.
 */
function decideApproved(view: JoinView, memory: RequestMemory, request: CertificateSigningRequest): JoinDecision {
  if (!isByHand(request) || memory.isAdmittedByHand) return decideRecord(view, memory, request);
  const { facts } = view;
  if (facts === undefined) return { do: "readFacts", because: "the request was approved by hand" };
  const isBinding = bindsByHand(request, facts);
  const binds = isBinding ? decideBinding(view, { request, facts }) : undefined;
  const because = isBinding
    ? "the name that was approved by hand is bound"
    : "the approval by hand gives the name to no key";
  return binds ?? { do: "noteAdmission", because };
}

/**
 * Whether an approval by hand gives a name to its key: the name is free, and was so when the request was made. Requests are kept
 * for an hour, and one of a former machine says nothing about the next one of its name. A Node that was there before the
 * approval is not that of the machine.
 */
function bindsByHand(request: CertificateSigningRequest, { csr, binding, nodeCreatedAt }: RequestFacts): boolean {
  const at = request.metadata.creationTimestamp ?? "";
  if (csr.request === undefined || kubeletRequestProblem(csr.request) !== undefined) return false;
  const approvedAt = conditionOf(request.status?.conditions, "Approved")?.lastTransitionTime ?? at;
  if (nodeCreatedAt !== undefined && nodeCreatedAt < approvedAt) return false;
  if (binding === undefined) return true;
  const { publicKey, releasedAt, expiresAt } = binding.spec;
  const freeAt = releasedAt ?? expiresAt;
  return publicKey !== csr.publicKey && csr.binding?.isGood !== true && Date.parse(freeAt) < Date.parse(at);
}

/**
 * A certificate of a machine that has or had a name is recorded once: a binding lists the last ones, and a node that had many
 * would have the older ones recorded again and again. The request that holds it is removed after an hour. By any
 * approver, the certificate that the request was sent with says whose it is: a former machine stays one.
 */
function decideRecord(
  { binding, lines, recordTurn }: JoinView,
  { recordedIn }: RequestMemory,
  request: CertificateSigningRequest,
): JoinDecision {
  if (binding === undefined) return rest("its name is bound to no key");
  const issued = issuedIn(request);
  if (issued === undefined) return rest("no certificate was issued yet");
  if (request.spec.signerName !== signers.kubeletClient)
    return rest("it is no request of the machine that has the name");
  if (recordedIn === (binding.metadata.uid ?? "")) return rest("its certificate is recorded");
  const credential = certificateIn(request.spec.extra);
  if (lines === undefined && credential !== undefined && listedOwner(credential, binding) === undefined) {
    if (recordTurn === undefined)
      return { do: "takeRecordTurn", because: "certificates of one name are followed at a bounded rate" };
    if (recordTurn.verdict === "later")
      return { do: "rest", because: "its requester has used its turns", seconds: recordTurn.afterSeconds };
    return { do: "followCertificates", because: "a certificate was issued", binding };
  }
  const askedAt = Date.parse(request.metadata.creationTimestamp ?? "");
  const ofHolder = withCertificate(binding.spec, issued, credential);
  const ofFormer = (isSure: boolean) => withFormerCertificate(binding.spec, issued, { isSure, askedAt });
  const record = (because: string, changes: JoinCase<"recordCertificate">["changes"]): JoinDecision => ({
    do: "recordCertificate",
    because,
    binding,
    changes,
  });
  switch (ownerOfIssued(request, binding, lines ?? noLines)) {
    case "holder":
      return record("a binding lists the certificates of its machine", ofHolder);
    case "former":
      return record("a binding lists the certificates of machines that had its name before", ofFormer(true));
    case "stranger":
      return record("a machine that the binding does not know has a certificate for its name", ofFormer(false));
    case "unknown":
      return record(
        "the machine that has the name or a former one has the certificate",
        endsOf(ofHolder, ofFormer(false)),
      );
    case "nobody":
      return rest("it is no request of the machine that has the name");
  }
}

/** Of a certificate whose machine is not known, the end counts for both, and the certificate for none. */
function endsOf(
  ofHolder: ReturnType<typeof withCertificate>,
  ofFormer: ReturnType<typeof withFormerCertificate>,
): JoinCase<"recordCertificate">["changes"] {
  const { expiresAt } = ofHolder ?? {};
  const changes = { ...defined({ expiresAt }), ...ofFormer };
  return Object.keys(changes).length === 0 ? undefined : changes;
}
