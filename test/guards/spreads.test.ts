import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/** Functions that take any number of arguments, and are called with lists of which nobody here knows the length. */
const ofAnyLength = /^(?:Math\.(?:max|min)|.*\.(?:push|unshift))$/s;

/** Lists that end: the findings about a config are a hundred at most. */
const ofFew: readonly string[] = ["src/ignition/convert-ignition.ts"];

/** The calls that spread a list into the arguments of such a function. */
function spreadsIn(text: string): readonly string[] {
  const found: string[] = [];
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) for (const item of node) walk(item);
    else if (typeof node === "object" && node !== null) {
      const { type, start, callee, arguments: given } = node as Partial<Call>;
      if (type === "CallExpression" && callee !== undefined && given?.some((one) => one.type === "SpreadElement")) {
        const called = text.slice(callee.start, callee.end);
        if (ofAnyLength.test(called)) found.push(`line ${text.slice(0, start).split("\n").length}: ${called}`);
      }
      for (const value of Object.values(node)) walk(value);
    }
  };
  walk(parseAst(text, { lang: "ts" }));
  return found;
}

interface Call {
  readonly type: string;
  readonly start: number;
  readonly callee: { readonly start: number; readonly end: number };
  readonly arguments: readonly { readonly type: string }[];
}

test("no call spreads a list whose length others choose: a hundred thousand arguments end the program [guards-spreads-1]", () => {
  const found = sourceFiles()
    .filter(({ path, text }) => text.includes("...") && !ofFew.includes(path))
    .flatMap(({ path, text }) => spreadsIn(text).map((call) => `${path} ${call}`));
  expect(found, "use leastOf, greatestOf and pushAll").toEqual([]);
});

test("the guard finds such calls [guards-spreads-2]", () => {
  const text = "Math.max(0, ...times);\nMath.min(a, b);\nlist\n  .items.push(...more);\nlist.push([...more]);\n";
  expect(spreadsIn(text)).toEqual(["line 1: Math.max", "line 3: list\n  .items.push"]);
});
