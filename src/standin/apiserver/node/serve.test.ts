import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type TestAuthority, testAuthority } from "../../../../test/support/test-pki.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import { untilSeen } from "../../../../test/support/until-seen.ts";
import { connectionLimits } from "./listener.ts";
import { type RunningApiServer, serveApiServer, type ServeOptions } from "./serve.ts";

interface Json {
  readonly [field: string]: unknown;
}
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

const folder = mkdtempSync(join(tmpdir(), "mco-serve-"));
const closers: (() => Promise<unknown>)[] = [];
let authority: TestAuthority;
let base: Omit<ServeOptions, "file" | "signal">;

beforeAll(async () => {
  authority = await testAuthority();
  base = {
    host: "127.0.0.1",
    port: 0,
    tls: await authority.server("127.0.0.1"),
    clusterCA: authority.certificate,
    tokenKey: await authority.signingKey(),
    staticTokens: { secret: { name: "admin", groups: ["system:masters"] } },
    kubeletClient: await authority.client("apiserver", ["system:masters"]),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
  };
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(file: string, options: Partial<ServeOptions> = {}): Promise<RunningApiServer> {
  const running = await serveApiServer({
    ...base,
    file: join(folder, file),
    signal: new AbortController().signal,
    ...options,
  });
  closers.push(() => running.close());
  return running;
}

function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ask = httpsRequest(
      `${url}${path}`,
      {
        method,
        agent: false,
        ca: authority.certificate,
        headers: { authorization: "Bearer secret", "content-type": "application/json", ...headers },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
        );
        answer.on("error", reject);
      },
    );
    ask.on("error", reject);
    ask.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
const json = (answer: Answer) => JSON.parse(answer.body.toString()) as Json;
const maps = "/api/v1/namespaces/default/configmaps";
const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
const map = (name: string, data: Json = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });

