import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { countText } from "../core/text/count-text.ts";
import { printableLine } from "../core/text/printable.ts";
import { commandEscapesOfXml, withoutHashCommands, withoutPipelineCommands } from "../core/text/pipeline-commands.ts";
import type { Problem } from "../ignition/problem.ts";
import { type Place, type Position, documentOf, placeText } from "./manifests.ts";
import { escapeMarkup } from "./escape-markup.ts";
import { version } from "./version.ts";

/** A problem with where it stands. */
export interface Finding extends Problem, Place {
  readonly position?: Position;
  /** `MachineConfig/99-worker-chrony`, `ImagePolicy/namespace/name` */
  readonly object?: string;
}

/** What was looked at, and what was found. */
export interface Validation {
  readonly documents: readonly (Place & { readonly object?: string })[];
  readonly findings: readonly Finding[];
}

const errorsIn = (findings: readonly Finding[]) => findings.filter(({ severity }) => severity === "error").length;

function summary({ documents, findings }: Validation): string {
  const errors = errorsIn(findings);
  return `${countText(documents.length, "document")}: ${countText(errors, "error")}, ${countText(findings.length - errors, "warning")}\n`;
}

/** What is wrong, and what helps: without the place. */
const messageOf = ({ path, reason, remedy }: Finding): string =>
  [...(path === "" ? [] : [path]), reason].join(": ") + (remedy === undefined ? "" : `; ${remedy}`);

/** The object, or the number of the document; nothing where a file as a whole is meant. */
const subjectOf = (finding: Finding): readonly string[] =>
  finding.object === undefined ? documentOf(finding) : [finding.object];

const firstLine: Position = { line: 1, column: 1 };
/** Readers of reports want a position for each finding. */
const positionIn = ({ position, document }: Finding): Position | undefined =>
  position ?? (document === 0 ? undefined : firstLine);

function text(validation: Validation): string {
  const lines = validation.findings.map((finding) =>
    // A line feed in a name must not begin a line: pipelines read lines that begin with `::` as commands.
    printableLine(
      [placeText(finding, positionIn(finding)), finding.severity, ...subjectOf(finding), messageOf(finding)].join(": "),
    ),
  );
  return `${lines.map((line) => `${line}\n`).join("")}${summary(validation)}`;
}

function json({ documents, findings }: Validation): string {
  const errors = errorsIn(findings);
  const problems = findings.map(({ position, ...finding }) => ({ ...finding, ...position }));
  return `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Validation", documents: documents.length, errors, warnings: findings.length - errors, problems })}\n`;
}

/** Standard input has no path. */
const fileOf = (file: string): string | undefined => (file === "-" ? undefined : file.replace(/^(?:\.\/)+/, ""));

/** Other pipelines read commands of their own in these lines. */
const inData = (value: string) =>
  withoutHashCommands(value).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
const inProperty = (value: string) => inData(value).replaceAll(":", "%3A").replaceAll(",", "%2C");

