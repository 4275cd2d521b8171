import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { collectGarbage } from "../../../test/support/collect-garbage.ts";
import { signingRequest } from "../../../test/support/test-pki.ts";
import type { Clock } from "../../ports/clock.ts";
import { silentLogger } from "../../ports/logger.ts";
import type { HttpHandler } from "../../ports/http.ts";
import { systemClock, systemRandom } from "../../ports/node/index.ts";
import { sharedSecretKeys } from "./access/service-account-tokens.ts";
import { admissionChain } from "./admission/admission.ts";
import { kubernetesYaml } from "../../core/text/kubernetes-yaml.ts";
import { representation } from "./http/representation.ts";
import { readYaml, yamlLimitCharacters } from "./http/request-body.ts";
import { parseTarget } from "./http/request-target.ts";
import { LongSelectors, selectorLimits } from "./http/long-selectors.ts";
import { UnreadLines, unreadLimits, type WatchStream } from "./http/watch-stream.ts";
import { isTooLong, watchObjects } from "./requests/reads.ts";
import { sqliteStore } from "./node/sqlite-store.ts";
import { Turns, eventLoop } from "./node/turns.ts";
import { yamlHeapMb } from "./node/yaml-threads.ts";
import { type ApiServer, type ApiServerOptions, createApiServer } from "./server.ts";
import { formats } from "./schema/formats.ts";
import { parseLabelSelector } from "./schema/selectors.ts";
import { builtinDefinitions } from "./schema/kinds/builtin-kinds.ts";
import { catalogOf } from "./schema/kinds/catalog.ts";
import type { KubeObject } from "./schema/contract.ts";
import { Refusal } from "./schema/status.ts";
import { liveObjects } from "./storage/live-objects.ts";
import { memoryStore } from "./storage/memory-store.ts";
import { defaultRoom, roomIn } from "./storage/room.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const maps = "/api/v1/namespaces/default/configmaps";

function start(options: Partial<ApiServerOptions> = {}): ApiServer {
  return createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(new Uint8Array(32)),
    ...options,
  });
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends a request as some user. @param body text, or an object that becomes JSON. */
async function send(
  as: HttpHandler,
  method: string,
  target: string,
  body?: unknown,
  type = "application/json",
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const given = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
  const headers = { "content-type": type, ...more };
  const answer = await as({ method, target, headers, ...given }, new AbortController().signal);
  return { status: answer.status, text: typeof answer.body === "string" ? answer.body : "" };
}

const merge = "application/merge-patch+json";
const apply = "application/apply-patch+yaml";
const asTable = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
const adminOf = (server: ApiServer) => server.as({ name: "admin", groups: ["system:masters"] });
/** Who has no rights but those of every account. */
const accountOf = (server: ApiServer) => server.as({ name: "system:serviceaccount:default:default", groups: [] });
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** Seconds of processor time that some work takes: other processes do not change it. */
async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = process.cpuUsage();
  await work();
  return process.cpuUsage(began).user / 1e6;
}

/** Gives a user the rights of a ClusterRole in one namespace. */
async function bind(server: ApiServer, namespace: string, user: string, role: string): Promise<void> {
  const made = await send(adminOf(server), "POST", `${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata: { name: `${user}-${role}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: user }],
  });
  expect(made.status).toBe(201);
}

/** Has a policy refuse new ConfigMaps for which an expression is false. @param params labels of ConfigMaps to judge by. */
async function judgeMaps(
  server: ApiServer,
  expression: string,
  params?: Readonly<Record<string, string>>,
): Promise<void> {
  const admission = "/apis/admissionregistration.k8s.io/v1";
  const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] };
  await send(adminOf(server), "POST", `${admission}/validatingadmissionpolicies`, {
    metadata: { name: "p" },
    spec: {
      matchConstraints: { resourceRules: [rule] },
      ...(params === undefined ? {} : { paramKind: { apiVersion: "v1", kind: "ConfigMap" } }),
      validations: [{ expression }],
    },
  });
  await send(adminOf(server), "POST", `${admission}/validatingadmissionpolicybindings`, {
    metadata: { name: "b" },
    spec: {
      policyName: "p",
      validationActions: ["Deny"],
      ...(params === undefined
        ? {}
        : { paramRef: { selector: { matchLabels: params }, parameterNotFoundAction: "Allow" } }),
    },
  });
}

test("who may do everything in one namespace reaches no other through it [apiserver-hostile-1]", async () => {
  const server = start();
  for (const name of ["own", "other"])
    await send(adminOf(server), "POST", "/api/v1/namespaces", { metadata: { name } });
  await bind(server, "own", "eve", "cluster-admin");
  const eve = server.as({ name: "eve", groups: [] });
  expect((await send(eve, "GET", "/api/v1/namespaces/own")).status).toBe(200);
  const below = "/api/v1/namespaces/own/namespaces";
  const labels = { metadata: { labels: { a: "b" } } };
  for (const [method, target, body, type] of [
    ["GET", `${below}/other`],
    ["GET", below],
    ["GET", `${below}?watch=1&timeoutSeconds=1`],
    ["PATCH", `${below}/other`, labels, merge],
    ["PUT", `${below}/other/finalize`, { metadata: { name: "other" }, spec: {} }],
    ["POST", below, { metadata: { name: "more" } }],
    ["DELETE", `${below}/other`],
  ] as const)
    expect((await send(eve, method, target, body, type)).status, `${method} ${target}`).toBe(404);
  const other = await send(adminOf(server), "GET", "/api/v1/namespaces/other");
  expect(JSON.parse(other.text)).toMatchObject({ status: { phase: "Active" } });
  server.close();
});

test("reviews that ask about long names are answered, and not kept [apiserver-hostile-2]", async () => {
  const server = start();
  const kept = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed / 1e6;
  };
  const ask = (index: number) =>
    send(accountOf(server), "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
      spec: { resourceAttributes: { namespace: `${index}${"x".repeat(2_000_000)}`, verb: "get", resource: "pods" } },
    });
  expect((await ask(0)).status).toBe(201);
  const before = kept();
  for (let index = 1; index <= 30; index += 1) await ask(index);
  expect(kept() - before, "MB").toBeLessThan(20);
  server.close();
});

test("a HEAD request for a watch or a log leaves nothing behind [apiserver-hostile-3]", async () => {
  let timers = 0;
  const after: Clock["after"] = (milliseconds, run) => {
    timers += 1;
    const cancel = systemClock.after(milliseconds, run);
    return () => {
      timers -= 1;
      cancel();
    };
  };
  const signals: AbortSignal[] = [];
  const server = start({
    clock: { ...systemClock, after },
    logs: (_, signal) => {
      signals.push(signal);
      return Promise.resolve({ status: 200, headers: {}, body: (async function* () {})() });
    },
  });
  expect((await send(adminOf(server), "HEAD", `${maps}?watch=1&allowWatchBookmarks=1`)).status).toBe(200);
  expect(timers).toBe(0);
  const spec = { nodeName: "n", containers: [{ name: "c", image: "i" }] };
  await send(adminOf(server), "POST", "/api/v1/namespaces/default/pods", { metadata: { name: "p" }, spec });
  expect((await send(adminOf(server), "HEAD", "/api/v1/namespaces/default/pods/p/log?follow=1")).status).toBe(200);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  server.close();
});

