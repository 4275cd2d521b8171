/**
 * Runs the tests that `test/conformance/rows.ts` names and writes docs/conformance.md with their results. `--check` runs
 * nothing and only compares; `--missing` runs only the files with a test that was not seen passing.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  type KnownTests,
  type Outcome,
  type Outcomes,
  documentOf,
  idOf,
  idsIn,
  namedIds,
  problemsOf,
  recorded,
  together,
  unproven,
} from "../test/conformance/conformance.ts";
import { sections } from "../test/conformance/rows.ts";

const root = join(import.meta.dirname, "..");
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const page = join(root, "docs/conformance.md");
const record = join(root, "docs/conformance.json");
const folder = mkdtempSync(join(tmpdir(), "mco-conformance-"));
/** Rows name long tests as well. */
const env = { ...process.env, MCO_LONG: "1" };

const sources = new Map(
  globSync("{src,test}/**/*.ts", { cwd: root }).map((path) => [path, readFileSync(join(root, path), "utf8")]),
);

/** Ids as the sources spell them, and what is wrong with that: one id in two places would hide a failure. */
function collect(): { readonly known: KnownTests; readonly problems: readonly string[] } {
  const known = new Map<string, string>();
  const problems: string[] = [];
  for (const [path, source] of sources) {
    if (path === "test/conformance/rows.test.ts") continue;
    for (const id of idsIn(source)) {
      if (known.has(id)) problems.push(`two tests have the id ${id}: in ${known.get(id)} and in ${path}`);
      known.set(id, path);
    }
  }
  return { known, problems };
}

/** The test files that run what a file defines: itself, or those that import it. */
function testFilesOf(path: string, seen = new Set<string>()): readonly string[] {
  if (path.endsWith(".test.ts")) return [path];
  if (seen.has(path)) return [];
  seen.add(path);
  return [...sources]
    .filter(([, source]) => source.includes(`/${basename(path)}"`))
    .flatMap(([importer]) => testFilesOf(importer, seen));
}

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

function run(files: readonly string[]): Outcomes {
  const output = join(folder, "report.json");
  spawnSync(
    process.execPath,
    [vitest, "run", "--reporter=default", "--reporter=json", `--outputFile.json=${output}`, ...files],
    { cwd: root, env, stdio: "inherit" },
  );
  const outcomes: Record<string, Outcome> = {};
  for (const { assertionResults } of (JSON.parse(readFileSync(output, "utf8")) as Report).testResults) {
    for (const { title, status } of assertionResults) {
      const id = idOf(title);
      if (id === undefined) continue;
      outcomes[id] = together(outcomes[id], status === "passed" || status === "failed" ? status : "skipped");
    }
  }
  return outcomes;
}

function main(): readonly string[] {
  const unknown = process.argv.slice(2).filter((argument) => !["--check", "--missing"].includes(argument));
  if (unknown.length > 0) return [`unknown argument ${unknown.join(" ")}; known are --check and --missing`];
  const { known, problems } = collect();
  const wrong = [...problems, ...problemsOf(sections, known)];
  if (wrong.length > 0) return wrong;
  const before = existsSync(record) ? (JSON.parse(readFileSync(record, "utf8")) as Outcomes) : {};
  if (process.argv.includes("--check")) {
    const current = existsSync(page) && readFileSync(page, "utf8") === documentOf(sections, before);
    return [
      ...unproven(sections, before),
      ...(current ? [] : ["docs/conformance.md is out of date: run 'make conformance' and commit the result"]),
    ];
  }
  const ids = namedIds(sections).filter((id) => !process.argv.includes("--missing") || before[id] !== "passed");
  const again = [...new Set(ids.flatMap((id) => testFilesOf(known.get(id) ?? "")))].toSorted();
  const outcomes = recorded(sections, again.length === 0 ? before : { ...before, ...run(again) });
  writeFileSync(record, `${JSON.stringify(outcomes, undefined, 2)}\n`);
  writeFileSync(page, documentOf(sections, outcomes));
  return unproven(sections, outcomes);
}

try {
  const problems = main();
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
