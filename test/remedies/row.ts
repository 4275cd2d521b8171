import { expect } from "vitest";
import { definedResources } from "../../src/api/index.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { objects } from "../../src/api/names.ts";
import type { Resource } from "../../src/api/schema/object.ts";
import { buildCommand } from "../../src/cli/commands/build.ts";
// `mco build explain` loads it on demand, which takes real time and none of the harness's.
import "../../src/cli/explain-build.ts";
import { explainSubjects, subjectOf } from "../../src/cli/commands/explain.ts";
import { type Explanation, explanationText } from "../../src/core/preview/explanation.ts";
import type { Io } from "../../src/cli/io.ts";
import type { VirtualHarness } from "../support/virtual-harness.ts";

/** The tables of reasons, each with the file that closes it. */
export const tables = {
  wait: "src/core/pool/rollout-holds.ts",
  blocker: "src/core/pool/pool-progress.ts",
  upgrade: "src/core/pool/image-blocker.ts",
  place: "src/core/pool/pool-queries.ts",
  degraded: "src/api/books/report-table.ts",
  failure: "src/core/build/build-failures.ts",
  code: "src/api/errors.ts",
  health: "src/api/books/report-table.ts",
  kind: "src/api/index.ts",
} as const;
export type Table = keyof typeof tables;

/** A part of a step: of one that a person has to do, or of one that follows by itself. */
export type Step = string | { readonly byItself: string };
export const byItself = (text: string): Step => ({ byItself: text });
const wordsOf = (step: Step) => (typeof step === "string" ? step : step.byItself);

/** A state that a row has made, and what a person does about it. */
export interface State {
  readonly harness: VirtualHarness;
  /** What `mco explain` is asked. */
  readonly subject: string;
  /** Each is a part of the text that the explanation ends with. */
  readonly says: readonly Step[];
  /** Ends the state as the text says. `"outside"`: no program can, and the row checks the text alone. */
  readonly remedy: (() => Promise<unknown>) | "outside";
  /** The subject's own object is gone after the remedy. */
  readonly isGone?: true;
  /** What still goes on by itself after the remedy; absent: the subject is as it should be. */
  readonly leaves?: string;
}

/** One reason, or several that one state shows at once. */
export interface Row {
  /** `wait/Paused`, `health/ControllerHealthy/NoLeader`, `kind/JoinPlace`. */
  readonly reasons: readonly `${Table}/${string}`[];
  readonly title: string;
  /** A neighbour of another row, which the long suites check. */
  readonly isLong?: true;
  readonly make: () => Promise<State>;
}

/** A state that no program ends, or that an object alone is: its explanation is made from objects. */
export interface TextRow extends Pick<Row, "reasons" | "title"> {
  readonly explain: () => Explanation;
  readonly says: readonly Step[];
  /** The explanation after the remedy, where a program shows it. */
  readonly after?: () => Explanation;
}

/** Every step stands where it belongs: acts under what to do, and what comes by itself under what happens next. */
function checkSteps({ next, todo }: Explanation, says: readonly Step[], text: string): void {
  for (const step of says) expect((typeof step === "string" ? todo : next).join("\n"), text).toContain(wordsOf(step));
}

/** Holds an explanation against its row. */
export function checkText({ explain, says, after }: TextRow): void {
  const explanation = explain();
  const text = explanationText(explanation);
  const steps = stepsOf(explanation, "all").join("\n");
  checkSteps(explanation, says, text);
  checkClaim(explanation, text);
  // No step is an empty word.
  for (const step of steps.split("\n")) expect(step, text).toMatch(/\S/);
  if (after !== undefined) expect(stepsOf(after()), explanationText(after())).toEqual([]);
}

/** What `mco explain` prints of a subject; `undefined`: there is no such object. */
export async function explained(
  harness: VirtualHarness,
  subject: string,
): Promise<{ readonly json: Explanation; readonly text: string } | undefined> {
  const printed = async (json: boolean) => {
    let out = "";
    const io = { out: (text: string) => void (out += text), err: () => undefined } as unknown as Io;
    const code = await harness.act(() =>
      explainSubjects(harness.kube, io, [subjectOf(subject)], { json, clock: harness.kernel.clock }),
    );
    return code === 0 ? out : undefined;
  };
  const [json, text] = [await printed(true), await printed(false)];
  if (json === undefined || text === undefined) return undefined;
  const [explanation] = (JSON.parse(json) as { readonly explanations: readonly Explanation[] }).explanations;
  return explanation === undefined ? undefined : { json: explanation, text };
}

/** The steps that an explanation ends with, without those that say that there is none. */
export const stepsOf = ({ next, todo }: Explanation, which: "all" | "some" = "some"): readonly string[] =>
  [...next, ...todo].filter((step) => which === "all" || !/^(?:\w+: )?nothing(?::|, until|$)/i.test(step));

/** The kinds that a step names to kubectl. */
const named: readonly Resource[] = [...definedResources, kubernetes.Node];

/**
 * Every command that a step names exists, names objects that exist, and where it explains something leads to steps: no
 * step sends a person in a circle.
 */
