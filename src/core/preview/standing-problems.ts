import type { Problem } from "../../ignition/problem.ts";
import { isRecord } from "../../ignition/shape.ts";
import { clipText } from "../text/clip-text.ts";

/** An object and what is wrong with it by today's rules. */
export interface JudgedObject {
  readonly object: unknown;
  readonly problems: readonly Problem[];
}

/**
 * The problems of a changed object, where those that it was stored with do not refuse it: who changes one field need not
 * correct another, which an earlier release accepted. Such an error becomes a warning. Items of lists are told apart by their
 * `path` or `name`, so that an item may be added before them.
 */
export function excuseStanding(now: JudgedObject, before: JudgedObject): readonly Problem[] {
  const stood = new Map<string, number>();
  for (const problem of before.problems) {
    if (problem.severity !== "error") continue;
    const key = keyOf(problem, before.object);
    stood.set(key, (stood.get(key) ?? 0) + 1);
  }
  return now.problems.map((problem) => {
    if (problem.severity !== "error") return problem;
    const key = keyOf(problem, now.object);
    const left = stood.get(key) ?? 0;
    if (left === 0) return problem;
    stood.set(key, left - 1);
    return {
      ...problem,
      severity: "warning",
      reason: `${problem.reason} (it was stored so, and is not refused for that)`,
    };
  });
}

/** Characters of a step or a name, and of a whole path or sentence, by which problems are told apart. */
const longestName = 253;
const longestText = 4096;

/** What is the same for the same problem of the same item. It has a limit, as thousands of problems may have one long path. */
function keyOf({ path, reason, remedy }: Problem, object: unknown): string {
  let value = object;
  const steps: string[] = [];
  for (const [step, index] of shortened(path, longestText).matchAll(/\[(\d+)\]|[^.[\]]+/g)) {
    if (index === undefined) value = isRecord(value) && Object.hasOwn(value, step) ? value[step] : undefined;
    else value = Array.isArray(value) ? (value as readonly unknown[])[Number(index)] : undefined;
    steps.push(shortened(index === undefined ? step : nameOf(value, index), longestName));
  }
  return JSON.stringify([steps, shortened(reason, longestText), remedy]);
}

/** A text of limited length, in which one that is longer is told from most others by its beginning and its length. */
const shortened = (text: string, most: number): string =>
  text.length <= most ? text : `${clipText(text, most)}${text.length}`;

function nameOf(item: unknown, index: string): string {
  if (typeof item === "string") return `=${item}`;
  if (!isRecord(item)) return `#${index}`;
  const name = item["path"] ?? item["name"];
  return typeof name === "string" ? `=${name}` : `#${index}`;
}
