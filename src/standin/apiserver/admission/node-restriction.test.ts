import { expect, onTestFinished, test } from "vitest";
import {
  type ClusterRole,
  type ClusterRoleBinding,
  type Node,
  type Pod,
  type Secret,
  kubernetes,
} from "../../../api/foreign/kubernetes.ts";
import { createKubeClient } from "../../../kube/kube-client.ts";
import { isAlreadyExists, isForbidden } from "../../../kube/kube-error.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import { sharedSecretKeys } from "../access/service-account-tokens.ts";
import { createApiServer } from "../server.ts";
import { memoryStore } from "../storage/memory-store.ts";
import { signers } from "../../../api/names.ts";
import { signingRequest } from "../../../../test/support/test-pki.ts";

test("a kubelet gives its Node no owner, with which the Node would be collected [apiserver-node-restriction-1]", async () => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  const transport = api.as({ name: "system:node:a", groups: ["system:nodes", "system:authenticated"] });
  const kubelet = createKubeClient({ ...ports, transport, userAgent: "test" });
  const write = (body: object) => kubelet.patch(kubernetes.Node, { name: "a" }, { type: "merge", body });
  try {
    await kubelet.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "a" },
      spec: {},
    } as Node);
    await write({ metadata: { annotations: { a: "b" } } });
    const owners = [{ apiVersion: "v1", kind: "ConfigMap", name: "gone", uid: "1234" }];
    await expect(write({ metadata: { ownerReferences: owners } })).rejects.toSatisfy(isForbidden);
  } finally {
    api.close();
  }
});

test("a kubelet's mirror pod names nothing that its node could then read, and nobody adopts it [apiserver-node-restriction-2]", async () => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  const as = (name: string, group: string) =>
    createKubeClient({ ...ports, transport: api.as({ name, groups: [group] }), userAgent: "test" });
  const kubelet = as("system:node:a", "system:nodes");
  const namespace = "kube-system";
  try {
    await as("admin", "system:masters").create<Secret>(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "key", namespace },
    });
    const { metadata } = await kubelet.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "a" },
      spec: {},
    } as Node);
    const owner = { apiVersion: "v1", kind: "Node", name: "a", uid: metadata.uid, controller: true };
    const mirror = (name: string, spec: object = {}, ownerReferences: readonly object[] = [owner]) =>
      kubelet.create<Pod>(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace, annotations: { "kubernetes.io/config.mirror": "m" }, ownerReferences },
        spec: { nodeName: "a", containers: [{ name: "c", image: "i" }], ...spec },
      } as unknown as Pod);
    const variable = (from: object) => ({
      containers: [{ name: "c", image: "i", env: [{ name: "A", valueFrom: from }] }],
    });
    for (const spec of [
      { volumes: [{ name: "v", secret: { secretName: "key" } }] },
      { volumes: [{ name: "v", projected: { sources: [{ secret: { name: "key" } }] } }] },
      { volumes: [{ name: "v", configMap: { name: "key" } }] },
      { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "key" } }] },
      { imagePullSecrets: [{ name: "key" }] },
      { containers: [{ name: "c", image: "i", envFrom: [{ secretRef: { name: "key" } }] }] },
      variable({ secretKeyRef: { name: "key", key: "k" } }),
      { serviceAccountName: "default" },
      { serviceAccount: "default" },
      { initContainers: [{ name: "i", image: "i", envFrom: [{ secretRef: { name: "key" } }] }] },
      { ephemeralContainers: [{ name: "e", image: "i", envFrom: [{ secretRef: { name: "key" } }] }] },
      variable({ configMapKeyRef: { name: "key", key: "k" } }),
      ...[
        { csi: { driver: "d", nodePublishSecretRef: { name: "key" } } },
        { azureFile: { secretName: "key", shareName: "s" } },
        { cephfs: { monitors: ["m"], secretRef: { name: "key" } } },
        { cinder: { volumeID: "v", secretRef: { name: "key" } } },
        { flexVolume: { driver: "d", secretRef: { name: "key" } } },
        { iscsi: { targetPortal: "t", iqn: "i", lun: 0, secretRef: { name: "key" } } },
        { rbd: { monitors: ["m"], image: "i", secretRef: { name: "key" } } },
        { scaleIO: { gateway: "g", system: "s", secretRef: { name: "key" } } },
        { storageos: { secretRef: { name: "key" } } },
        { ephemeral: { volumeClaimTemplate: { spec: {} } } },
        { projected: { sources: [{ configMap: { name: "key" } }] } },
        { projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
        { projected: { sources: [{ clusterTrustBundle: { name: "key", path: "t" } }] } },
        { projected: { sources: [{ podCertificate: { signerName: "s", keyType: "ED25519" } }] } },
      ].map((source) => ({ volumes: [{ name: "v", ...source }] })),
      { resourceClaims: [{ name: "c", resourceClaimName: "key" }] },
    ]) {
      await expect(mirror("p", spec), JSON.stringify(spec)).rejects.toSatisfy(isForbidden);
      await expect(kubelet.get(kubernetes.Secret, { name: "key", namespace })).rejects.toSatisfy(isForbidden);
    }
    for (const owners of [
      [],
      [owner, { ...owner, name: "b", controller: false }],
      [{ ...owner, controller: false }],
      [{ ...owner, name: "b" }],
      [{ ...owner, uid: "x" }],
      [{ ...owner, blockOwnerDeletion: true }],
    ])
      await expect(mirror("p", {}, owners), JSON.stringify(owners)).rejects.toSatisfy(isForbidden);
    await mirror("static", { volumes: [{ name: "v", hostPath: { path: "/etc" } }] });
  } finally {
    api.close();
  }
});

