import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { McoError } from "../../api/errors.ts";
import type { HttpRequest, HttpResponse } from "../../ports/http.ts";
import type { Peer } from "../access/authentication.ts";
import { bodyLimitBytes } from "../http/request-body.ts";
import { Refusal, tooManyRequests } from "../schema/status.ts";
import type { ApiServer } from "../server.ts";

export interface ListenOptions {
  readonly server: Pick<ApiServer, "handle" | "close">;
  /** A loopback address. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly tls: { readonly certificate: string; readonly key: string };
  /** PEM; client certificates signed by it are believed. */
  readonly clientCA: string;
}

export interface Listener {
  readonly url: string;
  readonly port: number;
  /** Takes new certificates for connections from now on. */
  replaceCertificates(tls: ListenOptions["tls"], clientCA: string): void;
  /** Ends watches, gives running requests a short time to finish, then closes every connection. */
  close(): Promise<void>;
}

const compress = promisify(gzip);
/** Shorter answers are not worth compressing on one machine; the real server has the same bound. */
const gzipFromBytes = 128 * 1024;
/** A client that sends more than this is disconnected without a response. */
const discardLimitBytes = 64 * 1024 * 1024;
/** Bodies of all running requests together; one that does not fit is answered with 429. */
const bufferedLimitBytes = 256 * 1024 * 1024;
/** Many times what the machines of one cluster hold open. */
const mostConnections = 10_000;
/** How long running requests may take once the listener closes. */
const closeGraceMs = 2_000;

/**
 * Serves over TLS (HTTP/1.1, keep-alive, client certificates optional). Throws MCO_LISTEN_REFUSED for what is not
 * loopback or taken.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { server, host, port } = options;
  if (!isLoopback(host)) throw new McoError("MCO_LISTEN_REFUSED", { host, port });

  const buffered: Buffered = { bytes: 0 };
  const https = createServer(
    {
      cert: options.tls.certificate,
      key: options.tls.key,
      ca: options.clientCA,
      requestCert: true,
      // Who has no certificate may still bring a token; what a certificate is worth is looked at in each request.
      rejectUnauthorized: false,
      minVersion: "TLSv1.2",
      ALPNProtocols: ["http/1.1"],
      keepAliveTimeout: 120_000,
      noDelay: true,
    },
    (request, response) => {
      void serve(request, response, server, buffered);
    },
  );
  https.maxConnections = mostConnections;
  // Scanners and half-open connections are no news.
  https.on("tlsClientError", () => {});
  https.listen(port, host);
  try {
    await once(https, "listening");
  } catch (error) {
    throw new McoError("MCO_LISTEN_REFUSED", { host, port }, { cause: error });
  }
  const address = https.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    port: bound,
    url: `https://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`,
    replaceCertificates(tls, clientCA) {
      https.setSecureContext({ cert: tls.certificate, key: tls.key, ca: clientCA });
    },
    async close() {
      const closed = once(https, "close");
      https.close();
      server.close();
      https.closeIdleConnections();
      const force = setTimeout(() => https.closeAllConnections(), closeGraceMs);
      await closed;
      clearTimeout(force);
    },
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** What is in memory of bodies whose requests have no answer yet. */
interface Buffered {
  bytes: number;
}

