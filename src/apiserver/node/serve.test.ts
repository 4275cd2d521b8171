import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type TestAuthority, testAuthority } from "../../../test/support/test-pki.ts";
import { silentLogger } from "../../ports/logger.ts";
import { systemClock, systemRandom } from "../../ports/node/index.ts";
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
const map = (name: string, data: Json = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });

/** An HTTPS server of the test's own: a webhook or a kubelet. */
async function companion(answer: (path: string, body: string, client: string) => string): Promise<number> {
  const { certificate, key } = await authority.server("127.0.0.1");
  const server = createServer(
    { cert: certificate, key, ca: authority.certificate, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const socket = request.socket as import("node:tls").TLSSocket;
        response.end(
          answer(
            request.url ?? "",
            Buffer.concat(chunks).toString(),
            socket.authorized ? String(socket.getPeerCertificate().subject.CN) : "",
          ),
        );
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

  test("closes when it is told to, with watches open, and frees file and port", async () => {
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

  test("believes client certificates of its authority only", async () => {
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
    const stranger = await testAuthority();
    expect(await ask(await stranger.client("admin", ["system:masters"]))).toContain('"reason":"Unauthorized"');
  });
});
