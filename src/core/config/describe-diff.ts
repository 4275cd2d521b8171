import { pushAll } from "../../api/schema/push-all.ts";
import { type Change, describeChange } from "./change.ts";
import type { ConfigChange, FileState, UnitOnDisk } from "./diff-configs.ts";
import { isSecretFile, maskLines, maskText, masked, shortKey } from "../text/mask-secrets.ts";
import { printable } from "../text/printable.ts";
import { DiffBudget, hunkHeader, hunksBetween, linesOf } from "../text/unified-diff.ts";

/** One change as people read it: a heading, and the lines of a unified diff or of a list. */
export interface DescribedChange {
  readonly change: ConfigChange;
  readonly title: string;
  readonly lines: readonly string[];
}

/**
 * Differences between two configurations for people: unified diffs of decoded contents, secrets masked. The text
 * shows that a secret changes, but never the secret, its length, or a digest that could be guessed against.
 */
export function describeDiff(changes: readonly ConfigChange[]): readonly DescribedChange[] {
  const budget = new DiffBudget();
  return changes.map((change) => {
    const shown = withinBudget(change, budget);
    return { change: maskChange(shown), title: titleOfChange(change), lines: linesOfChange(shown, budget) };
  });
}

/** The heading of one change, secrets masked. */
export const titleOfChange = (change: ConfigChange): string => `${signOf(change)} ${maskText(describeChange(change))}`;

/** Why a text is not shown. A diff of such sizes helps nobody, and searching it for secrets takes minutes. */
const tooLarge = "too large to compare";

/** The change with its texts, if these are within the budget; otherwise with their sizes in place of them. */
function withinBudget(change: ConfigChange, budget: DiffBudget): ConfigChange {
  if (budget.takeLines(...sizesOf(change))) return change;
  const sized = (text: string) => `${countLines(text)} lines, ${tooLarge}`;
  const counted = (when: string, entries: readonly string[]) => [`${entries.length} entries ${when}, ${tooLarge}`];
  switch (change.kind) {
    case "kernelArguments":
    case "extensions":
      return { ...change, from: counted("before", change.from), to: counted("after", change.to) };
    case "file": {
      const short = (state: FileState): FileState =>
        state.contents.kind === "text"
          ? {
              ...state,
              contents: { kind: "unknown", source: `${countLines(state.contents.text)} lines`, reason: tooLarge },
            }
          : state;
      return { ...change, ...shortened(change, short) };
    }
    case "unit": {
      const short = (state: UnitOnDisk): UnitOnDisk => ({
        ...state,
        main: state.main.kind === "text" ? { kind: "text", text: sized(state.main.text) } : state.main,
        dropins: Object.fromEntries(Object.entries(state.dropins).map(([name, text]) => [name, sized(text)])),
      });
      return { ...change, ...shortened(change, short) };
    }
    default:
      return change;
  }
}

const shortened = <T extends object>(
  { before, after }: { readonly before?: T; readonly after?: T },
  short: (state: T) => T,
) => ({
  ...(before === undefined ? {} : { before: short(before) }),
  ...(after === undefined ? {} : { after: short(after) }),
});

/** Lines of each text of a change, and entries of each list. */
function sizesOf(change: ConfigChange): readonly number[] {
  switch (change.kind) {
    case "kernelArguments":
    case "extensions":
      return [change.from.length, change.to.length];
    case "file":
    case "unit":
      return [change.before, change.after].flatMap((state) =>
        state === undefined ? [] : textsOf(state).map(countLines),
      );
    default:
      return [];
  }
}

const textsOf = (state: FileState | UnitOnDisk): readonly string[] =>
  "contents" in state
    ? state.contents.kind === "text"
      ? [state.contents.text]
      : []
    : [...(state.main.kind === "text" ? [state.main.text] : []), ...Object.values(state.dropins)];

/** Lines of a text, without making a list of them. */
function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

const signOf = (change: Change): string =>
  "op" in change ? { create: "+", update: "~", delete: "-" }[change.op] : "~";

/** Whether a file's contents are a secret on either side: a former secret must not appear either. */
function isSecret({ after, before, path }: Extract<ConfigChange, { kind: "file" }>): boolean {
  return [before, after].some(
    (state) =>
      state !== undefined &&
      isSecretFile(path, state.mode, state.contents.kind === "text" ? state.contents.text : undefined),
  );
}

