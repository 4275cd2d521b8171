import { expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { silentLogger } from "../ports/logger.ts";
import { nodeReporter } from "./node-reporter.ts";

const nodeName = "worker-0";
const key = "example.com/state";
const node = (resourceVersion: number, value?: string): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: nodeName,
    resourceVersion: String(resourceVersion),
    annotations: value === undefined ? {} : { [key]: value },
  },
});

/** A reporter, and the writes that the API server got; `answers`: whether the reporter hears of them. */
function reporting() {
  const got: unknown[] = [];
  const server = { answers: true, version: 1 };
  const kube = createKubeClient({
    transport: (request) => {
      got.push(JSON.parse(String(request.body)));
      server.version += 1;
      return server.answers
        ? Promise.resolve({ status: 200, headers: {}, body: JSON.stringify(node(server.version)) })
        : Promise.reject(new Error("the connection broke"));
    },
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  return { reporter: nodeReporter({ kube, clock: systemClock, log: silentLogger, nodeName }), got, server };
}

test("a write of which nothing was heard is the daemon's own until its next pass, which writes it again [node-reporter-1]", async () => {
  const { reporter, got, server } = reporting();
  reporter.begin(node(1));
  server.answers = false;
  await reporter.annotate(node(1), { [key]: "a" }).catch(() => undefined);
  expect([reporter.hasWritten(key, "a"), reporter.hasWritten(key, "b")]).toEqual([true, false]);

  server.answers = true;
  reporter.begin(node(1));
  await reporter.annotate(node(1), { [key]: "a" });
  expect(got).toHaveLength(2);
  expect(reporter.hasWritten(key, "a")).toBe(true);
  reporter.begin(node(server.version, "a"));
  expect(reporter.hasWritten(key, "a")).toBe(false);
});

test("one that the next pass does not write is forgotten: the same value by somebody else is news [node-reporter-2]", async () => {
  const { reporter, got, server } = reporting();
  reporter.begin(node(1));
  server.answers = false;
  await reporter.annotate(node(1), { [key]: "a" }).catch(() => undefined);

  reporter.begin(node(5));
  expect(reporter.hasWritten(key, "a")).toBe(false);
  // It may still arrive, and what the pass wants is written again.
  server.answers = true;
  await reporter.annotate(node(5), { other: "x" });
  expect(got).toHaveLength(2);
  reporter.begin(node(9, "b"));
  await reporter.annotate(node(9, "b"), { [key]: "b" });
  expect(got).toHaveLength(2);
});

test("one that the cache shows has been seen [node-reporter-3]", async () => {
  const { reporter, got, server } = reporting();
  reporter.begin(node(1));
  server.answers = false;
  await reporter.annotate(node(1), { [key]: "a" }).catch(() => undefined);
  reporter.begin(node(2, "a"));
  expect(reporter.hasWritten(key, "a")).toBe(false);
  await reporter.annotate(node(2, "a"), { [key]: "a" });
  expect(got).toHaveLength(1);
});

test("a target that the daemon has not seen is not observed, and one that it has seen is, with nothing else to report [node-reporter-4]", async () => {
  const written: Record<string, unknown>[] = [];
  let object = {
    apiVersion: MachineConfigNode.apiVersion,
    kind: MachineConfigNode.kind,
    metadata: { name: nodeName, generation: 3, resourceVersion: "7" },
    spec: { node: { name: nodeName }, pool: { name: "worker" }, configVersion: { desired: "rendered-b" } },
    status: {},
  };
  const kube = createKubeClient({
    transport: ({ method, body }) => {
      if (method === "PATCH") {
        const operations = JSON.parse(String(body)) as { path: string; value: unknown }[];
        const changed = Object.fromEntries(
          operations.flatMap(({ path, value }) => {
            const [, field, key = ""] = /^\/(status)\/?(\w*)/.exec(path) ?? [];
            return field === undefined ? [] : key === "" ? Object.entries(value as object) : [[key, value]];
          }),
        );
        written.push(changed);
        object = { ...object, status: { ...object.status, ...changed } };
      }
      return Promise.resolve({ status: 200, headers: {}, body: JSON.stringify(object) });
    },
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  const reporting = () => nodeReporter({ kube, clock: systemClock, log: silentLogger, nodeName });
  const flushed = async (desired: string) => {
    const reporter = reporting();
    reporter.versions({ desired, current: "rendered-a" });
    await reporter.flush();
    return written.at(-1)?.["observedGeneration"];
  };
  expect(await flushed("rendered-a")).toBe(1);
  object = { ...object, status: { ...object.status, configVersion: { desired: "rendered-b", current: "rendered-a" } } };
  expect(await flushed("rendered-b")).toBe(3);
  expect(written).toHaveLength(2);
  await flushed("rendered-b");
  expect(written).toHaveLength(2);
});
