import { setCondition } from "../api/schema/conditions.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { McoError } from "../api/errors.ts";
import type { Ports } from "../ports/index.ts";
import type { Logger } from "../ports/logger.ts";
import type { EventRecorder } from "./event-recorder.ts";
import { type KubeClient, type Selection, updateObject } from "./kube-client.ts";
import type { Outcome } from "./outcome.ts";
import { type Report, createReport } from "./report.ts";
import { isPassing, retryAfterMs } from "./kube-error.ts";
import { type Change, WatchCache } from "./watch-cache.ts";
import { WorkQueue } from "./work-queue.ts";

/**
 * What a controller reads: becomes the caches. That the account of the process may list and watch it is compared in
 * `src/operator/rights.test.ts`.
 */
export interface Watch<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  readonly selection?: Selection;
  /** Which keys of the reconciled kind to look at after a change; the changed object's own when absent. */
  readonly concerns?: (change: Change<T>, caches: Caches) => readonly string[];
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /** What the cache holds of each object. Watches that share a cache name the same function, or none at all. */
  readonly keep?: (object: T) => T;
  /** The server need not have the kind: as long as it does not, there are no objects of it. */
  readonly optional?: boolean;
}

/** Types a watch, so that `concerns` knows its objects; a list of watches forgets the type again. */
export function watching<T extends KubeObject>(watch: Watch<T>): Watch {
  return watch as unknown as Watch;
}

export interface Controller {
  readonly name: string;
  /** The first one is the kind whose keys `reconcile` gets. */
  readonly watches: readonly [Watch, ...Watch[]];
  /**
   * Fields that no other controller writes: `Kind.field.path`. A claim to a part takes that part out of a wider claim.
   * Two controllers of one process that claim the same do not start; `src/operator/rights.test.ts` compares the claims
   * of all processes.
   */
  readonly owns: readonly string[];
  readonly workers?: number;
  /**
   * A condition of the reconciled object that the runtime keeps from the outcomes: True while stalled or failing; False
   * with what it waits for.
   */
  readonly degradedCondition?: string;
  /** Other reasons to look than changes of objects: called once, adds keys until the context's signal aborts. */
  readonly start?: (add: (key: string) => void, context: Omit<Context, "caches">) => void;
  /** Looks at the world and makes it right for one key. Gets a name, never an event. */
  reconcile(key: string, context: Context): Promise<Outcome>;
}

export interface Context extends Ports {
  readonly kube: KubeClient;
  readonly caches: Caches;
  readonly events: EventRecorder;
  /** Says what happened: the journal line, the Event and the log line of it. */
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** One watch cache for each kind and selection, shared by all controllers of a process. */
export class Caches {
  readonly #caches = new Map<string, WatchCache<KubeObject>>();
  readonly #make: (watches: readonly Watch[]) => WatchCache<KubeObject>;

  constructor(make: (watches: readonly Watch[]) => WatchCache<KubeObject>, watches: readonly Watch[]) {
    this.#make = make;
    const byKind = new Map<string, Watch[]>();
    for (const watch of watches) {
      const id = idOf(watch.resource, watch.selection);
      byKind.set(id, [...(byKind.get(id) ?? []), watch]);
    }
    for (const [id, list] of byKind) this.#caches.set(id, this.#make(list));
  }

  /**
   * The cache of a kind that some controller of the process watches. The selection must be named where there are
   * several.
   */
  of<T extends KubeObject>(resource: Resource<T>, selection?: Selection): WatchCache<T> {
    const cache =
      this.#caches.get(idOf(resource, selection)) ?? (selection === undefined ? this.#only(resource) : undefined);
    if (cache === undefined)
      throw new Error(`bug: nobody watches ${idOf(resource, selection)}, or several watch parts of it`);
    return cache as unknown as WatchCache<T>;
  }

  #only(resource: Resource): WatchCache<KubeObject> | undefined {
    const found = [...this.#caches].filter(([id]) => id.startsWith(`${idOf(resource)} `));
    return found.length === 1 ? found[0]?.[1] : undefined;
  }

