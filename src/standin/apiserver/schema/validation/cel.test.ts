import { RE2JS } from "re2js";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Budget, objectLimit } from "./cel-cost.ts";
import { compileRules, ruleProblems } from "./cel.ts";
import { compileAdmissionPolicy, policyRequest, type PolicyInput } from "./cel-policies.ts";
import { type DecodedValues, escapeName, toCel } from "./cel-values.ts";
import type { Schema } from "../contract.ts";
import { compileExpression } from "../regular-expressions.ts";

const budget = (): Budget => ({ left: objectLimit });

/** Says whether a rule holds for a value of any shape; errors are told. */
function holds(rule: string, self: unknown, schema: Schema = { "x-kubernetes-int-or-string": true }): boolean | string {
  const [finding] =
    compileRules({ ...schema, "x-kubernetes-validations": [{ rule, message: "no" }] })?.run(
      self,
      undefined,
      "spec",
      budget(),
    ) ?? [];
  if (finding === undefined) return true;
  return /^Invalid value: "\w+": no$/.test(finding.error.message) ? false : finding.error.message;
}

describe("Kubernetes' functions", () => {
  test.for<[string, unknown]>([
    ["isURL('https://a.io:80/x?y=1') && !isURL('a b')", {}],
    [
      "url('https://a.io:80/x?y=1').getHostname() == 'a.io' && url('https://a.io:80/x').getPort() == '80' && url('https://a.io/x').getEscapedPath() == '/x'",
      {},
    ],
    [
      "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.256') && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback()",
      {},
    ],
    [
      "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('11.0.0.1') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
      {},
    ],
    ["string(ip('2001:db8:0:0:0:0:0:1')) == '2001:db8::1' && cidr('10.1.0.0/16').prefixLength() == 16", {}],
    ["!format.dns1123Label().validate(self.name).hasValue()", { name: "a-b" }],
    ["format.dns1123Label().validate(self.name).hasValue()", { name: "A_b" }],
    ["format.dns1123Label().validate(self.name).value() == ['must not contain dots']", { name: "a.b" }],
    [
      "format.dns1123Label().validate(self.name).value() == ['must be no more than 63 characters']",
      { name: "a".repeat(64) },
    ],
    ["!format.dns1123LabelPrefix().validate(self.name).hasValue()", { name: "ab-" }],
    ["format.qualifiedName().validate(self.name).value() == ['prefix part must be non-empty']", { name: "/a" }],
    ['format.labelValue().validate(self.name).value()[0].endsWith("\')")', { name: "-" }],
    ["format.named('uuid').hasValue()", {}],
    ["'abc 123 def 45'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']", {}],
    [
      "self.l.isSorted() && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3 && self.l.indexOf(2) == 1",
      { l: [1, 2, 3] },
    ],
    [
      "'A b'.lowerAscii() == 'a b' && 'a'.upperAscii() == 'A' && 'a-b-c'.replace('-', '+') == 'a+b+c' && 'a,b'.split(',') == ['a', 'b'] && ['a','b'].join('-') == 'a-b'",
      {},
    ],
    ["' x '.trim() == 'x' && 'hello'.substring(1, 3) == 'el' && 'abc'.charAt(1) == 'b' && 'abc'.indexOf('c') == 2", {}],
    ["'%s has %d'.format(['a', 3]) == 'a has 3'", {}],
    [
      "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('100m').add(quantity('900m')).asInteger() == 1 && isQuantity('5k') && !isQuantity('x')",
      {},
    ],
    ["sets.contains([1, 2, 3], [1]) && sets.equivalent([1, 2], [2, 1]) && sets.intersects([1], [1, 2])", {}],
    ["'Foo'.matches('(?i)^foo$') && 'ab1'.matches(r'^[[:alpha:]]+\\d$')", {}],
    ["matches(self.name, '^a')", { name: "ab" }],
    ["self.?a.b.orValue('z') == 'z'", {}],
    ["self.n + 1 == 3 && self.n > 1 && self.f > 0.4", { n: 2, f: 0.5 }],
    ["duration('90s') > duration('1m') && timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')", {}],
  ])("%s", ([rule, self]) => {
    expect(holds(rule, self)).toBe(true);
  });

  test("a runtime error is reported", () => {
    expect(holds("self.missing == 1", {})).toContain("no such key: missing evaluating rule: no");
    expect(holds("ip(self.a).family() == 4", { a: "x" })).toContain('"x" parse error during conversion from string');
  });
});