test("who may write in one namespace cannot fill the server [apiserver-hostile-20]", async () => {
  const server = start({ room: { ...defaultRoom, resourceBytes: 50_000, namespaceBytes: 150_000 } });
  const create = (namespace: string, name: string) =>
    send(adminOf(server), "POST", `/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name },
      data: { long: "x".repeat(9_000) },
    });
  expect((await create("default", "a")).status).toBe(201);
  expect((await create("default", "b")).status).toBe(201);
  const refused = await create("default", "c");
  expect(refused.status).toBe(403);
  expect(refused.text).toContain('configmaps \\"c\\" is forbidden: exceeded quota');
  const more = { data: { more: "x".repeat(9_000) } };
  expect((await send(adminOf(server), "PATCH", `${maps}/a`, more, merge)).status).toBe(403);
  expect((await create("kube-system", "c")).status).toBe(201);
  expect((await send(adminOf(server), "DELETE", `${maps}/a`)).status).toBe(200);
  expect((await create("default", "c")).status).toBe(201);
  server.close();
});

test("root on a node fills no memory with events of many short fields in any namespace [apiserver-hostile-35]", async () => {
  const events = 4 * 1024 * 1024;
  const half = { events: events / 2 };
  const server = start({ room: { ...defaultRoom, everywhereBytes: half, clusterBytes: half } });
  const node = server.as({ name: "system:node:n", groups: ["system:nodes"] });
  const kept = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = kept();
  const statuses = new Set<number>();
  for (const namespace of ["default", "kube-system", "kube-public", "kube-node-lease"]) {
    for (const name of many(3, (index) => `e${index}`)) {
      const fieldsV1 = Object.fromEntries(many(8_000, (index) => [`f:${name}${index.toString(36)}`, {}]));
      const owner = { manager: "m", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1 };
      const about = {
        involvedObject: { kind: "Pod", namespace, name: "p" },
        reason: "r",
        message: "m",
        type: "Normal",
      };
      const event = { metadata: { name, managedFields: [owner] }, ...about };
      const target = `/api/v1/namespaces/${namespace}/events`;
      await send(node, "POST", target, { ...event, metadata: { name } });
      statuses.add((await send(node, "PUT", `${target}/${name}`, event)).status);
    }
  }
  expect([...statuses].sort()).toEqual([200, 403]);
  // Beside what is stored there are its last changes.
  expect((kept() - before) / events, "of what events may take").toBeLessThan(2.5);
  server.close();
});

test("a long answer in YAML is JSON, which takes no time and which readers of YAML read [apiserver-hostile-36]", async () => {
  const server = start();
  const admin = adminOf(server);
  const yaml = { accept: "application/yaml" };
  const read = async (method: string, target: string, body?: unknown, type?: string) => {
    const { status, text } = await send(admin, method, target, body, type, yaml);
    expect(status).toBeLessThan(202);
    const json = readAsJson(text);
    // A reader of YAML, which takes seconds, is for short ones.
    return json === undefined ? ([text.slice(0, 14), "YAML"] as const) : ([json, "JSON"] as const);
  };
  const data = Object.fromEntries(many(40_000, (index) => [`k${index.toString(36)}`, ""]));
  const long = { kind: "ConfigMap", data };
  const seconds = await secondsOf(async () => {
    expect(await read("POST", maps, { metadata: { name: "long" }, data })).toEqual([
      expect.objectContaining(long),
      "JSON",
    ]);
    expect(await read("GET", `${maps}/long`)).toEqual([expect.objectContaining(long), "JSON"]);
    const label = { metadata: { labels: { a: "b" } } };
    expect(await read("PATCH", `${maps}/long`, label, merge)).toEqual([expect.objectContaining(long), "JSON"]);
    expect(await read("GET", maps)).toEqual([expect.objectContaining({ kind: "ConfigMapList" }), "JSON"]);
    expect(await read("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Dlong")).toEqual([
      expect.objectContaining({ kind: "ConfigMapList" }),
      "JSON",
    ]);
    expect(await read("DELETE", maps)).toEqual([expect.objectContaining({ kind: "ConfigMapList" }), "JSON"]);
  });
  expect(seconds).toBeLessThan(6);
  expect(await read("POST", maps, { metadata: { name: "short" } })).toEqual(["apiVersion: v1", "YAML"]);
  server.close();
});

test("a deep answer in YAML is JSON: each line of it would be indented by its depth [apiserver-hostile-37]", async () => {
  const server = start();
  const fields = many(4_000, (index) => `"f:${index}":{}`).join();
  const deep = `${'{"f:a":'.repeat(700)}{${fields}}${"}".repeat(700)}`;
  const owner = `{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${deep}}`;
  const body = (fields: string) => `{"metadata":{"name":"deep","managedFields":[${fields}]}}`;
  expect((await send(adminOf(server), "POST", maps, body(""))).status).toBe(201);
  expect((await send(adminOf(server), "PUT", `${maps}/deep`, body(owner))).status).toBe(200);
  const answer = await send(adminOf(server), "GET", `${maps}/deep`, undefined, undefined, {
    accept: "application/yaml",
  });
  expect(readAsJson(answer.text)).toMatchObject({ metadata: { name: "deep" } });
  expect(answer.text.length).toBeLessThan(64 * 1024);
  server.close();
});

function readAsJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

describe("the time that a request takes is in proportion to it", () => {
  const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

  test.for([
    ["keys", many(30_000, (i) => `k${i}:`).join("\n")],
    ["keys in brackets", `{${many(40_000, (i) => `k${i}`).join(",")}}`],
    ["aliases", many(20_000, (i) => `- &a${i} x\n- *a${i}`).join("\n")],
  ] as const)("of YAML with many %s [apiserver-hostile-4]", async ([, text]) => {
    const server = start();
    const seconds = await secondsOf(() => send(accountOf(server), "POST", reviews, text, "application/yaml"));
    expect(seconds).toBeLessThan(4);
    server.close();
  });

  test("of an object with many controllers [apiserver-hostile-5]", async () => {
    const server = start();
    const ownerReferences = many(3_000, (i) => ({
      apiVersion: "v1",
      kind: "Pod",
      name: `p${i}`,
      uid: `u${i}`,
      controller: true,
    }));
    const work = async () => {
      const refused = await send(adminOf(server), "POST", maps, { metadata: { name: "m", ownerReferences } });
      expect(refused.status).toBe(422);
      expect(refused.text.slice(0, 200)).toContain("metadata.ownerReferences: Invalid value");
    };
    expect(await secondsOf(work)).toBeLessThan(1.5);
    server.close();
  });

  test("of a change of a pod with many tolerations and gates [apiserver-hostile-6]", async () => {
    const server = start();
    const spec = {
      containers: [{ name: "c", image: "i" }],
      tolerations: many(8_000, (i) => ({ key: `k${i}`, operator: "Exists", effect: "NoExecute" })),
      schedulingGates: many(20_000, (i) => ({ name: `g${i}` })),
    };
    const pods = "/api/v1/namespaces/default/pods";
    expect((await send(adminOf(server), "POST", pods, { metadata: { name: "p" }, spec })).status).toBe(201);
    const work = async () => {
      const changed = await send(adminOf(server), "PATCH", `${pods}/p/status`, { status: { message: "m" } }, merge);
      expect(changed.status).toBe(200);
    };
    expect(await secondsOf(work)).toBeLessThan(4);
    server.close();
  });

  test("of a certificate request with many usages [apiserver-hostile-7]", async () => {
    const server = start();
    const spec = { signerName: "example.com/s", request: "", usages: many(80_000, (i) => `u${i}`) };
    const csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const work = async () =>
      expect((await send(adminOf(server), "POST", csrs, { metadata: { name: "c" }, spec })).status).toBe(422);
    expect(await secondsOf(work)).toBeLessThan(4);
    server.close();
  });

  test.for(["Apply", "Update"])(
    "of a change of an object with many managers that %s [apiserver-hostile-8]",
    async (operation) => {
      const server = start();
      const data = Object.fromEntries(many(10_000, (i) => [`k${i}`, ""]));
      const managedFields = many(10_000, (i) => ({
        manager: `m${i}`,
        operation,
        apiVersion: "v1",
        fieldsType: "FieldsV1",
        fieldsV1: { "f:data": { [`f:k${i}`]: {} } },
      }));
      await send(adminOf(server), "POST", maps, { metadata: { name: "m" }, data });
      const work = async () => {
        const body = { metadata: { name: "m", managedFields }, data };
        expect((await send(adminOf(server), "PUT", `${maps}/m`, body)).status).toBe(200);
        const applied = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, data: { z: "" } };
        const target = `${maps}/m?fieldManager=z`;
        expect((await send(adminOf(server), "PATCH", target, applied, "application/apply-patch+yaml")).status).toBe(
          200,
        );
      };
      expect(await secondsOf(work)).toBeLessThan(4);
      server.close();
    },
  );

  test("of a long list map whose items become wrong [apiserver-hostile-9]", async () => {
    const server = start();
    const item = {
      type: "object",
      required: ["n"],
      properties: { n: { type: "integer" }, v: { type: "string", maxLength: 1 } },
    };
    const spec = { type: "array", items: item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"] };
    const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
    await send(adminOf(server), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { plural: "things", kind: "Thing" },
        versions: [{ name: "v1", served: true, storage: true, schema }],
      },
    });
    const things = "/apis/example.com/v1/things";
    const thing = { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "t" } };
    const made = await send(adminOf(server), "POST", things, { ...thing, spec: many(20_000, (n) => ({ n, v: "a" })) });
    expect(made.status).toBe(201);
    const wrong = { spec: many(20_000, (n) => ({ n, v: "aa" })) };
    const work = async () =>
      expect((await send(adminOf(server), "PATCH", `${things}/t`, wrong, merge)).status).toBe(422);
    expect(await secondsOf(work)).toBeLessThan(5);
    server.close();
  });

  test("of a role whose author has long rules of their own [apiserver-hostile-10]", async () => {
    const server = start();
    await bind(server, "default", "eve", "admin");
    const eve = server.as({ name: "eve", groups: [] });
    const resourceNames = many(60_000, (i) => `n${i}`);
    const rules = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"], resourceNames }];
    expect(
      (await send(eve, "POST", `${rbac}/namespaces/default/roles`, { metadata: { name: "long" }, rules })).status,
    ).toBe(201);
    const subjects = [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "eve" }];
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "long" };
    // Its name comes before that of the other binding: these rules are looked at first.
    await send(adminOf(server), "POST", `${rbac}/namespaces/default/rolebindings`, {
      metadata: { name: "a" },
      roleRef,
      subjects,
    });
    const work = async () => {
      const again = await send(eve, "POST", `${rbac}/namespaces/default/roles`, { metadata: { name: "again" }, rules });
      expect(again.status).toBe(403);
      expect(again.text).toContain("cannot be compared with your rights");
    };
    expect(await secondsOf(work)).toBeLessThan(3);
    server.close();
  });

  test("of a table row of a pod with many gates and conditions [apiserver-hostile-11]", async () => {
    const server = start();
    const pods = "/api/v1/namespaces/default/pods";
    const readinessGates = many(8_000, (i) => ({ conditionType: `gate${i}` }));
    const spec = { containers: [{ name: "c", image: "i" }], readinessGates };
    await send(adminOf(server), "POST", pods, { metadata: { name: "p" }, spec });
    const conditions = many(8_000, (i) => ({ type: i === 0 ? "gate7" : `other${i}`, status: "True" }));
    await send(adminOf(server), "PATCH", `${pods}/p/status`, { status: { conditions } }, merge);
    const work = async () => {
      const answer = await send(adminOf(server), "GET", `${pods}/p`, undefined, "application/json", asTable);
      expect(answer.text).toContain('"1/8000"');
    };
    expect(await secondsOf(work)).toBeLessThan(2);
    server.close();
  });

  test("of a quantity with many digits [apiserver-hostile-12]", async () => {
    const server = start();
    const spec = { containers: [{ name: "c", image: "i", resources: { limits: { cpu: "7".repeat(1_000_000) } } }] };
    const work = async () => {
      const refused = await send(adminOf(server), "POST", "/api/v1/namespaces/default/pods", {
        metadata: { name: "p" },
        spec,
      });
      expect(refused.status).toBe(400);
    };
    expect(await secondsOf(work)).toBeLessThan(1.5);
    server.close();
  });

  test("of more labels with problems than a call takes arguments [apiserver-hostile-69]", async () => {
    const server = start();
    const labels = Object.fromEntries(many(160_000, (i) => [`-${i}`, ""]));
    const refused = await send(adminOf(server), "POST", "/api/v1/namespaces/default/configmaps", {
      metadata: { name: "m", labels },
    });
    expect(refused.status).toBe(422);
    server.close();
  });

  test("of a duration with many digits [apiserver-hostile-13]", () => {
    const began = process.cpuUsage();
    expect(formats["duration"]?.(`${"1".repeat(40_000)}x`)).toBe(false);
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
  });

  test("of a review of a token for many audiences [apiserver-hostile-14]", async () => {
    const server = start();
    const account = "/api/v1/namespaces/default/serviceaccounts/default";
    const audiences = many(100_000, (i) => `a${i + 100_000}`);
    const made = await send(adminOf(server), "POST", `${account}/token`, { spec: { audiences } });
    const { token } = (JSON.parse(made.text) as { status: { token: string } }).status;
    const spec = { token, audiences: many(100_000, (i) => `b${i + 100_000}`) };
    const work = async () => {
      const review = await send(adminOf(server), "POST", "/apis/authentication.k8s.io/v1/tokenreviews", { spec });
      expect(review.status).toBe(201);
      expect(review.text).not.toContain('"authenticated":true');
    };
    expect(await secondsOf(work)).toBeLessThan(5);
    server.close();
  });
});

describe("the answer to a request is in proportion to it", () => {
  const long = "x".repeat(20_000);

  test("for endpoints with many addresses and ports, shown as a table [apiserver-hostile-15]", async () => {
    const server = start();
    const endpoints = "/api/v1/namespaces/default/endpoints";
    const subsets = [
      {
        addresses: many(2_000, (i) => ({ ip: `10.0.${i >> 8}.${i & 255}` })),
        ports: many(2_000, (i) => ({ port: i + 1, name: `p${i}` })),
      },
    ];
    expect((await send(adminOf(server), "POST", endpoints, { metadata: { name: "e" }, subsets })).status).toBe(201);
    const work = async () => {
      const row = await send(adminOf(server), "GET", `${endpoints}/e`, undefined, "application/json", asTable);
      expect(row.text).toContain('"10.0.0.0:1,10.0.0.1:1,10.0.0.2:1 + 3999997 more..."');
    };
    expect(await secondsOf(work)).toBeLessThan(1);
    server.close();
  });

  test("for a role that grants too much in many ways [apiserver-hostile-16]", async () => {
    const server = start();
    await bind(server, "default", "eve", "admin");
    const eve = server.as({ name: "eve", groups: [] });
    const rules = [{ apiGroups: [long], resources: many(40, (i) => `r${i}`), verbs: many(40, (i) => `v${i}`) }];
    const role = { metadata: { name: "r" }, rules };
    const refused = await send(eve, "POST", `${rbac}/namespaces/default/roles`, role);
    expect(refused.status).toBe(403);
    expect(refused.text.length).toBeLessThan(300_000);
    expect(refused.text).toContain("more");
    server.close();
  });

  test("for an applied configuration with many unknown fields below a long key [apiserver-hostile-17]", async () => {
    const server = start();
    const unknown = Object.fromEntries(many(1_000, (i) => [`u${i}`, 1]));
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "p" },
      spec: { containers: [{ name: long, image: "i", ...unknown }] },
    };
    const target = "/api/v1/namespaces/default/pods/p?fieldManager=z";
    const refused = await send(adminOf(server), "PATCH", target, pod, apply);
    expect(refused.status).toBe(500);
    expect(refused.text.length).toBeLessThan(300_000);
    server.close();
  });

  test("for an applied configuration that conflicts in many fields with many managers [apiserver-hostile-18]", async () => {
    const server = start();
    const data = Object.fromEntries(many(2_000, (i) => [`k${i}`, ""]));
    const managedFields = many(50, (i) => ({
      manager: `m${i}`,
      operation: "Apply",
      apiVersion: "v1",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": Object.fromEntries(many(2_000, (at) => [`f:k${at}`, {}])) },
    }));
    await send(adminOf(server), "POST", maps, { metadata: { name: "m" }, data });
    await send(adminOf(server), "PUT", `${maps}/m`, { metadata: { name: "m", managedFields }, data });
    const other = Object.fromEntries(many(2_000, (i) => [`k${i}`, "other"]));
    const applied = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, data: other };
    const refused = await send(adminOf(server), "PATCH", `${maps}/m?fieldManager=z`, applied, apply);
    expect(refused.status).toBe(409);
    expect(refused.text.slice(0, 300)).toContain("100000 conflicts");
    expect(refused.text.length).toBeLessThan(300_000);
    server.close();
  });

  test("for an object with many dropped fields below a long key [apiserver-hostile-19]", async () => {
    const server = start();
    const inner = { type: "object", properties: { a: { type: "string" } } };
    const spec = { type: "object", additionalProperties: inner };
    await send(adminOf(server), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { plural: "things", kind: "Thing" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
          },
        ],
      },
    });
    const thing = {
      apiVersion: "example.com/v1",
      kind: "Thing",
      metadata: { name: "t" },
      spec: { [long.repeat(50)]: Object.fromEntries(many(20_000, (i) => [`u${i}`, 1])) },
    };
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    const made = await send(adminOf(server), "POST", "/apis/example.com/v1/things", thing);
    expect(made.status).toBe(201);
    expect((process.memoryUsage().heapUsed - before) / 1e6, "MB").toBeLessThan(300);
    expect(JSON.parse(made.text)).toMatchObject({ spec: { [long.repeat(50)]: {} } });
    server.close();
  });
});

describe("who may write the roles of one namespace takes no more of the server than these", () => {
  /** A namespace's administrator with a role of many rules, which a group has by many bindings. */
  async function withLongRole(server: ApiServer, bindings: number): Promise<HttpHandler> {
    await bind(server, "default", "eve", "admin");
    const eve = server.as({ name: "eve", groups: [] });
    const rules = many(20_000, () => ({ verbs: ["get"], apiGroups: [""], resources: ["pods"] }));
    const roles = `${rbac}/namespaces/default`;
    expect((await send(eve, "POST", `${roles}/roles`, { metadata: { name: "long" }, rules })).status).toBe(201);
    for (const index of many(bindings, (i) => i)) {
      const made = await send(eve, "POST", `${roles}/rolebindings`, {
        metadata: { name: `b${index}` },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "long" },
        subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "g" }],
      });
      expect(made.status).toBe(201);
    }
    return eve;
  }

  test("by reviews about users that have a long role many times [apiserver-hostile-21]", async () => {
    const server = start();
    const eve = await withLongRole(server, 5);
    const ask = async (index: number, verb: string) => {
      const target = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
      const resourceAttributes = { namespace: "default", verb, resource: "pods" };
      const review = await send(eve, "POST", target, {
        spec: { user: `u${index}`, groups: ["g"], resourceAttributes },
      });
      return (JSON.parse(review.text) as { status: { allowed: boolean } }).status.allowed;
    };
    expect(await ask(0, "get")).toBe(true);
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let index = 1; index <= 5; index += 1) expect(await ask(index, "list")).toBe(false);
    collectGarbage();
    expect((process.memoryUsage().heapUsed - before) / 1e6, "MB").toBeLessThan(50);
    server.close();
  });

  test("by changes of one of many bindings [apiserver-hostile-22]", async () => {
    const server = start();
    await bind(server, "default", "eve", "admin");
    const eve = server.as({ name: "eve", groups: [] });
    const bindings = `${rbac}/namespaces/default/rolebindings`;
    const subjects = many(12_000, (i) => ({ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: `u${i}` }));
    for (const index of many(4, (i) => i)) {
      const made = await send(eve, "POST", bindings, {
        metadata: { name: `b${index}` },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
        subjects: index === 0 ? subjects.slice(0, 1) : subjects,
      });
      expect(made.status).toBe(201);
    }
    const u5 = server.as({ name: "u5", groups: [] });
    const list = async () => (await send(u5, "GET", "/api/v1/namespaces/default/pods")).status;
    const work = async () => {
      for (let index = 0; index < 100; index += 1) {
        const labels = { [`l${index}`]: "x" };
        expect((await send(eve, "PATCH", `${bindings}/b0`, { metadata: { labels } }, merge)).status).toBe(200);
        expect(await list()).toBe(200);
      }
    };
    expect(await secondsOf(work)).toBeLessThan(2);
    // What a binding no longer gives, nobody has.
    for (const index of many(3, (i) => i + 1)) {
      expect(await list()).toBe(200);
      await send(eve, "PATCH", `${bindings}/b${index}`, { subjects: subjects.slice(6) }, merge);
    }
    expect(await list()).toBe(403);
    await send(eve, "PATCH", `${bindings}/b0`, { subjects: subjects.slice(5, 6) }, merge);
    expect(await list()).toBe(200);
    await send(eve, "DELETE", `${bindings}/b0`);
    expect(await list()).toBe(403);
    server.close();
  });
});

describe("a patch takes time in proportion to it and to its object", () => {
  test("with many keys that are to be retained [apiserver-hostile-23]", async () => {
    const server = start();
    await send(adminOf(server), "POST", maps, { metadata: { name: "m" }, data: { a: "", k7: "old" } });
    const keys = many(70_000, (i) => `k${i}`);
    const patch = { data: { $retainKeys: keys, ...Object.fromEntries(keys.map((key) => [key, ""])) } };
    const work = async () => {
      const patched = await send(
        adminOf(server),
        "PATCH",
        `${maps}/m`,
        patch,
        "application/strategic-merge-patch+json",
      );
      const { data } = JSON.parse(patched.text) as { data: Record<string, string> };
      expect([Object.keys(data).length, data["a"], data["k7"]]).toEqual([70_000, undefined, ""]);
    };
    expect(await secondsOf(work)).toBeLessThan(2.5);
    server.close();
  });

  test("with many operations at the begin of a long list [apiserver-hostile-24]", async () => {
    const server = start();
    await send(adminOf(server), "POST", maps, { metadata: { name: "m" } });
    const insert = (length: number, count: number, step: object) =>
      send(
        adminOf(server),
        "PATCH",
        `${maps}/m`,
        [{ op: "add", path: "/metadata/finalizers", value: many(length, () => "a") }, ...many(count, () => step)],
        "application/json-patch+json",
      );
    const moved = { op: "move", from: "/metadata/finalizers/1", path: "/metadata/finalizers/390000" };
    const work = async () => expect((await insert(400_000, 9_999, moved)).status).toBe(422);
    expect(await secondsOf(work)).toBeLessThan(2.5);
    // A list as long as any that is in use takes as many operations as a patch may have.
    const passed = await insert(1_000, 9_999, { op: "test", path: "/metadata/finalizers/999", value: "a" });
    expect(JSON.parse(passed.text)).toMatchObject({ details: { kind: "ConfigMap" } });
    server.close();
  });
});

test("a body of a million empty objects is refused before anything is made of them [apiserver-hostile-29]", async () => {
  const server = start();
  await bind(server, "default", "eve", "edit");
  const eve = server.as({ name: "eve", groups: [] });
  const empty = `[${many(1_000_000, () => "{}").join()}]`;
  const pod = (containers: string) => `{"metadata":{"name":"p"},"spec":{"containers":${containers}}}`;
  const work = async () => {
    const answer = await send(eve, "POST", "/api/v1/namespaces/default/pods", pod(empty));
    expect(answer).toEqual({ status: 400, text: expect.stringContaining("more than 250000 objects") });
  };
  expect(await secondsOf(work)).toBeLessThan(2.5);
  const patched = await send(eve, "PATCH", `${maps}/m`, `{"spec":${empty}}`, merge);
  expect(patched).toEqual({ status: 400, text: expect.stringContaining("more than 250000 objects") });
  // As many as any object has that fits into etcd.
  const some = await send(eve, "POST", maps, { metadata: { name: "m", managedFields: many(100_000, () => ({})) } });
  expect(some.status).toBe(201);
  server.close();
});

test("beyond a quarter of a mebibyte YAML is read if it is JSON, as kubectl applies it [apiserver-hostile-31]", async () => {
  const server = start();
  const applied = (text: string) => send(adminOf(server), "PATCH", `${maps}/m?fieldManager=t`, text, apply);
  const data = "x".repeat(1_000_000);
  const head = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" } };
  expect(
    (await applied(JSON.stringify({ ...head, binaryData: {}, data: { a: data, b: "y".repeat(40_000) } }))).status,
  ).toBe(201);
  const tags = many(50_000, (at) => `? !a${at} b`).join("\n");
  const work = async () =>
    expect(await applied(tags)).toEqual({
      status: 400,
      text: expect.stringContaining("beyond 256 KiB, YAML must be JSON"),
    });
  expect(await secondsOf(work)).toBeLessThan(2.5);
  server.close();
});

test("a pod whose end no calendar has can be deleted and evicted [apiserver-hostile-30]", async () => {
  const server = start();
  const pods = "/api/v1/namespaces/default/pods";
  for (const name of ["a", "b"]) {
    const spec = { nodeName: "n", terminationGracePeriodSeconds: 9e15, containers: [{ name: "c", image: "i" }] };
    expect((await send(adminOf(server), "POST", pods, { metadata: { name }, spec })).status).toBe(201);
  }
  expect((await send(adminOf(server), "DELETE", `${pods}/a`)).status).toBe(200);
  expect((await send(adminOf(server), "POST", `${pods}/b/eviction`, {})).status).toBe(201);
  server.close();
});

test("a key of a Secret or ConfigMap that is no name of a file is refused, as by kube-apiserver [apiserver-hostile-34]", async () => {
  const server = start();
  const answers = await Promise.all(
    [".", "..", "..data", "..2026_01_01.a", "a/b", "a..b", ".a"].flatMap((key) =>
      ["secrets", "configmaps"].map(async (plural) => {
        const body = { metadata: { generateName: "k-" }, data: { [key]: "YQ==" } };
        const { status } = await send(adminOf(server), "POST", `/api/v1/namespaces/default/${plural}`, body);
        return `${key} ${status}`;
      }),
    ),
  );
  expect(new Set(answers)).toEqual(
    new Set([". 422", ".. 422", "..data 422", "..2026_01_01.a 422", "a/b 422", "a..b 201", ".a 201"]),
  );
  server.close();
});

test("a label that every object of the language has hides no other label from a policy [apiserver-hostile-32]", async () => {
  const server = start();
  const admin = adminOf(server);
  await judgeMaps(server, "object.metadata.?labels[?'tier'].orValue('') != 'gold'");
  const made = (labels: Readonly<Record<string, string>>) =>
    send(admin, "POST", maps, { metadata: { generateName: "m-", labels } }).then(({ status }) => status);

  expect(await made({ tier: "gold" })).toBe(422);
  expect(await made({ constructor: "x", tier: "gold" })).toBe(422);
  expect(await made({ constructor: "x", tier: "iron" })).toBe(201);
  server.close();
});

test("a large object is read once for a policy with many parameters [apiserver-hostile-33]", async () => {
  const server = start();
  const admin = adminOf(server);
  const labels = { param: "yes" };
  for (const name of many(150, (index) => `p-${index}`))
    await send(admin, "POST", maps, { metadata: { name, labels } });
  await judgeMaps(server, "object.metadata.name != params.metadata.name", labels);

  const data = Object.fromEntries(many(100_000, (index) => [`k${index}`, ""]));
  const seconds = await secondsOf(async () => {
    expect((await send(admin, "POST", maps, { metadata: { name: "large" }, data })).status).toBe(201);
  });
  expect(seconds).toBeLessThan(10);
  server.close();
});

test("an object that gets another generated name is judged by that one [apiserver-hostile-25]", async () => {
  const numbers = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.99, 0.99, 0.99, 0.99, 0.99];
  const server = start({ random: { ...systemRandom, next: () => numbers.shift() ?? systemRandom.next() } });
  await judgeMaps(server, "!object.metadata.name.endsWith('99999')");
  const metadata = { generateName: "m-" };
  expect((await send(adminOf(server), "POST", maps, { metadata })).status).toBe(201);
  expect((await send(adminOf(server), "POST", maps, { metadata })).status).toBe(422);
  expect(numbers).toEqual([]);
  server.close();
});

test("a watch ends in time, however long it is asked for [apiserver-hostile-26]", async () => {
  const waits: number[] = [];
  const after: Clock["after"] = (milliseconds, run) => {
    waits.push(milliseconds);
    return systemClock.after(milliseconds, run);
  };
  const server = start({ clock: { ...systemClock, after } });
  waits.length = 0;
  const controller = new AbortController();
  const request = { method: "GET", target: `${maps}?watch=1&timeoutSeconds=100000000`, headers: {} };
  expect((await adminOf(server)(request, controller.signal)).status).toBe(200);
  expect(waits).toEqual([3_600_000]);
  controller.abort();
  server.close();
});

describe("a node with its kubelet's certificate", () => {
  const pods = "/api/v1/namespaces/default/pods";
  const nodeOf = (server: ApiServer) => server.as({ name: "system:node:n", groups: ["system:nodes"] });
  const podOn = (name: string, nodeName: string) => ({
    metadata: { name },
    spec: { nodeName, containers: [{ name: "c", image: "i", env: [{ name: "PASSWORD", value: "canary" }] }] },
  });

  test("fills no memory with its own pod while that is being deleted [apiserver-hostile-27]", async () => {
    const server = start();
    const admin = adminOf(server);
    await send(nodeOf(server), "POST", "/api/v1/nodes", { metadata: { name: "n" } });
    const { uid } = (JSON.parse((await send(admin, "GET", "/api/v1/nodes/n")).text) as { metadata: { uid: string } })
      .metadata;
    const mirror = {
      metadata: {
        name: "mirror",
        annotations: { "kubernetes.io/config.mirror": "x" },
        finalizers: ["example.com/stays"],
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid, controller: true }],
      },
      spec: { nodeName: "n", containers: [{ name: "c", image: "i" }] },
    };
    expect((await send(nodeOf(server), "POST", pods, mirror)).status).toBe(201);
    const deleted = await send(nodeOf(server), "DELETE", `${pods}/mirror?gracePeriodSeconds=0`);
    expect(JSON.parse(deleted.text)).toMatchObject({ metadata: { deletionTimestamp: expect.any(String) } });
    const statuses: number[] = [];
    for (const type of ["a", "b", "c"]) {
      const status = { conditions: [{ type, status: "True", message: "x".repeat(2_000_000) }] };
      const strategic = "application/strategic-merge-patch+json";
      statuses.push((await send(nodeOf(server), "PATCH", `${pods}/mirror/status`, { status }, strategic)).status);
    }
    expect(statuses).toEqual([200, 413, 413]);
    server.close();
  });

  test("is shown no pod of another node by a watch from long ago [apiserver-hostile-28]", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mco-hostile-"));
    const store = sqliteStore({ file: join(folder, "store.db") });
    const server = start({ store, history: { memoryEvents: 1, storedEvents: 20 } });
    const admin = adminOf(server);
    const write = async (count: number) => {
      await Promise.all(many(count, () => send(admin, "POST", maps, { metadata: { generateName: "m-" } })));
    };
    expect((await send(admin, "POST", pods, podOn("pod", "other"))).status).toBe(201);
    // What the pod was like before its next change is forgotten.
    await write(60);
    const since = store.revision();
    await send(admin, "PATCH", `${pods}/pod`, { metadata: { labels: { a: "b" } } }, merge);
    await write(5);
    const selector = encodeURIComponent("spec.nodeName=n,metadata.name=pod");
    for (const target of [`${pods}?watch=1&resourceVersion=${since}&fieldSelector=${selector}`]) {
      const controller = new AbortController();
      const answer = await nodeOf(server)({ method: "GET", target, headers: {} }, controller.signal);
      expect(answer.status).toBe(200);
      controller.abort();
      let text = "";
      for await (const chunk of answer.body as AsyncIterable<string>) text += chunk;
      expect(text).not.toContain("canary");
      // The watcher lists again.
      expect(JSON.parse(text)).toMatchObject({ type: "ERROR", object: { code: 410 } });
    }
    server.close();
    store.close();
    await rm(folder, { recursive: true });
  });
});

test("long YAML is read beside the server, and means the same [apiserver-hostile-45]", async () => {
  const texts: string[] = [];
  const further: string[] = [];
  const server = start({
    turns: {
      begin: () => Promise.resolve("begun"),
      goOn: ({ of }) => Promise.resolve(void further.push(of)),
    },
    readYaml: (text, share) => {
      texts.push(share);
      return Promise.resolve(readYaml(text));
    },
  });
  const yaml = "application/yaml";
  const account = accountOf(server);
  const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const long = `spec: {resourceAttributes: {verb: get, resource: pods}}\nx:\n${"- {}\n".repeat(10_000)}`;
  expect((await send(account, "POST", reviews, long, yaml)).status).toBe(201);
  const wrong = await send(account, "POST", reviews, `${long}\nx: y`, yaml);
  expect(wrong).toEqual({ status: 400, text: expect.stringContaining("a key stands there twice") });
  const data = many(2_000, (index) => `  k${index}: "v"\n`).join("");
  const applied = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n${data}`;
  const made = await send(adminOf(server), "PATCH", `${maps}/m?fieldManager=x`, applied, apply);
  expect([made.status, JSON.parse(made.text)]).toEqual([201, expect.objectContaining({ kind: "ConfigMap" })]);
  expect(texts).toEqual(["system:serviceaccount:default", "system:serviceaccount:default", "admin"]);
  // What follows is work of the same users.
  expect(further).toEqual(texts);
  // Nobody waits for what is short, or JSON under YAML's name, or not theirs to write.
  await send(account, "POST", reviews, "spec: {resourceAttributes: {}}", yaml);
  const asJson = JSON.stringify({ metadata: { name: "j" }, data: { long: "x".repeat(100_000) } });
  expect((await send(adminOf(server), "POST", maps, asJson, yaml)).status).toBe(201);
  expect((await send(account, "POST", maps, applied, yaml)).status).toBe(403);
  expect(texts).toHaveLength(3);
  server.close();
});

test("what follows the answer of a webhook is work of the user who asked, in a turn of theirs [apiserver-hostile-50]", async () => {
  const further: string[] = [];
  const server = start({
    turns: {
      begin: () => Promise.resolve("begun"),
      goOn: ({ of }) => Promise.resolve(void further.push(of)),
    },
    webhooks: ({ body }) => {
      const { request } = JSON.parse(body) as { request: { uid: string } };
      const response = { uid: request.uid, allowed: true };
      const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
      return Promise.resolve({ status: 200, body: JSON.stringify(review) });
    },
  });
  const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] };
  const hook = {
    name: "w.example.com",
    clientConfig: { url: "https://127.0.0.1:1/" },
    rules: [rule],
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
  };
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const made = await send(adminOf(server), "POST", path, { metadata: { name: "w" }, webhooks: [hook] });
  expect([made.status, further]).toEqual([201, []]);
  expect((await send(adminOf(server), "POST", maps, { metadata: { name: "m" } })).status).toBe(201);
  expect(further).toEqual(["admin"]);
  server.close();
});

