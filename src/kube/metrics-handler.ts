import type { KubeClient } from "./kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { ServerHandler } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";

export const metricsPath = "/metrics";

/** How long an authorization result is cached, so that scraping does not cost a review each time. */
const verdictMs = 60_000;
/** Cached callers: enough for legitimate ones, and bounded against attacks. */
const mostVerdicts = 64;

type Verdict = "allowed" | "unknownCaller" | "forbidden";

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly user?: { readonly username?: string; readonly uid?: string; readonly groups?: readonly string[] };
  };
}

const refuse = (status: number, text: string): HttpResponse => ({
  status,
  headers: { "content-type": "text/plain" },
  body: `${text}\n`,
});

/**
 * Serves metrics to callers that may read `/metrics`: reviews the caller's bearer token (authentication.k8s.io/v1
 * TokenReview) and then its permission (authorization.k8s.io/v1 SubjectAccessReview).
 */
export function metricsHandler(options: {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly text: () => string;
}): ServerHandler {
  const { kube, clock, log } = options;
  const verdicts = new Map<string, { readonly verdict: Verdict; readonly at: number }>();

  async function ask(token: string, signal: AbortSignal): Promise<Verdict> {
    const post = (target: string, kind: string, apiVersion: string, spec: object) =>
      kube.request(
        {
          method: "POST",
          target,
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ apiVersion, kind, spec }),
        },
        { signal },
      );
    const review = (await post(
      "/apis/authentication.k8s.io/v1/tokenreviews",
      "TokenReview",
      "authentication.k8s.io/v1",
      { token },
    )) as TokenReview;
    const { user } = review.status ?? {};
    if (review.status?.authenticated !== true || user === undefined) return "unknownCaller";
    const spec = {
      user: user.username,
      uid: user.uid,
      groups: user.groups,
      nonResourceAttributes: { path: metricsPath, verb: "get" },
    };
    const access = (await post(
      "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      "SubjectAccessReview",
      "authorization.k8s.io/v1",
      spec,
    )) as { readonly status?: { readonly allowed?: boolean } };
    return access.status?.allowed === true ? "allowed" : "forbidden";
  }

  async function verdictOn(token: string, signal: AbortSignal): Promise<Verdict> {
    const known = verdicts.get(token);
    if (known !== undefined && clock.monotonic() - known.at < verdictMs) return known.verdict;
    const verdict = await ask(token, signal);
    verdicts.delete(token);
    const oldest = verdicts.keys().next();
    if (verdicts.size >= mostVerdicts && oldest.done !== true) verdicts.delete(oldest.value);
    verdicts.set(token, { verdict, at: clock.monotonic() });
    return verdict;
  }

  return async (request, _client, signal) => {
    if (request.method !== "GET") return refuse(405, "GET the metrics");
    const token = /^Bearer (\S{1,16384})$/.exec(String(request.headers["authorization"] ?? ""))?.[1];
    if (token === undefined) return refuse(401, "a bearer token is wanted");
    let verdict: Verdict;
    try {
      verdict = await verdictOn(token, signal);
    } catch (error) {
      log.warn({ error }, "cannot ask who may read the metrics");
      return refuse(503, "the API server cannot be asked");
    }
    if (verdict === "unknownCaller") return refuse(401, "the token is not known");
    if (verdict === "forbidden") return refuse(403, `getting ${metricsPath} is not allowed to this account`);
    return {
      status: 200,
      headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
      body: options.text(),
    };
  };
}
