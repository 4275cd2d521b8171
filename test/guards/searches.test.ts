import fc from "fast-check";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

interface Search {
  readonly path: string;
  readonly pattern: RegExp;
}

const length = 8_000;
/** A pass over such a text takes less than a millisecond, a search that is quadratic in it a hundred. */
const mostMs = 15;
const whiteSpace = [" ", "\t", "\n", "\r\n", "\f", "\u00a0", "\u2028"];

/** Searches of short texts alone: columns of a table, and words of a condition. */
const ofShortTexts: readonly string[] = ["src/standin/apiserver/schema/json-path.ts", "src/core/operator/health.ts"];

/** Only such a pattern can go over a text more than once. */
const repeats = /[*+]|,\}/;

/** The regular expressions that a file writes out. */
function searchesIn(path: string, text: string): readonly Search[] {
  const found: Search[] = [];
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) for (const item of node) walk(item);
    else if (typeof node === "object" && node !== null) {
      if ("regex" in node && node.regex !== null) {
        const { pattern, flags } = node.regex as { readonly pattern: string; readonly flags: string };
        found.push({ path, pattern: new RegExp(pattern, flags) });
      }
      for (const value of Object.values(node)) walk(value);
    }
  };
  walk(parseAst(text, { lang: "ts" }));
  return found;
}

/** Beginnings of what a pattern finds, each of them once: blanks may follow wherever they end. */
function beginningsOf({ source, flags }: RegExp): readonly string[] {
  // What is before or after a match, and words that repeat, are no part of what fast-check writes.
  const plain = source.replaceAll(/\(\?<?[=!](?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\\[bB1-9]/g, "");
  if (plain === "") return [""];
  const matches = fc.stringMatching(new RegExp(plain, flags.replaceAll(/[gimy]/g, "")));
  const samples = fc.sample(matches, { seed: 1, numRuns: 2 }).map((text) => text.slice(0, 40));
  return [...new Set(["", ...samples.flatMap((text) => Array.from(text, (_, at) => text.slice(0, at + 1)))])];
}

function cpuMsOf(search: () => unknown): number {
  const began = process.threadCpuUsage();
  search();
  return process.threadCpuUsage(began).user / 1000;
}

/** The text that a search takes too long for; `undefined`: none. A pause of the process is no fault of the search. */
function slowTextOf(pattern: RegExp): string | undefined {
  for (const beginning of beginningsOf(pattern))
    for (const blank of beginning === "" ? whiteSpace : [" ", "\n"]) {
      const text = `${beginning}${blank.repeat(length / blank.length)}\0`;
      const look = () => text.replace(pattern, "");
      if (cpuMsOf(look) > mostMs && cpuMsOf(look) > mostMs) return JSON.stringify([beginning, blank]);
    }
  return undefined;
}

test("a long run of white space costs each search one look [searches-1]", { timeout: 120_000 }, () => {
  const searches = sourceFiles()
    .filter(({ path }) => !ofShortTexts.includes(path))
    .flatMap(({ path, text }) => searchesIn(path, text))
    .filter(({ pattern }) => repeats.test(pattern.source));
  const distinct = [...new Map(searches.map((search) => [String(search.pattern), search])).values()];
  expect(distinct.length).toBeGreaterThan(200);
  const slow = distinct.flatMap(({ path, pattern }) => {
    const text = slowTextOf(pattern);
    return text === undefined ? [] : [`${path}: ${String(pattern)} after ${text}`];
  });
  expect(slow).toEqual([]);
});

test.for([
  ["blanks of other lines", /^\s*default_runtime\s*=\s*"([^"]*)"/m],
  ["blanks that two parts may take", /^kind:[ \t]*Secret[ \t]*,?[ \t]*$/m],
  ["blanks at the end", /\s+$/],
] as const)("a search that is quadratic in %s is found [searches-2]", ([, pattern]) => {
  expect(slowTextOf(pattern)).toBeDefined();
});
