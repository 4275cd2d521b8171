import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";

/** How long an ended token is kept: an administrator may still investigate why a machine was refused. */
export const endedTokensStayMs = 24 * 3_600_000;

export type TokenEnd = "Expired" | "UsedUp";

/** What to do with a ProvisioningToken. Times are in milliseconds since the epoch. */
export type TokenStay =
  /** `until`: the next time to act, unless the token changes; `undefined`: never. */
  | { readonly verdict: "stays"; readonly until: number | undefined }
  | { readonly verdict: "goes"; readonly because: TokenEnd; readonly endedAt: number };

/**
 * When a token ends or ended, and why; `undefined`: nothing ends it. If two conditions end a token, the earlier one
 * counts.
 *
 * @param now milliseconds since the epoch.
 */
export function tokenEnd(
  { metadata, spec: { expiresAt, maxUses }, status }: Pick<ProvisioningToken, "metadata" | "spec" | "status">,
  now: number,
): { readonly because: TokenEnd; readonly endedAt: number } | undefined {
  // A missing or unreadable time counts as the token's creation.
  const timeOf = (text: string | undefined) => firstTime(text, metadata.creationTimestamp) ?? now;
  const isUsedUp = maxUses !== undefined && (status?.uses ?? 0) >= maxUses;
  const ends: readonly { readonly because: TokenEnd; readonly endedAt: number }[] = [
    ...(expiresAt === undefined ? [] : [{ because: "Expired" as const, endedAt: timeOf(expiresAt) }]),
    ...(isUsedUp ? [{ because: "UsedUp" as const, endedAt: timeOf(status?.lastUsedAt) }] : []),
  ];
  return ends.toSorted((a, b) => a.endedAt - b.endedAt)[0];
}

/**
 * Whether a token ended long enough ago to be deleted, regardless of who created it.
 *
 * @param now milliseconds since the epoch.
 */
export function tokenStay(token: Pick<ProvisioningToken, "metadata" | "spec" | "status">, now: number): TokenStay {
  // It is already being deleted.
  if (token.metadata.deletionTimestamp !== undefined) return { verdict: "stays", until: undefined };
  const end = tokenEnd(token, now);
  if (end === undefined) return { verdict: "stays", until: undefined };
  const until = end.endedAt + endedTokensStayMs;
  return until <= now ? { verdict: "goes", ...end } : { verdict: "stays", until };
}

const firstTime = (...texts: readonly (string | undefined)[]) =>
  texts.map((text) => Date.parse(text ?? "")).find((time) => !Number.isNaN(time));