/** An HTTPS server of the test's own: a webhook or a kubelet. An answer that `goesOn` has no end. */
async function companion(
  answer: (path: string, body: string, client: string) => string,
  goesOn: (path: string) => boolean = () => false,
): Promise<number> {
  const { certificate, key } = await authority.server("127.0.0.1");
  const server = createServer(
    { cert: certificate, key, ca: authority.certificate, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const socket = request.socket as import("node:tls").TLSSocket;
        const path = request.url ?? "";
        const client = socket.authorized ? String(socket.getPeerCertificate().subject.CN) : "";
        response.write(answer(path, Buffer.concat(chunks).toString(), client));
        if (!goesOn(path)) response.end();
      });
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

describe("serveApiServer", () => {
  test("keeps everything over a restart on the same file, revisions included", async () => {
    const first = await start("restart.db");
    const made = json(await call(first.url, "POST", maps, map("a", { k: "v" })));
    await first.close();
    const second = await start("restart.db");
    expect(json(await call(second.url, "GET", `${maps}/a`))).toEqual(made);
  });

  test("refuses a second server on the same file, and an address that others can reach", async () => {
    const signal = new AbortController().signal;
    await start("locked.db");
    await expect(serveApiServer({ ...base, file: join(folder, "locked.db"), signal })).rejects.toMatchObject({
      code: "MCO_STORE_LOCKED",
    });
    await expect(
      serveApiServer({ ...base, file: join(folder, "open.db"), host: "0.0.0.0", signal }),
    ).rejects.toMatchObject({ code: "MCO_LISTEN_REFUSED" });
  });

  test("close() ends open watches and releases file and port", async () => {
    const controller = new AbortController();
    const running = await start("abort.db", { signal: controller.signal });
    const watching = call(running.url, "GET", `${maps}?watch=true`);
    await call(running.url, "GET", "/readyz");
    controller.abort();
    await running.closed;
    await watching.catch(() => undefined);
    const again = await start("abort.db", { port: running.port });
    expect((await call(again.url, "GET", "/readyz")).body.toString()).toBe("ok");
  });

  test("compresses long answers for those who take it", async () => {
    const { url } = await start("gzip.db");
    await call(url, "POST", maps, map("long", { text: "abc ".repeat(50_000) }));
    const packed = await call(url, "GET", `${maps}/long`, undefined, { "accept-encoding": "gzip" });
    expect(packed.headers["content-encoding"]).toBe("gzip");
    expect(packed.body.length).toBeLessThan(20_000);
    expect(JSON.parse(gunzipSync(packed.body).toString())).toMatchObject({ metadata: { name: "long" } });
    expect((await call(url, "GET", `${maps}/long`)).headers["content-encoding"]).toBeUndefined();
    expect(
      (await call(url, "GET", "/readyz", undefined, { "accept-encoding": "gzip" })).headers["content-encoding"],
    ).toBeUndefined();
  });

  test("calls a webhook over HTTPS and trusts only the authority that its configuration names", async () => {
    const port = await companion((_path, body) => {
      const { request } = JSON.parse(body) as { request: { uid: string; object: { metadata: { name: string } } } };
      return JSON.stringify({
        apiVersion: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: {
          uid: request.uid,
          allowed: request.object.metadata.name !== "bad",
          status: { message: "no" },
          warnings: ["watch out: Größe → 3"],
        },
      });
    });
    const { url } = await start("webhook.db");
    const configuration = (name: string, ca: string) => ({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name },
      webhooks: [
        {
          name: "w.example.com",
          clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(ca).toString("base64") },
          rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
          admissionReviewVersions: ["v1"],
          sideEffects: "None",
        },
      ],
    });
    const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    await call(url, "POST", path, configuration("good", authority.certificate));
    const fine = await call(url, "POST", maps, map("good"));
    expect(fine.status).toBe(201);
    expect(Buffer.from(String(fine.headers["warning"]), "latin1").toString()).toBe('299 - "watch out: Größe → 3"');
    expect(json(await call(url, "POST", maps, map("bad")))["message"]).toBe(
      'admission webhook "w.example.com" denied the request: no',
    );
    await call(url, "DELETE", `${path}/good`);
    await call(url, "POST", path, configuration("stranger", (await testAuthority()).certificate));
    expect((await call(url, "POST", maps, map("unheard"))).status).toBe(500);
  });

  test("fetches logs from the kubelet of the pod's node, as itself", async () => {
    const port = await companion((path, _body, client) => `${path} for ${client}\n`);
    const { url } = await start("logs.db");
    const pod = (name: string, nodeName: string) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: { nodeName, containers: [{ name: "main", image: "i" }] },
    });
    const status = {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    };
    await call(url, "POST", "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "n" }, status });
    await call(url, "POST", "/api/v1/namespaces/default/pods", pod("p", "n"));
    await call(url, "POST", "/api/v1/namespaces/default/pods", pod("lost", "nowhere"));
    const log = await call(url, "GET", "/api/v1/namespaces/default/pods/p/log?tailLines=3&follow=true");
    expect(log.body.toString()).toBe("/containerLogs/default/p/main?tailLines=3&follow=true for apiserver\n");
    const lost = await call(url, "GET", "/api/v1/namespaces/default/pods/lost/log");
    expect(lost.status).toBe(500);
    expect(json(lost)["message"]).toContain("no address of a kubelet is known for node nowhere");
  });

  test("believes client certificates of its authority only, and their last common name [apiserver-serve-1]", async () => {
    const { url } = await start("certificates.db");
    const ask = (identity: { certificate: string; key: string }) =>
      new Promise<string>((resolve, reject) => {
        const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
        const review = httpsRequest(
          `${url}/apis/authentication.k8s.io/v1/selfsubjectreviews`,
          { method: "POST", agent: false, ca: authority.certificate, cert: identity.certificate, key: identity.key },
          (answer) => {
            let text = "";
            answer.on("data", (chunk: Buffer) => {
              text += chunk.toString();
            });
            answer.on("end", () => resolve(text));
          },
        );
        review.on("error", reject);
        review.end(body);
      });
    expect(JSON.parse(await ask(await authority.client("carol", ["painters", "singers"])))).toMatchObject({
      status: { userInfo: { username: "carol", groups: ["painters", "singers", "system:authenticated"] } },
    });
    // As Go reads a subject: of several common names the last one counts.
    expect(JSON.parse(await ask(await authority.client("dave, CN=erin", ["painters"])))).toMatchObject({
      status: { userInfo: { username: "erin" } },
    });
    const stranger = await testAuthority();
    expect(await ask(await stranger.client("admin", ["system:masters"]))).toContain('"reason":"Unauthorized"');
  });

  test("an expired certificate is believed no longer on a connection that it began [apiserver-serve-2]", async () => {
    let ahead = 0;
    const { url } = await start("expired.db", { clock: { ...systemClock, now: () => systemClock.now() + ahead } });
    const { certificate: cert, key } = await authority.client("carol", ["system:masters"]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports: (number | undefined)[] = [];
    const ask = () =>
      new Promise<number>((resolve, reject) => {
        const asked = httpsRequest(`${url}${maps}`, { agent, ca: authority.certificate, cert, key }, (answer) => {
          ports.push(answer.socket.localPort);
          answer.on("end", () => resolve(answer.statusCode ?? 0)).resume();
        });
        asked.on("error", reject);
        asked.end();
      });
    try {
      expect(await ask()).toBe(200);
      ahead = 25 * 3_600_000;
      expect(await ask()).toBe(401);
      expect(new Set(ports).size).toBe(1);
    } finally {
      agent.destroy();
    }
  });

  test("a node's address with a path in it is no kubelet's [apiserver-serve-3]", async () => {
    const asked: string[] = [];
    const port = await companion((path) => {
      asked.push(path);
      return "secret\n";
    });
    const { url } = await start("addresses.db");
    const spec = { nodeName: "n", containers: [{ name: "main", image: "i" }] };
    await call(url, "POST", "/api/v1/namespaces/default/pods", { metadata: { name: "p" }, spec });
    await call(url, "POST", "/api/v1/nodes", { metadata: { name: "n" } });
    for (const address of [
      `127.0.0.1:${port}/containerLogs/kube-system/other/main?x=`,
      `nobody@127.0.0.1:${port}/containerLogs/kube-system/other/main#`,
    ]) {
      const status = {
        addresses: [{ type: "InternalIP", address }],
        daemonEndpoints: { kubeletEndpoint: { Port: port } },
      };
      const patch = { "content-type": "application/merge-patch+json" };
      expect((await call(url, "PATCH", "/api/v1/nodes/n/status", { status }, patch)).status).toBe(200);
      const log = await call(url, "GET", "/api/v1/namespaces/default/pods/p/log");
      expect(log.status).toBe(500);
      expect(json(log)["message"]).toContain("no address of a kubelet is known");
    }
    expect(asked).toEqual([]);
  });
});

