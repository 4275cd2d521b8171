import { Agent, request as httpsRequest } from "node:https";
import { Agent as HttpAgent, type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from "node:http";
import { McoError } from "../../api/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import { AnswerTooLong, type HttpHandler, type HttpRequest, type HttpResponse } from "../../ports/http.ts";
import type { Processes } from "../../ports/process.ts";
import { type Credentials, keepCredentials } from "../credentials.ts";
import type { Connection, Impersonated } from "../kubeconfig.ts";

export interface HttpsTransportOptions {
  readonly connection: Connection;
  /** Reads the connection again from its source: token, certificates and authorities may have been replaced. */
  readonly reread?: (() => Promise<Connection>) | undefined;
  readonly clock: Clock;
  readonly files: Pick<Files, "readText">;
  readonly processes: Pick<Processes, "run">;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Concurrent requests; watches have their own connections. */
const maxRequestSockets = 32;

/**
 * Bytes of an answer whose reader names no number. An API server passes on what a kubelet sends as a log, without a
 * bound of its own; and Node.js has no longer strings than 512 Mi characters.
 */
const mostAnswerBytes = 400 * 1024 * 1024;

export interface HttpsTransport {
  readonly exchange: HttpHandler;
  close(): void;
}

interface Agents {
  readonly requests: HttpAgent;
  readonly watches: HttpAgent;
}

/** Error codes of a failed handshake: an untrusted certificate on either side. The server has not seen the request. */
const handshakeFailure = /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_SSL_|ERR_TLS_)/;

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Error codes of a kept-alive connection that the server had closed before it was reused. */
class StaleConnection extends Error {
  override readonly name = "StaleConnection";
}

/** @throws AnswerTooLong once more than `most` bytes have come; the connection is closed. */
async function bodyOf(incoming: IncomingMessage, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > most) throw new AnswerTooLong(most);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The headers of a request that acts as another user; a group is a line of its own. */
const impersonation = ({ user, uid, groups = [], extra = {} }: Impersonated): OutgoingHttpHeaders => ({
  "impersonate-user": user,
  ...(uid === undefined ? {} : { "impersonate-uid": uid }),
  ...(groups.length === 0 ? {} : { "impersonate-group": [...groups] }),
  ...Object.fromEntries(
    Object.entries(extra).map(([key, values]) => [
      `impersonate-extra-${encodeURIComponent(key).toLowerCase()}`,
      [...values],
    ]),
  ),
});

/**
 * Speaks HTTP/1.1 over TLS with keep-alive. Short answers come whole, streams as they arrive. A request whose
 * credentials were refused, or whose handshake failed, is sent once more if the disk has new credentials.
 */
export function httpsTransport(options: HttpsTransportOptions): HttpsTransport {
  const { connection, clock, files } = options;
  const url = new URL(connection.server);
  const secure = url.protocol === "https:";
  const keeper = keepCredentials({ connection, reread: options.reread, clock, files, execToken });
  const send = secure ? httpsRequest : httpRequest;
  let open: (Agents & { readonly connection: Connection }) | undefined;

  const agentFor = (from: Connection, limits: { readonly keepAlive: boolean; readonly maxSockets: number }) =>
    secure
      ? new Agent({
          ...limits,
          ...(from.ca === undefined ? {} : { ca: from.ca }),
          ...(from.certificate === undefined ? {} : { cert: from.certificate }),
          ...(from.key === undefined ? {} : { key: from.key }),
          ...(from.tlsServerName === undefined ? {} : { servername: from.tlsServerName }),
          rejectUnauthorized: from.insecureSkipTlsVerify !== true,
        })
      : new HttpAgent(limits);

  /** New connections use the newest certificates; existing ones stay as they are. */
  function agentsFor(from: Connection): Agents {
    if (
      open !== undefined &&
      open.connection.ca === from.ca &&
      open.connection.certificate === from.certificate &&
      open.connection.key === from.key
    )
      return open;
    for (const idle of Object.values(open?.requests.freeSockets ?? {}))
      for (const socket of idle ?? []) socket.destroy();
    open = {
      connection: from,
      requests: agentFor(from, { keepAlive: true, maxSockets: maxRequestSockets }),
      // A watch occupies its connection for minutes: a process with many watches must not block on them.
      watches: agentFor(from, { keepAlive: false, maxSockets: Infinity }),
    };
    return open;
  }

  async function execToken(exec: NonNullable<Connection["exec"]>, signal: AbortSignal): Promise<string | undefined> {
    const info = JSON.stringify({ apiVersion: exec.apiVersion, kind: "ExecCredential", spec: { interactive: false } });
    const env = {
      ...Object.fromEntries(
        Object.entries(options.environment).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
      ),
      ...exec.env,
      KUBERNETES_EXEC_INFO: info,
    };
    const result = await options.processes.run(exec.command, exec.args, { env, signal });
    if (result.code !== 0)
      throw new McoError("MCO_KUBECONFIG_INVALID", {
        problem: `the credential plug-in ${exec.command} failed`,
        exitCode: result.code,
      });
    return (JSON.parse(result.stdout) as { status?: { token?: string } }).status?.token;
  }

  function exchangeWith(
    { connection: from, token }: Credentials,
    request: HttpRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const body = request.body === undefined ? undefined : Buffer.from(request.body);
    const isWatch = request.target.includes("watch=true");
    const agents = agentsFor(from);
    return new Promise<HttpResponse>((resolve, reject) => {
      const outgoing = send({
        agent: isWatch ? agents.watches : agents.requests,
        host: url.hostname.replace(/^\[|\]$/g, ""),
        port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
        method: request.method,
        path: request.target,
        headers: {
          host: url.host,
          ...request.headers,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(from.impersonate === undefined ? {} : impersonation(from.impersonate)),
          ...(body === undefined ? {} : { "content-length": String(body.length) }),
        },
        signal,
      });
      outgoing.once("error", (error) =>
        reject(
          outgoing.reusedSocket && codeOf(error) === "ECONNRESET"
            ? new StaleConnection(error.message, { cause: error })
            : error,
        ),
      );
      outgoing.once("response", (incoming) => {
        const headers: Record<string, string | string[]> = {};
        for (const [name, value] of Object.entries(incoming.headers)) if (value !== undefined) headers[name] = value;
        const { warning } = incoming.headersDistinct;
        if (warning !== undefined) headers["warning"] = warning;
        const status = incoming.statusCode ?? 0;
        if (incoming.headers["content-length"] === undefined && isWatch) {
          resolve({ status, headers, body: incoming });
          return;
        }
        bodyOf(incoming, request.mostBytes ?? mostAnswerBytes).then(
          (body) => resolve({ status, headers, body }),
          reject,
        );
      });
      outgoing.end(body);
    });
  }

  /** Like {@link exchangeWith}; retries a read on a new connection if a kept-alive one turned out to be closed. */
  async function exchangeFresh(
    credentials: Credentials,
    request: HttpRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await exchangeWith(credentials, request, signal);
      } catch (error) {
        // After a restart of the server all idle connections are closed.
        if (!(error instanceof StaleConnection) || request.method !== "GET" || attempt > maxRequestSockets) throw error;
      }
    }
  }

  return {
    async exchange(request, signal): Promise<HttpResponse> {
      signal.throwIfAborted();
      const used = await keeper.current(signal);
      try {
        const response = await exchangeFresh(used, request, signal);
        const renewed = response.status === 401 ? await keeper.renewed(used, signal) : undefined;
        return renewed === undefined ? response : await exchangeFresh(renewed, request, signal);
      } catch (error) {
        const renewed = handshakeFailure.test(codeOf(error)) ? await keeper.renewed(used, signal) : undefined;
        if (renewed === undefined) throw error;
        return exchangeFresh(renewed, request, signal);
      }
    },
    close() {
      open?.requests.destroy();
      open?.watches.destroy();
    },
  };
}
