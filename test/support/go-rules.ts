import type { Schema } from "../../src/standin/apiserver/schema/contract.ts";
import { askProgram, builtProgram } from "./go-programs.ts";

/** A value, under a schema that has a rule for it; `old`: the value that it replaces. */
export interface RuledValue {
  readonly schema: Schema;
  readonly value: unknown;
  readonly old?: unknown;
}

/** `definition`: a definition with this rule is refused; `refused`: the rule does not hold for the value, or fails. */
export type RuleVerdict = "definition" | "refused" | "accepted";

/** How kube-apiserver 1.34 judges it; `hack/go-rules/main.go`. */
export interface RuleAnswer {
  readonly verdict: RuleVerdict;
  readonly message?: string;
  /** What the evaluation cost, in the units of src/standin/apiserver/schema/validation/cel-cost.ts. */
  readonly cost: number;
}

/** The program that `hack/go-rules/build` makes; `undefined`: this machine cannot build it. */
export const goRulesProgram = (): string | undefined => builtProgram("go-rules");

/** kube-apiserver's verdicts, in their order. */
export const askRules = (program: string, asked: readonly RuledValue[]): Promise<readonly RuleAnswer[]> =>
  askProgram<RuleAnswer>(program, asked);
