import { bytesToHex } from "@noble/hashes/utils.js";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import {
  type Checked,
  type DeriveKey,
  type RegistryRight,
  type RegistryUser,
  passwordCheck,
} from "./registry-users.ts";

export const service = "mco-registry";
const tokenSeconds = 300;
const maxTokens = 4096;
const maxScopes = 16;

/** The rights of a user, by repository. */
type Grant = (repository: string, right: RegistryRight) => boolean;

interface Token {
  readonly grant: Grant;
  /** By the monotonic clock. */
  readonly untilMs: number;
}

export type Access =
  | { readonly verdict: "yes"; readonly grant: Grant }
  /** No user was named, or an unknown one. */
  | { readonly verdict: "unknown" }
  /** Too many passwords are being checked. */
  | { readonly verdict: "busy" };

/**
 * Decides about access: by name and password with each request, or by a token that was issued for them. Tokens live in
 * memory: a restarted registry knows none, and clients request new ones.
 *
 * Source of the flow: distribution docs/spec/auth/token.md (main).
 */
export function registryAccess({
  users,
  deriveKey,
  clock,
  random,
}: {
  readonly users: readonly RegistryUser[];
  readonly deriveKey: DeriveKey;
  readonly clock: Clock;
  readonly random: Random;
}) {
  const check = passwordCheck(users, deriveKey);
  const tokens = new Map<string, Token>();

  async function userOf(authorization: string | undefined): Promise<Checked> {
    const [, pair] = /^basic\s+([A-Za-z0-9+/=]{1,1024})$/i.exec(authorization ?? "") ?? [];
    if (pair === undefined) return { verdict: "unknown" };
    const text = Buffer.from(pair, "base64").toString("utf8");
    const colon = text.indexOf(":");
    return colon < 1 ? { verdict: "unknown" } : check(text.slice(0, colon), text.slice(colon + 1));
  }

  return {
    async of(authorization: string | undefined): Promise<Access> {
      const [, bearer] = /^bearer\s+(\S{1,256})$/i.exec(authorization ?? "") ?? [];
      if (bearer !== undefined) {
        const token = tokens.get(bearer);
        return token === undefined || token.untilMs < clock.monotonic()
          ? { verdict: "unknown" }
          : { verdict: "yes", grant: token.grant };
      }
      const checked = await userOf(authorization);
      return checked.verdict === "user"
        ? { verdict: "yes", grant: (_repository, right) => checked.user.may.includes(right) }
        : checked;
    },

    /** Issues a token for as much of the scopes as the user may have; none to an unknown user. */
    async token(
      authorization: string | undefined,
      scopes: readonly string[],
    ): Promise<{ readonly token: string; readonly expiresIn: number } | "unknown" | "busy"> {
      const checked = await userOf(authorization);
      if (checked.verdict !== "user") return checked.verdict;
      const { user } = checked;
      const granted = new Set<string>();
      for (const scope of scopes.flatMap((text) => text.split(" ")).slice(0, maxScopes)) {
        const [, repository, actions = ""] = /^repository:(.{1,255}):([a-z,*]{1,64})$/.exec(scope) ?? [];
        const asked = actions
          .split(",")
          .flatMap((action): readonly string[] => (action === "*" ? ["pull", "push", "delete"] : [action]));
        if (repository !== undefined)
          for (const right of user.may) if (asked.includes(right)) granted.add(`${right} ${repository}`);
      }
      for (const [name, { untilMs }] of tokens) if (untilMs < clock.monotonic()) tokens.delete(name);
      const [oldest] = tokens.keys();
      if (tokens.size >= maxTokens && oldest !== undefined) tokens.delete(oldest);
      const token = bytesToHex(random.bytes(24));
      tokens.set(token, {
        grant: (repository, right) => granted.has(`${right} ${repository}`),
        untilMs: clock.monotonic() + tokenSeconds * 1000,
      });
      return { token, expiresIn: tokenSeconds };
    },
  };
}
