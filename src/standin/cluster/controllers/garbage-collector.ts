import { pushAll } from "../../../api/schema/push-all.ts";
import type { KubeObject, OwnerReference, Resource } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { clusterNamespaces } from "../../apiserver/schema/shares.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import { isConflict, isNotFound } from "../../../kube/kube-error.ts";
import { type ObjectChange, WatchCache } from "../../../kube/watch-cache.ts";
import { WorkQueue } from "../../../kube/work-queue.ts";
import type { Ports } from "../../../ports/index.ts";
import { whenAborted } from "../../../ports/when-aborted.ts";
import { type Item, type OwnerState, collectGarbage, isWaitingForDependents } from "./collect-garbage.ts";
import { onlyMetadata } from "./only-metadata.ts";
import { type ServedKind, groupOf, kindId, servedKinds } from "./served-kinds.ts";

export interface GarbageCollectorOptions extends Ports {
  readonly kube: KubeClient;
  /** Caches of whole kinds that the process has anyway: one watch serves both. */
  readonly shared: readonly WatchCache<KubeObject>[];
  readonly coalesceMs: number;
}

/** Owners that are known to be deleted; a uid is never reused. Bounds memory. */
const rememberedAbsent = 5_000;
const workers = 8;
/** Owners that are asked for in one turn of an object: after that, others have theirs. */
const ownersOfOneTurn = 20;
/** Kinds whose objects are too many and too short-lived to own anything. */
const ignored: ReadonlySet<string> = new Set(["events"]);
/** When one of these changes, kinds come or go. */
const definitions = "customresourcedefinitions";

/** What is known of the owners of an object, some of which the API server was asked for. */
interface Asking {
  readonly owners: readonly OwnerReference[];
  /** By uid, what it answered. */
  readonly answers: Map<string, OwnerState>;
  /** Those that are still to be asked for. */
  readonly left: OwnerReference[];
}

interface Monitor {
  readonly kind: ServedKind;
  readonly stop: () => void;
  readonly ended: Promise<void>;
}

/**
 * Deletes objects whose owners are deleted, and releases owners that wait for their dependents or orphan them. It
 * watches every kind that is served, and keeps of each object only its name, owners and finalizers. Runs until `signal`
 * aborts.
 */