async function checkCommands(harness: VirtualHarness, { subject, todo }: Explanation, text: string): Promise<void> {
  const steps = todo.join("\n");
  for (const [, other = ""] of steps.matchAll(/mco explain ([a-z]+\/[a-z0-9.-]*[a-z0-9])/g)) {
    // The operator does not run beside machines and builders here.
    if (other === `co/${objects.clusterOperator}` || other === subject) continue;
    const led = await explained(harness, other);
    expect(
      led === undefined ? [] : stepsOf(led.json, "all"),
      `${text}→ mco explain ${other}\n${led?.text ?? ""}`,
    ).not.toEqual([]);
  }
  for (const [, verb = "", pool = ""] of steps.matchAll(/mco build (explain|start|retry) ([a-z0-9-]+)/g)) {
    let out = "";
    const io: Io = { out: (line) => void (out += line), err: (line) => void (out += line), screen: undefined };
    const options = { json: false, wait: false, follow: false, dryRun: false, step: undefined, tail: undefined };
    const { signal } = new AbortController();
    // `start` and `retry` are performed by the rows.
    const ask = verb === "explain" ? "explain" : "status";
    const code = await harness.act(() => buildCommand(harness.kube, io, ask, pool, options, signal));
    expect(code, `${text}→ mco build ${ask} ${pool}\n${out}`).toBe(0);
    if (ask === "explain") expect(out, text).not.toContain("What to do: nothing");
  }
  const onObjects = [
    ...[...steps.matchAll(/kubectl (?:delete|annotate|label) ([a-z]+) ([a-z0-9.-]+)/g)].map(([, kind, name]) => [
      kind,
      name,
    ]),
    ...[...steps.matchAll(/kubectl uncordon ([a-z0-9.-]+)/g)].map(([, name]) => ["node", name]),
  ];
  for (const [kind, name = ""] of onObjects) {
    const resource = named.find((one) => one.kind.toLowerCase() === kind);
    if (resource === undefined) throw new Error(`${text}: there is no kind ${kind}`);
    const object = await harness.act(() => harness.kube.get(resource, { name }));
    expect(object?.metadata.name, text).toBe(name);
  }
}

/**
 * Every state of which `mco explain` may say that there is nothing to do, and why: kind of the subject and reason. A state
 * that is not here asks for something.
 */
const nothingToDo: Readonly<Record<string, string>> = {
  "clusteroperator AsExpected": "nothing is degraded, and nothing holds an upgrade back",
  "containerruntimeconfig AsWritten": "the configurations of its pools hold it",
  "controllerconfig Running": "the template controller is at work",
  "joinplace Waiting": "a machine joins, or the place ends",
  "kubeletconfig AsWritten": "the configurations of its pools hold it",
  "machineconfiguration AsExpected": "every part of the suite is well",
  "machineconfiguration BootstrapJournalMissing": "what was not handed over cannot be had later",
  "machineconfiguration Gap": "lines that are lost cannot be had again",
  "machineconfiguration InProgress": "the part is at work",
  "machineosbuild Appended": "the image is there",
  "machineosbuild RetryScheduled": "the builder tries again by itself, after a failure that no person causes",
  "machineosconfig UpToDate": "machines have the image, or are given it",
  "machineosconfig WaitingForRender": "what the pool's configuration waits for is asked of the pool",
  "machinestatebook Idle": "a book asks for nothing",
  "machinestatebook Update": "a book asks for nothing: its machine is explained by itself",
  "machinestatechapter Open": "as for its book",
  "machinestatechapter Planned": "as for its book",
  "machinestatechapter Succeeded": "as for its book",
  "machinestatejournal Gap": "lines that are lost cannot be had again",
  "mc InPools": "its pools take it",
  "node HasTarget": "the machine has what it should",
  "node NodeDeleted": "who holds the Node by a finalizer lets it go",
  "node NothingApplied": "the daemon applies the first target",
  "node Rebooting": "the machine comes back",
  "node Resuming": "the daemon verifies the booted system",
  "node Uncordoning": "the machine goes back into service",
  "node WaitingForBuild": "the build goes on",
  "node WaitsForTurn": "machines before it are updated",
  "node Working": "the daemon is at work",
  "nodebinding NotRegistered": "the kubelet registers, or the name is free again",
  "pinnedimageset Prefetching": "machines fetch images by turns",
  "pool Done": "all machines have the target",
  "pool RollingOut": "machines are updated by turns, and none is held up",
};

/** An explanation that asks for nothing is a claim: its state must be one of those of which that is known to be true. */
function checkClaim({ subject, reason, todo }: Explanation, text: string): void {
  if (todo.length > 0) return;
  const [kind = ""] = subject.split("/");
  expect(Object.keys(nothingToDo), text).toContain(`${kind} ${reason}`);
}

/** Makes the state of a row, holds its explanation against the row, performs the remedy, and sees the state end. */
export async function checkRow({ make, title }: Row): Promise<void> {
  const state = await make();
  const before = await explained(state.harness, state.subject);
  if (before === undefined) throw new Error(`${title}: there is no ${state.subject}`);
  const { json, text } = before;
  checkSteps(json, state.says, text);
  checkClaim(json, text);
  // The text ends with what the JSON has.
  const ending = [
    ...(json.next.length === 0 ? [] : ["What happens next:", ...json.next.map((line) => `  ${line}`)]),
    json.todo.length === 0 ? "What to do: nothing" : "What to do:",
    ...json.todo.map((line) => `  ${line}`),
  ];
  expect(text.endsWith(`${ending.join("\n")}\n`), text).toBe(true);
  await checkCommands(state.harness, json, text);
  if (state.remedy === "outside") return;
  await state.remedy();
  const after = await explained(state.harness, state.subject);
  if (state.isGone === true) {
    expect(after?.text).toBeUndefined();
    return;
  }
  if (after === undefined) throw new Error(`${title}: ${state.subject} is gone`);
  checkClaim(after.json, after.text);
  const left = stepsOf(after.json);
  // Of what was said, nothing is left to be done.
  for (const part of state.says) expect(left.join("\n"), after.text).not.toContain(wordsOf(part));
  if (state.leaves === undefined) expect(left, after.text).toEqual([]);
  else expect(left.join("\n"), after.text).toContain(state.leaves);
}
