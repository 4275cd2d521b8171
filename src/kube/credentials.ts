import { McoError } from "../api/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Connection } from "./kubeconfig.ts";

/** What a request is sent with. The object changes when, and only when, one of its values does. */
export interface Credentials {
  readonly connection: Connection;
  readonly token: string | undefined;
}

export interface CredentialsOptions {
  readonly connection: Connection;
  /** Reads the connection again from where it came; absent: it never changes. */
  readonly reread?: (() => Promise<Connection>) | undefined;
  readonly clock: Clock;
  readonly files: Pick<Files, "readText">;
  /** Asks the connection's plug-in for a token. */
  readonly execToken: (exec: NonNullable<Connection["exec"]>, signal: AbortSignal) => Promise<string | undefined>;
}

export interface CredentialsKeeper {
  /** Those to use now: read again from disk for every minute of use. */
  current(signal: AbortSignal): Promise<Credentials>;
  /**
   * Those that have taken the place of `used`, which the server or the handshake refused; `undefined` when nothing has.
   */
  renewed(used: Credentials, signal: AbortSignal): Promise<Credentials | undefined>;
}

/** What lies on disk is looked at again after this time; refused credentials are looked at again at once. */
const credentialsLifeMs = 60_000;

/**
 * Keeps the credentials of a connection as they are on disk: token, client certificate and authorities are all replaced
 * there while a process runs. Which server a process speaks to never changes: a kubeconfig that has come to name
 * another is not followed. What cannot be read for the moment (a file that is being replaced) leaves everything as it
 * was.
 */
export function keepCredentials({
  connection,
  reread,
  clock,
  files,
  execToken,
}: CredentialsOptions): CredentialsKeeper {
  let held: Credentials | undefined;
  let readAt = 0;
  let reading: Promise<Credentials> | undefined;

  async function tokenOf(from: Connection, signal: AbortSignal): Promise<string | undefined> {
    if (from.token !== undefined) return from.token;
    if (from.tokenFile === undefined && from.exec === undefined) return undefined;
    const token =
      from.tokenFile !== undefined
        ? (await files.readText(from.tokenFile))?.trim()
        : from.exec === undefined
          ? undefined
          : await execToken(from.exec, signal);
    if (token === undefined || token === "")
      throw new McoError("MCO_KUBECONFIG_INVALID", {
        problem: "the token file is empty or missing",
        file: from.tokenFile,
      });
    return token;
  }

  async function read(signal: AbortSignal): Promise<Credentials> {
    try {
      // The first connection has just been read.
      const fresh = held === undefined || reread === undefined ? connection : await reread();
      const from = fresh.server === connection.server ? fresh : (held?.connection ?? connection);
      const next: Credentials = { connection: from, token: await tokenOf(from, signal) };
      if (held === undefined || !same(held, next)) held = next;
    } catch (error) {
      if (held === undefined) throw error;
    }
    readAt = clock.monotonic();
    return held;
  }

  /** One reader at a time; whoever comes meanwhile gets what it finds. */
  function readOnce(signal: AbortSignal): Promise<Credentials> {
    reading ??= read(signal).finally(() => (reading = undefined));
    return reading;
  }

  return {
    async current(signal) {
      return held !== undefined && clock.monotonic() - readAt < credentialsLifeMs ? held : readOnce(signal);
    },
    async renewed(used, signal) {
      // Somebody else's request may have been refused first, and what it found may be here already.
      if (held !== undefined && held !== used) return held;
      const found = await readOnce(signal);
      return found === used ? undefined : found;
    },
  };
}

function same(one: Credentials, other: Credentials): boolean {
  const of = ({ connection: { ca, certificate, key }, token }: Credentials) =>
    JSON.stringify([ca, certificate, key, token]);
  return of(one) === of(other);
}