test("the worst of the longest texts takes half of the heap of its thread [apiserver-hostile-49]", () => {
  const length = 20_000;
  const memory = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = memory();
  const document = kubernetesYaml(`[${":,".repeat(length / 2)}:]`);
  const bytes = memory() - before;
  expect(document.errors.length).toBeGreaterThan(length / 3);
  expect(((bytes / length) * yamlLimitCharacters) / 1024 ** 2).toBeLessThan(yamlHeapMb / 1.5);
});

test("users wait for their turns, and in long lists and deletions again [apiserver-hostile-46]", async () => {
  const turns: string[] = [];
  const server = start({
    turns: {
      begin({ of: share }) {
        turns.push(share);
        return Promise.resolve("begun");
      },
      goOn({ of: share }) {
        turns.push(share);
        return Promise.resolve();
      },
    },
  });
  const admin = adminOf(server);
  for (const name of many(300, (index) => `m${index}`)) await send(admin, "POST", maps, { metadata: { name } });
  await bind(server, "default", "eve", "edit");
  const eve = server.as({ name: "eve", groups: [] });
  const turnsOf = async (work: () => Promise<unknown>) => {
    turns.length = 0;
    await work();
    return turns.filter((share) => share === "eve").length;
  };
  expect(await turnsOf(() => send(eve, "GET", `${maps}/m1`))).toBe(1);
  expect(await turnsOf(() => send(eve, "DELETE", maps))).toBe(7);
  server.close();
});

