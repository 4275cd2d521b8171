import { own } from "../../api/schema/own.ts";
import type { Command } from "../commands.ts";
import type { Flag, WordKind } from "../flags.ts";
import { flagsOf } from "../global-flags.ts";

/** What a word may become, and what that is. */
export interface Candidate {
  readonly word: string;
  readonly means: string;
}

/** What may stand where the last word is. */
export interface WantedWords {
  readonly candidates: readonly Candidate[];
  /** What the cluster, the manifests or the disk has to be asked for. */
  readonly kind: Exclude<WordKind, readonly string[]> | undefined;
  /** What stands before the candidates within the word: `--pool=`. */
  readonly before: string;
}

/** Values that have no kind of their own, by the name of the value. */
const kindsOfValues: Readonly<Record<string, WordKind>> = {
  FILE: "file",
  FOLDER: "folder",
  DIR: "folder",
  POOL: "pool",
};

const nothing: WantedWords = { candidates: [], kind: undefined, before: "" };

const kindOf = ({ takes, value }: Flag): WordKind | undefined => takes ?? own(kindsOfValues, value ?? "");

/** How words begin whose end the cluster knows. */
const beginnings: Readonly<Record<string, readonly string[]>> = {
  subject: ["pool/", "node/", "mc/"],
  book: ["cluster", "pool/", "node/", "build/"],
};

function ofKind(kind: WordKind | undefined, current: string, before = ""): WantedWords {
  if (kind === undefined) return nothing;
  const words = typeof kind !== "string" ? kind : current.includes("/") ? undefined : own(beginnings, kind);
  if (words !== undefined) return { candidates: words.map((word) => ({ word, means: "" })), kind: undefined, before };
  return typeof kind === "string" ? { candidates: [], kind, before } : nothing;
}

/** The words before the one that is completed, sorted out. */
interface Before {
  /** Words that are no flags and no values of flags. */
  readonly positionals: readonly string[];
  readonly given: ReadonlySet<string>;
  /** The flag whose value comes next. */
  readonly open: Flag | undefined;
  readonly onlyWords: boolean;
}

function readBefore(words: readonly string[], flags: readonly Flag[]): Before {
  const positionals: string[] = [];
  const given = new Set<string>();
  let open: Flag | undefined;
  let onlyWords = false;
  for (const word of words) {
    if (open !== undefined) open = undefined;
    else if (onlyWords || !word.startsWith("-") || word === "-") positionals.push(word);
    else if (word === "--") onlyWords = true;
    else {
      const [name = ""] = word.split("=", 1);
      given.add(name);
      const flag = flags.find((one) => one.flag === name);
      if (flag?.value !== undefined && !word.includes("=")) open = flag;
    }
  }
  return { positionals, given, open, onlyWords };
}

/**
 * What the last of some words may become.
 *
 * @param words after `mco`; the last one is what stands there so far, possibly nothing.
 */
export function wantedWords(words: readonly string[], commands: Readonly<Record<string, Command>>): WantedWords {
  const [verb = "", ...rest] = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  if (words.length <= 1)
    return {
      ...nothing,
      candidates: Object.entries(commands).map(([word, { summary }]) => ({ word, means: summary })),
    };
  const command = own(commands, verb);
  if (command === undefined) return nothing;
  const flags = flagsOf(command);
  const before = readBefore(rest, flags);
  if (before.open !== undefined) return ofKind(kindOf(before.open), current);
  if (before.onlyWords || !current.startsWith("-")) return wantedPositional(command, before.positionals, current);
  const equals = current.indexOf("=");
  if (equals === -1) return { ...nothing, candidates: flagsLeft(flags, before.given) };
  const flag = flags.find((one) => one.flag === current.slice(0, equals));
  const value = current.slice(equals + 1);
  return flag === undefined ? nothing : ofKind(kindOf(flag), value, current.slice(0, equals + 1));
}

const flagsLeft = (flags: readonly Flag[], given: ReadonlySet<string>): readonly Candidate[] => [
  // One with a value may be given more than once.
  ...flags
    .filter(({ flag, value }) => value !== undefined || !given.has(flag))
    .map(({ flag, text }) => ({ word: flag, means: text })),
  { word: "--help", means: "print what the command does" },
];

function wantedPositional(
  { takes, verbs, words }: Command,
  positionals: readonly string[],
  current: string,
): WantedWords {
  if (verbs === undefined) return ofKind(takes?.[positionals.length] ?? takes?.at(-1), current);
  const [verb, ...rest] = positionals;
  const textOf = (name: string) => words?.find(({ word }) => word.split(" ", 1)[0] === name)?.text ?? "";
  if (verb === undefined)
    return { ...nothing, candidates: Object.keys(verbs).map((word) => ({ word, means: textOf(word) })) };
  const behind = own(verbs, verb);
  return ofKind(behind?.[rest.length] ?? behind?.at(-1), current);
}
