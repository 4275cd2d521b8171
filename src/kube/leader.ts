import { type Lease, kubernetes } from "../api/foreign/kubernetes.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { type Random, jittered } from "../ports/random.ts";
import type { KubeClient } from "./kube-client.ts";
import { isAlreadyExists, isConflict } from "./kube-error.ts";

export interface LeaderOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly name: string;
  readonly namespace: string;
  /** Unique per process. */
  readonly identity: string;
  readonly leaseSeconds?: number;
  readonly renewSeconds?: number;
  readonly retrySeconds?: number;
}

/** On shutdown, time limit for releasing the lease. */
const giveBackMs = 2000;

const microTime = (milliseconds: number) => `${new Date(milliseconds).toISOString().slice(0, 23)}000Z`;

/** `lost`: another candidate holds it. `unknown`: no answer, or a concurrent write. */
type Attempt = "held" | "lost" | "unknown";

/**
 * Runs `lead` while this process holds the lease. Aborts its signal when leadership may be lost: another candidate
 * holds the lease, or the lease was not renewed for `renewSeconds`, measured from before the last successful renewal
 * was sent. If `lead` ends for that reason, waits for the lease again. Returns when `signal` aborts or `lead` ends on
 * its own, and then releases the lease at once. Never compares the holder's clock with ours: a lease expires when it
 * has not changed for its own duration.
 */
export async function whileLeader(
  options: LeaderOptions,
  signal: AbortSignal,
  lead: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { kube, clock, random, log, identity } = options;
  const leaseMs = (options.leaseSeconds ?? 15) * 1000;
  const renewMs = (options.renewSeconds ?? 10) * 1000;
  const retryMs = (options.retrySeconds ?? 2) * 1000;
  const key = { name: options.name, namespace: options.namespace };
  let observed: { readonly version: string; readonly at: number } | undefined;
  let held: Lease | undefined;

  async function tryHold(until: AbortSignal): Promise<Attempt> {
    const current = await kube.get(kubernetes.Lease, key, { signal: until });
    const now = microTime(clock.now());
    if (current === undefined) {
      held = await kube.create(
        kubernetes.Lease,
        {
          apiVersion: "coordination.k8s.io/v1",
          kind: "Lease",
          metadata: { ...key },
          spec: {
            holderIdentity: identity,
            leaseDurationSeconds: leaseMs / 1000,
            acquireTime: now,
            renewTime: now,
            leaseTransitions: 0,
          },
        },
        { signal: until },
      );
      return "held";
    }
    const version = current.metadata.resourceVersion ?? "";
    if (observed?.version !== version) observed = { version, at: clock.monotonic() };
    const holder = current.spec?.holderIdentity ?? "";
    const theirsMs = (current.spec?.leaseDurationSeconds ?? leaseMs / 1000) * 1000;
    if (holder !== "" && holder !== identity && clock.monotonic() - observed.at < theirsMs) return "lost";
    held = await kube.replace(
      kubernetes.Lease,
      {
        ...current,
        spec: {
          ...current.spec,
          holderIdentity: identity,
          leaseDurationSeconds: leaseMs / 1000,
          renewTime: now,
          ...(holder === identity
            ? {}
            : { acquireTime: now, leaseTransitions: (current.spec?.leaseTransitions ?? 0) + 1 }),
        },
      },
      { signal: until },
    );
    return "held";
  }

  /** A renewal that takes longer than `renewSeconds` is useless, even if it succeeds. */
  async function attempt(until: AbortSignal): Promise<Attempt> {
    const deadline = clock.deadline(renewMs, until);
    try {
      return await tryHold(deadline.signal);
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error) && !until.aborted)
        log.debug({ error, lease: options.name }, "lease not reached");
      return "unknown";
    } finally {
      deadline.cancel();
    }
  }

  // With jitter, so that candidates do not retry in step.
  const pause = (until: AbortSignal) => clock.sleep(jittered(random, retryMs, 0.1), until).catch(() => undefined);

  /** Monotonic time before the last successful request was sent. */
  async function acquire(): Promise<number> {
    for (;;) {
      const sentAt = clock.monotonic();
      if ((await attempt(signal)) === "held" || signal.aborted) return sentAt;
      await pause(signal);
      if (signal.aborted) return sentAt;
    }
  }

  while (!signal.aborted) {
    const acquiredAt = await acquire();
    if (signal.aborted) {
      if (held !== undefined) await giveBack(held);
      return;
    }
    if ((await serve(acquiredAt)) === "done") return;
  }

  async function serve(acquiredAt: number): Promise<"done" | "lost"> {
    log.info({ lease: options.name, identity }, "leading");
    const term = new AbortController();
    const onAbort = () => term.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    let lost = false;
    const lose = (why: string) => {
      if (term.signal.aborted) return;
      lost = true;
      log.warn({ lease: options.name, why }, "lease lost");
      term.abort(new Error(why));
    };
    let cancelLimit = () => undefined as void;
    const renewedAt = (at: number) => {
      cancelLimit();
      cancelLimit = clock.after(Math.max(0, at + renewMs - clock.monotonic()), () =>
        lose("the lease could not be renewed"),
      );
    };
    renewedAt(acquiredAt);
    const renewing = (async () => {
      while (!term.signal.aborted) {
        await pause(term.signal);
        if (term.signal.aborted) return;
        const sentAt = clock.monotonic();
        const result = await attempt(term.signal);
        if (result === "held" && !term.signal.aborted) renewedAt(sentAt);
        else if (result === "lost") lose("another process holds the lease");
      }
    })();
    try {
      await lead(term.signal);
    } finally {
      cancelLimit();
      term.abort(new Error("done leading"));
      await renewing;
      signal.removeEventListener("abort", onAbort);
      if (!lost && held !== undefined) await giveBack(held);
      held = undefined;
    }
    return lost ? "lost" : "done";
  }

  async function giveBack(lease: Lease): Promise<void> {
    const deadline = clock.deadline(giveBackMs);
    try {
      await kube.replace(
        kubernetes.Lease,
        { ...lease, spec: { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1 } },
        { signal: deadline.signal },
      );
    } catch (error) {
      log.debug({ error }, "lease not given back");
    } finally {
      deadline.cancel();
    }
  }
}