test("objects of a deleted definition are deleted in turns of the server's own, until it closes [apiserver-hostile-61]", async () => {
  const store = memoryStore();
  const errors: unknown[] = [];
  const log = { ...silentLogger, error: (...line: unknown[]) => void errors.push(line) };
  const waiting: (() => void)[] = [];
  const options: Partial<ApiServerOptions> = {
    store,
    log,
    turns: {
      begin: () => Promise.resolve("begun"),
      goOn: ({ of, part }, signal) =>
        new Promise((resolve, reject) => {
          expect([of, part]).toEqual(["system:apiserver", "cluster"]);
          waiting.push(resolve);
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
    },
  };
  let server = start(options);
  const things = "/apis/x.io/v1/namespaces/default/things";
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const schema = { openAPIV3Schema: { type: "object" } };
  const spec = {
    group: "x.io",
    scope: "Namespaced",
    names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
    versions: [{ name: "v1", served: true, storage: true, schema }],
  };
  await send(adminOf(server), "POST", definitions, { metadata: { name: "things.x.io" }, spec });
  for (const name of many(230, (index) => `t${index}`)) {
    const body = { apiVersion: "x.io/v1", kind: "Thing", metadata: { name } };
    expect((await send(adminOf(server), "POST", things, body)).status).toBe(201);
  }
  const left = () => store.list({ limit: 1_000 }).items.filter(({ key }) => key.resource === "things.x.io").length;
  const nextTurn = async () => {
    waiting.pop()?.();
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
  };
  expect((await send(adminOf(server), "DELETE", `${definitions}/things.x.io`)).status).toBe(200);
  await vi.waitFor(() => expect(waiting).toHaveLength(1));
  expect(left()).toBe(180);
  await nextTurn();
  expect(left()).toBe(130);
  server.close();
  // The next server goes on with what is left.
  waiting.length = 0;
  server = start(options);
  await vi.waitFor(() => expect(waiting).toHaveLength(1));
  expect(left()).toBe(80);
  await nextTurn();
  expect(left()).toBe(30);
  waiting.pop()?.();
  await vi.waitFor(() => expect(left()).toBe(0));
  expect((await send(adminOf(server), "GET", `${definitions}/things.x.io`)).status).toBe(404);
  expect(errors).toEqual([]);
  server.close();
});

test("a few large objects are as long a list as many small ones, and wait for their turn before any is shown [apiserver-hostile-60]", async () => {
  let further = 0;
  const server = start({
    turns: {
      begin: () => Promise.resolve("begun"),
      goOn() {
        further += 1;
        return Promise.resolve();
      },
    },
  });
  const admin = adminOf(server);
  const turnsOf = async (target: string, headers: Record<string, string> = {}) => {
    further = 0;
    const controller = new AbortController();
    const { status } = await admin({ method: "GET", target, headers }, controller.signal);
    controller.abort();
    return [status, further];
  };
  for (const name of many(7, (index) => `m${index}`))
    await send(admin, "POST", maps, { metadata: { name }, data: { long: "x".repeat(900_000) } });
  expect(await turnsOf(maps)).toEqual([200, 2]);
  expect(await turnsOf(maps, asTable)).toEqual([200, 2]);
  expect(await turnsOf(`${maps}?watch=1`)).toEqual([200, 2]);
  expect(await turnsOf(`${maps}?limit=4`)).toEqual([200, 0]);
  server.close();
});

test("many watches that nobody reads hold no more than one user may leave unread, and others keep theirs [apiserver-hostile-62]", async () => {
  const mebi = 1024 * 1024;
  const limits = { others: 8 * mebi, nodes: mebi, cluster: 64 * mebi };
  const server = start({ unread: { ofOne: limits, ofAll: limits } });
  const admin = adminOf(server);
  await bind(server, "default", "eve", "edit");
  const eve = server.as({ name: "eve", groups: [] });
  const data = { long: "x".repeat(200_000) };
  const names = many(12, (index) => `m${index}`);
  for (const name of names) await send(admin, "POST", maps, { metadata: { name }, data });
  const { signal } = new AbortController();
  const watch = async (user: HttpHandler, name: string) => {
    const target = `${maps}?watch=1&fieldSelector=metadata.name=${name}`;
    const answer = await user({ method: "GET", target, headers: {} }, signal);
    return (answer.body as AsyncIterable<string>)[Symbol.asyncIterator]();
  };
  const own = await Promise.all(names.map((name) => watch(eve, name)));
  const others = await watch(admin, "m0");
  for (const each of [...own, others]) await each.next();
  let held = 0;
  for (let turn = 0; turn < 20; turn += 1)
    for (const name of names)
      await send(eve, "PATCH", `${maps}/${name}`, { metadata: { labels: { turn: `${turn}` } } }, merge);
  const open: boolean[] = [];
  for (const each of own) {
    const { done, value } = await each.next();
    held += typeof value === "string" ? value.length : 0;
    open.push(done !== true);
  }
  expect(held).toBeGreaterThan(mebi);
  expect(held).toBeLessThanOrEqual(8 * mebi);
  expect(new Set(open)).toEqual(new Set([true, false]));
  expect(((await others.next()).value as string).split("\n")).toHaveLength(21);
  server.close();
});

test("watches with long selectors have a room for each user, which a watch that ends gives back [apiserver-hostile-65]", async () => {
  const room = { others: 5_000, nodes: 5_000, cluster: 50_000 };
  const server = start({ selectors: { ofEach: 100, ofOne: room, ofAll: { ...room, others: 8_000 } } });
  for (const name of ["eve", "mallory", "bob"]) await bind(server, "default", name, "view");
  const watch = async (name: string, labelSelector: string) => {
    const ended = new AbortController();
    const target = `${maps}?watch=1&labelSelector=${labelSelector}`;
    const answer = await server.as({ name, groups: [] })({ method: "GET", target, headers: {} }, ended.signal);
    return { status: answer.status, end: () => ended.abort() };
  };
  const long = Array.from({ length: 620 }, (_, index) => `l${index}`).join(",");
  const [first, second] = [await watch("eve", long), await watch("eve", long)];
  expect([first.status, second.status, (await watch("eve", "a=b")).status]).toEqual([200, 429, 200]);
  // All users of a part share a room beyond their own.
  expect([(await watch("mallory", long)).status, (await watch("bob", long)).status]).toEqual([200, 429]);
  first.end();
  expect([(await watch("bob", long)).status, (await watch("eve", long)).status]).toEqual([200, 429]);
  server.close();
});

test("who has too many requests that wait is told to come later [apiserver-hostile-47]", async () => {
  const server = start({
    turns: {
      begin: ({ of: share }) => Promise.resolve(share === "eve" ? "tooMany" : "begun"),
      goOn: () => Promise.resolve(),
    },
  });
  const refused = await server.as({ name: "eve", groups: [] })(
    { method: "GET", target: maps, headers: {} },
    new AbortController().signal,
  );
  const status: unknown = typeof refused.body === "string" ? JSON.parse(refused.body) : undefined;
  expect([refused.status, refused.headers["retry-after"], status]).toEqual([
    429,
    "1",
    expect.objectContaining({ kind: "Status", reason: "TooManyRequests", code: 429 }),
  ]);
  expect((await send(adminOf(server), "GET", maps)).status).toBe(200);
  server.close();
});

test("budgets are read by who writes them, and not by the next eviction [apiserver-hostile-72]", async () => {
  const server = start();
  const admin = adminOf(server);
  const matchExpressions = many(500, (index) => ({ key: `k${index}`, operator: "NotIn", values: ["a", "b", "c"] }));
  for (const name of many(20, (index) => `b${index}`)) {
    const selector = { matchLabels: { app: "other" }, matchExpressions };
    const budget = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name }, spec: { selector } };
    expect((await send(admin, "POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)).status).toBe(
      201,
    );
  }
  const pods = "/api/v1/namespaces/default/pods";
  const evict = async (name: string) => {
    const made = await send(admin, "POST", pods, {
      metadata: { name },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    expect(made.status).toBe(201);
    await send(admin, "PATCH", `${pods}/${name}/status`, { status: { phase: "Running" } }, merge);
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
    return countWork(async () => {
      expect((await send(admin, "POST", `${pods}/${name}/eviction`, eviction)).status).toBe(201);
    });
  };
  const first = await evict("one");
  expect(first).toBeLessThan(2 * (await evict("two")));
  server.close();
});

describe("a request with a token that is none", () => {
  /** A server that notes whose turns are taken, and which texts are verified. */
  function startNoting(begin: () => "begun" | "tooMany" = () => "begun") {
    const turns: string[] = [];
    const verified: string[] = [];
    const keys = sharedSecretKeys(new Uint8Array(32));
    const server = start({
      tokenKeys: {
        ...keys,
        verify(data, signature) {
          // Each in a turn of whoever is known to have sent it: nobody.
          verified.push(turns.at(-1) ?? "before any turn");
          return keys.verify(data, signature);
        },
      },
      turns: {
        begin({ of: share }) {
          turns.push(share);
          return Promise.resolve(share === "system:anonymous" ? begin() : "begun");
        },
        goOn: () => Promise.resolve(),
      },
    });
    const ask = async (authorization: string, path = "/version") => {
      const request = { method: "GET", target: path, headers: { authorization } };
      const signal = new AbortController().signal;
      const caller = await server.callerOf(request, {}, signal);
      return (await server.handle(request, {}, signal, caller)).status;
    };
    return { server, turns, verified, ask };
  }
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const forged = (body: string) => `Bearer ${part({ alg: "HS256" })}.${body}.${"A".repeat(43)}`;

  test("takes a turn of strangers before it is verified, once, and never again [apiserver-hostile-70]", async () => {
    const { server, turns, verified, ask } = startNoting();
    turns.length = 0;
    expect(await ask(forged(part({ n: 1 })))).toBe(401);
    expect([turns, verified]).toEqual([["system:anonymous"], ["system:anonymous"]]);
    // The same one, which is remembered, one that no header needs, and what is no token at all.
    for (const header of [forged(part({ n: 1 })), forged("A".repeat(4096)), "Basic YTpi"])
      expect(await ask(header)).toBe(401);
    expect([turns.length, verified.length]).toEqual([4, 1]);

    // The request of who handles none before has its caller looked for in the same way.
    const headers = { authorization: forged(part({ n: 2 })) };
    const signal = new AbortController().signal;
    expect((await server.handle({ method: "GET", target: "/version", headers }, {}, signal)).status).toBe(401);
    expect([turns.length, verified.length]).toEqual([5, 2]);
    server.close();
  });

  test("waits with strangers, and keeps no place from who has one [apiserver-hostile-71]", async () => {
    let outcome: "begun" | "tooMany" = "begun";
    const { server, turns, verified, ask } = startNoting(() => outcome);
    const issued = await send(adminOf(server), "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    });
    const { token } = (JSON.parse(issued.text) as { status: { token: string } }).status;
    turns.length = 0;
    expect(await ask(`Bearer ${token}`)).toBe(200);
    expect(turns).toEqual(["system:anonymous", "system:serviceaccount:default"]);
    expect(verified).toEqual(["system:anonymous"]);

    outcome = "tooMany";
    turns.length = 0;
    expect(await ask(forged(part({})))).toBe(429);
    expect(await ask("Basic YTpi")).toBe(429);
    expect(await ask(`Bearer ${token}`)).toBe(200);
    expect(turns).toEqual(["system:anonymous", "system:anonymous", "system:serviceaccount:default"]);
    expect(verified).toHaveLength(1);
    server.close();
  });
});

test("of many long lists beside each other only one of a user is half made, and none of who went away [apiserver-hostile-48]", async () => {
  const turns = new Turns(eventLoop(() => performance.now()));
  const halfMade = new Set<AbortSignal>();
  let most = 0;
  const server = start({
    turns: {
      begin: async (share, signal) => {
        const outcome = await turns.begin(share, signal);
        halfMade.add(signal);
        most = Math.max(most, halfMade.size);
        return outcome;
      },
      goOn: (share, signal) => turns.goOn(share, signal),
    },
  });
  const admin = adminOf(server);
  for (const name of many(1_100, (index) => `m${index}`)) {
    await send(admin, "POST", maps, { metadata: { name } });
    halfMade.clear();
  }
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  let heap = 0;
  const list = async (signal: AbortSignal) => {
    try {
      return (await admin({ method: "GET", target: maps, headers: asTable }, signal)).status;
    } catch {
      return "gone";
    } finally {
      halfMade.delete(signal);
      if (heap === 0) {
        collectGarbage();
        heap = process.memoryUsage().heapUsed - before;
      }
    }
  };
  const callers = many(200, () => new AbortController());
  const lists = callers.map(({ signal }) => list(signal));
  for (const caller of callers.slice(100)) caller.abort(new Error("gone"));
  const statuses = await Promise.all(lists);
  expect(statuses).toEqual([...many(100, () => 200), ...many(100, () => "gone")]);
  expect(most).toBe(1);
  expect(heap).toBeLessThan(20_000_000);
  server.close();
});

test("a watch that begins with many objects takes turns, and misses nothing meanwhile [apiserver-hostile-52]", async () => {
  let further = 0;
  const server = start({
    turns: {
      begin: () => Promise.resolve("begun"),
      goOn: async () => {
        further += 1;
        if (further === 1) await send(adminOf(server), "POST", maps, { metadata: { name: "meanwhile" } });
        if (further === 2) await send(adminOf(server), "DELETE", `${maps}/m0`);
      },
    },
  });
  const admin = adminOf(server);
  const names = many(1_200, (index) => `m${index}`).sort();
  for (const name of names) await send(admin, "POST", maps, { metadata: { name } });
  const controller = new AbortController();
  const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1";
  const answer = await admin({ method: "GET", target: `${maps}?${query}`, headers: {} }, controller.signal);
  expect(further).toBe(3);
  controller.abort();
  let text = "";
  for await (const chunk of answer.body as AsyncIterable<string>) text += chunk;
  const lines = text
    .trim()
    .split("\n")
    .map(
      (line) => JSON.parse(line) as { type: string; object: { metadata: { name?: string; resourceVersion: string } } },
    );
  expect(lines.map(({ type, object }) => `${type} ${object.metadata.name ?? ""}`)).toEqual([
    ...names.map((name) => `ADDED ${name}`),
    "BOOKMARK ",
    "ADDED meanwhile",
    "DELETED m0",
  ]);
  const [marker, added] = lines.slice(-3).map(({ object }) => Number(object.metadata.resourceVersion));
  expect(added).toBe((marker ?? 0) + 1);
  server.close();
});

test("a watch that takes long to begin loses no event, however many there are meanwhile [apiserver-hostile-58]", async () => {
  const server = start({
    watchBacklog: 10,
    history: { memoryEvents: 5, storedEvents: 1_000 },
    turns: {
      begin: () => Promise.resolve("begun"),
      goOn: async () => {
        for (const name of many(40, (index) => `late${index}`))
          await send(adminOf(server), "POST", maps, { metadata: { name } });
      },
    },
  });
  const admin = adminOf(server);
  for (const name of many(501, (index) => `m${index}`)) await send(admin, "POST", maps, { metadata: { name } });
  const controller = new AbortController();
  const answer = await admin({ method: "GET", target: `${maps}?watch=1`, headers: {} }, controller.signal);
  await send(admin, "POST", maps, { metadata: { name: "last" } });
  controller.abort();
  let text = "";
  for await (const chunk of answer.body as AsyncIterable<string>) text += chunk;
  const names = text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name);
  expect([names.length, new Set(names).size]).toEqual([501 + 40 + 1, 501 + 40 + 1]);
  expect(names.slice(-3)).toEqual(["late38", "late39", "last"]);
  server.close();
});

test("a change takes tenths of a second, whatever selectors all watches hold [apiserver-hostile-68]", async () => {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789".split("");
  const keys = letters.flatMap((a) => letters.flatMap((b) => [`${a}${b}`, ...letters.map((c) => `${a}${b}${c}`)]));
  const labels = Object.fromEntries(keys.slice(0, 4_000).map((key) => [key, ""]));
  /** Terms that are all about labels of the object, and select it. */
  const selectorOf = (from: number, characters: number) => {
    const terms = Object.keys(labels).slice(from, from + characters / 4);
    const parsed = parseLabelSelector(
      terms
        .join()
        .slice(0, characters)
        .replace(/,\w{0,1}$/, ""),
    );
    if (parsed.verdict !== "valid") throw new Error(parsed.message);
    return parsed;
  };
  const { ofEach, ofAll } = selectorLimits;
  const longest = 16 * 1024;
  const long = many(Math.ceil(ofAll.others / (longest - ofEach)), () => selectorOf(0, longest));
  // All users have 6,000 connections.
  const short = many(6_000 - long.length, (at) => selectorOf(at % 3_800, ofEach));
  let selected = 0;
  const work = async () => {
    for (const state of [{ ...labels }, { ...labels }])
      for (const { matches } of [...long, ...short]) if (matches(state)) selected += 1;
  };
  expect(await secondsOf(work)).toBeLessThan(1);
  expect(selected).toBe(12_000);
});

test("a watch that begins with more than one text holds is told to list in pages [apiserver-hostile-59]", async () => {
  const live = liveObjects(memoryStore());
  const catalog = catalogOf(builtinDefinitions);
  const served = catalog.find("", "v1", "configmaps");
  const target = parseTarget("GET", "/api/v1/namespaces/n/configmaps?watch=1");
  if (served === undefined || target instanceof Refusal || target.form !== "resource") throw new Error("not found");
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m", namespace: "n" } };
  const key = { resource: "configmaps", namespace: "n", name: "m" };
  // Nobody makes texts of these sizes for a test.
  const json = { length: 3_000_000 } as unknown as string;
  const watches = new Map<WatchStream, string>();
  const begin = (count: number) =>
    watchObjects(
      {
        live: { ...live, list: () => many(count, () => ({ key, revision: 1, object, json, weight: 1 })) },
        catalog,
        admission: admissionChain([]),
        show: { ...representation(() => 0), object: () => "{}" },
        clock: systemClock,
        random: systemRandom,
        log: silentLogger,
        watches,
        unread: new UnreadLines(unreadLimits),
        selectors: new LongSelectors(selectorLimits),
      },
      served,
      target,
      { method: "GET", target: "", headers: {} },
      {
        signal: new AbortController().signal,
        turn: () => Promise.resolve(),
        share: { of: "eve", part: "others" },
      },
    );
  const refused = await begin(100);
  expect(refused).toBeInstanceOf(Refusal);
  expect(refused).toMatchObject({ status: { code: 413, message: expect.stringContaining("limit=500") } });
  expect(watches.size).toBe(0);
  expect(await begin(80)).toMatchObject({ status: 200 });
  for (const watch of watches.keys()) watch.end();
});

test("a priority class that is named as what every object has is not found [apiserver-hostile-38]", async () => {
  const server = start();
  for (const priorityClassName of ["constructor", "__proto__", "toString"]) {
    const spec = { priorityClassName, containers: [{ name: "c", image: "i" }] };
    const answer = await send(adminOf(server), "POST", "/api/v1/namespaces/default/pods", {
      metadata: { name: "p" },
      spec,
    });
    expect(answer).toEqual({
      status: 403,
      text: expect.stringContaining(`no PriorityClass with name ${priorityClassName} was found`),
    });
  }
  server.close();
});

test("keys of data and properties of custom objects may be words of the language [apiserver-hostile-63]", async () => {
  const server = start();
  const held = { metadata: { name: "m" }, data: { a: "b" }, binaryData: { constructor: "" } };
  expect(await send(adminOf(server), "POST", maps, held)).toMatchObject({ status: 201 });
  const word = { type: "string", default: "given" };
  const properties = {
    spec: { type: "object", properties: { constructor: word, toString: word } },
    other: { type: "object", required: ["toString"], properties: { toString: { type: "string" } } },
  };
  const definition = {
    metadata: { name: "words.x.example" },
    spec: {
      group: "x.example",
      scope: "Cluster",
      names: { plural: "words", singular: "word", kind: "Word" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties } },
        },
      ],
    },
  };
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  expect(await send(adminOf(server), "POST", definitions, definition)).toMatchObject({ status: 201 });
  const words = "/apis/x.example/v1/words";
  const given = { apiVersion: "x.example/v1", kind: "Word", metadata: { name: "w" } };
  const made = await send(adminOf(server), "POST", words, { ...given, spec: {} });
  expect(JSON.parse(made.text)).toMatchObject({ spec: { constructor: "given", toString: "given" } });
  expect(await send(adminOf(server), "POST", words, { ...given, metadata: { name: "v" }, other: {} })).toEqual({
    status: 422,
    text: expect.stringContaining("other.toString: Required value"),
  });
  server.close();
});

test("a patch makes no object that is deeper than a body may be [apiserver-hostile-39]", async () => {
  const server = start();
  const depth = 600;
  const deep = `${'{"f:a":'.repeat(depth)}{}${"}".repeat(depth)}`;
  const owner = `{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${deep}}`;
  expect((await send(adminOf(server), "POST", maps, { metadata: { name: "m" } })).status).toBe(201);
  const body = `{"metadata":{"name":"m","managedFields":[${owner}]}}`;
  expect((await send(adminOf(server), "PUT", `${maps}/m`, body)).status).toBe(200);
  const from = "/metadata/managedFields/0/fieldsV1/f:a";
  const copy = [{ op: "copy", from, path: `/metadata/managedFields/0/fieldsV1${"/f:a".repeat(depth)}/f:b` }];
  const patched = await send(adminOf(server), "PATCH", `${maps}/m`, copy, "application/json-patch+json");
  expect(patched).toEqual({ status: 400, text: expect.stringContaining("exceeded max depth") });
  server.close();
});

test("what an earlier version stored beyond the limits of a body can be patched, and grows no further [apiserver-hostile-51]", async () => {
  const store = memoryStore();
  const deep = `${'{"f:a":'.repeat(1_100)}{}${"}".repeat(1_100)}`;
  const owner = `{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${deep}}`;
  const metadata = `{"name":"m","namespace":"default","uid":"u","finalizers":["a.b/c"],"managedFields":[${owner}]}`;
  store.create(
    { resource: "configmaps", namespace: "default", name: "m" },
    `{"apiVersion":"v1","kind":"ConfigMap","metadata":${metadata}}`,
  );
  const server = start({ store });
  const patch = (operations: unknown) =>
    send(adminOf(server), "PATCH", `${maps}/m`, operations, "application/json-patch+json");
  const path = "/metadata/managedFields/0/fieldsV1";
  const deeper = await patch([{ op: "add", path: `${path}${"/f:a".repeat(1_100)}/f:b`, value: { "f:c": {} } }]);
  expect(deeper).toEqual({ status: 400, text: expect.stringContaining("exceeded max depth") });
  expect((await patch([{ op: "remove", path: "/metadata/finalizers" }])).status).toBe(200);
  server.close();
});

test("an object with a key that would change what objects inherit is refused, however deep it is [apiserver-hostile-53]", async () => {
  const server = start();
  const body =
    '{"metadata":{"name":"m","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{"__proto__":{"f:b":{}}}}}]}}';
  for (const [method, target] of [
    ["POST", maps],
    ["PUT", `${maps}/m`],
  ] as const)
    expect(await send(adminOf(server), method, target, body)).toEqual({
      status: 400,
      text: expect.stringContaining("__proto__ is no key"),
    });
  server.close();
});

test("a collection is deleted by who may delete all of it, whatever names the request selects [apiserver-hostile-54]", async () => {
  const server = start();
  const rule = {
    apiGroups: [""],
    resources: ["configmaps"],
    verbs: ["list", "deletecollection"],
    resourceNames: ["own"],
  };
  const roles = `${rbac}/namespaces/default/roles`;
  expect((await send(adminOf(server), "POST", roles, { metadata: { name: "r" }, rules: [rule] })).status).toBe(201);
  const binding = {
    metadata: { name: "r" },
    subjects: [{ kind: "User", name: "eve", apiGroup: "rbac.authorization.k8s.io" }],
    roleRef: { kind: "Role", name: "r", apiGroup: "rbac.authorization.k8s.io" },
  };
  await send(adminOf(server), "POST", `${rbac}/namespaces/default/rolebindings`, binding);
  const eve = server.as({ name: "eve", groups: [] });
  const own = `${maps}?fieldSelector=metadata.name%3Down`;
  expect((await send(eve, "GET", own)).status).toBe(200);
  expect((await send(eve, "DELETE", own)).status).toBe(403);
  server.close();
});

test("a policy about the creation of bindings judges them, as on the real server [apiserver-hostile-56]", async () => {
  const server = start();
  const admin = adminOf(server);
  const resourceRules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods/binding"] }];
  const validations = [{ expression: "object.target.name != 'wrong'", message: "not that node" }];
  const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
  const spec = { matchConstraints: { resourceRules }, validations };
  expect((await send(admin, "POST", policies, { metadata: { name: "p" }, spec })).status).toBe(201);
  const bound = { metadata: { name: "p" }, spec: { policyName: "p", validationActions: ["Deny"] } };
  expect((await send(admin, "POST", `${policies.replace("policies", "policybindings")}`, bound)).status).toBe(201);
  const pods = "/api/v1/namespaces/default/pods";
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } };
  expect((await send(admin, "POST", pods, pod)).status).toBe(201);
  const bind = (name: string) => send(admin, "POST", `${pods}/p/binding`, { target: { kind: "Node", name } });
  expect(await bind("wrong")).toEqual({ status: 422, text: expect.stringContaining("not that node") });
  expect((await bind("right")).status).toBe(201);
  expect(JSON.parse((await send(admin, "GET", `${pods}/p`)).text)).toMatchObject({ spec: { nodeName: "right" } });
  server.close();
});

