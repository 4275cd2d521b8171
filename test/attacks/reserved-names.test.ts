import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
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

  const admin = client("admin", ["system:masters"]);
  beforeAll(() => prepareReservedNames(admin));

  test("gives the names of rendered and generated configs to the controller alone [attack-names-1]", async () => {
    expect(await takeReservedNames({ admin, as: (user) => client(user, ["system:authenticated"]) })).toEqual(outcomes);
  });

  test("refuses them to a cluster-admin who is no member of system:masters, and says how to restore one [attack-names-3]", async () => {
    const restorer = client("restorer", ["system:authenticated"]);
    await admin.create(kubernetes.ClusterRoleBinding, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "restorer" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "restorer" }],
    });
    const name = `rendered-worker-${"b".repeat(32)}`;
    const lost = { apiVersion: MachineConfig.apiVersion, kind: MachineConfig.kind, metadata: { name } };
    await expect(restorer.create(MachineConfig, lost)).rejects.toThrow(
      /--as=restore --as-group=system:masters.*super-admin\.conf/,
    );
    // As kubectl does with these flags.
    const transport = server.as({ name: "restorer", groups: ["system:authenticated"] });
    const impersonating = createKubeClient({
      ...ports,
      userAgent: "test",
      transport: (request, signal) =>
        transport(
          {
            ...request,
            headers: { ...request.headers, "impersonate-user": "restore", "impersonate-group": "system:masters" },
          },
          signal,
        ),
    });
    await expect(impersonating.create(MachineConfig, lost)).resolves.toMatchObject({ metadata: { name } });
  });
});