  all(): readonly WatchCache<KubeObject>[] {
    return [...this.#caches.values()];
  }
}

const idOf = (resource: Resource, { namespace = "", labelSelector = "", fieldSelector = "" }: Selection = {}) =>
  [`${resource.apiVersion}/${resource.kind}`, namespace, labelSelector, fieldSelector].join(" ").trimEnd();

export interface RunOptions extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly coalesceMs?: number;
  /** Told of every look at a key: how it ended, and how long it took. */
  readonly onReconcile?: (look: {
    readonly controller: string;
    readonly outcome: Outcome["kind"] | "failed";
    readonly seconds: number;
  }) => void;
  /** Called when every cache has its first list. */
  readonly onSynced?: (caches: Caches) => void;
}

/** Runs controllers until `signal` aborts: caches, queues, retries, and what outcomes turn into. */
export async function runControllers(
  controllers: readonly Controller[],
  options: RunOptions,
  signal: AbortSignal,
): Promise<void> {
  refuseSharedFields(controllers);
  const { clock, random, log, kube } = options;
  const caches = new Caches(
    (watches) => {
      const [first] = watches;
      if (first === undefined) throw new Error("bug: a cache without a watch");
      if (watches.some(({ keep }) => keep !== first.keep))
        throw new Error(`bug: two watches of ${idOf(first.resource, first.selection)} keep different parts`);
      return new WatchCache({
        kube,
        resource: first.resource,
        ...(first.selection === undefined ? {} : { selection: first.selection }),
        ...(first.keep === undefined ? {} : { keep: first.keep }),
        // Whoever cannot do without the kind waits for it.
        optional: watches.every(({ optional }) => optional === true),
        indexes: Object.assign({}, ...watches.map((watch) => watch.indexes ?? {})) as NonNullable<Watch["indexes"]>,
        clock,
        random,
        log,
      });
    },
    controllers.flatMap((controller) => controller.watches),
  );

  const everythingRead = Promise.race([
    Promise.all(caches.all().map((cache) => cache.synced)),
    new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  ]);

  const queues = controllers.map((controller) => {
    const controllerLog = log.child({ controller: controller.name });
    const queue = new WorkQueue({
      clock,
      random,
      workers: controller.workers ?? 1,
      ...(options.coalesceMs === undefined ? {} : { coalesceMs: options.coalesceMs }),
      work: (key) => look(controller, key, controllerLog),
      notBeforeMs: retryAfterMs,
      onFailure: (key, error, retryInMs) => {
        if (!signal.aborted) controllerLog.warn({ key, error, retryInMs }, "failed, trying again");
      },
    });
    for (const watch of controller.watches) {
      caches.of(watch.resource, watch.selection).onChange((change) => {
        for (const key of watch.concerns === undefined ? [change.key] : watch.concerns(change, caches)) queue.add(key);
      });
    }
    const report = createReport({ ...options, log: controllerLog });
    controller.start?.((key) => queue.add(key), { ...options, log: controllerLog, report, signal });
    return queue;
  });

  async function look(
    controller: Controller,
    key: string,
    controllerLog: Logger,
  ): Promise<{ again?: { afterMs: number } }> {
    // Who has read one kind and not yet another sees pools without machines, and machines without policies.
    await everythingRead;
    if (signal.aborted) return {};
    const keyLog = controllerLog.child({ key });
    const context: Context = {
      ...options,
      log: keyLog,
      report: createReport({ ...options, log: keyLog }),
      caches,
      signal,
    };
    let outcome: Outcome;
    const began = clock.monotonic();
    const tell = (how: Outcome["kind"] | "failed") =>
      options.onReconcile?.({ controller: controller.name, outcome: how, seconds: (clock.monotonic() - began) / 1000 });
    try {
      outcome = await controller.reconcile(key, context);
      tell(outcome.kind);
    } catch (error) {
      if (!signal.aborted) tell("failed");
      // That the server is away or busy says nothing about the object. Any other failure is shown, without hiding it
      // behind a second one.
      if (
        controller.degradedCondition !== undefined &&
        error instanceof McoError &&
        !isPassing(error) &&
        !signal.aborted
      ) {
        await report(controller, key, { kind: "stalled", reason: "Failing", message: error.message }).catch(
          (second: unknown) => keyLog.warn({ error: second }, "condition not written"),
        );
      }
      throw error;
    }
    if (controller.degradedCondition !== undefined) await report(controller, key, outcome);
    if (outcome.kind !== "done") keyLog.info({ reason: outcome.reason, message: outcome.message }, outcome.kind);
    if (outcome.kind === "stalled" || outcome.reconcileAfterSeconds === undefined) return {};
    return { again: { afterMs: outcome.reconcileAfterSeconds * 1000 } };
  }

  async function report(controller: Controller, key: string, outcome: Outcome): Promise<void> {
    const type = controller.degradedCondition;
    const { resource, selection } = controller.watches[0];
    const cached = caches.of(resource, selection).get(key);
    if (type === undefined || cached === undefined) return;
    const status = outcome.kind === "stalled" ? ("True" as const) : ("False" as const);
    const wanted =
      outcome.kind === "done"
        ? { type, status, reason: "AsExpected", message: "" }
        : { type, status, reason: outcome.reason, message: outcome.message };
    // Whoever waits knows nothing new of what was wrong before.
    const stands = (object: KubeObject) =>
      outcome.kind === "waiting" &&
      conditionsOf(object).some((condition) => condition.type === type && condition.status === "True");
    await updateObject(
      kube,
      resource,
      cached.metadata,
      (object) => (stands(object) ? undefined : withCondition(object, wanted, clock.now())),
      { subresource: "status", cached, signal },
    );
  }

  const running = caches.all().map((cache) => cache.run(signal));
  await Promise.race([Promise.all(caches.all().map((cache) => cache.synced)), Promise.all(running)]);
  if (!signal.aborted) options.onSynced?.(caches);
  await Promise.all(running);
  for (const queue of queues) queue.stop();
}

interface LooseCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

const conditionsOf = (object: KubeObject) =>
  (object as { status?: { conditions?: (LooseCondition & { lastTransitionTime?: string })[] } }).status?.conditions ??
  [];

/** The status patch that sets one condition of a list, or `undefined` when it says so already. */
function withCondition(object: KubeObject, wanted: LooseCondition, now: number): Partial<KubeObject> | undefined {
  const conditions = conditionsOf(object);
  const before = conditions.find((condition) => condition.type === wanted.type);
  if (
    before !== undefined &&
    before.status === wanted.status &&
    before.reason === wanted.reason &&
    before.message === wanted.message
  )
    return undefined;
  return { status: { conditions: setCondition(conditions, wanted, now) } } as Partial<KubeObject>;
}

function refuseSharedFields(controllers: readonly Controller[]): void {
  const owners = new Map<string, string>();
  for (const { name, owns } of controllers) {
    for (const field of owns) {
      const other = owners.get(field);
      if (other !== undefined) throw new McoError("MCO_OWNERSHIP_CLASH", { field, controllers: [other, name] });
      owners.set(field, name);
    }
  }
}
