import { agreementTable } from "../api-suites/agreement.ts";
import { type Row, type Section, weaknesses } from "./define-rows.ts";

/** The result of a test in the document's last run. */
export type Outcome = "passed" | "failed" | "skipped";
/** Id of a test → the file that contains it. */
export type KnownTests = ReadonlyMap<string, string>;
/** Id of a test → its result. */
export type Outcomes = Readonly<Record<string, Outcome>>;

const rowsOf = (sections: readonly Section[]): readonly Row[] => sections.flatMap(({ rows }) => rows);

/** The id at the end of a title; `undefined` for a test that no rule names. */
export const idOf = (title: string): string | undefined => / \[([a-z0-9-]+-\d+)\]$/.exec(title)?.[1];

/** The ids in the source of a test. */
export const idsIn = (source: string): readonly string[] =>
  [...source.matchAll(/ \[([a-z0-9-]+-\d+)\]["`],/g)].map(([, id = ""]) => id);

/** Ids that rows name, sorted. */
export const namedIds = (sections: readonly Section[]): readonly string[] =>
  [...new Set(rowsOf(sections).flatMap(({ shown }) => shown))].toSorted();

/** Problems of the rows themselves: a duplicate id, a row without a test or a reason, a test that does not exist. */
export function problemsOf(sections: readonly Section[], known: KnownTests): readonly string[] {
  const ids = new Set<string>();
  return rowsOf(sections).flatMap(({ id, does, shown, skipped }): readonly string[] => {
    const problems: string[] = [];
    if (ids.has(id)) problems.push("is there twice");
    ids.add(id);
    if (does.trim() === "") problems.push("does not say what happens");
    if (skipped !== undefined && skipped.trim() === "") problems.push("is skipped without a reason");
    if (skipped !== undefined && shown.length > 0) problems.push("is skipped and has a test");
    if (skipped === undefined && shown.length === 0) problems.push("has no test and no reason");
    for (const each of shown) if (!known.has(each)) problems.push(`names a test that does not exist: ${each}`);
    return problems.map((problem) => `row ${id}: ${problem}`);
  });
}

/** Rows whose tests did not all pass when they were last run. */
export function unproven(sections: readonly Section[], outcomes: Outcomes): readonly string[] {
  return rowsOf(sections).flatMap(({ id, shown }) =>
    shown.flatMap((each) => {
      const outcome = outcomes[each];
      return outcome === "passed" ? [] : [`row ${id}: ${each}: ${outcome ?? "never run"}`];
    }),
  );
}

/** The results of tests that rows name, in a fixed order. */
export const recorded = (sections: readonly Section[], outcomes: Outcomes): Outcomes =>
  Object.fromEntries(
    namedIds(sections).flatMap((id) => {
      const outcome = outcomes[id];
      return outcome === undefined ? [] : [[id, outcome] as const];
    }),
  );

/**
 * Several tests may share one id: the rows of a table, and a suite that runs against several targets. One failure fails
 * the id; a skipped test counts only if none passed.
 */
export function together(before: Outcome | undefined, next: Outcome): Outcome {
  if (before === "failed" || next === "failed") return "failed";
  return before === "passed" || next === "passed" ? "passed" : "skipped";
}

type Result = Outcome | "left out";

function resultOf({ shown, skipped }: Row, outcomes: Outcomes): Result {
  if (skipped !== undefined) return "left out";
  const all = shown.map((id) => outcomes[id] ?? "failed");
  return all.includes("failed") ? "failed" : all.includes("skipped") ? "skipped" : "passed";
}

const results: readonly Result[] = ["passed", "failed", "skipped", "left out"];
const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/**
 * The document: rows with their tests and results, and the number of each kind. Equal inputs give an equal document.
 */
export function documentOf(sections: readonly Section[], outcomes: Outcomes): string {
  const counts = sections.map(({ id, title, rows }) => ({
    id,
    title,
    of: results.map((result) => rows.filter((row) => resultOf(row, outcomes) === result).length),
  }));
  const total = results.map((_, index) => counts.reduce((sum, { of }) => sum + (of[index] ?? 0), 0));
  const parts = sections.map(({ id, title, rows }) => {
    const lines = rows.map((row) => {
      const tests =
        row.skipped === undefined
          ? row.shown.map((each) => `\`${each}\``).join(" ")
          : `*left out: ${cell(row.skipped)}*`;
      return `| ${row.id} | ${cell(row.does)} | ${row.skipped === undefined ? row.as : ""} | ${tests} | ${resultOf(row, outcomes)} |`;
    });
    return `## ${id} ${title}\n\n| rule | what this suite does | as | shown by | result |\n| --- | --- | --- | --- | --- |\n${lines.join("\n")}`;
  });
  const rows = rowsOf(sections);
  const removed = Object.entries(weaknesses).map(
    ([weakness, text]) =>
      `| ${weakness} | ${cell(text)} | ${rows
        .filter(({ as }) => as === `ours (${weakness})`)
        .map(({ id }) => id)
        .join("; ")} |`,
  );
  return (
    [
      "# What machines and control plane do, rule by rule",
      'Each rule of the reference (openshift/machine-config-operator), in our words, with the tests that show what this suite does there. "As reference" is the same; "ours" is another thing on purpose, with the weakness of the reference that it removes, if it is one of those listed at the end. A test is named by the id at the end of its title: `make test ARGS="-t daemon-update-1"` runs it.',
      "Written by `make conformance`, which runs these tests, from `test/conformance/rows.ts` and `control-plane-rows.ts`. Sections without a letter are a machine's, `C` is the control plane's. `make check` fails when a rule has neither a test nor a reason, when a test does not exist, when one did not pass, or when this page is out of date.",
      `| section | rules | ${results.join(" | ")} |\n| --- | --- | ${results.map(() => "---").join(" | ")} |\n${counts.map(({ id, title, of }) => `| ${id} ${title} | ${of.reduce((sum, each) => sum + each, 0)} | ${of.join(" | ")} |`).join("\n")}\n| all | ${total.reduce((sum, each) => sum + each, 0)} | ${total.join(" | ")} |`,
      ...parts,
      agreementTable(),
      `## Weaknesses of the reference that are gone\n\n| | weakness | rules |\n| --- | --- | --- |\n${removed.join("\n")}`,
    ].join("\n\n") + "\n"
  );
}
