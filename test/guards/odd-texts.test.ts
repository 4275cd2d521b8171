import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-files.ts";

/** Words that read as translated: `correct`, `again`, `fix` and `meanwhile` are meant. */
const oddWords = /\b(?:[Mm]end(?:s|ed|ing)?|[Aa]new|[Pp]ut right|in the meantime of)\b/g;

/** A sentence that names its actor late: one that begins with these words and is no question. */
const lateActors = /(?:^|[.!?:] |\n|"|`|\* |# |\| )(?:What|Whoever|Who|Somebody)\b[^.!?;\n]*[.!?;\n]?/g;

/** Odd texts that are left, by room. A change that lowers a number enters the new one; none may rise. */
const left: Readonly<Record<string, number>> = {
  ".": 3,
  docs: 58,
  hack: 21,
  "src/api": 9,
  "src/build-image": 5,
  "src/cli": 42,
  "src/controller": 46,
  "src/core": 1,
  "src/core/books": 21,
  "src/core/build": 22,
  "src/core/certificates": 3,
  "src/core/config": 27,
  "src/core/images": 7,
  "src/core/join": 10,
  "src/core/kubelet": 30,
  "src/core/machine": 31,
  "src/core/metrics": 4,
  "src/core/operator": 21,
  "src/core/pool": 48,
  "src/core/preview": 101,
  "src/core/render": 10,
  "src/core/runtime": 45,
  "src/core/text": 7,
  "src/daemon": 25,
  "src/host": 36,
  "src/ignition": 16,
  "src/kube": 8,
  "src/operator": 33,
  "src/os-builder": 20,
  "src/ports": 6,
  "src/registry": 10,
  "src/server": 16,
  "src/standin": 5,
  "src/standin/apiserver": 61,
  "src/standin/cluster": 33,
  "src/state": 7,
  test: 164,
};

/** `src/core/pool` of a file in it; the folder that a file of another layer lies in. */
function roomOf(path: string): string {
  const parts = path.split("/");
  if (parts[0] !== "src") return parts.length > 1 ? (parts[0] ?? "") : ".";
  const isDeep = (parts[1] === "core" || parts[1] === "standin") && parts.length > 3;
  return parts.slice(0, isDeep ? 3 : 2).join("/");
}

/** Prose of a file: of a page all but its blocks of code, of a source its comments and strings. */
function proseOf(path: string, text: string): readonly string[] {
  if (path.endsWith(".md")) return [text.replaceAll(/```[\s\S]*?```/g, "")];
  return [...text.matchAll(/\/\*\*?[\s\S]*?\*\/|(?:^|\s)\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g)].map(
    ([found]) => found.replaceAll(/\n\s*\* ?/g, " "),
  );
}

const oddIn = (prose: string): readonly string[] => [
  ...(prose.match(oddWords) ?? []),
  ...(prose.match(lateActors) ?? []).filter((sentence) => !sentence.endsWith("?")),
];

const pages = globSync(["*.md", "{docs,examples,install}/**/*.md", "{src,test,hack}/**/*.{ts,md}"], { cwd: root })
  .filter((path) => !path.includes("node_modules") && !path.endsWith("odd-texts.test.ts"))
  // Generated from texts that are counted where they stand.
  .filter(
    (path) => !/^docs\/(?:errors|conformance|benchmarks)\.md$|^docs\/reference\/|kubernetes-types\.ts$/.test(path),
  );

test("texts name the actor, then the verb: those that do not only become fewer [guards-odd-texts-1]", () => {
  const counts: Record<string, number> = {};
  for (const path of pages) {
    const odd = proseOf(path, readFileSync(join(root, path), "utf8")).flatMap(oddIn).length;
    if (odd > 0) counts[roomOf(path)] = (counts[roomOf(path)] ?? 0) + odd;
  }
  const risen = Object.entries(counts).filter(([room, count]) => count > (left[room] ?? 0));
  expect(Object.fromEntries(risen)).toEqual({});
});

test.for([
  "What is wrong is told.",
  "It ends. Whoever waits is told.",
  "* Somebody has changed it.",
  "the object is mended",
  "it is made anew",
  "until it is put right",
])("the guard finds: %s", (text) => expect(oddIn(text)).toHaveLength(1));

test.for(["What is wrong?", "The controller says what is wrong.", "an amendment", "It renews the certificate."])(
  "the guard leaves: %s",
  (text) => expect(oddIn(text)).toEqual([]),
);
