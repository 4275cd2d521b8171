import { expect } from "vitest";
import { type Api, at, type Json } from "./api-target.ts";

/** One thing that the API promises. `api` speaks as admin; `namespace` is fresh and the case's own. */
export interface ContractCase {
  readonly title: string;
  readonly run: (api: Api, namespace: string) => Promise<void>;
}

const configMap = (name: string, data: Json = { key: "value" }, metadata: Json = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data });
const pod = (name: string, more: Json = {}, metadata: Json = {}) => ({ apiVersion: "v1", kind: "Pod", metadata: { name, ...metadata }, spec: { containers: [{ name: "main", image: "example.com/app:1" }], ...more } });
const deployment = (name: string, replicas = 1, template: Json = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "main", image: "example.com/app:1" }], ...template } } },
});
const budget = (name: string, app: string) => ({ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name }, spec: { minAvailable: 1, selector: { matchLabels: { app } } } });
const widgets = (group: string, more: Json = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `widgets.${group}` },
  spec: {
    group,
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList", shortNames: ["wd"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" } },
        additionalPrinterColumns: [{ name: "Size", type: "integer", jsonPath: ".spec.size" }],
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: {
                  size: { type: "integer", minimum: 1, default: 3 },
                  replicas: { type: "integer" },
                  color: { type: "string", enum: ["red", "green"] },
                  parts: { type: "array", items: { type: "object", properties: { name: { type: "string" }, count: { type: "integer" } }, required: ["name"] }, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] },
                },
                "x-kubernetes-validations": [{ rule: "!has(self.replicas) || self.replicas <= self.size", message: "replicas may not exceed size" }],
              },
              status: { type: "object", properties: { replicas: { type: "integer" }, phase: { type: "string" } } },
            },
          },
        },
      },
    ],
  },
  ...more,
});

const core = (namespace: string, plural: string, name = "") => `/api/v1/namespaces/${namespace}/${plural}${name === "" ? "" : `/${name}`}`;
const apps = (namespace: string, plural: string, name = "") => `/apis/apps/v1/namespaces/${namespace}/${plural}${name === "" ? "" : `/${name}`}`;

const created = async (api: Api, path: string, body: unknown) => {
  const reply = await api.post(path, body);
  expect(reply.status, reply.text).toBe(201);
  return reply;
};
const names = (list: unknown): unknown[] => (at(list, "items") as Json[]).map((item) => at(item, "metadata.name"));
const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/** A pod that runs and is ready, as a kubelet would report it. */
async function readyPod(api: Api, namespace: string, name: string, labels: Json, node = "node-a"): Promise<void> {
  await created(api, core(namespace, "pods"), pod(name, { nodeName: node }, { labels }));
  const reply = await api.patch(`${core(namespace, "pods", name)}/status`, "merge", { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } });
  expect(reply.status, reply.text).toBe(200);
}

async function widgetGroup(api: Api, namespace: string): Promise<{ readonly group: string; readonly path: string }> {
  const group = `${namespace}.example.com`;
  await created(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets(group));
  return { group, path: `/apis/${group}/v1/namespaces/${namespace}/widgets` };
}
const widget = (group: string, name: string, spec: Json = {}, more: Json = {}) => ({ apiVersion: `${group}/v1`, kind: "Widget", metadata: { name }, spec, ...more });

async function expectEvents(watch: { next(): Promise<{ type: string; object: Json } | undefined> }, expected: readonly string[]): Promise<Json[]> {
  const objects: Json[] = [];
  const seen: string[] = [];
  while (seen.length < expected.length) {
    const event = await watch.next();
    if (event === undefined) break;
    const name = at(event.object, "metadata.name");
    seen.push(typeof name === "string" ? `${event.type} ${name}` : event.type);
    objects.push(event.object);
  }
  expect(seen).toEqual(expected);
  return objects;
}

