import { clipText } from "../../core/text/clip-text.ts";
import { systemClock } from "../../ports/node/system-clock.ts";
import { usageError } from "../arguments.ts";
import { commands } from "../commands.ts";
import { shellScripts } from "../completion/shell-scripts.ts";
import { type Candidate, type WantedWords, wantedWords } from "../completion/wanted-words.ts";
import { exitCodes } from "../exit-codes.ts";
import { processIo } from "../io.ts";

/** Nobody waits longer for names behind a key. */
const longestMs = 1000;
/** Characters of a meaning beside a word. */
const meaningLength = 70;

export async function run(args: readonly string[]): Promise<number> {
  const [verb = "", ...rest] = args;
  if (verb === "candidates") {
    const words = rest[0] === "--" ? rest.slice(1) : rest;
    processIo().out((await candidateLines(words)).map((line) => `${line}\n`).join(""));
    return exitCodes.ok;
  }
  const script = Object.entries(shellScripts).find(([shell]) => shell === verb)?.[1];
  if (script === undefined || rest.length > 0)
    throw usageError(`name a shell: ${Object.keys(shellScripts).join(", ")}`);
  processIo().out(script);
  return exitCodes.ok;
}

/** What the last word may become, for a script. */
async function candidateLines(words: readonly string[]): Promise<readonly string[]> {
  const wanted = wantedWords(words, commands);
  if (wanted.kind === "file" || wanted.kind === "folder") return [`:${wanted.kind}`];
  const typed = (words.at(-1) ?? "").slice(wanted.before.length);
  const names = wanted.kind === undefined ? [] : await namesOr(wanted.kind, typed, words);
  const all: readonly Candidate[] = [...wanted.candidates, ...names.map((word) => ({ word, means: "" }))];
  return all
    .filter(({ word }) => word.startsWith(typed) && !/[\s\p{Cc}]/u.test(word))
    .map(({ word, means }) => `${wanted.before}${word}\t${clipText(means, meaningLength)}`);
}

/** Names of the cluster; none where it does not answer in time, or there is none. */
async function namesOr(
  kind: NonNullable<WantedWords["kind"]>,
  typed: string,
  words: readonly string[],
): Promise<readonly string[]> {
  const until = new AbortController();
  const ask = async (): Promise<readonly string[]> => {
    // Loaded when asked for: most words need no cluster, and somebody waits at the prompt.
    const [{ namesInCluster }, { connect }] = await Promise.all([
      import("../completion/names-in-cluster.ts"),
      import("../connect.ts"),
    ]);
    const { kube, close } = await connect({
      kubeconfig: valueIn(words, "--kubeconfig"),
      directory: valueIn(words, "--dir"),
      component: "completion",
    });
    try {
      return await namesInCluster(kind, typed, kube.within(until.signal));
    } finally {
      close();
    }
  };
  const late = systemClock.sleep(longestMs, until.signal).then(
    () => [],
    () => [],
  );
  // An error on the line that somebody types would be in the way.
  const names = await Promise.race([ask().catch(() => []), late]);
  until.abort();
  return names;
}

/** The value of a flag among the words, as `--dir x` or `--dir=x`. */
function valueIn(words: readonly string[], flag: string): string | undefined {
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = words[at];
  if (word === undefined) return undefined;
  return word === flag ? words[at + 1] : word.slice(flag.length + 1);
}
