import { McoError } from "../api/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Connection } from "./kubeconfig.ts";

/** The credentials of a request. The object changes if and only if one of its values does. */
export interface Credentials {
  readonly connection: Connection;
  readonly token: string | undefined;
}

export interface CredentialsOptions {
  readonly connection: Connection;
  /** Reads the connection again from its source; absent: it never changes. */
  readonly reread?: (() => Promise<Connection>) | undefined;
  readonly clock: Clock;
  readonly files: Pick<Files, "readText">;
  /** Requests a token from the exec plug-in of the connection. */
  readonly execToken: (exec: NonNullable<Connection["exec"]>, signal: AbortSignal) => Promise<string | undefined>;
}

export interface CredentialsKeeper {
  /** The current credentials: read from disk at most once a minute. */
  current(signal: AbortSignal): Promise<Credentials>;
  /**
   * The credentials that replace `used`, which the server or the handshake refused; `undefined` if nothing has changed.
   */
  renewed(used: Credentials, signal: AbortSignal): Promise<Credentials | undefined>;
}

/** How long credentials from disk are reused; refused credentials are read again at once. */
const credentialsLifeMs = 60_000;

/**
 * Keeps the credentials of a connection in sync with the disk, where token, client certificate and authorities may be
 * replaced while the process runs. The server never changes: a kubeconfig that now names another server is not
 * followed. A temporary read error (a file that is being replaced) changes nothing.
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

  /** One reader at a time; concurrent callers share its result. */
  function readOnce(signal: AbortSignal): Promise<Credentials> {
    reading ??= read(signal).finally(() => (reading = undefined));
    return reading;
  }

  return {
    async current(signal) {
      return held !== undefined && clock.monotonic() - readAt < credentialsLifeMs ? held : readOnce(signal);
    },
    async renewed(used, signal) {
      // Another request may have been refused first and have loaded the new credentials already.
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