test("a kubelet asks for no certificate of two names, which readers would take for different nodes [apiserver-node-restriction-3]", async () => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  const transport = api.as({ name: "system:node:a", groups: ["system:nodes", "system:authenticated"] });
  const kubelet = createKubeClient({ ...ports, transport, userAgent: "test" });
  const ask = async (name: string, subject: string) =>
    kubelet.create(kubernetes.CertificateSigningRequest, {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name },
      spec: {
        request: await signingRequest(subject),
        signerName: signers.kubeletClient,
        usages: ["digital signature", "client auth"],
      },
    } as never);
  try {
    await ask("own", "O=system:nodes,CN=system:node:a");
    for (const subject of [
      "CN=system:node:b,O=system:nodes,CN=system:node:a",
      "CN=system:node:a,O=system:nodes,CN=system:node:b",
      "O=system:nodes,CN=system:node:b",
    ])
      await expect(ask("other", subject), subject).rejects.toSatisfy(isForbidden);
  } finally {
    api.close();
  }
});

test("a kubelet gets tokens for the audiences that its pod mounts, and for those that it may request [apiserver-node-restriction-4]", async () => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  const as = (name: string, group: string) =>
    createKubeClient({ ...ports, transport: api.as({ name, groups: [group] }), userAgent: "test" });
  const [admin, kubelet] = [as("admin", "system:masters"), as("system:node:a", "system:nodes")];
  const namespace = "default";
  try {
    await admin.create(kubernetes.ServiceAccount, {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "s", namespace },
    });
    const pod = async (name: string, audiences: readonly (string | undefined)[]) =>
      admin.create<Pod>(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace },
        spec: {
          nodeName: "a",
          serviceAccountName: "s",
          automountServiceAccountToken: false,
          containers: [{ name: "c", image: "i" }],
          volumes: audiences.map((audience, index) => ({
            name: `v${index}`,
            projected: {
              sources: [{ serviceAccountToken: { path: "token", ...(audience === undefined ? {} : { audience }) } }],
            },
          })),
        },
      } as unknown as Pod);
    const request = (bound: Pod, audiences: readonly string[], who = kubelet) =>
      who.request({
        method: "POST",
        target: `/api/v1/namespaces/${namespace}/serviceaccounts/s/token`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          apiVersion: "authentication.k8s.io/v1",
          kind: "TokenRequest",
          spec: {
            audiences,
            boundObjectRef: { apiVersion: "v1", kind: "Pod", name: bound.metadata.name, uid: bound.metadata.uid },
          },
        }),
      });
    const [named, plain, none] = [
      await pod("named", ["vault"]),
      await pod("plain", [undefined]),
      await pod("none", []),
    ];
    await request(named, ["vault"]);
    await request(plain, []);
    for (const [bound, audiences] of [
      [named, []],
      [named, ["vault", "bank"]],
      [named, ["bank"]],
      [plain, ["vault"]],
      [none, []],
      [none, ["vault"]],
    ] as const)
      await expect(request(bound, audiences), `${bound.metadata.name} ${audiences.join()}`).rejects.toSatisfy(
        isForbidden,
      );
    // Whoever is no node is not limited, and a node may be given an audience.
    await request(none, ["vault"], admin);
    const group = "rbac.authorization.k8s.io";
    await admin.create<ClusterRole>(kubernetes.ClusterRole, {
      apiVersion: `${group}/v1`,
      kind: "ClusterRole",
      metadata: { name: "vault" },
      rules: [{ apiGroups: [""], resources: ["vault"], verbs: ["request-serviceaccounts-token-audience"] }],
    } as ClusterRole);
    await admin.create<ClusterRoleBinding>(kubernetes.ClusterRoleBinding, {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "vault" },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: "vault" },
      subjects: [{ kind: "Group", apiGroup: group, name: "system:nodes" }],
    } as ClusterRoleBinding);
    await request(none, ["vault"]);
    await expect(request(none, ["bank"])).rejects.toSatisfy(isForbidden);
  } finally {
    api.close();
  }
});

