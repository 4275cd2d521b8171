import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { readArguments } from "../../src/cli/arguments.ts";
import { type Command, commands } from "../../src/cli/commands.ts";
import { flagsOf, takeGlobalFlags } from "../../src/cli/global-flags.ts";
import { annotations } from "../../src/api/names.ts";

const root = join(import.meta.dirname, "../..");
const pages = [
  "README.md",
  "HACKING.md",
  "install/README.md",
  ...["docs", "docs/decisions", "docs/reference"].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `${folder}/${name}`),
  ),
];
const textOf = (page: string) => readFileSync(join(root, page), "utf8");

/** The anchors that GitHub gives to headings. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

/** Words of one command in a document, as a shell reads them, up to a comment, a pipe, a redirection or the next command. */
function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const [, quoted, plain = ""] of line.matchAll(/(?:^|\s)(?:["']([^"']*)["']|(\S+))/g)) {
    if (quoted === undefined && /^(?:#|[|>;&]|<[^A-Z])/.test(plain)) break;
    words.push(quoted ?? plain.replaceAll(/["']/g, "").replace(/[;)]+$/, ""));
    if (quoted === undefined && plain.endsWith(";")) break;
  }
  return words;
}

/** The program answers it before any command. */
const help: Command = { kind: "people", summary: "", usage: [], load: () => Promise.reject(new Error("no module")) };

/** Why the program does not take a command line of a document; `undefined`: it does. */
function whyRefused(line: string): string | undefined {
  const [name = "", ...words] = wordsOf(line);
  const command: Command | undefined = name === "help" ? help : commands[name];
  if (command === undefined) return `there is no command ${name}`;
  const verb = words.find((word) => !word.startsWith("-"));
  const { verbs, usage } = command;
  const isPlaceholder = verb === undefined || verbs === undefined || /[A-Z…|]/.test(verb);
  const isVerb = isPlaceholder || Object.hasOwn(verbs, verb) || usage.some((one) => one.startsWith(verb));
  if (!isVerb) return `mco ${name} has no verb ${verb}`;
  try {
    const flags = [...flagsOf(command), { flag: "--help", text: "" }];
    // `…` and `[flags]` stand for more. A sentence may name a command with a flag alone.
    const said = words.filter((word) => !/[[\]…]/.test(word));
    const given = takeGlobalFlags(/^-\w$/.test(said.at(-1) ?? "") ? said.slice(0, -1) : said, command);
    readArguments(given, flags, { positionals: true });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Command lines of the suite's program in the code of a document, without the program's name. */
function commandLines(text: string): readonly string[] {
  const joined = text.replaceAll(/\\\n\s*/g, " ");
  const blocks = [...joined.matchAll(/^ *```[^\n]*\n([\s\S]*?)^ *```/gm)].flatMap(([, block = ""]) =>
    block.split("\n"),
  );
  const inText = [...joined.replaceAll(/^ *```[\s\S]*?^ *```/gm, "").matchAll(/`([^`\n]+)`/g)].map(
    ([, code = ""]) => code,
  );
  return [...blocks, ...inText].flatMap((line) => {
    const [, rest] = /^\s*(?:\$ |- |run: |- run: )?(?:[A-Z_]+=\S+ )*(?:bin\/|oc |kubectl )?mco (.+)$/.exec(line) ?? [];
    return rest === undefined || /^[A-Z…]/.test(rest) ? [] : [rest];
  });
}

test("the reader of documented commands finds what is wrong with them, and nothing else", () => {
  const text = "`mco plan -f x.yaml`\n```\n$ bin/mco node relase x   # y\nmco status --wach | cat\n```";
  expect(commandLines(text)).toEqual(["node relase x   # y", "status --wach | cat", "plan -f x.yaml"]);
  expect(commandLines(text).map(whyRefused)).toEqual([
    "mco node has no verb relase",
    expect.stringContaining("there is no flag --wach"),
    undefined,
  ]);
  expect(whyRefused("frobnicate")).toBe("there is no command frobnicate");
});

describe("documents", () => {
  test.for(pages)("%s: its links have targets", (page) => {
    for (const [, target = ""] of textOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = "", anchor] = target.split("#", 2);
      const file = path === "" ? page : join(dirname(page), path);
      expect(existsSync(join(root, file)), `${page}: ${target}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(textOf(file)), `${page}: ${target}`).toContain(anchor);
    }
  });

  test.for(pages)("%s: its commands exist", (page) => {
    for (const [, verb = ""] of textOf(page).matchAll(/^(?:\$ )?(?:bin\/)?mco ([a-z-]+)/gm))
      expect(Object.keys(commands), `${page}: mco ${verb}`).toContain(verb);
  });

  test.for(pages)("%s: the program takes its commands [guards-documents-1]", (page) => {
    const refused = commandLines(textOf(page)).flatMap((line) => {
      const why = whyRefused(line);
      return why === undefined ? [] : [`${line}: ${why}`];
    });
    expect(refused).toEqual([]);
  });

  test.for(["docs/machineconfiguration.md", "docs/os-updates.md", "docs/joining.md", "docs/faq.md"])(
    "%s: some code reads each of its annotations",
    (page) => {
      const known = Object.values<string>(annotations);
      const labelsAndNames = [
        "machineconfiguration.openshift.io/role",
        "machineconfiguration.openshift.io/v1",
        "machineconfiguration.openshift.io/…",
      ];
      for (const [name] of textOf(page)
        .replaceAll("\\.", ".")
        .matchAll(/machineconfiguration\.openshift\.io\/[A-Za-z0-9…-]*[A-Za-z0-9…]/g))
        expect([...known, ...labelsAndNames]).toContain(name);
    },
  );
});