export async function runGarbageCollector(options: GarbageCollectorOptions, signal: AbortSignal): Promise<void> {
  const { kube, clock, random, log } = options;
  const items = new Map<string, Item>();
  /** uid of an owner → uids of what it owns */
  const dependents = new Map<string, Set<string>>();
  const absent = new Set<string>();
  /** By uid, objects of whose owners some are still to be asked for. */
  const askings = new Map<string, Asking>();
  const monitors = new Map<string, Monitor>();
  let kinds = new Map<string, ServedKind>();
  /** Of each watched kind that has no first list yet: settles with that list, or when the kind is watched no longer. */
  const unread = new Set<Promise<void>>();

  const queue = new WorkQueue({
    clock,
    random,
    workers,
    coalesceMs: options.coalesceMs,
    namespaceOf: (uid) => items.get(uid)?.namespace ?? "",
    preferred: clusterNamespaces,
    work: async (uid) => {
      await Promise.all(unread);
      return (await look(uid)) === "again" ? { again: { afterMs: 0 } } : {};
    },
    onFailure: (uid, error, retryInMs) => {
      if (!signal.aborted)
        log.warn(
          { item: items.get(uid)?.name, kind: items.get(uid)?.resource.kind, error, retryInMs },
          "garbage not collected, trying again",
        );
    },
  });

  const dependentsOf = (uid: string): Item[] =>
    [...(dependents.get(uid) ?? [])].flatMap((dependent) => items.get(dependent) ?? []);

  function put(item: Item): void {
    const before = items.get(item.uid);
    for (const { uid } of before?.owners ?? []) unlink(uid, item.uid);
    items.set(item.uid, item);
    for (const { uid } of item.owners) {
      const set = dependents.get(uid) ?? new Set();
      set.add(item.uid);
      dependents.set(uid, set);
    }
    if (item.owners.length > 0 || (item.deleting && item.finalizers.length > 0)) queue.add(item.uid);
    // Waiting owners may have one blocking dependent less, or one more.
    for (const { uid } of [...(before?.owners ?? []), ...item.owners]) {
      const owner = items.get(uid);
      if (owner !== undefined && isWaitingForDependents(owner)) queue.add(uid);
    }
    // Once an owner waits for its dependents, these are deleted.
    if (isWaitingForDependents(item) && (before === undefined || !isWaitingForDependents(before)))
      for (const dependent of dependents.get(item.uid) ?? []) queue.add(dependent);
  }

  function unlink(owner: string, dependent: string): void {
    const set = dependents.get(owner);
    set?.delete(dependent);
    if (set?.size === 0) dependents.delete(owner);
  }

  function drop(uid: string): void {
    const item = items.get(uid);
    if (item === undefined) return;
    items.delete(uid);
    askings.delete(uid);
    remember(uid);
    for (const owner of item.owners) {
      unlink(owner.uid, uid);
      if (items.has(owner.uid)) queue.add(owner.uid);
    }
    for (const dependent of dependents.get(uid) ?? []) queue.add(dependent);
  }

  function remember(uid: string): void {
    absent.add(uid);
    const oldest = absent.values().next();
    if (absent.size > rememberedAbsent && oldest.done !== true) absent.delete(oldest.value);
  }

  /** `again`: some of its owners are still to be asked for. */
  async function look(uid: string): Promise<void | "again"> {
    const item = items.get(uid);
    if (item === undefined) return;
    const states = item.deleting ? new Map<OwnerReference, OwnerState>() : await statesOf(item);
    if (states === "again") return "again";
    const step = collectGarbage(item, dependentsOf(uid), (owner) => states.get(owner) ?? "unknown");
    const key = { name: item.name, namespace: item.namespace };
    const unlessElsewhere = async (work: Promise<unknown>) => {
      try {
        await work;
      } catch (error) {
        // It was changed meanwhile, and the watch will report that; or it is gone, and the watch will report that too.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    };
    const patch = (target: Item, metadata: object) =>
      unlessElsewhere(
        kube.patch(
          target.resource,
          { name: target.name, namespace: target.namespace },
          {
            type: "merge",
            body: { metadata: { uid: target.uid, resourceVersion: target.resourceVersion, ...metadata } },
          },
          { signal },
        ),
      );
    const remove = (propagation: "Background" | "Foreground" | "Orphan", resourceVersion: string | undefined) =>
      unlessElsewhere(
        kube.delete(item.resource, key, {
          uid,
          ...(resourceVersion === undefined ? {} : { resourceVersion }),
          propagation,
          signal,
        }),
      );

    switch (step.do) {
      case "nothing":
        return;
      case "delete":
        log.debug({ kind: item.resource.kind, name: item.name, namespace: item.namespace }, "owners gone, deleting");
        return remove(step.propagation, item.resourceVersion);
      case "unblockAndDelete":
        await patch(item, { ownerReferences: item.owners.map((owner) => ({ ...owner, blockOwnerDeletion: false })) });
        return remove("Foreground", undefined);
      case "dropOwners":
        return patch(item, { ownerReferences: item.owners.filter((owner) => !step.uids.has(owner.uid)) });
      case "dropFinalizer":
        return patch(item, { finalizers: item.finalizers.filter((finalizer) => finalizer !== step.finalizer) });
      case "waitForDependents":
        for (const dependent of step.blocking) if (!dependent.deleting) queue.add(dependent.uid);
        return;
      case "orphanDependents": {
        const owned = dependentsOf(uid);
        for (const dependent of owned)
          await patch(dependent, { ownerReferences: dependent.owners.filter((owner) => owner.uid !== uid) });
        // Release it only when the cache shows no more references to it; otherwise its dependents would be deleted too.
        if (owned.length === 0)
          return patch(item, { finalizers: item.finalizers.filter((finalizer) => finalizer !== workloads.orphan) });
        queue.add(uid);
        return;
      }
    }
  }

  /** The states of all owners; `again`: after those of this turn, some are still to be asked for. */
  async function statesOf(item: Item): Promise<ReadonlyMap<OwnerReference, OwnerState> | "again"> {
    const asking = askingOf(item);
    if (asking === undefined) return finished(item);
    const { answers, left } = asking;
    await Promise.all(
      left
        .splice(-ownersOfOneTurn)
        .map(async (owner) => answers.set(owner.uid, knownStateOf(item, owner) ?? (await answerAbout(item, owner)))),
    );
    if (left.length > 0) return "again";
    // Those of a turn that failed.
    pushAll(
      left,
      item.owners.filter((owner) => (knownStateOf(item, owner) ?? answers.get(owner.uid)) === undefined),
    );
    return left.length > 0 ? "again" : finished(item, answers);
  }

  /** What is still to be asked; `undefined`: nothing, or nothing would follow from it. */
  function askingOf(item: Item): Asking | undefined {
    const before = askings.get(item.uid);
    if (before?.owners === item.owners) return before;
    const known = item.owners.map((owner) => [owner, knownStateOf(item, owner)] as const);
    if (known.every(([, state]) => state !== undefined) || known.some(([, state]) => state === "unknown"))
      return undefined;
    const answers = new Map(
      item.owners.flatMap(({ uid }) => {
        const answer = before?.answers.get(uid);
        return answer === undefined ? [] : [[uid, answer] as const];
      }),
    );
    const left = known.flatMap(([owner, state]) => (state !== undefined || answers.has(owner.uid) ? [] : [owner]));
    const asking = { owners: item.owners, answers, left };
    askings.set(item.uid, asking);
    return asking;
  }

  /** What is known by now counts before what was answered: an owner that was there may be gone. */
  function finished(
    item: Item,
    answers: ReadonlyMap<string, OwnerState> = new Map(),
  ): ReadonlyMap<OwnerReference, OwnerState> {
    askings.delete(item.uid);
    return new Map(
      item.owners.map((owner) => [owner, knownStateOf(item, owner) ?? answers.get(owner.uid) ?? "unknown"]),
    );
  }

  /** The state of an owner without a request; `undefined`: the API server has to be asked. */
  function knownStateOf(item: Item, owner: OwnerReference): OwnerState | undefined {
    if (absent.has(owner.uid) || absent.has(`${item.namespace}/${owner.uid}`)) return "absent";
    const known = items.get(owner.uid);
    if (known !== undefined && (known.namespace === "" || known.namespace === item.namespace))
      return isWaitingForDependents(known) ? "waiting" : "solid";
    const kind = kinds.get(kindId({ group: groupOf(owner.apiVersion), kind: owner.kind }));
    return kind === undefined || (kind.resource.namespaced && item.namespace === "") ? "unknown" : undefined;
  }

  async function answerAbout(item: Item, owner: OwnerReference): Promise<OwnerState> {
    const kind = kinds.get(kindId({ group: groupOf(owner.apiVersion), kind: owner.kind }));
    if (kind === undefined) return "unknown";
    const there = await kube.get(
      kind.resource,
      { name: owner.name, ...(kind.resource.namespaced ? { namespace: item.namespace } : {}) },
      { signal },
    );
    if (there?.metadata.uid === owner.uid)
      return there.metadata.deletionTimestamp !== undefined &&
        there.metadata.finalizers?.includes(workloads.foregroundDeletion) === true
        ? "waiting"
        : "solid";
    // For this namespace only: a reference across namespaces is void, and must not cost the true dependents their
    // lives.
    remember(`${item.namespace}/${owner.uid}`);
    return "absent";
  }

  function monitor(kind: ServedKind): Monitor {
    const { resource } = kind;
    const life = new AbortController();
    const end = () => life.abort(signal.reason);
    signal.addEventListener("abort", end, { once: true });
    const shared = options.shared.find(
      (cache) => cache.resource.group === resource.group && cache.resource.plural === resource.plural,
    );
    const cache = shared ?? new WatchCache<KubeObject>({ kube, resource, clock, random, log, keep: metadataOnly });
    const mine = new Set<string>();
    const observe = ({ before, after }: ObjectChange<KubeObject>) => {
      if (resource.plural === definitions) requestRefresh();
      const gone = before?.metadata.uid;
      if (gone !== undefined && gone !== after?.metadata.uid) {
        mine.delete(gone);
        drop(gone);
      }
      if (after?.metadata.uid === undefined) return;
      mine.add(after.metadata.uid);
      put(itemOf(resource, after));
    };
    const unsubscribe = cache.onChange(observe);
    for (const object of cache.list()) observe({ key: "", before: undefined, after: object });
    const ended = shared === undefined ? cache.run(life.signal) : Promise.resolve();
    const read: Promise<void> = Promise.race([cache.synced, whenAborted(life.signal)]).then(() => {
      unread.delete(read);
      // Definitions that came and went before their first list are no change of it, and may have been discovered.
      if (resource.plural === definitions && !life.signal.aborted) requestRefresh();
    });
    unread.add(read);
    return {
      kind,
      ended,
      stop() {
        signal.removeEventListener("abort", end);
        unsubscribe();
        life.abort(new Error("the kind is no longer served"));
        for (const uid of mine) drop(uid);
      },
    };
  }

  let refreshing: Promise<void> | undefined;
  let again = false;
  async function refresh(): Promise<void> {
    let failures = 0;
    do {
      again = false;
      try {
        const served = await servedKinds(kube, signal);
        kinds = new Map(served.map((kind) => [kindId(kind.resource), kind]));
        const watchable = new Map(
          served
            .filter(
              ({ resource, verbs }) =>
                !ignored.has(resource.plural) && ["list", "watch", "delete"].every((verb) => verbs.includes(verb)),
            )
            .map((kind) => [`${kind.resource.apiVersion}/${kind.resource.plural}`, kind]),
        );
        for (const [id, { stop }] of monitors) {
          if (watchable.has(id)) continue;
          monitors.delete(id);
          stop();
        }
        for (const [id, kind] of watchable) if (!monitors.has(id)) monitors.set(id, monitor(kind));
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        log.warn({ error }, "kinds not discovered, trying again");
        await clock.sleep(Math.min(10_000, 200 * 2 ** failures), signal).catch(() => undefined);
        again = true;
      }
    } while (again && !signal.aborted);
  }
  const requestRefresh = (): void => {
    again = true;
    refreshing ??= refresh().finally(() => {
      refreshing = undefined;
    });
  };
  requestRefresh();
  await whenAborted(signal);
  queue.stop();
  await refreshing;
  await Promise.all([...monitors.values()].map(({ ended }) => ended));
}

/** Bounds memory: the collector does not need the content of an object. */
const metadataOnly = onlyMetadata(
  "namespace",
  "uid",
  "resourceVersion",
  "deletionTimestamp",
  "ownerReferences",
  "finalizers",
);

const itemOf = (resource: Resource<KubeObject>, { metadata }: KubeObject): Item => ({
  resource,
  uid: metadata.uid ?? "",
  name: metadata.name,
  namespace: metadata.namespace ?? "",
  resourceVersion: metadata.resourceVersion ?? "",
  owners: metadata.ownerReferences ?? [],
  finalizers: metadata.finalizers ?? [],
  deleting: metadata.deletionTimestamp !== undefined,
});
