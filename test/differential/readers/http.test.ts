import { connect } from "node:tls";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { tlsOfFlags } from "../../../src/core/certificates/tls-profile.ts";
import { sourceGroup } from "../../../src/core/join/source-group.ts";
import type { ConfigListener, ConfigRequest } from "../../../src/ports/listener.ts";
import { configListen } from "../../../src/ports/node/index.ts";
import { defaultConnections } from "../../../src/server/run-server.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { type TestAuthority, testAuthority } from "../../support/test-pki.ts";
import { mutated } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(200, 1500);

const get = "GET /config/worker HTTP/1.1\r\nHost: a\r\n";
const second = "GET /config/master HTTP/1.1\r\nHost: b\r\n\r\n";
const lines = [
  "Content-Length: 0",
  "Content-Length: 5",
  "Content-Length: +0",
  "Content-Length: 0, 0",
  "Content-Length : 0",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: \u000bchunked",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding:",
  "Host: c",
  "Host:",
  "Host: a b",
  "Authorization: Bearer one",
  "Authorization: Bearer two",
  "authorization:Bearer three",
  "Accept: a",
  "Accept: b",
  "X: y\r\n folded",
  "X: y\r\n\tContent-Length: 3",
  "X: y\nContent-Length: 3",
  "X: y\rZ: 1",
  " X: y",
  "X y",
  ": empty",
  "X\u0000: y",
  "X: y\u0000",
  "X: \u0080\u00ff",
  "Expect: 100-continue",
  "Connection: close",
  "Upgrade: h2c",
  `X: ${"y".repeat(20_000)}`,
];
const startLines = [
  "GET /config/worker HTTP/1.1",
  "GET http://other/config/master HTTP/1.1",
  "GET /config/worker HTTP/1.0",
  "GET /config/worker HTTP/2.0",
  "GET /config/worker HTTP/0.9",
  "GET /config/worker HTTP/1.2",
  "GET /config/worker",
  "get /config/worker HTTP/1.1",
  "HEAD /config/worker?a=b#c HTTP/1.1",
  "GET  /config/worker HTTP/1.1",
  "GET /config/worker  HTTP/1.1",
  "GET\t/config/worker HTTP/1.1",
  "GET //config/worker HTTP/1.1",
  "GET /config/%77orker HTTP/1.1",
  "GET /config/worker%2f..%2fmaster HTTP/1.1",
  "GET /config/worker/../master HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "CONNECT a:1 HTTP/1.1",
  "POST /config/worker HTTP/1.1",
  "PRI * HTTP/2.0",
];
const requests = mutated(
  fc.oneof(
    fc
      .tuple(fc.array(fc.constantFrom(...lines), { maxLength: 4 }), fc.constantFrom("", "0\r\n\r\n", "hello", second))
      .map(([headers, body]) => `${get}${headers.map((line) => `${line}\r\n`).join("")}\r\n${body}`),
    fc
      .tuple(fc.constantFrom(...startLines), fc.array(fc.constantFrom(...lines), { maxLength: 2 }))
      .map(
        ([first, headers]) => `${first}\r\nHost: a\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n${second}`,
      ),
  ),
  ["\r\n", "\n", "\r", " ", "\t", ":", "\u0000", "\u000b", "\u00a0", ",", ";", "/", "?", "#", "%00", "é"],
);

/** Node reads several blanks in a request line as one, which RFC 9112 §3 allows; Go refuses them. */
const withSingleBlanks = (text: string) => text.replaceAll(/(?<=^|\n)([A-Z]+) +(\S+) +(?=HTTP)/g, "$1 $2 ");

/** What the config server serves, an intermediary in Go (a load balancer, a proxy) has to see in the same way. */
describe.skipIf(program === undefined)("requests, as Go's server reads them", () => {
  let go: GoReaders;
  let authority: TestAuthority;
  let listener: ConfigListener;
  let served: ConfigRequest[] = [];

  beforeAll(async () => {
    go = startGoReaders(program ?? "");
    authority = await testAuthority();
    const decided = tlsOfFlags(undefined, undefined);
    if (decided.verdict === "refused") throw new Error(decided.reason);
    listener = await configListen(
      {
        host: "127.0.0.1",
        port: 0,
        tls: await authority.server("127.0.0.1"),
        settings: decided.settings,
        limits: { ...defaultConnections, connectionsOfOneSource: 1000 },
        sourceOf: sourceGroup,
        onRefused: () => undefined,
      },
      (request) => {
        served.push(request);
        return Promise.resolve({ status: 200, headers: {}, body: Buffer.from("x") });
      },
    );
  });
  beforeEach(() => {
    served = [];
  });
  afterAll(async () => {
    await listener.close(0);
    await go.close();
  });

  /** Sends the bytes of one client, which then ends, and waits until the server has closed. */
  const ours = async (bytes: Uint8Array): Promise<readonly ConfigRequest[]> => {
    served = [];
    await new Promise<void>((resolve) => {
      const socket = connect({ host: "127.0.0.1", port: listener.port, ca: authority.certificate });
      socket.once("secureConnect", () => socket.end(bytes));
      socket.on("data", () => undefined);
      socket.on("error", () => undefined);
      socket.once("close", () => resolve());
    });
    return served;
  };

  test(
    "each request that is served is one that Go reads, with the same method, target, host and headers [readers-http-1]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(requests, async (text) => {
          const bytes = Buffer.from(text, "latin1");
          const mine = await ours(bytes);
          const { requests: theirs = [] } = await go.ask("http", Buffer.from(withSingleBlanks(text), "latin1"));
          both += mine.length;
          expect(mine.length).toBeLessThanOrEqual(theirs.length);
          for (const [i, { method, target, headers }] of mine.entries()) {
            const other = theirs[i];
            expect({ method, target, hasBody: false, host: headers["host"] ?? "" }).toEqual({
              method: other?.method,
              target: other?.target,
              hasBody: other?.hasBody,
              host: other?.host,
            });
            for (const [name, values] of Object.entries(other?.headers ?? {}))
              expect([name, Buffer.from(headers[name.toLowerCase()] ?? "", "latin1").toString()]).toEqual([
                name,
                ["Authorization"].includes(name) ? values[0] : values.join(", "),
              ]);
          }
        }),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 20);
    },
  );
});