/** A node whose kubelet is the companion at `port`, a pod there, and `view` for all of `readers`. */
async function podWithReaders(url: string, port: number): Promise<void> {
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  const spec = { nodeName: "n", containers: [{ name: "main", image: "i" }] };
  await call(url, "POST", "/api/v1/nodes", { metadata: { name: "n" }, status });
  await call(url, "POST", "/api/v1/namespaces/default/pods", { metadata: { name: "p" }, spec });
  await call(url, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
    metadata: { name: "readers" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "readers" }],
  });
}

test("who follows logs leaves room for others and most of a kubelet's answers to administrators [apiserver-logs-1]", async () => {
  const users = ["a", "b", "c", "d", "e"];
  const staticTokens = {
    ...Object.fromEntries(users.map((name) => [name, { name, groups: ["readers"] }])),
    secret: { name: "admin", groups: ["system:masters"] },
  };
  const port = await companion(
    () => "a line\n",
    (path) => path.includes("follow=true"),
  );
  const { url } = await start("followed.db", { staticTokens });
  await podWithReaders(url, port);
  const log = "/api/v1/namespaces/default/pods/p/log";
  const followed: { readonly token: string; readonly stop: () => void }[] = [];
  const follow = (token: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const ask = httpsRequest(`${url}${log}?follow=true`, { agent: false, ca: authority.certificate, headers });
      ask.on("error", reject);
      ask.on("response", (answer) => {
        if (answer.statusCode === 200) followed.push({ token, stop: () => ask.destroy() });
        answer.on("error", () => undefined).resume();
        resolve(answer.statusCode ?? 0);
      });
      ask.end();
    });
  const read = (token: string) => call(url, "GET", log, undefined, { authorization: `Bearer ${token}` });
  const follows = async (token: string, count: number) => new Set(await Promise.all(many(count, () => follow(token))));
  try {
    expect(await follows("a", 16)).toEqual(new Set([200]));
    const refused = await read("a");
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("5");
    expect(json(refused)["message"]).toBe(
      "you read 16 logs from node n already, as many as you may at once: stop one that you follow, then try again",
    );
    for (let tries = 0; tries < 20; tries += 1) expect((await read("b")).body.toString()).toBe("a line\n");

    for (const token of ["b", "c", "d"]) expect(await follows(token, 16)).toEqual(new Set([200]));
    const full = await read("e");
    expect(full.status).toBe(429);
    expect(json(full)["message"]).toContain("all users together read 64 logs from node n already");
    expect(await follows("secret", 20)).toEqual(new Set([200]));

    for (const { token, stop } of followed) if (token === "a") stop();
    const again = await untilSeen(
      "room for another user",
      () => read("e"),
      (answer): answer is Answer => answer.status === 200,
    );
    expect(again.body.toString()).toBe("a line\n");
  } finally {
    for (const { stop } of followed) stop();
  }
});

