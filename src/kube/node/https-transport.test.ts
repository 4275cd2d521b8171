import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeAll, expect, test } from "vitest";
import { systemClock, systemProcesses, systemRandom } from "../../ports/node/index.ts";
import { type Authority, certificateAuthority } from "../certificates.ts";
import type { Connection } from "../kubeconfig.ts";
import { httpsTransport } from "./https-transport.ts";

const closers: (() => Promise<void> | void)[] = [];
let authority: Authority;
/** Of the same name, as one is that takes the place of another. */
let other: Authority;
const served = { commonName: "server", usage: "server", hosts: ["127.0.0.1"] } as const;

beforeAll(async () => {
  const make = () => certificateAuthority({ name: "test-ca", clock: systemClock, random: systemRandom });
  [authority, other] = [await make(), await make()];
});

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const { certificate, key } = await authority.issue(served);
  const server = createServer(
    { cert: certificate, key, ca: authority.certificate, requestCert: true, rejectUnauthorized: false },
    answer,
  );
  const sockets = new Set<Socket>();
  server.on("secureConnection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return { server, sockets, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A transport whose credentials lie on a disk of the test's own. */
function transportOn(connection: Connection, files: Record<string, string> = {}) {
  const disk = { connection, files };
  const transport = httpsTransport({
    connection,
    reread: async () => disk.connection,
    clock: systemClock,
    files: { readText: async (path) => files[path] },
    processes: systemProcesses,
    environment: {},
  });
  closers.push(() => transport.close());
  const ask = (method = "GET", more: { readonly mostBytes?: number } = {}) =>
    transport.exchange({ method, target: "/", headers: {}, ...more }, new AbortController().signal);
  return { disk, ask };
}

test("a token that the server no longer takes is read again, and the request sent once more", async () => {
  let good = "Bearer one";
  const { url } = await serve((request, response) =>
    response.writeHead(request.headers.authorization === good ? 200 : 401).end(),
  );
  const { ask, disk } = transportOn(
    { server: url, ca: authority.certificate, tokenFile: "/token" },
    { "/token": "one" },
  );
  expect((await ask("POST")).status).toBe(200);
  good = "Bearer two";
  expect((await ask("POST")).status).toBe(401);
  disk.files["/token"] = "two";
  expect((await ask("POST")).status).toBe(200);
});

test("authorities are read again when the server comes with a certificate that they do not vouch for", async () => {
  const { url, server, sockets } = await serve((_, response) => response.end());
  const { ask, disk } = transportOn({ server: url, ca: authority.certificate });
  expect((await ask()).status).toBe(200);
  const { certificate, key } = await other.issue(served);
  server.setSecureContext({ cert: certificate, key });
  for (const socket of sockets) socket.destroy();
  await expect(ask("POST")).rejects.toThrow();
  disk.connection = { ...disk.connection, ca: `${authority.certificate}${other.certificate}` };
  expect((await ask("POST")).status).toBe(200);
});

test("a client certificate that has been replaced is shown on new connections", async () => {
  const subjects: string[] = [];
  let good = "one";
  const { url } = await serve((request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    subjects.push(String(subject?.CN));
    response.writeHead(subject?.CN === good ? 200 : 401).end();
  });
  const [first, second] = [
    await authority.issue({ commonName: "one", usage: "client" }),
    await authority.issue({ commonName: "two", usage: "client" }),
  ];
  const { ask, disk } = transportOn({
    server: url,
    ca: authority.certificate,
    certificate: first.certificate,
    key: first.key,
  });
  expect((await ask()).status).toBe(200);
  good = "two";
  disk.connection = { ...disk.connection, certificate: second.certificate, key: second.key };
  expect((await ask()).status).toBe(200);
  expect(subjects).toEqual(["one", "one", "two"]);
});

test("a kept connection that the server had closed costs a reader nothing", async () => {
  let requests = 0;
  const { url } = await serve((request, response) => {
    requests += 1;
    // The second one on a connection is cut off without an answer, as by a server that has just gone.
    if (requests === 2) request.socket.destroy();
    else response.end("here");
  });
  const { ask } = transportOn({ server: url, ca: authority.certificate });
  expect((await ask()).body).toBe("here");
  expect((await ask()).body).toBe("here");
  expect(requests).toBe(3);
});

test("a write that was cut off on a kept connection is not sent again: the server may have done it", async () => {
  let requests = 0;
  const { url } = await serve((request, response) => {
    requests += 1;
    if (requests === 2) request.socket.destroy();
    else response.end("here");
  });
  const { ask } = transportOn({ server: url, ca: authority.certificate });
  await ask();
  await expect(ask("POST")).rejects.toThrow();
  expect(requests).toBe(2);
});

test("an answer that is cut short is a failure", async () => {
  const { url } = await serve((request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("half", () => request.socket.destroy());
  });
  const { ask } = transportOn({ server: url, ca: authority.certificate });
  await expect(ask()).rejects.toThrow();
});

test("an answer without end is read up to what its reader takes, and its connection closed [kube-transport-1]", async () => {
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024, "a");
  const closed = Promise.withResolvers<void>();
  const { url } = await serve((_, response) => {
    response.once("close", () => closed.resolve());
    const more = () => {
      while (!response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) return;
      }
    };
    response.on("drain", more);
    more();
  });
  const { ask } = transportOn({ server: url, ca: authority.certificate });
  const mostBytes = 1024 * 1024;
  await expect(ask("GET", { mostBytes })).rejects.toThrow(`more than ${mostBytes} bytes`);
  await closed.promise;
  // What lies in the buffers of both ends is some MiB.
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

test("an answer of exactly what its reader takes is read", async () => {
  const { url } = await serve((_, response) => response.end("12345"));
  const { ask } = transportOn({ server: url, ca: authority.certificate });
  expect((await ask("GET", { mostBytes: 5 })).body).toBe("12345");
  await expect(ask("GET", { mostBytes: 4 })).rejects.toThrow("more than 4 bytes");
  expect((await ask()).body).toBe("12345");
});

test("a connection that acts as another user says so in each request, a group in a line of its own [https-transport-1]", async () => {
  const seen: NodeJS.Dict<string[]>[] = [];
  const { url } = await serve((request, response) => {
    seen.push(request.headersDistinct);
    response.end("{}");
  });
  const extra = { "Example.com/k": ["v", "w"] };
  const impersonate = { user: "jane", uid: "7", groups: ["a", "b"], extra };
  const { ask } = transportOn({ server: url, ca: authority.certificate, impersonate });
  await ask();
  expect(seen[0]).toMatchObject({
    "impersonate-user": ["jane"],
    "impersonate-uid": ["7"],
    "impersonate-group": ["a", "b"],
    "impersonate-extra-example.com%2fk": ["v", "w"],
  });
});
