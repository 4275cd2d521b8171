import { expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import { PatchedNodes } from "./patched-nodes.ts";

const node = (version: string, target = "old", uid = "1"): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "w", uid, resourceVersion: version, annotations: { target } },
});
const targetOf = ({ metadata }: Node) => metadata.annotations?.["target"];

test("our own patch counts from the moment that it is sent, and until the watch shows it", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), {});
  expect(targetOf(patched.view(node("10")))).toBe("new");
  patched.done(node("12", "new"));
  expect(targetOf(patched.view(node("10")))).toBe("new");
  expect(targetOf(patched.view(node("11")))).toBe("new");
  expect(targetOf(patched.view(node("12", "new")))).toBe("new");
  expect(targetOf(patched.view(node("13", "newer")))).toBe("newer");
  expect(targetOf(patched.view(node("10")))).toBe("old");
});

test("a patch without an answer is kept to be sent again, until the node has moved on", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), { for: "10" });
  expect(patched.unanswered()).toEqual([{ name: "w", body: { for: "10" } }]);
  // A newer version: what was sent for the old one can only be refused now.
  expect(targetOf(patched.view(node("11")))).toBe("old");
  expect(patched.unanswered()).toEqual([]);
});

test("a patch that was refused counts no longer", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), {});
  patched.drop("w");
  expect(targetOf(patched.view(node("10")))).toBe("old");
});

test("a node that was registered anew is not the one that was patched", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), {});
  expect(targetOf(patched.view(node("9", "none", "2")))).toBe("none");
});
