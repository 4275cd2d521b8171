import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { untilSeen } from "../until-seen.ts";

/** A request that a user may want to make. `group` is empty for the core group. */
export interface Ask {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
}

/** Waits until the API server allows a user a request. Its authorizer learns of new bindings through a watch. */
export async function untilAllowed(admin: KubeClient, user: string, ask: Ask): Promise<void> {
  await untilSeen(
    `${user} may ${ask.verb} ${ask.resource}`,
    () =>
      admin.request({
        method: "POST",
        target: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          apiVersion: "authorization.k8s.io/v1",
          kind: "SubjectAccessReview",
          spec: { user, resourceAttributes: ask },
        }),
      }) as Promise<{ readonly status?: { readonly allowed?: boolean } }>,
    ({ status }) => status?.allowed === true,
  );
}
