import { describe, expect, test } from "vitest";
import { MachineConfigPool, ProvisioningToken, definedResources, kubernetes } from "../api/index.ts";
import { annotations, labels, namespace, objects } from "../api/names.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { judgeToken, parseToken, tokenHash } from "../core/join/provisioning-token.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { systemRandom } from "../ports/node/index.ts";
import { nodeCommand, nodeRequestOf } from "./commands/node.ts";
import { type TokenRequest, requestOf, run, tokenCommand } from "./commands/token.ts";
import { serverWithAdmin } from "../../test/support/server-with-admin.ts";

const now = Date.UTC(2030, 0, 1);
const hour = 3_600_000;

async function cluster(): Promise<KubeClient> {
  const { kube } = serverWithAdmin();
  for (const resource of definedResources)
    await kube.create(kubernetes.CustomResourceDefinition, resource.crd() as never);
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await kube.create(MachineConfigPool, {
    apiVersion: MachineConfigPool.apiVersion,
    kind: MachineConfigPool.kind,
    metadata: { name: "worker" },
    spec: { machineConfigSelector: { matchLabels: { [labels.role]: "worker" } } },
  });
  return kube;
}

const authority = (kube: KubeClient) =>
  kube.create(kubernetes.ConfigMap, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: objects.configServerCa, namespace },
    data: { "ca-bundle.crt": "PEM\n" },
  });

async function ask(kube: KubeClient, request: TokenRequest, fallbackServer?: string) {
  const said: string[] = [];
  const complained: string[] = [];
  const io = {
    out: (text: string) => said.push(text),
    err: (text: string) => complained.push(text),
    screen: undefined,
  };
  const code = await tokenCommand(
    { kube, io, clock: { now: () => now }, random: systemRandom, fallbackServer },
    request,
  );
  return { code, text: said.join(""), complaints: complained.join("") };
}

const create = (more: Partial<TokenRequest & { verb: "create" }> = {}): TokenRequest => ({
  verb: "create",
  pool: "worker",
  ttlMs: hour,
  uses: 1,
  node: undefined,
  addresses: [],
  pointer: false,
  server: undefined,
  json: true,
  ...more,
});
const made = async (kube: KubeClient, more: Partial<TokenRequest & { verb: "create" }> = {}) =>
  JSON.parse((await ask(kube, create(more))).text) as {
    readonly id: string;
    readonly token: string;
    readonly pointer?: { readonly ignition: unknown };
  };

