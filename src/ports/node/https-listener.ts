import { type IncomingMessage, type Server, type ServerResponse, createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientIdentity, Listen, ListenPlain, ServerHandler } from "../listener.ts";
import { identityOfSubject } from "../subject-identity.ts";
import { headerLines } from "./header-lines.ts";
import { ListenGate, refuse } from "./listen-gate.ts";

const bodyLimitBytes = 3 * 1024 * 1024;

export function identityOf(socket: TLSSocket): ClientIdentity | undefined {
  return socket.authorized ? identityOfSubject(socket.getPeerCertificate().subject) : undefined;
}

export const isLoopback = (host: string) => host.startsWith("127.") || host === "::1" || host === "localhost";

const answering =
  (handle: ServerHandler, gate?: ListenGate) => (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (gate?.begins(incoming, outgoing) === false) return;
    const mostBytes = gate?.limits.bodyBytes ?? bodyLimitBytes;
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort(new Error("the client went away")));
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= mostBytes) chunks.push(chunk);
      else if (gate === undefined) incoming.destroy();
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
  gate: ListenGate | undefined,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<{ readonly port: number }> {
  if (gate !== undefined) {
    server.maxConnections = gate.limits.connections;
    server.on("connection", (socket: Socket) => {
      if (!gate.connects(socket)) socket.destroy();
    });
  }
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
function checkReach({ host, network, limits }: Parameters<ListenPlain>[0], way: string): void {
  if (network !== true && !isLoopback(host))
    throw new Error(`refusing to listen on ${host}${way}: not a loopback address`);
  if (network === true && limits === undefined)
    throw new Error("bug: an endpoint that the network reaches has no limits");
}

/** HTTPS over Node.js; on loopback only, unless `network` is set. */
export const httpsListen: Listen = async (options, handle, signal) => {
  checkReach(options, "");
  const { certificate: cert, key, clientCa } = options.tls;
  const gate = options.limits === undefined ? undefined : new ListenGate(options.limits);
  const server = createServer(
    {
      cert,
      key,
      ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false }),
      minVersion: "TLSv1.2",
      ...(gate === undefined ? {} : { handshakeTimeout: gate.limits.requestMs, headersTimeout: gate.limits.requestMs }),
    },
    answering(handle, gate),
  );
  return listening(server, gate, options, signal);
};

/** HTTP without TLS; on loopback, unless `network` is set. */
export const httpListen: ListenPlain = async (options, handle, signal) => {
  checkReach(options, " without TLS");
  const gate = options.limits === undefined ? undefined : new ListenGate(options.limits);
  const server = createPlainServer(
    gate === undefined ? {} : { headersTimeout: gate.limits.requestMs },
    answering(handle, gate),
  );
  return listening(server, gate, options, signal);
};
