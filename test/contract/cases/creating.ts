import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { apps, configMap, core, created, deployment, pod, type ContractCase } from "./case-fixture.ts";

export const creatingCases: readonly ContractCase[] = [
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
      expect(reply.json).toMatchObject({
        kind: "Status",
        status: "Failure",
        reason: "AlreadyExists",
        message: 'configmaps "a" already exists',
        details: { name: "a", kind: "configmaps" },
        code: 409,
      });
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
      const reply = await api.post(core(namespace, "configmaps"), {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {},
      });
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("metadata.name: Required value: name or generateName is required");
    },
  },
  {
    title: "a name that is not a DNS name is invalid, with the field as cause",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "configmaps"), configMap("Not_A_Name"));
      expect(reply.status).toBe(422);
      expect(reply.at("reason")).toBe("Invalid");
      expect(reply.at("message")).toMatch(
        /^ConfigMap "Not_A_Name" is invalid: metadata\.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain/,
      );
      expect(reply.at("details.causes.0.field")).toBe("metadata.name");
    },
  },
  {
    title: "creating in a missing namespace answers 404 for the namespace",
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
      expect(reply.at("message")).toBe(
        "the namespace of the provided object does not match the namespace sent on the request",
      );
    },
  },
  {
    title: "a body of another kind or version is refused",
    async run(api, namespace) {
      for (const [more, why] of [
        [
          { kind: "Pod" },
          'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion',
        ],
        [
          { kind: "Nope" },
          'Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1" in scheme "pkg/runtime/scheme.go:110"',
        ],
        [
          { apiVersion: "v2" },
          'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:110"',
        ],
        [
          { apiVersion: "apps/v1" },
          'ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:110"',
        ],
      ] as const) {
        const reply = await api.post(core(namespace, "configmaps"), { ...configMap("a"), ...more });
        expect(reply.json).toMatchObject({ code: 400, reason: "BadRequest", message: why });
      }
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
    title: "a body that is not JSON answers 400, an unknown type 415, more than 3 MiB 413",
    async run(api, namespace) {
      expect((await api.send("POST", core(namespace, "configmaps"), "{")).status).toBe(400);
      expect(
        (await api.send("POST", core(namespace, "configmaps"), "x", { "content-type": "text/plain" })).status,
      ).toBe(415);
      const reply = await api.post(
        core(namespace, "configmaps"),
        configMap("big", { big: "x".repeat(3 * 1024 * 1024) }),
      );
      expect(reply.status).toBe(413);
      expect(reply.at("reason")).toBe("RequestEntityTooLarge");
    },
  },
  {
    title: "a body in YAML is accepted",
    async run(api, namespace) {
      const reply = await api.send(
        "POST",
        core(namespace, "configmaps"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: sample\ndata:\n  a: b\n",
        { "content-type": "application/yaml" },
      );
      expect(reply.status).toBe(201);
      expect(reply.at("data.a")).toBe("b");
    },
  },
  {
    title: "defaults are filled in",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "pods"), pod("p"));
      expect(reply.json).toMatchObject({
        spec: {
          restartPolicy: "Always",
          dnsPolicy: "ClusterFirst",
          terminationGracePeriodSeconds: 30,
          serviceAccountName: "default",
        },
        status: { phase: "Pending", qosClass: "BestEffort" },
      });
    },
  },
  {
    title: "a pod gets a projected token of its service account, unless it declines",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "pods"), pod("p"));
      const volumes = reply.at("spec.volumes") as Json[];
      expect(volumes).toHaveLength(1);
      expect(String(volumes[0]?.["name"])).toMatch(/^kube-api-access-/);
      expect(reply.at("spec.containers.0.volumeMounts.0")).toMatchObject({
        mountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
        readOnly: true,
      });
      const plain = await created(api, core(namespace, "pods"), pod("q", { automountServiceAccountToken: false }));
      expect(plain.at("spec.volumes")).toBeUndefined();
    },
  },
  {
    title: "a pod with a missing service account is forbidden",
    async run(api, namespace) {
      const reply = await api.post(core(namespace, "pods"), pod("p", { serviceAccountName: "ghost" }));
      expect(reply.status).toBe(403);
      expect(reply.at("message")).toBe(
        `pods "p" is forbidden: error looking up service account ${namespace}/ghost: serviceaccount "ghost" not found`,
      );
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
    title: "creation ignores status",
    async run(api, namespace) {
      const reply = await created(api, apps(namespace, "deployments"), { ...deployment("d"), status: { replicas: 7 } });
      expect(reply.at("status.replicas")).toBeUndefined();
    },
  },
  {
    title: "a secret's stringData becomes data",
    async run(api, namespace) {
      const reply = await created(api, core(namespace, "secrets"), {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "s" },
        stringData: { password: "secret" },
      });
      expect(reply.json).toMatchObject({ type: "Opaque", data: { password: "c2VjcmV0" } });
      expect(reply.at("stringData")).toBeUndefined();
    },
  },
  {
    title: "dryRun=All answers like a real request and stores nothing",
    async run(api, namespace) {
      const reply = await api.post(`${core(namespace, "configmaps")}?dryRun=All`, configMap("a"));
      expect(reply.status).toBe(201);
      expect((await api.get(core(namespace, "configmaps", "a"))).status).toBe(404);
      expect((await api.post(`${core(namespace, "configmaps")}?dryRun=Some`, configMap("a"))).status).toBe(422);
    },
  },
];