describe("values under a schema", () => {
  test("whole numbers are integers unless the schema says number", () => {
    const schema: Schema = { type: "object", properties: { i: { type: "integer" }, n: { type: "number" } } };
    expect(holds("self.i + 1 == 3 && self.n + 1.0 == 3.0", { i: 2, n: 2 }, schema)).toBe(true);
  });
  test("names that CEL cannot spell are escaped", () => {
    expect(["a-b", "a.b/c", "namespace", "a__b"].map(escapeName)).toEqual([
      "a__dash__b",
      "a__dot__b__slash__c",
      "__namespace__",
      "a__underscores__b",
    ]);
    const schema: Schema = { type: "object", properties: { "a-b": { type: "string" }, namespace: { type: "string" } } };
    expect(holds("self.a__dash__b == 'x' && self.__namespace__ == 'n'", { "a-b": "x", namespace: "n" }, schema)).toBe(
      true,
    );
  });
  test("times are times", () => {
    expect(
      holds(
        "self.t > timestamp('2020-01-01T00:00:00Z')",
        { t: "2026-01-01T00:00:00Z" },
        { type: "object", properties: { t: { type: "string", format: "date-time" } } },
      ),
    ).toBe(true);
  });
  // Source: kubernetes/apiserver pkg/cel/common/values.go (v1.34).
  test("text in base64 is bytes [apiserver-cel-1]", () => {
    const schema: Schema = { type: "object", properties: { b: { type: "string", format: "byte" } } };
    expect(holds("string(self.b) == 'a key' && self.b.size() == 5", { b: "YSBrZXk=" }, schema)).toBe(true);
  });
  test("loops in loops over much are refused", () => {
    const list = Array.from({ length: 6000 }, (_, index) => index);
    expect(holds("self.l.all(a, self.l.all(b, a + b >= 0))", { l: list })).toContain("call cost exceeds limit");
  });
  test("a rule on a new value may see that there is no old one", () => {
    const rules = compileRules({
      type: "string",
      "x-kubernetes-validations": [
        { rule: "oldSelf.hasValue() || self == 'first'", optionalOldSelf: true, message: "no" },
      ],
    });
    expect(rules?.run("first", undefined, "s", budget())).toEqual([]);
    expect(rules?.run("x", undefined, "s", budget())).toHaveLength(1);
    expect(rules?.run("x", "first", "s", budget())).toEqual([]);
  });
  test("a rule sees the fields of an old value that may not be there [apiserver-cel-6]", () => {
    const rules = compileRules({
      type: "object",
      properties: { spec: { type: "object", properties: { name: { type: "string" } } } },
      "x-kubernetes-validations": [
        { rule: "!oldSelf.hasValue() || oldSelf.value().spec.name == self.spec.name", optionalOldSelf: true },
      ],
    });
    expect(rules?.run({ spec: { name: "a" } }, undefined, "s", budget())).toEqual([]);
    expect(rules?.run({ spec: { name: "a" } }, { spec: { name: "a" } }, "s", budget())).toEqual([]);
    expect(rules?.run({ spec: { name: "a" } }, { spec: { name: "b" } }, "s", budget())).toHaveLength(1);
  });
});

