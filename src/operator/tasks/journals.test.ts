import { expect, test } from "vitest";
import { journalsTask } from "./journals.ts";

test("a machine that chose the longest name of all keeps no other from its journal [operator-journals-1]", () => {
  const names = ["a".repeat(253), "b".repeat(248), "c"];
  const { create } = journalsTask.decide({
    known: new Set(),
    namespaceUid: undefined,
    nodes: names.map((name) => ({ name, uid: name.slice(0, 1) })),
  });
  expect(create.map(({ name }) => name)).toEqual([
    "operator",
    "controller",
    "server",
    "os-builder",
    `node-${"b".repeat(248)}`,
    "node-c",
  ]);
});
