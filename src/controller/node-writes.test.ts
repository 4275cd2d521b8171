import { expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError } from "../kube/kube-error.ts";
import { NodeWrites } from "./node-writes.ts";

const node = (version: string, mark?: string): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "w0", uid: "1", resourceVersion: version, annotations: mark === undefined ? {} : { mark } },
});

/** A context whose API server answers patches in this order, and has `now` when it is asked. */
function contextOf(patches: readonly (Node | Error)[], now: Node): Context {
  const answers = [...patches];
  const kube = {
    patch: () => {
      const answer = answers.shift() ?? new Error("connection reset");
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    get: () => Promise.resolve(now),
  };
  // The watch lags behind.
  const caches = { of: () => new Map([["w0", node("10")]]) };
  return { kube, caches, signal: new AbortController().signal } as unknown as Context;
}

const conflict = new KubeError(409, { reason: "Conflict" }, "PATCH");

test.for([
  { title: "that was carried out", now: node("11", "set"), ends: "written", told: 1 },
  { title: "that somebody else's overtook", now: node("11", "other"), ends: "overtaken", told: 0 },
])("a write without an answer $title is refused the second time, and told if it was [node-writes-1]", async (each) => {
  const writes = new NodeWrites(
    () => undefined,
    () => undefined,
  );
  let told = 0;
  const context = contextOf([new Error("connection reset"), conflict], each.now);
  const changes = { annotations: { mark: "set" } };
  const first = writes.change(node("10"), changes, context, () => void (told += 1));
  await expect(first).rejects.toThrow("connection reset");
  expect(told).toBe(0);
  expect(await writes.resend(context, (_, work) => work())).toBe(each.ends);
  expect(told).toBe(each.told);
  expect(await writes.resend(context, (_, work) => work())).toBe("written");
  expect(told).toBe(each.told);
});