test("problems of rules carry their place", () => {
  const problems = ruleProblems(
    {
      type: "object",
      properties: {
        a: { type: "string" },
        l: { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } },
      },
      "x-kubernetes-validations": [
        { rule: "" },
        { rule: "self.l.all(x, x.m > 1)" },
        { rule: "true", message: "a\nb" },
        { rule: "true", messageExpression: "1" },
        { rule: "true", fieldPath: ".none" },
        { rule: "nope.x" },
      ],
    },
    "p",
  );
  expect(problems.map(({ field, reason }) => `${field} ${reason}`)).toEqual([
    "p.x-kubernetes-validations[0].rule FieldValueRequired",
    "p.x-kubernetes-validations[1].rule FieldValueInvalid",
    "p.x-kubernetes-validations[2].message FieldValueInvalid",
    "p.x-kubernetes-validations[3].messageExpression FieldValueInvalid",
    "p.x-kubernetes-validations[4].fieldPath FieldValueInvalid",
    "p.x-kubernetes-validations[5].rule FieldValueInvalid",
  ]);
  expect(problems[1]?.message).toContain("undefined field 'm'");
});

describe("compileAdmissionPolicy", () => {
  const asked = (more: Partial<PolicyInput>) =>
    policyRequest({ object: null, oldObject: null, request: {}, namespaceObject: null, ...more });
  const compiled = compileAdmissionPolicy({
    variables: [{ name: "node", expression: "request.userInfo.extra['authentication.kubernetes.io/node-name'][0]" }],
    matchConditions: [
      { name: "only-daemons", expression: "request.userInfo.username == 'system:serviceaccount:n:daemon'" },
    ],
    validations: [
      {
        expression: "object.metadata.name == variables.node",
        messageExpression: "'not ' + variables.node",
        reason: "Forbidden",
      },
    ],
  });
  const policy = compiled.verdict === "compiled" ? compiled.policy : undefined;
  const daemon = (node?: string): Record<string, unknown> => ({
    userInfo: {
      username: "system:serviceaccount:n:daemon",
      extra: node === undefined ? {} : { "authentication.kubernetes.io/node-name": [node] },
    },
  });

  test("lets pass, denies with its words, skips others, and fails where it cannot know", () => {
    expect(policy?.decide(asked({ object: { metadata: { name: "w0" } }, request: daemon("w0") }), null)).toEqual({
      verdict: "allowed",
    });
    expect(policy?.decide(asked({ object: { metadata: { name: "w1" } }, request: daemon("w0") }), null)).toEqual({
      verdict: "denied",
      reason: "Forbidden",
      message: "not w0",
    });
    expect(policy?.decide(asked({ request: { userInfo: { username: "x" } } }), null)).toEqual({ verdict: "skipped" });
    expect(policy?.decide(asked({ object: { metadata: { name: "w1" } }, request: daemon() }), null)).toMatchObject({
      verdict: "failed",
    });
    expect(policy?.failurePolicy).toBe("Fail");
  });
  test("refuses what does not compile", () => {
    expect(compileAdmissionPolicy({ validations: [{ expression: "unknown(object)" }] })).toMatchObject({
      verdict: "refused",
      errors: [{ field: "spec.validations[0].expression" }],
    });
    expect(compileAdmissionPolicy({ validations: [{ expression: "whatever.x == 1" }] }).verdict).toBe("refused");
  });
});

