import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:tls";
import { afterEach, beforeAll, expect, test } from "vitest";
import { type TestAuthority, testAuthority } from "../../../../test/support/test-pki.ts";
import type { HttpResponse } from "../../../ports/http.ts";
import { systemClock } from "../../../ports/node/index.ts";
import { listen } from "./listener.ts";
import type { UnsentLimits } from "./unsent-answers.ts";

let authority: TestAuthority;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await testAuthority();
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const megabyte = 1024 * 1024;
/** More than the sockets of a connection hold. */
const long = "x".repeat(20 * megabyte);

/** A listener whose every answer is long; a user is known by the token that it shows. */
async function start(
  answer: (target: string, signal: AbortSignal) => HttpResponse["body"] | Promise<HttpResponse["body"]>,
  unsent: UnsentLimits,
): Promise<string> {
  const listener = await listen({
    server: {
      handle: async ({ target }, _peer, signal) => ({ status: 200, headers: {}, body: await answer(target, signal) }),
      callerOf: ({ headers: { authorization: of = "" } }) => {
        const part = of.startsWith("node") ? "nodes" : of === "admin" ? "cluster" : "others";
        return Promise.resolve({ user: { name: of, groups: [] }, share: { of, part } });
      },
      close: () => {},
    },
    host: "127.0.0.1",
    port: 0,
    tls: await authority.server("127.0.0.1"),
    clientCA: authority.certificate,
    clock: systemClock,
    unsent,
  });
  closers.push(() => listener.close());
  return listener.url;
}

/** Asks, and reads nothing but the head of the answer. */
function ask(url: string, user: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { agent: false, ca: authority.certificate, headers: { authorization: user } });
    request.on("response", (answer) => {
      answer.on("error", () => {});
      resolve(answer);
    });
    request.on("error", reject);
    request.end();
    closers.push(() => request.destroy());
  });
}

/** The bytes of an answer; `lost` where the connection ends before them. */
async function read(answer: IncomingMessage): Promise<number | "lost"> {
  let bytes = 0;
  try {
    for await (const chunk of answer) bytes += (chunk as Buffer).length;
    return bytes;
  } catch {
    return "lost";
  }
}

const limits = {
  allBytes: 100 * megabyte,
  othersBytes: 100 * megabyte,
  nodesBytes: 50 * megabyte,
  callerBytes: 50 * megabyte,
  nodeBytes: 30 * megabyte,
  takenWithinMs: 60_000,
};

test("answers that one user does not take leave room for those of others [apiserver-unsent-1]", async () => {
  const url = await start(() => long, limits);
  const first = await ask(url, "eve");
  const second = await ask(url, "eve");
  const third = await ask(url, "eve");
  expect([first, second, third].map(({ statusCode }) => statusCode)).toEqual([200, 200, 429]);
  expect(await read(await ask(url, "bob"))).toBe(long.length);
  expect(await read(first)).toBe(long.length);
  // What was taken makes room.
  expect(await read(await ask(url, "eve"))).toBe(long.length);
});

test("of watches that are not read, those without room end [apiserver-unsent-2]", async () => {
  async function* lines() {
    yield await Promise.resolve(long);
    await new Promise(() => {});
  }
  const url = await start(lines, limits);
  const watches = [await ask(url, "eve"), await ask(url, "eve")];
  expect(await read(await ask(url, "eve"))).toBe("lost");
  expect(watches.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
});

test("an answer that is not taken in time ends its connection, and makes room [apiserver-unsent-3]", async () => {
  const url = await start(() => long, { ...limits, callerBytes: 30 * megabyte, takenWithinMs: 500 });
  const first = await ask(url, "eve");
  while ((await ask(url, "eve")).statusCode === 429);
  expect(await read(first)).toBe("lost");
});

test("who goes away, before or after the answer, keeps no room [apiserver-unsent-4]", async () => {
  let left = 0;
  const url = await start(async (target, signal) => {
    if (target === "/late") await new Promise((resolve) => signal.addEventListener("abort", resolve));
    left += target === "/late" ? 1 : 0;
    return long;
  }, limits);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const statusOfOne = async () => {
    const answer = await ask(url, "eve");
    await read(answer);
    return answer.statusCode;
  };
  /** Asks on three connections, and reads nothing. */
  const open = async (target: string) => {
    const request = `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: eve\r\n\r\n`;
    const sockets = await Promise.all(
      [1, 2, 3].map(async () => {
        const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", ca: authority.certificate });
        socket.on("error", () => {});
        await new Promise((resolve) => socket.once("secureConnect", () => socket.write(request, resolve)));
        return socket;
      }),
    );
    return { destroy: () => sockets.forEach((socket) => socket.destroy()) };
  };
  const after = await open("/");
  while ((await statusOfOne()) === 200);
  after.destroy();
  while ((await statusOfOne()) === 429);
  const before = await open("/late");
  expect(await statusOfOne()).toBe(200);
  before.destroy();
  while (left < 3) await turn();
  expect(await statusOfOne()).toBe(200);
});

test("what many users do not take leaves room for answers of nodes and administrators [apiserver-unsent-5]", async () => {
  const url = await start(() => long, { ...limits, othersBytes: 2 * long.length });
  const others = [await ask(url, "eve"), await ask(url, "carl"), await ask(url, "bob")];
  const node = await ask(url, "node");
  expect([...others, node].map(({ statusCode }) => statusCode)).toEqual([200, 200, 429, 200]);
});

test("what machines do not take leaves room for those of others, and of administrators [apiserver-unsent-6]", async () => {
  const url = await start(() => long, { ...limits, nodesBytes: 2 * long.length });
  const statuses: (number | undefined)[] = [];
  for (const user of ["node-a", "node-a", "node-b", "node-c", "eve", "admin", "admin"])
    statuses.push((await ask(url, user)).statusCode);
  expect(statuses).toEqual([200, 429, 200, 429, 200, 200, 200]);
});

test("a watch whose reader takes each piece late leaves nothing behind with each of them [apiserver-unsent-7]", async () => {
  const warnings: string[] = [];
  const hear = ({ name }: Error) => warnings.push(name);
  process.on("warning", hear);
  closers.push(() => process.off("warning", hear));
  async function* pieces() {
    for (let index = 0; index < 15; index += 1) yield await Promise.resolve("x".repeat(megabyte));
  }
  const url = await start(() => pieces(), limits);
  const answer = await ask(url, "eve");
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) bytes += chunk.length;
  await new Promise((resolve) => setImmediate(resolve));
  expect([bytes, warnings]).toEqual([15 * megabyte, []]);
});
