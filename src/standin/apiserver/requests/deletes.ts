import { type Engine, keyInStore } from "./engine.ts";
import { inVersion } from "../schema/event-conversion.ts";
import type { LiveObject } from "../storage/live-objects.ts";
import type { ResourceTarget } from "../http/request-target.ts";
import type { KubeObject, Served } from "../schema/contract.ts";
import { cloneJson, isObject } from "../schema/json-values.ts";
import { conflict, notFound, Refusal } from "../schema/status.ts";
import type { DeleteOptions } from "../http/write-options.ts";
import { namespaceFinalizers, type Written } from "./writes.ts";
import type { Exchange } from "../access/exchange.ts";
import { shareOf } from "../schema/shares.ts";
import { timestamp } from "../schema/timestamp.ts";

/** Pods without a say in it get this long: `k8s.io/api core/v1 (master)` DefaultTerminationGracePeriodSeconds. */
const defaultPodGraceSeconds = 30;
/** Longer waits count as this one, 68 years: their end may be beyond any calendar. */
const longestPodGraceSeconds = 2 ** 31;
const raceAttempts = 12;

/** Objects that are deleted in one turn: each is a write to the disk. */
export const deletionsOfOneTurn = 50;

/** DELETE of one object: removes it, or marks it where a finalizer or a kubelet still has to do something. */
export async function deleteObject(
  engine: Engine,
  exchange: Exchange,
  served: Served,
  target: Pick<ResourceTarget, "namespace" | "name" | "subresource"> & { readonly inCollection?: true },
  options: DeleteOptions,
): Promise<Written | Refusal> {
  const { definition } = served;
  // The real server names the kind here, not the resource.
  const ofKind = { group: definition.group, plural: definition.kind };
  for (let attempt = 1; ; attempt++) {
    const live = engine.live.get(keyInStore(served, target));
    if (live === undefined) return notFound(definition, target.name);
    const { metadata } = live.object;
    if (options.uid !== undefined && options.uid !== metadata.uid) {
      return conflict(
        ofKind,
        target.name,
        `the UID in the precondition (${options.uid}) does not match the UID in record (${metadata.uid ?? ""}). The object might have been deleted and then recreated`,
      );
    }
    if (options.resourceVersion !== undefined && options.resourceVersion !== metadata.resourceVersion) {
      return conflict(
        ofKind,
        target.name,
        `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion ?? ""}). The object might have been modified`,
      );
    }
    const objection = await engine.admission.validate(
      {
        operation: "DELETE",
        served,
        subresource: "",
        namespace: target.namespace,
        // For objects that are deleted with their collection, admission gets no name.
        name: target.inCollection === true ? "" : target.name,
        object: undefined,
        before: inVersion(live.object, served.apiVersion),
        dryRun: options.dryRun,
        options: {
          kind: "DeleteOptions",
          apiVersion: "meta.k8s.io/v1",
          ...(options.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: options.gracePeriodSeconds }),
          ...(options.propagation === undefined ? {} : { propagationPolicy: options.propagation }),
          ...(options.dryRun ? { dryRun: ["All"] } : {}),
        },
      },
      exchange,
    );
    if (objection !== undefined) return objection;

    const { outcome, object } = markDeleted(live, options, engine.clock.now());
    if (options.dryRun)
      return {
        live: outcome === "leave" || object === live.object ? live : { object, json: JSON.stringify(object) },
        effect: outcome === "remove" ? "removed" : "updated",
      };
    if (outcome === "leave") return { live, effect: "unchanged" };
    const marked =
      outcome === "keep" || object !== live.object
        ? engine.live.update(live.key, live.revision, object, shareOf(exchange.user).part)
        : undefined;
    if (outcome === "keep" && marked?.outcome === "written") return { live: marked.live, effect: "updated" };
    if (outcome === "remove" && (marked === undefined || marked.outcome === "written")) {
      const commit = engine.live.remove(live.key, marked?.live.revision ?? live.revision, object);
      if (commit.outcome === "written") return { live: commit.live, effect: "removed" };
    }
    if (attempt === raceAttempts) return conflict(definition, target.name);
  }
}