const shownText = (text: string) => maskLines(text.split("\n")).join("\n");

/** A change that is safe to show: secret contents, and text that looks like a secret, are masked. */
export function maskChange(change: ConfigChange): ConfigChange {
  switch (change.kind) {
    case "file": {
      const secret = isSecret(change);
      const shown = (state: FileState): FileState => {
        const { contents } = state;
        if (secret) return { ...state, contents: { kind: "masked" } };
        if (contents.kind === "text") return { ...state, contents: { kind: "text", text: shownText(contents.text) } };
        return contents.kind === "unknown"
          ? { ...state, contents: { ...contents, source: maskText(contents.source) } }
          : state;
      };
      return {
        ...change,
        ...(change.before === undefined ? {} : { before: shown(change.before) }),
        ...(change.after === undefined ? {} : { after: shown(change.after) }),
      };
    }
    case "unit": {
      const shown = (state: UnitOnDisk): UnitOnDisk => ({
        ...state,
        main: state.main.kind === "text" ? { kind: "text", text: shownText(state.main.text) } : state.main,
        dropins: Object.fromEntries(Object.entries(state.dropins).map(([name, text]) => [name, shownText(text)])),
      });
      return {
        ...change,
        ...(change.before === undefined ? {} : { before: shown(change.before) }),
        ...(change.after === undefined ? {} : { after: shown(change.after) }),
      };
    }
    case "sshKeys":
      return { ...change, added: change.added.map(shortKey), removed: change.removed.map(shortKey) };
    case "kernelArguments":
      return { ...change, from: change.from.map(maskText), to: change.to.map(maskText) };
    case "osImage":
      return { ...change, from: maskText(change.from), to: maskText(change.to) };
    default:
      return change;
  }
}

function linesOfChange(change: ConfigChange, budget: DiffBudget): readonly string[] {
  switch (change.kind) {
    case "file":
      return [...properties(change), ...contentsOf(change, budget)];
    case "unit":
      return unitLines(change, budget);
    case "sshKeys":
      return [
        ...change.removed.map((key) => `-${shortKey(key)}`),
        ...change.added.map((key) => `+${shortKey(key)}`),
        ...(change.added.length + change.removed.length === 0 ? ["the same keys in another order"] : []),
      ];
    case "password":
      return [`the hash ${{ create: "is set", update: "changes", delete: "is taken away" }[change.op]} ${masked}`];
    case "kernelArguments":
      return listLines(change.from, change.to, budget);
    case "extensions":
      return listLines(change.from, change.to, budget);
    case "osImage":
    case "kernelType":
      return [...(change.from === "" ? [] : [`-${maskText(change.from)}`]), `+${maskText(change.to)}`];
    case "fips":
      return [`-${change.from}`, `+${change.to}`];
    case "storage":
      return ["running machines do not follow this; machines that join start with it"];
  }
}

/** Lists whose order counts, item by item as lines. */
function listLines(from: readonly string[], to: readonly string[], budget: DiffBudget): readonly string[] {
  return hunksBetween(from.map(maskText), to.map(maskText), budget).flatMap(({ lines }) =>
    lines
      .filter(({ sign }) => sign !== " ")
      .map(({ sign, index }) => `${sign}${maskText((sign === "+" ? to : from)[index] ?? "")}`),
  );
}

const octal = (mode: number) => `0${mode.toString(8)}`;
const ownerOf = ({ group, user }: FileState) => `${user.name ?? user.id ?? 0}:${group.name ?? group.id ?? 0}`;

function properties({ after, before, parts }: Extract<ConfigChange, { kind: "file" }>): readonly string[] {
  if (before === undefined || after === undefined)
    return [before, after].flatMap((state) =>
      state === undefined ? [] : [`mode ${octal(state.mode)}, owner ${ownerOf(state)}`],
    );
  return [
    ...(parts.includes("mode") ? [`mode ${octal(before.mode)} → ${octal(after.mode)}`] : []),
    ...(parts.includes("owner") ? [`owner ${ownerOf(before)} → ${ownerOf(after)}`] : []),
  ];
}

