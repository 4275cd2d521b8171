import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import type { Peer } from "../../src/standin/apiserver/access/authentication.ts";
import { createApiServer, type ApiServer, type ApiServerOptions } from "../../src/standin/apiserver/server.ts";
import { httpsWebhookCaller } from "../../src/standin/apiserver/node/webhook-caller.ts";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { type ApiTarget, jsonLines, testUsers, type TestUser } from "./api-target.ts";

/** The certificate authority for pods; nothing here uses it. */
export const rootCertificates = "the root";

/** The server without a socket: memory store, calls straight into it. */
export function inProcessTarget(options: Partial<ApiServerOptions> = {}): ApiTarget & { readonly server: ApiServer } {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
    webhooks: httpsWebhookCaller,
    bootstrap: { rootCertificates },
    ...options,
  });
  const peerOf = (user: TestUser): Peer =>
    user === "nobody"
      ? {}
      : {
          certificate: {
            commonName: testUsers[user].name,
            organizations: testUsers[user].groups,
            sha256: "0".repeat(64),
          },
        };
  return {
    server,
    async request({ method, path, body, headers = {}, user = "admin" }) {
      const raw =
        body === undefined || typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
      const response = await server.handle(
        {
          method,
          target: path,
          headers: { "content-type": "application/json", ...headers },
          ...(raw === undefined ? {} : { body: raw }),
        },
        headers["authorization"] === undefined ? peerOf(user) : {},
        new AbortController().signal,
      );
      let text = "";
      if (typeof response.body === "string") text = response.body;
      else if (response.body instanceof Uint8Array) text = new TextDecoder().decode(response.body);
      else
        for await (const chunk of response.body)
          text += typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
      return { status: response.status, headers: response.headers, text };
    },
    async watch(path, user = "admin", headers = {}) {
      const controller = new AbortController();
      const response = await server.handle({ method: "GET", target: path, headers }, peerOf(user), controller.signal);
      const { body } = response;
      const lines = jsonLines(typeof body === "string" || body instanceof Uint8Array ? single(body) : body);
      return {
        status: response.status,
        async next() {
          const { value, done } = await lines.next();
          return done === true ? undefined : value;
        },
        async close() {
          controller.abort();
          await lines.return(undefined);
        },
      };
    },
  };
}

async function* single<T>(value: T): AsyncGenerator<T> {
  yield await Promise.resolve(value);
}
