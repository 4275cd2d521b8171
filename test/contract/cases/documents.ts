import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { core, type ContractCase } from "./case-fixture.ts";

interface DocumentedSchema {
  readonly $ref?: string;
  readonly allOf?: readonly DocumentedSchema[];
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, DocumentedSchema>>;
  readonly items?: DocumentedSchema;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-patch-merge-key"?: string;
  readonly "x-kubernetes-patch-strategy"?: string;
}
type Schemas = Readonly<Record<string, DocumentedSchema>>;

/** A schema with the references resolved; keywords beside a reference count, too. */
function resolved(schema: DocumentedSchema | undefined, schemas: Schemas): DocumentedSchema | undefined {
  if (schema?.$ref !== undefined) return resolved(schemas[schema.$ref.split("/").at(-1) ?? ""], schemas);
  const [only] = schema?.allOf ?? [];
  return only === undefined ? schema : { ...resolved(only, schemas), ...schema };
}

/** Type, required fields, list type and keys, merge key and patch strategy of some fields. */
const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "api/v1": {
    "Pod.spec": "object containers",
    "Pod.spec.containers": "array map name name merge",
    "Pod.spec.containers.[]": "object name",
    "Pod.spec.containers.[].ports": "array map containerPort protocol containerPort merge",
    "Pod.spec.containers.[].ports.[]": "object containerPort",
    "Pod.spec.containers.[].env.[]": "object name",
    "Pod.spec.containers.[].args": "array atomic",
    "Pod.spec.tolerations": "array atomic",
    "Pod.spec.volumes": "array map name name merge,retainKeys",
    "Pod.status.conditions": "array map type type merge",
    "Pod.status.conditions.[]": "object status type",
    "Pod.metadata.ownerReferences": "array map uid uid merge",
    "Pod.metadata.ownerReferences.[]": "object apiVersion kind name uid",
    "Pod.metadata.finalizers": "array set merge",
    "Node.spec.taints.[]": "object effect key",
    "Node.status.addresses": "array map type type merge",
    "Secret.data": "object",
    Event: "object involvedObject metadata",
  },
  "apis/apps/v1": {
    "Deployment.spec": "object selector template",
    "Deployment.spec.strategy": "object retainKeys",
    "Deployment.spec.template.spec": "object containers",
    "DaemonSet.status": "object currentNumberScheduled desiredNumberScheduled numberMisscheduled numberReady",
  },
  "apis/policy/v1": { "PodDisruptionBudget.spec.selector.matchExpressions.[]": "object key operator" },
  "apis/rbac.authorization.k8s.io/v1": { ClusterRoleBinding: "object roleRef", "ClusterRole.rules.[]": "object verbs" },
  "apis/coordination.k8s.io/v1": { "Lease.spec.leaseDurationSeconds": "integer" },
  "apis/admissionregistration.k8s.io/v1": {
    "ValidatingWebhookConfiguration.webhooks": "array map name name merge",
    "ValidatingWebhookConfiguration.webhooks.[]": "object admissionReviewVersions clientConfig name sideEffects",
  },
};

export const documentsCases: readonly ContractCase[] = [
  {
    title: "version, health and discovery answer",
    async run(api) {
      for (const path of ["/healthz", "/readyz", "/livez"]) expect((await api.as("nobody").get(path)).text).toBe("ok");
      expect((await api.as("nobody").get("/version")).at("major")).toBe("1");
      expect((await api.get("/api")).at("kind")).toBe("APIVersions");
      expect((await api.get("/apis")).at("kind")).toBe("APIGroupList");
      expect((await api.get("/api/v1")).at("kind")).toBe("APIResourceList");
      expect((await api.get("/apis/apps/v1")).at("groupVersion")).toBe("apps/v1");
    },
  },
  {
    title: "aggregated discovery has the requested form and an ETag that saves the second download",
    async run(api) {
      const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
      const first = await api.get("/apis", { accept });
      expect(first.at("kind")).toBe("APIGroupDiscoveryList");
      expect(String(first.headers["content-type"])).toContain("as=APIGroupDiscoveryList");
      const second = await api.get("/apis", { accept, "if-none-match": String(first.headers["etag"]) });
      expect(second.status).toBe(304);
    },
  },
  {
    title: "the plain resource list has eviction, where drain looks for it",
    async run(api) {
      const resources = (await api.get("/api/v1")).at("resources") as Json[];
      expect(resources.find((one) => one["name"] === "pods/eviction")).toMatchObject({
        kind: "Eviction",
        group: "policy",
        version: "v1",
      });
    },
  },
  {
    title: "OpenAPI v3 lists its documents with hashes, and each can be fetched",
    async run(api) {
      const url = (await api.get("/openapi/v3")).at("paths") as Record<string, { serverRelativeURL: string }>;
      const document = await api.get(url["apis/apps/v1"]?.serverRelativeURL ?? "");
      expect(document.status).toBe(200);
      expect(document.at("openapi")).toMatch(/^3\./);
    },
  },
  {
    title: "OpenAPI v3 describes fields as kubectl needs: type, whether they are required, and how lists merge",
    async run(api) {
      const paths = (await api.get("/openapi/v3")).at("paths") as Record<string, { serverRelativeURL: string }>;
      for (const [document, rows] of Object.entries(fields)) {
        const { components } = (await api.get(paths[document]?.serverRelativeURL ?? "")).json as unknown as {
          readonly components: { readonly schemas: Schemas };
        };
        for (const [path, wanted] of Object.entries(rows)) {
          const [kind = "", ...steps] = path.split(".");
          let found = Object.entries(components.schemas).find(([name]) => name.endsWith(`.${kind}`))?.[1];
          for (const step of steps)
            found =
              step === "[]"
                ? resolved(found?.items, components.schemas)
                : resolved(found?.properties?.[step], components.schemas);
          const {
            type,
            required,
            "x-kubernetes-list-type": list,
            "x-kubernetes-list-map-keys": keys,
            "x-kubernetes-patch-merge-key": mergeKey,
            "x-kubernetes-patch-strategy": strategy,
          } = found ?? {};
          expect(
            [document, path, type, ...(required ?? []).toSorted(), list, keys, mergeKey, strategy]
              .flat()
              .filter((part) => part !== undefined)
              .join(" "),
          ).toBe(`${document} ${path} ${wanted}`);
        }
      }
    },
  },
  {
    title: "unknown kinds and versions of a served group answer 404 with a Status",
    async run(api, namespace) {
      for (const path of [
        "/api/v1/nonsense",
        core(namespace, "nonsense"),
        core(namespace, "pods", "p/nonsense"),
        "/apis/apps/v1/nonsense",
      ]) {
        const reply = await api.get(path);
        expect(reply.json).toEqual({
          kind: "Status",
          apiVersion: "v1",
          metadata: {},
          status: "Failure",
          message: "the server could not find the requested resource",
          reason: "NotFound",
          details: {},
          code: 404,
        });
      }
    },
  },
  {
    title: "unknown groups and paths answer 404 in plain text",
    async run(api) {
      for (const path of ["/apis/no.such.group/v1/things", "/apis/no.such.group", "/nonsense"]) {
        expect(await api.get(path)).toMatchObject({ status: 404, text: "404 page not found\n" });
      }
    },
  },
];
