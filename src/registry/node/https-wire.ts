import { once as eventOf } from "node:events";
import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { TLSSocket, getCACertificates } from "node:tls";
import { type StreamedBody, type Wire, WireFailure, type WireRequest, type WireResponse } from "../wire.ts";

/** Connections to one registry at once, and how long an idle one is kept. */
const maxSockets = 8;
const idleMs = 15_000;

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Node.js error codes for servers that do not speak TLS, and for untrusted certificates. */
const notTls = /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|ERR_SSL_HTTP_REQUEST)$/;
const untrusted = /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_)/;

function failureOf(error: Error, issuer?: string): WireFailure {
  const code = codeOf(error);
  const kind = notTls.test(code) ? "notTls" : untrusted.test(code) ? "untrusted" : "unreachable";
  return new WireFailure(kind, code === "" ? error.message : `${code}: ${error.message}`, {
    cause: error,
    ...(kind === "untrusted" ? { issuer } : {}),
  });
}

/** Reports the issuer of a new connection's certificate, before Node.js decides whether to trust it. */
function onIssuer(request: ClientRequest, report: (issuer: string) => void): void {
  request.once("socket", (socket) => {
    if (!(socket instanceof TLSSocket) || request.reusedSocket) return;
    socket.prependOnceListener("secure", () => {
      const { issuer } = socket.getPeerCertificate();
      const name = [issuer?.CN ?? issuer?.O].flat()[0];
      if (name !== undefined) report(name.slice(0, 128));
    });
  });
}

/** HTTP/1.1 with kept-alive connections: TLS, or plain where the address says so. */
export function httpsWire(): { readonly send: Wire; close(): void } {
  const agents = new Map<string, HttpAgent>();

  function agentFor(plain: boolean, { trust, proxy }: Pick<WireRequest, "trust" | "proxy">): HttpAgent {
    const key = JSON.stringify([plain || trust, proxy]);
    const known = agents.get(key);
    if (known !== undefined) return known;
    const proxyEnv = { HTTP_PROXY: proxy?.httpProxy, HTTPS_PROXY: proxy?.httpsProxy, NO_PROXY: proxy?.noProxy };
    const limits = { keepAlive: true, maxSockets, timeout: idleMs, ...(proxy === undefined ? {} : { proxyEnv }) };
    const agent = plain
      ? new HttpAgent(limits)
      : new HttpsAgent({
          ...limits,
          minVersion: "TLSv1.2",
          rejectUnauthorized: !trust.unverified,
          ca: [...authoritiesOfSystem(), ...trust.authorities],
        });
    agents.set(key, agent);
    return agent;
  }

  function once(
    request: WireRequest,
    signal: AbortSignal,
  ): Promise<{ readonly outgoing: ClientRequest; readonly incoming: IncomingMessage }> {
    const { url, body } = request;
    const plain = url.protocol === "http:";
    return new Promise((resolve, reject) => {
      const outgoing = (plain ? httpRequest : httpsRequest)({
        agent: agentFor(plain, request),
        host: url.hostname.replace(/^\[|\]$/g, ""),
        port: url.port === "" ? (plain ? 80 : 443) : Number(url.port),
        method: request.method,
        path: `${url.pathname}${url.search}`,
        headers: {
          host: url.host,
          ...request.headers,
          ...(body === undefined
            ? {}
            : { "content-length": String(body instanceof Uint8Array ? body.length : body.sizeBytes) }),
        },
        signal,
      });
      let issuer: string | undefined;
      onIssuer(outgoing, (name) => (issuer = name));
      // A connection that was kept alive may have been closed by the server meanwhile: what only reads is sent again.
      outgoing.on("error", (error) => {
        if (
          outgoing.reusedSocket &&
          codeOf(error) === "ECONNRESET" &&
          (request.method === "GET" || request.method === "HEAD") &&
          !signal.aborted
        )
          resolve(once(request, signal));
        else reject(failureOf(error, issuer));
      });
      outgoing.once("response", (incoming) => resolve({ outgoing, incoming }));
      if (body === undefined || body instanceof Uint8Array) outgoing.end(body);
      else {
        void stream(body, outgoing).catch((error: unknown) => {
          reject(error instanceof Error ? error : new Error(String(error)));
          outgoing.destroy();
        });
      }
    });
  }

  return {
    async send(request, signal): Promise<WireResponse> {
      signal.throwIfAborted();
      try {
        const { outgoing, incoming } = await once(request, signal);
        // If the response came before the whole body was sent, the connection cannot be reused.
        incoming.once("end", () => {
          if (!outgoing.writableEnded) outgoing.destroy();
        });
        const headers = Object.fromEntries(
          Object.entries(incoming.headers).flatMap(([name, value]) =>
            value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
          ),
        );
        return { status: incoming.statusCode ?? 0, headers, chunks: bodyOf(incoming, signal) };
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      }
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
      agents.clear();
    },
  };
}

/** Sends a body as fast as the other side takes it, and no more of it once there is an answer: that is a refusal. */
async function stream(body: StreamedBody, outgoing: ClientRequest): Promise<void> {
  const answered = new AbortController();
  outgoing.once("response", () => answered.abort());
  outgoing.once("close", () => answered.abort());
  let left = body.sizeBytes;
  for await (const chunk of body.open()) {
    if (answered.signal.aborted) return;
    left -= chunk.length;
    if (left < 0) break;
    if (!outgoing.write(chunk)) await eventOf(outgoing, "drain", { signal: answered.signal }).catch(() => undefined);
  }
  if (answered.signal.aborted) return;
  if (left !== 0) throw new WireFailure("unreachable", "the body's size differs from its declared size");
  outgoing.end();
}

async function* bodyOf(incoming: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of incoming) yield chunk as Buffer;
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof Error ? failureOf(error) : error;
  }
}

/** The machine's own store, or the authorities of Node.js if it has none. Read once: it takes a tenth of a second. */
function authoritiesOfSystem(): readonly string[] {
  if (systemAuthorities === undefined) {
    const system = getCACertificates("system");
    systemAuthorities = system.length > 0 ? system : getCACertificates("bundled");
  }
  return systemAuthorities;
}
let systemAuthorities: readonly string[] | undefined;
