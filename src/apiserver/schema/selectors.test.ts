import { describe, expect, test } from "vitest";
import {
  compileLabelSelector,
  demandedFields,
  labelSelectorMatches,
  parseFieldSelector,
  parseLabelSelector,
  printLabelSelector,
} from "./selectors.ts";

const labels = { app: "web", tier: "front", generation: "12" };

describe("parseLabelSelector", () => {
  test.for([
    ["", true],
    ["app=web", true],
    ["app==web", true],
    ["app=db", false],
    ["app!=db", true],
    ["other!=x", true],
    ["app", true],
    ["!app", false],
    ["!other", true],
    ["app in (web,db)", true],
    ["app notin (web, db)", false],
    ["other notin (a)", true],
    ["app=web,tier in (front),!x", true],
    ["generation>11", true],
    ["generation<11", false],
    ["node-role.kubernetes.io/worker=", false],
  ] as const)("%s selects the object: %s", ([text, expected]) => {
    const parsed = parseLabelSelector(text);
    expect(parsed.verdict === "valid" && parsed.matches(labels)).toBe(expected);
  });

  test.for([
    ["a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ["a=b c", "found 'c', expected: ',' or 'end of string'"],
    ["a in b", "unable to parse requirement: found 'b' expected: '('"],
    [",", "found ',', expected: !, identifier, or 'end of string'"],
  ] as const)("%s is refused", ([text, message]) => {
    expect(parseLabelSelector(text)).toEqual({ verdict: "invalid", message });
  });

  test("exact values are named for indexes", () => {
    const parsed = parseLabelSelector("app=web,tier in (a,b),x!=y");
    expect(parsed.verdict === "valid" && parsed.requires).toEqual({ app: "web" });
  });
});

describe("LabelSelector objects", () => {
  test("an empty selector selects everything and an absent one nothing", () => {
    expect(labelSelectorMatches({}, undefined)).toBe(true);
    expect(labelSelectorMatches(undefined, labels)).toBe(false);
  });
  test("labels and expressions must all hold", () => {
    const selector = {
      matchLabels: { app: "web" },
      matchExpressions: [{ key: "tier", operator: "In", values: ["front", "back"] }],
    };
    expect(labelSelectorMatches(selector, labels)).toBe(true);
    expect(labelSelectorMatches(selector, { app: "web" })).toBe(false);
    expect(printLabelSelector(selector)).toBe("app=web,tier in (back,front)");
  });
  test("an unknown operator is refused", () => {
    expect(compileLabelSelector({ matchExpressions: [{ key: "a", operator: "Like" }] })).toEqual({
      verdict: "invalid",
      message: '"Like" is not a valid label selector operator',
    });
  });
});

describe("parseFieldSelector", () => {
  const pods = {
    custom: false,
    namespaced: true,
    selectableFields: { "spec.nodeName": (o: object) => String((o as { spec: { nodeName: string } }).spec.nodeName) },
  };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a,b" }, spec: { nodeName: "n1" } };
  test.for([
    ["spec.nodeName=n1", true],
    ["spec.nodeName!=n1", false],
    ["metadata.name=a\\,b,spec.nodeName==n1", true],
    ["metadata.namespace=", true],
    ["", true],
  ] as const)("%s selects the object: %s", ([text, expected]) => {
    const parsed = parseFieldSelector(text, pods);
    expect(parsed.verdict === "valid" && parsed.matches(pod)).toBe(expected);
  });
  test("an unknown field is refused", () => {
    expect(parseFieldSelector("spec.x=1", pods)).toEqual({
      verdict: "invalid",
      message: "field label not supported: spec.x",
    });
    expect(parseFieldSelector("spec.x=1", { custom: false, namespaced: true, selectableFields: {} })).toEqual({
      verdict: "invalid",
      message: '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    });
    expect(parseFieldSelector("what", pods).verdict).toBe("invalid");
  });
});

test.for<readonly [string, object]>([
  ["metadata.name=a", { "metadata.name": "a" }],
  [" metadata.name == a,type!=b", { "metadata.name": " a" }],
  ["metadata.name=a,metadata.name=a,spec.nodeName=n", { "metadata.name": "a", "spec.nodeName": "n" }],
  // Commas that belong to a value begin no term, and a value is what it stands for.
  ["type!=x\\,metadata.name=a", {}],
  ["metadata.name=a\\,b", { "metadata.name": "a,b" }],
  ["metadata.name=a,metadata.name=b", {}],
  ["metadata.name!=a", {}],
  ["metadata.name=a,b", {}],
  ["__proto__=a", Object.fromEntries([["__proto__", "a"]])],
])("%s demands values as it selects by them [apiserver-selectors-demanded-1]", ([text, demanded]) => {
  expect(demandedFields(text)).toEqual(demanded);
});
