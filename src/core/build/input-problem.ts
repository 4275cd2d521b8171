/** A problem of the inputs of a pool's image. */
export interface InputProblem {
  /** The identifier to look up. */
  readonly code: string;
  /** A warning does not stop the build. */
  readonly severity: "error" | "warning";
  /** A sentence: where, what, and what to do. */
  readonly message: string;
}

/** Problems that stop the build. */
export const error = (code: string, message: string): InputProblem => ({ code, severity: "error", message });

/** Problems that the condition lists and that do not stop the build. */
export const warning = (code: string, message: string): InputProblem => ({ code, severity: "warning", message });

export const errorsOf = (problems: readonly InputProblem[]): readonly InputProblem[] =>
  problems.filter(({ severity }) => severity === "error");

/** The condition InputsValid: every problem in one numbered list, those that stop the build first. */
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
