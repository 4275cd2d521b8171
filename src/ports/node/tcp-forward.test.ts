import { type Server, connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
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

test("connections go to all backends in turn, skipping unreachable ones, and the last bytes arrive", async () => {
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

test("a connection without a backend is closed; nothing listens beyond loopback", async () => {
  const { port } = await forward({ host: "127.0.0.1", port: 0, to: () => [], log: silentLogger }, ending.signal);
  expect(await talk(port, "x")).toBe("");
  await expect(forward({ host: "0.0.0.0", port: 0, to: () => [], log: silentLogger }, ending.signal)).rejects.toThrow(
    "not a loopback address",
  );
});

test("a backend sees the source address of a connection", async () => {
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

test("a connection waits for what has to happen before, and is closed if that fails", async () => {
  const port = await echo("late");
  const begun: PromiseWithResolvers<void>[] = [];
  const listening = await forward(
    {
      host: "127.0.0.1",
      port: 0,
      to: () => [{ host: "127.0.0.1", port }],
      before: () => {
        const one = Promise.withResolvers<void>();
        begun.push(one);
        return one.promise;
      },
      log: silentLogger,
    },
    ending.signal,
  );
  const heard = [talk(listening.port, "a"), talk(listening.port, "b")];
  await vi.waitFor(() => expect(begun).toHaveLength(2));
  begun[1]?.reject(new Error("it does not start"));
  begun[0]?.resolve();
  expect((await Promise.all(heard)).toSorted()).toEqual(["", expect.stringMatching(/^late:[ab]$/) as string]);
});