describe("expressions that take the square of what they look at", () => {
  test.for([
    ["object.trim() != ''", `x${" ".repeat(300_000)}x`],
    ["!isSemver(object, true)", `${"0".repeat(300_000)}x`],
    ["int(object) == 0", `${"0".repeat(300_000)}x`],
    ["double(object) == 0.0", `${"1".repeat(300_000)}x`],
  ] as const)("%s takes time in proportion to its text [apiserver-cel-cost-4]", ([expression, object]) => {
    const compiled = compileAdmissionPolicy({ validations: [{ expression }] });
    if (compiled.verdict === "refused") throw new Error("it does not compile");
    const given = policyRequest({ object, oldObject: null, request: {}, namespaceObject: null });
    expect(["allowed", "failed"]).toContain(compiled.policy.decide(given, null).verdict);
  });

  const numbers = Array.from({ length: 30_000 }, (_, index) => index);
  const literal = `[${Array.from({ length: 900 }, (_, index) => index).join(",")}]`;

  test.for([
    ["sets.contains(self.l, self.l)", { l: numbers }],
    ["!sets.intersects(self.l, self.m)", { l: numbers, m: numbers.map((number) => -1 - number) }],
  ] as const)("%s ends with an error about its cost [apiserver-cel-cost-1]", ([rule, self]) => {
    expect(holds(rule, self)).toContain("actual cost limit exceeded");
  });

  test("loops over lists that stand in a rule count as well [apiserver-cel-cost-2]", () => {
    expect(holds(`[1,2,3].all(a, [1,2,3].all(b, a + b >= 0))`, {})).toBe(true);
    expect(holds(`${literal}.all(a, ${literal}.all(b, ${literal}.all(c, a + b + c >= 0)))`, {})).toContain(
      "call cost exceeds limit",
    );
  });

  test("loops cost what they look at, however much there is beside it [apiserver-cel-cost-5]", () => {
    const nested = "self.a.all(a, self.a.all(b, self.a.all(c, self.a.all(d, a + b + c + d >= 0))))";
    expect(holds(nested, { a: [1, 2, 3, 4], others: numbers })).toBe(true);
    expect(holds(nested, { a: numbers.slice(0, 40) })).toContain("call cost exceeds limit");
    expect(holds("self.l.all(a, a < 0 && self.l.all(b, self.l.all(c, false)))", { l: numbers.slice(0, 900) })).toBe(
      false,
    );
  });

  test.for([
    "self.l.all(a, self.l.all(b, true)) || true",
    "self.l.exists(a, self.l.exists(b, a + b < 0)) ? true : true",
    "self.l.map(a, self.l + self.l).size() > 0",
    "self.l.all(a, self.l == self.m)",
    "self.l.all(a, a in self.m)",
    "self.l.all(a, self.t.lowerAscii() != '')",
    "self.l.all(a, self.t <= self.u)",
    "self.l.all(a, self.t.size() > 0 && !self.t.contains('b'))",
    "self.l.all(a, self.l.indexOf(-1) == -1)",
    "self.l.transformList(i, a, self.m.transformMap(j, b, b)).size() > 0",
    "self.t.matches('(a|aa|aaa|aaaa)*b' + self.t.substring(0, 2000))",
    "self.l.all(a, timestamp('2026-01-01T00:00:00Z').getHours('Europe/Berlin') == 1)",
  ])("the cost of %s is known before its result [apiserver-cel-cost-6]", (rule) => {
    const l = numbers;
    const t = "a".repeat(300_000);
    expect(holds(rule, { l, m: numbers, t, u: `${t}b` })).toContain("cost exceeds limit");
  });

  const doubled = (times: number): string => `[bytes(self.t)]${".map(x, x + x)".repeat(times)}.size() == 1`;
  test.for([
    [doubled(3), "actual cost limit exceeded"],
    ["self.l.map(i, bytes(self.t)).size() > 0", "cost exceeds limit"],
    ["self.l.map(i, self.t + string(i)).size() > 0", "cost exceeds limit"],
    ["self.l.exists(i, '%s'.format([self.l]) == '')", "cost exceeds limit"],
    ["self.l.exists(i, '%x'.format([self.t]) == '')", "cost exceeds limit"],
    ["self.l.exists(i, url(self.u).getQuery().size() < 0)", "cost exceeds limit"],
    ["self.l.exists(i, cel.bind(u, url(self.u), self.l.exists(j, u.getQuery().size() < 0)))", "undeclared"],
    ["self.l.exists(i, [bytes(self.t), bytes(self.t)].max() == b'')", "cost exceeds limit"],
    ["self.l.all(i, self.l.lastIndexOf(-1) == -1)", "cost exceeds limit"],
    [
      "self.l.all(i, optional.unwrap([optional.of(i)]).size() == 1 && self.t.split('').size() > 0)",
      "cost exceeds limit",
    ],
    ["self.l.all(i, !'a'.matches(string(i) + 'x{1000}'))", "cost exceeds limit"],
    ["self.l.all(i, 'a'.find(string(i) + '(x{30}y{30}){16}') == '')", "cost exceeds limit"],
    ["self.l.transformMapEntry(i, v, self.m).size() > 0", "already exists"],
    ["self.l.exists(i, '%.100f%.100f%.100f%.100f'.format([0.1, 0.1, 0.1, 0.1]) == '')", "cost exceeds limit"],
    ["self.l.exists(i, '%.100e%.100e%.100e%.100e'.format([0.1, 0.1, 0.1, 0.1]) == '')", "cost exceeds limit"],
    [
      "self.l.exists(i, '%b%b%b%b%b'.format([-9223372036854775807,-9223372036854775807,-9223372036854775807,-9223372036854775807,-9223372036854775807]) == '')",
      "cost exceeds limit",
    ],
  ] as const)("what %s builds is paid: %s [apiserver-cel-cost-8]", ([rule, says]) => {
    const m = Object.fromEntries(numbers.map((number) => [`k${number}`, number]));
    expect(
      holds(rule, { l: numbers, t: "a".repeat(300_000), u: `https://a.io/?${"a=b&".repeat(50_000)}`, m }),
    ).toContain(says);
  });

  test("items of lists of type map pay for the search by their keys [apiserver-cel-cost-14]", () => {
    const list: Schema = {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["k"],
      items: { type: "object", properties: { k: { type: "integer" } } },
    };
    const items = numbers.map((k) => ({ k }));
    const left = budget();
    const rules = compileRules({ ...list, "x-kubernetes-validations": [{ rule: "self == oldSelf" }] });
    expect(rules?.run(items, items.toReversed(), "spec", left)).toEqual([]);
    expect(objectLimit - left.left).toBeGreaterThan(2 * items.length);
  });

  test("the name and the port of a long host are told apart once, however often they are asked for [apiserver-cel-cost-15]", () => {
    const exec = vi.spyOn(RegExp.prototype, "exec");
    onTestFinished(() => exec.mockRestore());
    const compiled = compileAdmissionPolicy({
      variables: [{ name: "u", expression: "url(object.u)" }],
      validations: [
        { expression: "object.l.all(i, variables.u.getHostname().size() > 9 && variables.u.getPort() == '80')" },
      ],
    });
    if (compiled.verdict === "refused") throw new Error("it does not compile");
    const object = { l: numbers.slice(0, 100), u: `https://${"a".repeat(1_000)}:80/` };
    const given = policyRequest({ object, oldObject: null, request: {}, namespaceObject: null });
    expect(compiled.policy.decide(given, null).verdict).toBe("allowed");
    const ofHosts = exec.mock.calls.filter(([text]) => text.startsWith("aaa") && text.endsWith(":80"));
    // Two of them read the URL.
    expect(ofHosts.length).toBeLessThanOrEqual(3);
  });

  test("names that differ are told apart for little [apiserver-cel-cost-9]", () => {
    const names = Array.from(
      { length: 2_000 },
      (_, index) => `${"machine-".repeat(7)}${String(index).padStart(5, "0")}`,
    );
    expect(holds("self.a.all(x, x in self.b)", { a: names.slice(1_000, 1_300), b: names })).toBe(true);
  });

  test("a variable that fails is evaluated once, however often it is read [apiserver-cel-cost-10]", () => {
    const compiled = compileAdmissionPolicy({
      variables: [{ name: "bad", expression: "object.a.all(x, object.a.all(y, x + y >= 0)) && object.none.x == 1" }],
      validations: [{ expression: "object.l.exists(i, variables.bad)" }],
    });
    if (compiled.verdict === "refused") throw new Error("it does not compile");
    const object = { a: numbers.slice(0, 250), l: numbers.slice(0, 40) };
    const given = policyRequest({ object, oldObject: null, request: {}, namespaceObject: null });
    expect(compiled.policy.decide(given, null)).toMatchObject({
      verdict: "failed",
      message: expect.stringMatching(/no such key: none/i) as string,
    });
  });

  /** How often expressions are compiled from now on. */
  function compilations(): () => number {
    const compile = vi.spyOn(RE2JS, "compile");
    onTestFinished(() => compile.mockRestore());
    return () => compile.mock.calls.length;
  }

  test("a pattern that stands in a rule is compiled with the rule, however large it is and whatever else is compiled meanwhile [apiserver-cel-cost-11]", () => {
    const rule = `self.l.all(x, !x.matches('${"a{1000}".repeat(25)}') && x.find('${"b{500}".repeat(45)}') == '')`;
    const rules = compileRules({ "x-kubernetes-int-or-string": true, "x-kubernetes-validations": [{ rule }] });
    const l = Array.from({ length: 20 }, (_, index) => `x${index}`);
    const counted = compilations();
    expect(rules?.run({ l }, undefined, "spec", budget())).toEqual([]);
    const first = counted();
    for (let index = 0; index < 12; index++) compileExpression(`${index}x{1000}`.repeat(18));
    const others = counted() - first;
    expect(rules?.run({ l }, undefined, "spec", budget())).toEqual([]);
    // Each is compiled when the rule is read, and again when it is asked first.
    expect(first).toBeLessThanOrEqual(4);
    expect(counted() - others).toBe(first);
  });

  test.for([
    ["[", "\\p{L}", 100, "]"],
    ["(?i)[", "b-\\x{10fffe}", 10, "]"],
    ["", "\\pL", 100, ""],
  ] as const)(
    "a given pattern pays for its classes before it is compiled: %s%s × %i%s [apiserver-cel-cost-12]",
    (given) => {
      const [before, part, times, after] = given;
      const t = `${before}${part.repeat(times)}${after}`;
      const counted = compilations();
      const l = Array.from({ length: 100 }, (_, index) => index);
      expect(holds("self.l.all(i, !'a'.matches(string(i) + self.t))", { l, t })).toContain(
        "actual cost limit exceeded",
      );
      expect(counted()).toBeLessThan(50);
    },
  );

  test("patterns that stand in a rule have a largest size together [apiserver-cel-cost-13]", () => {
    const pattern = "a{1000}".repeat(30);
    expect(holds(`!self.t.matches('${pattern}')`, { t: "x" })).toBe(true);
    const counted = compilations();
    expect(holds(`!self.t.matches('${pattern}') && self.t.find('${pattern}b') == ''`, { t: "x" })).toContain(
      "the patterns of an expression must not compile to more than 50000 instructions",
    );
    expect(counted()).toBe(0);
  });

  test("the rules of an object share what they may cost, and the first that is too much is the last [apiserver-cel-cost-7]", () => {
    const schema: Schema = {
      "x-kubernetes-int-or-string": true,
      "x-kubernetes-validations": [{ rule: "self.all(a, self.all(b, a + b >= 0))" }],
    };
    const shared = { left: objectLimit / 10 };
    const rules = compileRules(schema);
    const found = Array.from({ length: 4 }, () => rules?.run(numbers.slice(0, 300), undefined, "spec", shared) ?? []);
    const messages = found.flat().map(({ error }) => error.message);
    expect(messages).toEqual([expect.stringContaining("running out of cost budget, no further validation rules")]);
    expect(found.slice(0, 1).flat()).toEqual([]);
  });

  test("an admission policy fails for an object whose loops are too many, as its failurePolicy says [apiserver-cel-cost-3]", () => {
    const compiled = compileAdmissionPolicy({
      validations: [{ expression: "object.l.all(a, object.l.all(b, a + b >= 0))" }],
    });
    if (compiled.verdict === "refused") throw new Error("it does not compile");
    const input = { oldObject: null, request: {}, namespaceObject: null };
    expect(compiled.policy.decide(policyRequest({ ...input, object: { l: numbers.slice(0, 100) } }), null)).toEqual({
      verdict: "allowed",
    });
    expect(compiled.policy.decide(policyRequest({ ...input, object: { l: numbers } }), null)).toMatchObject({
      verdict: "failed",
      message: expect.stringContaining("cost limit exceeded") as string,
    });
  });
});

