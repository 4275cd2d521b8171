import { type Problem, pathTo } from "../ignition/problem.ts";
import { isRecord } from "../ignition/shape.ts";
import { stepsOf } from "./manifests.ts";

type Step = string | number;

/** The rest of an object once the parts with a wrong shape are taken out. */
export interface SoundPart<Whole> {
  readonly part: Whole;
  /**
   * Those problems of the part that the whole object has, too, with their paths in it. A problem at a part that was
   * taken out, in it or around it may come from the cut, and is left out.
   */
  inWhole(problems: readonly Problem[]): readonly Problem[];
}

/** Each round takes something out; rules that were not reached before may find more. */
const mostRounds = 20;

/**
 * Takes out what has a wrong shape, so that the rest can be judged: of a value, its field; of a missing field, the part
 * that lacks it.
 *
 * @param wrongPaths where an object has a wrong shape; none: it is sound.
 * @returns `undefined` where the wrong shape is that of `metadata` or `spec` as a whole, or of the name.
 */
export function soundPart<Whole>(
  whole: Whole,
  wrongPaths: (part: Whole) => readonly string[],
): SoundPart<Whole> | undefined {
  const cuts = new Map<string, readonly Step[]>();
  for (let round = 0; round < mostRounds; round += 1) {
    const copy = copyWithout(whole, new Set(cuts.keys()));
    const part = copy.value as Whole;
    const wrong = wrongPaths(part);
    if (wrong.length === 0) return { part, inWhole: (problems) => problemsInWhole(problems, copy, [...cuts.values()]) };
    const before = cuts.size;
    for (const path of wrong) {
      const cut = copy.inWhole(presentSteps(part, path));
      if (cut.length < 2 || isIdentity(cut)) return undefined;
      cuts.set(keyOf(cut), cut);
    }
    if (cuts.size === before) return undefined;
  }
  return undefined;
}

/** An object without a name or a spec is not judged. */
const isIdentity = ([top, next]: readonly Step[]): boolean => top === "metadata" && next === "name";

const keyOf = (steps: readonly Step[]): string => JSON.stringify(steps);

/** The names and indices of a path as far as a value has them: keys of maps may hold dots. */
function presentSteps(value: unknown, path: string): readonly Step[] {
  const words = stepsOf(path);
  const steps: Step[] = [];
  let at = value;
  for (let i = 0; i < words.length;) {
    const taken = isRecord(at) ? wordsOfKey(at, words, i) : Array.isArray(at) && Number(words[i]) < at.length ? 1 : 0;
    if (taken === 0) break;
    const step = taken === 1 ? (words[i] ?? "") : words.slice(i, i + taken).join(".");
    steps.push(step);
    at = (at as Readonly<Record<Step, unknown>>)[step];
    i += taken;
  }
  return steps;
}

/** How many words of a path are the longest key of an object that begins here. */
function wordsOfKey(object: Readonly<Record<string, unknown>>, words: readonly Step[], from: number): number {
  for (let count = words.length - from; count > 0; count -= 1)
    if (Object.hasOwn(object, words.slice(from, from + count).join("."))) return count;
  return 0;
}

interface Copy {
  readonly value: unknown;
  /** The steps in the whole that lead to what steps in the copy lead to. */
  inWhole(steps: readonly Step[]): readonly Step[];
}

function copyWithout(whole: unknown, cuts: ReadonlySet<string>): Copy {
  /** Of lists that lost items: the indices that the others had. */
  const indices = new Map<unknown, readonly number[]>();
  const copyAt = (value: unknown, steps: readonly Step[]): unknown => {
    const isKept = (step: Step): boolean => !cuts.has(keyOf([...steps, step]));
    if (Array.isArray(value)) {
      const kept = [...value.keys()].filter(isKept);
      const list = kept.map((i) => copyAt(value[i], [...steps, i]));
      if (kept.length < value.length) indices.set(list, kept);
      return list;
    }
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, inner]) => (isKept(key) ? [[key, copyAt(inner, [...steps, key])]] : [])),
    );
  };
  const value = cuts.size === 0 ? whole : copyAt(whole, []);
  return {
    value,
    inWhole(steps) {
      let at = value;
      return steps.map((step) => {
        const original = typeof step === "number" ? (indices.get(at)?.[step] ?? step) : step;
        at = (at as Readonly<Record<Step, unknown>>)[step];
        return original;
      });
    },
  };
}

function problemsInWhole(
  problems: readonly Problem[],
  copy: Copy,
  cuts: readonly (readonly Step[])[],
): readonly Problem[] {
  const around = new Set(cuts.flatMap((cut) => cut.map((_, i) => keyOf(cut.slice(0, i)))));
  return problems.flatMap((problem) => {
    // Where a part was taken out, the steps end before it.
    const present = presentSteps(copy.value, problem.path);
    const steps = copy.inWhole(present);
    if (around.has(keyOf(steps))) return [];
    return [{ ...problem, path: printPath(steps) + problem.path.slice(printPath(present).length) }];
  });
}

const printPath = (steps: readonly Step[]): string => steps.reduce<string>(pathTo, "");
