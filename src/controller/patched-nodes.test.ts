import { expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import { PatchedNodes } from "./patched-nodes.ts";

const node = (version: string, target = "old", uid = "1"): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "w", uid, resourceVersion: version, annotations: { target } },
});
const targetOf = ({ metadata }: Node) => metadata.annotations?.["target"];

test("the controller's patch counts from its sending until the watch shows it", () => {
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

test("a patch without an answer is sent again until the node has changed", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), { for: "10" });
  expect(patched.unanswered()).toEqual([{ name: "w", body: { for: "10" } }]);
  // A newer version: what was sent for the old one can only be refused now.
  expect(targetOf(patched.view(node("11")))).toBe("old");
  expect(patched.unanswered()).toEqual([]);
});

test("a refused patch counts no longer", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), {});
  patched.drop("w");
  expect(targetOf(patched.view(node("10")))).toBe("old");
});

test("a node that registered again does not count as patched", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), node("10", "new"), {});
  expect(targetOf(patched.view(node("9", "none", "2")))).toBe("none");
});
