import { expect, test } from "vitest";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, machineTokens, namespace, objects } from "../api/names.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock } from "../ports/node/index.ts";
import { deliverConfig } from "./deliver-config.ts";
import { Limits, defaultLimits } from "./limits.ts";

const rendered = (version: number) => `rendered-worker-${String(version).padStart(32, "0")}`;

/**
 * A config server for machines of one pool; a caller's token is the name of its node.
 *
 * @param uidOf of the Node that the token was issued for, and of the one that the MachineConfigNode was made for.
 */
function serving(
  given: (node: string) => string,
  uidOf: (what: "token" | "machineConfigNode") => string | undefined = () => "1",
) {
  const reads: string[] = [];
  const now = { ms: 0 };
  const clock = { ...systemClock, monotonic: () => now.ms };
  const review = (request: { readonly body?: unknown }) => {
    const { spec } = JSON.parse(String(request.body)) as { readonly spec: { readonly token: string } };
    const uid = uidOf("token");
    const extra = {
      "authentication.kubernetes.io/node-name": [spec.token],
      ...(uid === undefined ? {} : { "authentication.kubernetes.io/node-uid": [uid] }),
    };
    const user = { username: `system:serviceaccount:${namespace}:${objects.daemon}`, extra };
    return Promise.resolve({ status: { authenticated: true, user, audiences: [machineTokens.audience] } });
  };
  const { signal } = new AbortController();
  const deliver = deliverConfig({
    kube: { request: review } as unknown as KubeClient,
    machines: {
      machineConfigNode: (name) =>
        Promise.resolve({
          apiVersion: MachineConfigNode.apiVersion,
          kind: MachineConfigNode.kind,
          metadata: {
            name,
            annotations: { [annotations.givenConfigs]: given(name) },
            ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: uidOf("machineConfigNode") ?? "" }],
          },
          spec: { node: { name }, pool: { name: "worker" }, configVersion: { desired: rendered(1) } },
        } as MachineConfigNode),
      machineConfig(name) {
        reads.push(name);
        const isThere = /-0{30}[0-9]{2}$/.test(name);
        return Promise.resolve(isThere ? ({ kind: "MachineConfig", metadata: { name } } as MachineConfig) : undefined);
      },
      machineConfigPool: (name) =>
        ({ metadata: { name }, spec: { configuration: { name: rendered(1) } } }) as MachineConfigPool,
    },
    limits: new Limits(clock, defaultLimits),
    clock,
    log: silentLogger,
    onOutcome: () => undefined,
    signal,
  });
  return {
    reads,
    pass: (ms: number) => void (now.ms += ms),
    ask: (node: string, name: string) =>
      deliver(
        {
          method: "GET",
          target: `/machineconfigs/${name}`,
          headers: { authorization: `Bearer ${node}` },
          from: "192.0.2.1",
          client: undefined,
        },
        signal,
      ),
  };
}

test("a machine that does not read its answers takes no more than its own [server-deliver-config-1]", async () => {
  const { ask } = serving(() => rendered(1));
  const answers = [];
  for (let index = 0; index < 50; index += 1) answers.push(await ask("a", rendered(1)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(4);
  expect(answers.slice(4).map(({ status }) => status)).toEqual(Array.from({ length: 46 }, () => 503));
  expect((await ask("b", rendered(1))).status).toBe(200);
  for (const answer of answers) answer.onEnd?.("broken");
  expect((await ask("a", rendered(1))).status).toBe(200);
});

test("names that a machine invents cost no read once it has a record [server-deliver-config-2]", async () => {
  const { ask, reads } = serving(() => rendered(1));
  for (let index = 100; index < 200; index += 1) (await ask("a", rendered(index))).onEnd?.("whole");
  expect(reads).toEqual([]);
});

test("names that a new machine invents push no configuration of others out [server-deliver-config-3]", async () => {
  const { ask, reads } = serving((node) => (node === "new" ? "" : rendered(1)));
  (await ask("a", rendered(1))).onEnd?.("whole");
  await ask("new", rendered(100));
  await Promise.all(Array.from({ length: 100 }, (_, index) => ask("new", rendered(100 + index))));
  (await ask("a", rendered(1))).onEnd?.("whole");
  expect(reads.filter((name) => name === rendered(1))).toHaveLength(1);
});

test("a text that has become old is read once, however many machines ask [server-deliver-config-4]", async () => {
  const { ask, reads, pass } = serving(() => rendered(1));
  (await ask("a", rendered(1))).onEnd?.("whole");
  pass(40_000);
  await Promise.all(Array.from({ length: 50 }, (_, index) => ask(`n${index}`, rendered(1))));
  expect(reads).toHaveLength(2);
});

test.for([
  { title: "machine of its Node gets them", uids: { token: "1", machineConfigNode: "1" }, is: 200 },
  { title: "one whose token names no uid gets them", uids: { token: undefined, machineConfigNode: "1" }, is: 200 },
  { title: "next machine of that name gets none", uids: { token: "2", machineConfigNode: "1" }, is: 403 },
  { title: "former machine of that name gets none", uids: { token: "1", machineConfigNode: "2" }, is: 403 },
])("of the configurations that a MachineConfigNode records, the $title [attack-configs-5]", async ({ uids, is }) => {
  const { ask, reads } = serving(
    () => rendered(2),
    (what) => uids[what],
  );
  expect((await ask("a", rendered(2))).status).toBe(is);
  expect(reads).toEqual(is === 200 ? [rendered(2)] : []);
});
