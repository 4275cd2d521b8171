import { type Server, connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { silentLogger } from "../logger.ts";
import { forward } from "./tcp-forward.ts";

const servers: Server[] = [];
let ending = new AbortController();
afterEach(async () => {
  ending.abort();
  ending = new AbortController();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** Says its name, and then everything back. */
async function echo(name: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const talk = (port: number, words: string) =>
  new Promise<string>((resolve) => {
    let heard = "";
    const socket = connect({ host: "127.0.0.1", port });
    socket.on("data", (chunk) => (heard += chunk.toString()));
    socket.on("error", () => undefined);
    socket.once("close", () => resolve(heard));
    socket.end(words);
  });

test("connections are led to all places in turn, past those where nobody is, and what was said last arrives", async () => {
  const [a, b] = [await echo("a"), await echo("b")];
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const nobody = (gone.address() as AddressInfo).port;
  await new Promise((resolve) => gone.close(resolve));
  const { port } = await forward(
    {
      host: "127.0.0.1",
      port: 0,
      to: () => [a, nobody, b].map((to) => ({ host: "127.0.0.1", port: to })),
      log: silentLogger,
    },
    ending.signal,
  );
  const heard = await Promise.all(Array.from({ length: 9 }, (_, index) => talk(port, `word ${index}`)));
  expect(heard.map((text, index) => text.endsWith(`:word ${index}`))).toEqual(heard.map(() => true));
  expect(new Set(heard.map((text) => text[0]))).toEqual(new Set(["a", "b"]));
});

test("a connection that nobody takes is closed; elsewhere than on loopback nobody listens", async () => {
  const { port } = await forward({ host: "127.0.0.1", port: 0, to: () => [], log: silentLogger }, ending.signal);
  expect(await talk(port, "x")).toBe("");
  await expect(forward({ host: "0.0.0.0", port: 0, to: () => [], log: silentLogger }, ending.signal)).rejects.toThrow(
    "not a loopback address",
  );
});

test("whoever takes a connection sees where it came from", async () => {
  const server = createServer((socket) => void socket.end(socket.remoteAddress ?? ""));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = await forward(
    {
      host: "127.0.0.1",
      port: 0,
      to: () => [{ host: "127.0.0.1", port: (server.address() as AddressInfo).port }],
      log: silentLogger,
    },
    ending.signal,
  );
  const seen = await new Promise<string>((resolve) => {
    let heard = "";
    connect({ host: "127.0.0.1", port, localAddress: "127.7.7.7" })
      .on("data", (chunk) => (heard += chunk.toString()))
      .once("close", () => resolve(heard));
  });
  expect(seen).toBe("127.7.7.7");
});
