import { describe, expect, test } from "vitest";
import type { AccessAttributes, KubeObject } from "./contract.ts";
import { aggregateRules, authorize, policyRules, rulesReview, type PolicyRule } from "./rbac.ts";

const asking = (more: Partial<AccessAttributes>): AccessAttributes => ({
  user: { name: "u", groups: [] },
  verb: "get",
  group: "",
  resource: "pods",
  subresource: "",
  namespace: "n",
  name: "p",
  ...more,
});

describe("authorize", () => {
  test.for<[string, PolicyRule, Partial<AccessAttributes>, boolean]>([
    ["a rule allows its verb on its resource", { verbs: ["get"], apiGroups: [""], resources: ["pods"] }, {}, true],
    ["no other verb", { verbs: ["list"], apiGroups: [""], resources: ["pods"] }, {}, false],
    ["no other group", { verbs: ["get"], apiGroups: ["apps"], resources: ["pods"] }, {}, false],
    [
      "stars match all",
      { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
      { verb: "x", group: "g", subresource: "s" },
      true,
    ],
    [
      "a resource does not include its subresources",
      { verbs: ["get"], apiGroups: [""], resources: ["pods"] },
      { subresource: "log" },
      false,
    ],
    [
      "a subresource is named with a slash",
      { verbs: ["get"], apiGroups: [""], resources: ["pods/log"] },
      { subresource: "log" },
      true,
    ],
    [
      "a subresource of all",
      { verbs: ["get"], apiGroups: [""], resources: ["*/scale"] },
      { subresource: "scale" },
      true,
    ],
    ["names limit", { verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["q"] }, {}, false],
    [
      "names never allow a list",
      { verbs: ["*"], apiGroups: [""], resources: ["pods"], resourceNames: ["p"] },
      { verb: "list", name: "" },
      false,
    ],
    ["paths", { verbs: ["get"], nonResourceURLs: ["/healthz"] }, { path: "/healthz" }, true],
    ["paths with a star", { verbs: ["get"], nonResourceURLs: ["/api/*"] }, { path: "/api/v1" }, true],
    [
      "resource rules say nothing on paths",
      { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
      { path: "/healthz" },
      false,
    ],
  ])("%s", ([, rule, attributes, expected]) => {
    expect(authorize([rule], asking(attributes))).toBe(expected);
  });
});

const role = (name: string, labels: Record<string, string>, verbs: string[]): KubeObject => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name, labels },
  rules: [{ verbs, apiGroups: [""], resources: ["pods"] }],
});

test("aggregation takes the rules of the selected roles, each once", () => {
  const admin = {
    ...role("admin", {}, []),
    rules: [],
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { toAdmin: "true" } }] },
  };
  const rules = aggregateRules(admin, [
    admin,
    role("b", { toAdmin: "true" }, ["get"]),
    role("a", { toAdmin: "true" }, ["list"]),
    role("c", { toAdmin: "true" }, ["get"]),
    role("d", {}, ["delete"]),
  ]);
  expect(rules.map((rule) => rule.verbs)).toEqual([["list"], ["get"]]);
});

test("a rules review leaves out empty lists", () => {
  expect(rulesReview(policyRules(role("a", {}, ["get"])))).toEqual({
    resourceRules: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }],
    nonResourceRules: [],
    incomplete: false,
  });
});
