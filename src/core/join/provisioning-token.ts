import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { timestampOf } from "../../api/schema/object.ts";
import { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { defined } from "../../api/schema/defined.ts";

/** The parts of a token: `<id>.<secret>`. */
export interface TokenParts {
  /** Name of its ProvisioningToken; not secret. */
  readonly id: string;
  readonly secret: string;
}

const idLength = 10;
const secretLength = 32;
const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
const form = new RegExp(`^([a-z0-9]{${idLength}})\\.([a-z0-9]{${secretLength}})$`);

export function parseToken(text: string): TokenParts | undefined {
  const [, id, secret] = text.length === idLength + 1 + secretLength ? (form.exec(text) ?? []) : [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** The bearer token of an `Authorization` header; `undefined`: none, or another scheme. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^bearer +([^\s]+) *$/i.exec(authorization?.slice(0, 1024) ?? "")?.[1];

/** The stored form of a secret. The secret is random and as long as a key, so a plain hash reveals nothing. */
export const tokenHash = (secret: string): string => bytesToHex(sha256(utf8ToBytes(secret)));

export type TokenRefusal = "NoToken" | "WrongToken" | "Expired" | "UsedUp" | "WrongPool";

export type TokenVerdict =
  | { readonly verdict: "allowed"; readonly id: string }
  | {
      readonly verdict: "refused";
      readonly reason: TokenRefusal;
      /** The client has shown a correct secret and may learn the reason. All other clients get the same answer. */
      readonly proven: boolean;
      /** A sentence without a final full stop; for the client only if `proven`. */
      readonly message: string;
    };

export interface TokenQuestion {
  /** The token of the request; `undefined`: none. */
  readonly presented: string | undefined;
  /** The requested pool. */
  readonly pool: string;
  /** The ProvisioningToken of that name. */
  readonly find: (id: string) => ProvisioningToken | undefined;
  /** Uses of a token that are being recorded and that its status does not show yet. */
  readonly pending?: (id: string) => number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Replaces the hash of a missing token, so that a wrong id takes as much work as a wrong secret. */
const nobody = "0".repeat(64);
const noParts: TokenParts = { id: "", secret: "0".repeat(secretLength) };

/**
 * Whether a token currently grants a pool's configuration.
 *
 * Its work does not depend on the error: an unknown id, a wrong secret and no token at all hash and compare the same
 * number of bytes.
 */
export function judgeToken({ presented, pool, find, pending, now }: TokenQuestion): TokenVerdict {
  const parts = presented === undefined ? undefined : parseToken(presented);
  const { id, secret } = parts ?? noParts;
  const token = find(id);
  const isRight = sameHash(tokenHash(secret), token?.spec.tokenHash ?? nobody);
  const refused = (reason: TokenRefusal, proven: boolean, message: string): TokenVerdict => ({
    verdict: "refused",
    reason,
    proven,
    message,
  });
  if (presented === undefined) return refused("NoToken", false, "no token was shown");
  if (parts === undefined || token === undefined || !isRight)
    return refused("WrongToken", false, "the token is not known");
  if (token.metadata.deletionTimestamp !== undefined) return refused("WrongToken", false, "the token was taken back");
  const { expiresAt, maxUses } = token.spec;
  // A date that cannot be read has passed.
  if (expiresAt !== undefined && !(Date.parse(expiresAt) > now))
    return refused("Expired", true, `the token ended at ${expiresAt}`);
  const uses = (token.status?.uses ?? 0) + (pending?.(id) ?? 0);
  if (maxUses !== undefined && uses >= maxUses)
    return refused(
      "UsedUp",
      true,
      `the token gives ${maxUses} ${maxUses === 1 ? "configuration" : "configurations"}, and has given ${uses}`,
    );
  if (token.spec.pool !== pool)
    return refused("WrongPool", true, `the token is for the pool ${token.spec.pool}, not for ${pool}`);
  // The schema requires one of them; an object that bypassed it has no end and is not a token.
  if (expiresAt === undefined && maxUses === undefined) return refused("WrongToken", false, "the token has no end");
  return { verdict: "allowed", id };
}

/** Compares two texts of 64 characters in constant time. */
function sameHash(a: string, b: string): boolean {
  let different = a.length ^ b.length;
  for (let i = 0; i < nobody.length; i++) different |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return different === 0;
}

export interface NewToken {
  /** Shown once; it cannot be read again. */
  readonly text: string;
  readonly object: ProvisioningToken;
}

/** Makes a token. @param expiresAt milliseconds since the epoch. One of `expiresAt` and `maxUses` is required. */
export function newToken(
  random: { bytes(length: number): Uint8Array },
  {
    pool,
    expiresAt,
    maxUses,
    node,
    addresses = [],
  }: {
    readonly pool: string;
    readonly expiresAt?: number;
    readonly maxUses?: number;
    /** Name of the only machine that may join with it, and that machine's addresses. */
    readonly node?: string;
    readonly addresses?: readonly string[];
  },
): NewToken {
  const id = textOf(random, idLength);
  const secret = textOf(random, secretLength);
  const spec = {
    pool,
    tokenHash: tokenHash(secret),
    ...(expiresAt === undefined ? {} : { expiresAt: timestampOf(expiresAt) }),
    ...defined({ maxUses, node }),
    ...(addresses.length === 0 ? {} : { addresses: [...addresses] }),
  };
  return {
    text: `${id}.${secret}`,
    object: { apiVersion: ProvisioningToken.apiVersion, kind: ProvisioningToken.kind, metadata: { name: id }, spec },
  };
}

/** Random letters. Four bytes each, so that 36 letters are equally likely to one in a hundred million. */
function textOf(random: { bytes(length: number): Uint8Array }, length: number): string {
  const bytes = random.bytes(4 * length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length }, (_, i) => letters[view.getUint32(4 * i) % letters.length] ?? "").join("");
}
