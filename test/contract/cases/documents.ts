import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { core, type ContractCase } from "./kit.ts";

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
    title: "kinds and versions that a served group has not answer 404 with a Status",
    async run(api, namespace) {
      for (const path of ["/api/v1/nonsense", core(namespace, "nonsense"), core(namespace, "pods", "p/nonsense"), "/apis/apps/v1/nonsense"]) {
        const reply = await api.get(path);
        expect(reply.json).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "the server could not find the requested resource", reason: "NotFound", details: {}, code: 404 });
      }
    },
  },
  {
    title: "groups and paths that nobody serves answer 404 in plain text",
    async run(api) {
      for (const path of ["/apis/no.such.group/v1/things", "/apis/no.such.group", "/nonsense"]) {
        expect(await api.get(path)).toMatchObject({ status: 404, text: "404 page not found\n" });
      }
    },
  },
];
