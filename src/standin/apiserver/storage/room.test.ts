import { describe, expect, test } from "vitest";
import { collectGarbage } from "../../../../test/support/collect-garbage.ts";
import type { KubeObject } from "../schema/contract.ts";
import { defaultRoom, roomIn, weightOf } from "./room.ts";

const many = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => make(index));

describe("the weight of an object", () => {
  const count = 30_000;
  test.for([
    ["empty objects under many keys", () => `{${many(count, (i) => `"f:${i.toString(36)}":{}`).join()}}`],
    ["empty texts under many keys", () => `{${many(count, (i) => `"k${i.toString(36)}":""`).join()}}`],
    ["numbers as keys", () => `{${many(count, (i) => `"${i * 7}":{}`).join()}}`],
    ["a list of empty objects", () => `[${many(count, () => "{}").join()}]`],
    ["a list of empty lists", () => `[${many(count, () => "[]").join()}]`],
    ["objects of one key each", () => `[${many(count, (i) => `{"${i.toString(36)}":0}`).join()}]`],
    [
      "objects of many keys",
      () => `[${many(count / 20, (i) => `{${many(20, (j) => `"${i}-${j}":0`).join()}}`).join()}]`,
    ],
    [
      "nested objects",
      () => `[${many(count / 10, (i) => `${many(10, (j) => `{"${j}x${i}":`).join("")}{}${"}".repeat(10)}`).join()}]`,
    ],
    ["short texts", () => `[${many(count, (i) => `"${i.toString(36)}"`).join()}]`],
    ["long texts", () => `[${many(count / 100, (i) => `"${String(i).repeat(300)}"`).join()}]`],
    ["a text beyond Latin-1", () => `["€${"x".repeat(count * 10)}"]`],
  ] as const)("is no less than what it takes in memory: %s [apiserver-room-1]", ([, make]) => {
    const memory = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    // Joining and printing leave texts in pieces, which take other memory.
    const text = () => Buffer.from(`{"metadata":{},"spec":${make()}}`).toString();
    JSON.parse(text());
    const before = memory();
    const json = text();
    const object = JSON.parse(json) as KubeObject;
    const taken = memory() - before;
    // What else the process keeps or leaves meanwhile is in it; characters alone would be wrong by ten times.
    expect(taken / weightOf(json, object)).toBeLessThan(1.5);
  });

  test("of ordinary objects is a small multiple of their text [apiserver-room-2]", () => {
    const labels = Object.fromEntries(many(5, (i) => `example.com/label-${i}`).map((label) => [label, "value"]));
    const containers = [{ name: "main", image: "registry.example.com/some/image@sha256:0123456789", args: ["a", "b"] }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", labels }, spec: { containers } };
    const json = JSON.stringify(pod);
    expect(weightOf(json, pod) / json.length).toBeLessThan(12);
  });
});

test("the limits leave the larger part of a heap to the work of the server [apiserver-room-3]", () => {
  const heap = 1_000_000;
  const { resourceBytes, tenantsBytes, everywhereBytes, clusterBytes, clusterScopedEventsBytes } = roomIn(heap);
  const nodes = Object.values(clusterBytes).reduce((sum, bytes) => sum + bytes, 0);
  expect(tenantsBytes + nodes + resourceBytes + clusterScopedEventsBytes).toBeLessThan(0.6 * heap);
  // One namespace leaves room for the Events and pods of others.
  for (const bytes of Object.values(everywhereBytes)) expect(bytes).toBeGreaterThanOrEqual(2 * resourceBytes);
  // What nodes write in a namespace leaves room for what belongs to it.
  expect(defaultRoom.namespaceBytes).toBeGreaterThanOrEqual(3 * defaultRoom.resourceBytes);
});