test("whatever tenants store, also in the namespace default, the suite and machines write Events about Nodes [apiserver-hostile-57]", async () => {
  const server = start({ room: roomIn(16 * 1024 * 1024) });
  const tenant = server.as({ name: "eve", groups: [] });
  for (const name of ["one", "two", "three"])
    await send(adminOf(server), "POST", "/api/v1/namespaces", { metadata: { name } });
  for (const name of ["one", "two", "three", "default"]) await bind(server, name, "eve", "cluster-admin");
  const account = "system:serviceaccount:openshift-machine-config-operator";
  for (const name of [`${account}:machine-config-controller`, `${account}:machine-config-daemon`, "system:node:n"])
    await bind(server, "default", name, "cluster-admin");
  const eventAbout = (namespace: string, involvedObject: unknown, message: string) => ({
    metadata: { generateName: "e", namespace },
    involvedObject,
    reason: "Reason",
    message,
    type: "Normal",
    source: { component: "c" },
  });
  const write = (as: HttpHandler, namespace: string, involvedObject: unknown, message = "m".repeat(1_000)) =>
    send(as, "POST", `/api/v1/namespaces/${namespace}/events`, eventAbout(namespace, involvedObject, message));
  const node = { apiVersion: "v1", kind: "Node", name: "n" };
  const long = { data: { long: "x".repeat(100_000) } };
  const fill = async (next: () => Promise<Answer>) => {
    for (let status = 201; status === 201;) ({ status } = await next());
  };
  for (const namespace of ["one", "two", "three", "default"]) {
    await fill(() => write(tenant, namespace, { kind: "Pod", name: "p", namespace }, "m".repeat(1_024)));
    for (const resource of ["configmaps", "secrets"])
      await fill(() =>
        send(tenant, "POST", `/api/v1/namespaces/${namespace}/${resource}`, {
          metadata: { generateName: "m" },
          ...(resource === "configmaps" ? long : { stringData: long.data }),
        }),
      );
  }
  await fill(() => write(tenant, "default", node));
  const refused = await write(tenant, "default", node, "m");
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("leave no room")]);
  const extra = { "authentication.kubernetes.io/node-name": ["n"] };
  const writers = [
    server.as({ name: "admin", groups: ["system:masters"] }),
    server.as({ name: `${account}:machine-config-controller`, groups: [], extra }),
    server.as({ name: `${account}:machine-config-daemon`, groups: [], extra }),
    server.as({ name: "system:node:n", groups: ["system:nodes"] }),
  ];
  for (const [index, writer] of writers.entries())
    expect((await write(writer, "default", node)).status, String(index)).toBe(201);
  server.close();
});

