import { expect } from "vitest";
import { configMap, core, created, eventually, pod, type ContractCase } from "./case-fixture.ts";

export const admissionCases: readonly ContractCase[] = [
  {
    title: "a policy with a binding refuses what its expression refuses, and warns if it is set to warn",
    async run(api, namespace) {
      const group = "/apis/admissionregistration.k8s.io/v1";
      await created(api, `${group}/validatingadmissionpolicies`, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: namespace },
        spec: {
          failurePolicy: "Fail",
          matchConstraints: {
            resourceRules: [
              { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"] },
            ],
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
          },
          validations: [
            {
              expression: "request.userInfo.username == 'admin' && object.metadata.name.startsWith('good')",
              message: "only good names",
              reason: "Forbidden",
            },
          ],
        },
      });
      await created(api, `${group}/validatingadmissionpolicybindings`, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: namespace },
        spec: { policyName: namespace, validationActions: ["Deny"] },
      });
      await created(api, core(namespace, "configmaps"), configMap("good"));
      const reply = await eventually(async () => {
        const reply = await api.post(`${core(namespace, "configmaps")}?dryRun=All`, configMap("bad"));
        expect(reply.status).toBe(403);
        return reply;
      });
      expect(reply.at("message")).toBe(
        `configmaps "bad" is forbidden: ValidatingAdmissionPolicy '${namespace}' with binding '${namespace}' denied request: only good names`,
      );
      await api.patch(`${group}/validatingadmissionpolicybindings/${namespace}`, "merge", {
        spec: { validationActions: ["Warn"] },
      });
      const warned = await eventually(async () => {
        const warned = await api.post(`${core(namespace, "configmaps")}?dryRun=All`, configMap("bad"));
        expect(warned.status).toBe(201);
        return warned;
      });
      expect([warned.headers["warning"]].flat().join()).toContain("only good names");
      await api.delete(`${group}/validatingadmissionpolicybindings/${namespace}`);
    },
  },
  {
    title: "a policy can hold a pod's account to the node that its token names",
    async run(api, namespace) {
      const group = "/apis/admissionregistration.k8s.io/v1";
      await created(api, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name: namespace },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
        subjects: [{ kind: "ServiceAccount", name: "daemon", namespace }],
      });
      await created(api, core(namespace, "serviceaccounts"), {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "daemon" },
      });
      const node = `${namespace}-node`;
      await created(api, "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: node } });
      const made = await created(
        api,
        core(namespace, "pods"),
        pod("p", { serviceAccountName: "daemon", nodeName: node }),
      );
      const issued = await api.post(`${core(namespace, "serviceaccounts", "daemon")}/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p", uid: made.at("metadata.uid") } },
      });
      await created(api, `${group}/validatingadmissionpolicies`, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: namespace },
        spec: {
          matchConstraints: {
            resourceRules: [
              { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"] },
            ],
          },
          matchConditions: [
            {
              name: "only-the-daemon",
              expression: `request.userInfo.username == "system:serviceaccount:${namespace}:daemon"`,
            },
          ],
          validations: [
            {
              expression:
                '"authentication.kubernetes.io/node-name" in request.userInfo.extra && object.metadata.name == request.userInfo.extra["authentication.kubernetes.io/node-name"][0]',
              messageExpression: '"only " + request.userInfo.extra["authentication.kubernetes.io/node-name"][0]',
            },
          ],
        },
      });
      await created(api, `${group}/validatingadmissionpolicybindings`, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: namespace },
        spec: { policyName: namespace, validationActions: ["Deny"] },
      });
      const headers = { authorization: `Bearer ${String(issued.at("status.token"))}` };
      const foreign = await eventually(async () => {
        const foreign = await api
          .as("nobody")
          .send("POST", `${core(namespace, "configmaps")}?dryRun=All`, configMap("other-node"), headers);
        expect(foreign.status).toBe(422);
        return foreign;
      });
      expect(foreign.at("message")).toContain(`denied request: only ${node}`);
      expect(
        (await api.as("nobody").send("POST", core(namespace, "configmaps"), configMap(node), headers)).status,
      ).toBe(201);
      expect((await api.post(core(namespace, "configmaps"), configMap("whatever"))).status).toBe(201);
      await api.delete(`${group}/validatingadmissionpolicybindings/${namespace}`);
    },
  },
  {
    title: "a policy about one version judges objects of all versions in its own, unless it asks for exact matches",
    async run(api, namespace) {
      const group = "/apis/admissionregistration.k8s.io/v1";
      const matchConstraints = {
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["events"] }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      };
      const policy = async (name: string, matchPolicy: object, expression: string) => {
        await created(api, `${group}/validatingadmissionpolicies`, {
          apiVersion: "admissionregistration.k8s.io/v1",
          kind: "ValidatingAdmissionPolicy",
          metadata: { name },
          spec: {
            matchConstraints: { ...matchConstraints, ...matchPolicy },
            validations: [{ expression, message: `refused by ${name}` }],
          },
        });
        await created(api, `${group}/validatingadmissionpolicybindings`, {
          apiVersion: "admissionregistration.k8s.io/v1",
          kind: "ValidatingAdmissionPolicyBinding",
          metadata: { name },
          spec: { policyName: name, validationActions: ["Deny"] },
        });
      };
      const event = (note: string) => ({
        apiVersion: "events.k8s.io/v1",
        kind: "Event",
        metadata: { name: note },
        regarding: { kind: "Pod", namespace, name: "p" },
        reason: "Started",
        note,
        type: "Normal",
        action: "Starting",
        eventTime: "2026-01-01T00:00:00.000000Z",
        reportingController: "example.com/test",
        reportingInstance: "test",
      });
      const create = (note: string) =>
        api.post(`/apis/events.k8s.io/v1/namespaces/${namespace}/events?dryRun=All`, event(note));
      await policy(`${namespace}-exact`, { matchPolicy: "Exact" }, "false");
      await policy(
        `${namespace}-default`,
        {},
        'object.message == "good" && request.kind.group == "" && request.requestKind.group == "events.k8s.io"',
      );
      const refused = await eventually(async () => {
        const refused = await create("bad");
        expect(refused.status).toBe(422);
        return refused;
      });
      expect(refused.at("message")).toContain(`refused by ${namespace}-default`);
      expect((await create("good")).status).toBe(201);
      for (const name of [`${namespace}-exact`, `${namespace}-default`])
        await api.delete(`${group}/validatingadmissionpolicybindings/${name}`);
    },
  },
];
