import { describe, expect, test } from "vitest";
import { type EventForm, eventForms, notices } from "../../src/api/books/reports.ts";
import { bookKinds, sectionsOf, bookSections, reportReasons } from "../../src/api/books/report-table.ts";
import { sourceFiles } from "./source-files.ts";

/** Makes an Event or a journal line by hand instead of by `report`. */
const byHand = /\.event\(|\bjournal\??\s*\.line\(/;
const exempt = [
  // `report` itself.
  "src/kube/",
  // Its controllers stand in for Kubernetes' own, which keep no journal.
  "src/standin/cluster/",
];

const reports = /\breport(?:\?\.)?\(/;
/** Decisions whose reasons a controller or the daemon reports unchanged. */
const decisions = [
  "src/core/join/judge-csr.ts",
  "src/core/render/decide-render.ts",
  "src/core/pool/drain-step.ts",
  "src/core/machine/",
  "src/core/config/image-pair.ts",
];

const components = ["controller", "daemon", "operator", "os-builder", "server", "state"];
/** The page of a component with everything that it reports, a function for each happening; updates have two of their own. */
const isPage = (path: string) =>
  /^src\/daemon\/(?:update|step)-reports\.ts$/.test(path) || /^src\/[^/]+\/reports\.ts$/.test(path);
const pages = sourceFiles().filter(({ path }) => isPage(path));

const spoken = sourceFiles()
  .filter(({ path }) => !path.startsWith("src/api/") && !path.startsWith("src/kube/"))
  .map(({ path, text, code }) => ({
    text,
    isDecision: decisions.some((place) => path.startsWith(place)),
    isReporter: isPage(path) || reports.test(code),
  }))
  .filter(({ isDecision, isReporter }) => isDecision || isReporter);

/** Whether some reporter gives a journal line this reason. */
const isReason = (reason: string) =>
  spoken.some(({ text, isDecision }) =>
    isDecision ? text.includes(`"${reason}"`) : new RegExp(`\\breason:[^;{]*"${reason}"`).test(text),
  );
const isNotice = (notice: string) =>
  spoken.some(
    ({ text, isDecision }) => text.includes(`"${notice}"`) && (isDecision || /\bnotice:|\bnoticed\(/.test(text)),
  );

test("no Event and no journal line is made by hand", () => {
  const found = sourceFiles()
    .filter(({ path }) => !exempt.some((folder) => path.startsWith(folder)))
    .flatMap(({ path, code }) =>
      code.split("\n").flatMap((line, index) => (byHand.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
    );
  expect(found).toEqual([]);
});

/** Makes a report or a line where it is made known, and not on the page of its component. */
const besidePage =
  /\b(?:report|lineOf)(?:\?\.)?\(\s*\{(?!\s*(?:is:|\.\.\.lineOf\())|\bmark: "(?:begin|end|fail|skip|retry)"/;

test("every component makes its reports on one page, and each that is there is made known [guards-report-pages-1]", () => {
  expect(pages.map(({ path }) => path).filter((path) => path.endsWith("/reports.ts"))).toEqual(
    components.map((name) => `src/${name}/reports.ts`),
  );
  const others = sourceFiles().filter(({ path }) => !isPage(path));
  for (const { path, code } of pages) {
    const room = path.slice(0, path.lastIndexOf("/") + 1);
    const ofRoom = others.filter((file) => file.path.startsWith(room));
    expect(ofRoom.filter((file) => besidePage.test(file.code)).map((file) => file.path)).toEqual([]);
    const unused = [...code.matchAll(/^export (?:const|function) (\w+)/gm)].filter(
      ([, name = ""]) => !ofRoom.some((file) => new RegExp(`\\b${name}\\b`).test(file.code)),
    );
    expect(unused.map(([, name]) => name)).toEqual([]);
  }
  expect(besidePage.test('report({ about: pool, notice: "Completed", message })')).toBe(true);
  expect(besidePage.test('lineOf({ book: "cluster", chapter: "BookIndex" }, stamp)')).toBe(true);
  expect(besidePage.test('pen.report(line({ path, mark: "end", message }))')).toBe(true);
  expect(besidePage.test("context.report(imageBuilt(build, image, reason))")).toBe(false);
});

/** Complete lines that a decision of core makes, on a page for their callers. */
const decided = ["src/controller/reports.ts poolTurned", "src/server/reports.ts bootstrapServerStarted"];
/** Lines whose reason is one of many, some of them in one section and some in several. */
const ofManyReasons = [
  "src/daemon/reports.ts machineDegraded",
  "src/daemon/update-reports.ts updateInterrupted",
  "src/state/reports.ts componentDegraded",
];

test("pages leave level and section to the table of reasons wherever it has them [guards-report-pages-2]", () => {
  const functions = pages.flatMap(({ path, code }) =>
    code
      .split(/^(?=export const \w+ = \()/m)
      .filter((text) => text.startsWith("export const "))
      .map((text) => ({ name: `${path} ${/\w+(?= = )/.exec(text)?.[0]}`, text })),
  );
  // The types of these results accept no level, and no section of a reason that has one alone.
  const strict =
    /\): (?:Happening|MachineHappening|DrainHappening|(?:readonly )?PhaseReport(?:\[\])?|ReportedNotice|ClusterLine|string) =>/;
  expect(functions.filter(({ text }) => !strict.test(text)).map(({ name }) => name)).toEqual(decided);
  const asserted = functions.filter(({ text }) => /[)}] as [A-Z]/.test(text));
  expect(asserted.map(({ name }) => name)).toEqual(ofManyReasons);
  expect(pages.filter(({ code }) => /\blevel:/.test(code)).map(({ path }) => path)).toEqual([]);
});

/** A condition of a machine that is set by hand. */
const conditionByHand = /\bstatus: "(?:True|False|Unknown)"/;

test("conditions of machines come from the pages of reports, like the lines that say the same [guards-report-pages-3]", () => {
  const writers = sourceFiles().filter(
    ({ path }) =>
      (path.startsWith("src/daemon/") || path === "src/controller/report-drain.ts") &&
      !isPage(path) &&
      // Forms that the pages share, and phases of writes, which no single line is about.
      !["src/daemon/phase-reports.ts", "src/daemon/section-forms.ts"].includes(path),
  );
  expect(writers.filter(({ code }) => conditionByHand.test(code)).map(({ path }) => path)).toEqual([]);
  expect(conditionByHand.test('reporter.phases([{ type: types.updated, status: "True", reason, message }]);')).toBe(
    true,
  );
});

test("the rule finds hand-made Events and lines, and nothing else", () => {
  const finds = ["events.event(pool, {", "context.journal.line({", "journal?.line(line);"];
  expect(finds.filter((line) => !byHand.test(line))).toEqual([]);
  expect(["report({ about: pool });", "reader.line().blank"].filter((line) => byHand.test(line))).toEqual([]);
});

describe("the tables of reports", () => {
  test("every reason that becomes an Event is a reason of the journal", () => {
    expect(Object.keys(eventForms).filter((reason) => !(reason in reportReasons))).toEqual([]);
  });

  test("every reason that becomes an Event is in a section of its book and chapter", () => {
    const unreachable = Object.entries<EventForm>(eventForms).filter(
      ([reason, form]) =>
        !bookKinds
          .filter((kind) => form.in === undefined || form.in === kind)
          .flatMap((kind) =>
            Object.entries<Readonly<Record<string, readonly string[]>>>(bookSections[kind])
              .filter(([chapter]) => form.chapter === undefined || form.chapter === chapter)
              .flatMap(([chapter, sections]) =>
                sectionsOf(kind, chapter).flatMap((section) => sections[section] ?? []),
              ),
          )
          .includes(reason),
    );
    expect(unreachable).toEqual([]);
  });

  test("every reason that becomes an Event is reported", () => {
    expect(Object.keys(eventForms).filter((reason) => !isReason(reason))).toEqual([]);
    expect(isReason("NobodyReportsThis")).toBe(false);
  });

  test("every notice is used", () => {
    expect(Object.keys(notices).filter((notice) => !isNotice(notice))).toEqual([]);
    expect(isNotice("NobodyGivesThis")).toBe(false);
  });
});