/**
 * The effect of a deletion on an object: it is removed, it changes its state, or (on a repeated request) it does not
 * change. Kinds with a grace period, which are pods, are marked before they are removed, even if the period is zero.
 */
function markDeleted(
  live: LiveObject,
  options: DeleteOptions,
  now: number,
): { readonly outcome: "remove" | "keep" | "leave"; readonly object: KubeObject } {
  const after = cloneJson(live.object);
  const { metadata } = after;
  const grace = live.key.resource === "pods" ? podGrace(after, options.gracePeriodSeconds) : 0;
  const held = new Set(metadata.finalizers ?? []);
  const heldBefore = held.size;
  if (options.propagation === "Orphan") {
    held.delete("foregroundDeletion");
    held.add("orphan");
  } else if (options.propagation === "Foreground") {
    held.delete("orphan");
    held.add("foregroundDeletion");
  } else if (options.propagation === "Background") {
    held.delete("orphan");
    held.delete("foregroundDeletion");
  }
  const finalizersChange =
    held.size !== heldBefore || (metadata.finalizers ?? []).some((finalizer) => !held.has(finalizer));
  if (finalizersChange) metadata.finalizers = [...held];

  const waits = held.size > 0 || (live.key.resource === "namespaces" && namespaceFinalizers(after).length > 0);
  if (metadata.deletionTimestamp === undefined) {
    if (live.key.resource !== "pods" && !waits) return { outcome: "remove", object: live.object };
    metadata.deletionTimestamp = timestamp(now + grace * 1_000);
    if (live.key.resource === "customresourcedefinitions.apiextensions.k8s.io")
      return { outcome: "keep", object: ending(after, timestamp(now)) };
    metadata.deletionGracePeriodSeconds = grace;
    if (metadata.generation !== undefined) metadata.generation += 1;
    if (live.key.resource === "namespaces")
      after["status"] = { ...(isObject(after["status"]) ? after["status"] : {}), phase: "Terminating" };
    return { outcome: grace === 0 && !waits ? "remove" : "keep", object: after };
  }
  const left = metadata.deletionGracePeriodSeconds ?? 0;
  if (left === 0 && !waits) return { outcome: "remove", object: live.object };
  if (grace >= left) return finalizersChange ? { outcome: "keep", object: after } : { outcome: "leave", object: after };
  // Less patience than before: the time counts from the first deletion.
  metadata.deletionTimestamp = timestamp(Date.parse(metadata.deletionTimestamp) - left * 1_000 + grace * 1_000);
  metadata.deletionGracePeriodSeconds = grace;
  return { outcome: grace === 0 && !waits ? "remove" : "keep", object: after };
}

/** `k8s.io/apiextensions-apiserver pkg/registry/customresourcedefinition/etcd.go (master)` Delete. */
function ending(crd: KubeObject, now: string): KubeObject {
  const status = isObject(crd["status"]) ? crd["status"] : {};
  const conditions = (Array.isArray(status["conditions"]) ? status["conditions"] : []).filter(
    (condition) => !isObject(condition) || condition["type"] !== "Terminating",
  );
  const terminating = {
    lastTransitionTime: now,
    message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    reason: "InstanceDeletionPending",
    status: "True",
    type: "Terminating",
  };
  return { ...crd, status: { ...status, conditions: [...conditions, terminating] } };
}

function podGrace(pod: KubeObject, asked: number | undefined): number {
  const spec = isObject(pod["spec"]) ? pod["spec"] : {};
  const phase = isObject(pod["status"]) ? pod["status"]["phase"] : undefined;
  // No kubelet runs the pod, so the deletion need not wait.
  if (typeof spec["nodeName"] !== "string" || spec["nodeName"] === "" || phase === "Succeeded" || phase === "Failed")
    return 0;
  const own = spec["terminationGracePeriodSeconds"];
  // `k8s.io/kubernetes pkg/registry/core/pod/strategy.go (master)`: a negative grace is the shortest.
  if (asked !== undefined && asked < 0) return 1;
  return Math.min(asked ?? (typeof own === "number" ? own : defaultPodGraceSeconds), longestPodGraceSeconds);
}
