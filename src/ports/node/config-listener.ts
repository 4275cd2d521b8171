import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { TLSSocket, createSecureContext } from "node:tls";
import {
  type ClientIdentity,
  type ConfigAnswer,
  type ConfigHandler,
  type ConfigListenOptions,
  type ConfigListener,
  type ListenConfig,
  type TlsFiles,
  lengthOf,
} from "../listener.ts";
import { identityOf, isLoopback } from "./https-listener.ts";
import { headerLines } from "./header-lines.ts";
import { shareConnections } from "./share-connections.ts";
import { problemOfRequest } from "./strict-request.ts";

/** Interval of the check for connections that are late with their headers. */
const lookMs = 1000;
/** Bytes of a body that are encrypted at once: a slow reader costs this much memory, not the whole body. */
const sliceBytes = 256 * 1024;

const problem = (status: number, reason: string, message: string): string => {
  const words =
    { 400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large" }[status] ?? "Bad Request";
  const body = `${JSON.stringify({ error: { reason, message } })}\n`;
  return `HTTP/1.1 ${status} ${words}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n${body}`;
};

/** Error codes of Node's parser and timers → the refusal. */
function refusalOf(code: string | undefined): { readonly why: string; readonly answer: string } | undefined {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        why: "HeadersTooLarge",
        answer: problem(431, "HeadersTooLarge", "the headers are larger, or more, than this server takes"),
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { why: "HeadersTooSlow", answer: problem(408, "HeadersTooSlow", "the headers did not come in time") };
    case "ECONNRESET":
    case "EPIPE":
      return undefined;
    default:
      return { why: "Malformed", answer: problem(400, "Malformed", "this is no HTTP request") };
  }
}

const plainAddress = (address: string | undefined) => (address ?? "").replace(/^::ffff:(?=\d+\.)/, "");

/** Connections of which a request was refused; Node hands over requests that are already read nevertheless. */
const refusedConnections = new WeakSet<Socket>();

