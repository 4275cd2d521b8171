import type { TaskOutcome } from "../core/operator/cluster-operator-status.ts";
import type { Context, Watch } from "../kube/controller.ts";
import { isConflict, isPassing } from "../kube/kube-error.ts";
import type { OperatorMemory } from "./operator-memory.ts";
import type { OperatorOptions } from "./operator-options.ts";

/**
 * An API server that is unavailable or busy for longer than this is reported; until then the task counts as healthy.
 */
export const passingMs = 60_000;

/** What a task works with. */
export interface TaskContext extends Context {
  readonly options: OperatorOptions;
  readonly memory: OperatorMemory;
}

/** Makes watches that keep the memory up to date. A watch that several tasks name is made once. */
export type OperatorWatch = (memory: OperatorMemory) => readonly Watch[];

/** A {@link TaskOutcome} without the name of its task. */
export type TaskResult = TaskOutcome extends infer Outcome
  ? Outcome extends unknown
    ? Omit<Outcome, "task">
    : never
  : never;

export const taskDone: TaskResult = { kind: "done" };
export const progressing = (message: string): TaskResult => ({ kind: "progressing", message });
export const failed = (message: string): TaskResult => ({ kind: "failed", message });

/** One thing that the operator keeps in force. */
export interface OperatorTask<View, Decision> {
  /** As conditions, lines and logs name it. */
  readonly name: string;
  /** Objects whose changes start the next pass. */
  readonly watches: readonly OperatorWatch[];
  /** Reads everything that counts, once. */
  observe(context: TaskContext): View | Promise<View>;
  /** Pure. */
  decide(view: View): Decision;
  /** Carries a decision out; every step of it may be repeated. */
  perform(decision: Decision, context: TaskContext): TaskResult | Promise<TaskResult>;
}

/** A task in a list of tasks with other views. */
export interface RunnableTask {
  readonly name: string;
  readonly watches: readonly OperatorWatch[];
  run(context: TaskContext): Promise<TaskResult>;
}

export const runnable = <View, Decision>(task: OperatorTask<View, Decision>): RunnableTask => ({
  name: task.name,
  watches: task.watches,
  run: async (context) => task.perform(task.decide(await task.observe(context)), context),
});

/** Runs one task. A failure is its outcome and does not block other tasks. */
export async function runTask({ name, run }: RunnableTask, context: TaskContext): Promise<TaskOutcome> {
  try {
    const result = await run(context);
    context.memory.heldUp.delete(name);
    return { task: name, ...result };
  } catch (error) {
    if (context.signal.aborted) throw error;
    return { task: name, ...resultOfError(name, error, context) };
  }
}

function resultOfError(task: string, error: unknown, context: TaskContext): TaskResult {
  const isLasting = managersInConflict(error).length > 0;
  // Another process wrote in between: the news of that brings the next pass.
  if (isConflict(error) && !isLasting) return progressing(`${task} is settling`);
  if (!isLasting && isPassing(error) && isShort(task, context)) {
    context.log.info({ task, error }, "sync task held up");
    return progressing(`${task} waits for the API server`);
  }
  return failed(error instanceof Error ? error.message : String(error));
}

function isShort(task: string, { clock, memory: { heldUp } }: TaskContext): boolean {
  const since = heldUp.get(task) ?? clock.monotonic();
  heldUp.set(task, since);
  return clock.monotonic() - since < passingMs;
}

/**
 * Field managers whose fields an apply would take: no later try helps there. None where another process only wrote in
 * between.
 */
export const managersInConflict = (error: unknown): readonly string[] =>
  isConflict(error) && error instanceof Error
    ? [...error.message.matchAll(/conflicts? with "([^"]+)"/g)].flatMap(([, manager]) => manager ?? [])
    : [];
