import type { CsrReason, CsrVerdict } from "../join/judge-csr.ts";
import type { MetricFamily } from "./metrics.ts";

/** The counts of a decision: a waiting request counts once for each reason that it gets. */
type Decided = Exclude<CsrVerdict["verdict"], "leave">;

/** Verdicts that the alerts look at: a counter that begins at its first increment shows no increase to Prometheus. */
const shownFromTheStart: readonly (readonly [Decided, CsrReason])[] = [
  ["deny", "Malformed"],
  ["deny", "NotItsOwn"],
];

/** Counts what the controller decides about certificate requests. Both labels are closed lists. */
export class DecisionMeter {
  readonly #counts = new Map<string, { readonly verdict: Decided; readonly reason: CsrReason; value: number }>();

  constructor() {
    for (const [verdict, reason] of shownFromTheStart) this.#at(verdict, reason);
  }

  decided(verdict: Decided, reason: CsrReason): void {
    this.#at(verdict, reason).value += 1;
  }

  families(): readonly MetricFamily[] {
    return [
      {
        name: "mcc_certificate_requests_total",
        help: "Certificate requests of machines, by verdict (approve, deny, wait) and reason.",
        type: "counter",
        labels: ["verdict", "reason"],
        samples: [...this.#counts.values()].map(({ verdict, reason, value }) => ({
          labels: { verdict, reason },
          value,
        })),
      },
    ];
  }

  #at(verdict: Decided, reason: CsrReason): { value: number } {
    const key = `${verdict} ${reason}`;
    const known = this.#counts.get(key) ?? { verdict, reason, value: 0 };
    this.#counts.set(key, known);
    return known;
  }
}
