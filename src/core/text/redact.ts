import type { JournalEntry } from "../../api/books/report-table.ts";
import { maskLines, maskText, masked } from "./mask-secrets.ts";

/**
 * A private key, whole or cut off, its lines parted by line feeds or by the two characters that stand for one in JSON.
 */
const privateKey =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)/g;
/**
 * The user information of a URL: everything before the `@`. The authority ends at the first of these characters (RFC
 * 3986, 3.2).
 */
const userInfo = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^/?#\s"'<>]*@/gi;
/** Contents that a data URL carries (RFC 2397). */
const dataUrl = /\b(data:[a-z0-9!#$&^_.+/;=-]*,)[^\s"'<>]+/gi;
/** Settings in a query that are as good as a password: signed addresses of object stores, codes of a login. */
const signedQuery = /([?&](?:sig|signature|x-amz-[a-z-]+|x-goog-[a-z-]+|awsaccesskeyid|code|key|sv|se)=)[^&\s"'<>]+/gi;
/** Tokens that are known by how they begin, or by their form alone. */
const tokens: readonly RegExp[] = [
  /\bsha256~[A-Za-z0-9_-]{16,}/g, // OpenShift
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, // kubeadm's bootstrap tokens
  /\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
];
const isSecretName =
  /(?:pass(?:word|wd|phrase)?hash|password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|psk|auth)$/i;

/**
 * A text of ours that may quote what others wrote, without what looks like a secret in it: credentials of URLs, tokens,
 * keys, hashes of passwords, values of settings that are named like secrets, contents in data URLs. Used for everything
 * that goes into journals, books and logs.
 */
export function redactText(text: string): string {
  const whole = text
    .replaceAll(privateKey, masked)
    .replaceAll(dataUrl, `$1${masked}`)
    .replaceAll(userInfo, `$1${masked}@`)
    .replaceAll(signedQuery, `$1${masked}`);
  const known = tokens.reduce((left, token) => left.replaceAll(token, masked), whole);
  return (known.includes("\n") ? maskLines(known.split("\n")) : [maskText(known)]).join("\n");
}

/** A journal line with its texts and details redacted. */
export function redactLine<L extends Pick<JournalEntry, "message" | "data" | "next">>(line: L): L {
  const { data, next } = line;
  return {
    ...line,
    message: redactText(line.message),
    ...(next === undefined ? {} : { next: { ...next, action: redactText(next.action) } }),
    ...(data === undefined
      ? {}
      : {
          data: Object.fromEntries(
            Object.entries(data).map(([key, value]) => [
              key,
              typeof value !== "string" ? value : isSecretName.test(key) ? masked : redactText(value),
            ]),
          ),
        }),
  };
}
