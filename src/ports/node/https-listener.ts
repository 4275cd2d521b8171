import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import type { ClientIdentity, Listen } from "../listener.ts";

const bodyLimitBytes = 3 * 1024 * 1024;

const list = (value: string | string[] | undefined): readonly string[] => (value === undefined ? [] : Array.isArray(value) ? value : [value]);

function identityOf(socket: TLSSocket): ClientIdentity | undefined {
  if (!socket.authorized) return undefined;
  const { subject } = socket.getPeerCertificate();
  const name = list(subject?.CN)[0];
  return name === undefined ? undefined : { commonName: name, organizations: list(subject.O) };
}

/** HTTPS over Node.js; on loopback only, unless the caller asks for the network. */
export const httpsListen: Listen = async (options, handle, signal) => {
  if (options.network !== true && !options.host.startsWith("127.") && options.host !== "::1" && options.host !== "localhost") throw new Error(`refusing to listen on ${options.host}: not a loopback address`);
  const server = createServer(
    {
      cert: options.tls.certificate,
      key: options.tls.key,
      ...(options.tls.clientCa === undefined ? {} : { ca: options.tls.clientCa, requestCert: true, rejectUnauthorized: false }),
      minVersion: "TLSv1.2",
    },
    (incoming, outgoing) => {
      const gone = new AbortController();
      outgoing.once("close", () => gone.abort(new Error("the client went away")));
      const chunks: Buffer[] = [];
      let size = 0;
      incoming.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > bodyLimitBytes) incoming.destroy();
        else chunks.push(chunk);
      });
      incoming.once("end", () => {
        void (async () => {
          try {
            const headers = Object.fromEntries(Object.entries(incoming.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]])));
            const response = await handle({ method: incoming.method ?? "GET", target: incoming.url ?? "/", headers, body: Buffer.concat(chunks) }, identityOf(incoming.socket as TLSSocket), gone.signal);
            outgoing.writeHead(response.status, Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]])));
            outgoing.flushHeaders();
            if (typeof response.body === "string" || response.body instanceof Uint8Array) outgoing.end(response.body);
            else {
              for await (const chunk of response.body) if (!outgoing.write(chunk)) await new Promise((resolve) => outgoing.once("drain", resolve).once("close", resolve));
              outgoing.end();
            }
          } catch (error) {
            if (!outgoing.headersSent) outgoing.writeHead(500);
            outgoing.end(gone.signal.aborted ? "" : String(error));
          }
        })();
      });
    },
  );
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
};
