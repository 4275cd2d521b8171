import { hunkHeader, hunksBetween } from "../../src/core/text/unified-diff.ts";
import { type NormalRun } from "./normalise.ts";
import { describeOperation, type OperationList } from "./operations.ts";

/** The first place where two runs of a list differ, for people: the operations so far, and both answers as a diff. */
export function firstDifference(list: OperationList, embedded: NormalRun, real: NormalRun): string | undefined {
  const steps = list.operations.map((operation, index) => `  ${index + 1}. ${describeOperation(operation)}`);
  for (const index of list.operations.keys()) {
    const lines = differing(embedded.answers[index], real.answers[index]);
    if (lines !== undefined)
      return [
        `operation ${index + 1} is answered differently:`,
        ...steps.slice(0, index + 1),
        "- embedded",
        "+ kube-apiserver",
        ...lines,
      ].join("\n");
  }
  for (const [index, watch] of real.watches.entries()) {
    const lines = differing(embedded.watches[index]?.events, watch.events);
    if (lines !== undefined)
      return [
        `the watch of ${watch.kind}${list.watched === "" ? "" : ` with ${list.watched}`} differs:`,
        ...steps,
        "- embedded",
        "+ kube-apiserver",
        ...lines,
      ].join("\n");
  }
  return undefined;
}

function differing(embedded: unknown, real: unknown): readonly string[] | undefined {
  const before = (JSON.stringify(embedded, undefined, 1) ?? "nothing").split("\n");
  const after = (JSON.stringify(real, undefined, 1) ?? "nothing").split("\n");
  const hunks = hunksBetween(before, after);
  if (hunks.length === 0) return undefined;
  return hunks.flatMap((hunk) => [
    hunkHeader(hunk),
    ...hunk.lines.map(({ sign, index }) => `${sign}${(sign === "+" ? after[index] : before[index]) ?? ""}`),
  ]);
}