function contentsOf(change: Extract<ConfigChange, { kind: "file" }>, budget: DiffBudget): readonly string[] {
  const { after, before, parts, path } = change;
  if (!parts.includes("contents")) return [];
  if (isSecret(change))
    return [`contents ${{ create: "are given", update: "change", delete: "go" }[change.op]} ${masked}`];
  const [old, next] = [before?.contents, after?.contents];
  if ((old === undefined || old.kind === "text") && (next === undefined || next.kind === "text"))
    return unified(path, old?.text, next?.text, budget);
  return [...(old === undefined ? [] : [`-${summaryOf(old)}`]), ...(next === undefined ? [] : [`+${summaryOf(next)}`])];
}

function summaryOf(contents: FileState["contents"]): string {
  switch (contents.kind) {
    case "text":
      return `${linesOf(contents.text).length} lines of text`;
    case "binary":
      return `${contents.sizeBytes} bytes, sha256 ${contents.sha256}`;
    case "unknown":
      return `${maskText(contents.source)} (${contents.reason})`;
    case "masked":
      return masked;
  }
}

function unitLines(
  { after, before, name }: Extract<ConfigChange, { kind: "unit" }>,
  budget: DiffBudget,
): readonly string[] {
  const lines: string[] = [];
  const textIn = (state: UnitOnDisk | undefined) => (state?.main.kind === "text" ? state.main.text : undefined);
  const stateOf = (state: UnitOnDisk | undefined) =>
    state === undefined || state.main.kind === "text" ? "unsaid" : state.main.kind;
  if (stateOf(before) !== stateOf(after))
    lines.push(
      `unit file ${stateOf(before)} → ${stateOf(after)}`.replaceAll(
        "unsaid",
        textIn(after) === undefined && textIn(before) === undefined ? "as the OS has it" : "of its own",
      ),
    );
  const [was, is] = [before?.enablement ?? "unsaid", after?.enablement ?? "unsaid"];
  if (was !== is) lines.push(`enablement ${was} → ${is}`.replaceAll("unsaid", "as it is"));
  pushAll(lines, unified(`/etc/systemd/system/${name}`, textIn(before), textIn(after), budget));
  for (const dropin of [
    ...new Set([...Object.keys(before?.dropins ?? {}), ...Object.keys(after?.dropins ?? {})]),
  ].toSorted()) {
    const path = `/etc/systemd/system/${name}.d/${dropin}`;
    pushAll(lines, unified(path, before?.dropins[dropin], after?.dropins[dropin], budget));
  }
  return lines;
}

const noLineBreak = "\\ No newline at end of file";

function unified(
  path: string,
  before: string | undefined,
  after: string | undefined,
  budget: DiffBudget,
): readonly string[] {
  if (before === after) return [];
  const [old, next] = [linesOf(before ?? ""), linesOf(after ?? "")];
  // Finds secrets in the whole text, and masks them only after comparing the lines.
  const [oldShown, nextShown] = [maskLines(old), maskLines(next)];
  const ends = (text: string | undefined) => text === undefined || text === "" || text.endsWith("\n");
  // As in diff(1), a last line differs by its missing line break.
  const marked = (lines: readonly string[], text: string | undefined) =>
    ends(text) || lines.length === 0 ? lines : [...lines.slice(0, -1), `${lines.at(-1) ?? ""}\n`];
  const hunks = hunksBetween(marked(old, before), marked(next, after), budget);
  if (hunks.length === 0)
    return [
      `--- ${before === undefined ? "/dev/null" : `a${path}`}`,
      `+++ ${after === undefined ? "/dev/null" : `b${path}`}`,
    ];
  const isLast = (sign: string, index: number) =>
    sign === "+" ? index === next.length - 1 && !ends(after) : index === old.length - 1 && !ends(before);
  return [
    `--- ${before === undefined ? "/dev/null" : `a${path}`}`,
    `+++ ${after === undefined ? "/dev/null" : `b${path}`}`,
    ...hunks.flatMap((hunk) => [
      hunkHeader(hunk),
      ...hunk.lines.flatMap(({ sign, index }) => [
        `${sign}${printable((sign === "+" ? nextShown : oldShown)[index] ?? "")}`,
        ...(isLast(sign, index) ? [noLineBreak] : []),
      ]),
    ]),
  ];
}
