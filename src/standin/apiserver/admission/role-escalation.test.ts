import { expect, test } from "vitest";
import { type ClusterRole, type ClusterRoleBinding, type Secret, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { createKubeClient } from "../../../kube/kube-client.ts";
import { isForbidden } from "../../../kube/kube-error.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import { sharedSecretKeys } from "../access/service-account-tokens.ts";
import { createApiServer } from "../server.ts";
import { memoryStore } from "../storage/memory-store.ts";

const apiVersion = "rbac.authorization.k8s.io/v1";
const apiGroup = "rbac.authorization.k8s.io";

function server() {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  const as = (name: string, groups: readonly string[] = []) =>
    createKubeClient({ ...ports, transport: api.as({ name, groups }), userAgent: "test" });
  const [admin, mallory] = [as("admin", ["system:masters"]), as("mallory")];
  return { api, admin, mallory };
}

const bindingOf = (role: string) =>
  ({
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata: { name: `mallory-${role}` },
    roleRef: { apiGroup, kind: "ClusterRole", name: role },
    subjects: [{ kind: "User", apiGroup, name: "mallory" }],
  }) as ClusterRoleBinding;

test("who may write roles and bindings takes no rights of other roles by aggregation [apiserver-escalation-1]", async () => {
  const { api, admin, mallory } = server();
  const roleOf = (name: string, more: object) =>
    ({ apiVersion, kind: "ClusterRole", metadata: { name }, ...more }) as ClusterRole;
  const all = { aggregationRule: { clusterRoleSelectors: [{}] } };
  const rules = [
    { apiGroups: [apiGroup], resources: ["clusterroles", "clusterrolebindings"], verbs: ["create", "update", "patch"] },
  ];
  try {
    await admin.create<ClusterRole>(kubernetes.ClusterRole, roleOf("writer", { rules }));
    await admin.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, bindingOf("writer"));
    await admin.create<ClusterRole>(kubernetes.ClusterRole, roleOf("everything", all));
    const writes: readonly (() => Promise<unknown>)[] = [
      () => mallory.create<ClusterRole>(kubernetes.ClusterRole, roleOf("taken", all)),
      () => mallory.patch(kubernetes.ClusterRole, { name: "writer" }, { type: "merge", body: all }),
      () => mallory.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, bindingOf("everything")),
      () => mallory.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, bindingOf("admin")),
    ];
    for (const [index, write] of writes.entries())
      await expect(write(), `write ${index}`).rejects.toSatisfy(isForbidden);
    const secrets = mallory.list<Secret>(kubernetes.Secret, { namespace: "kube-system" });
    await expect(secrets).rejects.toSatisfy(isForbidden);
    // What takes no more than their own rights goes through.
    await mallory.create<ClusterRole>(kubernetes.ClusterRole, roleOf("same", { rules }));
    await mallory.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, bindingOf("same"));
  } finally {
    api.close();
  }
});

test("a label of another's role gives its rights to nobody [apiserver-escalation-3]", async () => {
  const { api, admin, mallory } = server();
  const rules = [{ apiGroups: [apiGroup], resources: ["clusterroles"], verbs: ["get", "update", "patch"] }];
  try {
    await admin.create<ClusterRole>(kubernetes.ClusterRole, {
      apiVersion,
      kind: "ClusterRole",
      metadata: { name: "writer" },
      rules,
    } as ClusterRole);
    await admin.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, bindingOf("writer"));
    await admin.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, bindingOf("view"));
    const body = { metadata: { labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" } } };
    for (const name of ["cluster-admin", "edit", "admin"])
      await expect(mallory.patch(kubernetes.ClusterRole, { name }, { type: "merge", body }), name).rejects.toSatisfy(
        isForbidden,
      );
    await expect(mallory.list<Secret>(kubernetes.Secret, { namespace: "kube-system" })).rejects.toSatisfy(isForbidden);
    // What mallory has may be labelled by mallory.
    await mallory.patch(kubernetes.ClusterRole, { name: "writer" }, { type: "merge", body });
  } finally {
    api.close();
  }
});

test("a short role that allows a million things is refused before they are counted out [apiserver-escalation-2]", async () => {
  const { api, admin, mallory } = server();
  const role = (name: string, rules: ClusterRole["rules"]) =>
    ({ apiVersion, kind: "ClusterRole", metadata: { name }, rules }) as ClusterRole;
  const words = (letter: string) => Array.from({ length: 100 }, (_, index) => `${letter}${index}`);
  try {
    const writer = [{ apiGroups: [apiGroup], resources: ["clusterroles"], verbs: ["create"] }];
    await admin.create<ClusterRole>(kubernetes.ClusterRole, role("writer", writer));
    await admin.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name: "writer" },
      roleRef: { apiGroup, kind: "ClusterRole", name: "writer" },
      subjects: [{ kind: "User", apiGroup, name: "mallory" }],
    } as ClusterRoleBinding);
    const large = role("large", [{ verbs: words("v"), apiGroups: words("g"), resources: words("r") }]);
    const refusal = await mallory.create<ClusterRole>(kubernetes.ClusterRole, large).catch((error: unknown) => error);
    expect(refusal).toSatisfy(isForbidden);
    expect(String(refusal).length).toBeLessThan(2_000);
    // Who may do everything is not compared.
    await admin.create<ClusterRole>(kubernetes.ClusterRole, large);
  } finally {
    api.close();
  }
});