test("a kubelet makes no Node beside its own by a name that is to be generated [apiserver-node-restriction-5]", async () => {
  const ports = { clock: systemClock, random: systemRandom };
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger });
  const transport = api.as({ name: "system:node:a", groups: ["system:nodes", "system:authenticated"] });
  const kubelet = createKubeClient({ ...ports, transport, userAgent: "test" });
  const make = (metadata: object) =>
    kubelet.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata, spec: {} } as Node);
  try {
    await make({ name: "a" });
    await expect(make({ name: "a", generateName: "master-" })).rejects.toSatisfy(isAlreadyExists);
    await expect(make({ generateName: "master-" })).rejects.toSatisfy(isForbidden);
  } finally {
    api.close();
  }
});

test("a kubelet reads no pod of another node by a patch that has an error in it [apiserver-node-restriction-6]", async () => {
  const ports = { clock: systemClock, random: systemRandom };
  const tokenKeys = sharedSecretKeys(systemRandom.bytes(32));
  const api = createApiServer({ ...ports, store: memoryStore(), log: silentLogger, tokenKeys });
  onTestFinished(() => api.close());
  const admin = createKubeClient({
    ...ports,
    transport: api.as({ name: "a", groups: ["system:masters"] }),
    userAgent: "t",
  });
  const asNode = api.as({ name: "system:node:worker-0", groups: ["system:nodes", "system:authenticated"] });
  const value = "correct horse battery staple";
  await admin.create<Pod>(kubernetes.Pod, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "db", namespace: "default" },
    spec: { nodeName: "worker-1", containers: [{ name: "c", image: "x", env: [{ name: "PASSWORD", value }] }] },
  });
  const password = "/spec/containers/0/env/0/value";
  const copiedTo = (path: string) => [{ op: "copy", from: password, path }];
  for (const [type, body] of [
    ["json-patch", [{ op: "add", path: "/metadata/labels", value: 5 }]],
    ["json-patch", copiedTo("/metadata/creationTimestamp")],
    ["json-patch", copiedTo("/metadata/labels")],
    ["json-patch", copiedTo("/status/startTime")],
    ["json-patch", [{ op: "test", path: password, value: "a guess" }]],
    ["merge-patch", { spec: { containers: 5 } }],
    ["merge-patch", { kind: "Secret" }],
    ["strategic-merge-patch", { status: { conditions: 5 } }],
  ] as const) {
    const answer = await asNode(
      {
        method: "PATCH",
        target: "/api/v1/namespaces/default/pods/db/status?fieldValidation=Strict",
        headers: { "content-type": `application/${type}+json` },
        body: JSON.stringify(body),
      },
      new AbortController().signal,
    );
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([
      403,
      expect.stringContaining("can only update status for pods with spec.nodeName set to itself"),
    ]);
    expect(JSON.stringify(answer.body)).not.toContain(value);
  }
});
