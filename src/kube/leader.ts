import { type Lease, kubernetes } from "../api/kubernetes.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { KubeClient } from "./kube-client.ts";
import { isAlreadyExists, isConflict } from "./kube-error.ts";

export interface LeaderOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly name: string;
  readonly namespace: string;
  /** Unique per process. */
  readonly identity: string;
  readonly leaseSeconds?: number;
  readonly renewSeconds?: number;
  readonly retrySeconds?: number;
}

const microTime = (milliseconds: number) => `${new Date(milliseconds).toISOString().slice(0, 23)}000Z`;

/**
 * Waits until the lease is ours, runs `lead`, and aborts its signal as soon as we may no longer be the leader: when the
 * lease could not be renewed within `renewSeconds`. On an orderly end the lease is given back at once.
 * The holder's clock is never compared with ours: a lease is over when it has not changed for its own duration.
 */
export async function whileLeader(options: LeaderOptions, signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const { kube, clock, log, identity } = options;
  const leaseMs = (options.leaseSeconds ?? 15) * 1000;
  const renewMs = (options.renewSeconds ?? 10) * 1000;
  const retryMs = (options.retrySeconds ?? 2) * 1000;
  const key = { name: options.name, namespace: options.namespace };
  let observed: { readonly version: string; readonly at: number } | undefined;
  let held: Lease | undefined;

  async function tryHold(): Promise<boolean> {
    const current = await kube.get(kubernetes.Lease, key, { signal });
    const now = microTime(clock.now());
    if (current === undefined) {
      held = await kube.create(kubernetes.Lease, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { ...key },
        spec: { holderIdentity: identity, leaseDurationSeconds: leaseMs / 1000, acquireTime: now, renewTime: now, leaseTransitions: 0 },
      }, { signal });
      return true;
    }
    const version = current.metadata.resourceVersion ?? "";
    if (observed?.version !== version) observed = { version, at: clock.monotonic() };
    const holder = current.spec?.holderIdentity ?? "";
    const theirsMs = (current.spec?.leaseDurationSeconds ?? leaseMs / 1000) * 1000;
    if (holder !== "" && holder !== identity && clock.monotonic() - observed.at < theirsMs) return false;
    held = await kube.replace(kubernetes.Lease, {
      ...current,
      spec: {
        ...current.spec,
        holderIdentity: identity,
        leaseDurationSeconds: leaseMs / 1000,
        renewTime: now,
        ...(holder === identity ? {} : { acquireTime: now, leaseTransitions: (current.spec?.leaseTransitions ?? 0) + 1 }),
      },
    }, { signal });
    return true;
  }

  async function attempt(): Promise<boolean> {
    try {
      return await tryHold();
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error) && !signal.aborted) log.debug({ error, lease: options.name }, "lease not reached");
      return false;
    }
  }

  while (!signal.aborted) {
    if (await attempt()) break;
    await clock.sleep(retryMs, signal).catch(() => undefined);
  }
  if (signal.aborted) return;
  log.info({ lease: options.name, identity }, "leading");

  const term = new AbortController();
  const onAbort = () => term.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  let renewedAt = clock.monotonic();
  const renewing = (async () => {
    while (!term.signal.aborted) {
      await clock.sleep(retryMs, term.signal).catch(() => undefined);
      if (term.signal.aborted) return;
      if (await attempt()) renewedAt = clock.monotonic();
      else if (clock.monotonic() - renewedAt >= renewMs) {
        log.warn({ lease: options.name }, "lease lost");
        term.abort(new Error("the lease could not be renewed"));
      }
    }
  })();
  try {
    await lead(term.signal);
  } finally {
    const lost = term.signal.aborted && !signal.aborted;
    term.abort(new Error("done leading"));
    await renewing;
    signal.removeEventListener("abort", onAbort);
    if (!lost && held !== undefined) await release(held).catch((error: unknown) => log.debug({ error }, "lease not given back"));
  }

  async function release(lease: Lease): Promise<void> {
    await kube.replace(kubernetes.Lease, { ...lease, spec: { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1 } }, { signal: clock.deadline(2000).signal });
  }
}
