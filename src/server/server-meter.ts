import { Histogram } from "../core/metrics/histogram.ts";
import type { MetricFamily } from "../core/metrics/metrics.ts";
import type { RequestOutcome } from "./answer-request.ts";
import { type GivenBack, givenBack } from "./credentials.ts";
import { type DeliveryReason, deliveryReasons } from "./deliver-config.ts";

/** The state at the time of a scrape. */
export interface ServerGauges {
  readonly cacheBytes: number;
  readonly cacheEntries: number;
  readonly connections: number;
  readonly answersUnderWay: number;
  readonly insecure: boolean;
  readonly ready: boolean;
  /** Milliseconds since the epoch; `undefined`: no certificate yet. */
  readonly certificateEndsAt: number | undefined;
}

/** Seconds: a prepared answer takes milliseconds, one to a slow machine a minute. */
const bounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120];

/** Versions of Ignition in all pools that are counted apart. */
const mostIgnitions = 200;

/** Counts what the config server does. Labels are closed lists and pools that there are. */
export class ServerMeter {
  readonly #isPool: (pool: string) => boolean;
  readonly #requests = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();
  readonly #turnedAway = new Map<string, number>();
  // From zero on: a counter that begins at its first increment shows no increase to Prometheus.
  readonly #deliveries = new Map<DeliveryReason, number>(deliveryReasons.map((reason) => [reason, 0]));
  readonly #givenBack = new Map<GivenBack, number>(givenBack.map((outcome) => [outcome, 0]));
  readonly #seconds = new Histogram(
    "mcs_request_duration_seconds",
    "From a request to the end of its answer.",
    ["pool", "outcome"],
    bounds,
  );
  readonly #renders = new Histogram(
    "mcs_render_duration_seconds",
    "How long an answer took to be made.",
    ["verdict"],
    bounds,
  );
  #bytes = 0;
  readonly #ignitions = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();

  constructor(isPool: (pool: string) => boolean) {
    this.#isPool = isPool;
  }

  request(outcome: RequestOutcome): void {
    const { is, status, pool, version, reason, durationMs, sizeBytes } = outcome;
    const known = pool !== "" && this.#isPool(pool) ? pool : "";
    const labels = { pool: known, version, status: String(status), reason };
    const key = JSON.stringify(labels);
    const one = this.#requests.get(key) ?? { labels, value: 0 };
    one.value += 1;
    this.#requests.set(key, one);
    this.#seconds.observe({ pool: known, outcome: is }, durationMs / 1000);
    if (is !== "served") return;
    this.#bytes += sizeBytes;
    this.#servedTo(known, outcome.ignition ?? "");
  }

  /** Clients choose what they say: versions beyond the first few count as one. */
  #servedTo(pool: string, said: string): void {
    const keyOf = (ignition: string) => JSON.stringify([pool, ignition]);
    const ignition = this.#ignitions.size < mostIgnitions || this.#ignitions.has(keyOf(said)) ? said : "other";
    const one = this.#ignitions.get(keyOf(ignition)) ?? { labels: { pool, ignition }, value: 0 };
    one.value += 1;
    this.#ignitions.set(keyOf(ignition), one);
  }

  delivery(reason: DeliveryReason): void {
    this.#deliveries.set(reason, (this.#deliveries.get(reason) ?? 0) + 1);
  }

  usesGivenBack(outcome: GivenBack): void {
    this.#givenBack.set(outcome, (this.#givenBack.get(outcome) ?? 0) + 1);
  }

  turnedAway(why: string): void {
    this.#turnedAway.set(why, (this.#turnedAway.get(why) ?? 0) + 1);
  }

  rendered(verdict: string, milliseconds: number): void {
    this.#renders.observe({ verdict }, milliseconds / 1000);
  }

  families(now: ServerGauges): readonly MetricFamily[] {
    const gauge = (name: string, help: string, value: number): MetricFamily => ({
      name,
      help,
      type: "gauge",
      labels: [],
      samples: [{ labels: {}, value }],
    });
    return [
      {
        name: "mcs_requests_total",
        help: "Requests, by what became of them.",
        type: "counter",
        labels: ["pool", "version", "status", "reason"],
        samples: [...this.#requests.values()],
      },
      {
        name: "mcs_served_ignition_total",
        help: "Configurations that were handed over, by the version of Ignition on the boot image, as the machine's request says.",
        type: "counter",
        labels: ["pool", "ignition"],
        samples: [...this.#ignitions.values()],
      },
      {
        name: "mcs_deliveries_total",
        help: "Requests of daemons for configurations of their machines, by what became of them.",
        type: "counter",
        labels: ["reason"],
        samples: [...this.#deliveries].map(([reason, value]) => ({ labels: { reason }, value })),
      },
      {
        name: "mcs_uses_given_back_total",
        help: "Uses of tokens whose answers were never begun: Returned to the token, or Refused because it had too many.",
        type: "counter",
        labels: ["outcome"],
        samples: [...this.#givenBack].map(([outcome, value]) => ({ labels: { outcome }, value })),
      },
      {
        name: "mcs_turned_away_total",
        help: "Connections and messages that were turned away before they were requests.",
        type: "counter",
        labels: ["reason"],
        samples: [...this.#turnedAway].map(([reason, value]) => ({ labels: { reason }, value })),
      },
      {
        name: "mcs_served_bytes_total",
        help: "Bytes of configurations that were handed over.",
        type: "counter",
        labels: [],
        samples: [{ labels: {}, value: this.#bytes }],
      },
      this.#seconds.family(),
      this.#renders.family(),
      gauge("mcs_cache_bytes", "Bytes of answers that are kept ready.", now.cacheBytes),
      gauge("mcs_cache_entries", "Answers that are kept ready.", now.cacheEntries),
      gauge("mcs_connections", "Connections that are open.", now.connections),
      gauge("mcs_answers_under_way", "Configurations that are being handed over.", now.answersUnderWay),
      gauge(
        "mcs_insecure_access",
        "1 while the server gives configurations to clients without a credential.",
        now.insecure ? 1 : 0,
      ),
      gauge(
        "mcs_ready",
        "1 while it has read everything, its certificate is good, and machines of some pool can be served.",
        now.ready ? 1 : 0,
      ),
      ...(now.certificateEndsAt === undefined
        ? []
        : [
            gauge(
              "mcs_certificate_end_timestamp_seconds",
              "When the certificate ends that is shown, in seconds since the epoch.",
              Math.floor(now.certificateEndsAt / 1000),
            ),
          ]),
    ];
  }
}
