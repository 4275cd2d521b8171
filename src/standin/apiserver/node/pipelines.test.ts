import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { afterEach, beforeAll, expect, test } from "vitest";
import { collectGarbage } from "../../../../test/support/collect-garbage.ts";
import { type TestAuthority, testAuthority } from "../../../../test/support/test-pki.ts";
import { systemClock } from "../../../ports/node/index.ts";
import { listen } from "./listener.ts";
import { Pipelines, pipelineLimits } from "./pipelines.ts";

let authority: TestAuthority;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await testAuthority();
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A listener whose answers wait for some rounds of the loop, as they do for a turn. */
async function start() {
  let inProgress = 0;
  const seen = { most: 0, begun: 0, targets: [] as string[] };
  const listener = await listen({
    server: {
      async handle({ target }, _peer, signal) {
        inProgress += 1;
        seen.most = Math.max(seen.most, inProgress);
        seen.begun += 1;
        seen.targets.push(target);
        try {
          if (target === "/never") await once(signal, "abort");
          for (let rounds = 0; rounds < 3; rounds += 1) await new Promise((resolve) => setImmediate(resolve));
          return { status: 200, headers: {}, body: `answer to ${target}\n` };
        } finally {
          inProgress -= 1;
        }
      },
      callerOf: () => Promise.resolve({ user: { name: "x", groups: [] }, share: undefined }),
      close: () => {},
    },
    host: "127.0.0.1",
    port: 0,
    tls: await authority.server("127.0.0.1"),
    clientCA: authority.certificate,
    clock: systemClock,
  });
  closers.push(() => listener.close());
  const open = async (): Promise<TLSSocket> => {
    const socket = connect({ port: listener.port, host: "127.0.0.1", ca: authority.certificate });
    closers.push(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    return socket;
  };
  return { seen, open };
}

const request = (target: string) => `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`;

test("twenty thousand requests that one client sends at once are not all read, and fill nothing [apiserver-pipelines-1]", async () => {
  const { seen, open } = await start();
  const socket = await open();
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  let most = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const sample = () => {
    most = Math.max(most, process.memoryUsage().heapUsed - before);
  };
  socket.on("data", () => {
    sample();
    if (seen.most > 1_000) resolve();
  });
  socket.on("close", () => {
    sample();
    resolve();
  });
  socket.write(request("/version").repeat(20_000));
  await promise;
  expect(seen.most).toBe(1);
  expect(seen.begun).toBeLessThanOrEqual(1 + pipelineLimits.ofOneConnection);
  // Beside the text itself, which the client holds; all of them read would be more than a hundred megabytes.
  expect(most).toBeLessThan(60_000_000);
});

test("requests that wait for the ones before them are answered in their order [apiserver-pipelines-2]", async () => {
  const { seen, open } = await start();
  const socket = await open();
  const targets = Array.from({ length: 20 }, (_, index) => `/${index}`);
  let text = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    if (text.includes("answer to /last")) resolve();
  });
  socket.write([...targets, "/last"].map(request).join(""));
  await promise;
  expect(text.match(/answer to .*/g)).toEqual([...targets, "/last"].map((target) => `answer to ${target}`));
  expect(seen.most).toBe(1);
  // The connection lives on.
  const answer = once(socket, "data");
  socket.write(request("/again"));
  expect(String((await answer)[0])).toContain("answer to /again");
});

test("what waits behind a request that has no end is not begun when the client goes away [apiserver-pipelines-3]", async () => {
  const { seen, open } = await start();
  const gone = await open();
  gone.write(request("/never") + request("/behind").repeat(5));
  while (seen.begun === 0) await new Promise((resolve) => setImmediate(resolve));
  gone.destroy();
  const other = await open();
  other.write(request("/other"));
  await once(other, "data");
  expect(seen.targets).toEqual(["/never", "/other"]);
});

test("all connections together have only so many requests that wait [apiserver-pipelines-4]", () => {
  const pipelines = new Pipelines({ ofOneConnection: 3, ofAll: 5 });
  const begun: string[] = [];
  const connection = (name: string) => {
    const closed: (() => void)[] = [];
    const answers: (() => void)[] = [];
    const socket = {
      destroyed: false,
      once: (_: "close", listener: () => void) => closed.push(listener),
      destroy: () => {
        socket.destroyed = true;
      },
    };
    return {
      socket,
      close: () => {
        socket.destroy();
        for (const listener of closed) listener();
      },
      answer: () => answers.shift()?.(),
      send: () =>
        pipelines.add(socket, {
          answer: { once: (_, listener) => answers.push(listener) },
          serve: () => begun.push(name),
        }),
    };
  };
  const [first, second, third] = [connection("first"), connection("second"), connection("third")];
  for (let requests = 0; requests < 4; requests += 1) first.send();
  for (let requests = 0; requests < 3; requests += 1) second.send();
  expect([first.socket.destroyed, second.socket.destroyed]).toEqual([false, false]);
  third.send();
  third.send();
  expect([third.socket.destroyed, begun]).toEqual([true, ["first", "second", "third"]]);
  // What is answered, or goes, makes room.
  second.answer();
  first.close();
  for (let requests = 0; requests < 2; requests += 1) second.send();
  expect([second.socket.destroyed, begun]).toEqual([false, ["first", "second", "third", "second"]]);
  second.send();
  expect(second.socket.destroyed).toBe(true);
});
