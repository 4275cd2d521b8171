import { afterAll, describe, expect, test } from "vitest";
import { sharedSecretKeys } from "../../src/apiserver/access/service-account-tokens.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import { memoryStore } from "../../src/apiserver/storage/memory-store.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { outcomes, prepareReservedNames, takeReservedNames } from "./reserved-names.ts";

describe("the embedded API server, asked by somebody who may write MachineConfigs", () => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const server = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  afterAll(() => server.close());
  const client = (name: string, groups: readonly string[]) =>
    createKubeClient({ ...ports, transport: server.as({ name, groups: [...groups] }), userAgent: "test" });

  test("gives the names of rendered and generated configs to the controller alone [attack-names-1]", async () => {
    const admin = client("admin", ["system:masters"]);
    await prepareReservedNames(admin);
    expect(await takeReservedNames({ admin, as: (user) => client(user, ["system:authenticated"]) })).toEqual(outcomes);
  });
});