describe("mco token", () => {
  test("create makes a token that gives the pool's configuration, and keeps only a hash of it [cli-token-commands-1]", async () => {
    const kube = await cluster();
    const { id, token } = await made(kube, { uses: 3 });
    const object = await kube.get(ProvisioningToken, { name: id });
    expect(object?.spec).toEqual({
      pool: "worker",
      tokenHash: tokenHash(parseToken(token)?.secret ?? ""),
      expiresAt: "2030-01-01T01:00:00Z",
      maxUses: 3,
    });
    expect(judgeToken({ presented: token, pool: "worker", find: () => object, now })).toMatchObject({
      verdict: "allowed",
    });
  });

  test("create prints the token alone on standard output, for scripts [cli-token-commands-2]", async () => {
    const kube = await cluster();
    const { text, complaints } = await ask(kube, create({ json: false }));
    expect(text).toMatch(/^[a-z0-9]{10}\.[a-z0-9]{32}\n$/);
    expect(complaints).toContain("until 2030-01-01T01:00:00Z");
    expect(complaints).not.toContain(text.trim());
  });

  test("create refuses a pool that is not there, and makes nothing [cli-token-commands-3]", async () => {
    const kube = await cluster();
    const { code, complaints } = await ask(kube, create({ pool: "planets" }));
    expect(code).toBe(1);
    expect(complaints).toContain('there is no pool "planets"; there are worker');
    expect((await kube.list(ProvisioningToken)).items).toEqual([]);
  });

  test("--pointer prints the user data of a machine: URL, authority and token [cli-token-commands-4]", async () => {
    const kube = await cluster();
    await authority(kube);
    const { token, pointer } = await made(kube, { pointer: true, server: "127.9.9.3" });
    expect(pointer?.ignition).toEqual({
      version: "3.2.0",
      config: {
        merge: [
          {
            source: "https://127.9.9.3:22623/config/worker",
            httpHeaders: [{ name: "Authorization", value: `Bearer ${token}` }],
          },
        ],
      },
      security: { tls: { certificateAuthorities: [{ source: "data:,PEM%0A" }] } },
    });
    const bare = JSON.parse((await ask(kube, create({ pointer: true, json: false }), "127.8.8.3")).text) as {
      readonly ignition: { readonly config: { readonly merge: readonly { readonly source: string }[] } };
    };
    expect(bare.ignition.config.merge[0]?.source).toBe("https://127.8.8.3:22623/config/worker");
  });

  test("--pointer takes the address that an administrator wrote before the machine's own [cli-token-commands-5]", async () => {
    const kube = await cluster();
    await authority(kube);
    await kube.create(MachineConfiguration, {
      apiVersion: MachineConfiguration.apiVersion,
      kind: MachineConfiguration.kind,
      metadata: { name: "cluster", annotations: { [annotations.configServerAddress]: "mcs.example.com" } },
      spec: {},
    } as never);
    expect((await ask(kube, create({ pointer: true }), "127.8.8.3")).text).toContain(
      "https://mcs.example.com:22623/config/worker",
    );
  });

  test.for([
    { what: "an address", server: undefined, prepare: authority, says: "--server" },
    { what: "an authority", server: "127.9.9.3", prepare: () => Promise.resolve(), says: objects.configServerCa },
  ])("--pointer without $what fails and creates no token [cli-token-commands-6]", async ({ server, prepare, says }) => {
    const kube = await cluster();
    await prepare(kube);
    const { code, complaints } = await ask(kube, create({ pointer: true, server }));
    expect(code).toBe(1);
    expect(complaints).toContain(says);
    expect((await kube.list(ProvisioningToken)).items).toEqual([]);
  });

  test("list shows the state of each token, and no secret [cli-token-commands-7]", async () => {
    const kube = await cluster();
    const [one, two, three] = [await made(kube), await made(kube, { uses: 2 }), await made(kube, { ttlMs: -hour })];
    await kube.patch(
      ProvisioningToken,
      { name: one.id },
      { type: "merge", body: { status: { uses: 1, lastUsedAt: "2029-12-31T23:00:00Z" } } },
      { subresource: "status" },
    );
    const { text } = await ask(kube, { verb: "list", json: false });
    expect(text).toMatch(/^ID +POOL +STATE +EXPIRES +USES +LAST-USED +AGE\n/);
    expect(text).toMatch(new RegExp(`${one.id} +worker +UsedUp +2030-01-01T01:00:00Z +1/1 +1h`));
    expect(text).toMatch(new RegExp(`${two.id} +worker +Usable +2030-01-01T01:00:00Z +0/2 +- `));
    expect(text).toMatch(new RegExp(`${three.id} +worker +Expired `));
    const json = (await ask(kube, { verb: "list", json: true })).text;
    for (const { token } of [one, two, three])
      for (const shown of [text, json])
        for (const secret of [parseToken(token)?.secret ?? token, tokenHash(parseToken(token)?.secret ?? "")])
          expect(shown).not.toContain(secret);
  });

  test("revoke takes tokens back, and fails for those that are not there [cli-token-commands-8]", async () => {
    const kube = await cluster();
    const one = await made(kube);
    const { code, complaints, text } = await ask(kube, { verb: "revoke", ids: [one.id, "aaaaaaaaaa"], json: false });
    expect(code).toBe(1);
    expect(text).toContain(one.id);
    expect(complaints).toContain('there is no token "aaaaaaaaaa"');
    expect(await kube.get(ProvisioningToken, { name: one.id })).toBeUndefined();
    const two = await made(kube);
    expect((await ask(kube, { verb: "revoke", ids: [two.id], json: true })).code).toBe(0);
  });

  test("a whole token may be given where an id is asked for [cli-token-commands-9]", () => {
    expect(requestOf(["revoke", "a1b2c3d4e5.secret"], { json: false, pointer: false })).toMatchObject({
      ids: ["a1b2c3d4e5"],
    });
  });

  test("a token lasts a day and lets one machine in when nothing is said [cli-token-commands-10]", () => {
    expect(requestOf(["create"], { json: false, pointer: false, pool: "worker" })).toMatchObject({
      ttlMs: 24 * hour,
      uses: 1,
    });
  });

  test.for([
    "",
    "frobnicate",
    "create",
    "create worker --pool worker",
    "create --pool worker --ttl soon",
    "create --pool worker --ttl 0h",
    "create --pool worker --ttl 10000d",
    "create --pool worker --uses 0",
    "create --pool worker --uses many",
    "create --pool worker --server h",
    "create --pool worker --pointer --server http://h/",
    "list worker",
    "list --uses 2",
    "revoke",
  ])("words that are not understood are a usage error: %s [cli-token-commands-11]", async (words) => {
    await expect(run(words.split(" ").filter((word) => word !== ""))).rejects.toMatchObject({ code: "MCO_USAGE" });
  });
});

