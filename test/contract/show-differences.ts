import { expect } from "vitest";
import type { Api, Json } from "./api-target.ts";
import {
  type ContractCase,
  core,
  created,
  definitions,
  eventually,
  pod,
  served,
  widgets,
} from "./cases/case-fixture.ts";
import type { differences, ServerKind } from "./differences.ts";

/** What each server does where they differ, by the name of the difference. */
export const shownDifferences: Readonly<
  Record<(typeof differences)[number]["name"], Readonly<Record<ServerKind, ContractCase["run"]>>>
> = {
  "protobuf answers": {
    async embedded(api, namespace) {
      expect((await api.get(core(namespace, "configmaps"), { accept: protobuf })).status).toBe(406);
      expect(
        (await api.get(core(namespace, "configmaps"), { accept: `${protobuf},application/json` })).headers[
          "content-type"
        ],
      ).toBe("application/json");
    },
    async kubernetes(api, namespace) {
      expect((await api.get(core(namespace, "configmaps"), { accept: protobuf })).headers["content-type"]).toBe(
        protobuf,
      );
    },
  },
  "cost of rules": {
    async embedded(api, namespace) {
      expect((await api.post(`${definitions}?dryRun=All`, costly(namespace))).status).toBe(201);
    },
    async kubernetes(api, namespace) {
      const reply = await api.post(`${definitions}?dryRun=All`, costly(namespace));
      expect(reply.at("message")).toContain("estimated rule cost exceeds budget by factor of");
    },
  },
  "authorizer in policies": {
    async embedded(api, namespace) {
      const reply = await api.post(policies, asking(namespace));
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("undeclared reference to 'authorizer'");
    },
    async kubernetes(api, namespace) {
      expect((await api.post(policies, asking(namespace))).status).toBe(201);
    },
  },
  "texts of parsers": {
    async embedded(api, namespace) {
      const reply = await api.send("POST", core(namespace, "configmaps"), "{");
      expect(reply.json).toMatchObject({
        code: 400,
        reason: "BadRequest",
        message: expect.not.stringContaining("unexpected end of JSON input"),
      });
    },
    async kubernetes(api, namespace) {
      const reply = await api.send("POST", core(namespace, "configmaps"), "{");
      expect(reply.json).toMatchObject({
        code: 400,
        reason: "BadRequest",
        message: expect.stringContaining("unexpected end of JSON input"),
      });
    },
  },
  "what changed in a frozen pod": {
    async embedded(api, namespace) {
      expect(await frozen(api, namespace)).not.toContain("@@");
    },
    async kubernetes(api, namespace) {
      expect(await frozen(api, namespace)).toContain("@@");
    },
  },
  "a definition is served at once": {
    async embedded(api, namespace) {
      const group = `${namespace}.example.com`;
      const made = await created(api, definitions, widgets(group));
      expect(made.at("status.conditions")).toContainEqual(
        expect.objectContaining({ type: "Established", status: "True" }),
      );
      expect((await api.get(`/apis/${group}/v1/widgets`)).status).toBe(200);
    },
    async kubernetes(api, namespace) {
      const group = `${namespace}.example.com`;
      expect((await created(api, definitions, widgets(group))).at("status.conditions") ?? []).not.toContainEqual(
        expect.objectContaining({ type: "Established", status: "True" }),
      );
      await served(api, widgets(group));
    },
  },
  "writes are heard at once": {
    async embedded(api, namespace) {
      await bindViewer(api, namespace);
      expect((await api.as("alice").get(core(namespace, "pods"))).status).toBe(200);
    },
    async kubernetes(api, namespace) {
      await bindViewer(api, namespace);
      await eventually(async () => expect((await api.as("alice").get(core(namespace, "pods"))).status).toBe(200));
    },
  },
};

const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All";

/** A definition with a rule over lists of no bound in lists of no bound. */
function costly(namespace: string): Json {
  const definition = widgets(`${namespace}.example.com`);
  const list = { type: "array", items: { type: "string" } };
  const spec = {
    type: "object",
    properties: { one: list, other: list },
    "x-kubernetes-validations": [{ rule: "self.one.all(a, self.other.all(b, a != b))" }],
  };
  return {
    ...definition,
    spec: {
      ...definition.spec,
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
        },
      ],
    },
  };
}

const asking = (namespace: string) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingAdmissionPolicy",
  metadata: { name: namespace },
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
    },
    validations: [
      { expression: "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()" },
    ],
  },
});

/** The error for renaming a container of a pod. */
async function frozen(api: Api, namespace: string): Promise<unknown> {
  await created(api, core(namespace, "pods"), pod("p", { schedulerName: "nobody" }));
  return (
    await api.patch(core(namespace, "pods", "p"), "json", [
      { op: "replace", path: "/spec/containers/0/name", value: "other" },
    ])
  ).at("message");
}

async function bindViewer(api: Api, namespace: string): Promise<void> {
  const group = "rbac.authorization.k8s.io";
  await created(api, `/apis/${group}/v1/namespaces/${namespace}/rolebindings`, {
    apiVersion: `${group}/v1`,
    kind: "RoleBinding",
    metadata: { name: "view" },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: "view" },
    subjects: [{ kind: "User", name: "alice", apiGroup: group }],
  });
}

const protobuf = "application/vnd.kubernetes.protobuf";