/** A part of {@link bufferedLimitBytes} for one request. */
function bufferShare(all: Buffered): { take(bytes: number): boolean; giveBack(): void } {
  let taken = 0;
  return {
    take(bytes) {
      if (all.bytes + bytes > bufferedLimitBytes) return false;
      all.bytes += bytes;
      taken += bytes;
      return true;
    },
    giveBack() {
      all.bytes -= taken;
      taken = 0;
    },
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  server: Pick<ApiServer, "handle">,
  buffered: Buffered,
): Promise<void> {
  const controller = new AbortController();
  outgoing.on("close", () => {
    if (!outgoing.writableFinished) controller.abort(new Error("the caller went away"));
  });
  // A connection that breaks shows as `close`; without a listener it would be an exception.
  outgoing.on("error", () => {});
  incoming.on("error", () => {});
  const share = bufferShare(buffered);
  try {
    const request = await readRequest(incoming, share.take);
    const response =
      request instanceof Refusal
        ? request.response()
        : await server.handle(request, peerOf(incoming), controller.signal);
    await send(incoming, outgoing, response);
  } catch {
    // The handler rejects only when the caller is gone; anything else has become a response already.
    outgoing.destroy();
  } finally {
    share.giveBack();
  }
}

/** 429 when the body finds no room beside those of other requests. */
async function readRequest(
  incoming: IncomingMessage,
  take: (bytes: number) => boolean,
): Promise<HttpRequest | Refusal> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(",") : value;
  }
  const base = { method: incoming.method ?? "GET", target: incoming.url ?? "/", headers };
  const chunks: Buffer[] = [];
  let length = 0;
  let fits = true;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    // One byte too many is enough for the server to refuse it; the rest is read so that the caller hears the refusal.
    fits &&= length > bodyLimitBytes || take(chunk.length);
    if (!fits) chunks.length = 0;
    else if (length <= bodyLimitBytes) chunks.push(chunk);
    length += chunk.length;
    if (length > discardLimitBytes) throw new Error("the body does not end");
  }
  if (!fits) return tooManyRequests("the server has no room for another body, please try again later", 1);
  return length === 0 ? base : { ...base, body: Buffer.concat(chunks) };
}

/**
 * The peer of a connection, which its handshake determines once: reading a certificate costs a fifth of a small
 * request.
 */
const peers = new WeakMap<TLSSocket, Peer>();

function peerOf(incoming: IncomingMessage): Peer {
  const socket = incoming.socket as TLSSocket;
  const known = peers.get(socket) ?? readPeer(socket);
  peers.set(socket, known);
  return known;
}

function readPeer(socket: TLSSocket): Peer {
  const { subject, fingerprint256 } = socket.getPeerCertificate();
  if (subject === undefined) return {};
  if (!socket.authorized) return { certificate: "untrusted" };
  const list = (value: string | string[] | undefined): string[] =>
    value === undefined ? [] : Array.isArray(value) ? value : [value];
  const [commonName] = list(subject.CN as string | string[] | undefined);
  return commonName === undefined
    ? {}
    : {
        certificate: {
          commonName,
          organizations: list(subject.O as string | string[] | undefined),
          sha256: fingerprint256.replaceAll(":", "").toLowerCase(),
        },
      };
}

/** Header values go out as UTF-8, which node:http takes one character a byte. */
const headerBytes = (value: string) => Buffer.from(value).toString("latin1");

async function send(incoming: IncomingMessage, outgoing: ServerResponse, response: HttpResponse): Promise<void> {
  const { status, body } = response;
  for (const [name, value] of Object.entries(response.headers))
    outgoing.setHeader(name, typeof value === "string" ? headerBytes(value) : value.map(headerBytes));
  if (typeof body === "string" || body instanceof Uint8Array) {
    let bytes =
      typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    if (bytes.length > gzipFromBytes && /\bgzip\b/.test(incoming.headers["accept-encoding"] ?? "")) {
      bytes = await compress(bytes, { level: 1 });
      outgoing.setHeader("content-encoding", "gzip");
      outgoing.setHeader("vary", "Accept-Encoding");
    }
    outgoing.setHeader("content-length", bytes.length);
    outgoing.writeHead(status);
    outgoing.end(bytes);
    return;
  }
  outgoing.writeHead(status);
  // A watch without events must still respond: kubectl waits for the headers.
  outgoing.flushHeaders();
  for await (const chunk of body) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(chunk)) await Promise.race([once(outgoing, "drain"), once(outgoing, "close")]);
  }
  outgoing.end();
}