describe("certificate requests of one machine leave room for those of others", () => {
  const csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const joining = "system:serviceaccounts:openshift-machine-config-join";
  const account = "system:serviceaccount:openshift-machine-config-join:node-bootstrapper-worker";
  const credential = (id: string) => ({ "authentication.kubernetes.io/credential-id": [id] });

  /** A server whose machines, and those that join, may make requests. */
  async function startForMachines(options: Partial<ApiServerOptions> = {}) {
    const server = start(options);
    const apiGroups = ["certificates.k8s.io"];
    const rules = [{ apiGroups, resources: ["certificatesigningrequests"], verbs: ["create"] }];
    await send(adminOf(server), "POST", `${rbac}/clusterroles`, { metadata: { name: "asks" }, rules });
    const made = await send(adminOf(server), "POST", `${rbac}/clusterrolebindings`, {
      metadata: { name: "asks" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "asks" },
      subjects: [joining, "system:nodes"].map((name) => ({
        kind: "Group",
        apiGroup: "rbac.authorization.k8s.io",
        name,
      })),
    });
    expect(made.status).toBe(201);
    const requests = new Map<string, string>();
    for (const name of ["a", "b", "c", "d", "e"])
      requests.set(name, await signingRequest(`O=system:nodes, CN=system:node:${name}`));
    const asker =
      (as: HttpHandler, name: string) =>
      (annotations: Readonly<Record<string, string>> = {}) => {
        const signerName = "kubernetes.io/kube-apiserver-client-kubelet";
        const usages = ["digital signature", "client auth"];
        const spec = { request: requests.get(name), signerName, usages };
        return send(as, "POST", csrs, { metadata: { generateName: "csr-", annotations }, spec });
      };
    return {
      server,
      admin: asker(adminOf(server), "a"),
      joins: (id: string) => {
        const user = { name: account, groups: [joining], extra: credential(`JTI=${id}`) };
        return asker(server.as(user), "a");
      },
      node: (name: string) => {
        const user = { name: `system:node:${name}`, groups: ["system:nodes"], extra: credential(`X509SHA256=${name}`) };
        return asker(server.as(user), name);
      },
    };
  }

  test("whatever of them it makes [apiserver-hostile-66]", async () => {
    const { server, admin, joins, node } = await startForMachines({ room: { ...defaultRoom, resourceBytes: 800_000 } });
    const fill = async (ask: () => Promise<Answer>) => {
      for (let made = 0; ; made += 1) {
        const { status, text } = await ask();
        if (status === 201) continue;
        expect([status, text]).toEqual([403, expect.stringContaining("leave no room")]);
        return made;
      }
    };
    expect(await fill(joins("a"))).toBeGreaterThan(2);
    expect((await joins("b")()).status).toBe(201);
    for (const id of ["b", "c", "d", "e", "f"]) await fill(joins(id));
    expect((await joins("g")()).status).toBe(403);
    // Machines renew theirs, whoever wants to join.
    expect(await fill(node("a"))).toBeGreaterThan(2);
    expect((await node("b")()).status).toBe(201);
    for (const name of ["b", "c", "d"]) await fill(node(name));
    expect((await node("e")()).status).toBe(403);
    expect((await admin()).status).toBe(201);
    // What there is, is decided, by whoever may.
    await send(adminOf(server), "POST", `${rbac}/clusterrolebindings`, {
      metadata: { name: "officer" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "officer" }],
    });
    const { items } = JSON.parse((await send(adminOf(server), "GET", csrs)).text) as { items: KubeObject[] };
    const approved = { type: "Approved", status: "True", reason: "R", message: "m".repeat(1_000) };
    for (const { metadata } of items) {
      const target = `${csrs}/${metadata.name}/approval`;
      const body = { status: { conditions: [approved] } };
      expect((await send(server.as({ name: "officer", groups: [] }), "PATCH", target, body, merge)).status).toBe(200);
    }
    server.close();
  });

  test("and each has annotations of no more than kubelets would write [apiserver-hostile-67]", async () => {
    const { server, admin, joins, node } = await startForMachines();
    for (const ask of [joins("a"), node("a")]) {
      expect((await ask({ a: "x".repeat(4_000) })).status).toBe(201);
      const { status, text } = await ask({ a: "x".repeat(5_000) });
      expect([status, text]).toEqual([
        422,
        expect.stringContaining("metadata.annotations: Too long: may not be more than 4096 bytes"),
      ]);
    }
    expect((await admin({ a: "x".repeat(5_000) })).status).toBe(201);
    server.close();
  });
});

