/** The API server's answer to whether every node may have its certificate renewed (SubjectAccessReview). */
export interface RenewalsAnswer {
  readonly isAllowed: boolean;
  /** Why, in the API server's words; it names one binding. */
  readonly reason: string;
}

/**
 * Describes the approver of renewals beside the suite. kube-controller-manager approves the renewals of those whom RBAC lets
 * `create certificatesigningrequests/selfnodeclient` (k8s.io/kubernetes pkg/controller/certificates/approver, v1.34), without a
 * look at NodeBindings; kubeadm and OpenShift let all nodes.
 *
 * @returns `undefined`: the suite alone approves renewals of its nodes.
 */
export function otherApproverText({ isAllowed, reason }: RenewalsAnswer): string | undefined {
  if (!isAllowed) return undefined;
  const [, name] = /ClusterRoleBinding "([^"]{1,253})"/.exec(reason) ?? [];
  const by = name === undefined ? "RBAC" : `the ClusterRoleBinding ${name}`;
  return `kube-controller-manager renews the certificates of all nodes, because ${by} lets all nodes renew theirs: a former machine of a name renews its own until its name is released, or another machine of the suite takes it. Nothing is wrong with that by itself; docs/joining.md (Other approvers) says how the suite alone approves renewals`;
}
