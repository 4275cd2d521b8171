import type { Problem } from "../../ignition/problem.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { isRecord } from "../../ignition/shape.ts";
import { canonicalJson } from "../text/canonical-json.ts";
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
 *
 * Of a list or a map with very many problems the first ones are named, and the others not even counted to the end. None of
 * them is new if it has no item that it did not have before; else what is not named may be new, and counts as that.
 */
export function excuseStanding(now: JudgedObject, before: JudgedObject): readonly Problem[] {
  const stood = new Map<string, number>();
  for (const problem of before.problems) {
    if (problem.severity !== "error") continue;
    const key = keyOf(problem, before.object);
    stood.set(key, (stood.get(key) ?? 0) + 1);
  }
  const shrunk = before.problems.flatMap(({ path, isRest }) =>
    isRest === true && isPartOf(valueAt(path, now.object), valueAt(path, before.object)) ? [path] : [],
  );
  return now.problems.map((problem) => {
    if (problem.severity !== "error") return problem;
    if (shrunk.some((list) => isOfItems(problem, list))) return asStanding(problem);
    // What it stands for may be another problem than before, although as many.
    if (problem.isRest === true) return problem;
    const key = keyOf(problem, now.object);
    const left = stood.get(key) ?? 0;
    if (left === 0) return problem;
    stood.set(key, left - 1);
    return asStanding(problem);
  });
}

const asStanding = (problem: Problem): Problem => ({
  ...problem,
  severity: "warning",
  reason: `${problem.reason} (it was stored so, and is not refused for that)`,
});

/** Whether a problem is of the items of a list or a map. One of the list as a whole may come from another field. */
const isOfItems = ({ path, isRest }: Problem, list: string): boolean =>
  path === list ? isRest === true : path.startsWith(`${list}[`) || path.startsWith(`${list}.`);

/** Whether a list or a map has no item that another one has not, however often and wherever. */
function isPartOf(part: unknown, whole: unknown): boolean {
  if (equalValues(part, whole)) return true;
  if (isRecord(part) && isRecord(whole))
    return Object.keys(part).every((name) => Object.hasOwn(whole, name) && equalValues(part[name], whole[name]));
  if (!Array.isArray(part) || !Array.isArray(whole) || part.length > whole.length) return false;
  const left = new Map<string, number>();
  for (const item of whole) {
    const text = canonicalJson(item);
    left.set(text, (left.get(text) ?? 0) + 1);
  }
  return part.every((item) => {
    const text = canonicalJson(item);
    const count = left.get(text) ?? 0;
    left.set(text, count - 1);
    return count > 0;
  });
}

/** The value at the path of a list or a map, which leads through fields alone. */
const valueAt = (path: string, object: unknown): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (value, name) => (isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined),
      object,
    );

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
