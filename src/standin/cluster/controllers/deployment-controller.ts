import { greatestOf } from "../../../api/schema/extremes.ts";
import { type Deployment, type Pod, type ReplicaSet, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { withTransition } from "../../../api/schema/conditions.ts";
import { conditionOf, controlledBy, keyOf } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { type Caches, type Context, type Controller, watching } from "../../../kube/controller.ts";
import { isAlreadyExists } from "../../../kube/kube-error.ts";
import { type Outcome, done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { claim } from "./claim.ts";
import { mergeDifference, sameJson } from "./merge-difference.ts";
import { messageOf } from "./make-pods.ts";
import { plainTemplate } from "./plain-template.ts";
import { controllerOf, isTerminal, ownedIndexes, podIndexes } from "./pod-state.ts";
import { rollLimits, rollSizes, sum } from "./roll-deployment.ts";
import { selects, selectsNothingInParticular } from "./selects.ts";
import { templateHash } from "./template-hash.ts";
import { millisecondsOf, timestamp } from "./timestamp.ts";
import { writeStatus } from "./write-status.ts";

type DeploymentStatus = NonNullable<Deployment["status"]>;
type DeploymentCondition = NonNullable<DeploymentStatus["conditions"]>[number];

const defaultHistory = 10;
const defaultProgressSeconds = 600;
/**
 * A deadline of this many seconds is none: k8s.io/kubernetes pkg/controller/deployment/util (master)
 * HasProgressDeadline.
 */
const noDeadline = 2_147_483_647;

/** Rolls the pod template of a Deployment out through ReplicaSets. */
export function deploymentController(): Controller {
  function concernsOfSet({ before, after }: ObjectChange<ReplicaSet>, caches: Caches): readonly string[] {
    const keys = new Set<string>();
    for (const set of [before, after]) {
      if (set === undefined) continue;
      const owner = controllerOf(set);
      const namespace = set.metadata.namespace ?? "";
      if (owner?.kind === "Deployment") keys.add(`${namespace}/${owner.name}`);
      if (owner === undefined)
        for (const deployment of caches.of(kubernetes.Deployment).byIndex("namespace", namespace))
          if (selects(deployment.spec?.selector, set.metadata.labels)) keys.add(keyOf(deployment));
    }
    return [...keys];
  }

  /** Recreate waits for the last old pod to be gone, which no ReplicaSet reports. */
  function concernsOfPod({ before, after }: ObjectChange<Pod>, caches: Caches): readonly string[] {
    const gone = after === undefined ? before : isTerminal(after) ? after : undefined;
    const owner = gone === undefined ? undefined : controllerOf(gone);
    if (gone === undefined || owner?.kind !== "ReplicaSet") return [];
    const set = caches.of(kubernetes.ReplicaSet).get(`${gone.metadata.namespace}/${owner.name}`);
    const deployment = set === undefined ? undefined : controllerOf(set);
    return deployment?.kind === "Deployment" ? [`${gone.metadata.namespace}/${deployment.name}`] : [];
  }

  return {
    name: "deployment",
    watches: [
      watching<Deployment>({ resource: kubernetes.Deployment, indexes: ownedIndexes }),
      watching<ReplicaSet>({ resource: kubernetes.ReplicaSet, indexes: ownedIndexes, concerns: concernsOfSet }),
      watching<Pod>({ resource: kubernetes.Pod, indexes: podIndexes, concerns: concernsOfPod }),
    ],
    owns: ["Deployment.status", "ReplicaSet.spec.replicas"],
    workers: 4,

    async reconcile(key, context): Promise<Outcome> {
      const { caches, clock } = context;
      const deployment = caches.of(kubernetes.Deployment).get(key);
      if (deployment === undefined) return done();
      const selector = deployment.spec?.selector;
      if (selectsNothingInParticular(selector)) return done();
      const sets = await claim(
        { owner: deployment, ownerResource: kubernetes.Deployment, resource: kubernetes.ReplicaSet, selector },
        context,
      );
      const rollout = new Rollout(deployment, sets, context);
      if (deployment.metadata.deletionTimestamp === undefined) await rollout.advance();
      const again = await rollout.report(clock.now());
      return again === undefined ? done() : done(again);
    },
  };
}

const revisionOf = (object: Deployment | ReplicaSet): number =>
  Number(object.metadata.annotations?.[workloads.deploymentRevision] ?? 0) || 0;

/** One pass over one Deployment; it reads its own writes back into itself. */
class Rollout {
  #deployment: Deployment;
  #current: ReplicaSet | undefined;
  /** Oldest first. */
  #old: ReplicaSet[];
  readonly #context: Context;
  readonly #desired: number;
  readonly #limits: ReturnType<typeof rollLimits>;
  #progress: { readonly reason: string; readonly message: string } | undefined;
  #collisions: number;

  constructor(deployment: Deployment, sets: readonly ReplicaSet[], context: Context) {
    this.#deployment = deployment;
    this.#context = context;
    this.#desired = deployment.spec?.replicas ?? 1;
    const { strategy } = deployment.spec ?? {};
    this.#limits =
      strategy?.type === "Recreate"
        ? { desired: this.#desired, maxSurge: 0, maxUnavailable: this.#desired }
        : rollLimits(this.#desired, strategy?.rollingUpdate);
    this.#collisions = deployment.status?.collisionCount ?? 0;
    const byAge = [...sets].sort((a, b) =>
      (a.metadata.creationTimestamp ?? "") < (b.metadata.creationTimestamp ?? "")
        ? -1
        : (a.metadata.creationTimestamp ?? "") > (b.metadata.creationTimestamp ?? "")
          ? 1
          : a.metadata.name < b.metadata.name
            ? -1
            : 1,
    );
    const template = plainTemplate(deployment.spec?.template);
    this.#current = byAge.find((set) => sameJson(plainTemplate(set.spec?.template), template));
    this.#old = byAge.filter((set) => set !== this.#current);
  }

  async advance(): Promise<void> {
    const { spec } = this.#deployment;
    if (spec?.paused === true) {
      await this.#resizeWhilePaused();
      return;
    }
    if (spec?.strategy?.type === "Recreate") {
      await this.#scaleOld(this.#old.map(() => 0));
      if (this.#oldPodsLeft()) return;
      await this.#ensureCurrent(this.#desired);
      if (this.#current !== undefined) this.#current = await this.#scale(this.#current, this.#desired);
    } else {
      const total = sum(this.#old.map((set) => set.spec?.replicas ?? 1));
      await this.#ensureCurrent(Math.max(0, Math.min(this.#desired, this.#desired + this.#limits.maxSurge - total)));
      if (this.#current === undefined) return;
      const size = (set: ReplicaSet) => ({
        wanted: set.spec?.replicas ?? 1,
        available: set.status?.availableReplicas ?? 0,
      });
      const next = rollSizes(size(this.#current), this.#old.map(size), this.#limits);
      this.#current = await this.#scale(this.#current, next.current);
      await this.#scaleOld(next.old);
    }
    if (this.#isComplete()) await this.#forgetHistory();
  }

  /** A paused rollout does not roll; it still has as many pods as it should. */
  async #resizeWhilePaused(): Promise<void> {
    const all = [...this.#old, ...(this.#current === undefined ? [] : [this.#current])];
    const active = all.filter((set) => (set.spec?.replicas ?? 1) > 0);
    const total = sum(active.map((set) => set.spec?.replicas ?? 1));
    const [only] = active;
    if (only !== undefined && active.length === 1) {
      await this.#replace(await this.#scale(only, this.#desired));
      return;
    }
    if (active.length === 0) {
      const newest = this.#current ?? all.at(-1);
      if (newest !== undefined) await this.#replace(await this.#scale(newest, this.#desired));
      return;
    }
    // In the middle of a rollout the sets share the change in proportion to their size; the newest takes what rounding
    // leaves.
    const before = Number(active.at(-1)?.metadata.annotations?.[workloads.maxReplicas] ?? total) || total;
    const allowed = this.#desired === 0 ? 0 : this.#desired + this.#limits.maxSurge;
    if (allowed === before && total <= allowed) return;
    let left =
      allowed - sum(active.map((set) => Math.floor(((set.spec?.replicas ?? 1) * allowed) / Math.max(1, total))));
    for (const set of active.toReversed()) {
      const share = Math.floor(((set.spec?.replicas ?? 1) * allowed) / Math.max(1, total)) + left;
      left = 0;
      await this.#replace(await this.#scale(set, share));
    }
  }

  async #replace(set: ReplicaSet): Promise<void> {
    await Promise.resolve();
    if (this.#current?.metadata.uid === set.metadata.uid) this.#current = set;
    else this.#old = this.#old.map((old) => (old.metadata.uid === set.metadata.uid ? set : old));
  }

  #oldPodsLeft(): boolean {
    const pods = this.#context.caches.of(kubernetes.Pod);
    return this.#old.some((set) => pods.byIndex("controller", set.metadata.uid ?? "").some((pod) => !isTerminal(pod)));
  }

  /** Makes the set of the current template, or gives the one that is there the newest revision. */
  async #ensureCurrent(replicas: number): Promise<void> {
    const { kube, signal, events } = this.#context;
    const deployment = this.#deployment;
    const revision = String(greatestOf(this.#old.map(revisionOf), 0) + 1);
    if (this.#current !== undefined) {
      if (revisionOf(this.#current) < Number(revision))
        this.#current = await this.#annotate(this.#current, { [workloads.deploymentRevision]: revision });
      const was = conditionOf(deployment.status?.conditions, "Progressing");
      if (was === undefined)
        this.#progress = {
          reason: "FoundNewReplicaSet",
          message: `Found new replica set ${JSON.stringify(this.#current.metadata.name)}`,
        };
    } else {
      const { template } = deployment.spec ?? {};
      const hash = templateHash(plainTemplate(template), this.#collisions);
      const name = `${deployment.metadata.name}-${hash}`;
      const labels = { ...template?.metadata?.labels, [workloads.podTemplateHash]: hash };
      const set: ReplicaSet = {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        metadata: {
          name,
          namespace: deployment.metadata.namespace ?? "",
          labels,
          annotations: {
            ...inherited(deployment),
            ...this.#sizeAnnotations(),
            [workloads.deploymentRevision]: revision,
          },
          ownerReferences: [controlledBy({ ...deployment, apiVersion: "apps/v1", kind: "Deployment" })],
        },
        spec: {
          replicas,
          ...(deployment.spec?.minReadySeconds === undefined
            ? {}
            : { minReadySeconds: deployment.spec.minReadySeconds }),
          selector: {
            ...deployment.spec?.selector,
            matchLabels: { ...deployment.spec?.selector?.matchLabels, [workloads.podTemplateHash]: hash },
          },
          ...(template === undefined ? {} : { template: { ...template, metadata: { ...template.metadata, labels } } }),
        },
      };
      try {
        this.#current = await kube.create(kubernetes.ReplicaSet, set, { signal });
        this.#progress = { reason: "NewReplicaSetCreated", message: `Created new replica set ${JSON.stringify(name)}` };
        if (replicas > 0)
          events.event(deployment, {
            type: "Normal",
            reason: "ScalingReplicaSet",
            message: `Scaled up replica set ${name} from 0 to ${replicas}`,
          });
      } catch (error) {
        if (!isAlreadyExists(error)) {
          this.#progress = {
            reason: "ReplicaSetCreateError",
            message: `Failed to create new replica set ${JSON.stringify(name)}: ${messageOf(error)}`,
          };
          await this.report(this.#context.clock.now());
          throw error;
        }
        const there = await kube.get(
          kubernetes.ReplicaSet,
          { name, namespace: deployment.metadata.namespace ?? "" },
          { signal },
        );
        if (
          there !== undefined &&
          controllerOf(there)?.uid === deployment.metadata.uid &&
          sameJson(plainTemplate(there.spec?.template), plainTemplate(template))
        ) {
          this.#current = there; // The cache is late.
        } else {
          this.#collisions += 1; // Two templates with one hash: the next look takes another name.
          return;
        }
      }
    }
    const mine = this.#current.metadata.annotations?.[workloads.deploymentRevision];
    if (mine !== undefined && deployment.metadata.annotations?.[workloads.deploymentRevision] !== mine) {
      this.#deployment = await kube.patch(
        kubernetes.Deployment,
        deployment.metadata,
        {
          type: "merge",
          body: {
            metadata: {
              resourceVersion: deployment.metadata.resourceVersion,
              annotations: { [workloads.deploymentRevision]: mine },
            },
          },
        },
        { signal },
      );
    }
  }

  #sizeAnnotations(): Record<string, string> {
    return {
      [workloads.desiredReplicas]: String(this.#desired),
      [workloads.maxReplicas]: String(this.#desired + this.#limits.maxSurge),
    };
  }

  async #annotate(set: ReplicaSet, annotations: Readonly<Record<string, string>>): Promise<ReplicaSet> {
    const difference = mergeDifference(set.metadata.annotations ?? {}, { ...set.metadata.annotations, ...annotations });
    if (difference === undefined) return set;
    const { kube, signal } = this.#context;
    return kube.patch(
      kubernetes.ReplicaSet,
      set.metadata,
      { type: "merge", body: { metadata: { resourceVersion: set.metadata.resourceVersion, annotations: difference } } },
      { signal },
    );
  }

  async #scaleOld(sizes: readonly number[]): Promise<void> {
    for (const [index, set] of this.#old.entries()) this.#old[index] = await this.#scale(set, sizes[index] ?? 0);
  }

  async #scale(set: ReplicaSet, replicas: number): Promise<ReplicaSet> {
    const before = set.spec?.replicas ?? 1;
    const annotations =
      replicas > 0 || set === this.#current
        ? mergeDifference(set.metadata.annotations ?? {}, { ...set.metadata.annotations, ...this.#sizeAnnotations() })
        : undefined;
    if (before === replicas && annotations === undefined) return set;
    const { kube, signal, events } = this.#context;
    const body = {
      metadata: {
        uid: set.metadata.uid,
        resourceVersion: set.metadata.resourceVersion,
        ...(annotations === undefined ? {} : { annotations }),
      },
      ...(before === replicas ? {} : { spec: { replicas } }),
    };
    const after = await kube.patch(kubernetes.ReplicaSet, set.metadata, { type: "merge", body }, { signal });
    if (before !== replicas)
      events.event(this.#deployment, {
        type: "Normal",
        reason: "ScalingReplicaSet",
        message: `Scaled ${before < replicas ? "up" : "down"} replica set ${set.metadata.name} from ${before} to ${replicas}`,
      });
    return after;
  }

  #metrics() {
    const all = [...this.#old, ...(this.#current === undefined ? [] : [this.#current])];
    const total = (field: "replicas" | "readyReplicas" | "availableReplicas") =>
      sum(all.map((set) => set.status?.[field] ?? 0));
    return {
      replicas: total("replicas"),
      updated: this.#current?.status?.replicas ?? 0,
      ready: total("readyReplicas"),
      available: total("availableReplicas"),
      all,
    };
  }

  #isComplete(): boolean {
    const { replicas, updated, available } = this.#metrics();
    return (
      updated === this.#desired &&
      replicas === this.#desired &&
      available === this.#desired &&
      (this.#current?.spec?.replicas ?? 0) === this.#desired
    );
  }

  async #forgetHistory(): Promise<void> {
    const { kube, signal } = this.#context;
    const keep = this.#deployment.spec?.revisionHistoryLimit ?? defaultHistory;
    const idle = this.#old.filter(
      (set) =>
        set.metadata.deletionTimestamp === undefined &&
        (set.spec?.replicas ?? 1) === 0 &&
        (set.status?.replicas ?? 0) === 0 &&
        (set.status?.observedGeneration ?? 0) >= (set.metadata.generation ?? 0),
    );
    const surplus = idle
      .toSorted((a, b) => revisionOf(a) - revisionOf(b))
      .slice(0, Math.max(0, this.#old.length - keep));
    for (const set of surplus)
      await kube.delete(kubernetes.ReplicaSet, set.metadata, {
        ...(set.metadata.uid === undefined ? {} : { uid: set.metadata.uid }),
        signal,
      });
    this.#old = this.#old.filter((set) => !surplus.includes(set));
  }

  /** Writes the status. @returns seconds after which the progress deadline may have passed. */
  async report(now: number): Promise<number | undefined> {
    const { kube, signal, events } = this.#context;
    const deployment = this.#deployment;
    const { replicas, updated, ready, available, all } = this.#metrics();
    const before = deployment.status ?? {};
    let conditions: readonly DeploymentCondition[] = before.conditions ?? [];
    const enough = available >= this.#desired - this.#limits.maxUnavailable;
    conditions = withDeploymentCondition(
      conditions,
      enough
        ? {
            type: "Available",
            status: "True",
            reason: "MinimumReplicasAvailable",
            message: "Deployment has minimum availability.",
          }
        : {
            type: "Available",
            status: "False",
            reason: "MinimumReplicasUnavailable",
            message: "Deployment does not have minimum availability.",
          },
      now,
      "keep",
    );

    const deadline = deployment.spec?.progressDeadlineSeconds ?? defaultProgressSeconds;
    const progressing = conditionOf(conditions, "Progressing");
    let again: number | undefined;
    if (deadline !== noDeadline) {
      const name = JSON.stringify(this.#current?.metadata.name ?? deployment.metadata.name);
      const moved =
        updated > (before.updatedReplicas ?? 0) ||
        replicas - updated < (before.replicas ?? 0) - (before.updatedReplicas ?? 0) ||
        ready > (before.readyReplicas ?? 0) ||
        available > (before.availableReplicas ?? 0);
      if (deployment.spec?.paused === true) {
        conditions = withDeploymentCondition(
          conditions,
          { type: "Progressing", status: "Unknown", reason: "DeploymentPaused", message: "Deployment is paused" },
          now,
          "keep",
        );
      } else if (this.#progress?.reason === "ReplicaSetCreateError") {
        conditions = withDeploymentCondition(
          conditions,
          { type: "Progressing", status: "False", ...this.#progress },
          now,
          "keep",
        );
      } else if (this.#isComplete()) {
        conditions = withDeploymentCondition(
          conditions,
          {
            type: "Progressing",
            status: "True",
            reason: "NewReplicaSetAvailable",
            message: `ReplicaSet ${name} has successfully progressed.`,
          },
          now,
          "keep",
        );
      } else if (
        progressing?.reason === "NewReplicaSetAvailable" &&
        replicas === updated &&
        this.#progress === undefined
      ) {
        // It arrived once; pods that come and go since are no rollout.
      } else if (this.#progress !== undefined) {
        conditions = withDeploymentCondition(
          conditions,
          { type: "Progressing", status: "True", ...this.#progress },
          now,
          "refresh",
        );
      } else if (moved || progressing === undefined || progressing.reason === "DeploymentPaused") {
        conditions = withDeploymentCondition(
          conditions,
          {
            type: "Progressing",
            status: "True",
            reason: "ReplicaSetUpdated",
            message: `ReplicaSet ${name} is progressing.`,
          },
          now,
          "refresh",
        );
      } else if (progressing.reason !== "ProgressDeadlineExceeded") {
        const since = millisecondsOf(progressing.lastUpdateTime) ?? now;
        const left = since / 1000 + deadline - now / 1000;
        if (left > 0) again = left;
        else
          conditions = withDeploymentCondition(
            conditions,
            {
              type: "Progressing",
              status: "False",
              reason: "ProgressDeadlineExceeded",
              message: `ReplicaSet ${name} has timed out progressing.`,
            },
            now,
            "keep",
          );
      }
      const progress = conditionOf(conditions, "Progressing");
      if (again === undefined && progress?.status === "True" && progress.reason !== "NewReplicaSetAvailable")
        again = deadline;
    }

    const failing = all
      .map((set) => conditionOf(set.status?.conditions, "ReplicaFailure"))
      .find((condition) => condition?.status === "True");
    conditions =
      failing === undefined
        ? conditions.filter(({ type }) => type !== "ReplicaFailure")
        : withDeploymentCondition(
            conditions,
            {
              type: "ReplicaFailure",
              status: "True",
              reason: failing.reason ?? "FailedCreate",
              message: failing.message ?? "",
            },
            now,
            "keep",
          );

    const status: DeploymentStatus = {
      ...before,
      observedGeneration: deployment.metadata.generation ?? 0,
      replicas,
      updatedReplicas: updated,
      readyReplicas: ready,
      availableReplicas: available,
      unavailableReplicas: Math.max(0, sum(all.map((set) => set.spec?.replicas ?? 1)) - available),
      conditions: [...conditions],
      ...(this.#collisions === 0 ? {} : { collisionCount: this.#collisions }),
    };
    await writeStatus(kube, kubernetes.Deployment, deployment, status, signal);
    const timedOut = (list: readonly DeploymentCondition[] | undefined) =>
      conditionOf(list, "Progressing")?.reason === "ProgressDeadlineExceeded";
    if (timedOut(conditions) && !timedOut(before.conditions))
      events.event(deployment, {
        type: "Warning",
        reason: "ProgressDeadlineExceeded",
        message: conditionOf(conditions, "Progressing")?.message ?? "",
      });
    return again;
  }
}

/** Annotations of a Deployment that its ReplicaSets carry too. */
function inherited(deployment: Deployment): Record<string, string> {
  const own: readonly string[] = [
    workloads.lastApplied,
    workloads.deploymentRevision,
    workloads.deploymentRevisionHistory,
    workloads.desiredReplicas,
    workloads.maxReplicas,
  ];
  return Object.fromEntries(
    Object.entries(deployment.metadata.annotations ?? {}).filter(([key]) => !own.includes(key)),
  );
}

/** `refresh`: something moved, though the condition may say the same. */
function withDeploymentCondition(
  conditions: readonly DeploymentCondition[],
  wanted: { readonly type: string; readonly status: string; readonly reason: string; readonly message: string },
  now: number,
  lastUpdate: "keep" | "refresh",
): readonly DeploymentCondition[] {
  const before = conditionOf(conditions, wanted.type);
  if (
    before !== undefined &&
    lastUpdate === "keep" &&
    before.status === wanted.status &&
    before.reason === wanted.reason &&
    before.message === wanted.message
  )
    return conditions;
  const next = withTransition<DeploymentCondition>(before, { ...wanted, lastUpdateTime: timestamp(now) }, now);
  return [...conditions.filter(({ type }) => type !== wanted.type), next];
}
