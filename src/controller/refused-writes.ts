import type { Node } from "../api/foreign/kubernetes.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError, isTooLarge, isTooManyRequests, isUnauthorized } from "../kube/kube-error.ts";
import type { SourceBuckets } from "../ports/source-buckets.ts";

/** Failures of one machine's writes in a row from which they can be its own: the first may be a race or an outage. */
const failuresInARow = 3;
/** Failures that lie further apart are not in a row. */
const rowMs = 600_000;
/** Other machines whose writes fail in one pass, from which the API server is at fault and the pass ends. */
const mostFailing = 3;
/** Between attempts to write what only fails at one machine. */
const restMs = 60_000;

/** An object of a machine that controllers write: its Node, or its MachineConfigNode, which has the same name. */
export interface MachineObject {
  readonly name: string;
  readonly kind: "Node" | "MachineConfigNode";
}

const keyOf = ({ name, kind }: MachineObject): string => `${kind}/${name}`;

interface Faults {
  readonly count: number;
  /** Milliseconds since the epoch of the last one. */
  readonly at: number;
  /** How many writes had succeeded before the first one. */
  readonly writesBefore: number;
  /** The last one counted as the machine's own. */
  readonly own: boolean;
}

/**
 * Writes of machines that failed, whose fault that is, and what is thrown of it once a pass has done everything else. Each
 * object of a machine counts by itself: what its Node takes says nothing of its MachineConfigNode.
 */
export class WriteFaults {
  readonly #faults = new Map<string, Faults>();
  /** Failures of the current pass, by machine. */
  readonly #deferred = new Map<string, unknown>();
  #writes = 0;

  /** A write of a machine's object has succeeded. */
  wrote(object: MachineObject): void {
    this.#faults.delete(keyOf(object));
    this.#writes += 1;
  }

  /**
   * Takes in a failure of writes of a machine's object. It is the machine's own once it has failed several times while other
   * writes succeeded.
   *
   * @returns `later`: the pass goes on, and ends with that failure. `now`: the API server fails at everything.
   */
  failed(object: MachineObject, error: unknown, now: number): "own" | "later" | "now" {
    const key = keyOf(object);
    const known = this.#faults.get(key);
    const before = known !== undefined && now - known.at < rowMs ? known : undefined;
    const count = (before?.count ?? 0) + 1;
    const writesBefore = before?.writesBefore ?? this.#writes;
    const own = count >= failuresInARow && this.#writes > writesBefore;
    this.#forgetOld(now);
    this.#faults.set(key, { count, at: now, writesBefore, own });
    if (own) return "own";
    this.#deferred.set(object.name, error);
    return this.#deferred.size >= mostFailing ? "now" : "later";
  }

  /** Whether an object's own failure is so recent that it is not tried again yet. */
  rests(object: MachineObject, now: number): boolean {
    const faults = this.#faults.get(keyOf(object));
    return faults?.own === true && now - faults.at < restMs;
  }

  begin(): void {
    this.#deferred.clear();
  }

  /** Throws the first failure that the pass went on after. */
  end(): void {
    const [first] = this.#deferred.values();
    if (first !== undefined) throw first;
  }

  #forgetOld(now: number): void {
    for (const [key, { at }] of this.#faults) if (now - at >= rowMs) this.#faults.delete(key);
  }
}

/**
 * Whether the API server refuses a write because of the object itself: too large, or with a value that is none. Root on a
 * machine writes the annotations of its Node, whose size is limited and some of which are copied.
 */
const isOfObject = (error: KubeError): boolean => error.httpStatus === 422 || isTooLarge(error);

/** What a controller knows of the machines whose objects it writes. */
export interface MachineWrites {
  readonly cluster: { node(name: string): { readonly node: Node } | undefined };
  readonly reports: { readonly claims: SourceBuckets };
  readonly faults: WriteFaults;
  /** Milliseconds since the epoch. */
  now(): number;
}

/**
 * Runs writes of an object of one machine. A refusal that the object causes is reported, and is no failure of its pool: the
 * other machines must not wait for it. Any other failure at it ends the pass, but only after everything else was done.
 */
export async function writesOfMachine<T>(
  object: MachineObject,
  memory: MachineWrites,
  { report, log }: Pick<Context, "report" | "log">,
  work: () => Promise<T>,
): Promise<T | "refused"> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof KubeError) || isUnauthorized(error) || isTooManyRequests(error)) throw error;
    if (!isOfObject(error)) {
      const whose = memory.faults.failed(object, error, memory.now());
      if (whose === "now") throw error;
      if (whose === "later") return "refused";
    }
    reportNotWritten(object.name, error, memory, { report, log });
    return "refused";
  }
}

/** Reports at a Node that its objects do not take what is written of them; not each time. */
export function reportNotWritten(
  name: string,
  error: unknown,
  memory: Omit<MachineWrites, "faults">,
  { report, log }: Pick<Context, "report" | "log">,
): void {
  const node = memory.cluster.node(name)?.node;
  if (node === undefined || memory.reports.claims.take(`refused ${name}`, memory.now()) > 0) return;
  log.warn({ node: name, error }, "the API server refuses what is written of a machine");
  report({
    about: node,
    notice: "MachineNotWritten",
    message: `The API server refuses what is written of ${name}, so that it gets nothing new: its objects are too large, or name what cannot exist, or change faster than they are written; the controller's log has the answer`,
  });
}
