import { test } from "vitest";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { readForeignConfigs } from "./foreign-configs.ts";

test("root on a machine reads the configurations of that machine only, even while it moves between pools [attack-configs-1]", async ({
  signal,
}) => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  signal.addEventListener("abort", () => api.close(), { once: true });
  const withToken =
    (token: string): HttpHandler =>
    (request, until) =>
      api.handle({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }, {}, until);
  const transport = api.as({ name: "admin", groups: ["system:masters"] });
  const admin = createKubeClient({ ...ports, transport, userAgent: "test" });
  await readForeignConfigs({ admin, withToken, actsLater: false }, signal);
});