test("bodies of one user, and those of watches, take no room from other users [apiserver-serve-4]", async () => {
  const masters = ["system:masters"];
  const staticTokens = { secret: { name: "admin", groups: masters }, other: { name: "other", groups: masters } };
  const { url } = await start("rooms.db", { staticTokens });
  const open = (method: string, target: string, bytes: number) => {
    const headers = { authorization: "Bearer other", "content-length": 2_900_001 };
    const ask = httpsRequest(`${url}${target}`, { method, agent: false, ca: authority.certificate, headers });
    ask.on("error", () => undefined);
    ask.write(Buffer.alloc(bytes, 32));
    return ask;
  };
  const large = map("large", { text: "x".repeat(900_000) });
  const write = async (token: string) =>
    (await call(url, "POST", `${maps}?dryRun=All`, large, { authorization: `Bearer ${token}` })).status;
  const watches = many(30, () => open("GET", `${maps}?watch=1`, 2_900_001));
  const stalled: ReturnType<typeof open>[] = [];
  try {
    await Promise.all(watches.map((ask) => new Promise((resolve) => ask.on("response", resolve))));
    expect(await write("secret")).toBe(201);
    expect(await write("other")).toBe(201);
    stalled.push(...many(30, () => open("POST", maps, 2_900_000)));
    // Until then, what was sent has not all arrived.
    while ((await write("other")) !== 429);
    const answers = new Set<number>();
    for (let tries = 0; tries < 10; tries += 1) answers.add(await write("secret"));
    expect(answers).toEqual(new Set([201]));
  } finally {
    for (const ask of [...watches, ...stalled]) ask.destroy();
  }
});

