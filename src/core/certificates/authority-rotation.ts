import { certificatesOf } from "./certificate-facts.ts";

/** When a certificate is good, in milliseconds since the epoch. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

/**
 * `make`: there is none that can sign. `prepare`: the next one is made and handed out, and signs nothing yet. `switch`:
 * the next one signs from now on; what the old one signed is believed until it ends.
 */
export type AuthorityStep = "make" | "keep" | "prepare" | "switch";

/** Part of an authority's life after which the next one is handed out. */
const preparedAfter = 0.5;

/**
 * What is to be done about an authority that has others believe in it before it signs. The next one signs from the
 * middle of the time that both are good: who starts a machine has learned of it by then, also where nobody looked for
 * long and it came late, and what the old one signed is good for as long again.
 *
 * @param now milliseconds since the epoch.
 */
export function authorityStep(
  { current, next }: { readonly current: Validity | undefined; readonly next: Validity | undefined },
  now: number,
): AuthorityStep {
  const isGood = (one: Validity | undefined) => one !== undefined && one.from <= now && now < one.until;
  if (current === undefined || !isGood(current)) return isGood(next) ? "switch" : "make";
  if (next === undefined || !isGood(next))
    return now - current.from >= (current.until - current.from) * preparedAfter ? "prepare" : "keep";
  return now >= (next.from + current.until) / 2 ? "switch" : "keep";
}

/** The first certificate of a PEM text; `undefined`: there is none that can be read. */
export function validityOfPem(pem: string | undefined): Validity | undefined {
  const [first] = certificatesOf(pem ?? "");
  return first === undefined ? undefined : { from: Date.parse(first.notBefore), until: Date.parse(first.notAfter) };
}

/**
 * The certificates of some PEM texts that have not ended, each once, as one text. A text that cannot be read adds
 * nothing: nobody is asked to believe what two readers could read differently. @param now milliseconds since the epoch.
 */
export function bundleOf(texts: readonly (string | undefined)[], now: number): string {
  const good = texts.flatMap((text) => certificatesOf(text ?? "")).filter(({ notAfter }) => Date.parse(notAfter) > now);
  return [...new Set(good.map(({ pem }) => pem))].join("");
}
