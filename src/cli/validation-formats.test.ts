import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { type Validation, validationFormats } from "./validation-formats.ts";

const typed = commandLine("mco-formats-");
const hasPython = spawnSync("python3", ["-c", "pass"]).status === 0;

const wrong = {
  file: "./a, b/100%.yaml",
  document: 2,
  object: 'MachineConfig/a<b>"&',
  severity: "error",
  path: "spec.x",
  reason: "is wrong:\ntwice\u0001",
  remedy: "write 1",
  position: { line: 7, column: 3 },
} as const;
const found: Validation = {
  documents: [
    { file: wrong.file, document: 1, object: "MachineConfig/fine" },
    { file: wrong.file, document: 2, object: wrong.object },
    { file: "none.yaml", document: 0 },
    { file: "-", document: 1 },
  ],
  findings: [
    wrong,
    { ...wrong, severity: "warning", remedy: undefined as never, reason: "is odd" },
    wrong,
    { file: "none.yaml", document: 0, severity: "error", path: "", reason: "there is no such file or folder" },
    { file: "-", document: 1, severity: "error", path: "", reason: "no YAML" },
  ],
};

describe("what mco validate found", () => {
  test("a finding is one line of text, whatever is in its names [cli-validation-formats-6]", () => {
    const command = "a\n::add-mask::b\r::error ::c\t";
    const finding = { ...wrong, file: command, object: command, path: command, reason: command, remedy: command };
    const lines = validationFormats.text({ documents: [wrong], findings: [finding] }).split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toContain("a\\u000a::add-mask::b");
    expect(lines.filter((line) => line.startsWith("::"))).toEqual([]);
  });

  test("GitHub reads an annotation for each, however it is written [cli-validation-formats-1]", () => {
    expect(validationFormats.github(found).split("\n")).toEqual([
      '::error file=a%2C b/100%25.yaml,line=7,col=3,title=MachineConfig/a<b>"&::spec.x: is wrong:%0Atwice\u0001; write 1',
      '::warning file=a%2C b/100%25.yaml,line=7,col=3,title=MachineConfig/a<b>"&::spec.x: is odd',
      '::error file=a%2C b/100%25.yaml,line=7,col=3,title=MachineConfig/a<b>"&::spec.x: is wrong:%0Atwice\u0001; write 1',
      "::error file=none.yaml::there is no such file or folder",
      "::error line=1,col=1,title=document 1::no YAML",
      "4 documents: 4 errors, 1 warning",
      "",
    ]);
  });

  test("GitLab knows a problem again by its mark, wherever it stands by then [cli-validation-formats-2]", () => {
    const issues = (validation: Validation) =>
      JSON.parse(validationFormats.gitlab(validation)) as readonly {
        readonly fingerprint: string;
        readonly severity: string;
        readonly location: object;
      }[];
    const first = issues(found);
    expect(first.map(({ severity, location }) => [severity, location])).toEqual([
      ["major", { path: "a, b/100%.yaml", lines: { begin: 7 } }],
      ["minor", { path: "a, b/100%.yaml", lines: { begin: 7 } }],
      ["major", { path: "a, b/100%.yaml", lines: { begin: 7 } }],
      ["major", { path: "none.yaml", lines: { begin: 1 } }],
      ["major", { path: "stdin", lines: { begin: 1 } }],
    ]);
    expect(new Set(first.map(({ fingerprint }) => fingerprint)).size).toBe(5);
    const moved = found.findings.map((finding) => ({ ...finding, position: { line: 99, column: 1 } }));
    expect(issues({ ...found, findings: moved }).map(({ fingerprint }) => fingerprint)).toEqual(
      first.map(({ fingerprint }) => fingerprint),
    );
  });

  test("SARIF names places by URI, and a region where there is one [cli-validation-formats-3]", () => {
    const { runs, version } = JSON.parse(validationFormats.sarif(found)) as {
      readonly version: string;
      readonly runs: readonly {
        readonly results: readonly { readonly level: string; readonly locations: readonly object[] }[];
      }[];
    };
    expect(version).toBe("2.1.0");
    expect(runs[0]?.results.map(({ level, locations }) => [level, locations[0]])).toMatchObject([
      [
        "error",
        {
          physicalLocation: {
            artifactLocation: { uri: "a%2C%20b/100%25.yaml" },
            region: { startLine: 7, startColumn: 3 },
          },
        },
      ],
      ["warning", {}],
      ["error", { logicalLocations: [{ fullyQualifiedName: 'MachineConfig/a<b>"&: spec.x' }] }],
      ["error", { physicalLocation: { artifactLocation: { uri: "none.yaml" } } }],
      ["error", { physicalLocation: { artifactLocation: { uri: "stdin" } } }],
    ]);
  });

  test.skipIf(!hasPython)("a reader of XML finds a test for each document [cli-validation-formats-4]", () => {
    const program = `
import json, sys, xml.etree.ElementTree as tree
suites = tree.fromstring(sys.stdin.read())
print(json.dumps([dict(suites.attrib)] + [[c.get("classname"), c.get("name"), [f.get("message") for f in c.findall("failure")], [o.text for o in c.findall("system-out")]] for c in suites.iter("testcase")]))`;
    const { stdout, stderr } = spawnSync("python3", ["-c", program], {
      input: validationFormats.junit(found),
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([
      { tests: "4", failures: "3", errors: "0" },
      [wrong.file, "MachineConfig/fine", [], []],
      [
        wrong.file,
        wrong.object,
        // A reader takes a line feed in an attribute for a space.
        ["spec.x: is wrong: twice\ufffd; write 1"],
        [`warning: ${wrong.file}:7:3: spec.x: is odd`],
      ],
      ["none.yaml", "the file", ["there is no such file or folder"], []],
      ["-", "document 1", ["no YAML"], []],
    ]);
  });

  test("is printed as it is asked for, and nothing else is [cli-validation-formats-5]", async () => {
    const path = join(typed.folder, "a.yaml");
    writeFileSync(path, "kind: A\n");
    const { code, out } = await typed.mco("validate", path, "--format", "github");
    expect([code, out.split("\n")[0]]).toEqual([
      1,
      `::error file=${path},line=1,col=1,title=document 1::apiVersion, kind and metadata.name are required`,
    ]);
    expect(await typed.mco("validate", path, "--format", "sarfi")).toMatchObject({ code: "MCO_USAGE", out: "" });
    expect(await typed.mco("validate", path, "--json", "--format", "text")).toMatchObject({ code: "MCO_USAGE" });
  });
});
