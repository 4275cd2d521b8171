/** Something that is wrong with what a pool's image is to be made from. */
export interface InputProblem {
  /** What to look up. */
  readonly code: string;
  /** A warning stops nothing. */
  readonly severity: "error" | "warning";
  /** A sentence: where, what, and what to do. */
  readonly message: string;
}

/** What stops the build. */
export const error = (code: string, message: string): InputProblem => ({ code, severity: "error", message });

/** What the condition mentions, and what stops nothing. */
export const warning = (code: string, message: string): InputProblem => ({ code, severity: "warning", message });

export const errorsOf = (problems: readonly InputProblem[]): readonly InputProblem[] =>
  problems.filter(({ severity }) => severity === "error");

/** The condition InputsValid: every problem in one numbered list, those that stop it first. */
export function inputsValid(problems: readonly InputProblem[]): {
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
} {
  const errors = errorsOf(problems);
  const all = [...errors, ...problems.filter(({ severity }) => severity === "warning")];
  const message = all
    .map(
      ({ code, severity, message: says }, index) =>
        `${index + 1}. ${severity === "warning" ? "(warning) " : ""}${code}: ${says}`,
    )
    .join("\n")
    .slice(0, 16_000);
  return errors.length === 0
    ? { status: "True", reason: all[0]?.code ?? "AsExpected", message }
    : { status: "False", reason: errors[0]?.code ?? "", message };
}
