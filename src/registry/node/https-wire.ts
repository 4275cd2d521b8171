import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { getCACertificates } from "node:tls";
import { type Trust, type Wire, WireFailure, type WireRequest, type WireResponse } from "../wire.ts";

/** Connections to one registry at once, and how long an idle one is kept. */
const maxSockets = 8;
const idleMs = 15_000;

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "");

/** What Node.js calls a server that does not speak TLS, and certificates that are not believed. */
const notTls = /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|ERR_SSL_HTTP_REQUEST)$/;
const untrusted = /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_)/;

function failureOf(error: Error): WireFailure {
  const code = codeOf(error);
  const kind = notTls.test(code) ? "notTls" : untrusted.test(code) ? "untrusted" : "unreachable";
  return new WireFailure(kind, code === "" ? error.message : `${code}: ${error.message}`, { cause: error });
}

/** HTTP/1.1 with kept-alive connections: TLS, or plain where the address says so. */
export function httpsWire(): { readonly send: Wire; close(): void } {
  const agents = new Map<string, HttpAgent>();

  function agentFor(plain: boolean, trust: Trust): HttpAgent {
    const key = plain ? "plain" : JSON.stringify(trust);
    const known = agents.get(key);
    if (known !== undefined) return known;
    const limits = { keepAlive: true, maxSockets, timeout: idleMs };
    const agent = plain
      ? new HttpAgent(limits)
      : new HttpsAgent({ ...limits, minVersion: "TLSv1.2", rejectUnauthorized: !trust.unverified, ca: [...authoritiesOfSystem(), ...trust.authorities] });
    agents.set(key, agent);
    return agent;
  }

  function once(request: WireRequest, signal: AbortSignal): Promise<{ readonly outgoing: ClientRequest; readonly incoming: IncomingMessage }> {
    const { url } = request;
    const plain = url.protocol === "http:";
    return new Promise((resolve, reject) => {
      const outgoing = (plain ? httpRequest : httpsRequest)({
        agent: agentFor(plain, request.trust),
        host: url.hostname.replace(/^\[|\]$/g, ""),
        port: url.port === "" ? (plain ? 80 : 443) : Number(url.port),
        method: request.method,
        path: `${url.pathname}${url.search}`,
        headers: { host: url.host, ...request.headers, ...(request.body === undefined ? {} : { "content-length": String(request.body.length) }) },
        signal,
      });
      // A connection that was kept alive may have been closed by the server meanwhile: what only reads is sent again.
      outgoing.on("error", (error) => {
        if (outgoing.reusedSocket && codeOf(error) === "ECONNRESET" && (request.method === "GET" || request.method === "HEAD") && !signal.aborted) resolve(once(request, signal));
        else reject(error);
      });
      outgoing.once("response", (incoming) => resolve({ outgoing, incoming }));
      outgoing.end(request.body);
    });
  }

  return {
    async send(request, signal): Promise<WireResponse> {
      signal.throwIfAborted();
      try {
        const { incoming } = await once(request, signal);
        const headers = Object.fromEntries(Object.entries(incoming.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]])));
        return { status: incoming.statusCode ?? 0, headers, chunks: bodyOf(incoming, signal) };
      } catch (error) {
        signal.throwIfAborted();
        throw error instanceof Error ? failureOf(error) : error;
      }
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
      agents.clear();
    },
  };
}

async function* bodyOf(incoming: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of incoming) yield chunk as Buffer;
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof Error ? failureOf(error) : error;
  }
}

/** The machine's own store; what Node.js carries where a machine has none. */
function authoritiesOfSystem(): readonly string[] {
  const system = getCACertificates("system");
  return system.length > 0 ? system : getCACertificates("bundled");
}