test("a watch as a table counts the columns that each line repeats, and begins with no more than one text holds [apiserver-hostile-64]", async () => {
  const server = start();
  const names = { plural: "words", singular: "word", kind: "Word" };
  const description = "x".repeat(1_000_000);
  const additionalPrinterColumns = [{ name: "c", type: "string", jsonPath: ".spec", description }];
  const schema = { openAPIV3Schema: { type: "object" } };
  const version = { name: "v1", served: true, storage: true, additionalPrinterColumns, schema };
  const definition = {
    metadata: { name: "words.x.example" },
    spec: { group: "x.example", scope: "Cluster", names, versions: [version] },
  };
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  expect((await send(adminOf(server), "POST", definitions, definition)).status).toBe(201);
  const words = "/apis/x.example/v1/words";
  for (let at = 0; at < 280; at += 1) {
    const object = { apiVersion: "x.example/v1", kind: "Word", metadata: { name: `w${at}` } };
    expect((await send(adminOf(server), "POST", words, object)).status).toBe(201);
  }
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const ask = (query: string) =>
    adminOf(server)({ method: "GET", target: `${words}${query}`, headers: { accept } }, new AbortController().signal);
  expect((await ask("")).status).toBe(200);
  expect(await ask("?watch=1")).toMatchObject({ status: 413, body: expect.stringContaining("limit=500") });
  // What was missed is not shown either: the caller lists again.
  const { body } = await ask("?watch=1&resourceVersion=1");
  let told = "";
  for await (const line of body as AsyncIterable<string>) told += line.slice(0, 200);
  expect(told).toContain("too old resource version");
  server.close();
});

