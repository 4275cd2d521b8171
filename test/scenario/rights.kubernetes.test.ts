import { describe, expect, test } from "vitest";
import { names } from "../../src/api/index.ts";
import type { KubeObject } from "../../src/api/schema/object.ts";
import { componentRights, operatorRights } from "../../src/operator/rights.ts";
import { type RightUsed, takeRightsKept } from "../support/kubernetes/rights-used.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const used = takeRightsKept();
const granted = [...operatorRights(), ...componentRights()].flatMap((manifest) => {
  const { kind, metadata, rules = [] } = manifest as KubeObject & { readonly rules?: readonly Rule[] };
  return kind !== "ClusterRole" && kind !== "Role"
    ? []
    : rules.flatMap((rule) =>
        rule.apiGroups.flatMap((group) =>
          rule.resources.flatMap((resource) =>
            rule.verbs.map((verb) => ({
              account: metadata.name,
              group,
              resource,
              verb,
              names: rule.resourceNames,
              namespace: metadata.namespace,
            })),
          ),
        ),
      );
});
const accounts = [...new Set(granted.map(({ account }) => account))];

/** Rights that the API server asks for while it answers a request for another one: no audit line names them. */
function isAskedWithin({ verb, resource }: { readonly verb: string; readonly resource: string }): boolean {
  // kubernetes/kubernetes plugin/pkg/admission/gc, plugin/pkg/admission/certificates/approval (v1.34)
  return verb === "approve" || resource.endsWith("/finalizers");
}

/** Rights that only other clusters make use of. */
function isForOtherClusters({ account, resource }: { readonly account: string; readonly resource: string }): boolean {
  // Machines on loopback are no endpoints of a Service: there the controller is reached by its address. Only OpenShift has
  // a machine API.
  return (
    ["services", "machines", "machinesets"].includes(resource) ||
    (account === names.objects.controller && resource === "machineconfigurations/status")
  );
}

/** The config server may see a pool before the operator has given it that pool's account: it asks again. */
const isTooEarly = ({ resource, name }: RightUsed): boolean =>
  resource === "serviceaccounts/token" && name.startsWith(names.objects.nodeBootstrapperPrefix);

/**
 * Reading one object discloses no more than the list that a component lives by; it does so only when it meets a
 * conflict.
 */
const alsoBy = (verb: string): readonly string[] => (verb === "get" ? ["get", "list"] : [verb]);

const inWords = ({
  verb,
  group,
  resource,
  name,
}: Pick<RightUsed, "verb" | "group" | "resource"> & { readonly name?: string }) =>
  `${verb} ${resource}${group === "" ? "" : `.${group}`}${name === undefined || name === "" ? "" : ` ${name}`}`;

type Grant = (typeof granted)[number];

const covers = (right: Grant, { account, group, resource, name, namespace }: RightUsed): boolean =>
  right.account === account &&
  right.group === group &&
  right.resource === resource &&
  (right.names === undefined || right.names.includes(name)) &&
  (right.namespace === undefined || right.namespace === namespace);

/** Runs last: it looks at what the components of all scenarios asked of the real API server. */
describe.skipIf(used.length === 0).each(accounts)("the account %s", (account) => {
  const asked = used.filter((right) => right.account === account);

  test("uses every right that it has", () => {
    const idle = granted.filter(
      (right) =>
        right.account === account &&
        !isAskedWithin(right) &&
        !isForOtherClusters(right) &&
        !asked.some((one) => one.answer === "allowed" && alsoBy(right.verb).includes(one.verb) && covers(right, one)),
    );
    expect(idle.map(inWords)).toEqual([]);
  });

  test("is never refused", () => {
    // A server that has just been started forbids for a moment what it has not read the roles for yet: that is no right
    // that lacks.
    const lacking = asked.filter(
      (one) =>
        one.answer === "refused" ||
        (one.answer === "forbidden" &&
          !isTooEarly(one) &&
          !granted.some((right) => right.verb === one.verb && covers(right, one))),
    );
    expect(lacking.map(inWords)).toEqual([]);
  });
});

test.skipIf(used.length === 0)("only the suite's accounts exist in its namespace", () => {
  // Machines that join use the account of their pool for a moment.
  const components = used
    .map(({ account }) => account)
    .filter((account) => !account.startsWith(names.objects.nodeBootstrapperPrefix));
  expect([...new Set(components)].sort()).toEqual([...accounts].sort());
  expect(accounts).toEqual([
    names.objects.operator,
    names.objects.controller,
    names.objects.daemon,
    names.objects.state,
    names.objects.osBuilder,
    names.objects.configServer,
  ]);
});
