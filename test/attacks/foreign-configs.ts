import { expect } from "vitest";
import { type Node, type Pod, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { definedResources } from "../../src/api/index.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { annotations, buildNamespace, joinNamespace, machineTokens, namespace, objects } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { isForbidden, isInvalid } from "../../src/kube/kube-error.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { ClusterSource } from "../../src/server/cluster-source.ts";
import { type DeliveryReason, deliverConfig } from "../../src/server/deliver-config.ts";
import { Limits, defaultLimits } from "../../src/server/limits.ts";
import { gate } from "../../src/operator/manifests.ts";
import { componentRights } from "../../src/operator/rights.ts";
import { untilSeen } from "../support/until-seen.ts";

/** An API server with two machines of two pools, and what the daemons on them have. */
export interface ConfigsTarget {
  readonly admin: KubeClient;
  /** The transport of a caller with this bearer token. */
  readonly withToken: (token: string) => HttpHandler;
  /** Admission policies act only some seconds after they were created, as on a real API server. */
  readonly actsLater: boolean;
}

const prefix = "attack-configs";
const poolNamed = (letter: string) => `${prefix}-${letter}`;
const nodeNamed = (letter: string) => `${prefix}-node-${letter}`;
const rendered = (letter: string, version: number) =>
  `rendered-${poolNamed(letter)}-${String(version).padStart(32, "0")}`;
const secretOf = (name: string) => `secret-of-${name}`;

const namespaces = [namespace, buildNamespace, joinNamespace];
/** Kinds of the manifests that this suite applies. */
const resources: readonly Resource[] = [
  kubernetes.ServiceAccount,
  kubernetes.ClusterRole,
  kubernetes.ClusterRoleBinding,
  kubernetes.Role,
  kubernetes.RoleBinding,
  kubernetes.ValidatingAdmissionPolicy,
  kubernetes.ValidatingAdmissionPolicyBinding,
];

async function applyAll(admin: KubeClient, manifests: readonly KubeObject[]): Promise<void> {
  for (const manifest of manifests) {
    const resource = resources.find(({ kind }) => kind === manifest.kind);
    if (resource !== undefined) await admin.apply(resource, manifest, { owner: prefix, force: true });
  }
}

const tokenFor = async (
  admin: KubeClient,
  account: string,
  { pod, audience }: { readonly pod?: Pod; readonly audience?: string },
): Promise<string> => {
  const { status } = (await admin.request({
    method: "POST",
    target: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        expirationSeconds: 3600,
        ...(audience === undefined ? {} : { audiences: [audience] }),
        ...(pod === undefined
          ? {}
          : { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: pod.metadata.uid } }),
      },
    }),
  })) as { readonly status: { readonly token: string } };
  return status.token;
};