describe("the kind ProvisioningToken", () => {
  const object = (spec: object, name = "a1b2c3d4e5") =>
    ({
      apiVersion: ProvisioningToken.apiVersion,
      kind: ProvisioningToken.kind,
      metadata: { name },
      spec: { pool: "worker", tokenHash: "0".repeat(64), ...spec },
    }) as never;

  test("has an end, a name that is half of a token, and never changes", async () => {
    const kube = await cluster();
    await expect(kube.create(ProvisioningToken, object({}))).rejects.toThrow(/give expiresAt, maxUses or both/);
    await expect(kube.create(ProvisioningToken, object({ maxUses: 1 }, "worker-token"))).rejects.toThrow(
      /first half of its token/,
    );
    await expect(kube.create(ProvisioningToken, object({ maxUses: 0 }))).rejects.toThrow(/maxUses/);
    await kube.create(ProvisioningToken, object({ expiresAt: "2030-01-01T00:00:00Z" }));
    for (const spec of [{ maxUses: 5 }, { expiresAt: "2031-01-01T00:00:00Z" }, { pool: "master" }])
      await expect(
        kube.patch(ProvisioningToken, { name: "a1b2c3d4e5" }, { type: "merge", body: { spec } }),
      ).rejects.toThrow(/never changes/);
    await kube.patch(
      ProvisioningToken,
      { name: "a1b2c3d4e5" },
      { type: "merge", body: { status: { uses: 1, lastUsedBy: ["127.0.0.1"] } } },
      { subresource: "status" },
    );
    expect((await kube.get(ProvisioningToken, { name: "a1b2c3d4e5" }))?.status?.uses).toBe(1);
  });
});

