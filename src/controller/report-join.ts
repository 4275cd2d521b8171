import type { CertificateSigningRequest } from "../api/foreign/kubernetes.ts";
import type { JoinCase } from "../core/join/join-decision.ts";
import type { Context } from "../kube/controller.ts";
import { requestJudged } from "./reports.ts";

/** Reports that a request waits, and for what. */
export const reportWaiting = (
  { request, reason, because }: JoinCase<"wait">,
  { report }: Pick<Context, "report">,
): void => report(requestJudged(request, "Not approved", reason, because));

/** Reports that a request was approved. */
export function reportApproved(decision: JoinCase<"approve">, { report, log }: Context): void {
  const { request, reason, because } = decision;
  log.info(fieldsOf(decision), "certificate request approved");
  report(requestJudged(request, "Approved", reason, because));
}

/** Reports that a request was denied. */
export function reportDenied(decision: JoinCase<"deny">, { report, log }: Context): void {
  const { request, reason, because } = decision;
  log.info(fieldsOf(decision), "certificate request denied");
  report(requestJudged(request, "Denied", reason, because));
}

const fieldsOf = ({
  request: { metadata, spec },
  reason,
}: {
  readonly request: CertificateSigningRequest;
  readonly reason: string;
}) => ({ request: metadata.name, requester: spec.username, reason });
