import fc from "fast-check";
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

describe("a selector of many terms", () => {
  const anyKey = fc.constantFrom("a", "b", "c");
  const anyValue = fc.constantFrom<string>("", "x", "1", "2", "10");
  const anyNumber = fc.constantFrom("0", "1", "2", "9");
  type Term = readonly [text: string, selects: (value: string | undefined) => boolean, key: string];
  const isNumber = (value: string | undefined): value is string => value !== undefined && /^-?\d+$/.test(value);
  const anyTerm: fc.Arbitrary<Term> = fc.oneof(
    anyKey.map((key): Term => [key, (value) => value !== undefined, key]),
    anyKey.map((key): Term => [`!${key}`, (value) => value === undefined, key]),
    fc.tuple(anyKey, anyValue).map(([key, is]): Term => [`${key}=${is}`, (value) => value === is, key]),
    fc.tuple(anyKey, anyValue).map(([key, is]): Term => [`${key}!=${is}`, (value) => value !== is, key]),
    fc
      .tuple(anyKey, fc.array(anyValue, { minLength: 1 }))
      .map(([key, all]): Term => [
        `${key} in (${all.join()})`,
        (value) => value !== undefined && all.includes(value),
        key,
      ]),
    fc
      .tuple(anyKey, fc.array(anyValue, { minLength: 1 }))
      .map(([key, all]): Term => [
        `${key} notin (${all.join()})`,
        (value) => value === undefined || !all.includes(value),
        key,
      ]),
    fc
      .tuple(anyKey, anyNumber)
      .map(([key, than]): Term => [`${key}>${than}`, (value) => isNumber(value) && Number(value) > Number(than), key]),
    fc
      .tuple(anyKey, anyNumber)
      .map(([key, than]): Term => [`${key}<${than}`, (value) => isNumber(value) && Number(value) < Number(than), key]),
  );

  test("selects what each of its terms selects [apiserver-selectors-many-1]", () => {
    fc.assert(
      fc.property(
        fc.array(anyTerm, { maxLength: 6 }),
        fc.dictionary(fc.constantFrom("a", "b", "c", "d", "e"), anyValue, { noNullPrototype: true }),
        (terms, given) => {
          const parsed = parseLabelSelector(terms.map(([text]) => text).join());
          expect(parsed.verdict).toBe("valid");
          expect(parsed.verdict === "valid" && parsed.matches(given)).toBe(
            terms.every(([, selects, key]) => selects(given[key])),
          );
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("takes no time for terms about labels that an object does not have [apiserver-selectors-many-2]", () => {
    const many = (one: (index: number) => string) => Array.from({ length: 3_000 }, (_, index) => one(index)).join();
    const texts = [many((index) => `!x-${index.toString(36)}`), `app notin (${many((index) => `v${index}`)})`];
    const names = many((index) => `metadata.name!=v${index}`);
    const fields = parseFieldSelector(names, { custom: false, namespaced: true, selectableFields: {} });
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } };
    const selectors = texts.map(parseLabelSelector);
    const began = process.cpuUsage();
    let selected = 0;
    for (let index = 0; index < 50_000; index += 1) {
      for (const selector of selectors) if (selector.verdict === "valid" && selector.matches(labels)) selected += 1;
      if (fields.verdict === "valid" && fields.matches(object)) selected += 1;
    }
    expect(selected).toBe(150_000);
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(4);
  });

  test("counts the labels of an object once, however many watches ask for them [apiserver-selectors-many-3]", () => {
    let counted = 0;
    const labels = new Proxy(Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`l${index}`, ""])), {
      ownKeys(target) {
        counted += 1;
        return Reflect.ownKeys(target);
      },
    });
    for (const text of ["!m0,!m1", "l0", "!m2", "l1,l2", "!l3"]) {
      const selector = parseLabelSelector(text);
      expect(selector.verdict === "valid" && selector.matches(labels)).toBe(text !== "!l3");
    }
    expect(counted).toBe(1);
  });

  test.for([
    (key: string) => key,
    (key: string) => `${key}=v`,
    (key: string) => `${key}!=w`,
    (key: string) => `!m${key}`,
  ])("looks once whether an object has a label, and what it is: %s [apiserver-selectors-many-4]", (termOf) => {
    let looks = 0;
    const keys = Array.from({ length: 1_000 }, (_, index) => `l${index}`);
    const given = new Proxy(Object.fromEntries(keys.map((key) => [key, "v"])), {
      getOwnPropertyDescriptor(target, key) {
        looks += 1;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
      get(target, key) {
        looks += 1;
        return Reflect.get(target, key) as unknown;
      },
    });
    const selector = parseLabelSelector(keys.map(termOf).join());
    expect(selector.verdict === "valid" && selector.matches(given)).toBe(true);
    looks = 0;
    expect(selector.verdict === "valid" && selector.matches(given)).toBe(true);
    expect(looks).toBeLessThanOrEqual(2 * keys.length);
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
