import { describe, expect, test } from "vitest";
import { factsOf } from "../pool/pool-queries.ts";
import { clusterOperatorConditions } from "./cluster-operator-status.ts";
import { otherApproverText } from "./other-approvers.ts";

describe("another approver of renewals", () => {
  test.for([
    { title: "there is none where nodes may not renew", isAllowed: false, reason: "", is: undefined },
    {
      title: "the binding that lets it approve is named",
      isAllowed: true,
      reason:
        'RBAC: allowed by ClusterRoleBinding "kubeadm:node-autoapprove-certificate-rotation" of ClusterRole "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient" to Group "system:nodes"',
      is: "because the ClusterRoleBinding kubeadm:node-autoapprove-certificate-rotation lets",
    },
    { title: "an authorizer that says no more counts as well", isAllowed: true, reason: "", is: "because RBAC lets" },
  ])("$title [operator-other-approvers-1]", ({ isAllowed, reason, is }) => {
    const text = otherApproverText({ isAllowed, reason });
    if (is === undefined) expect(text).toBeUndefined();
    else expect(text).toContain(is);
  });

  test("is a condition of the ClusterOperator while there is one, and degrades nothing [operator-other-approvers-2]", () => {
    const facts = {
      version: "1",
      reached: "1",
      outcomes: [],
      cluster: factsOf({ pools: [], nodes: [], machineConfigNodes: [] }, 0),
    };
    const before = clusterOperatorConditions({ ...facts, otherApprover: "somebody approves" }, [], 0);
    expect(before.at(-1)).toEqual({
      type: "OtherApprovers",
      status: "True",
      reason: "NodesMayRenew",
      message: "somebody approves",
      lastTransitionTime: "1970-01-01T00:00:00Z",
    });
    expect(before.find(({ type }) => type === "Degraded")?.status).toBe("False");
    const after = clusterOperatorConditions(facts, before, 1000);
    expect(after.map(({ type }) => type)).toEqual(["Available", "Progressing", "Degraded", "Upgradeable"]);
  });
});
