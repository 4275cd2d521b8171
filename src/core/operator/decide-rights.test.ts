import { describe, expect, test } from "vitest";
import { machineNamespace } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { type Right, decideRights } from "./decide-rights.ts";

const role = (verbs: readonly string[], name = "machine-config-controller") =>
  ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name },
    rules: [{ apiGroups: [""], resources: ["nodes"], verbs }],
  }) as KubeObject;
const binding = (subject: string) =>
  ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "machine-config-controller" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "machine-config-controller" },
    subjects: [{ kind: "ServiceAccount", name: subject, namespace: "n" }],
  }) as KubeObject;
const needed = role(["get"]);

describe("decideRights", () => {
  test.for<{ title: string; right: Right; is: string }>([
    {
      title: "equal rules are current, whatever else the object has",
      right: {
        needed,
        found: { ...needed, metadata: { ...needed.metadata, resourceVersion: "7", labels: { a: "b" } } },
      },
      is: "current",
    },
    { title: "a missing role is outdated", right: { needed, found: "absent" }, is: "is missing" },
    {
      title: "a role that cannot be read is no verdict yet",
      right: { needed, found: "refused" },
      is: "may not be read",
    },
    { title: "a role with fewer verbs is outdated", right: { needed, found: role([]) }, is: "differs" },
    {
      title: "a role with more verbs is outdated, since no component keeps what it had before",
      right: { needed, found: role(["get", "delete"]) },
      is: "differs",
    },
    {
      title: "a binding of another account is outdated",
      right: { needed: binding("machine-config-controller"), found: binding("somebody") },
      is: "ClusterRoleBinding machine-config-controller differs",
    },
  ])("$title", ({ right, is }) => {
    const decision = decideRights([right]);
    expect(decision.verdict === "current" ? decision.verdict : decision.message).toContain(is);
    expect(decision.verdict === "unreadable").toBe(right.found === "refused");
  });

  test("one that is wrong counts beside those that cannot be read", () => {
    const rights: readonly Right[] = [
      { needed, found: "refused" },
      { needed, found: role([]) },
    ];
    expect(decideRights(rights).verdict).toBe("outdated");
  });

  test("where those at the machine API are wrong, the remedy is the file of these [operator-decide-rights-1]", () => {
    const ofMachineApi = { ...needed, kind: "Role", metadata: { name: "operator", namespace: machineNamespace } };
    const right: Right = { needed: ofMachineApi, found: "absent" };
    const told = (rights: readonly Right[]) => {
      const decision = decideRights(rights);
      return decision.verdict === "outdated" ? decision.message : decision.verdict;
    };
    const files = "kubectl apply -f install/machine-api.yaml";
    expect(told([right])).toMatch(new RegExp(`Role openshift-machine-api/operator is missing.*${files}$`));
    expect(told([right, { needed, found: "absent" }])).toMatch(
      /kubectl apply -f install\/namespace.yaml -f install\/rights.yaml -f install\/machine-api.yaml$/,
    );
  });

  test("names the remedy, and not more objects than help", () => {
    const decision = decideRights(
      ["a", "b", "c", "d", "e", "f", "g"].map((name) => ({ needed: role(["get"], name), found: "absent" })),
    );
    expect(decision).toEqual({
      verdict: "outdated",
      message:
        "the rights of the suite are not those of this version (ClusterRole a is missing, ClusterRole b is missing, ClusterRole c is missing, ClusterRole d is missing, ClusterRole e is missing and 2 more); an administrator corrects it with: kubectl apply -f install/namespace.yaml -f install/rights.yaml",
    });
  });
});
