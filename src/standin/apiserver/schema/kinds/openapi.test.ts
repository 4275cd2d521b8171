import { describe, expect, test } from "vitest";
import { builtinDefinitions } from "./builtin-kinds.ts";
import { aggregatedDiscovery, compareVersions, legacyGroups, legacyResources } from "./discovery.ts";
import { at, listAt, objectAt } from "../json-values.ts";
import { openApiDocuments } from "./openapi.ts";

describe("openApiDocuments", () => {
  const documents = openApiDocuments(builtinDefinitions);
  test("every group has an address that changes with its content", () => {
    const paths = objectAt(documents.index, "paths");
    expect(Object.keys(paths)).toContain("apis/apps/v1");
    const fewer = openApiDocuments(builtinDefinitions.filter(({ kind }) => kind !== "DaemonSet"));
    expect(at(fewer.index, "paths", "apis/apps/v1")).not.toEqual(paths["apis/apps/v1"]);
    expect(at(fewer.index, "paths", "api/v1")).toEqual(paths["api/v1"]);
    expect(openApiDocuments(builtinDefinitions).index).toEqual(documents.index);
  });
  test("kubectl finds a PATCH with fieldValidation for each kind that can be patched", () => {
    for (const { group, version, kind, verbs } of builtinDefinitions) {
      if (!verbs.includes("patch")) continue;
      const text = documents.document(group === "" ? `api/${version}` : `apis/${group}/${version}`)?.text ?? "{}";
      const operations = Object.values(objectAt(JSON.parse(text), "paths")).map((path) => at(path, "patch"));
      const own = operations.find((operation) => at(operation, "x-kubernetes-group-version-kind", "kind") === kind);
      expect(listAt(own, "parameters").map((parameter) => at(parameter, "name"))).toContain("fieldValidation");
    }
  });
  test("every reference has its target", () => {
    for (const path of Object.keys(objectAt(documents.index, "paths"))) {
      const text = documents.document(path)?.text ?? "{}";
      const schemas = objectAt(JSON.parse(text), "components", "schemas");
      for (const [, name = ""] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g))
        expect(schemas).toHaveProperty([name]);
    }
  });
  test("an unknown path has no document", () => {
    expect(documents.document("apis/none/v1")).toBeUndefined();
  });
});

describe("discovery", () => {
  test("aggregated: the core group and the others, subresources with their own kinds", () => {
    const core = aggregatedDiscovery(builtinDefinitions, "core", "v2");
    expect(core).toMatchObject({ kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2" });
    expect(listAt(core, "items")).toHaveLength(1);
    const pods = listAt(core, "items", 0, "versions", 0, "resources").find(
      (resource) => at(resource, "resource") === "pods",
    );
    expect(pods).toMatchObject({
      scope: "Namespaced",
      shortNames: ["po"],
      subresources: expect.arrayContaining([
        {
          subresource: "eviction",
          responseKind: { group: "policy", version: "v1", kind: "Eviction" },
          verbs: ["create"],
        },
      ]) as unknown,
    });
    expect(
      listAt(aggregatedDiscovery(builtinDefinitions, "groups", "v2beta1"), "items").map((item) =>
        at(item, "metadata", "name"),
      ),
    ).toContain("apps");
  });
  test("legacy: drain finds the eviction", () => {
    expect(listAt(legacyResources(builtinDefinitions, "", "v1"), "resources")).toContainEqual({
      name: "pods/eviction",
      singularName: "",
      namespaced: true,
      group: "policy",
      version: "v1",
      kind: "Eviction",
      verbs: ["create"],
    });
    expect(legacyResources(builtinDefinitions, "none", "v1")).toBeUndefined();
    expect(at(legacyGroups(builtinDefinitions), "groups", 0, "preferredVersion", "version")).toBe("v1");
  });
  test("versions are sorted by stability and age", () => {
    expect(["v1alpha1", "foo", "v1", "v2", "v1beta2", "v1beta1", "v10"].toSorted(compareVersions)).toEqual([
      "v10",
      "v2",
      "v1",
      "v1beta2",
      "v1beta1",
      "v1alpha1",
      "foo",
    ]);
  });
});
