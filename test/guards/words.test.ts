import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "./source-files.ts";

/** Words of the table in HACKING.md: none may begin a part of an identifier. */
const refused =
  "scribe story stories tale teller library shelf shelves slim homeless lookout lookAgain worksite crossOut atBirth wish twin scene arena furniture".split(
    " ",
  );
/** Refused only as whole names, since they are parts of good words. */
const refusedWhole = ["lift", "desk", "figures", "figure", "rig", "bag", "fence"] as const;

/** Refused in exported names, in names of methods and of files: inside a function they are too common to hunt. */
const refusedInExports = ["tell", "told", "settle", "farewell", "shelve", "moment", "birth"] as const;

/** Names from the field or from a stored format. */
const allowed = new Set<string>(["libraryTest"]);
/** Named after the command and the unit that users see: `mco settle`, machine-config-settle.service. */
const allowedInExports = new Set<string>(["settle", "settleUnitText"]);

/** Names that a source declares; what it uses is declared somewhere, too. */
const declaredIn = (source: string): readonly string[] => [
  ...new Set(
    [
      ...source.matchAll(
        /^\s*(?:export |default |async |abstract |static |private |readonly |get |set )*(?:const|let|function\*?|class|interface|type|readonly|get|set) #?([A-Za-z_$][\w$]*)/gm,
      ),
    ].map(([, name = ""]) => name),
  ),
];

/** Exported names, and methods with modifiers. */
const exportedIn = (source: string): readonly string[] =>
  [
    ...source.matchAll(
      /^(?:export (?:default )?(?:async |abstract )*(?:const|let|function\*?|class|interface|type) |  (?:override |async |get |set )+#?(?=\w+\())([A-Za-z_$][\w$]*)/gm,
    ),
  ].map(([, name = ""]) => name);

const hasWord = (name: string, word: string) =>
  new RegExp(`(^${word}|${word.charAt(0).toUpperCase()}${word.slice(1)})(?![a-rt-z])`).test(name);

const offencesInExports = (source: string): readonly string[] =>
  exportedIn(source).filter(
    (name) => !allowedInExports.has(name) && refusedInExports.some((word) => hasWord(name, word)),
  );

function offencesIn(source: string): readonly string[] {
  return declaredIn(source).filter((name) => {
    if (allowed.has(name)) return false;
    return refused.some((word) => hasWord(name, word)) || refusedWhole.some((word) => name === word);
  });
}

describe("one word for each meaning", () => {
  test("no file name and no declared name uses a word that the table in HACKING.md replaces", () => {
    const offences = globSync("{src,test,hack}/**/*.ts", { cwd: root })
      .filter((path) => path !== "test/guards/words.test.ts")
      .flatMap((path) =>
        offencesIn(
          `const ${basename(path, ".ts").replaceAll(/[-.](\w)/g, (_, letter: string) => letter.toUpperCase())} = 1;\n${readFileSync(join(root, path), "utf8")}`,
        ).map((name) => `${path}: ${name}`),
      );
    expect(offences).toEqual([]);
  });

  test("no exported name or file name uses a refused word", () => {
    const offences = globSync("{src,test,hack}/**/*.ts", { cwd: root })
      .filter((path) => path !== "test/guards/words.test.ts")
      .flatMap((path) =>
        offencesInExports(
          `export const ${basename(path, ".ts").replaceAll(/[-.](\w)/g, (_, letter: string) => letter.toUpperCase())} = 1;\n${readFileSync(join(root, path), "utf8")}`,
        ).map((name) => `${path}: ${name}`),
      );
    expect(offences).toEqual([]);
  });

  test.for([
    "export type Tell = 1;",
    "export const layeringTold = 1;",
    "export async function settleOnce() {}",
    "  async settleBook() {}",
  ])("the guard finds %s", (source) => expect(offencesInExports(source)).toHaveLength(1));

  test.for([
    "export const intelligence = 1;",
    "export type Settler = 1;",
    "  const told = 1;",
    "export const settleUnitText = 1;",
  ])("the guard leaves %s", (source) => expect(offencesInExports(source)).toEqual([]));

  test("the table names every word that is refused", () => {
    const table = readFileSync(join(root, "HACKING.md"), "utf8").split("## Words")[1]?.toLowerCase() ?? "";
    const isNamed = (word: string) => table.includes(word.toLowerCase().replace("lookagain", "look again"));
    expect(
      [...refused, ...refusedWhole, ...refusedInExports].filter(
        (word) => !isNamed(word) && !["stories", "figure"].includes(word),
      ),
    ).toEqual([]);
  });

  test.for(["storyLine", "memoryScribe", "MachineScene", "slimNode", "lift", "readShelves", "twins"])(
    "the guard finds %s",
    (name) => expect(offencesIn(`const ${name} = 1;`)).toEqual([name]),
  );

  test.for(["history", "scenery", "Slime", "lifted", "baggage", "rigorous", "deskew", "wished"])(
    "the guard leaves %s",
    (name) => expect(offencesIn(`const ${name} = 1;`)).toEqual([]),
  );
});
