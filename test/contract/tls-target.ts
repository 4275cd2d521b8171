import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { type RunningApiServer, serveApiServer, type ServeOptions } from "../../src/apiserver/node/serve.ts";
import { type ApiTarget, jsonLines, testUsers, type TestUser } from "./api-target.ts";
import { type Identity, type TestAuthority, testAuthority } from "./test-pki.ts";

export interface TlsTarget extends ApiTarget {
  readonly running: RunningApiServer;
  readonly authority: TestAuthority;
  readonly folder: string;
  identity(user: Exclude<TestUser, "nobody">): Identity;
  close(): Promise<void>;
}

/** The server as a process runs it: SQLite file, TLS, client certificates. */
export async function tlsTarget(options: Partial<ServeOptions> = {}): Promise<TlsTarget> {
  const folder = mkdtempSync(join(tmpdir(), "mco-apiserver-"));
  const authority = await testAuthority();
  const identities = new Map<TestUser, Identity>();
  for (const [user, { name, groups }] of Object.entries(testUsers)) identities.set(user as TestUser, await authority.client(name, groups));
  const controller = new AbortController();
  const running = await serveApiServer({
    file: join(folder, "store.db"),
    host: "127.0.0.1",
    port: 0,
    tls: await authority.server("127.0.0.1"),
    clusterCA: authority.certificate,
    tokenKey: await authority.signingKey(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    signal: controller.signal,
    ...options,
  });
  const agents = new Map<TestUser, Agent>();
  function agentOf(user: TestUser): Agent {
    let agent = agents.get(user);
    if (agent === undefined) {
      const own = identities.get(user);
      agent = new Agent({ ca: authority.certificate, keepAlive: true, ...(own === undefined ? {} : { cert: own.certificate, key: own.key }) });
      agents.set(user, agent);
    }
    return agent;
  }
  function open(method: string, path: string, user: TestUser, headers: Readonly<Record<string, string>>, body?: string | Uint8Array): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = httpsRequest(`${running.url}${path}`, { method, agent: agentOf(headers["authorization"] === undefined ? user : "nobody"), headers: { ...headers, ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }) } }, resolve);
      call.on("error", reject);
      call.end(body);
    });
  }
  return {
    running,
    authority,
    folder,
    identity(user) {
      const own = identities.get(user);
      if (own === undefined) throw new Error(`no identity for ${user}`);
      return own;
    },
    async request({ method, path, body, headers = {}, user = "admin" }) {
      const raw = body === undefined || typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
      const answer = await open(method, path, user, { "content-type": "application/json", ...headers }, raw);
      const chunks: Buffer[] = [];
      for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
      const given: Record<string, string | readonly string[]> = {};
      for (const [name, value] of Object.entries(answer.headers)) if (value !== undefined) given[name] = value;
      return { status: answer.statusCode ?? 0, headers: given, text: Buffer.concat(chunks).toString("utf8") };
    },
    async watch(path, user = "admin", headers = {}) {
      const answer = await open("GET", path, user, headers);
      const lines = jsonLines(answer as AsyncIterable<Uint8Array>);
      return {
        status: answer.statusCode ?? 0,
        async next() {
          const { value, done } = await lines.next();
          return done === true ? undefined : value;
        },
        async close() {
          answer.destroy();
          await lines.return(undefined).catch(() => undefined);
        },
      };
    },
    async close() {
      controller.abort();
      await running.closed;
      for (const agent of agents.values()) agent.destroy();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