describe("keys that every object of the language has", () => {
  const input = { oldObject: null, request: {}, namespaceObject: null };
  const decide = (expression: string, object: unknown) => {
    const compiled = compileAdmissionPolicy({ validations: [{ expression, message: "no" }] });
    if (compiled.verdict === "refused") throw new Error("it does not compile");
    return compiled.policy.decide(policyRequest({ ...input, object, oldObject: object }), null);
  };
  const hostile: unknown = JSON.parse(
    '{"metadata":{"labels":{"constructor":"x","a":"b"}},"list":[{"constructor":"f","a":1}],"none":{"constructor":null},"map":{"__proto__":{"a":1}}}',
  );

  test.for([
    "object.metadata.labels['a'] == 'b' && object.metadata.labels.a == 'b' && has(object.metadata.labels.a)",
    "'a' in object.metadata.labels && 'constructor' in object.metadata.labels && !('prototype' in object.metadata.labels)",
    "object.metadata.?labels[?'a'].orValue('') == 'b' && object.metadata.labels[?'constructor'].orValue('') == 'x'",
    "object.metadata.labels.all(k, k in ['constructor', 'a']) && size(object.metadata.labels) == 2",
    "object.metadata.labels.map(k, object.metadata.labels[k]) == ['x', 'b'] && object.list.exists(x, x.a == 1)",
    "object == oldObject && object.metadata.labels == oldObject.metadata.labels && object.list == oldObject.list",
    "object.metadata.labels != {'a': 'b'} && object.list[0] != object.metadata.labels",
    "object.list.indexOf(oldObject.list[0]) == 0 && object.list.indexOf(object.metadata.labels) == -1",
    "object.none.constructor == null && object.map.all(k, k == '__proto__') && object.map.size() == 1",
    `'%s'.format([object.metadata.labels]) == '{"a":"b", "constructor":"x"}'`,
  ])("are keys like others: %s [apiserver-cel-2]", (expression) => {
    expect(decide(expression, hostile)).toEqual({ verdict: "allowed" });
  });

  test("are parts of the query of a URL like others [apiserver-cel-3]", () => {
    const query = "url('https://a.io/?constructor=1&__proto__=2&b=3').getQuery()";
    expect(
      holds(`${query}['b'] == ['3'] && ${query}['constructor'] == ['1'] && ${query}['__proto__'] == ['2']`, {}),
    ).toBe(true);
  });

  test("lists of times, lengths of time and quantities are compared by their values [apiserver-cel-4]", () => {
    const times = "[timestamp('2026-01-01T00:00:00Z'), timestamp('2026-01-02T00:00:00Z')]";
    expect(holds(`${times}.indexOf(timestamp('2026-01-02T00:00:00Z')) == 1 && size(${times}) == 2`, {})).toBe(true);
    expect(holds("!sets.contains([duration('1s')], [duration('2s')])", {})).toBe(true);
    expect(holds("sets.contains([quantity('1')], [quantity('1000m')])", {})).toBe(true);
  });
});

