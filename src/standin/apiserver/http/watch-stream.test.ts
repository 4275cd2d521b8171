import { expect, test } from "vitest";
import type { Part } from "../schema/contract.ts";
import { UnreadLines, WatchStream } from "./watch-stream.ts";

const limits = { others: 100, nodes: 100, cluster: 100 };

/** Streams of several users with one room for what is not read; the names of those that have ended. */
function start() {
  const unread = new UnreadLines({ ofOne: limits, ofAll: { others: 150, nodes: 150, cluster: 150 } });
  const ended: string[] = [];
  const open = (name: string, of: string, part: Part = "others") =>
    new WatchStream({ share: { of, part }, backlog: 1_000, unread }, () => ended.push(name));
  return { open, ended };
}

const line = (length: number) => "x".repeat(length);

test("what one user leaves unread in several watches has one bound, and the one with the most of it ends [apiserver-watch-streams-1]", () => {
  const { open, ended } = start();
  const [a, b, other] = [open("a", "eve"), open("b", "eve"), open("other", "bob")];
  a.push(line(60));
  b.push(line(30));
  other.push(line(10));
  expect(ended).toEqual([]);
  b.push(line(20));
  expect(ended).toEqual(["a"]);
  expect([a.unread, b.unread, other.isOpen]).toEqual([0, 50, true]);
  b.push(line(60));
  expect(ended).toEqual(["a", "b"]);
});

test("what all users of a part leave unread has a bound, at the expense of who left the most; other parts have theirs [apiserver-watch-streams-2]", () => {
  const { open, ended } = start();
  const hogs = ["eve", "mallory"].map((of) => open(of, of));
  const [bob, node] = [open("bob", "bob"), open("node", "node-1", "nodes")];
  hogs[0]?.push(line(80));
  hogs[1]?.push(line(60));
  node.push(line(90));
  bob.push(line(5));
  expect(ended).toEqual([]);
  bob.push(line(10));
  expect(ended).toEqual(["eve"]);
  expect([bob.unread, node.unread]).toEqual([15, 90]);
});

test("who left the most in many short watches loses some of these, and nobody a watch with one long line [apiserver-watch-streams-4]", () => {
  const { open, ended } = start();
  const short = ["eve", "mallory"].flatMap((of) => Array.from({ length: 7 }, (_, at) => open(`${of}-${at}`, of)));
  for (const stream of short) stream.push(line(10));
  const bob = open("bob", "bob");
  bob.push(line(40));
  expect(bob.isOpen).toBe(true);
  expect(ended).toHaveLength(3);
  bob.push(line(5));
  expect([bob.unread, ended.length]).toEqual([45, 4]);
  // Who has the most by now is the one.
  bob.push(line(35));
  expect([bob.isOpen, ended.length]).toEqual([false, 5]);
});

test("what is read, or thrown away, leaves room again [apiserver-watch-streams-3]", async () => {
  const { open, ended } = start();
  const stream = open("a", "eve");
  const reader = stream[Symbol.asyncIterator]();
  for (let turn = 0; turn < 5; turn += 1) {
    stream.push(line(50));
    stream.push(line(40));
    expect(await reader.next()).toEqual({ done: false, value: line(90) });
  }
  expect(ended).toEqual([]);
  stream.push(line(90));
  await reader.return?.();
  expect(ended).toEqual(["a"]);
  const next = open("b", "eve");
  next.push(line(90));
  expect(ended).toEqual(["a"]);
});
