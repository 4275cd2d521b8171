import { Agent, request as httpsRequest } from "node:https";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { McoError } from "../../api/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { HttpHandler, HttpResponse } from "../../ports/http.ts";
import type { Processes } from "../../ports/process.ts";
import type { Connection } from "../kubeconfig.ts";

export interface HttpsTransportOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly files: Pick<Files, "readText">;
  readonly processes: Pick<Processes, "run">;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A token on disk or from a plug-in is asked for again after this time. */
const credentialLifeMs = 60_000;
/** Requests under way at once; watches have connections of their own. */
const maxRequestSockets = 32;

export interface HttpsTransport {
  readonly exchange: HttpHandler;
  close(): void;
}

/** Speaks HTTP/1.1 over TLS with kept-alive connections. Short answers come whole, streams as they come. */
export function httpsTransport(options: HttpsTransportOptions): HttpsTransport {
  const { connection, clock, files } = options;
  const url = new URL(connection.server);
  const secure = url.protocol === "https:";
  const agentWith = (limits: { readonly keepAlive: boolean; readonly maxSockets: number }) => secure
    ? new Agent({
        ...limits,
        ...(connection.ca === undefined ? {} : { ca: connection.ca }),
        ...(connection.certificate === undefined ? {} : { cert: connection.certificate }),
        ...(connection.key === undefined ? {} : { key: connection.key }),
        ...(connection.tlsServerName === undefined ? {} : { servername: connection.tlsServerName }),
        rejectUnauthorized: connection.insecureSkipTlsVerify !== true,
      })
    : new HttpAgent(limits);
  const requests = agentWith({ keepAlive: true, maxSockets: maxRequestSockets });
  // A watch keeps its connection for minutes: a process that watches many kinds must not wait for its own watches.
  const watches = agentWith({ keepAlive: false, maxSockets: Infinity });
  const send = secure ? httpsRequest : httpRequest;
  let credential: { readonly token: string; readonly at: number } | undefined;

  async function token(signal: AbortSignal): Promise<string | undefined> {
    if (connection.token !== undefined) return connection.token;
    if (connection.tokenFile === undefined && connection.exec === undefined) return undefined;
    if (credential !== undefined && clock.monotonic() - credential.at < credentialLifeMs) return credential.token;
    const fresh = connection.tokenFile !== undefined ? (await files.readText(connection.tokenFile))?.trim() : await execToken(signal);
    if (fresh === undefined || fresh === "") throw new McoError("MCO_KUBECONFIG_INVALID", { problem: "the token file is empty or missing", file: connection.tokenFile });
    credential = { token: fresh, at: clock.monotonic() };
    return fresh;
  }

  async function execToken(signal: AbortSignal): Promise<string | undefined> {
    const { exec } = connection;
    if (exec === undefined) return undefined;
    const info = JSON.stringify({ apiVersion: exec.apiVersion, kind: "ExecCredential", spec: { interactive: false } });
    const env = { ...Object.fromEntries(Object.entries(options.environment).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]))), ...exec.env, KUBERNETES_EXEC_INFO: info };
    const result = await options.processes.run(exec.command, exec.args, { env, signal });
    if (result.code !== 0) throw new McoError("MCO_KUBECONFIG_INVALID", { problem: `the credential plug-in ${exec.command} failed`, exitCode: result.code });
    return (JSON.parse(result.stdout) as { status?: { token?: string } }).status?.token;
  }

  return {
    async exchange(request, signal): Promise<HttpResponse> {
      signal.throwIfAborted();
      const bearer = await token(signal);
      const body = request.body === undefined ? undefined : Buffer.from(request.body);
      const isWatch = request.target.includes("watch=true");
      return new Promise<HttpResponse>((resolve, reject) => {
        const outgoing = send({
          agent: isWatch ? watches : requests,
          host: url.hostname.replace(/^\[|\]$/g, ""),
          port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
          method: request.method,
          path: request.target,
          headers: {
            host: url.host,
            ...request.headers,
            ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
            ...(body === undefined ? {} : { "content-length": String(body.length) }),
          },
          signal,
        });
        outgoing.once("error", reject);
        outgoing.once("response", (incoming) => {
          if (incoming.statusCode === 401) credential = undefined; // The next request asks for a fresh one.
          const headers: Record<string, string | string[]> = {};
          for (const [name, value] of Object.entries(incoming.headers)) if (value !== undefined) headers[name] = value;
          const { warning } = incoming.headersDistinct;
          if (warning !== undefined) headers["warning"] = warning;
          const status = incoming.statusCode ?? 0;
          if (incoming.headers["content-length"] === undefined && isWatch) {
            resolve({ status, headers, body: incoming });
            return;
          }
          const chunks: Buffer[] = [];
          incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
          incoming.once("end", () => resolve({ status, headers, body: Buffer.concat(chunks).toString("utf8") }));
          incoming.once("error", reject);
        });
        outgoing.end(body);
      });
    },
    close() {
      requests.destroy();
      watches.destroy();
    },
  };
}