test.for<[string, string]>([
  ["that name nothing", "true"],
  ["that are skipped", "self == oldSelf"],
])("rules %s cost something at each value [apiserver-cel-cost-16]", ([, rule]) => {
  const schema: Schema = { type: "integer", "x-kubernetes-validations": Array.from({ length: 10 }, () => ({ rule })) };
  const run = (left: number) => compileRules(schema)?.run(1, undefined, "spec", { left }) ?? [];
  expect(run(10)).toEqual([]);
  expect(run(9).map(({ error }) => error.message)).toEqual([
    expect.stringContaining("validation failed due to running out of cost budget"),
  ]);
});

test("rules of all levels share one decoding of what is below them [apiserver-cel-cost-17]", () => {
  const items: Schema = { type: "array", items: { type: "integer" } };
  const outer: Schema = { type: "object", properties: { a: items } };
  const value = { a: [1, 2] };
  const decoded: DecodedValues = new Map();
  const whole = toCel(value, outer, decoded) as ReadonlyMap<string, unknown>;
  expect(toCel(value.a, items, decoded)).toBe(whole.get("a"));
  expect(toCel(value.a, items, decoded)).toEqual([1n, 2n]);
  expect(toCel(value.a, { type: "array", items: { type: "number" } }, decoded)).toEqual([1, 2]);
});
