import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";

/** A token that gives nothing any more stays for this long: somebody may still ask why a machine got nothing. */
export const endedTokensStayMs = 24 * 3_600_000;

export type TokenEnd = "Expired" | "UsedUp";

/** What is to become of a ProvisioningToken. Times are in milliseconds since the epoch. */
export type TokenStay =
  /** `until`: nothing is to be done before, unless the token changes; `undefined`: not at all. */
  | { readonly verdict: "stays"; readonly until: number | undefined }
  | { readonly verdict: "goes"; readonly because: TokenEnd; readonly endedAt: number };

/**
 * Whether a token has ended for so long that it can go, whoever made it. What ends a token twice has ended it the first
 * time.
 *
 * @param now milliseconds since the epoch.
 */
export function tokenStay(
  { metadata, spec: { expiresAt, maxUses }, status }: Pick<ProvisioningToken, "metadata" | "spec" | "status">,
  now: number,
): TokenStay {
  // Whoever deletes it already needs no help.
  if (metadata.deletionTimestamp !== undefined) return { verdict: "stays", until: undefined };
  // A time that is not there, or that cannot be read, is no later than the token itself.
  const timeOf = (text: string | undefined) => firstTime(text, metadata.creationTimestamp) ?? now;
  const isUsedUp = maxUses !== undefined && (status?.uses ?? 0) >= maxUses;
  const ends: readonly { readonly because: TokenEnd; readonly endedAt: number }[] = [
    ...(expiresAt === undefined ? [] : [{ because: "Expired" as const, endedAt: timeOf(expiresAt) }]),
    ...(isUsedUp ? [{ because: "UsedUp" as const, endedAt: timeOf(status?.lastUsedAt) }] : []),
  ];
  const [first] = ends.toSorted((a, b) => a.endedAt - b.endedAt);
  if (first === undefined) return { verdict: "stays", until: undefined };
  const until = first.endedAt + endedTokensStayMs;
  return until <= now ? { verdict: "goes", ...first } : { verdict: "stays", until };
}

const firstTime = (...texts: readonly (string | undefined)[]) =>
  texts.map((text) => Date.parse(text ?? "")).find((time) => !Number.isNaN(time));
