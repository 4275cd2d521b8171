import type { CertificateSigningRequest } from "../api/foreign/kubernetes.ts";
import type { JoinCase } from "../core/join/join-decision.ts";
import type { Context } from "../kube/controller.ts";

/** Reports that a request waits, and for what. */
export const reportWaiting = (
  { request, reason, because }: JoinCase<"wait">,
  { report }: Pick<Context, "report">,
): void => report({ about: request, notice: reason, type: "Warning", message: `Not approved: ${because}` });

/** Reports that a request was approved. */
export function reportApproved(decision: JoinCase<"approve">, { report, log }: Context): void {
  const { request, reason, because } = decision;
  log.info(fieldsOf(decision), "certificate request approved");
  report({ about: request, notice: reason, type: "Normal", message: `Approved: ${because}` });
}

/** Reports that a request was denied. */
export function reportDenied(decision: JoinCase<"deny">, { report, log }: Context): void {
  const { request, reason, because } = decision;
  log.info(fieldsOf(decision), "certificate request denied");
  report({ about: request, notice: reason, type: "Warning", message: `Denied: ${because}` });
}

const fieldsOf = ({
  request: { metadata, spec },
  reason,
}: {
  readonly request: CertificateSigningRequest;
  readonly reason: string;
}) => ({ request: metadata.name, requester: spec.username, reason });
