import { kubernetes } from "../api/foreign/kubernetes.ts";
import { decideJoin } from "../core/join/decide-join.ts";
import type { JoinPass } from "../core/join/join-decision.ts";
import { isOpen } from "../core/join/node-request.ts";
import { DecisionMeter } from "../core/metrics/decision-meter.ts";
import type { Controller } from "../kube/controller.ts";
import type { Outcome } from "../kube/outcome.ts";
import { emptyMemory, forgetRequest, memoryOf } from "./join-memory.ts";
import { joinWatches } from "./join-watches.ts";
import { observeJoin } from "./observe-join.ts";
import { type JoinActs, performJoin } from "./perform-join.ts";

/**
 * Admits machines: approves the certificate that a machine of a pool joins with and those that it requests as a node,
 * and denies requests that are never allowed. Before it approves a client certificate it binds the name to the key, in a
 * NodeBinding, by which the binding controller gives the Node its labels. Requests of other users are never touched.
 */
export function joinController(decisions = new DecisionMeter()): Controller {
  const memory = emptyMemory();
  return {
    name: "join",
    watches: joinWatches(memory),
    owns: [
      "CertificateSigningRequest.status.conditions",
      "NodeBinding.spec.publicKey",
      "NodeBinding.spec.expiresAt",
      "NodeBinding.spec.certificates",
      "NodeBinding.spec.formerCertificates",
      "NodeBinding.spec.formerExpiresAt",
      "JoinPlace.status",
    ],
    reconcile: (name, context) => runPass({ name, memory, decisions, context }),
  };
}

/** Decides until a decision ends the pass: lookups and preparations lead to another decision. */
async function runPass(acts: JoinActs): Promise<Outcome> {
  const { name, memory, context } = acts;
  const request = context.caches.of(kubernetes.CertificateSigningRequest).get(name);
  if (request === undefined) forgetRequest(name, memory);
  else if (!isOpen(request)) memory.reported.delete(name);
  let pass: JoinPass = { request };
  for (;;) {
    const decision = decideJoin(observeJoin(pass, memory, context), memoryOf(name, memory));
    const performed = await performJoin(decision, pass, acts);
    if ("kind" in performed) return performed;
    pass = performed;
  }
}
