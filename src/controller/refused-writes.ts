import type { Node } from "../api/foreign/kubernetes.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError, isTooLarge, isTooManyRequests, isUnauthorized } from "../kube/kube-error.ts";
import type { SourceBuckets } from "../ports/source-buckets.ts";
import { machineNotWritten } from "./reports.ts";

/** How many writes of one object must fail before its machine can be at fault: fewer may be races or an outage. */
const failuresOfOwn = 3;
/** How long a failure counts, whatever succeeds after it: a machine can let a write succeed at any time. */
const countedMs = 600_000;
/**
 * Other machines whose writes fail in one pass, from which the API server is at fault and the pass ends; or objects of a kind
 * that fail at once while none succeeds, from which it fails at that kind.
 */
const mostFailing = 3;
/** Between attempts to write what only fails at one machine. */
const restMs = 60_000;

/** An object of a machine that controllers write: its Node, or its MachineConfigNode, which has the same name. */
export interface MachineObject {
  readonly name: string;
  readonly kind: "Node" | "MachineConfigNode";
}

const keyOf = ({ name, kind }: MachineObject): string => `${kind}/${name}`;

interface Failure {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** How many writes of other objects had succeeded before it. */
  readonly othersBefore: number;
  /** Of these, of objects of its kind. */
  readonly ofKindBefore: number;
}

interface Faults {
  readonly kind: MachineObject["kind"];
  /** The last ones, the oldest first; never more than count. */
  readonly failures: readonly Failure[];
  /** The last one counted as the machine's own. */
  readonly own: boolean;
  /** Writes of this object that have succeeded since the first failure. */
  writes: number;
  /** No write has succeeded since the last failure. */
  failing: boolean;
}

/**
 * Writes of machines that failed, whose fault that is, and what is thrown of it once a pass has done everything else. Each
 * object of a machine counts by itself: what its Node takes says nothing of its MachineConfigNode.
 */
export class WriteFaults {
  /** In the order of their last failures. */
  readonly #faults = new Map<string, Faults>();
  /** Failures of the current pass, by machine. */
  readonly #deferred = new Map<string, unknown>();
  #writes = 0;
  readonly #writesOfKind: Record<MachineObject["kind"], number> = { Node: 0, MachineConfigNode: 0 };

  /** Objects whose failures are remembered. */
  get size(): number {
    return this.#faults.size;
  }

  /** A write of a machine's object has succeeded. Its failures before count all the same. */
  wrote(object: MachineObject): void {
    this.#writes += 1;
    this.#writesOfKind[object.kind] += 1;
    const faults = this.#faults.get(keyOf(object));
    if (faults === undefined) return;
    faults.writes += 1;
    faults.failing = false;
  }

  /**
   * Takes in a failure of writes of a machine's object. It is the machine's own once several of its writes have failed within
   * ten minutes, while writes of other objects succeeded; but not while all that is written of its kind fails.
   *
   * @returns `later`: the pass goes on, and ends with that failure. `now`: the API server fails at everything.
   */
  failed(object: MachineObject, error: unknown, now: number): "own" | "later" | "now" {
    const key = keyOf(object);
    this.#forgetOld(now);
    const before = this.#faults.get(key);
    const writes = before?.writes ?? 0;
    const others = this.#writes - writes;
    const ofKind = this.#writesOfKind[object.kind] - writes;
    const failures = [...(before?.failures ?? []), { at: now, othersBefore: others, ofKindBefore: ofKind }]
      .filter(({ at }) => now - at < countedMs)
      .slice(-failuresOfOwn);
    const othersSucceed = failures.some(({ othersBefore }) => others > othersBefore);
    const kindFails = failures.every(({ ofKindBefore }) => ofKind === ofKindBefore) && this.#allFail(object);
    // Others may have nothing to write for as long as it fails.
    const own = failures.length === failuresOfOwn && (othersSucceed || before?.own === true) && !kindFails;
    this.#faults.delete(key);
    this.#faults.set(key, { kind: object.kind, failures, own, writes, failing: true });
    if (own) return "own";
    this.#deferred.set(object.name, error);
    // Where other kinds are written, the pass reaches the objects of this kind that may succeed.
    if (kindFails && othersSucceed) return "later";
    return this.#deferred.size >= mostFailing ? "now" : "later";
  }

  /** Whether so many objects of the kind of this one fail, itself among them, that the API server fails at the kind. */
  #allFail(object: MachineObject): boolean {
    let failing = 1;
    for (const [key, faults] of this.#faults) {
      if (failing >= mostFailing) break;
      if (faults.failing && faults.kind === object.kind && key !== keyOf(object)) failing += 1;
    }
    return failing >= mostFailing;
  }

  /** Whether an object's own failure is so recent that it is not tried again yet. */
  rests(object: MachineObject, now: number): boolean {
    const faults = this.#faults.get(keyOf(object));
    const last = faults?.failures.at(-1);
    return faults?.own === true && faults.failing && last !== undefined && now - last.at < restMs;
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
    for (const [key, { failures }] of this.#faults) {
      const last = failures.at(-1);
      if (last !== undefined && now - last.at < countedMs) return;
      this.#faults.delete(key);
    }
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
  report(machineNotWritten(node));
}
