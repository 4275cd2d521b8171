import type { ClientIdentity } from "./listener.ts";

/** The subject of a certificate as Node.js shows it: several values of one attribute are a list. */
type Subject = Readonly<Record<string, string | string[] | undefined>>;

const list = (value: string | string[] | undefined): readonly string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/**
 * Who a certificate names. Of several common names the last one counts, as for Go's servers (`crypto/x509/pkix`
 * FillFromRDNSequence). `undefined`: it has none.
 */
export function identityOfSubject(subject: Subject | undefined): ClientIdentity | undefined {
  const name = list(subject?.["CN"]).at(-1);
  return name === undefined ? undefined : { commonName: name, organizations: list(subject?.["O"]) };
}
