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

/** Names from the field or from a stored format. */
const allowed = new Set<string>(["libraryTest"]);

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

function offencesIn(source: string): readonly string[] {
  return declaredIn(source).filter((name) => {
    if (allowed.has(name)) return false;
    const isPart = refused.some((word) => {
      const capital = `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
      return new RegExp(`(^${word}|${capital})(?![a-rt-z])`).test(name);
    });
    return isPart || refusedWhole.some((word) => name === word);
  });
}

describe("one word for each meaning", () => {
  test("no name of a file, and none that the code declares, uses a word that the table in HACKING.md replaces", () => {
    const offences = globSync("{src,test,hack}/**/*.ts", { cwd: root })
      .filter((path) => path !== "test/guards/words.test.ts")
      .flatMap((path) =>
        offencesIn(
          `const ${basename(path, ".ts").replaceAll(/[-.](\w)/g, (_, letter: string) => letter.toUpperCase())} = 1;\n${readFileSync(join(root, path), "utf8")}`,
        ).map((name) => `${path}: ${name}`),
      );
    expect(offences).toEqual([]);
  });

  test("the table names every word that is refused", () => {
    const table = readFileSync(join(root, "HACKING.md"), "utf8").split("## Words")[1]?.toLowerCase() ?? "";
    const isNamed = (word: string) => table.includes(word.toLowerCase().replace("lookagain", "look again"));
    expect(
      [...refused, ...refusedWhole].filter((word) => !isNamed(word) && !["stories", "figure"].includes(word)),
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
