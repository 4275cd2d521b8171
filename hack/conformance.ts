/**
 * Runs the tests that `test/conformance/rows.ts` names and writes docs/conformance.md with their results. `--check`
 * runs nothing and only compares; `--missing` runs the files only of which some test was not seen passing.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import {
  type KnownTests,
  type Outcome,
  type Outcomes,
  documentOf,
  filesOf,
  problemsOf,
  recorded,
  unproven,
} from "../test/conformance/conformance.ts";
import { sections } from "../test/conformance/rows.ts";

const root = join(import.meta.dirname, "..");
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const page = join(root, "docs/conformance.md");
const record = join(root, "docs/conformance.json");
const files = filesOf(sections);
const folder = mkdtempSync(join(tmpdir(), "mco-conformance-"));
/** Rows name long tests as well. */
const env = { ...process.env, MCO_LONG: "1" };

/** The tests of the named files; collected as they would run, so that tables show each of their rows. */
function collect(): KnownTests {
  const output = join(folder, "list.json");
  execFileSync(process.execPath, [vitest, "list", "--no-static-parse", `--json=${output}`, ...files], {
    cwd: root,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const known = new Map<string, string[]>();
  for (const { name, file } of JSON.parse(readFileSync(output, "utf8")) as {
    readonly name: string;
    readonly file: string;
  }[]) {
    const path = relative(root, file);
    known.set(path, [...(known.get(path) ?? []), name]);
  }
  return known;
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

function run(files: readonly string[]): Outcomes {
  const output = join(folder, "report.json");
  spawnSync(
    process.execPath,
    [vitest, "run", "--reporter=default", "--reporter=json", `--outputFile.json=${output}`, ...files],
    { cwd: root, env, stdio: "inherit" },
  );
  const outcomes: Record<string, Record<string, Outcome>> = {};
  for (const { name, assertionResults } of (JSON.parse(readFileSync(output, "utf8")) as Report).testResults) {
    const of = (outcomes[relative(root, name)] ??= {});
    for (const { ancestorTitles, title, status } of assertionResults) {
      const test = [...ancestorTitles, title].join(" > ");
      const outcome = status === "passed" || status === "failed" ? status : "skipped";
      // Two tests of one name: the worse one counts.
      if (of[test] === undefined || of[test] === "passed") of[test] = outcome;
    }
  }
  return outcomes;
}

function main(): readonly string[] {
  const known = collect();
  const wrong = problemsOf(sections, known);
  if (wrong.length > 0) return wrong;
  const before = existsSync(record) ? (JSON.parse(readFileSync(record, "utf8")) as Outcomes) : {};
  if (process.argv.includes("--check")) {
    const outcomes = before;
    const current = existsSync(page) && readFileSync(page, "utf8") === documentOf(sections, outcomes);
    return [
      ...unproven(sections, known, outcomes),
      ...(current ? [] : ["docs/conformance.md is out of date: run 'make conformance' and commit the result"]),
    ];
  }
  const isMissing = (file: string) =>
    unproven(sections, known, before).some((problem) => problem.includes(`: ${file} > `));
  const again = process.argv.includes("--missing") ? files.filter(isMissing) : files;
  const outcomes = recorded(sections, again.length === 0 ? before : { ...before, ...run(again) });
  writeFileSync(record, `${JSON.stringify(outcomes, undefined, 2)}\n`);
  writeFileSync(page, documentOf(sections, outcomes));
  return unproven(sections, known, outcomes);
}

try {
  const problems = main();
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
