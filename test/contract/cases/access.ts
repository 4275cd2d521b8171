import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { apps, eventually, core, created, names, pod, type ContractCase } from "./case-fixture.ts";
import { signingRequest } from "../../support/test-pki.ts";

export const accessCases: readonly ContractCase[] = [
  {
    title: "without credentials only health and version are open",
    async run(api, namespace) {
      const reply = await api.as("nobody").get(core(namespace, "pods"));
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toBe(
        `pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "${namespace}"`,
      );
    },
  },
  {
    title: "an unknown token answers 401",
    async run(api) {
      const reply = await api.as("nobody").get("/api/v1/pods", { authorization: "Bearer rubbish" });
      expect(reply.json).toEqual({
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: "Unauthorized",
        reason: "Unauthorized",
        code: 401,
      });
    },
  },
  {
    title: "roles and bindings grant what they name, once the server knows them",
    async run(api, namespace) {
      const alice = api.as("alice");
      const before = await alice.get(apps(namespace, "deployments", "d"));
      expect(before.at("message")).toBe(
        `deployments.apps "d" is forbidden: User "alice" cannot get resource "deployments" in API group "apps" in the namespace "${namespace}"`,
      );
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      await created(api, `${rbac}/roles`, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "r" },
        rules: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"] }],
      });
      await created(api, `${rbac}/rolebindings`, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name: "b" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" },
        subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "developers" }],
      });
      await eventually(async () => expect((await alice.get(apps(namespace, "deployments", "d"))).status).toBe(404));
      expect((await api.as("bob").get(apps(namespace, "deployments", "d"))).status).toBe(403);
      await api.delete(`${rbac}/rolebindings/b`);
      await eventually(async () => expect((await alice.get(apps(namespace, "deployments", "d"))).status).toBe(403));
    },
  },
  {
    title: "users cannot grant more than they have",
    async run(api, namespace) {
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      await created(api, `${rbac}/rolebindings`, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name: "admin" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" },
        subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "bob" }],
      });
      const bob = api.as("bob");
      await eventually(async () => expect((await bob.get(core(namespace, "pods"))).status).toBe(200));
      const fine = {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "fine" },
        rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
      };
      expect((await bob.post(`${rbac}/roles`, fine)).status).toBe(201);
      const reply = await bob.post(`${rbac}/roles`, {
        ...fine,
        metadata: { name: "more" },
        rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }],
      });
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toContain("is attempting to grant RBAC permissions not currently held");
    },
  },
  {
    title: "authors of policies and bindings may get the parameters that these name",
    async run(api, namespace) {
      const apiVersion = "admissionregistration.k8s.io/v1";
      const [group, rbac] = [`/apis/${apiVersion}`, "/apis/rbac.authorization.k8s.io/v1"];
      const [writer, reader] = [`${namespace}-policies`, `${namespace}-parameters`];
      const grant = async (name: string, rules: readonly Json[]) => {
        await created(api, `${rbac}/clusterroles`, {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "ClusterRole",
          metadata: { name },
          rules,
        });
        await created(api, `${rbac}/clusterrolebindings`, {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "ClusterRoleBinding",
          metadata: { name },
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
          subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "bob" }],
        });
      };
      const [policies, bindings] = [
        `${group}/validatingadmissionpolicies`,
        `${group}/validatingadmissionpolicybindings`,
      ];
      await grant(writer, [
        {
          apiGroups: ["admissionregistration.k8s.io"],
          resources: ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
          verbs: ["create", "get", "update", "patch", "delete"],
        },
        { apiGroups: [""], resources: ["configmaps"], resourceNames: ["parameters"], verbs: ["get"] },
      ]);
      const policy = (paramKind: Json | undefined) => ({
        apiVersion,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: namespace },
        spec: {
          ...(paramKind === undefined ? {} : { paramKind }),
          matchConstraints: {
            resourceRules: [
              { apiGroups: ["example.com"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["nothings"] },
            ],
          },
          validations: [{ expression: "true" }],
        },
      });
      const configMaps = { apiVersion: "v1", kind: "ConfigMap" };
      const binding = (name: string) => ({
        apiVersion,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: namespace },
        spec: {
          policyName: namespace,
          validationActions: ["Deny"],
          paramRef: { name, namespace, parameterNotFoundAction: "Deny" },
        },
      });
      const bob = api.as("bob");
      await eventually(async () => expect((await bob.get(`${policies}/${namespace}`)).status).toBe(404));
      const refused = await bob.post(policies, policy(configMaps));
      expect([refused.status, refused.at("details.causes.0.field")]).toEqual([422, "spec.paramKind"]);
      expect(refused.at("message")).toContain(
        'must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)',
      );
      expect((await bob.post(policies, policy(undefined))).status).toBe(201);
      // Nor does an update add parameters; one of something else goes through.
      const adds = await bob.patch(`${policies}/${namespace}`, "merge", { spec: { paramKind: configMaps } });
      expect([adds.status, adds.at("details.causes.0.field")]).toEqual([422, "spec.paramKind"]);
      const adminAdds = await api.patch(`${policies}/${namespace}`, "merge", { spec: { paramKind: configMaps } });
      expect(adminAdds.status).toBe(200);
      const other = { metadata: { labels: { of: "bob" } } };
      expect((await bob.patch(`${policies}/${namespace}`, "merge", other)).status).toBe(200);
      const notHis = await bob.post(bindings, binding("others"));
      expect([notHis.status, notHis.at("details.causes.0.field")]).toEqual([422, "spec.paramRef"]);
      expect(notHis.at("message")).toContain('does not have "get" permission on the object referenced by paramRef');
      expect((await bob.post(bindings, binding("parameters"))).status).toBe(201);
      const moved = await bob.patch(`${bindings}/${namespace}`, "merge", { spec: { paramRef: { name: "others" } } });
      expect(moved.status).toBe(422);
      await grant(reader, [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }]);
      await eventually(async () =>
        expect(
          (await bob.patch(`${bindings}/${namespace}`, "merge", { spec: { paramRef: { name: "others" } } })).status,
        ).toBe(200),
      );
      for (const path of [`${bindings}/${namespace}`, `${policies}/${namespace}`]) await api.delete(path);
      expect((await bob.post(policies, policy(configMaps))).status).toBe(201);
      await api.delete(`${policies}/${namespace}`);
      for (const name of [writer, reader])
        for (const kind of ["clusterroles", "clusterrolebindings"]) await api.delete(`${rbac}/${kind}/${name}`);
    },
  },
  {
    title: "a label of a role or binding asks for every right in it, its owners and finalizers for none",
    async run(api, namespace) {
      const apiVersion = "rbac.authorization.k8s.io/v1";
      const group = `/apis/${apiVersion}`;
      const inside = `${group}/namespaces/${namespace}`;
      const binding = (kind: string, name: string, role: string) => ({
        apiVersion,
        kind,
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
        subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "bob" }],
      });
      const role = (kind: string, name: string, rules: readonly Json[]) => ({
        apiVersion,
        kind,
        metadata: { name },
        rules,
      });
      const writes = [
        {
          apiGroups: ["rbac.authorization.k8s.io"],
          resources: ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
          verbs: ["get", "update", "patch"],
        },
      ];
      const more = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];
      const [writer, other] = [`${namespace}-writer`, `${namespace}-other`];
      await created(api, `${group}/clusterroles`, role("ClusterRole", writer, writes));
      await created(api, `${group}/clusterrolebindings`, binding("ClusterRoleBinding", writer, writer));
      await created(api, `${group}/clusterroles`, role("ClusterRole", other, more));
      await created(api, `${inside}/roles`, role("Role", other, more));
      const bob = api.as("bob");
      const label = { metadata: { labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" } } };
      const held = { metadata: { annotations: { note: "held by bob" } } };
      // What grants no more than bob has may be changed in any way.
      await eventually(async () =>
        expect((await bob.patch(`${group}/clusterroles/${writer}`, "merge", held)).status).toBe(200),
      );
      for (const path of [`${group}/clusterroles/${other}`, `${inside}/roles/${other}`]) {
        const refused = await bob.patch(path, "merge", label);
        expect([refused.status, refused.at("message")], path).toEqual([
          403,
          expect.stringContaining("is attempting to grant RBAC permissions not currently held"),
        ]);
      }
      const admins = { subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "nobody-yet" }] };
      const bindings = [`${group}/clusterrolebindings/${namespace}-admins`, `${inside}/rolebindings/admins`];
      await created(api, `${group}/clusterrolebindings`, {
        ...binding("ClusterRoleBinding", `${namespace}-admins`, "cluster-admin"),
        ...admins,
      });
      await created(api, `${inside}/rolebindings`, {
        ...binding("RoleBinding", "admins", "cluster-admin"),
        ...admins,
      });
      for (const path of bindings) expect((await bob.patch(path, "merge", label)).status, path).toBe(403);
      for (const path of [`${group}/clusterroles/${other}`, `${inside}/roles/${other}`, ...bindings]) {
        for (const finalizers of [["example.com/held"], []])
          expect((await bob.patch(path, "merge", { metadata: { finalizers } })).status, path).toBe(200);
      }
      await api.delete(`${group}/clusterrolebindings/${writer}`);
    },
  },
  {
    title: "access reviews answer about the caller and about others",
    async run(api, namespace) {
      const ask = { resourceAttributes: { verb: "get", resource: "pods", namespace } };
      const self = await api.as("alice").post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: ask,
      });
      expect(self.json).toMatchObject({ status: { allowed: false } });
      const other = await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { ...ask, user: "x", groups: ["system:masters"] },
      });
      expect(other.json).toMatchObject({ status: { allowed: true } });
      const rules = await api.as("alice").post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectRulesReview",
        spec: { namespace },
      });
      expect((rules.at("status.resourceRules") as Json[]).length).toBeGreaterThan(0);
      const who = await api.as("alice").post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        apiVersion: "authentication.k8s.io/v1",
        kind: "SelfSubjectReview",
      });
      expect(who.at("status.userInfo")).toEqual({
        username: "alice",
        groups: ["developers", "system:authenticated"],
        extra: { "authentication.kubernetes.io/credential-id": [expect.stringMatching(/^X509SHA256=[0-9a-f]{64}$/)] },
      });
    },
  },
  {
    title: "a user with the right can impersonate another",
    async run(api) {
      const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
      const who = await api.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, {
        "impersonate-user": "carol",
        "impersonate-group": "painters",
      });
      expect(who.at("status.userInfo")).toEqual({ username: "carol", groups: ["painters", "system:authenticated"] });
      const refused = await api
        .as("alice")
        .send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, { "impersonate-user": "carol" });
      expect(refused.at("message")).toBe(
        'users "carol" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope',
      );
    },
  },
  {
    title: "a service account's token is valid while its pod lives",
    async run(api, namespace) {
      await created(api, core(namespace, "serviceaccounts"), {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "robot" },
      });
      const made = await created(api, core(namespace, "pods"), pod("p", { serviceAccountName: "robot" }));
      const request = {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {
          expirationSeconds: 3600,
          boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p", uid: made.at("metadata.uid") },
        },
      };
      // The others are for later: the real server trusts a token that it has seen for ten seconds more.
      const [token = "", ...unseen] = await Promise.all(
        Array.from({ length: 12 }).map(async () =>
          String(
            (await created(api, `${core(namespace, "serviceaccounts", "robot")}/token`, request)).at("status.token"),
          ),
        ),
      );
      const whoami = (token: string) =>
        api
          .as("nobody")
          .send(
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
            { authorization: `Bearer ${token}` },
          );
      const who = await whoami(token);
      expect(who.at("status.userInfo.username")).toBe(`system:serviceaccount:${namespace}:robot`);
      expect(who.at("status.userInfo.groups")).toEqual([
        "system:serviceaccounts",
        `system:serviceaccounts:${namespace}`,
        "system:authenticated",
      ]);
      expect((who.at("status.userInfo.extra") as Json)["authentication.kubernetes.io/pod-name"]).toEqual(["p"]);
      const review = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: { token },
      });
      expect(review.json).toMatchObject({ status: { authenticated: true } });
      await api.delete(core(namespace, "pods", "p"));
      // The real server's authenticator notices the pod's deletion a little later than the client.
      let refused = "";
      await eventually(async () => {
        refused = unseen.pop() ?? refused;
        expect((await whoami(refused)).status).toBe(401);
      });
      expect(
        (
          await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {
            apiVersion: "authentication.k8s.io/v1",
            kind: "TokenReview",
            spec: { token: refused },
          })
        ).at("status.authenticated"),
      ).toBeUndefined();
    },
  },
  {
    title: "a token shorter than ten minutes or for another account's pod is refused",
    async run(api, namespace) {
      const path = `${core(namespace, "serviceaccounts", "default")}/token`;
      const short = await api.post(path, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { expirationSeconds: 60 },
      });
      expect(short.at("message")).toContain("may not specify a duration less than 10 minutes");
      await created(api, core(namespace, "serviceaccounts"), {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "robot" },
      });
      await created(api, core(namespace, "pods"), pod("p", { serviceAccountName: "robot" }));
      expect(
        (
          await api.post(path, {
            apiVersion: "authentication.k8s.io/v1",
            kind: "TokenRequest",
            spec: { boundObjectRef: { kind: "Pod", name: "p" } },
          })
        ).status,
      ).toBe(400);
    },
  },
  {
    title: "a kubelet writes its own node and no other",
    async run(api) {
      const node = api.as("node-a");
      const body = (name: string, labels: Json = { "kubernetes.io/os": "linux" }) => ({
        apiVersion: "v1",
        kind: "Node",
        metadata: { name, labels },
        status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }] },
      });
      const made = await node.post("/api/v1/nodes", body("node-a"));
      expect([201, 409]).toContain(made.status);
      expect((await node.post("/api/v1/nodes", body("node-z"))).status).toBe(403);
      expect(
        (await api.as("node-b").post("/api/v1/nodes", body("node-b", { "node-restriction.kubernetes.io/x": "" }))).at(
          "message",
        ),
      ).toContain("is not allowed to set the following labels: node-restriction.kubernetes.io/x");
      expect(
        (
          await node.patch("/api/v1/nodes/node-a/status", "strategic", {
            status: { conditions: [{ type: "Ready", status: "True" }] },
          })
        ).status,
      ).toBe(200);
      expect(
        (await api.as("node-b").patch("/api/v1/nodes/node-a/status", "strategic", { status: { phase: "x" } })).status,
      ).toBe(403);
      expect((await node.delete("/api/v1/nodes/node-a")).status).toBe(403);
      for (const [path, allowed] of [
        ["/api/v1/nodes/node-a", true],
        ["/api/v1/nodes?fieldSelector=metadata.name%3Dnode-a", true],
        ["/api/v1/nodes/node-b", false],
        ["/api/v1/nodes", false],
      ] as const) {
        const reply = await node.get(path);
        expect(reply.status, path).toBe(allowed ? 200 : 403);
        if (!allowed)
          expect(reply.at("message")).toMatch(
            /node 'node-a' cannot read (all nodes|'node-b'), only its own Node object$/,
          );
      }
      expect(
        (
          await node.patch("/api/v1/nodes/node-a", "merge", {
            metadata: { labels: { "node-role.kubernetes.io/master": "" } },
          })
        ).status,
      ).toBe(403);
      expect(
        (await node.patch("/api/v1/nodes/node-a", "merge", { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } }))
          .status,
      ).toBe(403);
    },
  },
  {
    title: "a kubelet reads what its pods need and nothing else",
    async run(api, namespace) {
      for (const name of ["needed", "other"])
        await created(api, core(namespace, "secrets"), { apiVersion: "v1", kind: "Secret", metadata: { name } });
      const made = await created(
        api,
        core(namespace, "pods"),
        pod("p", { nodeName: "node-a", volumes: [{ name: "v", secret: { secretName: "needed" } }] }),
      );
      const node = api.as("node-a");
      // A real server's authorizer learns a little after the pod's write which kubelet needs what.
      await eventually(async () => expect((await node.get(core(namespace, "secrets", "needed"))).status).toBe(200));
      const other = await node.get(core(namespace, "secrets", "other"));
      expect([other.status, other.at("message")]).toEqual([
        403,
        `secrets "other" is forbidden: User "system:node:node-a" cannot get resource "secrets" in API group "" in the namespace "${namespace}": no relationship found between node 'node-a' and this object`,
      ]);
      expect((await node.get(core(namespace, "secrets"))).at("message")).toMatch(/: No Object name found$/);
      expect((await node.delete(core(namespace, "secrets", "needed"))).at("message")).toMatch(
        /: can only read resources of this type$/,
      );
      expect((await node.get(core(namespace, "pods"))).at("message")).toMatch(
        /: can only list\/watch pods with spec.nodeName field selector$/,
      );
      expect(
        (await node.get(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/node-a`)).at("message"),
      ).toMatch(/: can only access leases in the "kube-node-lease" system namespace$/);
      expect((await api.as("node-b").get(core(namespace, "secrets", "needed"))).status).toBe(403);
      expect((await node.get("/api/v1/pods")).status).toBe(403);
      expect(names((await node.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-a")).json)).toContain("p");
      expect(
        (await node.patch(`${core(namespace, "pods", "p")}/status`, "merge", { status: { phase: "Running" } })).status,
      ).toBe(200);
      expect(
        (
          await api
            .as("node-b")
            .patch(`${core(namespace, "pods", "p")}/status`, "merge", { status: { phase: "Running" } })
        ).status,
      ).toBe(403);
      expect((await api.as("node-b").delete(core(namespace, "pods", "p"))).status).toBe(403);
      expect((await api.as("node-b").get(core(namespace, "pods", "p"))).status).toBe(403);
      expect(
        (
          await api.as("node-b").post(`${core(namespace, "pods", "p")}/eviction`, {
            apiVersion: "policy/v1",
            kind: "Eviction",
            metadata: { name: "p" },
          })
        ).status,
      ).toBe(403);
      const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "p" };
      const token = {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { boundObjectRef: { ...boundObjectRef, uid: made.at("metadata.uid") } },
      };
      expect(
        (
          await node.post(`${core(namespace, "serviceaccounts", "default")}/token`, {
            ...token,
            spec: { boundObjectRef },
          })
        ).at("message"),
      ).toContain("node requested token with a pod binding without a uid");
      expect((await node.post(`${core(namespace, "serviceaccounts", "default")}/token`, token)).status).toBe(201);
      expect(
        (await node.post(`${core(namespace, "serviceaccounts", "default")}/token`, { ...token, spec: {} })).at(
          "message",
        ),
      ).toContain("node requested token not bound to a pod");
      expect(
        (await api.as("node-b").post(`${core(namespace, "serviceaccounts", "default")}/token`, token)).status,
      ).toBe(403);
      expect((await node.delete(core(namespace, "pods", "p"), { gracePeriodSeconds: 0 })).status).toBe(200);
      // Gone, or no longer visible to it, whichever the server knows first.
      expect([403, 404]).toContain((await node.get(core(namespace, "pods", "p"))).status);
    },
  },
  {
    title: "a kubelet holds only its own lease",
    async run(api) {
      const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
      const lease = (name: string) => ({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name },
        spec: { holderIdentity: name },
      });
      expect([201, 409]).toContain((await api.as("node-a").post(leases, lease("node-a"))).status);
      expect((await api.as("node-a").post(leases, lease("node-b"))).status).toBe(403);
      expect((await api.as("node-a").get(`${leases}/node-b`)).status).toBe(403);
    },
  },
  {
    title: "a certificate request names its real author, whatever it claims",
    async run(api, namespace) {
      const csr = {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { name: namespace },
        spec: {
          request: await signingRequest("CN=somebody"),
          signerName: "example.com/contract",
          usages: ["client auth"],
          username: "somebody",
        },
      };
      const made = await api.as("node-a").post("/apis/certificates.k8s.io/v1/certificatesigningrequests", csr);
      expect(made.status, made.text).toBe(201);
      expect(made.json).toMatchObject({
        spec: { username: "system:node:node-a", groups: ["system:nodes", "system:authenticated"] },
      });
      const path = `/apis/certificates.k8s.io/v1/certificatesigningrequests/${namespace}`;
      const approved = await api.put(`${path}/approval`, {
        ...made.json,
        status: { conditions: [{ type: "Approved", status: "True", reason: "Test" }], certificate: "eA==" },
      });
      expect(approved.json).toMatchObject({ status: { conditions: [{ type: "Approved" }] } });
      expect(approved.at("status.certificate")).toBeUndefined();
    },
  },
];
