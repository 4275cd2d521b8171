import { joinNamespace, objects } from "../api/names.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import { type LinkedSignal, linkedSignal } from "../ports/linked-signal.ts";
import type { Logger } from "../ports/logger.ts";
import { type Random, backedOff } from "../ports/random.ts";

/**
 * The account by which a machine that joins asks for its first certificate, and by whose name it is known which pool it
 * joins.
 */
export const bootstrapperOf = (pool: string): string => `${objects.nodeBootstrapperPrefix}${pool}`;

/** How long a credential is good that machines are given. */
const lifeSeconds = 3600;
/** How long machines are given the same one. */
const sharedMs = 20 * 60_000;
/** When the next token is requested: early enough to bridge an outage of the API server. */
const renewMs = 15 * 60_000;
const retry = { firstMs: 1000, lastMs: 30_000, spread: 0.2 };

export interface BootstrapTokensOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly onChange: () => void;
  readonly signal: AbortSignal;
}

interface Minted {
  readonly token: string;
  readonly serial: number;
  readonly at: number;
}

/**
 * Short-lived credentials for the kubeconfigs of joining machines, one for each pool: requested in advance, so that no
 * machine waits for them.
 */
export class BootstrapTokens {
  readonly #options: BootstrapTokensOptions;
  readonly #minted = new Map<string, Minted>();
  readonly #minting = new Map<string, LinkedSignal>();
  #serial = 0;

  constructor(options: BootstrapTokensOptions) {
    this.#options = options;
  }

  /** The credential of a pool, with a number that no other has; `undefined`: there is none that may be given. */
  of(pool: string): { readonly token: string; readonly serial: number } | undefined {
    const minted = this.#minted.get(pool);
    return minted === undefined || this.#options.clock.monotonic() - minted.at >= sharedMs ? undefined : minted;
  }

  /** From now on these pools have credentials, and others have none. */
  follow(pools: readonly string[]): void {
    for (const [pool, stopping] of this.#minting) {
      if (pools.includes(pool)) continue;
      stopping.abort(new Error("the pool is gone"));
      this.#minting.delete(pool);
      this.#minted.delete(pool);
    }
    for (const pool of pools) if (!this.#minting.has(pool) && !this.#options.signal.aborted) void this.#keep(pool);
  }

  async #keep(pool: string): Promise<void> {
    const { clock, random, log, onChange, signal } = this.#options;
    const stopping = linkedSignal(signal);
    this.#minting.set(pool, stopping);
    const until = stopping.signal;
    let failures = 0;
    while (!until.aborted) {
      try {
        const token = await this.#mint(pool, until);
        if (until.aborted) return;
        this.#minted.set(pool, { token, serial: (this.#serial += 1), at: clock.monotonic() });
        failures = 0;
        onChange();
        await clock.sleep(renewMs, until);
      } catch (error) {
        if (until.aborted) return;
        failures += 1;
        log[failures > 3 ? "warn" : "debug"](
          { error, pool, account: bootstrapperOf(pool) },
          "no credential for machines that join; trying again",
        );
        await clock.sleep(backedOff(random, failures, retry), until).catch(() => undefined);
      }
    }
  }

  async #mint(pool: string, signal: AbortSignal): Promise<string> {
    const body = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: lifeSeconds },
    };
    const target = `/api/v1/namespaces/${joinNamespace}/serviceaccounts/${encodeURIComponent(bootstrapperOf(pool))}/token`;
    const answer = (await this.#options.kube.request(
      { method: "POST", target, headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
      { signal },
    )) as { readonly status?: { readonly token?: string } };
    const { token } = answer.status ?? {};
    if (token === undefined || token === "") throw new Error("the answer to a TokenRequest has no token");
    return token;
  }
}
