import type { Disk } from "../../src/host/directory/disk.ts";
import { seededRandom } from "../simulation/kernel.ts";
import type { Invariant, Past } from "./invariants.ts";
import { DiskModel, type DiskOperation, digestOfState, layDown, recordingDisk } from "./recording-disk.ts";
import { CrashHarness, type CrashHarnessOptions, type Scenario, type Start } from "./crash-harness.ts";
import { type MakeSubject, directorySubject, directorySubjects, fastDisk } from "./subjects.ts";

export interface CutTally {
  operations: number;
  /** Points at which every possible state was tried. */
  exhausted: number;
  sampled: number;
  /** Different states, each with the API server's state at that time, from which a machine was started. */
  states: number;
  readonly found: string[];
}

export const newCutTally = (): CutTally => ({ operations: 0, exhausted: 0, sampled: 0, states: 0, found: [] });

export interface CutOptions {
  readonly scenario: Scenario;
  /** The most states that are tried at one point. */
  readonly perPoint: number;
  /** The most states in total: points are then taken at even distances. */
  readonly atMost: number;
  /** Flushes that a planted bug forgets, by path in the machine's folder. */
  readonly forgets?: (path: string) => boolean;
  /** Stops at the first breach of this invariant. */
  readonly until?: Invariant | "any";
}

interface CutPoint {
  readonly operation: DiskOperation;
  readonly annotations: Start["annotations"];
  readonly status: Start["status"];
  readonly past: Past;
  readonly cordoned: boolean;
  /** A person made the change: their unfinished changes are not the daemon's. */
  readonly byHand: boolean;
}

/**
 * Plays a scenario on a machine in a folder, with a record of everything that changes its disk; then starts machines
 * from the states that a power cut could have left between any two of these changes, and lets their daemons go on.
 */
export async function cutEverywhere(
  { scenario, perPoint, atMost, forgets, until }: CutOptions,
  tally: CutTally,
): Promise<void> {
  let directory = "";
  let playing: CrashHarness | undefined;
  const points: CutPoint[] = [];
  const record = (operation: DiskOperation) => {
    if (playing === undefined || (operation.do === "sync" && forgets?.(operation.path) === true)) return;
    points.push({
      operation,
      annotations: playing.node.metadata.annotations ?? {},
      status: playing.status,
      cordoned: playing.node.spec?.unschedulable === true,
      past: playing.keeper.past,
      byHand: playing.byHand,
    });
  };
  const machines = await directorySubjects();
  try {
    const make = machines.make;
    let start: Start | undefined;
    if (scenario.start !== undefined)
      await CrashHarness.run(
        {
          scenario,
          subject: make,
          closely: false,
          atEnd: async (harness) => void (start = await harness.startState()),
        },
        "start",
      );
    const disk: Disk = recordingDisk(fastDisk, () => directory, record);
    let model: DiskModel | undefined;
    const recorded: MakeSubject = async (given) => {
      const subject = await (start?.subject ?? make)(given);
      directory = subject.directory ?? "";
      return { ...subject, ...directorySubject({ directory, trees: machines.trees, onReboot: given.onReboot, disk }) };
    };
    const harness = await CrashHarness.run({
      scenario,
      subject: recorded,
      start: start === undefined ? undefined : { ...start, subject: recorded },
      books: "kept",
      closely: false,
      atStart: async (begun) => {
        model = await DiskModel.of(directory);
        playing = begun;
      },
    });
    if (harness.keeper.violations.length > 0)
      throw new Error(`${scenario.title} fails without a power cut: ${JSON.stringify(harness.keeper.violations[0])}`);
    if (model === undefined) throw new Error("bug: nothing was recorded");
    tally.operations += points.length;

    const random = seededRandom(points.length);
    const seen = new Set<string>();
    const step = Math.max(1, (points.length * perPoint) / atMost);
    let next = 0;
    for (const [index, { operation, annotations, status, cordoned, past, byHand }] of points.entries()) {
      model.apply(operation);
      // At the end nothing runs any more, so nothing repairs the loss of a forgotten flush there.
      if ((index < next && index < points.length - 1) || byHand) continue;
      next += step;
      const { states, all } = model.states(perPoint, random);
      if (all) tally.exhausted += 1;
      else tally.sampled += 1;
      for (const state of states) {
        const key = `${digestOfState(state)} ${JSON.stringify(annotations)}`;
        if (seen.has(key)) continue;
        seen.add(key);
        tally.states += 1;
        // In the same folder: what a driver records about its machine names paths.
        const subject: MakeSubject = async ({ onReboot }) => {
          layDown(state, directory);
          return machines.at(directory, onReboot);
        };
        const first = await firstBreach({
          scenario,
          subject,
          start: { subject, annotations, status, past, cordoned, afterPowerCut: true },
          closely: false,
          quietMs: 60_000,
          books: "kept",
          ...(until === undefined ? {} : { until }),
        });
        if (first !== undefined) {
          tally.found.push(
            `${scenario.title}; power cut after change ${index} of the disk (${operation.do} ${operation.path}): ${first}`,
          );
          if (until !== undefined) return;
        }
      }
    }
  } finally {
    await machines.close();
  }
}

async function firstBreach(options: CrashHarnessOptions): Promise<string | undefined> {
  try {
    const [first] = (await CrashHarness.run(options)).keeper.violations;
    return first === undefined ? undefined : `${first.invariant}: ${first.what}`;
  } catch (error) {
    return `the machine does not start: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}
