import { describe, expect, test } from "vitest";
import { readArguments } from "./arguments.ts";
import { commands } from "./commands.ts";
import { type Flag, flags, valueNameOf } from "./flags.ts";
import { commandHelp, overview } from "./help.ts";
import { codeHelp, helpCodes } from "./help-codes.ts";
import { topicHelp, topics } from "./help-topics.ts";
import { wrapped } from "./wrap-text.ts";

describe.for(Object.entries(commands))("mco %s", ([name, command]) => {
  test.for([80, 120, 400])("its help fits into %d columns, and never takes more than 120", (width) => {
    const longest = command.usage.map((form) => `usage: mco ${name} ${form}`.length);
    for (const line of commandHelp(name, command, width).split("\n"))
      expect(line.length).toBeLessThanOrEqual(Math.max(Math.min(width, 120), ...longest));
  });
});

test("a flag is named once for each command, by each of its names [cli-help-1]", () => {
  for (const of of Object.values(flags) as readonly (readonly Flag[])[]) {
    const names = of.flatMap(({ flag, short }) => (short === undefined ? [flag] : [flag, `-${short}`]));
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(of.map(valueNameOf)).size).toBe(of.length);
  }
});

test("a command reads the flags that its help names, and only the suite's own processes know others [cli-help-2]", () => {
  for (const [name, command] of Object.entries(commands)) {
    expect(command.flags).toBe((flags as Readonly<Record<string, readonly Flag[]>>)[name]);
    const internal = (command.flags ?? []).filter(({ isInternal }) => isInternal === true).map(({ flag }) => flag);
    expect([name, internal]).toEqual([name, name === "host" ? ["--index"] : []]);
    const help = commandHelp(name, command);
    for (const { flag, isInternal } of command.flags ?? [])
      expect([flag, help.includes(`  ${flag}`)]).toEqual([flag, isInternal !== true]);
  }
});

test.for([
  { args: [], values: { json: false, filename: [], workers: "3" } },
  { args: ["--json", "-f", "a", "-f", "b", "--workers=5"], values: { json: true, filename: ["a", "b"], workers: "5" } },
  { args: ["--filename", "a", "--dir", "c"], values: { filename: ["a"], dir: "c" } },
])("$args are read by their flags [cli-arguments-1]", ({ args, values }) => {
  const { values: read } = readArguments(args, [
    { flag: "--json", text: "" },
    { flag: "-f", name: "filename", value: "FILE", repeats: true, text: "" },
    { flag: "--workers", value: "N", default: "3", text: "" },
    { flag: "--dir", value: "DIR", text: "" },
  ]);
  expect(read).toMatchObject(values);
});

test("the overview lists every command", () => {
  for (const name of Object.keys(commands)) expect(overview()).toMatch(new RegExp(`^  ${name} `, "m"));
});

test.for([
  { text: "one two three", indent: 2, width: 9, lines: ["one two", "  three"] },
  { text: "one two three", indent: 0, width: 80, lines: ["one two three"] },
  { text: "a-word-that-is-too-long b", indent: 0, width: 5, lines: ["a-word-that-is-too-long", "b"] },
])("$text in $width columns", ({ text, indent, width, lines }) => {
  expect(wrapped(text, indent, width).split("\n")).toEqual(lines);
});

describe("mco help", () => {
  test.for([80, 120, 400])(
    "its topics fit into %d columns, and never take more than 120 [cli-help-topics-1]",
    (width) => {
      for (const name of Object.keys(topics)) {
        const text = topicHelp(name, width) ?? "";
        expect(text.startsWith(`${topics[name]?.summary}.\n\n`)).toBe(true);
        for (const line of text.split("\n"))
          expect([line, line.length <= Math.min(Math.max(width, 90), 120)]).toEqual([line, true]);
        expect(overview(width)).toContain(`  ${name} `);
      }
      expect(topicHelp("constructor")).toBeUndefined();
    },
  );

  test("each error code and each reason has its meaning and its remedy [cli-help-codes-1]", () => {
    expect(helpCodes().length).toBeGreaterThan(200);
    for (const code of helpCodes()) expect(codeHelp(code, 80)).toMatch(/^[^]+\n\nwhat to do: \S[^]*\n$/);
    expect(codeHelp("MCO_POOL_ABSENT")).toContain("No pool of this name exists");
    expect(codeHelp("DaemonSilent")).toContain("what to do: Look at the daemon's pod");
    expect(codeHelp("toString")).toBeUndefined();
  });
});
