import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { type ApiServer, createApiServer } from "../../src/standin/apiserver/server.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";

/** An API server in memory that issues tokens, by the clock of this machine, and a client of its administrator. */
export function serverWithAdmin(): { readonly server: ApiServer; readonly kube: KubeClient } {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  const kube = createKubeClient({
    transport: server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  return { server, kube };
}