export const contractCases: readonly ContractCase[] = [
  // ---- documents
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
    title: "aggregated discovery has the asked form and an ETag that saves the second download",
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
    title: "eviction is found in the plain resource list, as drain looks for it",
    async run(api) {
      const resources = (await api.get("/api/v1")).at("resources") as Json[];
      expect(resources.find((one) => one["name"] === "pods/eviction")).toMatchObject({ kind: "Eviction", group: "policy", version: "v1" });
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
    title: "paths that are not served answer 404 with a Status",
    async run(api) {
      for (const path of ["/apis/no.such.group/v1/things", "/api/v1/nonsense", "/nonsense"]) {
        const reply = await api.get(path);
        expect(reply.status).toBe(404);
        expect(reply.at("message")).toBe("the server could not find the requested resource");
        expect(reply.at("reason")).toBe("NotFound");
      }
    },
  },

  // ---- create
  {
    title: "creating stamps uid, time and resourceVersion and answers 201",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "configmaps"), configMap("a"));
      expect(reply.at("metadata.uid")).toMatch(/^[0-9a-f-]{36}$/);
      expect(reply.at("metadata.creationTimestamp")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(reply.at("metadata.resourceVersion")).toMatch(/^\d+$/);
      expect(reply.at("metadata.namespace")).toBe(namespace);
      expect((await api.get(core(namespace, "configmaps", "a"))).json).toEqual(reply.json);
    },
  },
  {
    title: "creating twice answers AlreadyExists",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.post(core(namespace, "configmaps"), configMap("a"));
      expect(reply.status).toBe(409);
      expect(reply.json).toMatchObject({ kind: "Status", status: "Failure", reason: "AlreadyExists", message: 'configmaps "a" already exists', details: { name: "a", kind: "configmaps" }, code: 409 });
    },
  },
  {
    title: "generateName makes a new name each time",
    async run(api, namespace) {
      const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "made-" } };
      const one = await created(api, core(namespace, "configmaps"), body);
      const other = await created(api, core(namespace, "configmaps"), body);
      expect(one.at("metadata.name")).toMatch(/^made-[a-z0-9]{5}$/);
      expect(one.at("metadata.name")).not.toBe(other.at("metadata.name"));
    },
  },
  {
    title: "an object without a name is invalid",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "configmaps"), { apiVersion: "v1", kind: "ConfigMap", metadata: {} });
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("metadata.name: Required value: name or generateName is required");
    },
  },
  {
    title: "a name that is no DNS name is invalid, with the field as cause",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "configmaps"), configMap("Not_A_Name"));
      expect(reply.status).toBe(422);
      expect(reply.at("reason")).toBe("Invalid");
      expect(reply.at("message")).toMatch(/^ConfigMap "Not_A_Name" is invalid: metadata\.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain/);
      expect(reply.at("details.causes.0.field")).toBe("metadata.name");
    },
  },
  {
    title: "creating in a namespace that is missing answers 404 for the namespace",
    async run(api, namespace) {
      const reply = await api.post(core(`${namespace}-missing`, "configmaps"), configMap("a"));
      expect(reply.status).toBe(404);
      expect(reply.at("message")).toBe(`namespaces "${namespace}-missing" not found`);
    },
  },
  {
    title: "another namespace in the body is refused",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "configmaps"), configMap("a", {}, { namespace: "other" }));
      expect(reply.status).toBe(400);
      expect(reply.at("message")).toBe("the namespace of the provided object does not match the namespace sent on the request");
    },
  },
  {
    title: "a body of another kind or version is refused",
    async run(api, namespace) {
      expect((await api.post(core(namespace, "configmaps"), { ...configMap("a"), kind: "Secret" })).status).toBe(400);
      const reply = await api.post(core(namespace, "configmaps"), { ...configMap("a"), apiVersion: "v2" });
      expect(reply.at("message")).toBe("the API version in the data (v2) does not match the expected API version (v1)");
    },
  },
  {
    title: "resourceVersion may not be set on creation",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "configmaps"), configMap("a", {}, { resourceVersion: "5" }));
      expect(reply.at("message")).toBe("resourceVersion should not be set on objects to be created");
    },
  },
  {
    title: "a body that is no JSON answers 400, one of an unknown type 415, one over 3 MiB 413",
    async run(api, namespace) {
      expect((await api.send("POST", core(namespace, "configmaps"), "{")).status).toBe(400);
      expect((await api.send("POST", core(namespace, "configmaps"), "x", { "content-type": "text/plain" })).status).toBe(415);
      const reply = await api.post(core(namespace, "configmaps"), configMap("big", { big: "x".repeat(3 * 1024 * 1024) }));
      expect(reply.status).toBe(413);
      expect(reply.at("reason")).toBe("RequestEntityTooLarge");
    },
  },
  {
    title: "a body in YAML is understood",
    async run(api, namespace) {
      const reply = await api.send("POST", core(namespace, "configmaps"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: sample\ndata:\n  a: b\n", { "content-type": "application/yaml" });
      expect(reply.status).toBe(201);
      expect(reply.at("data.a")).toBe("b");
    },
  },
  {
    title: "defaults are filled in",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "pods"), pod("p"));
      expect(reply.json).toMatchObject({ spec: { restartPolicy: "Always", dnsPolicy: "ClusterFirst", terminationGracePeriodSeconds: 30, serviceAccountName: "default" }, status: { phase: "Pending", qosClass: "BestEffort" } });
    },
  },
  {
    title: "a pod gets a projected token of its service account, unless it declines",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "pods"), pod("p"));
      const volumes = reply.at("spec.volumes") as Json[];
      expect(volumes).toHaveLength(1);
      expect(String(volumes[0]?.["name"])).toMatch(/^kube-api-access-/);
      expect(reply.at("spec.containers.0.volumeMounts.0")).toMatchObject({ mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true });
      const plain = await created(api, core(namespace, "pods"), pod("q", { automountServiceAccountToken: false }));
      expect(plain.at("spec.volumes")).toBeUndefined();
    },
  },
  {
    title: "a pod with a service account that is missing is forbidden",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "pods"), pod("p", { serviceAccountName: "ghost" }));
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toBe(`pods "p" is forbidden: error looking up service account ${namespace}/ghost: serviceaccount "ghost" not found`);
    },
  },
  {
    title: "a pod without containers is invalid",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "pods"), pod("p", { containers: [] }));
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("spec.containers: Required value");
    },
  },
  {
    title: "status is not the creator's to write",
    async run(api, namespace) {
      const reply = await created(api, apps(namespace, "deployments"), { ...deployment("d"), status: { replicas: 7 } });
      expect(reply.at("status.replicas")).toBeUndefined();
    },
  },
  {
    title: "a secret's stringData becomes data",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "secrets"), { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { password: "secret" } });
      expect(reply.json).toMatchObject({ type: "Opaque", data: { password: "c2VjcmV0" } });
      expect(reply.at("stringData")).toBeUndefined();
    },
  },
  {
    title: "dryRun=All answers as if and stores nothing",
    async run(api, namespace) {
      const reply = await api.post(`${core(namespace, "configmaps")}?dryRun=All`, configMap("a"));
      expect(reply.status).toBe(201);
      expect((await api.get(core(namespace, "configmaps", "a"))).status).toBe(404);
      expect((await api.post(`${core(namespace, "configmaps")}?dryRun=Some`, configMap("a"))).status).toBe(422);
    },
  },

  // ---- field validation
  {
    title: "fieldValidation=Strict refuses unknown fields by their path",
    async run(api, namespace) {
      const reply = await api.post(`${apps(namespace, "deployments")}?fieldValidation=Strict`, deployment("d", 1, { conteiners: [] }));
      expect(reply.status).toBe(400);
      expect(reply.at("message")).toContain('strict decoding error: unknown field "spec.template.spec.conteiners"');
    },
  },
  {
    title: "fieldValidation=Warn warns in a header, drops the field, and goes on",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      const reply = await api.post(`${path}?fieldValidation=Warn`, widget(group, "w", { colour: "red" }));
      expect(reply.status).toBe(201);
      expect([reply.headers["warning"]].flat().join(",")).toContain('299 - "unknown field \\"spec.colour\\""');
      expect(reply.at("spec.colour")).toBeUndefined();
      const quiet = await api.post(`${path}?fieldValidation=Ignore`, widget(group, "v", { colour: "red" }));
      expect(quiet.headers["warning"]).toBeUndefined();
    },
  },

  // ---- read
  {
    title: "an object that is missing answers 404 with its name",
    async run(api, namespace) {
      const reply = await api.get(apps(namespace, "deployments", "ghost"));
      expect(reply.json).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: 'deployments.apps "ghost" not found', reason: "NotFound", details: { name: "ghost", group: "apps", kind: "deployments" }, code: 404 });
    },
  },
  {
    title: "a list has kind, version and revision, and only the namespace's objects",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("b"));
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.get(`${core(namespace, "configmaps")}?fieldSelector=metadata.name!=kube-root-ca.crt`);
      expect(reply.json).toMatchObject({ kind: "ConfigMapList", apiVersion: "v1" });
      expect(reply.at("metadata.resourceVersion")).toMatch(/^\d+$/);
      expect(names(reply.json)).toEqual(["a", "b"]);
      const everywhere = await api.get("/api/v1/configmaps");
      expect(names(everywhere.json)).toEqual(expect.arrayContaining(["a", "b"]));
    },
  },
  {
    title: "label selectors choose: equality, sets, existence, and what is no selector answers 400",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a", {}, { labels: { app: "x", tier: "1" } }));
      await created(api, core(namespace, "configmaps"), configMap("b", {}, { labels: { app: "y" } }));
      const chosen = async (selector: string) => names((await api.get(`${core(namespace, "configmaps")}?labelSelector=${encodeURIComponent(selector)}`)).json);
      expect(await chosen("app=x")).toEqual(["a"]);
      expect(await chosen("app in (x,y)")).toEqual(["a", "b"]);
      expect(await chosen("app,!tier")).toEqual(["b"]);
      expect(await chosen("app!=x,app")).toEqual(["b"]);
      expect((await api.get(`${core(namespace, "configmaps")}?labelSelector=${encodeURIComponent("a in (")}`)).status).toBe(400);
    },
  },
  {
    title: "field selectors choose by name and by the fields of the kind, others answer 400",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("a", { nodeName: "n1" }));
      await created(api, core(namespace, "pods"), pod("b", { nodeName: "n2" }));
      const chosen = async (selector: string) => names((await api.get(`${core(namespace, "pods")}?fieldSelector=${encodeURIComponent(selector)}`)).json);
      expect(await chosen("metadata.name=a")).toEqual(["a"]);
      expect(await chosen("spec.nodeName=n2")).toEqual(["b"]);
      expect(await chosen("spec.nodeName=n2,status.phase!=Pending")).toEqual([]);
      expect((await api.get(`${core(namespace, "pods")}?fieldSelector=spec.color%3Dred`)).status).toBe(400);
    },
  },
  {
    title: "limit and continue give pages of one moment",
    async run(api, namespace) {
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      for (const name of ["a", "b", "c", "d", "e"]) await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name } });
      const first = await api.get(`${path}?limit=2`);
      expect(names(first.json)).toEqual(["a", "b"]);
      expect(first.at("metadata.remainingItemCount")).toBe(3);
      await api.delete(`${path}/c`);
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "bb" } });
      const second = await api.get(`${path}?limit=2&continue=${String(first.at("metadata.continue"))}`);
      expect(names(second.json)).toEqual(["c", "d"]);
      expect(second.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
      const third = await api.get(`${path}?limit=2&continue=${String(second.at("metadata.continue"))}`);
      expect(names(third.json)).toEqual(["e"]);
      expect(third.at("metadata.continue")).toBeUndefined();
      expect((await api.get(`${path}?limit=2&continue=rubbish`)).status).toBe(400);
    },
  },
  {
    title: "a list at an exact revision shows the past, one of the future times out",
    async run(api, namespace) {
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      const first = await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const then = String(first.at("metadata.resourceVersion"));
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "b" } });
      await api.delete(`${path}/a`);
      expect(names((await api.get(`${path}?resourceVersion=${then}&resourceVersionMatch=Exact`)).json)).toEqual(["a"]);
      expect(names((await api.get(`${path}?resourceVersion=${then}&resourceVersionMatch=NotOlderThan`)).json)).toEqual(["b"]);
      expect(names((await api.get(`${path}?resourceVersion=0`)).json)).toEqual(["b"]);
      const future = await api.get(`${path}?resourceVersion=999999999`);
      expect(future.status).toBe(504);
      expect(future.at("details.causes.0.reason")).toBe("ResourceVersionTooLarge");
    },
  },
  {
    title: "a Table has the kind's columns and rows with metadata",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      const reply = await api.get(core(namespace, "pods"), { accept: table });
      expect(reply.json).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1" });
      expect((reply.at("columnDefinitions") as Json[]).map((column) => column["name"]).slice(0, 5)).toEqual(["Name", "Ready", "Status", "Restarts", "Age"]);
      expect((reply.at("rows.0.cells") as unknown[]).slice(0, 3)).toEqual(["p", "0/1", "Pending"]);
      expect(reply.at("rows.0.object.kind")).toBe("PartialObjectMetadata");
      const whole = await api.get(`${core(namespace, "pods", "p")}?includeObject=Object`, { accept: table });
      expect(whole.at("rows.0.object.kind")).toBe("Pod");
    },
  },
  {
    title: "metadata alone can be asked for",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const one = await api.get(core(namespace, "configmaps", "a"), { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" });
      expect(one.json).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "a" } });
      expect(one.at("data")).toBeUndefined();
      const list = await api.get(core(namespace, "configmaps"), { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" });
      expect(list.at("kind")).toBe("PartialObjectMetadataList");
    },
  },
  {
    title: "an answer in protobuf alone is not to be had, JSON beside it is",
    async run(api, namespace) {
      expect((await api.get(core(namespace, "configmaps"), { accept: "application/vnd.kubernetes.protobuf" })).status).toBe(406);
      expect((await api.get(core(namespace, "configmaps"), { accept: "application/vnd.kubernetes.protobuf,application/json" })).status).toBe(200);
    },
  },

  // ---- watch
  {
    title: "a watch from a revision tells what happened after it, in order",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const first = await created(api, path, configMap("a"));
      await created(api, path, configMap("b"));
      const watch = await api.watch(`${path}?watch=true&resourceVersion=${String(first.at("metadata.resourceVersion"))}`);
      await api.patch(`${path}/b`, "merge", { data: { key: "other" } });
      await api.delete(`${path}/a`);
      const [, modified, gone] = await expectEvents(watch, ["ADDED b", "MODIFIED b", "DELETED a"]);
      expect(at(modified, "data.key")).toBe("other");
      expect(Number(at(gone, "metadata.resourceVersion"))).toBeGreaterThan(Number(at(modified, "metadata.resourceVersion")));
      await watch.close();
    },
  },
  {
    title: "a watch without a revision begins with what there is",
    async run(api, namespace) {
      const path = `${core(namespace, "secrets")}`;
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const watch = await api.watch(`${path}?watch=true`);
      await expectEvents(watch, ["ADDED a"]);
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "b" } });
      await expectEvents(watch, ["ADDED b"]);
      await watch.close();
    },
  },
  {
    title: "a watch with a selector tells what enters and what leaves it",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a", {}, { labels: { app: "x" } }));
      const watch = await api.watch(`${path}?watch=true&labelSelector=app%3Dy&resourceVersion=${String(made.at("metadata.resourceVersion"))}`);
      await api.patch(`${path}/a`, "merge", { metadata: { labels: { app: "y" } } });
      await api.patch(`${path}/a`, "merge", { data: { k: "v" } });
      await api.patch(`${path}/a`, "merge", { metadata: { labels: { app: "z" } } });
      const [, , gone] = await expectEvents(watch, ["ADDED a", "MODIFIED a", "DELETED a"]);
      expect(at(gone, "metadata.labels.app")).toBe("y");
      await watch.close();
    },
  },
  {
    title: "a watch of one name hears of no other",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a"));
      const watch = await api.watch(`${path}?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=${String(made.at("metadata.resourceVersion"))}`);
      await created(api, path, configMap("b"));
      await api.patch(`${path}/a`, "merge", { data: { k: "v" } });
      await expectEvents(watch, ["MODIFIED a"]);
      await watch.close();
    },
  },
  {
    title: "sendInitialEvents gives the state and then a bookmark that says so",
    async run(api, namespace) {
      const path = core(namespace, "secrets");
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const watch = await api.watch(`${path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`);
      const [, bookmark] = await expectEvents(watch, ["ADDED a", "BOOKMARK"]);
      expect((at(bookmark, "metadata.annotations") as Json)["k8s.io/initial-events-end"]).toBe("true");
      await watch.close();
    },
  },
  {
    title: "a watch ends after timeoutSeconds, with a last bookmark",
    async run(api, namespace) {
      const watch = await api.watch(`${core(namespace, "secrets")}?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1`);
      await expectEvents(watch, ["BOOKMARK"]);
      expect(await watch.next()).toBeUndefined();
    },
  },
  {
    title: "a watch in Tables carries rows",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      const watch = await api.watch(`${core(namespace, "pods")}?watch=true&resourceVersion=0`, { accept: table });
      const event = await watch.next();
      expect(event?.object).toMatchObject({ kind: "Table" });
      expect((at(event?.object, "rows.0.cells") as unknown[])[0]).toBe("p");
      await watch.close();
    },
  },

  // ---- update
  {
    title: "an update with the version that was read goes through, with an older one it conflicts",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      const second = await api.put(core(namespace, "configmaps", "a"), { ...first.json, data: { key: "2" } });
      expect(second.status).toBe(200);
      expect(second.at("metadata.uid")).toBe(first.at("metadata.uid"));
      const stale = await api.put(core(namespace, "configmaps", "a"), { ...first.json, data: { key: "3" } });
      expect(stale.status).toBe(409);
      expect(stale.at("reason")).toBe("Conflict");
      expect(stale.at("message")).toBe('Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again');
    },
  },
  {
    title: "an update that changes nothing writes nothing",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      const again = await api.put(core(namespace, "configmaps", "a"), first.json);
      expect(again.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
      const patched = await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { key: "value" } });
      expect(patched.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
    },
  },
  {
    title: "an update of what is missing answers 404, with another name 400",
    async run(api, namespace) {
      expect((await api.put(core(namespace, "configmaps", "ghost"), configMap("ghost"))).status).toBe(404);
      await created(api, core(namespace, "configmaps"), configMap("a"));
      expect((await api.put(core(namespace, "configmaps", "a"), configMap("b"))).status).toBe(400);
    },
  },
  {
    title: "generation counts changes of the spec and nothing else",
    async run(api, namespace) {
      const first = await created(api, apps(namespace, "deployments"), deployment("d"));
      expect(first.at("metadata.generation")).toBe(1);
      const labelled = await api.patch(apps(namespace, "deployments", "d"), "merge", { metadata: { labels: { a: "b" } } });
      expect(labelled.at("metadata.generation")).toBe(1);
      const status = await api.patch(`${apps(namespace, "deployments", "d")}/status`, "merge", { status: { replicas: 1 } });
      expect(status.at("metadata.generation")).toBe(1);
      const scaled = await api.patch(apps(namespace, "deployments", "d"), "merge", { spec: { replicas: 3 } });
      expect(scaled.at("metadata.generation")).toBe(2);
    },
  },
  {
    title: "the main endpoint leaves status alone, /status leaves the rest alone",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const main = await api.patch(apps(namespace, "deployments", "d"), "merge", { status: { replicas: 9 } });
      expect(main.at("status.replicas")).toBeUndefined();
      const status = await api.patch(`${apps(namespace, "deployments", "d")}/status`, "merge", { spec: { replicas: 9 }, status: { replicas: 4 } });
      expect(status.json).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 4 } });
    },
  },
  {
    title: "a deployment's selector cannot change",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const reply = await api.patch(apps(namespace, "deployments", "d"), "merge", { spec: { selector: { matchLabels: { app: "other" } }, template: { metadata: { labels: { app: "other" } } } } });
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("field is immutable");
    },
  },
  {
    title: "PUT makes a lease that is missing",
    async run(api, namespace) {
      const reply = await api.put(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/l`, { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "l" }, spec: { holderIdentity: "me" } });
      expect(reply.status).toBe(201);
    },
  },

  // ---- patch
  {
    title: "a JSON patch changes, and a failed test refuses all of it",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.patch(path, "json", [{ op: "test", path: "/data/key", value: "value" }, { op: "add", path: "/data/more", value: "1" }]);
      expect(reply.json).toMatchObject({ data: { key: "value", more: "1" } });
      const refused = await api.patch(path, "json", [{ op: "remove", path: "/data/more" }, { op: "test", path: "/data/key", value: "other" }]);
      expect(refused.status).toBe(422);
      expect((await api.get(path)).at("data.more")).toBe("1");
    },
  },
  {
    title: "a merge patch sets and null removes",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a", { x: "1", y: "2" }));
      expect((await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { x: null, z: "3" } })).at("data")).toEqual({ y: "2", z: "3" });
    },
  },
  {
    title: "a merge patch with an old resourceVersion conflicts",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { x: "1" } });
      const reply = await api.patch(core(namespace, "configmaps", "a"), "merge", { metadata: { resourceVersion: first.at("metadata.resourceVersion") }, data: { x: "2" } });
      expect(reply.status).toBe(409);
    },
  },
  {
    title: "a strategic patch merges containers by name",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const reply = await api.patch(apps(namespace, "deployments", "d"), "strategic", { spec: { template: { spec: { containers: [{ name: "side", image: "example.com/side:1" }] } } } });
      expect((reply.at("spec.template.spec.containers") as Json[]).map((container) => container["name"]).sort()).toEqual(["main", "side"]);
    },
  },
  {
    title: "custom resources answer 415 to strategic patches",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      await created(api, path, widget(group, "w"));
      expect((await api.patch(`${path}/w`, "strategic", { spec: { size: 4 } })).status).toBe(415);
      expect((await api.patch(`${path}/w`, "merge", { spec: { size: 4 } })).at("spec.size")).toBe(4);
    },
  },

  // ---- server-side apply
  {
    title: "apply creates, says who owns what, and changes nothing the second time",
    async run(api, namespace) {
      const path = `${core(namespace, "configmaps", "a")}?fieldManager=me`;
      const first = await api.patch(path, "apply", configMap("a"));
      expect(first.status).toBe(201);
      expect(first.at("metadata.managedFields.0")).toMatchObject({ manager: "me", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: { "f:data": { "f:key": {} } } });
      const second = await api.patch(path, "apply", configMap("a"));
      expect(second.status).toBe(200);
      expect(second.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
    },
  },
  {
    title: "apply understands YAML",
    async run(api, namespace) {
      const reply = await api.patch(`${core(namespace, "configmaps", "a")}?fieldManager=me`, "apply", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n");
      expect(reply.at("data.k")).toBe("v");
    },
  },
  {
    title: "apply without a field manager is refused",
    async run(api, namespace) {
      const reply = await api.patch(core(namespace, "configmaps", "a"), "apply", configMap("a"));
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toBe('PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch');
    },
  },
  {
    title: "two appliers of one field conflict, and force takes it over",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await api.patch(`${path}?fieldManager=one`, "apply", configMap("a", { x: "1" }));
      const reply = await api.patch(`${path}?fieldManager=two`, "apply", configMap("a", { x: "2" }));
      expect(reply.status).toBe(409);
      expect(reply.at("message")).toBe('Apply failed with 1 conflict: conflict with "one": .data.x');
      expect(reply.at("details.causes.0")).toEqual({ reason: "FieldManagerConflict", message: 'conflict with "one"', field: ".data.x" });
      const forced = await api.patch(`${path}?fieldManager=two&force=true`, "apply", configMap("a", { x: "2" }));
      expect(forced.status).toBe(200);
      expect(forced.at("data.x")).toBe("2");
    },
  },
  {
    title: "what an applier no longer names goes, unless another owns it too",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await api.patch(`${path}?fieldManager=one`, "apply", configMap("a", { mine: "1", ours: "1" }));
      await api.patch(`${path}?fieldManager=two`, "apply", configMap("a", { ours: "1" }));
      const reply = await api.patch(`${path}?fieldManager=one`, "apply", configMap("a", {}));
      expect(reply.at("data")).toEqual({ ours: "1" });
    },
  },
  {
    title: "apply to /status owns status only",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      await created(api, path, widget(group, "w"));
      const reply = await api.patch(`${path}/w/status?fieldManager=me`, "apply", { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "w" }, spec: { size: 9 }, status: { phase: "Ready" } });
      expect(reply.status, reply.text).toBe(200);
      expect(reply.json).toMatchObject({ spec: { size: 3 }, status: { phase: "Ready" } });
      expect(reply.at("metadata.managedFields")).toContainEqual(expect.objectContaining({ manager: "me", operation: "Apply", subresource: "status", fieldsV1: { "f:status": { "f:phase": {} } } }));
    },
  },
  {
    title: "updates are owned by their manager, the user agent where none is named",
    async run(api, namespace) {
      await api.send("POST", core(namespace, "configmaps"), configMap("a"), { "user-agent": "robot/1.0 (linux)" });
      const reply = await api.patch(`${core(namespace, "configmaps", "a")}?fieldManager=hand`, "merge", { data: { more: "1" } });
      const owners = (reply.at("metadata.managedFields") as Json[]).map((entry) => `${String(entry["manager"])} ${String(entry["operation"])}`);
      expect(owners.sort()).toEqual(["hand Update", "robot Update"]);
    },
  },

  // ---- delete
  {
    title: "deleting answers with a Status and the object is gone",
    async run(api, namespace) {
      const made = await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.delete(core(namespace, "configmaps", "a"));
      expect(reply.json).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details: { name: "a", kind: "configmaps", uid: made.at("metadata.uid") } });
      expect((await api.delete(core(namespace, "configmaps", "a"))).status).toBe(404);
    },
  },
  {
    title: "a precondition that does not hold refuses the deletion",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.delete(core(namespace, "configmaps", "a"), { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "other" } });
      expect(reply.status).toBe(409);
      expect(reply.at("message")).toContain("the UID in the precondition (other) does not match the UID in record");
    },
  },
  {
    title: "a finalizer holds an object until it is removed",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(api, core(namespace, "configmaps"), configMap("a", {}, { finalizers: ["example.com/hold"] }));
      const marked = await api.delete(path);
      expect(marked.at("metadata.deletionTimestamp")).toBeDefined();
      const more = await api.patch(path, "merge", { metadata: { finalizers: ["example.com/hold", "example.com/more"] } });
      expect(more.status).toBe(422);
      expect(more.at("message")).toContain("no new finalizers can be added if the object is being deleted");
      const released = await api.patch(path, "merge", { metadata: { finalizers: null } });
      expect(released.status).toBe(200);
      expect((await api.get(path)).status).toBe(404);
    },
  },
  {
    title: "propagation policies leave their finalizers for the collector",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      await created(api, apps(namespace, "deployments"), deployment("e"));
      expect((await api.delete(apps(namespace, "deployments", "d"), { propagationPolicy: "Foreground" })).at("metadata.finalizers")).toEqual(["foregroundDeletion"]);
      expect((await api.delete(`${apps(namespace, "deployments", "e")}?propagationPolicy=Orphan`)).at("metadata.finalizers")).toEqual(["orphan"]);
    },
  },
  {
    title: "a running pod is marked with its grace period, and goes with grace 0",
    async run(api, namespace) {
      await readyPod(api, namespace, "p", {});
      const marked = await api.delete(core(namespace, "pods", "p"));
      expect(marked.json).toMatchObject({ metadata: { deletionGracePeriodSeconds: 30 } });
      const sooner = await api.delete(core(namespace, "pods", "p"), { gracePeriodSeconds: 5 });
      expect(sooner.at("metadata.deletionGracePeriodSeconds")).toBe(5);
      await api.delete(core(namespace, "pods", "p"), { gracePeriodSeconds: 0 });
      expect((await api.get(core(namespace, "pods", "p"))).status).toBe(404);
    },
  },
  {
    title: "a pod that has no node goes at once",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      await api.delete(core(namespace, "pods", "p"));
      expect((await api.get(core(namespace, "pods", "p"))).status).toBe(404);
    },
  },
  {
    title: "a collection is deleted by selector",
    async run(api, namespace) {
      for (const name of ["a", "b", "c"]) await created(api, core(namespace, "secrets"), { apiVersion: "v1", kind: "Secret", metadata: { name, labels: { keep: String(name === "c") } } });
      const reply = await api.delete(`${core(namespace, "secrets")}?labelSelector=keep%3Dfalse`);
      expect(names(reply.json)).toEqual(["a", "b"]);
      expect(names((await api.get(core(namespace, "secrets"))).json)).toEqual(["c"]);
    },
  },
  {
    title: "a dry deletion deletes nothing",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      expect((await api.delete(core(namespace, "configmaps", "a"), { dryRun: ["All"] })).status).toBe(200);
      expect((await api.get(core(namespace, "configmaps", "a"))).status).toBe(200);
    },
  },

  // ---- namespaces
  {
    title: "a namespace waits for its finalizer, lets nothing in meanwhile, and goes when finalized",
    async run(api, namespace) {
      const name = `${namespace}-gone`;
      const made = await created(api, "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
      expect(made.json).toMatchObject({ spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } });
      const marked = await api.delete(`/api/v1/namespaces/${name}`);
      expect(marked.json).toMatchObject({ status: { phase: "Terminating" } });
      const refused = await api.post(core(name, "configmaps"), configMap("a"));
      expect(refused.status).toBe(403);
      expect(refused.at("message")).toBe(`configmaps "a" is forbidden: unable to create new content in namespace ${name} because it is being terminated`);
      expect(refused.at("details.causes.0.reason")).toBe("NamespaceTerminating");
      const live = await api.get(`/api/v1/namespaces/${name}`);
      await api.put(`/api/v1/namespaces/${name}/finalize`, { ...live.json, spec: { finalizers: [] } });
      expect((await api.get(`/api/v1/namespaces/${name}`)).status).toBe(404);
    },
  },
  {
    title: "default namespaces are there, have a service account, and may not be deleted",
    async run(api) {
      for (const name of ["default", "kube-system", "kube-node-lease"]) expect((await api.get(core(name, "serviceaccounts", "default"))).status).toBe(200);
      const reply = await api.delete("/api/v1/namespaces/default");
      expect(reply.at("message")).toBe('namespaces "default" is forbidden: this namespace may not be deleted');
    },
  },

  // ---- scale, binding, eviction, logs
  {
    title: "scale reads and writes replicas, of built-in and custom kinds",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d", 2));
      const scale = await api.get(`${apps(namespace, "deployments", "d")}/scale`);
      expect(scale.json).toMatchObject({ kind: "Scale", apiVersion: "autoscaling/v1", spec: { replicas: 2 }, status: { selector: "app=d" } });
      expect((await api.patch(`${apps(namespace, "deployments", "d")}/scale`, "merge", { spec: { replicas: 5 } })).at("spec.replicas")).toBe(5);
      expect((await api.get(apps(namespace, "deployments", "d"))).json).toMatchObject({ metadata: { generation: 2 }, spec: { replicas: 5 } });
      const { group, path } = await widgetGroup(api, namespace);
      await created(api, path, widget(group, "w", { size: 5, replicas: 1 }));
      expect((await api.put(`${path}/w/scale`, { kind: "Scale", apiVersion: "autoscaling/v1", metadata: { name: "w", namespace }, spec: { replicas: 4 } })).at("spec.replicas")).toBe(4);
    },
  },
  {
    title: "a pod is bound once",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      const bind = (node: string) => api.post(`${core(namespace, "pods", "p")}/binding`, { apiVersion: "v1", kind: "Binding", metadata: { name: "p" }, target: { kind: "Node", name: node } });
      expect((await bind("n1")).status).toBe(201);
      const bound = await api.get(core(namespace, "pods", "p"));
      expect(bound.at("spec.nodeName")).toBe("n1");
      expect(bound.at("status.conditions")).toContainEqual(expect.objectContaining({ type: "PodScheduled", status: "True" }));
      const again = await bind("n2");
      expect(again.status).toBe(409);
      expect(again.at("message")).toContain('pod p is already assigned to node "n1"');
    },
  },
  {
    title: "an eviction takes from the budget, and is refused when nothing is left",
    async run(api, namespace) {
      for (const name of ["a", "b"]) await readyPod(api, namespace, name, { app: "x" });
      const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/guard`;
      await created(api, `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, budget("guard", "x"));
      const evict = (name: string, query = "") => api.post(`${core(namespace, "pods", name)}/eviction${query}`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } });
      const early = await evict("a");
      expect(early.status).toBe(429);
      expect(early.at("details.causes.0.message")).toBe("The disruption budget guard is still being processed by the server.");
      await api.patch(`${path}/status`, "merge", { status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 } });
      expect((await evict("a", "?dryRun=All")).status).toBe(201);
      expect((await api.get(path)).at("status.disruptionsAllowed")).toBe(1);
      expect((await evict("a")).json).toMatchObject({ kind: "Status", status: "Success" });
      expect((await api.get(core(namespace, "pods", "a"))).at("metadata.deletionTimestamp")).toBeDefined();
      const budgetNow = await api.get(path);
      expect(budgetNow.at("status.disruptionsAllowed")).toBe(0);
      expect(Object.keys(budgetNow.at("status.disruptedPods") as Json)).toEqual(["a"]);
      const refused = await evict("b");
      expect(refused.status).toBe(429);
      expect(refused.at("message")).toBe("Cannot evict pod as it would violate the pod's disruption budget.");
      expect(refused.at("details.causes.0")).toEqual({ reason: "DisruptionBudget", message: "The disruption budget guard needs 1 healthy pods and has 2 currently" });
    },
  },
  {
    title: "logs need to know which container",
    async run(api, namespace) {
      const both = [{ name: "one", image: "i" }, { name: "two", image: "i" }];
      await created(api, core(namespace, "pods"), pod("p", { containers: both }));
      expect((await api.get(`${core(namespace, "pods", "p")}/log`)).at("message")).toBe("a container name must be specified for pod p, choose one of: [one two]");
      expect((await api.get(`${core(namespace, "pods", "p")}/log?container=three`)).at("message")).toBe("container three is not valid for pod p");
      expect((await api.get(`${core(namespace, "pods", "p")}/log?container=one`)).text).toBe("");
    },
  },

  // ---- custom resources
  {
    title: "a definition is served at once: conditions, discovery, objects, columns",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      const crd = await api.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`);
      const conditions = crd.at("status.conditions") as Json[];
      expect(conditions.find((condition) => condition["type"] === "Established")).toMatchObject({ status: "True" });
      expect((await api.get(`/apis/${group}/v1`)).at("resources.0.name")).toBe("widgets");
      await created(api, path, widget(group, "w"));
      const shown = await api.get(path, { accept: table });
      expect((shown.at("columnDefinitions") as Json[]).map((column) => column["name"])).toEqual(["Name", "Size"]);
      expect(shown.at("rows.0.cells")).toEqual(["w", 3]);
    },
  },
  {
    title: "custom objects are checked by schema and rules",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      const low = await api.post(path, widget(group, "w", { size: 0 }));
      expect(low.status).toBe(422);
      expect(low.at("message")).toContain("spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1");
      const color = await api.post(path, widget(group, "w", { color: "blue" }));
      expect(color.at("message")).toContain('spec.color: Unsupported value: "blue": supported values: "red", "green"');
      const rule = await api.post(path, widget(group, "w", { size: 2, replicas: 3 }));
      expect(rule.at("message")).toContain("replicas may not exceed size");
      const type = await api.post(path, widget(group, "w", { size: "big" }));
      expect(type.status).toBe(422);
    },
  },
  {
    title: "an update of a custom object must name its version",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      await created(api, path, widget(group, "w"));
      const reply = await api.put(`${path}/w`, widget(group, "w", { size: 5 }));
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
    },
  },
  {
    title: "apply merges list maps of custom objects by their keys",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      const apply = (manager: string, parts: readonly Json[]) => api.patch(`${path}/w?fieldManager=${manager}`, "apply", widget(group, "w", { parts }));
      await apply("one", [{ name: "a", count: 1 }]);
      const both = await apply("two", [{ name: "b", count: 2 }]);
      expect(both.at("spec.parts")).toEqual([{ name: "a", count: 1 }, { name: "b", count: 2 }]);
      const less = await apply("one", []);
      expect(less.at("spec.parts")).toEqual([{ name: "b", count: 2 }]);
    },
  },
  {
    title: "a definition with a broken schema is refused by field",
    async run(api, namespace) {
      const group = `${namespace}.example.com`;
      const broken = structuredClone(widgets(group)) as { spec: { versions: { schema: unknown }[] } };
      for (const version of broken.spec.versions) version.schema = { openAPIV3Schema: { type: "object", properties: { spec: { properties: { a: { type: "string" } } } } } };
      const reply = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", broken);
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("must not be empty for specified object fields");
    },
  },
  {
    title: "deleting a definition deletes its objects, and waits for those that are held",
    async run(api, namespace) {
      const { group, path } = await widgetGroup(api, namespace);
      const crd = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
      await created(api, path, widget(group, "free"));
      await created(api, path, { ...widget(group, "held"), metadata: { name: "held", finalizers: ["example.com/hold"] } });
      await api.delete(crd);
      expect((await api.get(crd)).at("metadata.deletionTimestamp")).toBeDefined();
      expect((await api.post(path, widget(group, "late"))).status).toBe(405);
      const watch = await api.watch(`${path}?watch=true`);
      await expectEvents(watch, ["ADDED held"]);
      await api.patch(`${path}/held`, "merge", { metadata: { finalizers: null } });
      await expectEvents(watch, ["DELETED held"]);
      expect(await watch.next()).toBeUndefined();
      expect((await api.get(crd)).status).toBe(404);
      expect((await api.get(path)).status).toBe(404);
    },
  },

  {
    title: "an object is the same in every served version of its definition",
    async run(api, namespace) {
      const group = `${namespace}.example.com`;
      const both = widgets(group);
      const [first] = both.spec.versions;
      await created(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { ...both, spec: { ...both.spec, versions: [first, { ...first, name: "v1beta1", storage: false }, { ...first, name: "v1alpha1", storage: false, served: false }] } });
      const path = (version: string) => `/apis/${group}/${version}/namespaces/${namespace}/widgets`;
      await created(api, path("v1beta1"), { ...widget(group, "w", { size: 7 }), apiVersion: `${group}/v1beta1` });
      expect((await api.get(`${path("v1")}/w`)).json).toMatchObject({ apiVersion: `${group}/v1`, spec: { size: 7 } });
      expect((await api.get(`${path("v1beta1")}/w`)).at("apiVersion")).toBe(`${group}/v1beta1`);
      expect((await api.get(`${path("v1alpha1")}/w`)).status).toBe(404);
      const watch = await api.watch(`${path("v1beta1")}?watch=true`);
      const [event] = await expectEvents(watch, ["ADDED w"]);
      expect(event?.["apiVersion"]).toBe(`${group}/v1beta1`);
      await watch.close();
      const crd = await api.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`);
      expect(crd.at("status.storedVersions")).toEqual(["v1"]);
    },
  },
  {
    title: "a definition whose names another one has is not established",
    async run(api, namespace) {
      const { group } = await widgetGroup(api, namespace);
      const other = widgets(group);
      const reply = await created(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        ...other,
        metadata: { name: `gizmos.${group}` },
        spec: { ...other.spec, names: { plural: "gizmos", singular: "gizmo", kind: "Widget", listKind: "WidgetList" } },
      });
      expect((reply.at("status.conditions") as Json[]).find((condition) => condition["type"] === "NamesAccepted")).toMatchObject({ status: "False" });
      expect((await api.get(`/apis/${group}/v1/namespaces/${namespace}/gizmos`)).status).toBe(404);
    },
  },

  // ---- who may what
  {
    title: "without credentials only health and version are open",
    async run(api, namespace) {
      const reply = await api.as("nobody").get(core(namespace, "pods"));
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toBe(`pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "${namespace}"`);
    },
  },
  {
    title: "a token that is not known answers 401",
    async run(api) {
      const reply = await api.as("nobody").get("/api/v1/pods", { authorization: "Bearer rubbish" });
      expect(reply.json).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "Unauthorized", reason: "Unauthorized", code: 401 });
    },
  },
  {
    title: "roles and bindings open what they name, from the next request on",
    async run(api, namespace) {
      const alice = api.as("alice");
      const before = await alice.get(apps(namespace, "deployments", "d"));
      expect(before.at("message")).toBe(`deployments.apps "d" is forbidden: User "alice" cannot get resource "deployments" in API group "apps" in the namespace "${namespace}"`);
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      await created(api, `${rbac}/roles`, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: { name: "r" }, rules: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"] }] });
      await created(api, `${rbac}/rolebindings`, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", metadata: { name: "b" }, roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" }, subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "developers" }] });
      expect((await alice.get(apps(namespace, "deployments", "d"))).status).toBe(404);
      expect((await api.as("bob").get(apps(namespace, "deployments", "d"))).status).toBe(403);
      await api.delete(`${rbac}/rolebindings/b`);
      expect((await alice.get(apps(namespace, "deployments", "d"))).status).toBe(403);
    },
  },
  {
    title: "nobody grants more than they have",
    async run(api, namespace) {
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      await created(api, `${rbac}/rolebindings`, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", metadata: { name: "admin" }, roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" }, subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "bob" }] });
      const bob = api.as("bob");
      const fine = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: { name: "fine" }, rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] };
      expect((await bob.post(`${rbac}/roles`, fine)).status).toBe(201);
      const reply = await bob.post(`${rbac}/roles`, { ...fine, metadata: { name: "more" }, rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] });
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toContain("is attempting to grant RBAC permissions not currently held");
    },
  },
  {
    title: "access reviews answer about oneself and about others",
    async run(api, namespace) {
      const ask = { resourceAttributes: { verb: "get", resource: "pods", namespace } };
      const self = await api.as("alice").post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: ask });
      expect(self.json).toMatchObject({ status: { allowed: false } });
      const other = await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec: { ...ask, user: "x", groups: ["system:masters"] } });
      expect(other.json).toMatchObject({ status: { allowed: true } });
      const rules = await api.as("alice").post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace } });
      expect((rules.at("status.resourceRules") as Json[]).length).toBeGreaterThan(0);
      const who = await api.as("alice").post("/apis/authentication.k8s.io/v1/selfsubjectreviews", { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
      expect(who.at("status.userInfo")).toEqual({ username: "alice", groups: ["developers", "system:authenticated"] });
    },
  },
  {
    title: "somebody who may can speak as somebody else",
    async run(api) {
      const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
      const who = await api.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, { "impersonate-user": "carol", "impersonate-group": "painters" });
      expect(who.at("status.userInfo")).toEqual({ username: "carol", groups: ["painters", "system:authenticated"] });
      const refused = await api.as("alice").send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, { "impersonate-user": "carol" });
      expect(refused.at("message")).toBe('users "carol" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope');
    },
  },
  {
    title: "a service account's token speaks for it while its pod lives",
    async run(api, namespace) {
      await created(api, core(namespace, "serviceaccounts"), { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot" } });
      const made = await created(api, core(namespace, "pods"), pod("p", { serviceAccountName: "robot" }));
      const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600, boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p", uid: made.at("metadata.uid") } } };
      const issued = await api.post(`${core(namespace, "serviceaccounts", "robot")}/token`, request);
      expect(issued.status, issued.text).toBe(201);
      const token = String(issued.at("status.token"));
      const whoami = () => api.as("nobody").send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }, { authorization: `Bearer ${token}` });
      const who = await whoami();
      expect(who.at("status.userInfo.username")).toBe(`system:serviceaccount:${namespace}:robot`);
      expect(who.at("status.userInfo.groups")).toEqual(["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"]);
      expect((who.at("status.userInfo.extra") as Json)["authentication.kubernetes.io/pod-name"]).toEqual(["p"]);
      const review = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } });
      expect(review.json).toMatchObject({ status: { authenticated: true } });
      await api.delete(core(namespace, "pods", "p"));
      expect((await whoami()).status).toBe(401);
      expect((await api.post("/apis/authentication.k8s.io/v1/tokenreviews", { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } })).at("status.authenticated")).toBeUndefined();
    },
  },
  {
    title: "a token shorter than ten minutes or for another account's pod is refused",
    async run(api, namespace) {
      const path = `${core(namespace, "serviceaccounts", "default")}/token`;
      const short = await api.post(path, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 60 } });
      expect(short.at("message")).toContain("may not specify a duration less than 10 minutes");
      await created(api, core(namespace, "serviceaccounts"), { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot" } });
      await created(api, core(namespace, "pods"), pod("p", { serviceAccountName: "robot" }));
      expect((await api.post(path, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { boundObjectRef: { kind: "Pod", name: "p" } } })).status).toBe(400);
    },
  },
  {
    title: "a kubelet writes its own node and no other",
    async run(api) {
      const node = api.as("node-a");
      const body = (name: string, labels: Json = { "kubernetes.io/os": "linux" }) => ({ apiVersion: "v1", kind: "Node", metadata: { name, labels }, status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }] } });
      const made = await node.post("/api/v1/nodes", body("node-a"));
      expect([201, 409]).toContain(made.status);
      expect((await node.post("/api/v1/nodes", body("node-z"))).status).toBe(403);
      expect((await api.as("node-b").post("/api/v1/nodes", body("node-b", { "node-restriction.kubernetes.io/x": "" }))).at("message")).toContain("is not allowed to set the following labels: node-restriction.kubernetes.io/x");
      expect((await node.patch("/api/v1/nodes/node-a/status", "strategic", { status: { conditions: [{ type: "Ready", status: "True" }] } })).status).toBe(200);
      expect((await api.as("node-b").patch("/api/v1/nodes/node-a/status", "strategic", { status: { phase: "x" } })).status).toBe(403);
      expect((await node.delete("/api/v1/nodes/node-a")).status).toBe(403);
      expect((await node.patch("/api/v1/nodes/node-a", "merge", { metadata: { labels: { "node-role.kubernetes.io/master": "" } } })).status).toBe(403);
      expect((await node.patch("/api/v1/nodes/node-a", "merge", { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } })).status).toBe(403);
    },
  },
  {
    title: "a kubelet reads what its pods need and nothing else",
    async run(api, namespace) {
      for (const name of ["needed", "other"]) await created(api, core(namespace, "secrets"), { apiVersion: "v1", kind: "Secret", metadata: { name } });
      await created(api, core(namespace, "pods"), pod("p", { nodeName: "node-a", volumes: [{ name: "v", secret: { secretName: "needed" } }] }));
      const node = api.as("node-a");
      expect((await node.get(core(namespace, "secrets", "needed"))).status).toBe(200);
      expect((await node.get(core(namespace, "secrets", "other"))).status).toBe(403);
      expect((await node.get(core(namespace, "secrets"))).status).toBe(403);
      expect((await api.as("node-b").get(core(namespace, "secrets", "needed"))).status).toBe(403);
      expect((await node.get("/api/v1/pods")).status).toBe(403);
      expect(names((await node.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-a")).json)).toContain("p");
      expect((await node.patch(`${core(namespace, "pods", "p")}/status`, "merge", { status: { phase: "Running" } })).status).toBe(200);
      expect((await api.as("node-b").patch(`${core(namespace, "pods", "p")}/status`, "merge", { status: { phase: "Running" } })).status).toBe(403);
      expect((await api.as("node-b").delete(core(namespace, "pods", "p"))).status).toBe(403);
      expect((await api.as("node-b").get(core(namespace, "pods", "p"))).status).toBe(403);
      expect((await api.as("node-b").post(`${core(namespace, "pods", "p")}/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "p" } })).status).toBe(403);
      const token = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p" } } };
      expect((await node.post(`${core(namespace, "serviceaccounts", "default")}/token`, token)).status).toBe(201);
      expect((await node.post(`${core(namespace, "serviceaccounts", "default")}/token`, { ...token, spec: {} })).at("message")).toContain("node requested token not bound to a pod");
      expect((await api.as("node-b").post(`${core(namespace, "serviceaccounts", "default")}/token`, token)).status).toBe(403);
      expect((await node.delete(core(namespace, "pods", "p"), { gracePeriodSeconds: 0 })).status).toBe(200);
      expect((await node.get(core(namespace, "pods", "p"))).status).toBe(404);
      expect((await node.delete(core(namespace, "pods", "p"))).status).toBe(404);
    },
  },
  {
    title: "a kubelet holds its own lease only",
    async run(api) {
      const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
      const lease = (name: string) => ({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name }, spec: { holderIdentity: name } });
      expect([201, 409]).toContain((await api.as("node-a").post(leases, lease("node-a"))).status);
      expect((await api.as("node-a").post(leases, lease("node-b"))).status).toBe(403);
      expect((await api.as("node-a").get(`${leases}/node-b`)).status).toBe(403);
    },
  },
  {
    title: "a request for a certificate says who asks, whatever it claims",
    async run(api, namespace) {
      const csr = { apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name: namespace }, spec: { request: "eA==", signerName: "kubernetes.io/kube-apiserver-client-kubelet", usages: ["client auth"], username: "somebody" } };
      const made = await api.as("node-a").post("/apis/certificates.k8s.io/v1/certificatesigningrequests", csr);
      expect(made.status, made.text).toBe(201);
      expect(made.at("spec.username")).toBe("system:node:node-a");
      const path = `/apis/certificates.k8s.io/v1/certificatesigningrequests/${namespace}`;
      const approved = await api.put(`${path}/approval`, { ...made.json, status: { conditions: [{ type: "Approved", status: "True", reason: "Test" }], certificate: "eA==" } });
      expect(approved.json).toMatchObject({ status: { conditions: [{ type: "Approved" }] } });
      expect(approved.at("status.certificate")).toBeUndefined();
    },
  },

  // ---- admission
  {
    title: "a policy with a binding refuses what its expression refuses, and warns where it shall",
    async run(api, namespace) {
      const group = "/apis/admissionregistration.k8s.io/v1";
      await created(api, `${group}/validatingadmissionpolicies`, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: namespace },
        spec: {
          failurePolicy: "Fail",
          matchConstraints: { resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"] }], namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } } },
          validations: [{ expression: "request.userInfo.username == 'admin' && object.metadata.name.startsWith('good')", message: "only good names", reason: "Forbidden" }],
        },
      });
      await created(api, `${group}/validatingadmissionpolicybindings`, { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding", metadata: { name: namespace }, spec: { policyName: namespace, validationActions: ["Deny"] } });
      await created(api, core(namespace, "configmaps"), configMap("good"));
      const reply = await api.post(core(namespace, "configmaps"), configMap("bad"));
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toBe(`configmaps "bad" is forbidden: ValidatingAdmissionPolicy '${namespace}' with binding '${namespace}' denied request: only good names`);
      await api.patch(`${group}/validatingadmissionpolicybindings/${namespace}`, "merge", { spec: { validationActions: ["Warn"] } });
      const warned = await api.post(core(namespace, "configmaps"), configMap("bad"));
      expect(warned.status).toBe(201);
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
      await created(api, core(namespace, "serviceaccounts"), { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "daemon" } });
      const node = `${namespace}-node`;
      await created(api, "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: node } });
      const made = await created(api, core(namespace, "pods"), pod("p", { serviceAccountName: "daemon", nodeName: node }));
      const issued = await api.post(`${core(namespace, "serviceaccounts", "daemon")}/token`, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p", uid: made.at("metadata.uid") } } });
      await created(api, `${group}/validatingadmissionpolicies`, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: namespace },
        spec: {
          matchConstraints: { resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"] }] },
          matchConditions: [{ name: "only-the-daemon", expression: `request.userInfo.username == "system:serviceaccount:${namespace}:daemon"` }],
          validations: [
            {
              expression: '"authentication.kubernetes.io/node-name" in request.userInfo.extra && object.metadata.name == request.userInfo.extra["authentication.kubernetes.io/node-name"][0]',
              messageExpression: '"only " + request.userInfo.extra["authentication.kubernetes.io/node-name"][0]',
            },
          ],
        },
      });
      await created(api, `${group}/validatingadmissionpolicybindings`, { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding", metadata: { name: namespace }, spec: { policyName: namespace, validationActions: ["Deny"] } });
      const headers = { authorization: `Bearer ${String(issued.at("status.token"))}` };
      const foreign = await api.as("nobody").send("POST", core(namespace, "configmaps"), configMap("other-node"), headers);
      expect(foreign.status).toBe(422);
      expect(foreign.at("message")).toContain(`denied request: only ${node}`);
      expect((await api.as("nobody").send("POST", core(namespace, "configmaps"), configMap(node), headers)).status).toBe(201);
      expect((await api.post(core(namespace, "configmaps"), configMap("whatever"))).status).toBe(201);
      await api.delete(`${group}/validatingadmissionpolicybindings/${namespace}`);
    },
  },

  // ---- events
  {
    title: "an event can be written in one group and read in the other",
    async run(api, namespace) {
      const event = { apiVersion: "v1", kind: "Event", metadata: { name: "e" }, involvedObject: { kind: "Pod", name: "p", namespace }, reason: "Started", message: "It started", type: "Normal", count: 1 };
      await created(api, core(namespace, "events"), event);
      const other = await api.get(`/apis/events.k8s.io/v1/namespaces/${namespace}/events/e`);
      expect(other.json).toMatchObject({ apiVersion: "events.k8s.io/v1", regarding: { name: "p" }, note: "It started", deprecatedCount: 1 });
      expect(names((await api.get(`${core(namespace, "events")}?fieldSelector=involvedObject.name%3Dp,reason%3DStarted`)).json)).toEqual(["e"]);
    },
  },
];
