import { certificatesOf } from "./certificate-facts.ts";

/** The validity period of a certificate, in milliseconds since the epoch. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

/**
 * `make`: no authority can sign. `prepare`: create and distribute the next one, which does not sign yet. `switch`: the
 * next one signs from now on; certificates of the old one stay trusted until they expire.
 */
export type AuthorityStep = "make" | "keep" | "prepare" | "switch";

/** Share of an authority's lifetime after which the next one is distributed. */
const preparedAfter = 0.5;

/**
 * Decides the next step for an authority that must be trusted before it signs. The next one signs from the middle of
 * the time in which both are valid: by then everything that starts machines trusts it, even if it was distributed late,
 * and certificates of the old one stay valid for as long again.
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

/** The first readable certificate of a PEM text, if any. */
export function validityOfPem(pem: string | undefined): Validity | undefined {
  const [first] = certificatesOf(pem ?? "");
  return first === undefined ? undefined : { from: Date.parse(first.notBefore), until: Date.parse(first.notAfter) };
}

/**
 * The unexpired certificates of some PEM texts, without duplicates, as one text. A text that cannot be read adds
 * nothing: no machine is to trust a text that two readers could read differently.
 *
 * @param now milliseconds since the epoch.
 */
export function bundleOf(texts: readonly (string | undefined)[], now: number): string {
  const good = texts.flatMap((text) => certificatesOf(text ?? "")).filter(({ notAfter }) => Date.parse(notAfter) > now);
  return [...new Set(good.map(({ pem }) => pem))].join("");
}
