import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { McoError } from "../../../api/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { HttpRequest, HttpResponse } from "../../../ports/http.ts";
import { identityOfSubject } from "../../../ports/subject-identity.ts";
import type { Peer } from "../access/authentication.ts";
import type { Share } from "../schema/contract.ts";
import { bodyLimitBytes } from "../http/request-body.ts";
import { Refusal, tooManyRequests } from "../schema/status.ts";
import type { ApiServer } from "../server.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import { pipelineLimits, Pipelines } from "./pipelines.ts";
import { type UnsentAnswers, unsentAnswers, unsentLimits, type UnsentLimits } from "./unsent-answers.ts";

export interface ListenOptions {
  readonly server: Pick<ApiServer, "handle" | "callerOf" | "close">;
  /** A loopback address. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly tls: { readonly certificate: string; readonly key: string };
  /** PEM; client certificates signed by it are believed. */
  readonly clientCA: string;
  /** Tells when a client's certificate has expired on a connection that stays open. */
  readonly clock: Pick<Clock, "now">;
  readonly unsent?: UnsentLimits;
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
/** Of these, bodies of one user: whoever sends many, and slowly, leaves room for others. */
const callerLimitBytes = bufferedLimitBytes / 4;
const nodeLimitBytes = 12 * 1024 * 1024;
/** Of these, bodies of all users for whom nothing is kept, and of all machines. */
const partLimitBytes = { others: (bufferedLimitBytes / 16) * 10, nodes: (bufferedLimitBytes / 16) * 3 };
/** The same for callers whom nobody knows: they must not take the room of others by bodies that do not end. */
const strangersLimitBytes = 16 * 1024 * 1024;
/** Many times the number of connections that the machines of one cluster hold open. */
const mostConnections = 10_000;
/**
 * Of these, those of clients without credentials, of one user or machine, of all users but administrators and components of
 * the cluster, for whom the rest is kept, and of all machines.
 */
export const connectionLimits: ConnectionLimits = {
  strangers: 1_000,
  ofOneUser: 2_000,
  ofOneNode: 200,
  ofOthers: 6_000,
  ofNodes: 2_500,
};
/** How long running requests may take once the listener closes. */
const closeGraceMs = 2_000;

/**
 * Serves over TLS (HTTP/1.1, keep-alive, client certificates optional). Throws MCO_LISTEN_REFUSED for an address that
 * is not loopback or is in use.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { server, host, port, clock } = options;
  if (!isLoopback(host)) throw new McoError("MCO_LISTEN_REFUSED", { host, port });

  const buffered: Buffers = {
    known: { bytes: 0, limitBytes: bufferedLimitBytes },
    others: { bytes: 0, limitBytes: partLimitBytes.others },
    nodes: { bytes: 0, limitBytes: partLimitBytes.nodes },
    strangers: { bytes: 0, limitBytes: strangersLimitBytes },
    callers: new Map(),
  };
  const unsent = unsentAnswers(options.unsent ?? unsentLimits);
  const connections = new Connections(connectionLimits);
  const pipelines = new Pipelines(pipelineLimits);
  const https = createServer(
    {
      cert: options.tls.certificate,
      key: options.tls.key,
      ca: options.clientCA,
      requestCert: true,
      // A client without a certificate may still present a token; each request checks the certificate.
      rejectUnauthorized: false,
      minVersion: "TLSv1.2",
      ALPNProtocols: ["http/1.1"],
      keepAliveTimeout: 120_000,
      noDelay: true,
    },
    (request, response) => {
      pipelines.add(request.socket, {
        answer: response,
        serve: () => void serve(request, response, server, { buffered, unsent, connections, clock }),
      });
    },
  );
  https.maxConnections = mostConnections;
  https.on("connection", (socket) => connections.begins(socket));
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

/** Bytes in memory of the bodies of unanswered requests. */
interface Buffered {
  bytes: number;
  readonly limitBytes: number;
}
interface Buffers extends Readonly<Record<"known" | "others" | "nodes" | "strangers", Buffered>> {
  /** Of the known callers, by name; those without bodies are absent. */
  readonly callers: Map<string, number>;
}

/** A part of the memory for one request. @param caller its user; `undefined`: nobody known. */
function bufferShare(
  { known, callers, ...parts }: Buffers,
  caller: Share | undefined,
): { take(bytes: number): boolean; giveBack(): void } {
  const shared =
    caller === undefined ? [parts.strangers] : caller.part === "cluster" ? [known] : [known, parts[caller.part]];
  const ownLimitBytes = caller?.part === "nodes" ? nodeLimitBytes : callerLimitBytes;
  let taken = 0;
  const add = (bytes: number) => {
    for (const buffered of shared) buffered.bytes += bytes;
    taken += bytes;
    if (caller === undefined) return;
    const left = (callers.get(caller.of) ?? 0) + bytes;
    if (left === 0) callers.delete(caller.of);
    else callers.set(caller.of, left);
  };
  return {
    take(bytes) {
      const own = caller === undefined ? 0 : (callers.get(caller.of) ?? 0);
      const fits = shared.every((buffered) => buffered.bytes + bytes <= buffered.limitBytes);
      if (!fits || own + bytes > ownLimitBytes) return false;
      add(bytes);
      return true;
    },
    giveBack: () => add(-taken),
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  server: Pick<ApiServer, "handle" | "callerOf">,
  {
    buffered,
    unsent,
    connections,
    clock,
  }: {
    readonly buffered: Buffers;
    readonly unsent: UnsentAnswers;
    readonly connections: Connections;
    readonly clock: Pick<Clock, "now">;
  },
): Promise<void> {
  const controller = new AbortController();
  outgoing.on("close", () => {
    if (!outgoing.writableFinished) controller.abort(new Error("the caller went away"));
  });
  // A connection that breaks shows as `close`; without a listener it would be an exception.
  outgoing.on("error", () => {});
  incoming.on("error", () => {});
  let giveBack = () => {};
  try {
    const head = headOf(incoming);
    const peer = peerOf(incoming, clock.now());
    const caller = await server.callerOf(head, peer, controller.signal);
    if (caller.share !== undefined) connections.isOf(caller.share, incoming.socket);
    const share = bufferShare(buffered, caller.share);
    giveBack = share.giveBack;
    const request = await readRequest(incoming, head, share.take);
    const response =
      request instanceof Refusal ? request.response() : await server.handle(request, peer, controller.signal, caller);
    await send(incoming, outgoing, response, { unsent, caller: caller.share ?? stranger });
  } catch {
    // The handler rejects only when the caller has disconnected; any other failure has already become a response.
    outgoing.destroy();
  } finally {
    giveBack();
  }
}

function headOf(incoming: IncomingMessage): HttpRequest {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(",") : value;
  }
  return { method: incoming.method ?? "GET", target: incoming.url ?? "/", headers };
}

/** 429 when the body finds no room beside those of other requests. */
async function readRequest(
  incoming: IncomingMessage,
  head: HttpRequest,
  take: (bytes: number) => boolean,
): Promise<HttpRequest | Refusal> {
  const chunks: Buffer[] = [];
  let length = 0;
  let fits = true;
  // No answer to these depends on a body, and a watch would hold it as long as it lasts.
  const isRead = head.method !== "GET" && head.method !== "HEAD";
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    // One byte too many is enough for the server to refuse it; the rest is read so that the caller hears the refusal.
    if (isRead) {
      fits &&= length > bodyLimitBytes || take(chunk.length);
      if (!fits) chunks.length = 0;
      else if (length <= bodyLimitBytes) chunks.push(chunk);
    }
    length += chunk.length;
    if (length > discardLimitBytes) throw new Error("the body does not end");
  }
  if (!fits) return tooManyRequests("the server has no room for another body, please try again later", 1);
  return chunks.length === 0 ? head : { ...head, body: Buffer.concat(chunks) };
}

