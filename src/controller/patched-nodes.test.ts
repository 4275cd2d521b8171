import { describe, expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import { type NodePatch, PatchedNodes } from "./patched-nodes.ts";

const node = (version: string, target = "old", uid = "1"): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "w", uid, resourceVersion: version, annotations: { target } },
});
/** A patch of a node whose target becomes `target`; `told` gets a line once it is known to have been carried out. */
const patch = (target: string, told: string[] = []) => ({
  assumed: node("10", target),
  body: { for: target },
  isIn: (version: Node) => targetOf(version) === target,
  onWritten: () => void told.push(target),
});
const targetOf = ({ metadata }: Node) => metadata.annotations?.["target"];

test("the controller's patch counts from its sending until the watch shows it", () => {
  const patched = new PatchedNodes();
  const sent = patch("new");
  patched.begin(node("10"), sent);
  expect(targetOf(patched.view(node("10")))).toBe("new");
  patched.done(node("12", "new"), sent);
  expect(targetOf(patched.view(node("10")))).toBe("new");
  expect(targetOf(patched.view(node("11")))).toBe("new");
  expect(targetOf(patched.view(node("12", "new")))).toBe("new");
  expect(targetOf(patched.view(node("13", "newer")))).toBe("newer");
  expect(targetOf(patched.view(node("10")))).toBe("old");
});

test("a patch without an answer is sent again until the node has changed", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), patch("new"));
  expect(patched.unanswered()).toMatchObject([{ name: "w", patch: { body: { for: "new" } } }]);
  // A newer version: what was sent for the old one can only be refused now.
  expect(targetOf(patched.view(node("11")))).toBe("old");
  expect(patched.unanswered()).toEqual([]);
});

test("a refused patch counts no longer", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), patch("new"));
  patched.drop("w");
  expect(targetOf(patched.view(node("10")))).toBe("old");
});

test("a node that registered again does not count as patched", () => {
  const patched = new PatchedNodes();
  patched.begin(node("10"), patch("new"));
  expect(targetOf(patched.view(node("9", "none", "2")))).toBe("none");
});

describe("a patch is told once it is known to have been carried out", () => {
  const shows = (version: Node) => (patched: PatchedNodes) => void patched.view(version);
  const answers = (version: string) => (patched: PatchedNodes, sent: NodePatch) =>
    patched.done(node(version, "new"), sent);
  test.for([
    { title: "by its answer", happens: [answers("12")], told: ["new"] },
    { title: "by the watch, where its answer was lost", happens: [shows(node("12", "new"))], told: ["new"] },
    { title: "never where somebody else's was first", happens: [shows(node("11", "other"))], told: [] },
    { title: "never of a node that registered again", happens: [shows(node("12", "new", "2"))], told: [] },
    {
      title: "once, by its answer and then by the watch",
      happens: [answers("12"), shows(node("12", "new"))],
      told: ["new"],
    },
    {
      title: "once, by the watch and then by its answer",
      happens: [shows(node("12", "new")), answers("12")],
      told: ["new"],
    },
  ])("$title [patched-nodes-1]", ({ happens, told }) => {
    const patched = new PatchedNodes();
    const lines: string[] = [];
    const sent = patch("new", lines);
    patched.begin(node("10"), sent);
    for (const each of happens) each(patched, sent);
    patched.tellArrived();
    patched.tellArrived();
    expect(lines).toEqual(told);
  });

  test("by its answer at once, though the watch was faster [patched-nodes-2]", () => {
    const patched = new PatchedNodes();
    const lines: string[] = [];
    const sent = patch("new", lines);
    patched.begin(node("10"), sent);
    patched.view(node("12", "new"));
    patched.done(node("12", "new"), sent);
    expect(lines).toEqual(["new"]);
  });
});
