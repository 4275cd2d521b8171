import { nodeIdentity } from "../../api/names.ts";
import { type RenewalsAnswer, otherApproverText } from "../../core/operator/other-approvers.ts";
import { reapplyMs } from "../apply-manifest.ts";
import { type OperatorTask, type TaskContext, taskDone } from "../operator-task.ts";

/** A member of the group of all nodes that is none of them. */
const anyNode = {
  user: `${nodeIdentity.userPrefix}renewals-of-all-nodes`,
  groups: [nodeIdentity.group, "system:authenticated"],
  resourceAttributes: {
    verb: "create",
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    subresource: "selfnodeclient",
  },
};

interface Report {
  /** The text of the condition; `undefined`: there is no other approver. */
  readonly text: string | undefined;
}

/**
 * Whether another approver than the suite renews certificates of nodes: a condition of the ClusterOperator names what lets it.
 * Nothing depends on it, so that an API server that does not answer fails no task.
 */
export const otherApprovers: OperatorTask<RenewalsAnswer | "asked before", Report | "asked before"> = {
  name: "OtherApprovers",
  watches: [],

  async observe(context) {
    const { memory, clock } = context;
    const at = memory.otherApprover?.askedAt;
    if (at !== undefined && clock.monotonic() - at < reapplyMs) return "asked before";
    return answerOf(context);
  },

  decide: (answer) => (answer === "asked before" ? answer : { text: otherApproverText(answer) }),

  perform(report, { memory, clock }) {
    if (report !== "asked before") memory.otherApprover = { ...report, askedAt: clock.monotonic() };
    return taskDone;
  },
};

async function answerOf({ kube, log, signal }: TaskContext): Promise<RenewalsAnswer> {
  try {
    const { status = {} } = (await kube.request(
      {
        method: "POST",
        target: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec: anyNode }),
      },
      { signal },
    )) as { readonly status?: { readonly allowed?: boolean; readonly reason?: string } };
    return { isAllowed: status.allowed === true, reason: status.reason ?? "" };
  } catch (error) {
    if (signal.aborted) throw error;
    log.info({ error }, "cannot ask who approves renewals of nodes");
    return { isAllowed: false, reason: "" };
  }
}