/**
 * The peer of a connection, which its handshake determines once: reading a certificate costs a fifth of a small
 * request.
 */
const peers = new WeakMap<TLSSocket, KnownPeer>();

interface KnownPeer {
  readonly peer: Peer;
  /** When its certificate ends, in milliseconds since the epoch. */
  readonly endsAt: number;
}

/** A connection may last longer than the certificate that began it: each request is judged by the time it comes. */
function peerOf(incoming: IncomingMessage, now: number): Peer {
  const socket = incoming.socket as TLSSocket;
  const known = peers.get(socket) ?? readPeer(socket);
  peers.set(socket, known);
  return known.endsAt < now ? { certificate: "untrusted" } : known.peer;
}

function readPeer(socket: TLSSocket): KnownPeer {
  const { subject, fingerprint256, valid_to: end } = socket.getPeerCertificate();
  if (subject === undefined) return { peer: {}, endsAt: Infinity };
  if (!socket.authorized) return { peer: { certificate: "untrusted" }, endsAt: Infinity };
  const identity = identityOfSubject({ ...subject });
  return {
    peer:
      identity === undefined
        ? {}
        : { certificate: { ...identity, sha256: fingerprint256.replaceAll(":", "").toLowerCase() } },
    endsAt: Date.parse(end),
  };
}

/** Header values go out as UTF-8, which node:http takes one character a byte. */
const headerBytes = (value: string) => Buffer.from(value).toString("latin1");

const stranger: Share = { of: "", part: "others" };

/** Whose answer it is, beside the others that wait for their readers. */
interface Room {
  readonly unsent: UnsentAnswers;
  readonly caller: Share;
}

function sendHeaders(outgoing: ServerResponse, { headers }: HttpResponse): void {
  for (const [name, value] of Object.entries(headers))
    outgoing.setHeader(name, typeof value === "string" ? headerBytes(value) : value.map(headerBytes));
}

async function send(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: HttpResponse,
  { unsent, caller }: Room,
): Promise<void> {
  const { status, body } = response;
  // Its `close` is over: nothing would give back what it takes.
  if (outgoing.destroyed) throw new Error("the caller went away");
  if (typeof body === "string" || body instanceof Uint8Array) {
    const giveBack = unsent.take(caller, typeof body === "string" ? Buffer.byteLength(body) : body.byteLength);
    if (giveBack === undefined) {
      const refused = tooManyRequests("the server has no room for another answer before you take those that wait", 1);
      return send(incoming, outgoing, refused.response(), { unsent, caller });
    }
    const expected = unsent.expect(outgoing);
    outgoing.on("close", () => {
      expected();
      giveBack();
    });
    sendHeaders(outgoing, response);
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
  sendHeaders(outgoing, response);
  outgoing.writeHead(status);
  // A watch without events must still respond: kubectl waits for the headers.
  outgoing.flushHeaders();
  for await (const chunk of body) {
    if (outgoing.destroyed) return;
    if (outgoing.write(chunk)) continue;
    const giveBack = unsent.take(caller, Buffer.byteLength(chunk));
    if (giveBack === undefined) {
      // The watcher resumes, as after any lost connection.
      outgoing.destroy();
      return;
    }
    const expected = unsent.expect(outgoing);
    await drained(outgoing);
    expected();
    giveBack();
  }
  outgoing.end();
}

/** Waits until what was written has gone, or its reader has. */
async function drained(outgoing: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  outgoing.once("drain", resolve);
  outgoing.once("close", resolve);
  await promise;
  outgoing.off("drain", resolve);
  outgoing.off("close", resolve);
}
