import { request as plainRequest } from "node:http";
import { Agent } from "node:https";
import { connect as plainConnect } from "node:net";
import { type ConnectionOptions, type TLSSocket, connect } from "node:tls";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { tlsOfFlags } from "../core/certificates/tls-profile.ts";
import type { ConfigAnswer, ConfigHandler, ConfigListenLimits, ConfigListener } from "../ports/listener.ts";
import { configListen } from "../ports/node/index.ts";
import { sourceGroup } from "../core/join/source-group.ts";
import { defaultConnections } from "./run-server.ts";
import { type TestAuthority, testAuthority } from "../../test/support/test-pki.ts";
import { send, shownBy } from "../../test/support/server-harness.ts";

interface Listening {
  readonly listener: ConfigListener;
  readonly authority: TestAuthority;
  readonly refused: string[];
}

const hello: ConfigHandler = () =>
  Promise.resolve({ status: 200, headers: { "content-type": "text/plain" }, body: Buffer.from("hello") });

async function listening(
  handle: ConfigHandler = hello,
  limits: Partial<ConfigListenLimits> = {},
  flags: readonly [string | undefined, readonly string[] | undefined] = [undefined, undefined],
  sourceOf: (address: string) => string = sourceGroup,
): Promise<Listening> {
  const authority = await testAuthority();
  const decided = tlsOfFlags(...flags);
  if (decided.verdict === "refused") throw new Error(decided.reason);
  const refused: string[] = [];
  const listener = await configListen(
    {
      host: "127.0.0.1",
      port: 0,
      tls: await authority.server("127.0.0.1"),
      settings: decided.settings,
      limits: { ...defaultConnections, ...limits },
      sourceOf,
      onRefused: (why) => void refused.push(why),
    },
    handle,
  );
  onTestFinished(() => listener.close(0));
  return { listener, authority, refused };
}

/** Opens a connection and returns what it received until it was closed. */
function raw(
  { listener, authority }: Listening,
  options: ConnectionOptions = {},
): Promise<{ readonly socket: TLSSocket; readonly closed: Promise<string> }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: listener.port, ca: authority.certificate, ...options });
    onTestFinished(() => void socket.destroy());
    let heard = "";
    const closed = new Promise<string>((done) => socket.once("close", () => done(heard)));
    socket.on("data", (chunk: Buffer) => (heard += chunk.toString("latin1")));
    socket.once("secureConnect", () => resolve({ socket, closed }));
    socket.on("error", reject);
  });
}

const statusOf = (heard: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(heard)?.[1]);

