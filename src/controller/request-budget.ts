import type { BudgetVerdict } from "../core/join/join-decision.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";

/** An open certificate request, as far as the budget goes. */
export interface BudgetedRequest {
  readonly key: string;
  /** Who asks: a node, or a machine that joins by the credential of its own configuration. */
  readonly requester: string;
  /** The requester is an account of which nothing tells the machines apart that use it. */
  readonly isShared: boolean;
  /** In ISO 8601. */
  readonly createdAt: string;
}

/**
 * A kubelet has one open request for each of two signers and makes the next one a quarter of an hour later
 * (k8s.io/client-go util/certificate (v0.34)); each of them is judged once a minute while it waits.
 */
const newestOfRequester = 10;
const ofRequester: BucketLimits = { burst: 60, perSecond: 0.5, sources: 10_000 };

/**
 * All machines of a pool share an account, and where the API server records no credentials they are one requester: as many
 * as one token makes places for in an hour at once, and then as many as the approver judges beside its other work. Which
 * of them are abandoned cannot be seen.
 */
const ofAccount: BucketLimits = { burst: 5000, perSecond: 10, sources: 1000 };
const accountLaterSeconds = 60;

/**
 * Bounds the work that the requests of one requester cost: judging them, and Events and decisions that are written.
 * Kubernetes stores as many requests as a node creates. One key costs as many steps as requests are remembered of its
 * requester.
 */
export class RequestBudget {
  readonly #requesters = new SourceBuckets(ofRequester);
  readonly #accounts = new SourceBuckets(ofAccount);
  /** Requester → its newest open requests. */
  readonly #newest = new Map<string, BudgetedRequest[]>();

  /** A request that is open, as the watch brings it. */
  opened(request: BudgetedRequest): void {
    if (request.isShared) return;
    const others = (this.#newest.get(request.requester) ?? []).filter(({ key }) => key !== request.key);
    // Of the same second, the one that came last is the newest.
    const at = others.findLastIndex(({ createdAt }) => createdAt <= request.createdAt) + 1;
    this.#newest.set(request.requester, others.toSpliced(at, 0, request).slice(-newestOfRequester));
  }

  /** A request that was decided or deleted. */
  ended({ key, requester }: Pick<BudgetedRequest, "key" | "requester">): void {
    const left = (this.#newest.get(requester) ?? []).filter((one) => one.key !== key);
    if (left.length === 0) this.#newest.delete(requester);
    else this.#newest.set(requester, left);
  }

  /** Whether a request may be judged now. @param now monotonic milliseconds. */
  take({ key, requester, isShared }: Omit<BudgetedRequest, "createdAt">, now: number): BudgetVerdict {
    if (isShared)
      return this.#accounts.take(requester, now) === 0
        ? { verdict: "judge" }
        : { verdict: "later", afterSeconds: accountLaterSeconds };
    const newest = this.#newest.get(requester) ?? [];
    if (!newest.some((one) => one.key === key)) return { verdict: "abandoned" };
    const wait = this.#requesters.take(requester, now);
    // One after the other, so that none of them is always too late.
    return wait === 0 ? { verdict: "judge" } : { verdict: "later", afterSeconds: wait * newest.length };
  }
}
