import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../api/foreign/kubernetes.ts";
import { createKubeClient } from "../../kube/kube-client.ts";
import { systemFiles } from "../../ports/node/index.ts";
import { Kernel } from "../../../test/simulation/kernel.ts";
import { resolveInRoot } from "../../host/directory/root-folder.ts";
import { PodPlaces } from "./pod-places.ts";
import { type HeldToken, writeVolumes } from "./pod-volumes.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mco-volumes-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "n", uid: "u" },
  spec: {
    containers: [{ name: "c", volumeMounts: [{ name: "account", mountPath: "/sa" }] }],
    volumes: [
      {
        name: "account",
        projected: {
          sources: [
            { serviceAccountToken: { path: "token", expirationSeconds: 3600 } },
            { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
          ],
        },
      },
    ],
  },
} as unknown as Pod;

/** Volumes of a pod on a server that gives tokens a life of `lifeMs` and counts them. */
function start(lifeMs: number) {
  const kernel = new Kernel(3);
  const server = { tokens: 0, ca: "A" };
  const kube = createKubeClient({
    transport: async ({ method }) =>
      method === "POST"
        ? {
            status: 201,
            headers: {},
            body: JSON.stringify({
              status: {
                token: `token-${(server.tokens += 1)}`,
                expirationTimestamp: new Date(kernel.clock.now() + lifeMs).toISOString(),
              },
            }),
          }
        : { status: 200, headers: {}, body: JSON.stringify({ data: { "ca.crt": server.ca } }) },
    clock: kernel.clock,
    random: kernel.random,
    userAgent: "test",
  });
  const tokens = new Map<string, HeldToken>();
  const below = (root: string, path: string) => resolveInRoot(root, path, {}, true);
  const locate = { below, onMachine: (path: string) => below("/", path) };
  const places = new PodPlaces(pod, { podsFolder: folder, locate });
  const write = () => writeVolumes(pod, places, { kube, files: systemFiles, clock: kernel.clock, tokens });
  const read = (name: string) => readFileSync(join(places.root, "sa", name), "utf8");
  function pass(ms: number) {
    kernel.schedule(ms, "time passes", () => undefined);
    return kernel.run({ until: () => false, maxMs: ms });
  }
  return { server, write, read, pass };
}

test("a token is replaced after four fifths of its lifetime", async () => {
  const { write, read, pass } = start(3_600_000);
  expect(await write()).toBe(2_880_000);
  await pass(2_000_000);
  expect(await write()).toBe(880_000);
  expect(read("token")).toBe("token-1");
  await pass(880_000);
  await write();
  expect(read("token")).toBe("token-2");
});

test("new authorities reach the pod at the next pass, without a new token", async () => {
  const { server, write, read } = start(3_600_000);
  await write();
  server.ca = "A+B";
  await write();
  expect([read("ca.crt"), server.tokens]).toEqual(["A+B", 1]);
});

test("even a short-lived token is not requested all the time", async () => {
  expect(await start(10).write()).toBe(1000);
});
