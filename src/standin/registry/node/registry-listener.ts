import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Logger } from "../../../ports/logger.ts";
import type { RegistryHandler } from "../parts.ts";

export interface RegistryListenerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** PEM */
  readonly tls: { readonly certificate: string; readonly key: string };
  readonly log: Logger;
}

/** Limits for clients: connections, the time for the headers and for a whole request, and idle time. */
const limits = { connections: 256, headersMs: 15_000, requestMs: 3_600_000, quietMs: 60_000 } as const;

/** Serves a registry over TLS until the signal aborts, on loopback. Resolves when it listens. */
export async function listenRegistry(
  options: RegistryListenerOptions,
  handle: RegistryHandler,
  signal: AbortSignal,
): Promise<{ readonly port: number }> {
  if (!options.host.startsWith("127.") && options.host !== "::1")
    throw new Error(`refusing to listen on ${options.host}: not a loopback address`);
  const { certificate: cert, key } = options.tls;
  const server = createServer(
    {
      cert,
      key,
      minVersion: "TLSv1.2",
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      maxHeaderSize: 16_384,
    },
    (incoming, outgoing) => {
      answer(incoming, outgoing, handle).catch((error: unknown) => {
        if (!outgoing.destroyed) options.log.warn({ error, method: incoming.method }, "a request was not answered");
        if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(500, { connection: "close" }).end();
      });
    },
  );
  server.maxConnections = limits.connections;
  server.setTimeout(limits.quietMs);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
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

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, handle: RegistryHandler): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort(new Error("the client went away")));
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
  const response = await handle(
    { method: incoming.method ?? "GET", target: incoming.url ?? "/", headers, body: incoming },
    gone.signal,
  );
  // The unread rest of the request would be parsed as the next one.
  const unread =
    incoming.readableEnded ||
    headers["content-length"] === "0" ||
    (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined)
      ? {}
      : { connection: "close" };
  outgoing.writeHead(response.status, {
    ...(Object.fromEntries(
      Object.entries(response.headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
    ) as Record<string, string | string[]>),
    ...unread,
  });
  if (incoming.method === "HEAD" || response.body === "") outgoing.end();
  else if (typeof response.body === "string" || response.body instanceof Uint8Array) outgoing.end(response.body);
  else await pipeline(Readable.from(response.body, { objectMode: false }), outgoing);
}
