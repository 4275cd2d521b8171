import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { type Event, kubernetes } from "../api/foreign/kubernetes.ts";
import { silentLogger } from "../ports/logger.ts";
import { createEventRecorder } from "./event-recorder.ts";
import type { KubeClient } from "./kube-client.ts";

/** A recorder whose Events wait until the test lets them go. */
function heldRecorder() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const sent: string[] = [];
  const kube = {
    async create(_: typeof kubernetes.Event, { involvedObject }: Event) {
      await released;
      sent.push(`${involvedObject?.namespace ?? ""}/${involvedObject?.name}`);
    },
  } as unknown as KubeClient;
  const { clock, random } = new Kernel(1);
  const recorder = createEventRecorder({ kube, clock, random, log: silentLogger, component: "test" });
  const record = (namespace: string, name: string) =>
    recorder.event(
      { apiVersion: "v1", kind: "Thing", metadata: { name, ...(namespace === "" ? {} : { namespace }) } },
      { type: "Normal", reason: "Happened", message: "it happened" },
    );
  return { record, release, sent, flush: recorder.flush };
}

test("thousands of waiting Events of one namespace push out none of another one, or of a Node [kube-events-1]", async () => {
  const { record, release, sent, flush } = heldRecorder();
  for (let index = 0; index < 3000; index += 1) record("tenant", `pod-${index}`);
  for (const name of ["a", "b", "c"]) {
    record("", `node-${name}`);
    record("other", `pod-${name}`);
  }
  for (let index = 3000; index < 6000; index += 1) record("tenant", `pod-${index}`);
  release();
  await flush();
  const others = sent.filter((key) => !key.startsWith("tenant/"));
  expect(others).toEqual(["/node-a", "other/pod-a", "/node-b", "other/pod-b", "/node-c", "other/pod-c"]);
  // They have turns, and the first ones of the namespace with many are sent.
  expect(sent.indexOf("other/pod-c")).toBeLessThan(12);
  expect(sent.filter((key) => key.startsWith("tenant/")).slice(0, 2)).toEqual(["tenant/pod-0", "tenant/pod-1"]);
  expect(sent.length).toBeLessThan(300);
});

test("what is flushed was sent, in the order of each namespace [kube-events-2]", async () => {
  const { record, release, sent, flush } = heldRecorder();
  for (const name of ["1", "2", "3"]) record("one", name);
  record("two", "1");
  const flushed = flush();
  release();
  await flushed;
  expect(sent).toEqual(["one/1", "one/2", "two/1", "one/3"]);
  record("one", "4");
  await flush();
  expect(sent.at(-1)).toBe("one/4");
});
