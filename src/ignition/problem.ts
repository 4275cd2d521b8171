/** One finding about a config. */
export interface Problem {
  /** Where, in the form `storage.files[2].mode`; empty for the config as a whole. */
  readonly path: string;
  /** What is wrong, as a sentence without a final full stop. */
  readonly reason: string;
  /** The remedy. */
  readonly remedy?: string;
  /** `error`: it is refused. `warning`: it renders, but does not do what its author expects. */
  readonly severity: "error" | "warning";
  /** It stands for problems of the items of the list or map at `path` that are not named one by one. */
  readonly isRest?: true;
}

/** Joins a path and a field name or list index. */
export const pathTo = (path: string, step: string | number): string =>
  typeof step === "number" ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`;

/** Collects findings, at most `Findings.limit` of them, so that a hostile config cannot inflate the answer. */
export class Findings {
  static readonly limit = 100;
  readonly problems: Problem[] = [];
  #errors = 0;

  error(path: string, reason: string, remedy?: string): void {
    this.#errors += 1;
    if (this.problems.length < Findings.limit)
      this.problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "error" });
    // Earlier warnings must never hide an error.
    else if (this.#errors === 1) this.problems[Findings.limit - 1] = { path, reason, severity: "error" };
  }

  warning(path: string, reason: string, remedy?: string): void {
    if (this.problems.length < Findings.limit)
      this.problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "warning" });
  }

  get hasErrors(): boolean {
    return this.#errors > 0;
  }

  get errors(): Problem[] {
    return this.problems.filter((problem) => problem.severity === "error");
  }
}

/** The findings as one line for conditions and messages. */
export const sentenceOf = (problems: readonly Problem[], most = 3): string => {
  const shown = problems.slice(0, most).map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`));
  const more = problems.length - shown.length;
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
};