/** Two pools with two rendered configurations each, one machine in each pool, and a daemon's pod on each machine. */
async function setUp({ admin, withToken }: ConfigsTarget, signal: AbortSignal) {
  for (const resource of definedResources)
    await admin.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: prefix, force: true });
  for (const kind of [MachineConfig, MachineConfigNode, MachineConfigPool] as readonly Resource[])
    await untilSeen(
      `${kind.plural} are served`,
      () =>
        admin.list(kind).then(
          () => true,
          () => false,
        ),
      (isServed) => isServed,
    );
  for (const name of namespaces)
    await admin.apply(kubernetes.Namespace, { metadata: { name } }, { owner: prefix, force: true });
  await applyAll(admin, [...componentRights(), ...gate()]);
  const pods = new Map<string, Pod>();
  for (const letter of ["a", "b"]) {
    const pool = await admin.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: poolNamed(letter) },
      spec: { nodeSelector: { matchLabels: { [prefix]: letter } }, configuration: { name: rendered(letter, 2) } },
    } as never);
    for (const version of [1, 2, 3])
      await admin.create(MachineConfig, {
        apiVersion: MachineConfig.apiVersion,
        kind: "MachineConfig",
        metadata: {
          name: rendered(letter, version),
          ownerReferences: [
            {
              apiVersion: MachineConfigPool.apiVersion,
              kind: "MachineConfigPool",
              name: pool.metadata.name,
              uid: pool.metadata.uid ?? "",
              controller: true,
            },
          ],
        },
        spec: {
          config: {
            ignition: { version: "3.4.0" },
            storage: {
              files: [{ path: "/etc/s", contents: { source: `data:,${secretOf(rendered(letter, version))}` } }],
            },
          },
        },
      } as never);
    const name = nodeNamed(letter);
    const node = await admin.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { [prefix]: letter } },
      spec: {},
    } as Node);
    await admin.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: "MachineConfigNode",
      metadata: {
        name,
        annotations: { [annotations.givenConfigs]: `${rendered(letter, 2)} ${rendered(letter, 1)}` },
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: node.metadata.uid ?? "" }],
      },
      spec: { node: { name }, pool: { name: poolNamed(letter) }, configVersion: { desired: rendered(letter, 2) } },
    });
    pods.set(
      letter,
      await admin.create(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace },
        spec: {
          nodeName: name,
          serviceAccountName: objects.daemon,
          automountServiceAccountToken: false,
          containers: [{ name: "c", image: "i" }],
        },
      } as never),
    );
  }
  const client = (transport: HttpHandler) =>
    createKubeClient({ transport, clock: systemClock, random: systemRandom, userAgent: prefix });
  const server = client(withToken(await tokenFor(admin, objects.configServer, {})));
  const source = new ClusterSource({
    kube: server,
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    apiServerUrl: "https://api.example.com:6443",
    fallbackCa: undefined,
    signal,
  });
  void source.run().catch(() => undefined);
  await untilSeen(
    "the config server knows the pools",
    () => Promise.resolve(source.pools()),
    (pools) => pools.includes(poolNamed("b")),
  );
  const outcomes: DeliveryReason[] = [];
  const deliver = deliverConfig({
    kube: server,
    machines: source,
    limits: new Limits(systemClock, defaultLimits),
    clock: systemClock,
    log: silentLogger,
    onOutcome: (reason) => outcomes.push(reason),
    signal,
  });
  return {
    daemon: async (letter: string) => client(withToken(await tokenFor(admin, objects.daemon, { pod: podOf(letter) }))),
    token: (letter: string) =>
      tokenFor(admin, objects.daemon, { pod: podOf(letter), audience: machineTokens.audience }),
    async ask(token: string | undefined, name: string, from = "192.0.2.1") {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const answer = await deliver(
        { method: "GET", target: `/machineconfigs/${name}`, headers, from, client: undefined },
        signal,
      );
      answer.onEnd?.("whole");
      const text = Buffer.concat([answer.body ?? []].flat()).toString("utf8");
      const error = (JSON.parse(text) as { readonly error?: { readonly reason: string } }).error;
      return error === undefined
        ? text.includes(secretOf(name))
          ? "delivered"
          : `something else: ${text}`
        : `${answer.status} ${error.reason}${text.includes("secret-of") ? " with a secret" : ""}`;
    },
  };

  function podOf(letter: string): Pod {
    const pod = pods.get(letter);
    if (pod === undefined) throw new Error(`no pod ${letter}`);
    return pod;
  }
}

const outcomeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => (isForbidden(error) || isInvalid(error) ? "forbidden" : String(error)),
  );