describe("TLS", () => {
  test("accepts 1.2 and 1.3, nothing older, and only HTTP/1.1 [server-listener-2]", async () => {
    const it = await listening();
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const { socket } = await raw(it, { minVersion: version, maxVersion: version, ALPNProtocols: ["h2", "http/1.1"] });
      expect([socket.getProtocol(), socket.alpnProtocol]).toEqual([version, "http/1.1"]);
      socket.destroy();
    }
    await expect(
      raw(it, { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" }),
    ).rejects.toThrow();
    await expect(raw(it, { ALPNProtocols: ["h2"] })).rejects.toThrow();
  });

  test("Modern accepts only 1.3, and a list of ciphers is respected [server-listener-3]", async () => {
    const modern = await listening(hello, {}, ["VersionTLS13", undefined]);
    await expect(raw(modern, { maxVersion: "TLSv1.2" })).rejects.toThrow();
    expect((await raw(modern)).socket.getProtocol()).toBe("TLSv1.3");
    const one = await listening(hello, {}, ["VersionTLS12", ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]]);
    expect((await raw(one)).socket.getCipher().name).toBe("ECDHE-ECDSA-AES256-GCM-SHA384");
    await expect(raw(one, { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" })).rejects.toThrow();
  });

  test("new connections get a new certificate, and open ones continue [server-listener-4]", async () => {
    const it = await listening();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const ask = () => send(it.listener.port, it.authority.certificate, { agent });
    await ask();
    const kept = Object.values(agent.freeSockets).flat()[0] as TLSSocket;
    const before = shownBy(kept);
    it.listener.swap(await it.authority.server("127.0.0.1"));
    expect((await ask()).text).toBe("hello");
    expect(Object.values(agent.freeSockets).flat()[0]).toBe(kept);
    const { socket } = await raw(it);
    expect(shownBy(socket)).not.toBe(before);
  });

  test("a certificate with a foreign key is refused, and the previous one stays [server-listener-5]", async () => {
    const it = await listening();
    const before = shownBy((await raw(it)).socket);
    const [one, other] = [await it.authority.server("127.0.0.1"), await it.authority.server("127.0.0.1")];
    expect(() => it.listener.swap({ certificate: one.certificate, key: other.key })).toThrow();
    expect(shownBy((await raw(it)).socket)).toBe(before);
  });

  test("a client without TLS gets no answer [server-listener-1]", async () => {
    const it = await listening();
    const error = await new Promise<Error>((resolve) => {
      const call = plainRequest({ host: "127.0.0.1", port: it.listener.port, path: "/config/worker" }, () =>
        resolve(new Error("it was answered")),
      );
      call.once("error", resolve);
      call.end();
    });
    expect(error.message).toMatch(/hang up|ECONNRESET/);
    expect(it.refused).toContain("NoHandshake");
  });
});

describe("the listener limits", () => {
  test("headers, by their bytes and by their number [server-listener-6]", async () => {
    const it = await listening(hello, { headerBytes: 4096, headers: 20 });
    const large = await raw(it);
    large.socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx-large: ${"x".repeat(8000)}\r\n\r\n`);
    expect(statusOf(await large.closed)).toBe(431);
    const line = await raw(it);
    line.socket.write(`GET /${"x".repeat(8000)} HTTP/1.1\r\nhost: a\r\n\r\n`);
    expect(statusOf(await line.closed)).toBe(431);
    const many = await raw(it);
    many.socket.write(
      `GET / HTTP/1.1\r\nhost: a\r\n${Array.from({ length: 40 }, (_, index) => `x-${index}: 1\r\n`).join("")}\r\n`,
    );
    expect(statusOf(await many.closed)).toBe(431);
    expect(it.refused).toEqual(["HeadersTooLarge", "HeadersTooLarge", "HeadersTooLarge"]);
    const enough = await raw(it);
    enough.socket.write(
      `GET / HTTP/1.1\r\nhost: a\r\n${Array.from({ length: 18 }, (_, index) => `x-${index}: 1\r\n`).join("")}connection: close\r\n\r\n`,
    );
    expect(statusOf(await enough.closed)).toBe(200);
  });

  test("bodies, announced or not, by refusing them [server-listener-7]", async () => {
    const it = await listening();
    for (const request of [
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
      "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1000000000\r\n\r\n",
    ]) {
      const { socket, closed } = await raw(it);
      socket.write(request);
      expect(statusOf(await closed), request).toBe(413);
    }
  });

  test.for([
    "hello\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    "\u0000\u0001\u0002\u0003\r\n\r\n",
  ])("%j is no request [server-listener-8]", async (text) => {
    const it = await listening();
    const { socket, closed } = await raw(it);
    socket.write(text);
    expect(statusOf(await closed)).toBe(400);
  });

  test("slow or missing headers, by closing the connection [server-listener-9]", async () => {
    const it = await listening(hello, { headersMs: 50 });
    const [silent, slow] = [await raw(it), await raw(it)];
    slow.socket.write("GET / HTTP/1.1\r\nhost:");
    expect(statusOf(await slow.closed)).toBe(408);
    expect([408, Number.NaN]).toContain(statusOf(await silent.closed));
    // Nor does the handshake take longer.
    const bare = plainConnect({ host: "127.0.0.1", port: it.listener.port });
    await new Promise<void>((resolve) => bare.once("close", () => resolve()).resume());
  });

  test("slow readers, which lose their answer; the handler learns that it did not arrive [server-listener-10]", async () => {
    const body = Buffer.alloc(64 * 1024 * 1024, "x");
    let tell: (how: "whole" | "broken" | "unsent") => void = () => undefined;
    const how = new Promise<"whole" | "broken" | "unsent">((resolve) => (tell = resolve));
    const it = await listening(() => Promise.resolve({ status: 200, headers: {}, body, onEnd: tell }), {
      takeMs: 100,
      leastBytesPerSecond: 1e12,
    });
    const { socket, closed } = await raw(it);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    expect(await how).toBe("broken");
    socket.resume();
    expect((await closed).length).toBeLessThan(body.length);
  });

  test("but a large answer arrives whole, which is reported once [server-listener-11]", async () => {
    const body = Buffer.alloc(5 * 1024 * 1024, "0123456789");
    const told: string[] = [];
    const it = await listening(() =>
      Promise.resolve({ status: 200, headers: {}, body, onEnd: (how) => void told.push(how) }),
    );
    const got = await send(it.listener.port, it.authority.certificate, {});
    expect(got.headers["content-length"]).toBe(String(body.length));
    expect(got.body.equals(body)).toBe(true);
    // The client may have all of it before the server hears so.
    await vi.waitFor(() => expect(told).toEqual(["whole"]), { timeout: 300_000, interval: 5 });
  });

  test("connections, of one source and of all [server-listener-12]", async () => {
    const it = await listening(hello, { connectionsOfOneSource: 2 });
    await raw(it);
    await raw(it);
    await expect(raw(it)).rejects.toThrow();
    expect(it.refused).toContain("TooManyConnections");
    const all = await listening(hello, { connections: 1 });
    await raw(all);
    await expect(raw(all)).rejects.toThrow();
  });

  test("connections of all addresses of one source [server-listener-16]", async () => {
    const it = await listening(hello, { connectionsOfOneSource: 2 }, undefined, (address) => address.slice(0, 8));
    const from = (localAddress: string) =>
      new Promise<boolean>((resolve) => {
        const socket = plainConnect({ host: "127.0.0.1", port: it.listener.port, localAddress });
        onTestFinished(() => void socket.destroy());
        socket.once("error", () => resolve(false)).once("close", () => resolve(false));
        socket.once("connect", () => setTimeout(() => resolve(!socket.destroyed), 100));
      });
    expect([await from("127.0.0.1"), await from("127.0.0.2"), await from("127.0.0.3")]).toEqual([true, true, false]);
    expect(it.refused).toContain("TooManyConnections");
  });

  test("idle connections, by closing them [server-listener-13]", async () => {
    const it = await listening(hello, { idleMs: 30 });
    const { socket, closed } = await raw(it);
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    expect(statusOf(await closed)).toBe(200);
  });
});

test("a closing listener accepts no connections, and lets current answers finish [server-listener-14]", async () => {
  let answer: (given: ConfigAnswer) => void = () => undefined;
  let asked: () => void = () => undefined;
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  const it = await listening(() => {
    asked();
    return new Promise((resolve) => (answer = resolve));
  });
  const underWay = send(it.listener.port, it.authority.certificate, {});
  await isAsked;
  const closing = it.listener.close(5000);
  await expect(send(it.listener.port, it.authority.certificate, {})).rejects.toThrow();
  answer({ status: 200, headers: {}, body: Buffer.from("last") });
  const got = await underWay;
  expect([got.text, got.headers["connection"]]).toEqual(["last", "close"]);
  await closing;
});

test("closing does not wait forever [server-listener-15]", async () => {
  const it = await listening(() => new Promise<ConfigAnswer>(() => undefined));
  const { socket, closed } = await raw(it);
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await it.listener.close(20);
  expect(await closed).toBe("");
  await expect(raw(it)).rejects.toThrow("ECONNREFUSED");
});

test("the listener uses only loopback addresses unless configured otherwise", async () => {
  const { authority } = await listening();
  const decided = tlsOfFlags(undefined, undefined);
  if (decided.verdict === "refused") throw new Error(decided.reason);
  await expect(
    configListen(
      {
        host: "0.0.0.0",
        port: 0,
        tls: await authority.server("127.0.0.1"),
        settings: decided.settings,
        limits: defaultConnections,
        sourceOf: sourceGroup,
        onRefused: () => undefined,
      },
      hello,
    ),
  ).rejects.toThrow(/not a loopback/);
});
