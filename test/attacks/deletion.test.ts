import { afterAll, describe, expect, test } from "vitest";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { attackDeletions, deletable, refusals, removeKinds } from "../support/deletion-suite.ts";

describe("deletion of rendered configs without a controller, on the embedded API server", () => {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  afterAll(() => server.close());
  const kube = createKubeClient({
    transport: server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });

  test("one that a pool, node, machine or build names stays; the answer names the user object and the remedy [attack-deletion-1]", async () => {
    expect(await attackDeletions(kube)).toEqual({ refused: refusals, gone: deletable });
  });

  test("the kinds can be removed, with the configs in use [attack-deletion-2]", async () => {
    expect(await removeKinds(kube)).toEqual([]);
  });
});