/** Annotations of GitHub's workflows. Source: docs.github.com/en/actions/reference/workflow-commands-for-github-actions */
function github(validation: Validation): string {
  const lines = validation.findings.map((finding) => {
    const position = positionIn(finding);
    const properties = {
      file: fileOf(finding.file),
      line: position?.line,
      col: position?.column,
      title: subjectOf(finding)[0],
    };
    const list = Object.entries(properties).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${inProperty(String(value))}`],
    );
    return `::${finding.severity}${list.length === 0 ? "" : ` ${list.join(",")}`}::${inData(messageOf(finding))}\n`;
  });
  return `${lines.join("")}${summary(validation)}`;
}

/** Identify a problem whatever line it moves to. */
function fingerprints(findings: readonly Finding[]): readonly string[] {
  const seen = new Map<string, number>();
  return findings.map((finding) => {
    const what = JSON.stringify([finding.file, finding.object, finding.path, finding.reason]);
    const times = (seen.get(what) ?? 0) + 1;
    seen.set(what, times);
    return bytesToHex(sha256(utf8ToBytes(`${what}${times}`)));
  });
}

/** A report of GitLab's code quality. Source: docs.gitlab.com/ci/testing/code_quality */
function gitlab({ findings }: Validation): string {
  const marks = fingerprints(findings);
  const issues = findings.map((finding, index) => ({
    description: [...subjectOf(finding), messageOf(finding)].join(": "),
    check_name: "mco-validate",
    fingerprint: marks[index],
    severity: finding.severity === "error" ? "major" : "minor",
    location: { path: fileOf(finding.file) ?? "stdin", lines: { begin: positionIn(finding)?.line ?? 1 } },
  }));
  return `${JSON.stringify(issues)}\n`;
}

/** A file as a URI: relative to where the command ran, unless it was named by its whole path. */
const uriOf = (file: string): string => {
  const path = (fileOf(file) ?? "stdin").split("/").map(encodeURIComponent).join("/");
  return path.startsWith("/") ? `file://${path}` : path;
};

/** OASIS SARIF 2.1.0. */
function sarif({ findings }: Validation): string {
  const marks = fingerprints(findings);
  const results = findings.map((finding, index) => {
    const position = positionIn(finding);
    const region = position === undefined ? {} : { region: { startLine: position.line, startColumn: position.column } };
    const [subject] = subjectOf(finding);
    return {
      ruleId: "mco-validate",
      level: finding.severity,
      message: { text: messageOf(finding) },
      locations: [
        {
          physicalLocation: { artifactLocation: { uri: uriOf(finding.file) }, ...region },
          ...(subject === undefined
            ? {}
            : {
                logicalLocations: [
                  { fullyQualifiedName: [subject, ...(finding.path === "" ? [] : [finding.path])].join(": ") },
                ],
              }),
        },
      ],
      partialFingerprints: { "problem/v1": marks[index] },
    };
  });
  const driver = {
    name: "mco validate",
    version,
    rules: [
      {
        id: "mco-validate",
        shortDescription: { text: "A manifest that a cluster refuses, or that has less effect than it says" },
      },
    ],
  };
  return `${JSON.stringify({
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver }, results }],
  })}\n`;
}

/** One test for each document, as JUnit's Ant task reports them. */
function junit({ documents, findings }: Validation): string {
  const at = ({ file, document }: Place) => `${file}\n${document}`;
  const findingsAt = Map.groupBy(findings, at);
  const cases = documents.map((place) => {
    const own = (findingsAt.get(at(place)) ?? []).filter(
      (finding) => place.object === undefined || finding.object === place.object,
    );
    const told = (finding: Finding) => `${placeText(finding, positionIn(finding))}: ${messageOf(finding)}`;
    const of = (severity: Finding["severity"]) => own.filter((finding) => finding.severity === severity);
    const [first, ...more] = of("error");
    const failure =
      first === undefined
        ? ""
        : `<failure type="error" message="${escapeMarkup(messageOf(first))}">${escapeMarkup([first, ...more].map(told).join("\n"))}</failure>`;
    const warnings = of("warning");
    const out =
      warnings.length === 0
        ? ""
        : `<system-out>${escapeMarkup(warnings.map((one) => `warning: ${told(one)}`).join("\n"))}</system-out>`;
    const name = place.object ?? documentOf(place)[0] ?? "the file";
    return {
      fails: first !== undefined,
      xml: `    <testcase classname="${escapeMarkup(place.file)}" name="${escapeMarkup(name)}">${failure}${out}</testcase>\n`,
    };
  });
  const counts = `tests="${cases.length}" failures="${cases.filter(({ fails }) => fails).length}" errors="0"`;
  const suites = `<testsuites ${counts}>\n  <testsuite name="mco validate" ${counts}>\n${cases.map(({ xml }) => xml).join("")}  </testsuite>\n</testsuites>\n`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n${withoutPipelineCommands(suites, commandEscapesOfXml)}`;
}

/** How `mco validate` prints what it found. */
export const validationFormats = { text, json, github, gitlab, sarif, junit } as const;
export type ValidationFormat = keyof typeof validationFormats;
