import type { Clock } from "../ports/clock.ts";
import type { KubeClient } from "./kube-client.ts";

/** The user behind a token (authentication.k8s.io/v1 TokenReview). */
export interface ReviewedUser {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The verdict on one caller, with the facts that the endpoint needs. */
export type CallerVerdict<T> =
  | { readonly is: "allowed"; readonly facts: T }
  | { readonly is: "unknownCaller" }
  | { readonly is: "forbidden" };

/** How long a revoked caller is let in at most; requests within that time cost no review. */
const allowedMs = 10_000;
/** How long the same refusal costs no review. Short, so that a new grant takes effect soon. */
const refusedMs = 5_000;
/** A caller that was admitted within this time is reviewed again, whatever others do from its address. */
const knownMs = 600_000;
/** Failed authentications of one source within {@link failureWindowMs}; then it waits until the window ends. */
const mostFailures = 10;
export const failureWindowMs = 60_000;
/** Sources whose failures are counted. The oldest is forgotten: an attacker needs as many addresses. */
const mostSources = 1_024;
/** Reviews at the same time, of all sources together. */
const mostReviews = 16;

/** What the reviews remember between two requests; each map is bounded. */
interface ReviewMemory<T> {
  /** Token → when it was last found to be allowed. Apart from refusals: those must not push legitimate callers out. */
  readonly allowed: Map<
    string,
    { readonly verdict: CallerVerdict<T> & { readonly is: "allowed" }; readonly at: number }
  >;
  readonly refused: Map<string, { readonly verdict: CallerVerdict<T>; readonly at: number }>;
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

/** The bearer token of a request; `undefined`: it has none. */
export const bearerToken = (authorization: string | readonly string[] | undefined): string | undefined =>
  /^Bearer (\S{1,16384})$/.exec(String(authorization ?? ""))?.[1];

/**
 * Decides about callers by their bearer tokens, and keeps guesses from loading the API server: verdicts are cached for
 * seconds, failures are counted by source, and few reviews run at the same time.
 *
 * @typeParam T what `ask` finds out about a caller that it allows.
 */
export class CallerReviews<T> {
  readonly #clock: Clock;
  readonly #ask: (token: string, signal: AbortSignal) => Promise<CallerVerdict<T>>;
  readonly #mostVerdicts: number;
  readonly #memory: ReviewMemory<T> = { allowed: new Map(), refused: new Map(), failures: new Map(), reviews: 0 };

  /** @param mostVerdicts cached callers: enough for legitimate ones, and bounded against attacks. */
  constructor(options: {
    readonly clock: Clock;
    readonly ask: (token: string, signal: AbortSignal) => Promise<CallerVerdict<T>>;
    readonly mostVerdicts?: number;
  }) {
    this.#clock = options.clock;
    this.#ask = options.ask;
    this.#mostVerdicts = options.mostVerdicts ?? 64;
  }

  /**
   * The verdict on a token; `busy` if another review of an unknown caller would exceed the limit. Rejects when the API
   * server cannot be asked.
   *
   * @param source the group of addresses that the caller's failures are counted for.
   */
  async verdict(
    token: string,
    source: string,
    signal: AbortSignal,
  ): Promise<CallerVerdict<T> | { readonly is: "busy" }> {
    const verdict = await this.#find(token, source, signal);
    if (verdict.is === "unknownCaller") this.#countFailure(source);
    return verdict;
  }

  async #find(token: string, source: string, signal: AbortSignal): Promise<CallerVerdict<T> | { readonly is: "busy" }> {
    const memory = this.#memory;
    const now = this.#clock.monotonic();
    const allowed = memory.allowed.get(token);
    const sinceAllowed = allowed === undefined ? Infinity : now - allowed.at;
    if (allowed !== undefined && sinceAllowed < allowedMs) return allowed.verdict;
    const refused = memory.refused.get(token);
    if (refused !== undefined && now - refused.at < refusedMs) return refused.verdict;
    if (sinceAllowed >= knownMs && (this.#isLimited(source) || memory.reviews >= mostReviews)) return { is: "busy" };
    memory.reviews += 1;
    try {
      const verdict = await this.#ask(token, signal);
      memory.allowed.delete(token);
      memory.refused.delete(token);
      // A revocation counts from the time of the question.
      if (verdict.is === "allowed") remember(memory.allowed, token, { verdict, at: now }, this.#mostVerdicts);
      else remember(memory.refused, token, { verdict, at: now }, this.#mostVerdicts);
      return verdict;
    } finally {
      memory.reviews -= 1;
    }
  }

  #isLimited(source: string): boolean {
    const failed = this.#memory.failures.get(source);
    return (
      failed !== undefined && this.#clock.monotonic() - failed.from < failureWindowMs && failed.count >= mostFailures
    );
  }

  #countFailure(source: string): void {
    const { failures } = this.#memory;
    const now = this.#clock.monotonic();
    const failed = failures.get(source);
    if (failed !== undefined && now - failed.from < failureWindowMs) failed.count += 1;
    else remember(failures, source, { from: now, count: 1 }, mostSources);
  }
}

/**
 * The user of a token; `undefined` if the API server does not accept it.
 *
 * @param audiences the token must be for one of these; empty: for the API server itself.
 */
export async function reviewToken(
  kube: KubeClient,
  token: string,
  audiences: readonly string[],
  signal: AbortSignal,
): Promise<ReviewedUser | undefined> {
  const review = (await kube.request(
    {
      method: "POST",
      target: "/apis/authentication.k8s.io/v1/tokenreviews",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: { token, ...(audiences.length === 0 ? {} : { audiences }) },
      }),
    },
    { signal },
  )) as {
    readonly status?: {
      readonly authenticated?: boolean;
      readonly user?: ReviewedUser;
      readonly audiences?: readonly string[];
    };
  };
  const { authenticated, user, audiences: meant = [] } = review.status ?? {};
  if (authenticated !== true || user === undefined) return undefined;
  // An API server without support for audiences answers without them: its answer says nothing about ours.
  return audiences.length === 0 || audiences.some((audience) => meant.includes(audience)) ? user : undefined;
}