/** {@link ListenConfig} over Node.js. */
export const configListen: ListenConfig = async (options, handle) => {
  const { host, port, limits, settings, sourceOf, onRefused } = options;
  if (options.network !== true && !isLoopback(host))
    throw new Error(`refusing to listen on ${host}: not a loopback address`);
  // Protocol versions without a listed cipher are disabled, too.
  const [has12, has13] = [false, true].map((is13) => settings.ciphers.some((name) => name.startsWith("TLS_") === is13));
  const versions = {
    minVersion: has12 === true ? settings.minVersion : "TLSv1.3",
    maxVersion: has13 === true ? "TLSv1.3" : "TLSv1.2",
  } as const;
  const material = ({ certificate, key, clientCa }: TlsFiles) => ({
    cert: certificate,
    key,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
    ...versions,
    ciphers: settings.ciphers.join(":"),
    honorCipherOrder: true,
  });
  const wantsClients = options.tls.clientCa !== undefined;
  const server = createServer({
    ...material(options.tls),
    ...(wantsClients ? { requestCert: true, rejectUnauthorized: false } : {}),
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: limits.headersMs,
    maxHeaderSize: limits.headerBytes,
    // The listener refuses requests without a host itself: Node would go on with the next request of the connection.
    requireHostHeader: false,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.headersMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(lookMs, limits.headersMs),
    noDelay: true,
  });
  // Node drops the headers above the limit, so allow one more to detect an excess.
  server.maxHeadersCount = limits.headers + 1;
  let isClosing = false;
  const shared = shareConnections(server, { ...limits, sourceOf: (address) => sourceOf(plainAddress(address)) }, () =>
    onRefused("TooManyConnections"),
  );
  server.on("tlsClientError", (_error, socket) => {
    onRefused("NoHandshake");
    socket.destroy();
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const refusal = refusalOf(error.code);
    if (refusal === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    onRefused(refusal.why);
    // Refusals do not wait.
    socket.end(refusal.answer, () => socket.destroy());
  });
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    shared.requestBegins(incoming, outgoing);
    void answer(incoming, outgoing, handle, options, { wantsClients, isClosing: () => isClosing });
  };
  server.on("request", onRequest);
  // The listener never requests a body.
  server.on("checkContinue", onRequest);
  server.on("checkExpectation", onRequest);

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  server.on("error", () => onRefused("ListenerError"));
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return shared.sockets.size;
    },
    swap(tls) {
      // Throws before anything has changed.
      createSecureContext(material(tls));
      server.setSecureContext(material(tls));
    },
    async close(graceMs) {
      isClosing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const late = setTimeout(() => {
        server.closeAllConnections();
        for (const socket of shared.sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearTimeout(late);
    },
  } satisfies ConfigListener;
};

async function answer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  handle: ConfigHandler,
  { limits, onRefused }: ConfigListenOptions,
  { wantsClients, isClosing }: { readonly wantsClients: boolean; readonly isClosing: () => boolean },
): Promise<void> {
  const gone = new AbortController();
  let ended: ConfigAnswer["onEnd"];
  let late: NodeJS.Timeout | undefined;
  outgoing.once("close", () => {
    clearTimeout(late);
    const how = outgoing.writableFinished ? "whole" : "broken";
    if (how === "broken") gone.abort(new Error("the connection broke"));
    const report = ended;
    ended = undefined;
    report?.(how);
  });
  outgoing.on("error", () => outgoing.destroy());
  incoming.on("error", () => outgoing.destroy());
  incoming.resume();
  if (refusedConnections.has(incoming.socket)) return;
  const refuse = (status: number, reason: string, message: string) => {
    refusedConnections.add(incoming.socket);
    onRefused(reason);
    outgoing.shouldKeepAlive = false;
    outgoing.writeHead(status, {
      "content-type": "application/json",
      "cache-control": "no-store",
      connection: "close",
    });
    outgoing.end(`${JSON.stringify({ error: { reason, message } })}\n`);
    outgoing.once("finish", () => incoming.destroy());
  };
  if (incoming.rawHeaders.length / 2 > limits.headers)
    return refuse(431, "HeadersTooLarge", `a request has ${limits.headers} headers at most`);
  const doubt = problemOfRequest(incoming);
  if (doubt !== undefined) return refuse(400, "Malformed", doubt);
  if (incoming.headers["transfer-encoding"] !== undefined || Number(incoming.headers["content-length"] ?? 0) !== 0)
    return refuse(413, "BodyRefused", "requests have no body here");

  const headers = headerLines(incoming.headers);
  const client: ClientIdentity | undefined =
    wantsClients && incoming.socket instanceof TLSSocket ? identityOf(incoming.socket) : undefined;
  const given = await handle(
    {
      method: incoming.method ?? "",
      target: incoming.url ?? "",
      headers,
      from: plainAddress(incoming.socket.remoteAddress),
      client,
    },
    gone.signal,
  );
  if (outgoing.closed || outgoing.destroyed) {
    given.onEnd?.("unsent");
    return;
  }
  ended = given.onEnd;
  if (isClosing()) outgoing.shouldKeepAlive = false;
  const { body } = given;
  const length = body === undefined ? 0 : lengthOf(body);
  late = setTimeout(() => outgoing.destroy(), limits.takeMs + (length * 1000) / limits.leastBytesPerSecond);
  outgoing.writeHead(given.status, body === undefined ? given.headers : { ...given.headers, "content-length": length });
  if (body === undefined) {
    outgoing.end();
    return;
  }
  if (length <= sliceBytes) {
    outgoing.end(body instanceof Uint8Array ? body : Buffer.concat(body));
    return;
  }
  // Headers are written separately: together with the body they would be copied into one buffer.
  outgoing.flushHeaders();
  let left = length;
  for (const piece of body instanceof Uint8Array ? [body] : body) {
    for (let at = 0; at < piece.length && !outgoing.destroyed; at += sliceBytes) {
      const slice = piece.subarray(at, at + sliceBytes);
      left -= slice.length;
      if (left === 0) outgoing.end(slice);
      else if (!outgoing.write(slice)) await drained(outgoing);
    }
  }
}

/** When there is room again, or the connection is closed. */
const drained = (outgoing: ServerResponse) =>
  new Promise<void>((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.on("drain", done).on("close", done);
  });
