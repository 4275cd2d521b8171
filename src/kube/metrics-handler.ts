import { type CallerVerdict, CallerReviews, bearerToken, failureWindowMs, reviewToken } from "./caller-reviews.ts";
import type { KubeClient } from "./kube-client.ts";
import { sourceGroup } from "../core/join/source-group.ts";
import type { Clock } from "../ports/clock.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { ServerHandler } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";

export const metricsPath = "/metrics";

const refuse = (status: number, text: string, headers: Readonly<Record<string, string>> = {}): HttpResponse => ({
  status,
  headers: { "content-type": "text/plain", ...headers },
  body: `${text}\n`,
});

/** Whether the caller may read `/metrics` (authorization.k8s.io/v1 SubjectAccessReview). */
async function mayReadMetrics(kube: KubeClient, token: string, signal: AbortSignal): Promise<CallerVerdict<undefined>> {
  const user = await reviewToken(kube, token, [], signal);
  if (user === undefined) return { is: "unknownCaller" };
  const spec = {
    user: user.username,
    uid: user.uid,
    groups: user.groups,
    nonResourceAttributes: { path: metricsPath, verb: "get" },
  };
  const access = (await kube.request(
    {
      method: "POST",
      target: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec }),
    },
    { signal },
  )) as { readonly status?: { readonly allowed?: boolean } };
  return access.status?.allowed === true ? { is: "allowed", facts: undefined } : { is: "forbidden" };
}

/** Serves metrics to callers whose bearer token the API server accepts, and that may read `/metrics`. */
export function metricsHandler(options: {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly text: () => string;
}): ServerHandler {
  const { kube, clock, log } = options;
  const reviews = new CallerReviews({ clock, ask: (token, signal) => mayReadMetrics(kube, token, signal) });

  return async (request, _client, signal, from = "") => {
    if (request.method !== "GET") return refuse(405, "GET the metrics");
    const token = bearerToken(request.headers["authorization"]);
    if (token === undefined) return refuse(401, "a bearer token is wanted");
    let verdict: Awaited<ReturnType<typeof reviews.verdict>>;
    try {
      verdict = await reviews.verdict(token, sourceGroup(from), signal);
    } catch (error) {
      log.warn({ error }, "cannot ask who may read the metrics");
      return refuse(503, "the API server cannot be asked");
    }
    switch (verdict.is) {
      case "busy":
        return refuse(429, "too many callers that are not known", { "retry-after": String(failureWindowMs / 1_000) });
      case "unknownCaller":
        return refuse(401, "the token is not known");
      case "forbidden":
        return refuse(403, `getting ${metricsPath} is not allowed to this account`);
      case "allowed":
        return {
          status: 200,
          headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
          body: options.text(),
        };
    }
  };
}