test("a list that has no answer in one text is asked for in pages [apiserver-hostile-55]", () => {
  const items = (count: number) => many(count, () => ({ json: { length: 3_000_000 } }));
  expect([isTooLong(items(80)), isTooLong(items(100))]).toEqual([false, true]);
});

test("a name with half of a character is refused [apiserver-hostile-40]", async () => {
  const server = start();
  const role = (name: string) => `{"metadata":{"name":"${name}"},"rules":[]}`;
  for (const name of ["\\ud800", "\\ud801"])
    expect(await send(adminOf(server), "POST", `${rbac}/clusterroles`, role(name))).toEqual({
      status: 400,
      text: expect.stringContaining("metadata.name has an incomplete character"),
    });
  expect((await send(adminOf(server), "POST", `${rbac}/clusterroles`, role("\\ud83d\\ude00"))).status).toBe(201);
  server.close();
});

test("who may edit a namespace leads no Service to other addresses [apiserver-hostile-41]", async () => {
  const server = start();
  await bind(server, "default", "eve", "edit");
  await bind(server, "default", "adam", "admin");
  for (const name of ["eve", "adam"]) {
    const user = server.as({ name, groups: [] });
    const endpoints = "/api/v1/namespaces/default/endpoints";
    expect((await send(user, "POST", endpoints, { metadata: { name: "e" } })).status).toBe(403);
    expect((await send(user, "GET", endpoints)).status).toBe(200);
  }
  server.close();
});

test("who may change and delete a namespace leaves nothing behind in it [apiserver-hostile-42]", async () => {
  const server = start();
  const admin = adminOf(server);
  const finalizersOf = (text: string) => (JSON.parse(text) as { spec?: { finalizers?: unknown } }).spec?.finalizers;
  const made = { metadata: { name: "own" }, spec: { finalizers: ["example.com/held"] } };
  expect(finalizersOf((await send(admin, "POST", "/api/v1/namespaces", made)).text)).toEqual([
    "example.com/held",
    "kubernetes",
  ]);
  const own = "/api/v1/namespaces/own";
  const none = { spec: { finalizers: [] } };
  const kept = ["example.com/held", "kubernetes"];
  expect(finalizersOf((await send(admin, "PATCH", own, none, merge)).text)).toEqual(kept);
  expect(finalizersOf((await send(admin, "PUT", own, { metadata: { name: "own" } })).text)).toEqual(kept);
  await send(admin, "DELETE", own);
  expect((await send(admin, "GET", own)).status).toBe(200);
  const ended = await send(admin, "PUT", `${own}/finalize`, { metadata: { name: "own" }, ...none });
  expect(ended.status).toBe(200);
  expect((await send(admin, "GET", own)).status).toBe(404);
  server.close();
});

test("a policy about one version of a resource judges the others as well [apiserver-hostile-43]", async () => {
  const server = start();
  const admin = adminOf(server);
  const admission = "/apis/admissionregistration.k8s.io/v1";
  const judge = async (name: string, matchPolicy: string | undefined, expression: string) => {
    const resourceRules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["events"] }];
    await send(admin, "POST", `${admission}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: { matchConstraints: { matchPolicy, resourceRules }, validations: [{ expression }] },
    });
    await send(admin, "POST", `${admission}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"] },
    });
    const regarding = { kind: "Pod", namespace: "default", name: "x" };
    const answer = await send(admin, "POST", "/apis/events.k8s.io/v1/namespaces/default/events?dryRun=All", {
      metadata: { name: "e" },
      regarding,
      reason: "r",
      note: "m",
      type: "Normal",
      action: "a",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "example.com/c",
      reportingInstance: "i",
    });
    await send(admin, "DELETE", `${admission}/validatingadmissionpolicybindings/${name}`);
    return answer.status;
  };
  expect(await judge("exact", "Exact", "false")).toBe(201);
  expect(await judge("default", undefined, "false")).toBe(422);
  const asNamed = 'object.apiVersion == "v1" && object.message == "m" && request.kind.group == ""';
  expect(await judge("seen", "Equivalent", `${asNamed} && request.requestKind.group == "events.k8s.io"`)).toBe(201);
  server.close();
});

test("an event that says it is of the future is kept no longer than others [apiserver-hostile-44]", async () => {
  const store = memoryStore();
  const admin = adminOf(start({ store }));
  const events = "/api/v1/namespaces/default/events";
  const event = (name: string, more: object) => ({
    metadata: { name },
    involvedObject: { kind: "Pod", namespace: "default", name: "p" },
    reason: "r",
    message: "m",
    type: "Normal",
    ...more,
  });
  const future = event("future", { lastTimestamp: "9999-01-01T00:00:00Z" });
  expect((await send(admin, "POST", events, future)).status).toBe(201);
  let skipMs = 0;
  const later = { ...systemClock, now: () => systemClock.now() + skipMs };
  const restarted = start({ store, clock: later });
  skipMs = 2 * 3_600_000;
  expect((await send(adminOf(restarted), "POST", events, event("next", {}))).status).toBe(201);
  expect((await send(adminOf(restarted), "GET", `${events}/future`)).status).toBe(404);
  restarted.close();
});