describe("mco node", () => {
  const binding = (name: string, addresses: readonly string[]) => ({
    apiVersion: NodeBinding.apiVersion,
    kind: NodeBinding.kind,
    metadata: { name },
    spec: { pool: "worker", publicKey: "a".repeat(64), expiresAt: "2026-01-01T00:00:00Z", addresses: [...addresses] },
  });

  async function node(kube: KubeClient, args: readonly string[], { json = false, deleted = false } = {}) {
    const [printed, complained]: [string[], string[]] = [[], []];
    const io = {
      out: (text: string) => printed.push(text),
      err: (text: string) => complained.push(text),
      screen: undefined,
    };
    const code = await nodeCommand(
      { kube, io, now: () => Date.parse("2030-01-01T00:00:00Z") },
      nodeRequestOf(args, { json, deleted }),
    );
    return { code, text: printed.join(""), complaints: complained.join("") };
  }

  test("lists what names are bound to, frees them, and adds addresses [cli-node-1]", async () => {
    const kube = await cluster();
    expect((await node(kube, ["list"])).text).toContain("no name is bound");
    for (const name of ["w0", "w1"]) await kube.create(NodeBinding, binding(name, ["10.0.0.1"]));
    expect((await node(kube, ["address", "w0", "fd00:0::9", "10.0.0.1"])).text).toBe(
      "w0 may serve under 10.0.0.1, fd00::9\n",
    );
    expect((await kube.get(NodeBinding, { name: "w0" }))?.spec.addresses).toEqual(["10.0.0.1", "fd00::9"]);
    expect((await node(kube, ["list"])).text).toContain(
      "w0    worker  no          2026-01-01T00:00:00Z  10.0.0.1,fd00::9",
    );
    expect(await node(kube, ["release", "w0", "w7"])).toMatchObject({
      code: 1,
      text: "the name w0 is free\n",
      complaints: expect.stringContaining('"w7"') as string,
    });
    // The record of a released name stays, so that its certificate is not renewed.
    const { bindings } = JSON.parse((await node(kube, ["list"], { json: true })).text) as {
      bindings: readonly object[];
    };
    expect(bindings).toMatchObject([{ name: "w0", revoked: true }, { name: "w1" }]);
    expect(bindings[1]).not.toHaveProperty("revoked");
    expect((await node(kube, ["list"])).text).toContain("w0    worker  released");
    expect((await node(kube, ["address", "w7", "10.0.0.1"])).code).toBe(1);
  });

  test("release of a node that the suite did not admit makes a record, so that its machine renews no certificate [cli-node-2]", async () => {
    const kube = await cluster();
    const role = { "node-role.kubernetes.io/worker": "" };
    await kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "k0", labels: role } });
    expect(await node(kube, ["release", "k0", "k1"])).toMatchObject({
      code: 1,
      text: "the name k0 is free\n",
      complaints: expect.stringMatching(/"k1".*--deleted/) as string,
    });
    const end = "2031-01-02T00:00:00Z";
    const released = { expiresAt: end, formerExpiresAt: end, exclusive: true, revoked: true };
    expect((await kube.get(NodeBinding, { name: "k0" }))?.spec).toMatchObject(released);
    expect(await node(kube, ["release", "k1"], { deleted: true })).toMatchObject({ code: 0 });
    expect((await kube.get(NodeBinding, { name: "k1" }))?.spec).toMatchObject({ ...released, pool: "unknown" });
    expect((await node(kube, ["release", "Not_a_name"], { deleted: true })).code).toBe(1);
    const long = ["a", "b", "c", "d"].map((letter) => letter.repeat(62)).join(".");
    expect(await node(kube, ["release", long], { deleted: true })).toMatchObject({
      code: 1,
      text: "",
      complaints: expect.stringMatching(/more than 248 characters.*Other approvers/) as string,
    });
    expect(await kube.get(NodeBinding, { name: long })).toBeUndefined();
  });

  test.for([
    { args: [], says: "name a verb" },
    { args: ["drop"], says: 'unknown verb "drop"' },
    { args: ["release"], says: "mco node release NAME" },
    { args: ["address", "w0"], says: "mco node address NAME HOST" },
    { args: ["address", "w0", "W0_example"], says: "must be an IP address or a host name" },
    { args: ["address", "w0", "10.0.0"], says: "must be an IP address or a host name" },
  ])("$args is refused with what to write", ({ args, says }) => {
    expect(() => nodeRequestOf(args, { json: false, deleted: false })).toThrow(says);
  });
});