test("bodies that root on one machine sends slowly take no room from other machines [apiserver-serve-5]", async () => {
  const node = (name: string) => ({ name: `system:node:${name}`, groups: ["system:nodes"] });
  const daemon = {
    name: "system:serviceaccount:openshift-machine-config-operator:machine-config-daemon",
    groups: [],
    extra: { "authentication.kubernetes.io/node-name": ["a"] },
  };
  const admin = { name: "admin", groups: ["system:masters"] };
  const { url } = await start("machines.db", { staticTokens: { a: node("a"), b: node("b"), daemon, secret: admin } });
  const stalled = many(5, () => {
    const headers = { authorization: "Bearer daemon", "content-length": 2_900_001 };
    const ask = httpsRequest(`${url}${maps}`, { method: "POST", agent: false, ca: authority.certificate, headers });
    ask.on("error", () => undefined);
    ask.write(Buffer.alloc(2_900_000, 32));
    return ask;
  });
  const large = map("large", { text: "x".repeat(900_000) });
  const write = async (token: string) =>
    (await call(url, "POST", `${maps}?dryRun=All`, large, { authorization: `Bearer ${token}` })).status;
  try {
    // Until then, what was sent has not all arrived.
    while ((await write("daemon")) !== 429);
    // The tokens of a machine's pods are the machine's.
    expect([await write("a"), await write("b"), await write("secret")]).toEqual([429, 403, 201]);
  } finally {
    for (const ask of stalled) ask.destroy();
  }
});

test("connections of strangers take no room from those of users, and the oldest makes room for the next [apiserver-limits-10]", async () => {
  const { url, port } = await start("connections.db");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const viaKept = () =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { authorization: "Bearer secret" };
      const ask = httpsRequest(`${url}/api`, { agent, ca: authority.certificate, headers }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode));
      });
      ask.on("error", reject);
      ask.end();
    });
  expect(await viaKept()).toBe(200);
  const [kept] = Object.values(agent.freeSockets).flat();
  const strangers: Socket[] = [];
  try {
    const count = connectionLimits.strangers + 200;
    for (let index = 0; index < count; index += 1) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      strangers.push(socket);
      if (index % 50 === 0) await once(socket, "connect");
    }
    const open = () => strangers.filter((socket) => !socket.closed).length;
    await untilSeen(
      "the oldest are closed",
      async () => open(),
      (now): now is number => now <= connectionLimits.strangers,
    );
    expect(strangers.slice(0, 100).every(({ closed }) => closed)).toBe(true);
    expect(strangers.at(-1)?.closed).toBe(false);
    // A user with a connection keeps it, and another one gets in.
    expect(await viaKept()).toBe(200);
    expect(Object.values(agent.freeSockets).flat()).toEqual([kept]);
    expect((await call(url, "GET", "/api")).status).toBe(200);
  } finally {
    for (const socket of strangers) socket.destroy();
    agent.destroy();
  }
});

test("bodies of strangers that do not end take no room from those of users [apiserver-limits-6]", async () => {
  const { url } = await start("strangers.db");
  const stalled = Array.from({ length: 10 }, () => {
    const ask = httpsRequest(`${url}/api/v1/namespaces`, {
      method: "POST",
      agent: false,
      ca: authority.certificate,
      headers: { authorization: "Bearer guessed", "content-length": 3 * 1024 * 1024 },
    });
    ask.on("error", () => undefined);
    ask.write(Buffer.alloc(2_900_000, 32));
    return ask;
  });
  try {
    const large = { metadata: { name: "large" }, data: { text: "x".repeat(900_000) } };
    const maps = "/api/v1/namespaces/default/configmaps?dryRun=All";
    const as = async (token: string) =>
      (await call(url, "POST", maps, large, { authorization: `Bearer ${token}` })).status;
    // Until then, what the strangers have sent has not all arrived.
    while ((await as("guessed")) !== 429);
    const answers: number[] = [];
    for (let tries = 0; tries < 10; tries += 1) answers.push(await as("secret"));
    expect(new Set(answers)).toEqual(new Set([201]));
  } finally {
    for (const ask of stalled) ask.destroy();
  }
});