/** Attempts, as root on one machine, to read the configurations of others. */
export async function readForeignConfigs(target: ConfigsTarget, signal: AbortSignal): Promise<void> {
  const { admin } = target;
  const { daemon, token, ask } = await setUp(target, signal);
  const [a, tokenA, tokenB] = [await daemon("a"), await token("a"), await token("b")];

  // Its account reads no MachineConfig at the API server, by no verb.
  const own = { name: rendered("a", 2) };
  expect(await outcomeOf(a.get(MachineConfigNode, { name: nodeNamed("a") }))).toBe("done");
  expect(await outcomeOf(a.get(MachineConfig, own))).toBe("forbidden");
  expect(await outcomeOf(a.list(MachineConfig))).toBe("forbidden");
  expect(await outcomeOf(a.patch(MachineConfig, own, { type: "merge", body: {} }))).toBe("forbidden");
  expect(await outcomeOf(a.delete(MachineConfig, own))).toBe("forbidden");

  // The config server gives it its own.
  expect(await ask(tokenA, rendered("a", 2))).toBe("delivered");
  expect(await ask(tokenA, rendered("a", 1))).toBe("delivered");
  expect(await ask(tokenA, rendered("b", 2))).toBe("403 NotYours");
  expect(await ask(tokenA, rendered("a", 3))).toBe("403 NotYours");
  expect(await ask(tokenA, "no-such-config")).toBe("403 NotYours");
  expect(await ask(tokenB, rendered("b", 2))).toBe("delivered");
  expect(await ask(tokenB, rendered("a", 2))).toBe("403 NotYours");

  // Other tokens, of the same machine or account, open nothing.
  expect(await ask(undefined, rendered("a", 2))).toBe("401 Unauthorized");
  expect(await ask(await tokenFor(admin, objects.daemon, {}), rendered("a", 2), "192.0.2.2")).toBe("401 Unauthorized");
  const unbound = await tokenFor(admin, objects.daemon, { audience: machineTokens.audience });
  expect(await ask(unbound, rendered("a", 2), "192.0.2.3")).toBe("403 Forbidden");
  const other = await tokenFor(admin, objects.state, { audience: machineTokens.audience });
  expect(await ask(other, rendered("a", 2), "192.0.2.4")).toBe("403 Forbidden");

  // It cannot claim another pool, or that it was given something: neither by its own object …
  const write = (body: object, subresource?: "status") =>
    outcomeOf(
      a.patch(
        MachineConfigNode,
        { name: nodeNamed("a") },
        { type: "merge", body },
        subresource === undefined ? {} : { subresource },
      ),
    );
  if (target.actsLater)
    await untilSeen(
      "the policy of daemons acts",
      () =>
        outcomeOf(
          a.patch(
            MachineConfigNode,
            { name: nodeNamed("b") },
            { type: "merge", body: { metadata: { annotations: { "example.com/probe": "x" } } } },
          ),
        ),
      (outcome) => outcome === "forbidden",
    );
  expect(await write({ metadata: { annotations: { [annotations.refusedTargets]: "[]" } } })).toBe("done");
  expect(await write({ metadata: { annotations: { [annotations.givenConfigs]: rendered("b", 2) } } })).toBe(
    "forbidden",
  );
  expect(await write({ spec: { pool: { name: poolNamed("b") } } })).toBe("forbidden");
  // It cannot have its Node or its MachineConfigNode removed and made again, nor kept: an owner that is gone has the
  // garbage collector remove them.
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "gone", uid: "1234" }];
  const node = { name: nodeNamed("a") };
  for (const metadata of [{ ownerReferences }, { finalizers: ["example.com/kept"] }]) {
    expect(await write({ metadata })).toBe("forbidden");
    expect(await outcomeOf(a.patch(kubernetes.Node, node, { type: "merge", body: { metadata } }))).toBe("forbidden");
  }
  const noted = { metadata: { annotations: { [annotations.currentConfig]: rendered("a", 2) } } };
  expect(await outcomeOf(a.patch(kubernetes.Node, node, { type: "merge", body: noted }))).toBe("done");
  expect(await write({ spec: { configVersion: { desired: rendered("b", 2) } } })).toBe("forbidden");
  expect(
    await write({ status: { configVersion: { desired: rendered("b", 2), current: rendered("b", 2) } } }, "status"),
  ).toBe("done");
  // … nor by its Node, whose annotations the controller shows in the spec.
  const move = (spec: object, given: readonly string[] | undefined) =>
    admin.patch(
      MachineConfigNode,
      { name: nodeNamed("a") },
      {
        type: "merge",
        body: {
          spec,
          ...(given === undefined
            ? {}
            : { metadata: { annotations: { [annotations.givenConfigs]: given.join(" ") } } }),
        },
      },
    );
  await move({ configVersion: { desired: rendered("b", 2) } }, undefined);
  expect(await ask(tokenA, rendered("b", 2))).toBe("403 NotYours");

  // The controller moves it: it reads the new one, and the one that it still has. Then it goes back.
  await move({ pool: { name: poolNamed("b") }, configVersion: { desired: rendered("b", 2) } }, [
    rendered("b", 2),
    rendered("a", 2),
  ]);
  expect(await ask(tokenA, rendered("b", 2))).toBe("delivered");
  expect(await ask(tokenA, rendered("a", 2))).toBe("delivered");
  expect(await ask(tokenA, rendered("b", 3))).toBe("403 NotYours");
  await move({ pool: { name: poolNamed("a") }, configVersion: { desired: rendered("a", 2) } }, [
    rendered("a", 2),
    rendered("b", 2),
  ]);
  expect(await ask(tokenA, rendered("a", 2))).toBe("delivered");
  expect(await ask(tokenA, rendered("b", 3))).toBe("403 NotYours");

  // A machine that has the name of another one, whose MachineConfigNode is not removed yet, reads none of it.
  const former = [{ apiVersion: "v1", kind: "Node", name: nodeNamed("a"), uid: "former" }];
  await admin.patch(
    MachineConfigNode,
    { name: nodeNamed("a") },
    { type: "merge", body: { metadata: { ownerReferences: former } } },
  );
  expect(await ask(tokenA, rendered("a", 2))).toBe("403 NoMachine");
  expect(await ask(tokenA, rendered("b", 2))).toBe("403 NoMachine");
}
