import { once } from "node:events";
import { type RequestOptions, request } from "node:https";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type TestAuthority, testAuthority } from "../../../test/support/test-pki.ts";
import type { ListenLimits, ServerHandler } from "../listener.ts";
import { httpListen, httpsListen } from "./https-listener.ts";

const ample: ListenLimits = {
  connections: 100,
  connectionsOfOneSource: 100,
  requests: 100,
  arriveMs: 10_000,
  requestMs: 10_000,
  bodyBytes: 1000,
  burst: 100,
  perSecond: 100,
  sourceOf: (address) => address,
};
const hello: ServerHandler = () => Promise.resolve({ status: 200, headers: {}, body: "hello" });
const never: ServerHandler = () => new Promise(() => undefined);

interface Listening {
  readonly port: number;
  readonly authority: TestAuthority;
}

async function listening(handle: ServerHandler, limits: Partial<ListenLimits>): Promise<Listening> {
  const authority = await testAuthority();
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const tls = await authority.server("127.0.0.1");
  const options = { host: "127.0.0.1", port: 0, tls, limits: { ...ample, ...limits } };
  const { port } = await httpsListen(options, handle, stopping.signal);
  return { port, authority };
}

/** A connection that sends nothing. */
async function openFrom({ port }: Listening, localAddress: string): Promise<{ readonly closed: Promise<unknown> }> {
  const socket = connect({ host: "127.0.0.1", port, localAddress });
  onTestFinished(() => void socket.destroy());
  const closed = once(socket, "close");
  await once(socket, "connect");
  return { closed };
}

/** @returns status and text, or `broken`. */
const post = (
  { port, authority }: Listening,
  body: string,
  headers: Readonly<Record<string, string>> = {},
  more: Pick<RequestOptions, "path" | "localAddress"> = {},
) =>
  new Promise<string>((resolve) => {
    const call = request(
      { host: "127.0.0.1", port, ca: authority.certificate, method: "POST", headers, agent: false, ...more },
      (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
        answer.once("end", () => resolve(`${answer.statusCode} ${text.trim()}`));
        answer.once("error", () => resolve(`${answer.statusCode} ${text.trim()}`));
      },
    );
    call.once("error", () => resolve("broken"));
    call.end(body);
  });

test("a body over the limit is refused, announced or not [ports-listen-gate-1]", async () => {
  const it = await listening(hello, { bodyBytes: 10 });
  expect(await post(it, "x".repeat(10))).toBe("200 hello");
  expect(await post(it, "x".repeat(11), { "content-length": "11" })).toBe("413 the body is longer than 10 bytes");
  expect(await post(it, "x".repeat(11), { "transfer-encoding": "chunked" })).toMatch(/^413|^broken/);
});

test("requests under way have a bound, and so has the time of one [ports-listen-gate-2]", async () => {
  const it = await listening(never, { requests: 1, requestMs: 500 });
  const first = post(it, "");
  expect(await Promise.any([post(it, ""), post(it, "")])).toBe("503 too many requests are under way");
  expect(await first).toMatch(/^503 /);
  expect(await post(it, "")).toBe("503 the request was not answered within 500 ms");
});

test("a request whose body never ends is ended [ports-listen-gate-3]", async () => {
  const it = await listening(hello, { requestMs: 200 });
  expect(await post(it, "x", { "content-length": "100" })).toMatch(/^503|^broken/);
});

test("a source has its burst of requests [ports-listen-gate-4]", async () => {
  const it = await listening(hello, { burst: 2, perSecond: 0.001 });
  expect([await post(it, ""), await post(it, "")]).toEqual(["200 hello", "200 hello"]);
  expect(await post(it, "")).toBe("429 this source sends more requests than it may");
});

test("a source has so many connections [ports-listen-gate-5]", async () => {
  const it = await listening(never, { connectionsOfOneSource: 1, requestMs: 500 });
  const first = post(it, "");
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await post(it, "")).toBe("broken");
  expect(await first).toMatch(/^503 /);
});

test("a source with many connections keeps none out that has fewer, and loses none with a request [ports-listen-gate-6]", async () => {
  const [isAsked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const handle: ServerHandler = async ({ target }) => {
    if (target === "/held") {
      isAsked.resolve();
      await answered.promise;
    }
    return { status: 200, headers: {}, body: "hello" };
  };
  const it = await listening(handle, { connections: 3 });
  const held = post(it, "", {}, { path: "/held" });
  await isAsked.promise;
  const first = await openFrom(it, "127.0.0.1");
  await openFrom(it, "127.0.0.1");
  expect(await post(it, "", {}, { localAddress: "127.0.0.2" })).toBe("200 hello");
  await first.closed;
  answered.resolve();
  expect(await held).toBe("200 hello");
});

test("a request that does not arrive is not waited for [ports-listen-gate-8]", async () => {
  const it = await listening(hello, { arriveMs: 100 });
  const { closed } = await openFrom(it, "127.0.0.1");
  await expect(closed).resolves.toHaveLength(1);
});

test("the limits hold without TLS, too [ports-listen-gate-7]", async () => {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const limits = { ...ample, bodyBytes: 0 };
  const { port } = await httpListen({ host: "127.0.0.1", port: 0, limits }, hello, stopping.signal);
  const url = `http://127.0.0.1:${port}/`;
  expect((await fetch(url)).status).toBe(200);
  expect((await fetch(url, { method: "POST", body: "x" })).status).toBe(413);
});
