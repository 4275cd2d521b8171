import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Schema } from "../../../src/standin/apiserver/schema/contract.ts";
import { objectLimit } from "../../../src/standin/apiserver/schema/validation/cel-cost.ts";
import { compileRules, ruleProblems } from "../../../src/standin/apiserver/schema/validation/cel.ts";
import { askRules, goRulesProgram, type RuleAnswer, type RuledValue } from "../../support/go-rules.ts";
import { rules } from "./rule-cases.ts";
import { ruledValues } from "./rule-expressions.ts";
import { runs } from "./runs.ts";

const program = goRulesProgram();

/** How the embedded API server judges it. */
function judged({ schema, value, old }: RuledValue): RuleAnswer {
  const [problem] = ruleProblems(schema, "v");
  if (problem !== undefined) return { verdict: "definition", message: problem.message, cost: 0 };
  const budget = { left: objectLimit };
  const [finding] = compileRules(schema)?.run(value, old, "v", budget) ?? [];
  const cost = objectLimit - budget.left;
  return finding === undefined
    ? { verdict: "accepted", cost }
    : { verdict: "refused", message: finding.error.message, cost };
}

const ruleOf = ({ "x-kubernetes-validations": given }: Schema): string => given?.[0]?.rule ?? "";

describe("rules of definitions", () => {
  test.for(rules)("$rule for $value: $verdict [readers-rules-1]", ({ schema, rule, verdict, ...given }) => {
    const ours = judged({ schema: { ...schema, "x-kubernetes-validations": [{ rule }] }, ...given });
    expect(ours.verdict, ours.message).toBe(verdict);
  });

  test.skipIf(program === undefined)("kube-apiserver gives these verdicts [readers-rules-2]", async () => {
    if (program === undefined) return;
    const answers = await askRules(
      program,
      rules.map(({ schema, rule, verdict: _, ...given }) => ({
        schema: { ...schema, "x-kubernetes-validations": [{ rule }] },
        ...given,
      })),
    );
    expect(
      rules.flatMap(({ rule, value, verdict }, index) => {
        const theirs = answers[index];
        return theirs?.verdict === verdict
          ? []
          : [`${rule} for ${JSON.stringify(value)}: ${theirs?.verdict} ${theirs?.message ?? ""}`];
      }),
    ).toEqual([]);
  });

  test.skipIf(program === undefined)(
    "random rules are judged as kube-apiserver judges them [readers-rules-3]",
    async () => {
      if (program === undefined) return;
      const { numRuns, seed } = runs(200, 5_000);
      const asked = fc.sample(ruledValues, { numRuns, ...(seed === undefined ? {} : { seed }) });
      const answers = await askRules(program, asked);
      const differences = asked.flatMap((one, index) => {
        const [ours, theirs] = [judged(one), answers[index]];
        return ours.verdict === theirs?.verdict
          ? []
          : [
              `${ruleOf(one.schema)} for ${JSON.stringify(one.value)}: ours ${ours.verdict} ${ours.message ?? ""}; theirs ${theirs?.verdict} ${theirs?.message ?? ""}`,
            ];
      });
      expect(differences.slice(0, 20), `${differences.length} of ${asked.length} differ`).toEqual([]);
      expect(new Set(answers.map(({ verdict }) => verdict)).size).toBe(3);
    },
    600_000,
  );

  const list = Array.from({ length: 20 }, (_, index) => index);
  const counted: Schema = {
    type: "object",
    properties: {
      part: { type: "object", properties: { n: { type: "integer" } } },
      list: { type: "array", items: { type: "integer" } },
      text: { type: "string" },
    },
  };
  const valueCounted = { part: { n: 1 }, list, text: "a".repeat(100) };

  test.skipIf(program === undefined)("what rules cost is what kube-apiserver counts [readers-rules-4]", async () => {
    if (program === undefined) return;
    const asked = [
      ["self.part.n == 1", 4],
      ["has(self.part.n)", 2],
      ["self.list.all(a, a >= 0)", 103],
      ["self.list.exists(a, a > 100)", 123],
      ["self.list.map(a, a).size() == 20", 265],
      ["self.list.transformList(i, a, a).size() == 20", 265],
      ["self.list.all(a, self.list.all(b, a + b >= 0))", 2923],
      ["self.list.all(a, a < 5 || a >= 0)", 133],
      ["self.list.all(a, a < 5 || self.list.all(b, b < 3 ? true : b > 2))", 2158],
      ["self.text == self.text", 14],
      ["self.text.matches('^a+$')", 13],
      ["self.text.startsWith('a')", 12],
      ["self.text < 'b'", 3],
      ["string(self.list[0]) == '0'", 5],
      ["[1, 2, 3].size() == 3", 2],
      ["quantity('1').isGreaterThan(quantity('0'))", 3],
    ] as const;
    const given = asked.map(([rule]) => ({
      schema: { ...counted, "x-kubernetes-validations": [{ rule }] },
      value: valueCounted,
    }));
    const theirs = await askRules(program, given);
    expect(asked.map(([rule], index) => [rule, theirs[index]?.cost])).toEqual(asked);
    expect(asked.map(([rule], index) => [rule, judged(given[index] ?? expect.fail()).cost])).toEqual(asked);
  });

  test.skipIf(program === undefined)(
    "the cost of random rules is about what kube-apiserver counts, and a rule that costs it too much costs us too much [readers-rules-5]",
    async () => {
      if (program === undefined) return;
      const { numRuns, seed } = runs(200, 5_000);
      const asked = fc.sample(ruledValues, { numRuns, ...(seed === undefined ? {} : { seed }) });
      const answers = await askRules(program, asked);
      const differences = asked.flatMap((one, index) => {
        const theirs = answers[index];
        if (theirs === undefined || theirs.verdict === "definition") return [];
        const ours = judged(one).cost;
        return ours <= theirs.cost * 3 + 100 && ours >= theirs.cost / 5 - 100
          ? []
          : [`${ruleOf(one.schema)} for ${JSON.stringify(one.value)}: ours ${ours}; theirs ${theirs.cost}`];
      });
      expect(differences.slice(0, 20), `${differences.length} of ${asked.length} differ`).toEqual([]);
      const long = { ...valueCounted, list: Array.from({ length: 600 }, (_, index) => index) };
      const costly = [
        "self.list.all(a, self.list.all(b, a + b >= 0))",
        "self.list.all(a, self.list.map(b, b).size() > 0)",
      ];
      const given = costly.map((rule) => ({
        schema: { ...counted, "x-kubernetes-validations": [{ rule }] },
        value: long,
      }));
      const refused = { verdict: "refused", message: expect.stringContaining("call cost exceeds limit") as string };
      for (const answer of [...(await askRules(program, given)), ...given.map(judged)])
        expect(answer).toMatchObject(refused);
    },
    600_000,
  );
});
