import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commands } from "./commands.ts";
import { commandHelp, overview, wrapped } from "./help.ts";

/** Options that only the suite's own processes give each other. */
const internal = ["index"];
/** Where options stand that several commands share. */
const shared = ["cluster-objects.ts", "bootstrap-options.ts"];

const sourceOf = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8");

/** Names and one-letter names of the options that a file reads. */
const optionsIn = (source: string): readonly (readonly [name: string, short: string | undefined])[] =>
  [...source.matchAll(/"?([a-z][\w-]*)"?: \{\s*type: "(?:string|boolean)"(?:[^}]*?short: "(\w)")?/g)].map(
    ([, name = "", short]) => [name, short],
  );

describe.for(Object.entries(commands))("mco %s", ([name, command]) => {
  const named = (command.flags ?? []).map(({ flag }) => flag.replace(/^-+/, ""));

  test("its help names every flag that it reads", () => {
    const unnamed = optionsIn(sourceOf(`commands/${name}.ts`))
      .filter(([option, short]) => !named.includes(option) && (short === undefined || !named.includes(short)))
      .map(([option]) => option);
    expect(unnamed.filter((option) => !internal.includes(option))).toEqual([]);
  });

  test("it reads every flag that its help names", () => {
    const read = [`commands/${name}.ts`, ...shared].flatMap((file) => optionsIn(sourceOf(file)).flat());
    expect(named.filter((flag) => !read.includes(flag))).toEqual([]);
  });

  test.for([80, 120, 400])("its help fits into %d columns, and never takes more than 120", (width) => {
    const longest = command.usage.map((form) => `usage: mco ${name} ${form}`.length);
    for (const line of commandHelp(name, command, width).split("\n"))
      expect(line.length).toBeLessThanOrEqual(Math.max(Math.min(width, 120), ...longest));
  });
});

test("a flag is named once for each command", () => {
  for (const { flags = [] } of Object.values(commands))
    expect(new Set(flags.map(({ flag }) => flag)).size).toBe(flags.length);
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
