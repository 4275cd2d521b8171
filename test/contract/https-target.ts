import { Agent, request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { type ApiTarget, jsonLines, type TestUser } from "./api-target.ts";
import type { Identity } from "../support/test-pki.ts";

export interface HttpsTargetOptions {
  readonly url: string;
  /** PEM */
  readonly ca: string;
  readonly identities: ReadonlyMap<TestUser, Identity>;
}

/** Any API server over HTTPS, with a client certificate for every user of the cases. */
export function httpsTarget({ url, ca, identities }: HttpsTargetOptions): ApiTarget & { close(): void } {
  const agents = new Map<TestUser, Agent>();
  function agentOf(user: TestUser): Agent {
    let agent = agents.get(user);
    if (agent === undefined) {
      const own = identities.get(user);
      agent = new Agent({ ca, keepAlive: true, ...(own === undefined ? {} : { cert: own.certificate, key: own.key }) });
      agents.set(user, agent);
    }
    return agent;
  }
  function open(
    method: string,
    path: string,
    user: TestUser,
    headers: Readonly<Record<string, string>>,
    body?: string | Uint8Array,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = httpsRequest(
        `${url}${path}`,
        {
          method,
          agent: agentOf(headers["authorization"] === undefined ? user : "nobody"),
          headers: { ...headers, ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }) },
        },
        resolve,
      );
      call.on("error", reject);
      call.end(body);
    });
  }
  return {
    async request({ method, path, body, headers = {}, user = "admin" }) {
      const raw =
        body === undefined || typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
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
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}
