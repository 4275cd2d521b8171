import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { type RunningApiServer, serveApiServer, type ServeOptions } from "../../src/standin/apiserver/node/serve.ts";
import { type ApiTarget, testUsers, type TestUser } from "./api-target.ts";
import { httpsTarget } from "./https-target.ts";
import { type Identity, type TestAuthority, testAuthority } from "../support/test-pki.ts";

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
  for (const [user, { name, groups }] of Object.entries(testUsers))
    identities.set(user as TestUser, await authority.client(name, groups));
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
  const target = httpsTarget({ url: running.url, ca: authority.certificate, identities });
  return {
    ...target,
    running,
    authority,
    folder,
    identity(user) {
      const own = identities.get(user);
      if (own === undefined) throw new Error(`no identity for ${user}`);
      return own;
    },
    async close() {
      controller.abort();
      await running.closed;
      target.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
