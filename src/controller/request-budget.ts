import type { BudgetVerdict } from "../core/join/join-decision.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";

/** An open certificate request, as far as the budget goes. */
export interface BudgetedRequest {
  readonly key: string;
  /** Who asks: a node, or a machine that joins by the credential of its own configuration. */
  readonly requester: string;
  /** By which a node sent it; `undefined`: it is no node, or the API server records none. */
  readonly certificate: string | undefined;
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
const ofRequester: BucketLimits = { burst: 60, perSecond: 0.5, sources: 20_000 };

/**
 * All machines of a pool share an account, and where the API server records no credentials they are one requester: as many
 * as one token makes places for in an hour at once, and then as many as the approver judges beside its other work. Which
 * of them are abandoned cannot be seen.
 */
const ofAccount: BucketLimits = { burst: 5000, perSecond: 10, sources: 1000 };
const accountLaterSeconds = 60;

type RecordVerdict = Exclude<BudgetVerdict, { readonly verdict: "abandoned" }>;
/** Thousands of approved requests of one node may wait to be recorded; each of them asks again after this time. */
const recordLaterSeconds = 30;

/** A turn that a request asks for. */
export interface TurnOfRequest extends Omit<BudgetedRequest, "createdAt"> {
  /** It was sent by a certificate of the machine that has the name of the node. */
  readonly isOfHolder: boolean;
}

/**
 * Bounds the work that the requests of one requester cost: judging them, and Events and decisions that are written.
 * Kubernetes stores as many requests as a node creates. One key costs as many steps as requests are remembered of its
 * requester.
 *
 * A node is more than one machine where a former one of its name has a certificate that is good. The machine that has the name
 * has turns of its own; all other certificates of the name, however many, share those of the name.
 */
export class RequestBudget {
  readonly #requesters = new SourceBuckets(ofRequester);
  readonly #accounts = new SourceBuckets(ofAccount);
  readonly #records = new SourceBuckets(ofRequester);
  /** Requester, also with each of its certificates → its newest open requests. */
  readonly #newest = new Map<string, BudgetedRequest[]>();

  /** A request that is open, as the watch brings it. */
  opened(request: BudgetedRequest): void {
    if (request.isShared) return;
    for (const sender of sendersOf(request)) {
      const others = (this.#newest.get(sender) ?? []).filter(({ key }) => key !== request.key);
      // Of the same second, the one that came last is the newest.
      const at = others.findLastIndex(({ createdAt }) => createdAt <= request.createdAt) + 1;
      this.#newest.set(sender, others.toSpliced(at, 0, request).slice(-newestOfRequester));
    }
  }

  /** A request that was decided or deleted. */
  ended(request: Omit<BudgetedRequest, "createdAt">): void {
    for (const sender of sendersOf(request)) {
      const left = (this.#newest.get(sender) ?? []).filter(({ key }) => key !== request.key);
      if (left.length === 0) this.#newest.delete(sender);
      else this.#newest.set(sender, left);
    }
  }

  /** Whether a request may be judged now. @param now monotonic milliseconds. */
  take(turn: TurnOfRequest, now: number): BudgetVerdict {
    const { key, requester, isShared, isOfHolder } = turn;
    if (isShared)
      return this.#accounts.take(requester, now) === 0
        ? { verdict: "judge" }
        : { verdict: "later", afterSeconds: accountLaterSeconds };
    const sender = isOfHolder ? sendersOf(turn).at(-1) : requester;
    const newest = this.#newest.get(sender ?? requester) ?? [];
    if (!newest.some((one) => one.key === key)) return { verdict: "abandoned" };
    // All certificates of one machine share its turns.
    const wait = this.#requesters.take(isOfHolder ? `${requester} as its holder` : requester, now);
    // One after the other, so that none of them is always too late.
    return wait === 0 ? { verdict: "judge" } : { verdict: "later", afterSeconds: wait * newest.length };
  }

  /**
   * Whether the certificates of a name may be followed now, for a request that was approved: each look costs as many steps as
   * there are requests of the name. @param now monotonic milliseconds.
   */
  takeRecord({ requester, isShared }: Pick<BudgetedRequest, "requester" | "isShared">, now: number): RecordVerdict {
    const wait = (isShared ? this.#accounts : this.#records).take(requester, now);
    return wait === 0 ? { verdict: "judge" } : { verdict: "later", afterSeconds: Math.max(wait, recordLaterSeconds) };
  }
}

/** The requester, and the requester by the certificate that it used. */
const sendersOf = ({ requester, certificate }: Pick<BudgetedRequest, "requester" | "certificate">) =>
  certificate === undefined ? [requester] : [requester, `${requester} ${certificate}`];
