/**
 * What expressions cost, in the units that kube-apiserver counts: a variable or a field costs 1, a list that an expression
 * builds 10, a map 30, a call of a function 1 and what it looks at. Facts: google/cel-go interpreter/runtimecost.go (v0.26)
 * and kubernetes/apiserver pkg/cel/library/cost.go (v0.34).
 */

/** Most that one expression may cost: kubernetes/apiserver pkg/apis/cel/config.go (v0.34), like the next two. */
export const expressionLimit = 1_000_000;

/** Most that the rules of one object cost together, and likewise the validations of one policy. */
export const objectLimit = 10_000_000;

/** Most that the matchConditions of one policy cost together. */
export const conditionsLimit = 2_500_000;

/** The error of an expression that exceeds its limit. */
export const tooCostly = "operation cancelled: actual cost limit exceeded";

/** The error of the expression that spends what several share. */
export const outOfBudget =
  "validation failed due to running out of cost budget, no further validation rules will be run";

/** What is left for several expressions. */
export interface Budget {
  left: number;
}

export const isSpent = ({ left }: Budget): boolean => left < 0;

interface Meter {
  spent: number;
  readonly limit: number;
}

/** One error for all: a loop whose every round fails makes none of its own. */
const exceeded = new Error(tooCostly);

/** Of the expression that is being evaluated: evaluation is synchronous. */
let meter: Meter = { spent: 0, limit: Infinity };

/** Charges the expression that is being evaluated. @throws Error if it exceeds its limit. */
export function spend(units: number): void {
  meter.spent += units;
  if (meter.spent > meter.limit) throw exceeded;
}

/** Units for each character or item that a function looks at. */
export const traversal = 0.1;

/** Charges for so many characters or items; the call itself is paid with 1. @throws Error if that exceeds the limit. */
export function spendOn(size: number): void {
  if (size > 1 / traversal) spend(Math.ceil(size * traversal) - 1);
}

/**
 * Charges for a search by a regular expression; the call itself is paid with 1. @param size of the pattern, in characters or
 * instructions. @throws Error if that exceeds the limit.
 */
export function spendOnSearch(text: string, size: number): void {
  spend(Math.ceil((1 + text.length) * traversal) * Math.ceil(size * 0.25) - 1);
}

/** A function that also pays for the length of each text that it gets. */
export function paid<Args extends readonly unknown[], Result>(
  work: (...args: Args) => Result,
): (...args: Args) => Result {
  return (...args) => {
    for (const given of args) if (typeof given === "string" || given instanceof Uint8Array) spendOn(given.length);
    return work(...args);
  };
}

export type Metered<T> = { readonly cost: number } & (
  | { readonly verdict: "evaluated"; readonly value: T }
  | { readonly verdict: "failed"; readonly error: unknown }
  | { readonly verdict: "exceeded" }
);

/** Evaluates an expression with a limit of its own. An operator that ignores the error of an operand does not hide that. */
export function metered<T>(work: () => T): Metered<T> {
  const outer = meter;
  const own: Meter = { spent: 0, limit: expressionLimit };
  meter = own;
  let result:
    | { readonly verdict: "evaluated"; readonly value: T }
    | { readonly verdict: "failed"; readonly error: unknown };
  try {
    result = { verdict: "evaluated", value: work() };
  } catch (error) {
    result = { verdict: "failed", error };
  } finally {
    meter = outer;
  }
  return own.spent > own.limit ? { verdict: "exceeded", cost: own.spent } : { ...result, cost: own.spent };
}
