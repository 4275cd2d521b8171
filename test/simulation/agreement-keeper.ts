import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { type ChapterRecord, foldBook } from "../../src/core/books/fold-book.ts";
import { AgreementWatch, describeDisagreement } from "../support/agreement.ts";
import { snapshotOf } from "../support/agreement-snapshot.ts";
import { EstimateScore } from "./estimate-score.ts";
import type { InvariantKeeper } from "./invariants.ts";
import type { Kernel } from "./kernel.ts";

/** Virtual time between two moments at which everything must agree: closer together in the long run. */
const everyMs = process.env["MCO_LONG"] === undefined ? 2800 : 1800;
/** `mco explain` is asked at every so manieth of these moments: it takes longer than everything else together. */
const explainsEvery = 5;

/** 24: compares everything that users see of a simulated cluster, every few seconds of its time. */
export class AgreementKeeper {
  readonly watch = new AgreementWatch();
  readonly estimates = new EstimateScore();
  readonly #kernel: Kernel;
  readonly #keeper: InvariantKeeper;
  /** By book, in the order in which they came: what a state process would have folded. */
  readonly #lines = new Map<string, JournalLine[]>();
  readonly #folded = new Map<string, { readonly lines: number; readonly chapters: readonly ChapterRecord[] }>();

  constructor(kernel: Kernel, keeper: InvariantKeeper) {
    this.#kernel = kernel;
    this.#keeper = keeper;
  }

  /** Begins to sample. */
  start(): void {
    this.#kernel.watch(everyMs, () => this.#sample());
  }

  /** A line that came to a journal for the first time. */
  reported(line: JournalLine): void {
    const lines = this.#lines.get(line.book);
    if (lines === undefined) this.#lines.set(line.book, [line]);
    else lines.push(line);
  }

  #chapters(): ReadonlyMap<string, readonly ChapterRecord[]> {
    const now = this.#kernel.clock.now();
    for (const [book, lines] of this.#lines) {
      if (this.#folded.get(book)?.lines === lines.length) continue;
      this.#folded.set(book, { lines: lines.length, chapters: foldBook(book, lines, { now }) });
    }
    return new Map([...this.#folded].map(([book, { chapters }]) => [book, chapters]));
  }

  #sample(): void {
    const { pools, nodes, machineConfigNodes, configs, checks } = this.#keeper;
    checks.agreements += 1;
    const objects = {
      now: this.#kernel.clock.now(),
      pools: [...pools.objects.values()],
      nodes: [...nodes.objects.values()],
      machineConfigNodes: [...machineConfigNodes.objects.values()],
      machineConfigs: [...configs.objects.values()],
      chapters: this.#chapters(),
      clusterOperator: "as the operator would",
    } as const;
    const snapshot = snapshotOf(objects, { explains: checks.agreements % explainsEvery === 0 });
    this.estimates.sample(snapshot);
    for (const found of this.watch.sample(snapshot)) this.#keeper.violated(24, describeDisagreement(found));
  }
}
