import type { KubeClient } from "./kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { ServerHandler } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";

export const metricsPath = "/metrics";

/** How long a revoked caller is let in at most; scrapes within that time cost no review. */
const allowedMs = 10_000;
/** How long the same refusal costs no review. Short: what was just granted is to work. */
const refusedMs = 5_000;
/** A caller that was let in within this time is asked about again whatever others do from its address. */
const knownMs = 600_000;
/** Cached callers: enough for legitimate ones, and bounded against attacks. */
const mostVerdicts = 64;
/** Failed authentications of one source within {@link failureWindowMs}; then it waits until the window ends. */
const mostFailures = 10;
const failureWindowMs = 60_000;
/** Sources whose failures are counted. The oldest is forgotten: an attacker needs as many addresses. */
const mostSources = 1_024;
/** Reviews at the same time, of all sources together. */
const mostReviews = 16;

type Verdict = "allowed" | "unknownCaller" | "forbidden";

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly user?: { readonly username?: string; readonly uid?: string; readonly groups?: readonly string[] };
  };
}

const refuse = (status: number, text: string, headers: Readonly<Record<string, string>> = {}): HttpResponse => ({
  status,
  headers: { "content-type": "text/plain", ...headers },
  body: `${text}\n`,
});

/** What the handler remembers between two requests; each map is bounded. */
interface MetricsMemory {
  /** Token → when it was last found to be allowed. Apart from refusals: those must not push legitimate callers out. */
  readonly allowed: Map<string, number>;
  readonly refused: Map<string, { readonly verdict: Verdict; readonly at: number }>;
  /** Source → its failed authentications since `from`. */
  readonly failures: Map<string, { readonly from: number; count: number }>;
  /** Reviews that run. */
  reviews: number;
}

/** Sets an entry as the newest, and forgets the oldest beyond `most`. */
function remember<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > most && oldest.done !== true) map.delete(oldest.value);
}

/** One subscriber has a /64 of IPv6 to itself. */
function sourceOf(from: string): string {
  if (!from.includes(":") || from.includes(".")) return from;
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  const [left = "", right] = from.split("::");
  const [first, last] = [groups(left), groups(right ?? "")];
  const zeros = right === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  return [...first, ...Array.from({ length: zeros }, () => "0"), ...last].slice(0, 4).join(":");
}

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
  const memory: MetricsMemory = { allowed: new Map(), refused: new Map(), failures: new Map(), reviews: 0 };

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

  /** The verdict on a token; "busy" where a review of an unknown caller would be one too many. */
  async function verdictOn(token: string, source: string, signal: AbortSignal): Promise<Verdict | "busy"> {
    const allowedAt = memory.allowed.get(token);
    const sinceAllowed = allowedAt === undefined ? Infinity : clock.monotonic() - allowedAt;
    if (sinceAllowed < allowedMs) return "allowed";
    const refused = memory.refused.get(token);
    if (refused !== undefined && clock.monotonic() - refused.at < refusedMs) return refused.verdict;
    if (sinceAllowed >= knownMs && (isLimited(source) || memory.reviews >= mostReviews)) return "busy";
    memory.reviews += 1;
    try {
      // A revocation counts from the moment of the question.
      const at = clock.monotonic();
      const verdict = await ask(token, signal);
      memory.allowed.delete(token);
      memory.refused.delete(token);
      if (verdict === "allowed") remember(memory.allowed, token, at, mostVerdicts);
      else remember(memory.refused, token, { verdict, at }, mostVerdicts);
      return verdict;
    } finally {
      memory.reviews -= 1;
    }
  }

  function isLimited(source: string): boolean {
    const failed = memory.failures.get(source);
    return failed !== undefined && clock.monotonic() - failed.from < failureWindowMs && failed.count >= mostFailures;
  }

  function countFailure(source: string): void {
    const failed = memory.failures.get(source);
    if (failed !== undefined && clock.monotonic() - failed.from < failureWindowMs) failed.count += 1;
    else remember(memory.failures, source, { from: clock.monotonic(), count: 1 }, mostSources);
  }

  return async (request, _client, signal, from = "") => {
    if (request.method !== "GET") return refuse(405, "GET the metrics");
    const source = sourceOf(from);
    const token = /^Bearer (\S{1,16384})$/.exec(String(request.headers["authorization"] ?? ""))?.[1];
    if (token === undefined) return refuse(401, "a bearer token is wanted");
    let verdict: Verdict | "busy";
    try {
      verdict = await verdictOn(token, source, signal);
    } catch (error) {
      log.warn({ error }, "cannot ask who may read the metrics");
      return refuse(503, "the API server cannot be asked");
    }
    switch (verdict) {
      case "busy":
        return refuse(429, "too many callers that are not known", { "retry-after": String(failureWindowMs / 1_000) });
      case "unknownCaller":
        countFailure(source);
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
