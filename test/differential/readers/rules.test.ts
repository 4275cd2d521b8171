import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Schema } from "../../../src/apiserver/schema/contract.ts";
import { compileRules, ruleProblems } from "../../../src/apiserver/schema/validation/cel.ts";
import { askRules, goRulesProgram, type RuledValue, type RuleVerdict } from "../../support/go-rules.ts";
import { rules } from "./rule-cases.ts";
import { ruledValues } from "./rule-expressions.ts";
import { runs } from "./runs.ts";

const program = goRulesProgram();

/** How the embedded API server judges it. */
function judged({ schema, value, old }: RuledValue): { readonly verdict: RuleVerdict; readonly message?: string } {
  const [problem] = ruleProblems(schema, "v");
  if (problem !== undefined) return { verdict: "definition", message: problem.message };
  const [finding] = compileRules(schema)?.run(value, old, "v") ?? [];
  return finding === undefined ? { verdict: "accepted" } : { verdict: "refused", message: finding.error.message };
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
});
