import { type IncomingMessage, type Server, type ServerResponse, createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientIdentity, Listen, ListenLimits, ListenPlain, ServerHandler } from "../listener.ts";
import { identityOfSubject } from "../subject-identity.ts";
import { headerLines } from "./header-lines.ts";
import { ListenGate, refuse } from "./listen-gate.ts";
import { shareConnections } from "./share-connections.ts";

export function identityOf(socket: TLSSocket): ClientIdentity | undefined {
  return socket.authorized ? identityOfSubject(socket.getPeerCertificate().subject) : undefined;
}

export const isLoopback = (host: string) => host.startsWith("127.") || host === "::1" || host === "localhost";

const answering =
  (handle: ServerHandler, gate: ListenGate) => (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (!gate.begins(incoming, outgoing)) return;
    const mostBytes = gate.limits.bodyBytes;
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort(new Error("the client went away")));
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= mostBytes) chunks.push(chunk);
      else refuse(incoming, outgoing, 413, `the body is longer than ${mostBytes} bytes`);
    });
    incoming.once("end", () => {
      void (async () => {
        try {
          const headers = headerLines(incoming.headers);
          const identity = incoming.socket instanceof TLSSocket ? identityOf(incoming.socket) : undefined;
          const response = await handle(
            { method: incoming.method ?? "GET", target: incoming.url ?? "/", headers, body: Buffer.concat(chunks) },
            identity,
            gone.signal,
            incoming.socket.remoteAddress,
          );
          // The time limit has answered.
          if (outgoing.headersSent) return;
          outgoing.writeHead(
            response.status,
            Object.fromEntries(
              Object.entries(response.headers).map(([name, value]) => [
                name,
                typeof value === "string" ? value : [...value],
              ]),
            ),
          );
          outgoing.flushHeaders();
          if (typeof response.body === "string" || response.body instanceof Uint8Array) outgoing.end(response.body);
          else {
            for await (const chunk of response.body) {
              if (outgoing.destroyed) return;
              if (!outgoing.write(chunk))
                await new Promise((resolve) => outgoing.once("drain", resolve).once("close", resolve));
            }
            outgoing.end();
          }
        } catch (error) {
          if (!outgoing.headersSent) outgoing.writeHead(500);
          outgoing.end(gone.signal.aborted ? "" : String(error));
        }
      })();
    });
  };

async function listening(
  server: Server,
  handle: ServerHandler,
  { host, port, limits }: Parameters<ListenPlain>[0],
  signal: AbortSignal,
): Promise<{ readonly port: number }> {
  const shared = shareConnections(server, limits, () => undefined);
  const answer = answering(handle, new ListenGate(limits));
  server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    shared.requestBegins(incoming, outgoing);
    answer(incoming, outgoing);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  signal.addEventListener(
    "abort",
    () => {
      server.close();
      server.closeAllConnections();
    },
    { once: true },
  );
  return { port: (server.address() as AddressInfo).port };
}

/** @throws Error: an endpoint would be open to the network that may not be. */
function checkReach({ host, network }: Parameters<ListenPlain>[0], way: string): void {
  if (network !== true && !isLoopback(host))
    throw new Error(`refusing to listen on ${host}${way}: not a loopback address`);
}

/** How long a request, and the handshake before it, may take to arrive. */
const arrivalOf = ({ arriveMs }: ListenLimits) => ({
  headersTimeout: arriveMs,
  requestTimeout: arriveMs,
  connectionsCheckingInterval: Math.min(1000, arriveMs),
});

/** HTTPS over Node.js; on loopback only, unless `network` is set. */
export const httpsListen: Listen = async (options, handle, signal) => {
  checkReach(options, "");
  const { certificate: cert, key, clientCa } = options.tls;
  const server = createServer({
    cert,
    key,
    ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false }),
    minVersion: "TLSv1.2",
    handshakeTimeout: options.limits.arriveMs,
    ...arrivalOf(options.limits),
  });
  return listening(server, handle, options, signal);
};

/** HTTP without TLS; on loopback, unless `network` is set. */
export const httpListen: ListenPlain = async (options, handle, signal) => {
  checkReach(options, " without TLS");
  return listening(createPlainServer(arrivalOf(options.limits)), handle, options, signal);
};
