import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { Part } from "../schema/contract.ts";
import { Connections } from "./connections.ts";

class FakeSocket extends EventEmitter {
  readonly remoteAddress = "127.0.0.1";
  readonly remotePort: number;
  isClosed = false;

  constructor(remotePort: number) {
    super();
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.isClosed = true;
    this.emit("close");
  }
}

/** Connections, of which each begins on a port of its own. */
function start() {
  const connections = new Connections({ strangers: 2, ofOneUser: 2, ofOneNode: 1, ofOthers: 3, ofNodes: 2 });
  let port = 0;
  return {
    connections,
    begin(user?: string, part: Part = "others"): FakeSocket {
      const socket = new FakeSocket((port += 1));
      connections.begins(socket);
      if (user !== undefined) connections.isOf({ of: user, part }, socket);
      return socket;
    },
  };
}
const closedOf = (sockets: readonly FakeSocket[]) => sockets.map(({ isClosed }) => isClosed);

test("the oldest connection of a stranger makes room, and none of a user does [apiserver-connections-1]", () => {
  const { begin, connections } = start();
  const user = begin("a");
  const [first, second] = [begin(), begin()];
  // A request on a connection names its other end alone: TLS has a socket of its own.
  connections.isOf({ of: "b", part: "others" }, new FakeSocket(second.remotePort));
  const [third, fourth] = [begin(), begin()];
  expect(closedOf([user, first, second, third, fourth])).toEqual([false, true, false, false, false]);
  third.destroy();
  const fifth = begin();
  expect(closedOf([fourth, fifth])).toEqual([false, false]);
});

test("beyond the share of one user, its connections are those of strangers [apiserver-connections-2]", () => {
  const { begin } = start();
  const own = [begin("a"), begin("a"), begin("a"), begin("a"), begin("a")];
  expect(closedOf(own)).toEqual([false, false, true, false, false]);
  own[0]?.destroy();
  const next = begin("a");
  begin();
  begin();
  begin();
  expect([next.isClosed, begin("b").isClosed]).toEqual([false, false]);
});

test("many users together leave room for nodes and administrators [apiserver-connections-3]", () => {
  const { begin } = start();
  const others = ["a", "b", "c"].map((user) => begin(user));
  const more = [begin("d"), begin("e")];
  const node = begin("node:n", "nodes");
  begin();
  expect(closedOf([...others, ...more, node])).toEqual([false, false, false, true, false, false]);
  others[0]?.destroy();
  const next = begin("f");
  begin();
  begin();
  expect(next.isClosed).toBe(false);
});

test("one machine leaves room for others, and all of them for administrators [apiserver-connections-4]", () => {
  const { begin } = start();
  const first = [begin("node:a", "nodes"), begin("node:a", "nodes")];
  const second = begin("node:b", "nodes");
  const third = begin("node:c", "nodes");
  const admin = [begin("admin", "cluster"), begin("admin", "cluster")];
  begin();
  begin();
  expect(closedOf([...first, second, third, ...admin])).toEqual([false, true, false, true, false, false]);
});
