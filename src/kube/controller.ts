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
import { type ObjectChange, WatchCache } from "./watch-cache.ts";
import { WorkQueue } from "./work-queue.ts";

/**
 * The resources that a controller reads; each becomes a cache. `src/operator/rights.test.ts` checks that the account of
 * the process may list and watch them.
 */
export interface Watch<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  readonly selection?: Selection;
  /** The keys of the reconciled kind that a change affects; absent: the changed object's own key. */
  readonly concerns?: (change: ObjectChange<T>, caches: Caches) => readonly string[];
  /** Changes within this time cause one run; absent: as in {@link RunOptions}. See {@link machineCoalesceMs}. */
  readonly coalesceMs?: number;
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /** What the cache stores of each object. Watches that share a cache must name the same function, or none. */
  readonly keep?: (object: T) => T;
  /** The server may lack the kind; until it has it, there are no objects. */
  readonly optional?: boolean;
  /**
   * The process may lack the right to read the kind, as with the rights of an earlier release: after some seconds its
   * controllers start without. Whoever says so reads an object again that the cache does not have, and reports the right.
   */
  readonly mayBeForbidden?: boolean;
}

/**
 * For watches of what machines write, where one run is about all of them: root on a machine changes its objects as often as
 * the API server takes it.
 */
export const machineCoalesceMs = 1_000;

/** Types a watch, so that `concerns` knows its objects; a list of watches erases the type again. */
export function watching<T extends KubeObject>(watch: Watch<T>): Watch {
  return watch as unknown as Watch;
}

export interface Controller {
  readonly name: string;
  /** The first watch is the kind whose keys `reconcile` receives. */
  readonly watches: readonly [Watch, ...Watch[]];
  /**
   * Fields that no other controller writes: `Kind.field.path`. A claim to a part excludes that part from a wider claim.
   * Two controllers of one process with the same claim do not start; `src/operator/rights.test.ts` compares the claims
   * of all processes.
   */
  readonly owns: readonly string[];
  readonly workers?: number;
  /**
   * A condition of the reconciled object that the runtime derives from the outcomes: True while stalled or failing;
   * False with the reason of the wait.
   */
  readonly degradedCondition?: string;
  /** Brings the condition that sums that one up with others up to date: both are written together. */
  readonly withSummary?: (conditions: readonly LooseCondition[], now: number) => readonly LooseCondition[];
  /** Triggers other than object changes: called once, adds keys until the context's signal aborts. */
  readonly start?: (add: (key: string) => void, context: Omit<Context, "caches">) => void;
  /** Reconciles one key. Receives a name, never an event. */
  reconcile(key: string, context: Context): Promise<Outcome>;
}

export interface Context extends Ports {
  readonly kube: KubeClient;
  readonly caches: Caches;
  readonly events: EventRecorder;
  /** Reports what happened: writes the journal line, the Event and the log line. */
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** One watch cache for each kind and selector, shared by all controllers of a process. */
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

  /** The cache of a kind that some controller of the process watches. Pass the selector if there are several. */
  of<T extends KubeObject>(resource: Resource<T>, selection?: Selection): WatchCache<T> {
    const cache =
      this.#caches.get(idOf(resource, selection)) ?? (selection === undefined ? this.#only(resource) : undefined);
    if (cache === undefined)
      throw new Error(`bug: no controller watches ${idOf(resource, selection)}, or several watch parts of it`);
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
  /** Keys of these namespaces have every second turn of each controller while some are due. */
  readonly preferredNamespaces?: ReadonlySet<string>;
  /** Called after every reconcile with its outcome and duration. */
  readonly onReconcile?: (look: {
    readonly controller: string;
    readonly outcome: Outcome["kind"] | "failed";
    readonly seconds: number;
  }) => void;
  /** Called when every cache has its first list. */
  readonly onSynced?: (caches: Caches) => void;
}

/** Runs controllers until `signal` aborts: caches, queues, retries, and the effects of outcomes. */
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
        // A controller that requires the kind waits for it.
        optional: watches.every(({ optional }) => optional === true),
        mayBeForbidden: watches.every(({ mayBeForbidden }) => mayBeForbidden === true),
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
      ...(options.preferredNamespaces === undefined ? {} : { preferred: options.preferredNamespaces }),
      work: (key) => look(controller, key, controllerLog),
      notBeforeMs: retryAfterMs,
      onFailure: (key, error, retryInMs) => {
        if (!signal.aborted) controllerLog.warn({ key, error, retryInMs }, "failed, trying again");
      },
    });
    for (const watch of controller.watches) {
      caches.of(watch.resource, watch.selection).onChange((change) => {
        for (const key of watch.concerns === undefined ? [change.key] : watch.concerns(change, caches))
          queue.add(key, watch.coalesceMs);
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
    // Start only when all caches are in sync: otherwise pools would appear without machines, and machines without
    // policies.
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
    const count = (how: Outcome["kind"] | "failed") =>
      options.onReconcile?.({ controller: controller.name, outcome: how, seconds: (clock.monotonic() - began) / 1000 });
    try {
      outcome = await controller.reconcile(key, context);
      count(outcome.kind);
    } catch (error) {
      if (!signal.aborted) count("failed");
      // An unavailable or busy server says nothing about the object. Show any other failure, but do not let an error
      // while showing it hide the first one.
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
    // While waiting, keep an existing True condition.
    const stands = (object: KubeObject) =>
      outcome.kind === "waiting" &&
      conditionsOf(object).some((condition) => condition.type === type && condition.status === "True");
    await updateObject(
      kube,
      resource,
      cached.metadata,
      (object) => (stands(object) ? undefined : withCondition(object, wanted, controller.withSummary, clock.now())),
      { subresource: "status", cached, signal },
    );
  }

  const running = caches.all().map((cache) => cache.run(signal));
  await Promise.race([Promise.all(caches.all().map((cache) => cache.synced)), Promise.all(running)]);
  if (!signal.aborted) options.onSynced?.(caches);
  await Promise.all(running);
  for (const queue of queues) queue.stop();
}

export interface LooseCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

const conditionsOf = (object: KubeObject) =>
  (object as { status?: { conditions?: (LooseCondition & { lastTransitionTime?: string })[] } }).status?.conditions ??
  [];

/** The status patch that sets one condition of a list, and its summary, or `undefined` if nothing changes. */
function withCondition(
  object: KubeObject,
  wanted: LooseCondition,
  withSummary: Controller["withSummary"],
  now: number,
): Partial<KubeObject> | undefined {
  const conditions = conditionsOf(object);
  const before = conditions.find((condition) => condition.type === wanted.type);
  if (
    before !== undefined &&
    before.status === wanted.status &&
    before.reason === wanted.reason &&
    before.message === wanted.message
  )
    return undefined;
  const after = setCondition<LooseCondition>(conditions, wanted, now);
  const written = withSummary?.(after, now) ?? after;
  return { status: { conditions: written } } as Partial<KubeObject>;
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
